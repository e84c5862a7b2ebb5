/// Whether an instruction's bytes lie where it may touch them.
#pragma once

#include <string>
#include <vector>

#include "core/core.h"
#include "core/launch.h"

namespace opkit {

const char* space_name(Space space);

/// Faults OutOfBounds unless [address, address + bytes) lies in the operand's buffer and memory; for GM in one of the
/// launch's allocations or, for reads, in the kernel's constants.
void check_bounds(const Core& core, const Instr& instr, const Operand& operand, uint64_t address, uint64_t bytes,
                  bool is_write);

/// Where bytes of global memory lie that are in none of a launch's allocations: "64 bytes behind the end of output y",
/// "8 bytes in front of input x"; empty where nothing is near.
std::string place_text(const Launch& launch, uint64_t address, uint64_t bytes);

/// The range that holds an address; null where none does.
const GmRange* range_at(const std::vector<GmRange>& ranges, uint64_t address);

/// Takes bytes of global memory for written by an instruction; check_bounds does so for what it lets pass.
void note_written(const Core& core, uint64_t address, uint64_t bytes);

/// Takes an element of global memory for one that the kernel writes by itself, behind a scalar access.
void note_scalar(const Core& core, const Operand& element);

/// Whether check_bounds would pass, which notes nothing; false for a kernel's constants, too.
bool is_in_bounds(const Core& core, const Operand& operand, uint64_t address, uint64_t bytes, bool is_write);

/// Faults Misaligned unless a local operand starts at a multiple of `alignment` bytes.
void check_alignment(const Instr& instr, const Operand& operand, uint32_t alignment, const char* role);

}  // namespace opkit
