/// The chip as host functions see it; they pass it on to platform_ascendc::PlatformAscendC, which reads it.
#pragma once

#include <cstdint>

namespace fe {

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
};

}  // namespace fe
