#include "isa/saturation.h"

#include <cstring>

#include "isa/lanes/lanes.h"
#include "isa/table.h"
#include "isa/vector_run.h"

namespace opkit {
namespace {

constexpr size_t kNone = 0, kRint = 1;  // RoundMode

lanes::Lane cast_lane(DType dst, DType src, size_t mode) {
  return lanes::table().cast[static_cast<size_t>(dst)][static_cast<size_t>(src)][mode];
}

bool is_float(DType type) { return type == DType::F16 || type == DType::BF16 || type == DType::F32; }

/// Lanes of the source as 64-bit integers, rounded by the mode.
void widen(const Core& core, const Instr& instr, const uint8_t* values, uint32_t lanes, int64_t* wide) {
  DType type = instr.src[0].dtype;
  if (type == DType::S64) {
    std::memcpy(wide, values, lanes * sizeof(int64_t));
    return;
  }
  alignas(64) float floats[kRepeatBytes];
  const void* from[1] = {values};
  if (type == DType::F16 || type == DType::BF16) {
    cast_lane(DType::F32, type, kNone)(floats, from, &core.deq_scale_bits, lanes);
    from[0] = floats;
    type = DType::F32;
  }
  const size_t mode = type == DType::F32 && instr.mode == kNone ? kRint : instr.mode;
  if (type == DType::F32) {
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      float value = 0;
      std::memcpy(&value, static_cast<const uint8_t*>(from[0]) + lane * sizeof(value), sizeof(value));
      OPKIT_CHECK(value > -0x1p63f && value < 0x1p63f, Unspecified, &instr, "keep SaturationMode::CAST on",
                  "%s: which bits are left of %g without saturation is not documented", row_of(instr.op).name,
                  static_cast<double>(value));
    }
  }
  cast_lane(DType::S64, type, mode)(wide, from, &core.deq_scale_bits, lanes);
}

template <class Bits, Bits infinity>
void saturate(uint8_t* values, uint64_t count) {
  constexpr Bits kSign = Bits{1} << (sizeof(Bits) * 8 - 1);
  for (uint64_t i = 0; i < count; ++i) {
    Bits bits = 0;
    std::memcpy(&bits, values + i * sizeof(bits), sizeof(bits));
    const Bits magnitude = static_cast<Bits>(bits & ~kSign);
    if (magnitude < infinity) continue;
    bits = magnitude > infinity ? Bits{0} : static_cast<Bits>((bits & kSign) | (infinity - 1));
    std::memcpy(values + i * sizeof(bits), &bits, sizeof(bits));
  }
}

}  // namespace

void saturate_floats(DType type, uint8_t* values, uint64_t count) {
  switch (type) {
    case DType::F16: return saturate<uint16_t, 0x7c00>(values, count);
    case DType::BF16: return saturate<uint16_t, 0x7f80>(values, count);
    default: return saturate<uint32_t, 0x7f800000>(values, count);
  }
}

void check_saturates_nothing(const Core& core, const Instr& instr) {
  OPKIT_CHECK(!saturates(core, instr.dst.dtype), Unimplemented, &instr, "leave SaturationMode::FLOAT off around it",
              "%s of half while results saturate", row_of(instr.op).name);
}

bool truncates(const Core& core, const Instr& instr) {
  const DType to = instr.dst.dtype;
  const DType from = instr.src[0].dtype;
  if (core.saturates_casts || to == DType::S4 || is_float(to)) return false;
  return is_float(from) || size_bytes(to) < size_bytes(from);
}

void cast_truncating(const Core& core, const Instr& instr, const LaneShape& shape) {
  const uint32_t bytes = size_bytes(instr.dst.dtype);
  const Operand source = placed(shape, instr.src[0]);
  const Operand dst = placed(shape, instr.dst);
  alignas(64) uint8_t values[kRepeatBytes];
  alignas(64) uint8_t result[kRepeatBytes];
  int64_t wide[kRepeatBytes];
  for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat) {
    const uint32_t lanes = repeat + 1 == shape.repeat ? shape.tail : shape.active;
    gather_repeat(core, source, repeat, lanes, values);
    widen(core, instr, values, lanes, wide);
    // Little-endian hosts only, as everywhere: the low bits come first.
    for (uint32_t lane = 0; lane < lanes; ++lane) std::memcpy(result + lane * bytes, &wide[lane], bytes);
    scatter_repeat(core, dst, repeat, shape, lanes, result);
  }
}

}  // namespace opkit
