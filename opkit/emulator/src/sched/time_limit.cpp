#include "sched/time_limit.h"

#include <algorithm>
#include <chrono>

#include "sched/signals.h"

namespace opkit {
namespace {

constexpr double kLooksPerLimit = 20;
constexpr double kLongestLookSeconds = 0.25;

}  // namespace

TimeLimit::TimeLimit(double seconds) : seconds_(seconds), thread_([this] { watch(); }) {}

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
    if (now.steps != seen.steps || now.is_running != seen.is_running || !now.is_running) {
      seen = now;
      since = Clock::now();
    } else if (Clock::now() - since >= std::chrono::duration<double>(seconds_)) {
      // Again at each look until it has ended: a core may be where it cannot leave.
      stop_launch(seconds_);
    }
  }
}

}  // namespace opkit
