/// Rounding, Sign and logarithms. Source: Ascend C API, high-level API, mathematical functions.
#pragma once

#include "opkit/high_level/elementwise.h"

namespace opkit::high_level {

/// Rounds floats to whole ones. A template, so that chips without the cast compile the other functions.
template <typename Float>
inline void round_floats(const AscendC::LocalTensor<Float>& dst, const AscendC::LocalTensor<Float>& src,
                         AscendC::RoundMode mode, uint32_t length, Where where) {
  static_assert(vec::casts(dtype_of<Float>(), dtype_of<Float>()),
                "Floor, Ceil, Trunc and Round are not implemented for this chip: it has no cast from float to float");
  AscendC::Cast(dst, src, mode, length, where);
}

}  // namespace opkit::high_level

namespace AscendC {

OPKIT_HIGH_LEVEL(Floor, ::opkit::high_level::round_floats(dst, src, RoundMode::CAST_FLOOR, length, where);)
OPKIT_HIGH_LEVEL(Ceil, ::opkit::high_level::round_floats(dst, src, RoundMode::CAST_CEIL, length, where);)
OPKIT_HIGH_LEVEL(Trunc, ::opkit::high_level::round_floats(dst, src, RoundMode::CAST_TRUNC, length, where);)
OPKIT_HIGH_LEVEL(Round, ::opkit::high_level::round_floats(dst, src, RoundMode::CAST_ROUND, length, where);)

// The smallest float, 2^-149, grows beyond 1 in two steps of 2^100.
OPKIT_HIGH_LEVEL(Sign, constexpr float kGrowth = 0x1p100f; Muls(dst, src, kGrowth, length, where);
                 PipeBarrier<PIPE_V>(); Muls(dst, dst, kGrowth, length, where); PipeBarrier<PIPE_V>();
                 Mins(dst, dst, 1.0f, length, where); PipeBarrier<PIPE_V>(); Maxs(dst, dst, -1.0f, length, where);)

OPKIT_HIGH_LEVEL(Log, Ln(dst, src, length, where);)
OPKIT_HIGH_LEVEL(Log2, Ln(dst, src, length, where); PipeBarrier<PIPE_V>();
                 Muls(dst, dst, 1.44269504088896340736f, length, where);)
OPKIT_HIGH_LEVEL(Log10, Ln(dst, src, length, where); PipeBarrier<PIPE_V>();
                 Muls(dst, dst, 0.43429448190325182765f, length, where);)

}  // namespace AscendC
