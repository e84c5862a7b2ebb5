/// What the cores of one launch share, and what a host thread knows of the fiber it runs.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "core/buffers.h"
#include "core/launch.h"
#include "core/reorder.h"
#include "core/uncomputed.h"
#include "memory/raw_writes.h"
#include "observe/observer.h"
#include "opkit/api/runtime_abi.h"
#include "opkit/matmul/core_extension.h"
#include "sync/cross_core.h"

namespace opkit {

/// A core that waits for another, while its thread has nothing else to do.
struct WaitingCore {
  const Core* core;
  const Instr* instr;
  const std::string* what;
};

struct LaunchState {
  const Launch* launch = nullptr;
  std::vector<Observer*> observers;
  RawWrites* raw_writes = nullptr;         ///< where outputs may not be written through raw pointers
  Reorder* reorder = nullptr;              ///< of a replay, which has no observers and prints nothing
  std::unique_ptr<Uncomputed> uncomputed;  ///< of a launch that is only timed
  bool has_chains = true;                  ///< whether instructions may wait: nothing looks at values between them
  uint32_t core_count = 0;
  uint32_t cores_per_block = 1;
  std::atomic<uint32_t> next_core{0};
  std::vector<uint32_t> order;  ///< which core starts as the n-th; empty: the n-th
  std::atomic<uint64_t> instructions{0};
  std::atomic<uint64_t> printed_bytes{0};
  /// Cores from this index on leave at their next instruction: those above the lowest one that has faulted, or all
  /// when the user interrupts. Those below run on, so that the fault reported does not depend on the number of threads.
  std::atomic<uint32_t> stop_from{~0u};
  std::atomic<bool> is_interrupted{false};
  std::atomic<bool> has_passed_interrupt{false};  ///< of a launch that ends before its first one
  std::atomic<bool> divides_by_zero{false};       ///< said once
  std::mutex fault_lock;
  FaultReport fault;  ///< that core's
  uint32_t faulted_core = ~0u;

  // Who waits for whom. `epoch` counts the changes that may end a wait.
  std::mutex wait_lock;
  std::condition_variable progress;
  std::atomic<uint64_t> epoch{0};
  uint32_t active_workers = 0;
  uint32_t idle_workers = 0;  ///< that found nothing to do in this epoch
  bool is_deadlocked = false;
  std::vector<WaitingCore> waits;
  CrossCoreState cross_core;

  // Which branches TILING_KEY_IS has asked for.
  std::atomic<bool> has_branch{false};
  std::mutex branch_lock;
  std::set<uint64_t> missed_branches;
  Where last_branch{"", 0};

  SubCore kind_of(uint32_t core_index) const {
    return core_index % cores_per_block < cube_cores(launch->mode) ? SubCore::AIC : SubCore::AIV;
  }

  /// Faults where raw pointers have changed an output.
  void check_raw_writes();

  /// Faults where a kernel of branches has none for the launch's tiling key, and has issued no instruction.
  void check_branch();

  /// Keeps the fault of the lowest core that has one.
  void record(FaultReport report, uint32_t core_index);
  /// Every core waits and nothing will wake one: says who waits for what, unless a fault has said why already.
  void report_deadlock();
};

/// The core of this thread with what the public templates read of it.
struct RunningCore {
  Core core;
  CoreVariables variables{};
  void* kernel_pipe = nullptr;
  uint8_t* system_workspace = nullptr;                             ///< SetSysWorkspace
  alignas(8) uint8_t extension[matmul::kCoreExtensionBytes] = {};  ///< what the core's Matmul objects share
  std::string printed;                ///< what the kernel has printed of a line that is not over
  std::vector<BufferRecord> buffers;  ///< that InitBuffer has placed
  Where last_where{};                 ///< of the last instruction, where `core.issued` is not 0
};

/// Writes out what a core has printed of its last line.
void flush_printed(RunningCore& core);

RunningCore* running_core();

/// The same, for what kernels call: faults where there is none, and leaves a launch that was stopped.
RunningCore& require_running_core();

/// What a fault of a call that is no instruction is reported against: it has a place, but no operands.
Instr call_at(Where where);
void set_running_core(RunningCore* core);

/// Leaves the kernel for good; only from a fiber.
[[noreturn]] void abandon_fiber();

}  // namespace opkit
