// Cast between half and int4b_t, of which a byte holds two, the first in its low bits. Source: Ascend C API, Cast.
#include "isa/cast_int4.h"

#include "isa/lanes/lanes.h"
#include "isa/table.h"
#include "isa/vector_run.h"

namespace opkit {
namespace {

constexpr uint32_t kMaxLanes = kRepeatBytes / 2;  // lanes are halves

/// Two lanes that share a byte take part together. Source: Cast, constraints
void check_pairs(const Instr& instr, const LaneShape& shape) {
  bool is_even = shape.active % 2 == 0 && shape.tail % 2 == 0;
  for (uint32_t lane = 0; shape.is_bits && lane < shape.lanes; lane += 2) {
    is_even = is_even && shape.is_active(lane) == shape.is_active(lane + 1);
  }
  OPKIT_CHECK(shape.is_bits || is_even, IllegalOperand, &instr, "use an even count or mask",
              "%s: an odd number of int4b_t ends inside a byte", row_of(instr.op).name);
  OPKIT_CHECK(is_even, IllegalOperand, &instr, "set both bits of a pair, or none",
              "%s: the mask divides two int4b_t that share a byte", row_of(instr.op).name);
}

/// The packed operand as bytes, each of which is a pair of lanes.
LaneShape pairs_of(const LaneShape& shape) {
  LaneShape pairs = shape;
  pairs.lanes = shape.lanes / 2;
  pairs.active = shape.active / 2;
  pairs.tail = shape.tail / 2;
  pairs.bits[0] = pairs.bits[1] = 0;
  for (uint32_t pair = 0; pair < pairs.lanes; ++pair) {
    if (shape.is_active(2 * pair)) pairs.bits[0] |= uint64_t{1} << pair;
  }
  return pairs;
}

Operand as_bytes(Operand operand) {
  operand.dtype = DType::S8;
  return operand;
}

int8_t low_of(int8_t byte) { return static_cast<int8_t>(static_cast<int8_t>(byte << 4) >> 4); }
int8_t high_of(int8_t byte) { return static_cast<int8_t>(byte >> 4); }
int8_t saturated(int8_t value) { return value > 7 ? int8_t{7} : value < -8 ? int8_t{-8} : value; }

}  // namespace

bool has_int4(const Instr& instr) { return instr.dst.dtype == DType::S4 || instr.src[0].dtype == DType::S4; }

void cast_int4(const Core& core, const Instr& instr, const LaneShape& shape) {
  const bool is_packing = instr.dst.dtype == DType::S4;
  // The halves are rounded to bytes, or made from bytes, by the lanes that do so for int8_t.
  const size_t dst = static_cast<size_t>(is_packing ? DType::S8 : instr.dst.dtype);
  const size_t src = static_cast<size_t>(is_packing ? instr.src[0].dtype : DType::S8);
  const lanes::Lane lane = instr.mode < lanes::kRoundModes ? lanes::table().cast[dst][src][instr.mode] : nullptr;
  const DType other = is_packing ? instr.src[0].dtype : instr.dst.dtype;
  OPKIT_CHECK(lane != nullptr && other == DType::F16, IllegalOperand, &instr,
              "see the table of supported conversions of Cast", "Cast: int4b_t does not take this type or RoundMode");
  check_pairs(instr, shape);
  const LaneShape pairs = pairs_of(shape);
  const Operand from = placed(shape, instr.src[0]);
  const Operand to = placed(shape, instr.dst);
  alignas(64) uint8_t halves[kRepeatBytes];
  alignas(64) int8_t values[kMaxLanes];
  alignas(64) int8_t packed[kMaxLanes / 2];
  uint8_t* packed_bytes = reinterpret_cast<uint8_t*>(packed);
  for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat) {
    const uint32_t lanes = repeat + 1 == shape.repeat ? shape.tail : shape.active;
    if (is_packing) {
      gather_repeat(core, from, repeat, lanes, halves);
      const void* sources[1] = {halves};
      lane(values, sources, nullptr, lanes);
      for (uint32_t i = 0; i < lanes; i += 2) {
        packed[i / 2] = static_cast<int8_t>((saturated(values[i]) & 15) | saturated(values[i + 1]) << 4);
      }
      scatter_repeat(core, as_bytes(to), repeat, pairs, lanes / 2, packed_bytes);
      continue;
    }
    gather_repeat(core, as_bytes(from), repeat, lanes / 2, packed_bytes);
    for (uint32_t i = 0; i < lanes; i += 2) {
      values[i] = low_of(packed[i / 2]);
      values[i + 1] = high_of(packed[i / 2]);
    }
    const void* sources[1] = {values};
    lane(halves, sources, nullptr, lanes);
    scatter_repeat(core, to, repeat, shape, lanes, halves);
  }
}

}  // namespace opkit
