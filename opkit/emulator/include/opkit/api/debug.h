/// printf, DumpTensor and assertions in kernels. Source: Ascend C API, debugging interfaces; utilities, printf and
/// assert.
#pragma once

#include <cassert>
#include <type_traits>

#include "opkit/api/tensor.h"

namespace opkit {

/// One argument of printf as it is, whatever the format says of it.
struct PrintArgument {
  enum class Kind : uint8_t { Signed, Unsigned, Float, Text, Pointer };
  Kind kind = Kind::Signed;
  uint8_t size_bytes = 0;
  uint64_t bits = 0;  ///< Signed and Unsigned: extended to 64 bits; Float: of a double
};

template <typename T>
inline PrintArgument print_argument(const T& value) {
  using Kind = PrintArgument::Kind;
  using Value = std::decay_t<T>;
  if constexpr (std::is_same<Value, half>::value || std::is_same<Value, bfloat16_t>::value) {
    return {Kind::Float, sizeof(T), bits_of(static_cast<double>(static_cast<float>(value)))};
  } else if constexpr (std::is_floating_point<Value>::value) {
    return {Kind::Float, sizeof(T), bits_of(static_cast<double>(value))};
  } else if constexpr (std::is_enum<Value>::value) {
    return print_argument(static_cast<std::underlying_type_t<Value>>(value));
  } else if constexpr (std::is_same<Value, char*>::value || std::is_same<Value, const char*>::value) {
    const char* text = value;
    return {Kind::Text, sizeof(text), bits_of(text)};
  } else if constexpr (std::is_pointer<Value>::value || std::is_same<Value, std::nullptr_t>::value) {
    return {Kind::Pointer, sizeof(void*), reinterpret_cast<uint64_t>(static_cast<const volatile void*>(value))};
  } else if constexpr (std::is_signed<Value>::value) {
    return {Kind::Signed, sizeof(T), static_cast<uint64_t>(static_cast<int64_t>(value))};
  } else if constexpr (std::is_integral<Value>::value) {
    return {Kind::Unsigned, sizeof(T), static_cast<uint64_t>(value)};
  } else {
    return print_argument(static_cast<int64_t>(value));  // a variable of the system, such as block_idx
  }
}

/// Formats and appends to the core's line; whole lines are written out at once.
OPKIT_API void print_format(const char* format, const PrintArgument* arguments, uint32_t count, Where where);

/// Whether this thread runs a kernel.
OPKIT_API bool is_in_kernel();

/// Ends the launch with an Assertion: the condition, and a message by `format`, which may be null.
[[noreturn]] OPKIT_API void fail_assertion(const char* condition, const char* format, const PrintArgument* arguments,
                                           uint32_t count, Where where);

/// The first `count` elements of a tensor, under a line that says what they are; by `shape` when it has dimensions.
OPKIT_API void dump_tensor(const Operand& tensor, uint32_t description, uint32_t count, const AscendC::ShapeInfo& shape,
                           Where where);

template <typename... Arguments>
inline void print_all(Where where, const char* format, const Arguments&... arguments) {
  const PrintArgument list[sizeof...(arguments) + 1] = {print_argument(arguments)...};
  print_format(format, list, sizeof...(arguments), where);
}

/// What `opkit cc` makes of a plain printf in a source with kernels: the kernel's where one runs, else the host's.
template <typename... Arguments>
inline int print_here(const char* format, const Arguments&... arguments) {
  if (is_in_kernel()) {
    print_all(Where::here(), format, arguments...);
    return 0;
  }
  // No <cstdio> here: its printf would win over the kernel's where a kernel says "using namespace AscendC".
  if constexpr (((std::is_scalar<std::decay_t<Arguments>>::value) && ...)) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
#pragma GCC diagnostic ignored "-Wformat-security"
    return __builtin_printf(format, arguments...);
#pragma GCC diagnostic pop
  }
  return -1;  // the host's printf takes none of the kernel's own types
}

/// Where a kernel's pointer points: GM, or one of its core's own memories.
OPKIT_API Operand operand_at(const void* pointer, DType dtype);

/// As dump_tensor, from a pointer into `space`; a pointer to another memory faults.
OPKIT_API void dump_memory(Space space, const Operand& at, uint32_t description, uint32_t count, Where where);

template <typename... Arguments>
[[noreturn]] inline void fail_assertion_with(Where where, const char* condition, const char* format = nullptr,
                                             const Arguments&... arguments) {
  const PrintArgument list[sizeof...(arguments) + 1] = {print_argument(arguments)...};
  fail_assertion(condition, format, list, sizeof...(arguments), where);
}

}  // namespace opkit

