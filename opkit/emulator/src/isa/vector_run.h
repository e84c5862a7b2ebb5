/// Runs a lane over the lanes of a shape: strides, masks and overlap, once for all instructions.
#pragma once

#include "isa/lanes/lanes.h"
#include "isa/vector_shape.h"

namespace opkit {

struct LaneJob {
  lanes::Lane lane = nullptr;
  lanes::Lane block_lane = nullptr;  ///< where the second source's data block goes with every block; null: none
  const uint64_t* scalars = nullptr;
  uint32_t source_count = 0;
  bool reads_dst = false;
  const uint8_t* select_bits = nullptr;  ///< Select: the selection, sources[2] of the lane
  bool select_bits_restart = false;      ///< every repeat uses the same bits
  bool saturates = false;                ///< infinite halves become the largest ones
  uint64_t* ramp = nullptr;              ///< CreateVecIndex: where the lane finds the index of its first element
};

/// Bounds were checked. Each repeat reads all that it reads before it writes; repeats run in order.
void run_lanes(const Core& core, const Instr& instr, const LaneShape& shape, const LaneJob& job);

/// The operand of a call with a count: its strides are those of one run, whatever the instruction holds.
Operand placed(const LaneShape& shape, Operand operand);

/// Copies the `lanes` first lanes of one repeat between an operand and a contiguous buffer.
void gather_repeat(const Core& core, const Operand& operand, uint32_t repeat, uint32_t lanes, uint8_t* buffer);
void scatter_repeat(const Core& core, const Operand& operand, uint32_t repeat, const LaneShape& shape, uint32_t lanes,
                    const uint8_t* buffer);

/// A whole repeat in `buffer`: the operand's active lanes, and zeros elsewhere, which add nothing.
void gather_masked(const Core& core, const Operand& source, const LaneShape& shape, uint32_t repeat, uint8_t* buffer);

}  // namespace opkit
