/// Elementwise instructions of floats, and casts between these and 16-bit floats, that wait to be executed together,
/// while nothing looks at what they write: observers that read no values do not.
///
/// A tile is as large as UB; read and written whole by each instruction, it passes through the host's second cache
/// every time. In a chain a few elements go through all instructions before the next ones do, and what only the next
/// instruction reads never leaves the registers. Whoever reads or writes UB otherwise has it executed first.
#pragma once

#include "isa/lanes/lanes.h"
#include "opkit/instr.h"

namespace opkit {

struct Core;

/// A core's instructions that wait. Each has been checked, and takes the same elements of places that do not overlap.
struct Chain {
  static constexpr uint32_t kSteps = lanes::kMostChainSteps;
  static constexpr uint32_t kPlaces = 12;
  static constexpr uint32_t kLeastCount = 512;  ///< elements; fewer lie in the first cache anyway

  struct Step {
    Op op;
    uint8_t dst;  ///< index of a place
    uint8_t sources[2];
    uint8_t source_count;
    uint64_t scalar;
    lanes::Lane lane;  ///< that executes it alone
  };
  struct Place {
    uint64_t address;  ///< bytes in UB
    DType dtype;
  };

  bool is_open =
      false;  ///< whether instructions may wait at all: no observer reads values, no kernel holds a host's address
  uint32_t step_count = 0;
  uint32_t place_count = 0;
  uint32_t count = 0;  ///< elements
  Place places[kPlaces];
  Step steps[kSteps];

  Chain() {}  // NOLINT(modernize-use-equals-default): what the counts do not reach needs no value
};

/// Whether a Cast is one that may wait.
bool is_chain_cast(const Instr& instr);

/// Lets an instruction wait, whose operands are aligned and inside their buffers; `lane` executes it alone. False where
/// it cannot: its sources overlap each other; nothing else waits then.
bool join_chain(Core& core, const Instr& instr, lanes::Lane lane);

/// Executes what waits; finish_chain calls it where something does.
void run_chain(Core& core);

}  // namespace opkit
