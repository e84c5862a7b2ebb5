#include "isa/atomic_write.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <mutex>
#include <type_traits>

#include "isa/table.h"
#include "opkit/api/half.h"

namespace opkit {
namespace {

// Global memory is locked in pieces: cores that write to different tiles do not wait for one another.
constexpr uint64_t kPieceBytes = 4096;
constexpr size_t kLocks = 64;
std::array<std::mutex, kLocks> piece_locks;

/// Why an element could not be combined; the documents do not say what the hardware does then.
enum class Gap : uint8_t { None, Overflow, Nan };

template <typename T>
constexpr bool is_integer = std::is_integral<T>::value;

template <typename T>
bool is_nan(T value) {
  if constexpr (is_integer<T>) return false;
  return std::isnan(static_cast<float>(value));
}

template <typename T>
Gap combine(AtomicOp op, T& old, T value) {
  if (op == AtomicOp::Add) {
    if constexpr (is_integer<T>) {
      const int64_t sum = int64_t{old} + int64_t{value};
      if (sum < std::numeric_limits<T>::min() || sum > std::numeric_limits<T>::max()) return Gap::Overflow;
      old = static_cast<T>(sum);
    } else {
      old = T(static_cast<float>(old) + static_cast<float>(value));  // one rounding, to nearest even
    }
    return Gap::None;
  }
  if (is_nan(old) || is_nan(value)) return Gap::Nan;
  const bool takes_new = op == AtomicOp::Max ? old < value : value < old;
  if (takes_new) old = value;
  return Gap::None;
}

template <typename T>
Gap combine_run(AtomicOp op, uint8_t* to, const uint8_t* from, uint64_t bytes) {
  for (uint64_t at = 0; at < bytes; at += sizeof(T)) {
    T old;
    T value;
    std::memcpy(&old, to + at, sizeof(T));
    std::memcpy(&value, from + at, sizeof(T));
    const Gap gap = combine(op, old, value);
    if (gap != Gap::None) return gap;
    std::memcpy(to + at, &old, sizeof(T));
  }
  return Gap::None;
}

Gap combine_as(DType dtype, AtomicOp op, uint8_t* to, const uint8_t* from, uint64_t bytes) {
  switch (dtype) {
    case DType::F32: return combine_run<float>(op, to, from, bytes);
    case DType::F16: return combine_run<half>(op, to, from, bytes);
    case DType::BF16: return combine_run<bfloat16_t>(op, to, from, bytes);
    case DType::S32: return combine_run<int32_t>(op, to, from, bytes);
    case DType::S16: return combine_run<int16_t>(op, to, from, bytes);
    default: return combine_run<int8_t>(op, to, from, bytes);
  }
}

}  // namespace

void atomic_write(const Core& core, const Instr& instr, uint8_t* to, const uint8_t* from, uint64_t bytes) {
  const uint32_t element_bytes = size_bytes(core.atomic_dtype);
  const auto address = reinterpret_cast<uint64_t>(to);
  OPKIT_CHECK(bytes % element_bytes == 0 && address % element_bytes == 0, Misaligned, &instr,
              "set the atomic operation with the tensor's own data type",
              "%s: an atomic operation on %u-byte elements writes %llu bytes at 0x%llx", row_of(instr.op).name,
              element_bytes, static_cast<unsigned long long>(bytes), static_cast<unsigned long long>(address));
  uint64_t done = 0;
  Gap gap = Gap::None;
  while (done < bytes && gap == Gap::None) {
    const uint64_t piece = (address + done) / kPieceBytes;
    const uint64_t run = std::min(bytes - done, (piece + 1) * kPieceBytes - (address + done));
    // A fault leaves the fiber without unwinding, so it is raised after the lock is gone.
    std::lock_guard<std::mutex> guard(piece_locks[piece % kLocks]);
    gap = combine_as(core.atomic_dtype, core.atomic_op, to + done, from + done, run);
    done += run;
  }
  OPKIT_CHECK(gap != Gap::Overflow, Unspecified, &instr, "accumulate in a wider type",
              "%s: an atomic addition overflows its integer type", row_of(instr.op).name);
  OPKIT_CHECK(gap != Gap::Nan, Unspecified, &instr, "write the output before its first atomic maximum or minimum",
              "%s: an atomic maximum or minimum meets a NaN", row_of(instr.op).name);
}

}  // namespace opkit
