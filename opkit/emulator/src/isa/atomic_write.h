/// Writes of the DMA that combine what they carry with what global memory holds.
#pragma once

#include "core/core.h"

namespace opkit {

/// Combines `bytes` at `to` with those at `from` by the core's atomic operation and data type; safe against the same on
/// other threads. Bounds were checked. Source: Ascend C API, SetAtomicAdd, SetAtomicMax, SetAtomicMin.
void atomic_write(const Core& core, const Instr& instr, uint8_t* to, const uint8_t* from, uint64_t bytes);

}  // namespace opkit
