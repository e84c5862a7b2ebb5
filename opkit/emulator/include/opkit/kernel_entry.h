/// What a kernel's shared object exports: a table of launchable kernels. The toolchain ends each translation unit
/// with OPKIT_KERNEL_TABLE(name).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
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
  bool has_key = false;  ///< it serves launches with `tiling_key` only; those without a key serve the others
  uint64_t tiling_key = 0;
};

/// The symbol `opkit_kernel_table` of a kernel's shared object.
struct KernelTable {
  uint32_t abi_version;        ///< kAbiVersion of the headers that it was compiled with
  uint32_t table_fingerprint;  ///< of the instruction table in those headers
  uint32_t count;
  const KernelEntry* entries;
  const KernelMode* unmarked_mode;  ///< of the vector kernels: those that nothing says another mode of
};

/// In each kernel library: what the kernels run on that do not say it. Code that needs cube cores changes it when the
/// library is loaded.
inline KernelMode unmarked_kernel_mode = KernelMode::Vector;

/// Whether this library can run the table's kernels.
constexpr bool is_compatible(const KernelTable& table) {
  return table.abi_version == kAbiVersion && table.table_fingerprint == table_fingerprint();
}

/// The entry of a kernel that serves a tiling key.
inline std::optional<KernelEntry> find_entry(const KernelTable& table, const char* name, uint64_t tiling_key) {
  const KernelEntry* any = nullptr;
  for (uint32_t i = 0; i < table.count; ++i) {
    const KernelEntry& entry = table.entries[i];
    if (std::strcmp(entry.name, name) != 0) continue;
    if (entry.has_key && entry.tiling_key == tiling_key) return entry;
    if (!entry.has_key && any == nullptr) any = &entry;
  }
  if (any == nullptr) return std::nullopt;
  KernelEntry found = *any;
  if (found.mode == KernelMode::Vector) found.mode = *table.unmarked_mode;
  return found;
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

/// The entry of one function: a kernel, or an instance of a kernel template.
template <auto kernel>
constexpr KernelEntry kernel_entry(const char* name, KernelMode mode) {
  using Invoker = detail::Invoker<decltype(kernel)>;
  return {name, &Invoker::template invoke<kernel>, Invoker::kCount, mode};
}

template <auto kernel>
constexpr KernelEntry kernel_entry(const char* name, KernelMode mode, uint64_t tiling_key) {
  KernelEntry entry = kernel_entry<kernel>(name, mode);
  entry.has_key = true;
  entry.tiling_key = tiling_key;
  return entry;
}

}  // namespace opkit

/// Exports an array of entries.
#define OPKIT_EXPORT_KERNELS(array)                                                                   \
  extern "C" __attribute__((visibility("default"))) const ::opkit::KernelTable opkit_kernel_table = { \
      ::opkit::kAbiVersion, ::opkit::table_fingerprint(), sizeof(array) / sizeof(array)[0], array,    \
      &::opkit::unmarked_kernel_mode};
#define OPKIT_KERNEL_TABLE_AS(kernel, kernel_mode)                                \
  namespace {                                                                     \
  const ::opkit::KernelEntry opkit_kernel_entries[] = {                           \
      ::opkit::kernel_entry<&kernel>(#kernel, ::opkit::KernelMode::kernel_mode)}; \
  }                                                                               \
  OPKIT_EXPORT_KERNELS(opkit_kernel_entries)
#define OPKIT_KERNEL_TABLE(kernel) OPKIT_KERNEL_TABLE_AS(kernel, Vector)
