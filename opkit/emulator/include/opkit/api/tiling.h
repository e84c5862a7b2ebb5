/// How a kernel reads what its tiling function decided. Source: Ascend C API, basic API, kernel tiling.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "opkit/api/runtime_abi.h"
#include "opkit/export.h"
#include "opkit/host/workspace.h"
#include "opkit/kernel_notes.h"
#include "opkit/types.h"

namespace opkit {

/// Copies `size_bytes` from `offset` of the tiling data; faults when the tiling function has written fewer.
OPKIT_API void read_tiling(void* out, const void* tiling, uint64_t offset, uint64_t size_bytes, Where where);

template <typename T>
T read_tiling_as(const void* tiling, uint64_t offset = 0, Where where = Where::here()) {
  static_assert(std::is_trivially_copyable<T>::value, "tiling data is a plain struct");
  T value;
  read_tiling(&value, tiling, offset, sizeof(T), where);
  return value;
}

/// Whether the tiling function has chosen this branch. A launch that finds none of its branches faults.
OPKIT_API bool tiling_key_is(uint64_t key, Where where = Where::here());

/// What COPY_TILING_WITH_STRUCT copies: a struct, or what a pointer leads to. Of the macro's document the text says
/// pointer, and the example gives a struct.
template <typename T>
T copied_tiling(const T& source, Where) {
  return source;
}
template <typename T>
T copied_tiling(const T* source, Where) {
  return *source;
}
template <typename T>
T copied_tiling(const uint8_t* tiling, Where where) {
  return read_tiling_as<T>(tiling, 0, where);
}

}  // namespace opkit

/// Which sub-cores a kernel is started on. Source: Ascend C API, setting the kernel type.
enum KernelMetaType {
  KERNEL_TYPE_AIV_ONLY,
  KERNEL_TYPE_AIC_ONLY,
  KERNEL_TYPE_MIX_AIV_1_0,
  KERNEL_TYPE_MIX_AIC_1_0,
  KERNEL_TYPE_MIX_AIC_1_1,
  KERNEL_TYPE_MIX_AIC_1_2,
  KERNEL_TYPE_AICORE,
  KERNEL_TYPE_VECTORCORE,
  KERNEL_TYPE_MIX_AICORE,
  KERNEL_TYPE_MIX_VECTOR_CORE,
  KERNEL_TYPE_MAX
};

namespace opkit {

/// Types that the emulated chips have. A kernel that asks for vector cores beside the AI cores runs on the cores that
/// there are.
constexpr bool is_task_type(KernelMetaType type) {
  return type <= KERNEL_TYPE_MIX_AIC_1_2 || type == KERNEL_TYPE_AICORE || type == KERNEL_TYPE_MIX_VECTOR_CORE;
}

}  // namespace opkit

namespace AscendC {

/// The part of the workspace behind the API's own; null when there is no workspace. Unit tests for the CPU twin give a
/// kernel its own part alone, as the sizes in those of public operators show.
inline uint8_t* GetUserWorkspace(uint8_t* workspace) {
#ifdef __CCE_KT_TEST__
  return workspace;
#else
  return workspace == nullptr ? nullptr : workspace + ::opkit::kLibApiWorkspaceBytes;
#endif
}

}  // namespace AscendC