namespace AscendC {

template <typename... Arguments>
inline void printf(const char* format, const Arguments&... arguments) {
  opkit::print_all(opkit::Where::here(), format, arguments...);
}
template <typename... Arguments>
inline void PRINTF(const char* format, const Arguments&... arguments) {
  opkit::print_all(opkit::Where::here(), format, arguments...);
}

template <typename T>
inline void DumpTensor(const LocalTensor<T>& tensor, uint32_t desc, uint32_t dumpSize,
                       opkit::Where where = opkit::Where::here()) {
  opkit::dump_tensor(tensor.operand(), desc, dumpSize, ShapeInfo(), where);
}
template <typename T>
inline void DumpTensor(const GlobalTensor<T>& tensor, uint32_t desc, uint32_t dumpSize,
                       opkit::Where where = opkit::Where::here()) {
  opkit::dump_tensor(tensor.operand(), desc, dumpSize, ShapeInfo(), where);
}
template <typename T>
inline void DumpTensor(const LocalTensor<T>& tensor, uint32_t desc, uint32_t dumpSize, const ShapeInfo& shapeInfo,
                       opkit::Where where = opkit::Where::here()) {
  opkit::dump_tensor(tensor.operand(), desc, dumpSize, shapeInfo, where);
}
template <typename T>
inline void DumpTensor(const GlobalTensor<T>& tensor, uint32_t desc, uint32_t dumpSize, const ShapeInfo& shapeInfo,
                       opkit::Where where = opkit::Where::here()) {
  opkit::dump_tensor(tensor.operand(), desc, dumpSize, shapeInfo, where);
}
template <typename T>
inline void DumpAccChkPoint(const LocalTensor<T>& tensor, uint32_t index, uint32_t countOff, uint32_t dumpSize,
                            opkit::Where where = opkit::Where::here()) {
  opkit::dump_tensor(tensor[countOff].operand(), index, dumpSize, ShapeInfo(), where);
}
template <typename T>
inline void DumpAccChkPoint(const GlobalTensor<T>& tensor, uint32_t index, uint32_t countOff, uint32_t dumpSize,
                            opkit::Where where = opkit::Where::here()) {
  opkit::dump_tensor(tensor[countOff].operand(), index, dumpSize, ShapeInfo(), where);
}

/// Off unless the kernel is compiled with ASCENDC_TIME_STAMP_ON, as documented.
inline void PrintTimeStamp(uint32_t descId) {
#ifdef ASCENDC_TIME_STAMP_ON
  opkit::print_all(opkit::Where::here(), "descId is %u, rsv is 0, timeStamp is %lu.\n", descId,
                   opkit::system_cycle(opkit::Where::here()));
#else
  (void)descId;
#endif
}

/// Ends the kernel.
[[noreturn]] inline void Trap(opkit::Where where = opkit::Where::here()) {
  opkit::fail_assertion_with(where, "Trap()");
}

}  // namespace AscendC

/// The first elements at a pointer: as DumpTensor prints them. Source: Ascend C API, utilities, asc_dump.
template <typename T>
inline void asc_dump(const T* input, uint32_t desc, uint32_t dump_size, opkit::Where where = opkit::Where::here()) {
  opkit::dump_tensor(opkit::operand_at(input, opkit::dtype_of<T>()), desc, dump_size, AscendC::ShapeInfo(), where);
}
#define OPKIT_ASC_DUMP(name, space)                                                                                  \
  template <typename T>                                                                                              \
  inline void name(const T* input, uint32_t desc, uint32_t dump_size, opkit::Where where = opkit::Where::here()) {   \
    opkit::dump_memory(opkit::Space::space, opkit::operand_at(input, opkit::dtype_of<T>()), desc, dump_size, where); \
  }
OPKIT_ASC_DUMP(asc_dump_gm, GM)
OPKIT_ASC_DUMP(asc_dump_ubuf, UB)
OPKIT_ASC_DUMP(asc_dump_l1buf, L1)
OPKIT_ASC_DUMP(asc_dump_cbuf, L0C)
#undef OPKIT_ASC_DUMP

#define OPKIT_ASSERT(condition, ...)                                                   \
  do {                                                                                 \
    if (!(condition)) {                                                                \
      ::opkit::fail_assertion_with(::opkit::Where::here(), #condition, ##__VA_ARGS__); \
    }                                                                                  \
  } while (false)
#define ASSERT(...) OPKIT_ASSERT(__VA_ARGS__)
#define ascendc_assert(...) OPKIT_ASSERT(__VA_ARGS__)
#define ASCENDC_ASSERT(condition, behaviour)                            \
  do {                                                                  \
    if (!(condition)) {                                                 \
      behaviour;                                                        \
      ::opkit::fail_assertion_with(::opkit::Where::here(), #condition); \
    }                                                                   \
  } while (false)
#define KERNEL_LOG(level, ...) ::opkit::print_all(::opkit::Where::here(), "[" #level "] " __VA_ARGS__)

/// What the host's assert calls when it fails, in kernels as in host functions, whichever header came first.
extern "C" [[noreturn]] OPKIT_API void opkit_assert_fail(const char* condition, const char* file, unsigned int line,
                                                         const char* function) noexcept;
#define __assert_fail opkit_assert_fail
#if !defined(NDEBUG)
// The form with a message. Where <cassert> follows this header, its own assert, without one, takes over.
#undef assert
#define assert(condition, ...) \
  ((condition) ? static_cast<void>(0) : ::opkit::fail_assertion_with(::opkit::Where::here(), #condition, ##__VA_ARGS__))
#endif
