#include "sched/time_limit.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "sched/signals.h"

namespace opkit {
namespace {

constexpr double kLooksPerLimit = 20;
constexpr double kLongestLookSeconds = 0.25;
/// What a stopped launch may take to leave: single steps out of a loop in libc take half a second.
constexpr double kGraceSeconds = 5;
/// As of `timeout`; opkit/executor/local.py knows it.
constexpr int kTimeLimitExitCode = 124;

/// A call into the system that blocks starts again behind each signal: no signal ends it; host code, none either.
[[noreturn]] void end_process(double seconds, bool is_in_kernel) {
  char text[256];
  const int size =
      std::snprintf(text, sizeof text, "error: %s %g s%s: the process ends\n",
                    is_in_kernel ? "no core has ended for" : "the operator's host code has run for", seconds,
                    is_in_kernel ? ", and the kernel is in a call of this machine that does not come back" : "");
  // Not through stdio: the kernel may hold its lock.
  if (write(STDERR_FILENO, text, static_cast<size_t>(size)) < 0) _exit(kTimeLimitExitCode);
  _exit(kTimeLimitExitCode);
}

}  // namespace

TimeLimit::TimeLimit(double seconds, bool counts_host)
    : seconds_(seconds), counts_host_(counts_host), thread_([this] { watch(); }) {}

TimeLimit::~TimeLimit() {
  {
    const std::lock_guard<std::mutex> guard(lock_);
    is_over_ = true;
  }
  end_.notify_all();
  thread_.join();
}

void TimeLimit::watch() {
  using Clock = std::chrono::steady_clock;
  const std::chrono::duration<double> look(std::min(kLongestLookSeconds, seconds_ / kLooksPerLimit));
  LaunchProgress seen = launch_progress();
  Clock::time_point since = Clock::now();
  std::unique_lock<std::mutex> guard(lock_);
  while (!end_.wait_for(guard, look, [this] { return is_over_; })) {
    hurry_interrupted_launch();
    const LaunchProgress now = launch_progress();
    const bool counts = now.is_running || counts_host_;
    if (now.steps != seen.steps || now.is_running != seen.is_running || !counts) {
      seen = now;
      since = Clock::now();
    } else if (Clock::now() - since >= std::chrono::duration<double>(seconds_)) {
      // Again at each look until it has ended: a core may be where it cannot leave.
      if (now.is_running) stop_launch(seconds_);
      if (Clock::now() - since >= std::chrono::duration<double>(seconds_ + kGraceSeconds)) {
        end_process(seconds_, now.is_running);
      }
    }
  }
}

}  // namespace opkit
