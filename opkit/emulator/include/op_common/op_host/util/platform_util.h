/// What tiling functions ask about the chip beyond PlatformAscendC. The names are those that public operator libraries
/// call.
#pragma once

#include <cstdint>

#include "exe_graph/runtime/tiling_context.h"
#include "exe_graph/runtime/tiling_parse_context.h"
#include "tiling/platform/platform_ascendc.h"

namespace Ops {
namespace Base {

/// Bytes of a block of UB, the unit of alignment.
template <typename Context>
uint32_t GetUbBlockSize(const Context*) {
  return 32;
}

/// Bytes of a vector register, or of a repeat where instructions work on memory.
template <typename Context>
uint32_t GetVRegSize(const Context*) {
  return 256;
}

/// Bytes of a line of the data cache.
template <typename Context>
uint32_t GetCacheLineSize(const Context*) {
  return 64;
}

template <typename Context>
uint32_t GetAivCoreNum(const Context* context) {
  return platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAiv();
}
template <typename Context>
uint32_t GetAicCoreNum(const Context* context) {
  return platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCoreNumAic();
}
template <typename Context>
uint64_t GetUbSize(const Context* context) {
  uint64_t size_bytes = 0;
  platform_ascendc::PlatformAscendC(context->GetPlatformInfo())
      .GetCoreMemSize(platform_ascendc::CoreMemType::UB, size_bytes);
  return size_bytes;
}

/// Whether vector instructions of the chip work on registers.
inline bool IsRegbaseNpuArch(NpuArch arch) { return arch == NpuArch::DAV_3510 || arch == NpuArch::DAV_5102; }
template <typename Context>
bool IsRegbaseSocVersion(const Context* context) {
  return IsRegbaseNpuArch(platform_ascendc::PlatformAscendC(context->GetPlatformInfo()).GetCurNpuArch());
}

}  // namespace Base
}  // namespace Ops