/// Notes the type in the kernel's shared object: see opkit/kernel_notes.h.
#define OPKIT_NOTE_TASK_TYPE(keyed, tiling_key, type)                                                   \
  do {                                                                                                  \
    static_assert(::opkit::is_task_type(type), #type " is a type of kernel that no emulated chip has"); \
    static constexpr const char* opkit_function = __func__;                                             \
    struct OpkitSaid {                                                                                  \
      static const char* function() { return opkit_function; }                                          \
      static ::opkit::KernelMode mode() { return ::opkit::mode_of_task_type(type); }                    \
      static bool has_key() { return keyed; }                                                           \
      static uint64_t key() { return static_cast<uint64_t>(tiling_key); }                               \
    };                                                                                                  \
    (void)&::opkit::detail::NotesMode<OpkitSaid>::kIsEntered;                                           \
  } while (false)
#define KERNEL_TASK_TYPE_DEFAULT(type) OPKIT_NOTE_TASK_TYPE(false, 0, type)
#define KERNEL_TASK_TYPE(key, type) OPKIT_NOTE_TASK_TYPE(true, key, type)

/// Whether a launch has this key, which is a constant: it is noted in the kernel's shared object.
#define OPKIT_IS_BRANCH(key)                                              \
  (                                                                       \
      [] {                                                                \
        struct OpkitSaid {                                                \
          static uint64_t branch() { return static_cast<uint64_t>(key); } \
        };                                                                \
        (void)&::opkit::detail::NotesBranch<OpkitSaid>::kIsEntered;       \
      }(),                                                                \
      ::opkit::tiling_key_is(key))
#define TILING_KEY_IS(key) OPKIT_IS_BRANCH(key)
#define TILING_KEY_LIST(first_key, second_key) (OPKIT_IS_BRANCH(first_key) || OPKIT_IS_BRANCH(second_key))

/// Names the struct that GET_TILING_DATA reads in this scope. Where tiling data is defined by the macros of
/// register/tilingdata_base.h, the build names it with OPKIT_TILING_DEFAULT.
#define REGISTER_TILING_DEFAULT(tiling_struct) using OpkitTilingDefault [[maybe_unused]] = tiling_struct
/// Says that a kernel can be built to add in a fixed order, which no call here asks for.
#define ENABLE_DETERMINISTIC()
/// The struct of some keys: GET_TILING_DATA_WITH_STRUCT reads it, so nothing is kept here.
#define REGISTER_TILING_FOR_TILINGKEY(expression, tiling_struct) \
  static_assert(std::is_trivially_copyable<tiling_struct>::value, "tiling data is a plain struct")
#define REGISTER_NONE_TILING static_assert(true, "")

#if defined(OPKIT_TILING_DEFAULT)
using OpkitTilingDefault = OPKIT_TILING_DEFAULT;
#endif

/// A build defines it for kernel templates whose combinations name structs: ASCENDC_TPL_TILING_STRUCT_SEL.
#if !defined(OPKIT_TILING_SELECTED)
#define OPKIT_TILING_SELECTED OpkitTilingDefault
#endif

/// Notes the struct in the kernel's shared object: see opkit/kernel_notes.h.
#define OPKIT_NOTE_TILING(variable)                                                   \
  do {                                                                                \
    static constexpr const char* opkit_function = __func__;                           \
    using OpkitStruct = std::decay_t<decltype(variable)>;                             \
    struct OpkitSaid {                                                                \
      static const char* function() { return opkit_function; }                        \
      static const char* name() { return ::opkit::detail::type_text<OpkitStruct>(); } \
      static uint64_t size_bytes() { return sizeof(OpkitStruct); }                    \
    };                                                                                \
    (void)&::opkit::detail::NotesTiling<OpkitSaid>::kIsEntered;                       \
  } while (false)
// A header that a unit test's build includes first may have its own.
#if !defined(GET_TILING_DATA)
#define GET_TILING_DATA(tiling_data, tiling)                                                  \
  [[maybe_unused]] auto tiling_data = ::opkit::read_tiling_as<OPKIT_TILING_SELECTED>(tiling); \
  OPKIT_NOTE_TILING(tiling_data)
#endif
#if !defined(GET_TILING_DATA_WITH_STRUCT)
#define GET_TILING_DATA_WITH_STRUCT(tiling_struct, tiling_data, tiling)                        \
  [[maybe_unused]] tiling_struct tiling_data = ::opkit::read_tiling_as<tiling_struct>(tiling); \
  OPKIT_NOTE_TILING(tiling_data)
#endif
#if !defined(GET_TILING_DATA_MEMBER)
#define GET_TILING_DATA_MEMBER(tiling_struct, member, variable, tiling) \
  [[maybe_unused]] auto variable =                                      \
      ::opkit::read_tiling_as<std::decay_t<decltype(tiling_struct::member)>>(tiling, offsetof(tiling_struct, member))
#endif
#define GET_TILING_DATA_PTR_WITH_STRUCT(tiling_struct, pointer, tiling)                                   \
  [[maybe_unused]] tiling_struct opkit_##pointer##_copy = ::opkit::read_tiling_as<tiling_struct>(tiling); \
  [[maybe_unused]] tiling_struct* pointer = &opkit_##pointer##_copy
#define COPY_TILING_WITH_STRUCT(tiling_struct, source, pointer)              \
  [[maybe_unused]] tiling_struct opkit_##pointer##_copy =                    \
      ::opkit::copied_tiling<tiling_struct>(source, ::opkit::Where::here()); \
  [[maybe_unused]] tiling_struct* pointer = &opkit_##pointer##_copy
#define COPY_TILING_WITH_ARRAY(element_type, count, source, pointer)          \
  [[maybe_unused]] element_type opkit_##pointer##_copy[count];                \
  std::memcpy(opkit_##pointer##_copy, source, sizeof opkit_##pointer##_copy); \
  [[maybe_unused]] element_type(*pointer)[count] = &opkit_##pointer##_copy

/// Qualifies pointers to tiling data.
#define __tiling_data_ptr__
