/// The chip as host functions see it. platform_ascendc::PlatformAscendC reads it; libraries of operators also ask for
/// single facts by label and key, as text.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <cstdlib>
#include <map>
#include <memory>
#include <string>

#include "opkit/arch.h"
#include "opkit/host/workspace.h"

namespace fe {

/// Kinds of memory, in the order of platform_ascendc::CoreMemType.
enum class LocalMemType { L0_A = 0, L0_B = 1, L0_C = 2, L1 = 3, L2 = 4, UB = 5, HBM = 6, RESERVED };

/// One fact as text, such as ("version", "SoC_version"): "Ascend910B2".
struct PlatformFact {
  const char* label;
  const char* key;
  const char* value;
};

/// What a program says of a chip itself.
struct OwnFacts {
  std::map<std::string, std::map<std::string, std::string>> values;  ///< by label, then key
  std::string soc_config;
};

/// One per chip, owned by the emulator library and never freed; or one that a program describes itself, by Init and
/// SetPlatformRes. Source of the latter: unit tests of public operator libraries.
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
  uint32_t core_count;            ///< what SetCoreNumByCoreType has chosen; 0: the vector cores
  std::shared_ptr<OwnFacts> own;  ///< null for the emulator's own chips

  /// Begins a description in which nothing is known yet.
  bool Init() {
    *this = PlatFormInfos{};
    own = std::make_shared<OwnFacts>();
    soc_name = soc_config = own->soc_config.c_str();
    lib_api_workspace_bytes = ::opkit::kLibApiWorkspaceBytes;
    return true;
  }

  /// Replaces all facts of a label. Needs Init; the emulator's chips stay what they are.
  void SetPlatformRes(const std::string& label, const std::map<std::string, std::string>& values) {
    if (own == nullptr) return;
    own->values[label] = values;
    derive();
  }

  /// Has GetCoreNum answer with the number of such cores: "AICore", else of vector cores.
  void SetCoreNumByCoreType(const std::string& core_type) {
    core_count =
        core_type == "AICore" ? own_number("SoCInfo", "ai_core_cnt") : own_number("SoCInfo", "vector_core_cnt");
  }

  uint32_t GetCoreNum() const { return core_count != 0 ? core_count : aiv_count; }
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
    if (own != nullptr) {
      const auto values = own->values.find(label);
      if (values == own->values.end()) return false;
      const auto found = values->second.find(key);
      if (found == values->second.end()) return false;
      value = found->second;
      return true;
    }
    for (size_t i = 0; i < fact_count; ++i) {
      if (label != facts[i].label || key != facts[i].key) continue;
      value = facts[i].value;
      return true;
    }
    return false;
  }
  /// All facts of a label; false where there are none.
  bool GetPlatformRes(const std::string& label, std::map<std::string, std::string>& values) const {
    if (own != nullptr) {
      const auto found = own->values.find(label);
      if (found != own->values.end()) values = found->second;
      return !values.empty();
    }
    for (size_t i = 0; i < fact_count; ++i) {
      if (label == facts[i].label) values[facts[i].key] = facts[i].value;
    }
    return !values.empty();
  }

 private:
  /// 0 where it is not said, or is no number.
  uint32_t own_number(const char* label, const char* key) const {
    std::string text;
    return own != nullptr && GetPlatformRes(label, key, text)
               ? static_cast<uint32_t>(std::strtoul(text.c_str(), nullptr, 10))
               : 0;
  }

  /// Numbers from texts. Cores are counted apart only where both kinds are listed.
  void derive() {
    std::string text;
    const bool is_split = GetPlatformRes("SoCInfo", "core_type_list", text) &&
                          text.find("CubeCore") != std::string::npos && text.find("VectorCore") != std::string::npos;
    aic_count = own_number("SoCInfo", is_split ? "cube_core_cnt" : "ai_core_cnt");
    aiv_count = own_number("SoCInfo", is_split ? "vector_core_cnt" : "ai_core_cnt");
    npu_arch = own_number("version", "NpuArch");
    // By the numbers of platform_ascendc::CoreMemType.
    const struct {
      const char* label;
      const char* key;
      uint32_t memory;
    } rows[] = {{"AICoreSpec", "l0_a_size", 0}, {"AICoreSpec", "l0_b_size", 1}, {"AICoreSpec", "l0_c_size", 2},
                {"AICoreSpec", "l1_size", 3},   {"SoCInfo", "l2_size", 4},      {"AICoreSpec", "ub_size", 5},
                {"AICoreSpec", "bt_size", 8}};
    // The framework keeps part of UB and L1 to itself.
    const size_t arch = ::opkit::arch_index(npu_arch);
    const uint64_t reserved = arch < ::opkit::kArchCount ? ::opkit::kArchs[arch].reserved_bytes : 0;
    for (const auto& row : rows) {
      const uint64_t bytes = own_number(row.label, row.key);
      const bool is_shared = row.memory == static_cast<uint32_t>(LocalMemType::UB) ||
                             row.memory == static_cast<uint32_t>(LocalMemType::L1);
      memory_bytes[row.memory] = is_shared && bytes > reserved ? bytes - reserved : bytes;
    }
    own->soc_config.clear();
    if (GetPlatformRes("version", "Short_SoC_version", text)) {
      for (char letter : text) {
        own->soc_config += letter >= 'A' && letter <= 'Z' ? static_cast<char>(letter - 'A' + 'a') : letter;
      }
    }
    soc_name = soc_config = own->soc_config.c_str();
  }
};

}  // namespace fe
