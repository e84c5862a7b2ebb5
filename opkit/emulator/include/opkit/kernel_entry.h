/// What a kernel's shared object exports: a table of launchable kernels, and what the source says of them. The
/// toolchain ends each translation unit with OPKIT_KERNEL_TABLE(name); everything else the object tells by itself.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <type_traits>
#include <utility>

#include "opkit/core_passes.h"
#include "opkit/isa/ops.h"
#include "opkit/kernel_notes.h"
#include "opkit/types.h"
#if defined(OPKIT_NO_AUTO_SYNC)
#include "opkit/api/runtime_abi.h"
#endif

namespace opkit {

/// One launchable kernel. `arguments[i]` points at the storage of the i-th argument.
struct KernelEntry {
  const char* name;
  void (*invoke)(void* const* arguments);  ///< null: the name is a template's, which has entries for its instances
  uint32_t argument_count;
  KernelMode mode;
  bool has_key = false;  ///< it serves launches with `tiling_key` only; those without a key serve the others
  uint64_t tiling_key = 0;
  const void* function = nullptr;            ///< where its code begins
  const uint32_t* argument_bytes = nullptr;  ///< the size of each argument
  const char* function_name = nullptr;       ///< where launches call it something else: `name`
  bool is_mode_given = true;                 ///< false: the notes say it, see mode_of()
};

/// The symbol `opkit_kernel_table` of a kernel's shared object.
struct KernelTable {
  uint32_t abi_version;        ///< kAbiVersion of the headers that it was compiled with
  uint32_t table_fingerprint;  ///< of the instruction table in those headers
  uint32_t count;
  const KernelEntry* entries;
  const KernelNotes* notes;
};

/// Whether this library can run the table's kernels.
constexpr bool is_compatible(const KernelTable& table) {
  return table.abi_version == kAbiVersion && table.table_fingerprint == table_fingerprint();
}

/// Which sub-cores a kernel runs on when it is launched with a tiling key.
///
/// In this order: what its entry gives (the mark of `__vector__`, `__cube__` or `__mix__`), KERNEL_TASK_TYPE with this
/// key, KERNEL_TASK_TYPE_DEFAULT, what the objects that it uses need, and else vector cores.
inline KernelMode mode_of(const KernelEntry& entry, const KernelNotes& notes, uint64_t tiling_key) {
  if (entry.is_mode_given) return entry.mode;
  // Notes know a function's own name: without namespaces and template arguments.
  const char* name = entry.function_name != nullptr ? entry.function_name : entry.name;
  const size_t length = std::strcspn(name, "<");
  size_t begin = 0;
  for (size_t i = 0; i < length; ++i) begin = name[i] == ':' ? i + 1 : begin;
  const ModeNote* found = nullptr;
  for (const ModeNote* note = notes.modes; note != nullptr; note = note->next) {
    const bool is_its = std::strlen(note->function) == length - begin &&
                        std::strncmp(note->function, name + begin, length - begin) == 0;
    if (!is_its) continue;
    if (note->has_key && note->tiling_key == tiling_key) return note->mode;
    if (!note->has_key) found = note;
  }
  return found != nullptr ? found->mode : notes.unmarked;
}

/// The entry of a kernel that serves a tiling key.
inline std::optional<KernelEntry> find_entry(const KernelTable& table, const char* name, uint64_t tiling_key) {
  const KernelEntry* found = nullptr;
  for (uint32_t i = 0; i < table.count; ++i) {
    const KernelEntry& entry = table.entries[i];
    if (entry.invoke == nullptr || std::strcmp(entry.name, name) != 0) continue;
    const bool is_exact = entry.has_key && entry.tiling_key == tiling_key;
    if (is_exact || (!entry.has_key && found == nullptr)) found = &entry;
    if (is_exact) break;
  }
  if (found == nullptr) return std::nullopt;
  KernelEntry entry = *found;
  entry.mode = mode_of(*found, *table.notes, tiling_key);
  return entry;
}

#ifndef OPKIT_BUILDING_EMULATOR
namespace detail {

template <typename Function>
struct Invoker;

template <typename... Arguments>
struct Invoker<void (*)(Arguments...)> {
  static constexpr uint32_t kCount = sizeof...(Arguments);
  // Never empty: a kernel without arguments has no use for it.
  static constexpr uint32_t kBytes[] = {static_cast<uint32_t>(sizeof(Arguments))..., 0};

