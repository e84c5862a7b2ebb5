// AddReluCast, SubReluCast, MulCast, AddDeqRelu, CastDequant. Source: Ascend C API, compound compute; SetDeqScale.
//
// The pages of the fused casts name no rounding mode: they are rounded as Cast's CAST_NONE, to nearest even.
// The sum or product is rounded to the source's type before it is converted.
#include <cmath>
#include <cstring>

#include "isa/execute.h"
#include "isa/saturation.h"
#include "isa/table.h"
#include "isa/vector_run.h"
#include "memory/bounds.h"

namespace opkit {
namespace {

constexpr uint32_t kVectorScales = 16;  // parameters in the tensor that SetDeqScale fills
constexpr uint8_t kPerLane = 1;         // bits of CastDequant's mode
constexpr uint8_t kSecondHalf = 2;
constexpr size_t kNearest = 0;  // CAST_NONE

lanes::Lane elementwise(Op op, DType type) {
  return lanes::table().elementwise[static_cast<size_t>(op)][static_cast<size_t>(type)];
}

lanes::Lane cast_lane(DType dst, DType src) {
  return lanes::table().cast[static_cast<size_t>(dst)][static_cast<size_t>(src)][kNearest];
}

void saturate_bytes(const uint8_t* from, uint8_t* to, uint32_t count) {
  for (uint32_t i = 0; i < count; ++i) {
    int16_t value = 0;
    std::memcpy(&value, from + i * sizeof(value), sizeof(value));
    to[i] = static_cast<uint8_t>(static_cast<int8_t>(value > 127 ? 127 : value < -128 ? -128 : value));
  }
}

void check_scale(const Core& core, const Instr& instr, DeqScale kind, const char* form) {
  OPKIT_CHECK(core.deq_scale == kind, IllegalOperand, &instr, "call the form of SetDeqScale that this one needs first",
              "%s needs SetDeqScale(%s)", row_of(instr.op).name, form);
}

struct Scale {
  double scale;
  double offset;
  bool is_signed;
};

/// The layout of a parameter. The scale is a float of ten fraction bits. Source: SetDeqScale, table 1
Scale unpack(uint64_t bits) {
  const uint32_t scale_bits = static_cast<uint32_t>(bits) & ~((1u << 13) - 1);
  float scale = 0;
  std::memcpy(&scale, &scale_bits, sizeof(scale));
  const int32_t offset = static_cast<int32_t>(bits >> 37 & 0x1ff);
  return {scale, static_cast<double>(offset >= 256 ? offset - 512 : offset), (bits >> 46 & 1) != 0};
}

uint8_t dequantize(const Scale& scale, int16_t value) {
  // Exact in double: 16 bits times 11, plus 9.
  const double result = std::nearbyint(value * scale.scale + scale.offset);
  const double low = scale.is_signed ? -128 : 0;
  const double high = scale.is_signed ? 127 : 255;
  if (!(result >= low)) return static_cast<uint8_t>(static_cast<int32_t>(low));  // a NaN scale too
  return static_cast<uint8_t>(static_cast<int32_t>(result > high ? high : result));
}

/// int16_t to bytes: the 16 results of a data block fill one half of a data block of dst. The header gives dst the
/// layout of its sources; scalar_dtype is its real type.
void dequantize_blocks(Core& core, const Instr& instr, const LaneShape& shape) {
  const bool is_per_lane = (instr.mode & kPerLane) != 0;
  check_scale(core, instr, is_per_lane ? DeqScale::Vector : DeqScale::Float,
              is_per_lane ? "LocalTensor, VdeqInfo" : "float, int16_t, bool");
  Scale scales[kVectorScales];
  for (uint32_t i = 0; i < kVectorScales; ++i) {
    uint64_t bits = core.deq_scale_bits;
    if (is_per_lane) {
      const uint64_t address = (core.deq_scale_bits & 0x3fff) * kBlockBytes + i * sizeof(bits);
      std::memcpy(&bits, core.at(Space::UB, address), sizeof(bits));
    }
    scales[i] = unpack(bits);
    OPKIT_CHECK(scales[i].is_signed == (instr.scalar_dtype == DType::S8), IllegalOperand, &instr,
                "signMode true gives int8_t, false uint8_t", "CastDequant: signMode does not match the destination");
  }
  const Operand source = placed(shape, instr.src[0]);
  const Operand dst = placed(shape, instr.dst);
  alignas(64) int16_t values[kRepeatBytes / sizeof(int16_t)];
  for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat) {
    const uint32_t lanes = repeat + 1 == shape.repeat ? shape.tail : shape.active;
    gather_repeat(core, source, repeat, lanes, reinterpret_cast<uint8_t*>(values));
    uint8_t* to = core.at(dst) + uint64_t{repeat} * dst.repeat_stride * kBlockBytes;
    if ((instr.mode & kSecondHalf) != 0) to += kBlockBytes / 2;
    for (uint32_t lane = 0; lane < lanes; ++lane) {
      if (shape.is_bits && !shape.is_active(lane)) continue;
      const uint64_t block = uint64_t{lane / kVectorScales} * dst.block_stride * kBlockBytes;
      to[block + lane % kVectorScales] = dequantize(scales[lane % kVectorScales], values[lane]);
    }
  }
}

}  // namespace

