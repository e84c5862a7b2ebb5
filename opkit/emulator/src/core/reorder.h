/// Running a launch in another order that the kernel's synchronisation allows, to show what a race costs.
#pragma once

#include <cstdint>
#include <deque>
#include <set>
#include <tuple>
#include <vector>

#include "core/core.h"

namespace opkit {

/// Which order: one instruction of a core behind a later one, or cores started in an order of choice.
struct ReplayOrder {
  uint32_t core = 0;
  uint64_t earlier = 0;       ///< number of the instruction that comes late; 0: none does
  uint64_t later = 0;         ///< number of the one that it comes behind
  bool has_auto_sync = true;  ///< whether scalar accesses of vector cores wait for the other pipes
  std::vector<uint32_t> cores;
};

/// Holds back a pipe from one instruction on, and whatever waits for it, until another instruction has executed.
class Reorder {
 public:
  explicit Reorder(const ReplayOrder& order) : order_(order) {}

  /// In place of executing an instruction.
  void issue(Core& core, Instr& instr);
  /// A kernel has ended: executes what is still held back.
  void finish(Core& core) {
    if (core.index == order_.core) release(core);
  }

 private:
  /// What instructions read besides their operands.
  struct Registers {
    MaskMode mask_mode;
    uint64_t mask[2];
    uint64_t compare_mask[2];
    uint64_t deq_scale_bits;
    uint64_t pad_value_bits;
    AtomicOp atomic_op;
    DType atomic_dtype;
    DeqScale deq_scale;
    bool saturates_floats;
    bool saturates_casts;
  };
  struct Held {
    Instr instr;  // what it points to lies in the members behind it
    std::vector<Operand> list;
    FractalLoad load;
    ImageLoad image;
    MatrixFill fill;
    MatrixProduct product;
    FixpipeCopy fixpipe;
    Registers registers;
  };
  using Flag = std::tuple<Pipe, Pipe, uint8_t>;

  static Registers registers_of(const Core& core);
  static void restore(Core& core, const Registers& registers);
  bool is_held(Pipe pipe) const { return (held_pipes_ >> static_cast<uint32_t>(pipe) & 1) != 0; }
  void hold(Core& core, const Instr& instr);
  void release(Core& core);

  const ReplayOrder& order_;
  bool is_over_ = false;
  uint32_t held_pipes_ = 0;
  std::set<Flag> held_flags_;
  std::deque<Held> held_;
};

}  // namespace opkit
