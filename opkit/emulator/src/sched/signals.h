/// Signals: a crash of code that is not opkit's ends what it was called for, not the process.
#pragma once

#include <optional>

namespace opkit {

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

/// While it lives, an interrupt from the keyboard ends the launch; afterwards it goes where it went before.
class InterruptGuard {
 public:
  explicit InterruptGuard(LaunchState& launch);
  ~InterruptGuard();
};

}  // namespace opkit
