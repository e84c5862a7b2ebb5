/// The chip as shape inference asks for it, which has no context that carries it.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "opkit/host/abi.h"
#include "platform/platform_infos_def.h"

namespace fe {

struct StrInfo {
  std::string short_soc_version;  ///< such as Ascend910B
};
struct SoCInfo {
  uint32_t ai_core_cnt = 0;
  uint32_t vector_core_cnt = 0;
  uint64_t l2_size = 0;
};
struct AiCoreSpec {
  uint64_t l0_a_size = 0;
  uint64_t l0_b_size = 0;
  uint64_t l0_c_size = 0;
  uint64_t l1_size = 0;
  uint64_t ub_size = 0;
};

struct PlatformInfo {
  StrInfo str_info;
  SoCInfo soc_info;
  AiCoreSpec ai_core_spec;
  std::map<std::string, std::vector<std::string>> ai_core_intrinsic_dtype_map;
};

struct OptionalInfo {
  std::string soc_version;  ///< such as Ascend910B2
  uint32_t ai_core_num = 0;
};

class PlatformInfoManager {
 public:
  static PlatformInfoManager& Instance() {
    static PlatformInfoManager manager;
    return manager;
  }
  static PlatformInfoManager& GeInstance() { return Instance(); }

  /// The configured chip; 0, or a number that is not 0 where there is none.
  uint32_t GetPlatformInfoWithOutSocVersion(PlatformInfo& info, OptionalInfo& optional) {
    return describe(opkit_platform(nullptr), info, optional);
  }
  uint32_t GetPlatformInfo(const std::string& soc_version, PlatformInfo& info, OptionalInfo& optional) {
    return describe(opkit_platform(soc_version.c_str()), info, optional);
  }
  uint32_t GetPlatformInfoWithOutSocVersion(PlatFormInfos& info, OptionalInfo& optional) {
    const PlatFormInfos* chip = opkit_platform(nullptr);
    PlatformInfo described;
    if (describe(chip, described, optional) != 0) return kUnknownChip;
    info = *chip;
    return 0;
  }
  uint32_t InitializePlatformInfo() { return 0; }

 private:
  static constexpr uint32_t kUnknownChip = 1;

  static uint32_t describe(const PlatFormInfos* chip, PlatformInfo& info, OptionalInfo& optional) {
    if (chip == nullptr) return kUnknownChip;
    chip->GetPlatformRes("version", "Short_SoC_version", info.str_info.short_soc_version);
    info.soc_info = {chip->aic_count, chip->aiv_count, memory(*chip, LocalMemType::L2)};
    info.ai_core_spec = {memory(*chip, LocalMemType::L0_A), memory(*chip, LocalMemType::L0_B),
                         memory(*chip, LocalMemType::L0_C), memory(*chip, LocalMemType::L1),
                         memory(*chip, LocalMemType::UB)};
    std::map<std::string, std::string> intrinsics;
    chip->GetPlatformRes("AICoreintrinsicDtypeMap", intrinsics);
    for (const auto& [name, types] : intrinsics) info.ai_core_intrinsic_dtype_map[name] = {types};
    optional.soc_version = chip->soc_name;
    optional.ai_core_num = chip->aic_count;
    return 0;
  }
  static uint64_t memory(const PlatFormInfos& chip, LocalMemType kind) {
    uint64_t size_bytes = 0;
    chip.GetLocalMemSize(kind, size_bytes);
    return size_bytes;
  }
};

}  // namespace fe
