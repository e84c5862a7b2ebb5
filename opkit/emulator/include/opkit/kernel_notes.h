/// What a kernel's source says of itself, kept in its shared object: the macros of the language leave a mark on a
/// function or a note in the library, so nobody has to read the source to know what to start a kernel on.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>

namespace opkit {

/// Which sub-cores a kernel runs on.
enum class KernelMode : uint8_t { Vector, Cube, Mix11, Mix12 };

constexpr uint32_t cube_cores(KernelMode mode) { return mode == KernelMode::Vector ? 0 : 1; }
constexpr uint32_t vector_cores(KernelMode mode) {
  return mode == KernelMode::Cube ? 0 : (mode == KernelMode::Mix12 ? 2 : 1);
}

/// A KERNEL_TASK_TYPE in a kernel's body.
struct ModeNote {
  const char* function;
  KernelMode mode;
  bool has_key;
  uint64_t tiling_key;
  const ModeNote* next;
};

/// A struct that a kernel reads its tiling data into.
struct TilingNote {
  const char* function;
  const char* struct_name;
  uint64_t size_bytes;
  const TilingNote* next;
};

/// Template parameters and their combinations, as ASCENDC_TPL_ARGS_DECL and ASCENDC_TPL_SEL declare them: JSON.
struct TemplateNote {
  const char* text;
  const TemplateNote* next;
};

/// A key that a TILING_KEY_IS names.
struct BranchNote {
  uint64_t tiling_key;
  const BranchNote* next;
};

/// Everything that one shared object says; lists are filled when it is loaded.
struct KernelNotes {
  KernelMode unmarked = KernelMode::Vector;  ///< of the kernels that say nothing: changed by code that needs cube cores
  const ModeNote* modes = nullptr;
  const TilingNote* tilings = nullptr;
  const TemplateNote* templates = nullptr;
  const BranchNote* branches = nullptr;
};

#ifndef OPKIT_BUILDING_EMULATOR
/// Hidden: each shared object has its own, whatever else is loaded.
__attribute__((visibility("hidden"))) inline KernelNotes kernel_notes;

/// The cores of the task types: those that the documents give arch 2201.
/// Source: programming guide, kernel type settings.
template <typename TaskType>
constexpr KernelMode mode_of_task_type(TaskType type) {
  constexpr KernelMode kModes[] = {KernelMode::Vector, KernelMode::Cube,  KernelMode::Vector,
                                   KernelMode::Cube,   KernelMode::Mix11, KernelMode::Mix12};
  const auto index = static_cast<size_t>(type);
  return index < sizeof kModes / sizeof kModes[0] ? kModes[index] : KernelMode::Vector;
}

namespace detail {

/// A text in which the name of a type stands behind "T = ".
template <typename T>
const char* type_text() {
  return __PRETTY_FUNCTION__;
}

/// Enters a note when the library is loaded. `Said` is a local struct of the macro in a kernel's body.
template <typename Said>
struct NotesMode {
  static inline const bool kIsEntered = [] {
    static const ModeNote note = {Said::function(), Said::mode(), Said::has_key(), Said::key(), kernel_notes.modes};
    kernel_notes.modes = &note;
    return true;
  }();
};

template <typename Said>
struct NotesTiling {
  static inline const bool kIsEntered = [] {
    static const TilingNote note = {Said::function(), Said::name(), Said::size_bytes(), kernel_notes.tilings};
    kernel_notes.tilings = &note;
    return true;
  }();
};

template <typename Said>
struct NotesBranch {
  static inline const bool kIsEntered = [] {
    static const BranchNote note = {Said::branch(), kernel_notes.branches};
    kernel_notes.branches = &note;
    return true;
  }();
};

}  // namespace detail
#endif

}  // namespace opkit

// A mark that a function carries: so many one-byte nops at its entry, more than any compiler puts there. Clang would
// merge them, so there it is the section that the function lies in, which GCC cannot give to templates.
#if defined(__clang__)
#define __vector__ __attribute__((section("opkit_mix_0_1")))
#define __cube__ __attribute__((section("opkit_mix_1_0")))
#define __mix__(cube, vector) __attribute__((section("opkit_mix_" #cube "_" #vector)))
#else
#define __vector__ __attribute__((patchable_function_entry(21)))
#define __cube__ __attribute__((patchable_function_entry(22)))
#define __mix__(cube, vector) \
  __attribute__((patchable_function_entry((cube) == 0 ? 21 : (vector) == 0 ? 22 : (vector) == 1 ? 23 : 24)))
#endif

#if defined(__clang__) && !defined(OPKIT_BUILDING_EMULATOR)
#define OPKIT_SECTION(name)                                                              \
  extern "C" __attribute__((weak, visibility("hidden"))) const uint8_t __start_##name[]; \
  extern "C" __attribute__((weak, visibility("hidden"))) const uint8_t __stop_##name[];
OPKIT_SECTION(opkit_mix_0_1)
OPKIT_SECTION(opkit_mix_1_0)
OPKIT_SECTION(opkit_mix_1_1)
OPKIT_SECTION(opkit_mix_1_2)
#undef OPKIT_SECTION
#endif

namespace opkit {

#ifndef OPKIT_BUILDING_EMULATOR
/// The mode that a function of this shared object is marked with.
inline std::optional<KernelMode> marked_mode(const void* function) {
  const auto* code = static_cast<const uint8_t*>(function);
#if defined(__clang__)
  const auto is_in = [&](const uint8_t* begin, const uint8_t* end) { return code >= begin && code < end; };
  if (is_in(__start_opkit_mix_0_1, __stop_opkit_mix_0_1)) return KernelMode::Vector;
  if (is_in(__start_opkit_mix_1_0, __stop_opkit_mix_1_0)) return KernelMode::Cube;
  if (is_in(__start_opkit_mix_1_1, __stop_opkit_mix_1_1)) return KernelMode::Mix11;
  if (is_in(__start_opkit_mix_1_2, __stop_opkit_mix_1_2)) return KernelMode::Mix12;
  return std::nullopt;
#else
  constexpr uint32_t kFirst = 21;
  constexpr KernelMode kModes[] = {KernelMode::Vector, KernelMode::Cube, KernelMode::Mix11, KernelMode::Mix12};
  uint32_t nops = 0;
#if defined(__x86_64__)
  const bool has_branch_target = code[0] == 0xf3 && code[1] == 0x0f && code[2] == 0x1e && code[3] == 0xfa;
  for (code += has_branch_target ? 4 : 0; nops <= kFirst + 3 && *code == 0x90; ++code) ++nops;
#elif defined(__aarch64__)
  constexpr uint32_t kNop = 0xd503201f;
  constexpr uint32_t kBranchTarget = 0xd503245f;
  const auto* words = reinterpret_cast<const uint32_t*>(code);
  for (words += *words == kBranchTarget ? 1 : 0; nops <= kFirst + 3 && *words == kNop; ++words) ++nops;
#endif
  if (nops < kFirst || nops > kFirst + 3) return std::nullopt;
  return kModes[nops - kFirst];
#endif
}
#endif

}  // namespace opkit
