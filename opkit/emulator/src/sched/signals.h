/// Signals: a crash of code that is not opkit's ends what it was called for, not the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace opkit {

struct Instr;
struct LaunchState;

/// Sees to it that crashes on this thread reach opkit, whoever has installed handlers since the last time. Crashes of
/// other code still go to those handlers. Cheap: installing and removing handlers for each call would cost more than a
/// small launch does.
void watch_crashes();

/// Runs `body(context)`; returns the signal when that crashed. Its frames are then gone without their destructors. No
/// exception may leave it. watch_crashes() comes first.
std::optional<int> crash_of(void (*body)(void*), void* context);

/// What a signal says of the code that it stopped, such as "aborts (...)".
const char* crash_text(int signal);

/// Type and text of the exception that is handled, or that std::terminate was called for, such as
/// `std::out_of_range: no such row`; empty where there is none.
std::string exception_text();

/// How far the process's launches are, for who waits for them: a number that grows with each launch and each core that
/// ends, and whether one runs.
struct LaunchProgress {
  uint64_t steps;
  bool is_running;
};
LaunchProgress launch_progress();
void count_progress();

/// Ends the launch that runs now, if one does, because no core of it has ended for so long: each core leaves at its
/// next instruction, or where it is, when that is code of the kernel itself. Called from another thread, and again
/// until the launch has ended: a core may be in code that is not the kernel's.
void stop_launch(double seconds);

/// Reminds the cores of a launch that SIGINT or SIGTERM has stopped, as stop_launch() does when it is called again.
void hurry_interrupted_launch();

/// What a core does at an instruction once its launch has been stopped: it leaves, and says why where time is the
/// reason.
[[noreturn]] void leave_stopped_launch(const Instr* instr);

/// While it lives, stop_launch() and an interrupt reach this thread's core.
class WorkerThread {
 public:
  WorkerThread();
  ~WorkerThread();

 private:
  size_t place_;
};

/// While it lives, SIGINT and SIGTERM end the launch where the process handles them; they go to its handlers as well.
class InterruptGuard {
 public:
  explicit InterruptGuard(LaunchState& launch);
  ~InterruptGuard();
};

}  // namespace opkit
