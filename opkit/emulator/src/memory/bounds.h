/// Whether an instruction's bytes lie where it may touch them.
#pragma once

#include "core/core.h"

namespace opkit {

const char* space_name(Space space);

/// Faults OutOfBounds unless [address, address + bytes) lies in the operand's buffer and memory; for GM in one of the
/// launch's allocations.
void check_bounds(const Core& core, const Instr& instr, const Operand& operand, uint64_t address, uint64_t bytes,
                  bool is_write);

/// Faults Misaligned unless a local operand starts at a multiple of `alignment` bytes.
void check_alignment(const Instr& instr, const Operand& operand, uint32_t alignment, const char* role);

}  // namespace opkit
