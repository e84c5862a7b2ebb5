/// Launches that are only timed: control flow and synchronisation run, tensors are not computed. What a scalar would
/// read of them faults, because it may steer the kernel.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "core/core.h"
#include "core/launch.h"

namespace opkit {

class Uncomputed {
 public:
  Uncomputed(const Launch& launch, uint32_t core_count);

  /// Executes what steers a kernel, and notes of anything else where its results would be.
  void run(Core& core, Instr& instr);
  /// Faults where a scalar takes what is in a register: `what` a call reads.
  [[noreturn]] void read_register(const char* what) const;
  /// A block that has ended reads nothing any more.
  void end_block(const Core& core) { local_[core.index] = {}; }

 private:
  /// The tensor of the launch that an address of global memory lies in; its end where it lies in none.
  size_t tensor_of(uint64_t address) const;
  void note(const Core& core, const Instr& instr);
  void note_local(const Core& core, uint64_t begin, uint64_t bytes);
  bool is_local_missing(const Core& core, uint64_t begin, uint64_t bytes) const;
  void get_value(const Core& core, const Instr& instr) const;
  void set_value(const Core& core, const Instr& instr);
  void gather_mask(Core& core, Instr& instr);

  const Launch& launch_;
  std::vector<std::vector<uint8_t>> local_;      ///< by core: of each byte of UB whether it is missing; empty: none is
  std::unique_ptr<std::atomic<bool>[]> global_;  ///< by tensor of the launch, whether any of it is
};

}  // namespace opkit
