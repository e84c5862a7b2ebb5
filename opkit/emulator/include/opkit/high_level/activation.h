/// Activation functions of one tensor. Source: Ascend C API, high-level API, activation functions.
#pragma once

#include "opkit/high_level/elementwise.h"

namespace AscendC {

// 1 / (1 + exp(-x))
OPKIT_HIGH_LEVEL(Sigmoid, Muls(dst, src, -1.0f, length, where); PipeBarrier<PIPE_V>();
                 ::AscendC::Exp(dst, dst, length, where); PipeBarrier<PIPE_V>(); Adds(dst, dst, 1.0f, length, where);
                 Duplicate(spare, 1.0f, length, where); PipeBarrier<PIPE_V>(); Div(dst, spare, dst, length, where);)

}  // namespace AscendC
