/// Kernels called as functions: what programs and unit tests include that run a kernel in their own process.
///
/// A kernel that faults throws std::runtime_error with the report, so a test framework tells of it and goes on.
/// Source: Ascend C API, basic API, debugging, CPU twin.
#pragma once

#ifndef ASCENDC_CPU_DEBUG
#define ASCENDC_CPU_DEBUG 1
#endif

#if !defined(__CCE_AICORE__) && (!defined(__NPU_ARCH__) || __NPU_ARCH__ == 2201)
#define __CCE_AICORE__ 220
#endif

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <stdexcept>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

#include "kernel_operator.h"
#include "opkit/arch.h"
#include "opkit/core_passes.h"
#include "opkit/export.h"
#include "opkit/kernel_entry.h"
#include "opkit/kernel_notes.h"
#include "opkit/twin.h"

enum class KernelMode { MIX_MODE = 0, AIC_MODE, AIV_MODE };

namespace opkit {
namespace twin {

/// What this process has set for its next calls.
struct Settings {
  ::KernelMode mode = ::KernelMode::MIX_MODE;
  bool is_mode_set = false;
  uint64_t tiling_key = 0;
};
inline Settings& settings() {
  static Settings all;
  return all;
}

/// The cores of a kernel: of the mode that is set. Mix kernels may say more themselves, and where no mode is set, the
/// kernel says it all. Coupled chips have one kind of core.
inline ::opkit::KernelMode cores_of(const char* kernel) {
  const Settings& set = settings();
  if (::opkit::kArchTraits.is_coupled || set.mode == ::KernelMode::AIV_MODE) return ::opkit::KernelMode::Vector;
  if (set.mode == ::KernelMode::AIC_MODE) return ::opkit::KernelMode::Cube;
  KernelEntry entry = {kernel, nullptr, 0, ::opkit::KernelMode::Vector};
  entry.is_mode_given = false;
  const ::opkit::KernelMode said = mode_of(entry, kernel_notes, set.tiling_key);
  return said == ::opkit::KernelMode::Vector && set.is_mode_set ? ::opkit::KernelMode::Mix12 : said;
}

/// A kernel with its arguments. Blocks run at once and share it, so it is never written.
template <typename Kernel, typename... Arguments>
struct Call {
  Kernel kernel;
  std::tuple<Arguments...> arguments;

  static void invoke(void* const* pointers) {
    const auto& self = *static_cast<const Call*>(pointers[0]);
    call_on_this_core(&Call::invoke, pointers, self.kernel, self.arguments);
  }
};

template <typename Kernel, typename... Arguments>
void run(const char* name, int64_t block_dim, Kernel kernel, Arguments... arguments) {
  const Call<Kernel, Arguments...> call{kernel, {arguments...}};
  void* pointer = const_cast<void*>(static_cast<const void*>(&call));
  const opkit_twin_launch launch = {kAbiVersion,
                                    table_fingerprint(),
                                    __NPU_ARCH__,
                                    name,
                                    &Call<Kernel, Arguments...>::invoke,
                                    &pointer,
                                    static_cast<uint32_t>(cores_of(name)),
                                    block_dim,
                                    settings().tiling_key};
  if (const char* error = opkit_run_twin(&launch)) throw std::runtime_error(error);
}

}  // namespace twin
}  // namespace opkit

namespace AscendC {

/// Device memory that the host reads and writes, too; what is rounded up to 32 bytes may be touched by kernels.
inline void* GmAlloc(size_t size) { return opkit_twin_allocate(size); }
inline void GmFree(void* pointer) { opkit_twin_free(pointer); }
inline void SetKernelMode(::KernelMode mode) {
  ::opkit::twin::settings().mode = mode;
  ::opkit::twin::settings().is_mode_set = true;
}

}  // namespace AscendC

#define ICPU_SET_TILING_KEY(key) (::opkit::twin::settings().tiling_key = static_cast<uint64_t>(key))
/// `kernel`: a function, an instance of a template or a lambda.
#define ICPU_RUN_KF(kernel, blocks, ...) \
  (::opkit::twin::run(#kernel, static_cast<int64_t>(blocks), kernel, ##__VA_ARGS__))
