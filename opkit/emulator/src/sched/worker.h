/// A host thread's work on a launch: it starts cores on fibers, and goes on with those whose wait is over.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "core/launch_state.h"
#include "sched/block_local.h"
#include "sched/fiber.h"

namespace opkit {

/// One sub-core that can run: a stack, registers and memories. Kept for the next launch.
struct CoreSlot {
  Fiber fiber;
  RunningCore running;
  bool (*ready)(void*) = nullptr;  ///< while it waits: whether it may go on; null: it has only given way
  void* ready_context = nullptr;
  Instr waiting_instr;                ///< while it waits: where
  std::string waiting_for;            ///< while it waits: for what
  std::vector<uint8_t> block_locals;  ///< while it waits
  uint8_t* memory = nullptr;
  size_t memory_bytes = 0;
  const Chip* memory_chip = nullptr;
  bool is_filled = false;  ///< whether a launch asked for a pattern in its memories, which may still be there

  CoreSlot() = default;
  CoreSlot(const CoreSlot&) = delete;
  CoreSlot& operator=(const CoreSlot&) = delete;
  ~CoreSlot();

  void map_memories(const Chip& chip);
};

class Worker {
 public:
  /// Runs cores of the launch until none is left for this thread.
  void work(LaunchState& launch, const DeviceConfig& config);

  /// The slot whose kernel code runs on this thread now; null between cores.
  CoreSlot* running_slot() const { return running_slot_; }

 private:
  bool start_next();
  bool resume_ready();
  bool resume_yielded();
  bool await_progress(uint64_t seen);
  void enter(std::unique_ptr<CoreSlot> slot, bool is_new);
  void finish(std::unique_ptr<CoreSlot> slot);
  void reset_core(CoreSlot& slot, uint32_t index);
  void abandon_waiting(bool only_stopped);

  LaunchState* launch_ = nullptr;
  DeviceConfig config_;
  std::optional<BlockLocals> block_locals_;  ///< of the launch's kernel, once one of its cores has waited
  CoreSlot* running_slot_ = nullptr;
  std::vector<std::unique_ptr<CoreSlot>> idle_;
  std::vector<std::unique_ptr<CoreSlot>> waiting_;
};

/// The worker of this thread; null outside a launch.
Worker* this_thread_worker();

}  // namespace opkit
