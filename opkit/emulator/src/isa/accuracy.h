/// Instructions whose pages state an accuracy, and results that are as far off as that.
#pragma once

#include "core/core.h"

namespace opkit {

/// How far an instruction's results may be off on the chip, as a part of the result; 0 where no page says so.
/// Source: Ascend C API, Rsqrt and Reciprocal, constraints: their half results do not keep to 1/1000, their float
/// results not to 1/10000
double stated_error(const Instr& instr);

/// Executes such an instruction and moves every result by just more than that, up or down as the result's bits and the
/// seed have it: the same every run, whatever the threads.
void execute_inaccurately(Core& core, const Instr& instr, uint64_t seed);

}  // namespace opkit
