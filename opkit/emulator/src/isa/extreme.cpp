#include "isa/extreme.h"

#include <cstring>

#include "isa/lanes/lanes.h"

namespace opkit {
namespace {

/// The place of the first of `count` values that is `extreme`: zeros are one value, and NaNs are. 0 where none is.
template <typename Bits>
uint32_t place_of(const uint8_t* values, uint32_t count, Bits extreme) {
  constexpr Bits kMagnitude = static_cast<Bits>(~Bits{0}) >> 1;
  constexpr Bits kInfinity = sizeof(Bits) == 2 ? static_cast<Bits>(0x7c00) : static_cast<Bits>(0x7f800000);
  const auto first = [&](auto is_same) {
    for (uint32_t i = 0; i < count; ++i) {
      Bits bits;
      std::memcpy(&bits, values + i * sizeof(Bits), sizeof(Bits));
      if (is_same(bits)) return i;
    }
    return 0u;
  };
  const Bits magnitude = extreme & kMagnitude;
  if (magnitude > kInfinity) return first([](Bits bits) { return (bits & kMagnitude) > kInfinity; });
  if (magnitude == 0) return first([](Bits bits) { return (bits & kMagnitude) == 0; });
  return first([&](Bits bits) { return bits == extreme; });
}

}  // namespace

Reduction reduction_of(Op op) {
  switch (op) {
    case Op::ReduceMax:
    case Op::WholeReduceMax:
    case Op::BlockReduceMax: return Reduction::Max;
    case Op::ReduceMin:
    case Op::WholeReduceMin:
    case Op::BlockReduceMin: return Reduction::Min;
    default: return Reduction::Sum;
  }
}

Element find_extreme(const uint8_t* values, uint32_t count, DType type, Reduction kind) {
  const auto& lanes = kind == Reduction::Max ? lanes::table().maximum : lanes::table().minimum;
  const void* sources[1] = {values};
  Element result = {0, 0};
  lanes[static_cast<size_t>(type)](&result.bits, sources, nullptr, count);
  result.index = size_bytes(type) == 2 ? place_of(values, count, static_cast<uint16_t>(result.bits))
                                       : place_of(values, count, static_cast<uint32_t>(result.bits));
  return result;
}

Element find_extreme(const uint8_t* values, const LaneShape& shape, uint32_t first, uint32_t last, DType type,
                     Reduction kind) {
  const uint32_t element_bytes = size_bytes(type);
  if (!shape.is_bits) {
    Element result = find_extreme(values + first * element_bytes, last - first, type, kind);
    result.index += first;
    return result;
  }
  alignas(64) uint8_t packed[kRepeatBytes];
  uint32_t lane_of[kRepeatBytes / 2] = {};
  uint32_t count = 0;
  for (uint32_t lane = first; lane < last; ++lane) {
    if (!shape.is_active(lane)) continue;
    std::memcpy(packed + count * element_bytes, values + lane * element_bytes, element_bytes);
    lane_of[count++] = lane;
  }
  Element result = find_extreme(packed, count, type, kind);
  result.index = lane_of[result.index];
  return result;
}

bool is_beyond(uint64_t first, uint64_t second, DType type, Reduction kind) {
  alignas(64) uint8_t pair[16] = {};
  const uint32_t element_bytes = size_bytes(type);
  std::memcpy(pair, &first, element_bytes);
  std::memcpy(pair + element_bytes, &second, element_bytes);
  return find_extreme(pair, 2, type, kind).index == 1;
}

void write_element(uint8_t* to, const Element& element, uint32_t element_bytes, ReduceOrder order) {
  switch (order) {
    case ReduceOrder::ValueIndex:
      std::memcpy(to, &element.bits, element_bytes);
      std::memcpy(to + element_bytes, &element.index, element_bytes);
      return;
    case ReduceOrder::IndexValue:
      std::memcpy(to, &element.index, element_bytes);
      std::memcpy(to + element_bytes, &element.bits, element_bytes);
      return;
    case ReduceOrder::OnlyValue: std::memcpy(to, &element.bits, element_bytes); return;
    case ReduceOrder::OnlyIndex: std::memcpy(to, &element.index, sizeof(element.index)); return;
  }
}

}  // namespace opkit
