/// The functions that the table's rows name, and what they tell of the bytes that an instruction uses.
#pragma once

#include "isa/cube.h"
#include "isa/vector_shape.h"

namespace opkit {

void execute_elementwise(Core& core, const Instr& instr);
void execute_cast(Core& core, const Instr& instr);
void execute_copy(Core& core, const Instr& instr);
void execute_fill(Core& core, const Instr& instr);
void execute_brcb(Core& core, const Instr& instr);
void execute_gather(Core& core, const Instr& instr);
void execute_gather_blocks(Core& core, const Instr& instr);
void execute_gather_mask(Core& core, const Instr& instr);
void execute_trans_data(Core& core, const Instr& instr);
void execute_transpose(Core& core, const Instr& instr);
void execute_sort(Core& core, const Instr& instr);
void execute_merge(Core& core, const Instr& instr);
void execute_proposals(Core& core, const Instr& instr);
void execute_fused_cast(Core& core, const Instr& instr);
void execute_scatter(Core& core, const Instr& instr);
void execute_padding(Core& core, const Instr& instr);
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
VectorUse gather_blocks_use(const Core& core, const Instr& instr);
VectorUse gather_mask_use(const Core& core, const Instr& instr);
VectorUse transpose_use(const Core& core, const Instr& instr);
VectorUse sort_use(const Core& core, const Instr& instr);
VectorUse copy_use(const Core& core, const Instr& instr);
VectorUse scatter_use(const Core& core, const Instr& instr);
VectorUse padding_use(const Core& core, const Instr& instr);
VectorUse compare_use(const Core& core, const Instr& instr);
VectorUse select_use(const Core& core, const Instr& instr);
VectorUse reduce_use(const Core& core, const Instr& instr);
VectorUse repeat_reduce_use(const Core& core, const Instr& instr);

/// One of the list operands of TransDataTo5HD; its VectorUse holds that operand alone.
VectorUse trans_data_use(const Core& core, const Instr& instr, uint32_t item);

/// Footprints of the rows that are no lanes: see footprint.h.
void emit_ranges(const VectorUse& vector, RangeCallback callback, void* context);
void copied_ranges(const Core& core, const Instr& instr, RangeCallback callback, void* context);
void filled_ranges(const Core& core, const Instr& instr, RangeCallback callback, void* context);
void no_ranges(const Core& core, const Instr& instr, RangeCallback callback, void* context);
void trans_data_ranges(const Core& core, const Instr& instr, RangeCallback callback, void* context);
void merge_ranges(const Core& core, const Instr& instr, RangeCallback callback, void* context);
void compare_mask_ranges(const Core& core, const Instr& instr, RangeCallback callback, void* context);

/// The footprint of a vector instruction, by the function that it is checked by.
template <VectorUse (*use)(const Core&, const Instr&)>
void ranges_of(const Core& core, const Instr& instr, RangeCallback callback, void* context) {
  emit_ranges(use(core, instr), callback, context);
}

/// Item 0: what a merge writes; 1 to 4: what it reads of a queue, each alone.
VectorUse merge_use(const Core& core, const Instr& instr, uint32_t item);

/// True for rows that read the destination's old value.
bool reads_destination(Op op);

}  // namespace opkit
