/// The chip as host functions see it. platform_ascendc::PlatformAscendC reads it; libraries of operators also ask for
/// single facts by label and key, as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <string>

namespace fe {

/// Kinds of memory, in the order of platform_ascendc::CoreMemType.
enum class LocalMemType { L0_A = 0, L0_B = 1, L0_C = 2, L1 = 3, L2 = 4, UB = 5, HBM = 6, RESERVED };

/// One fact as text, such as ("version", "SoC_version"): "Ascend910B2".
struct PlatformFact {
  const char* label;
  const char* key;
  const char* value;
};

/// One per chip, owned by the emulator library and never freed.
struct PlatFormInfos {
  static constexpr uint32_t kMemoryCount = 9;

  const char* soc_name;    ///< such as Ascend910B2
  const char* soc_config;  ///< the name in AddConfig, such as ascend910b
  uint32_t npu_arch;       ///< the number of dav-2201
  uint32_t aic_count;
  uint32_t aiv_count;
  uint32_t vector_core_count;  ///< vector cores beside the AI cores; 0 where there are none
  uint32_t lib_api_workspace_bytes;
  uint64_t memory_bytes[kMemoryCount];  ///< by platform_ascendc::CoreMemType; 0 where the number is not known
  const PlatformFact* facts;            ///< sorted by label
  size_t fact_count;

  uint32_t GetCoreNum() const { return aiv_count; }
  /// `core_type` is "AiCore" or "VectorCore".
  uint32_t GetCoreNumByType(const std::string& core_type) const {
    return core_type == "VectorCore" ? aiv_count : aic_count;
  }
  void GetLocalMemSize(const LocalMemType& memory, uint64_t& size) const {
    const uint32_t index = static_cast<uint32_t>(memory);
    size = index < kMemoryCount ? memory_bytes[index] : 0;
  }
  /// Leaves `value` alone and returns false where the fact is not known.
  bool GetPlatformRes(const std::string& label, const std::string& key, std::string& value) const {
    for (size_t i = 0; i < fact_count; ++i) {
      if (label != facts[i].label || key != facts[i].key) continue;
      value = facts[i].value;
      return true;
    }
    return false;
  }
  /// All facts of a label; false where there are none.
  bool GetPlatformRes(const std::string& label, std::map<std::string, std::string>& values) const {
    for (size_t i = 0; i < fact_count; ++i) {
      if (label == facts[i].label) values[facts[i].key] = facts[i].value;
    }
    return !values.empty();
  }
};

}  // namespace fe
