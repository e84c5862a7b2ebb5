/// What the matrix instructions share: where they may run, and the bytes that each touches.
#pragma once

#include "isa/footprint.h"

namespace opkit {

void execute_load_fractals(Core& core, const Instr& instr);
void execute_mmad(Core& core, const Instr& instr);
void execute_fixpipe(Core& core, const Instr& instr);

/// Bytes that a load of fractals moves.
struct ByteMove {
  uint64_t from;
  uint64_t to;
  uint64_t bytes;
};
using MoveCallback = void (*)(void* context, const ByteMove& move);

/// Calls back for each run of bytes that stays together. Of two nibbles that meet in a byte only the first is told.
void for_each_move(const Instr& instr, MoveCallback callback, void* context);

template <class Function>
void for_each_move(const Instr& instr, Function&& function) {
  for_each_move(
      instr, [](void* context, const ByteMove& move) { (*static_cast<Function*>(context))(move); }, &function);
}

/// Footprints: a call for every range, reads before writes.
void load_fractals_ranges(const Instr& instr, RangeCallback callback, void* context);
void mmad_ranges(const Instr& instr, RangeCallback callback, void* context);
void fixpipe_ranges(const Instr& instr, RangeCallback callback, void* context);

void cube_ranges(const Instr& instr, RangeCallback callback, void* context);

/// Faults IllegalOperand on a vector core, and for element types that the row does not list for this chip.
void check_cube(const Core& core, const Instr& instr, DType type);

/// Faults IllegalOperand unless the operand lies in `space`, Misaligned unless it starts at a multiple of `alignment`.
void check_place(const Instr& instr, const Operand& operand, Space space, uint32_t alignment, const char* role);


constexpr uint32_t blocks_of(uint32_t count, uint32_t size) { return (count + size - 1) / size; }

}  // namespace opkit