  template <void (*kernel)(Arguments...)>
  static void invoke(void* const* arguments) {
#if defined(OPKIT_NO_AUTO_SYNC)
    synchronises_by_hand();
#endif
    if (auto* other = of_this_core(&Invoker::invoke<kernel>); other != &Invoker::invoke<kernel>) {
      other(arguments);
    } else {
      call<kernel>(arguments, std::index_sequence_for<Arguments...>());
    }
  }

 private:
  template <void (*kernel)(Arguments...), size_t... i>
  static void call(void* const* arguments, std::index_sequence<i...>) {
    (void)arguments;
    kernel(*static_cast<Arguments*>(arguments[i])...);
  }
};

/// For OPKIT_KERNEL_TABLE, which names a function that may be a template: then nothing of this is instantiated.
template <typename Probe>
struct PlainEntry {
  template <auto kernel>
  static std::true_type is_plain(int);

  template <auto kernel>
  static KernelEntry make(const char* name) {
    using Function = Invoker<decltype(kernel)>;
    KernelEntry entry = {name, &Function::template invoke<kernel>, Function::kCount, KernelMode::Vector};
    entry.function = reinterpret_cast<const void*>(kernel);
    entry.argument_bytes = Function::kBytes;
    const auto marked = marked_mode(entry.function);
    entry.is_mode_given = marked.has_value();
    entry.mode = marked.value_or(KernelMode::Vector);
    return entry;
  }
};

}  // namespace detail

/// The entry of one function: a kernel, or an instance of a kernel template. Its source says what it runs on.
template <auto kernel>
KernelEntry kernel_entry(const char* name) {
  return detail::PlainEntry<void>::make<kernel>(name);
}

template <auto kernel>
KernelEntry kernel_entry(const char* name, KernelMode mode) {
  KernelEntry entry = kernel_entry<kernel>(name);
  entry.mode = mode;
  entry.is_mode_given = true;
  return entry;
}

#endif

/// The entry that serves one tiling key.
inline KernelEntry with_key(KernelEntry entry, uint64_t tiling_key) {
  entry.has_key = true;
  entry.tiling_key = tiling_key;
  return entry;
}

/// The entry under another name than its function's.
inline KernelEntry launched_as(KernelEntry entry, const char* name) {
  entry.function_name = entry.name;
  entry.name = name;
  return entry;
}

}  // namespace opkit

/// Exports an array of entries.
#define OPKIT_EXPORT_KERNELS(array)                                                                    \
  extern "C" __attribute__((visibility("default")))                                                    \
  const ::opkit::KernelTable opkit_kernel_table = {::opkit::kAbiVersion, ::opkit::table_fingerprint(), \
                                                   sizeof(array) / sizeof(array)[0], array, &::opkit::kernel_notes};
#define OPKIT_KERNEL_TABLE_AS(kernel, kernel_mode)                                \
  namespace {                                                                     \
  const ::opkit::KernelEntry opkit_kernel_entries[] = {                           \
      ::opkit::kernel_entry<&kernel>(#kernel, ::opkit::KernelMode::kernel_mode)}; \
  }                                                                               \
  OPKIT_EXPORT_KERNELS(opkit_kernel_entries)

/// One entry for an array: of a function, or an empty one for the name of a template.
#define OPKIT_KERNEL_PROBE(kernel, number)                                                                      \
  template <typename Probe, typename = void>                                                                    \
  struct OpkitIsPlain##number : std::false_type {};                                                             \
  template <typename Probe>                                                                                     \
  struct OpkitIsPlain##number<Probe, std::enable_if_t<decltype(Probe::template is_plain<&::kernel>(0))::value>> \
      : std::true_type {};                                                                                      \
  template <typename Probe>                                                                                     \
  ::opkit::KernelEntry opkit_entry_##number() {                                                                 \
    if constexpr (OpkitIsPlain##number<Probe>::value) {                                                         \
      return Probe::template make<&::kernel>(#kernel);                                                          \
    } else {                                                                                                    \
      return {#kernel, nullptr, 0, ::opkit::KernelMode::Vector};                                                \
    }                                                                                                           \
  }
#define OPKIT_PROBED(number) opkit_entry_##number<::opkit::detail::PlainEntry<int>>()
#define OPKIT_KERNEL_TABLE(kernel)                                       \
  namespace {                                                            \
  OPKIT_KERNEL_PROBE(kernel, 0)                                          \
  const ::opkit::KernelEntry opkit_kernel_entries[] = {OPKIT_PROBED(0)}; \
  }                                                                      \
  OPKIT_EXPORT_KERNELS(opkit_kernel_entries)