void execute_fused_cast(Core& core, const Instr& instr) {
  const VectorUse use = elementwise_use(core, instr);
  const LaneShape& shape = use.shape;
  if (shape.repeat == 0) return;
  check_operands(core, instr, shape, use.uses);
  const DType type = instr.src[0].dtype;
  if (instr.op == Op::CastDequant && type == DType::S16) return dequantize_blocks(core, instr, shape);
  const bool has_scale = instr.op == Op::AddDeqRelu || instr.op == Op::CastDequant;
  if (has_scale) check_scale(core, instr, DeqScale::Half, "half");

  lanes::Lane first = nullptr;
  switch (instr.op) {
    case Op::AddReluCast: first = elementwise(Op::AddRelu, type); break;
    case Op::SubReluCast: first = elementwise(Op::SubRelu, type); break;
    case Op::MulCast: first = elementwise(Op::Mul, type); break;
    case Op::AddDeqRelu: first = elementwise(Op::Add, type); break;
    default: break;  // CastDequant only converts
  }
  const bool is_to_bytes = type == DType::S16;
  const lanes::Lane convert = is_to_bytes ? nullptr : cast_lane(instr.dst.dtype, type);
  OPKIT_CHECK(is_to_bytes || convert != nullptr, Internal, &instr, nullptr, "%s has no lane", row_of(instr.op).name);
  const Operand dst = placed(shape, instr.dst);
  alignas(64) uint8_t gathered[2][kRepeatBytes];
  alignas(64) uint8_t computed[kRepeatBytes];
  alignas(64) uint8_t result[kRepeatBytes];
  for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat) {
    const uint32_t lanes = repeat + 1 == shape.repeat ? shape.tail : shape.active;
    for (uint32_t i = 0; i < instr.source_count; ++i) {
      gather_repeat(core, placed(shape, instr.src[i]), repeat, lanes, gathered[i]);
    }
    const void* sources[2] = {gathered[0], gathered[1]};
    if (first != nullptr) first(computed, sources, nullptr, lanes);
    if (first != nullptr && saturates(core, type)) saturate_floats(type, computed, lanes);
    const void* converted[1] = {first != nullptr ? computed : gathered[0]};
    if (is_to_bytes) {
      saturate_bytes(computed, result, lanes);
    } else {
      convert(result, converted, &core.deq_scale_bits, lanes);
    }
    if (saturates(core, dst.dtype)) saturate_floats(dst.dtype, result, lanes);
    if (instr.op == Op::AddDeqRelu) {
      const void* halves[1] = {result};
      elementwise(Op::Relu, DType::F16)(result, halves, nullptr, lanes);
    }
    scatter_repeat(core, dst, repeat, shape, lanes, result);
  }
}

}  // namespace opkit
