/// The functions that the table's rows name, and what they tell of the bytes that an instruction uses.
#pragma once

#include "isa/vector_shape.h"

namespace opkit {

void execute_elementwise(Core& core, const Instr& instr);
void execute_cast(Core& core, const Instr& instr);
void execute_copy(Core& core, const Instr& instr);
void execute_fill(Core& core, const Instr& instr);
void execute_brcb(Core& core, const Instr& instr);
void execute_gather(Core& core, const Instr& instr);
void execute_compare(Core& core, const Instr& instr);
void execute_compare_mask(Core& core, const Instr& instr);
void execute_select(Core& core, const Instr& instr);
void execute_reduce(Core& core, const Instr& instr);
void execute_repeat_reduce(Core& core, const Instr& instr);
void execute_data_copy(Core& core, const Instr& instr);
void execute_control(Core& core, const Instr& instr);

/// The lanes of a vector instruction and the bytes that it reads and writes; also what it is checked against.
struct VectorUse {
  LaneShape shape;
  OperandUses uses;
};

VectorUse elementwise_use(const Core& core, const Instr& instr);
VectorUse brcb_use(const Core& core, const Instr& instr);
VectorUse gather_use(const Core& core, const Instr& instr);
VectorUse compare_use(const Core& core, const Instr& instr);
VectorUse select_use(const Core& core, const Instr& instr);
VectorUse reduce_use(const Core& core, const Instr& instr);
VectorUse repeat_reduce_use(const Core& core, const Instr& instr);

/// True for rows that read the destination's old value.
bool reads_destination(Op op);

}  // namespace opkit
