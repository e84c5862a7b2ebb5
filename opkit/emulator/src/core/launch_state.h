/// What the cores of one launch share, and what a host thread knows of the fiber it runs.
#pragma once

#include <atomic>
#include <mutex>
#include <vector>

#include "core/launch.h"
#include "observe/observer.h"
#include "opkit/api/runtime_abi.h"

namespace opkit {

struct LaunchState {
  const Launch* launch = nullptr;
  std::vector<Observer*> observers;
  std::atomic<uint32_t> next_block{0};
  std::atomic<uint64_t> instructions{0};
  /// The lowest block that has faulted. Blocks above it leave at their next instruction; those below run on, so that
  /// the fault reported does not depend on the number of threads.
  std::atomic<uint32_t> stop_above{~0u};
  std::mutex fault_lock;
  FaultReport fault;  ///< that block's
};

/// The core of this thread with what the public templates read of it.
struct RunningCore {
  Core core;
  CoreVariables variables{};
  void* kernel_pipe = nullptr;
};

RunningCore* running_core();
void set_running_core(RunningCore* core);

/// Leaves the kernel for good; only from a fiber.
[[noreturn]] void abandon_fiber();

}  // namespace opkit
