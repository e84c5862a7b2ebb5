/// What reductions have in common: their kinds, and extremes with their places.
#pragma once

#include "isa/vector_shape.h"

namespace opkit {

enum class ReduceOrder : uint8_t { ValueIndex, IndexValue, OnlyValue, OnlyIndex };
enum class Reduction : uint8_t { Sum, Max, Min };

Reduction reduction_of(Op op);

struct Element {
  uint64_t bits;  ///< value
  uint32_t index;
};

/// The extreme of `count` values that lie one behind the other and its first place; a NaN wins, zeros are equal.
Element find_extreme(const uint8_t* values, uint32_t count, DType type, Reduction kind);

/// The extreme of the active lanes [first, last) of a gathered repeat and the first lane that has it.
Element find_extreme(const uint8_t* values, const LaneShape& shape, uint32_t first, uint32_t last, DType type,
                     Reduction kind);

/// Whether the second of two values is beyond the first, which stays the extreme where they are equal.
bool is_beyond(uint64_t first, uint64_t second, DType type, Reduction kind);

void write_element(uint8_t* to, const Element& element, uint32_t element_bytes, ReduceOrder order);

}  // namespace opkit
