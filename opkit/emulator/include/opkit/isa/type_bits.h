/// The words of the instruction table's type columns: a bit for each data type.
#pragma once

#include "opkit/types.h"

namespace opkit::type_bits {

constexpr uint32_t bit_of(DType type) { return 1u << static_cast<uint32_t>(type); }

constexpr uint32_t NONE = 0;
constexpr uint32_t F16 = bit_of(DType::F16);
constexpr uint32_t BF16 = bit_of(DType::BF16);
constexpr uint32_t F32 = bit_of(DType::F32);
constexpr uint32_t S8 = bit_of(DType::S8);
constexpr uint32_t U8 = bit_of(DType::U8);
constexpr uint32_t S16 = bit_of(DType::S16);
constexpr uint32_t U16 = bit_of(DType::U16);
constexpr uint32_t S32 = bit_of(DType::S32);
constexpr uint32_t U32 = bit_of(DType::U32);
constexpr uint32_t S64 = bit_of(DType::S64);
constexpr uint32_t U64 = bit_of(DType::U64);
constexpr uint32_t S4 = bit_of(DType::S4);
constexpr uint32_t ANY = (1u << static_cast<uint32_t>(DType::kCount)) - 1;
constexpr uint32_t B16_B32 = F16 | BF16 | F32 | S16 | U16 | S32 | U32;  ///< 16- and 32-bit types, whatever they mean

constexpr uint32_t B8_B16_B32 = S8 | U8 | B16_B32;  ///< and those of 8 bits

}  // namespace opkit::type_bits

/// The words of Cast's table: a bit for each RoundMode.
namespace opkit::round_bits {

constexpr uint32_t NO_ROUND = 0;
constexpr uint32_t ROUND_NONE = 1;
constexpr uint32_t ROUND_RINT = 2;
constexpr uint32_t ROUND_ODD = 64;
constexpr uint32_t RINT_TRUNC = 62;  ///< RINT, FLOOR, CEIL, ROUND, TRUNC
constexpr uint32_t ANY_ROUND = 127;

}  // namespace opkit::round_bits
