/// What a kernel's shared object exports: a table of launchable kernels. The toolchain ends each translation unit
/// with OPKIT_KERNEL_TABLE(name).
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "opkit/isa/ops.h"
#include "opkit/types.h"

namespace opkit {

/// Which sub-cores a kernel runs on.
enum class KernelMode : uint8_t { Vector, Cube, Mix11, Mix12 };

constexpr uint32_t cube_cores(KernelMode mode) { return mode == KernelMode::Vector ? 0 : 1; }
constexpr uint32_t vector_cores(KernelMode mode) {
  return mode == KernelMode::Cube ? 0 : (mode == KernelMode::Mix12 ? 2 : 1);
}

/// One launchable kernel. `arguments[i]` points at the storage of the i-th argument.
struct KernelEntry {
  const char* name;
  void (*invoke)(void* const* arguments);
  uint32_t argument_count;
  KernelMode mode;
};

/// The symbol `opkit_kernel_table` of a kernel's shared object.
struct KernelTable {
  uint32_t abi_version;        ///< kAbiVersion of the headers that it was compiled with
  uint32_t table_fingerprint;  ///< of the instruction table in those headers
  uint32_t count;
  const KernelEntry* entries;
};

/// Whether this library can run the table's kernels.
constexpr bool is_compatible(const KernelTable& table) {
  return table.abi_version == kAbiVersion && table.table_fingerprint == table_fingerprint();
}

namespace detail {

template <typename Function>
struct Invoker;

template <typename... Arguments>
struct Invoker<void (*)(Arguments...)> {
  static constexpr uint32_t kCount = sizeof...(Arguments);

  template <void (*kernel)(Arguments...)>
  static void invoke(void* const* arguments) {
    call<kernel>(arguments, std::index_sequence_for<Arguments...>());
  }

 private:
  template <void (*kernel)(Arguments...), size_t... i>
  static void call(void* const* arguments, std::index_sequence<i...>) {
    (void)arguments;
    kernel(*static_cast<Arguments*>(arguments[i])...);
  }
};

}  // namespace detail
}  // namespace opkit

#define OPKIT_KERNEL_TABLE_AS(kernel, kernel_mode)                                                    \
  namespace {                                                                                         \
  const ::opkit::KernelEntry opkit_kernel_entry = {                                                   \
      #kernel, &::opkit::detail::Invoker<decltype(&kernel)>::template invoke<&kernel>,                \
      ::opkit::detail::Invoker<decltype(&kernel)>::kCount, ::opkit::KernelMode::kernel_mode};         \
  }                                                                                                   \
  extern "C" __attribute__((visibility("default"))) const ::opkit::KernelTable opkit_kernel_table = { \
      ::opkit::kAbiVersion, ::opkit::table_fingerprint(), 1, &opkit_kernel_entry};
#define OPKIT_KERNEL_TABLE(kernel) OPKIT_KERNEL_TABLE_AS(kernel, Vector)
