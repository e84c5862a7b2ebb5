// A crash of kernel code ends the launch, not the process.
#include <csignal>

#include <algorithm>

#include "sched/worker.h"

namespace opkit {
namespace {

const char* signal_text(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "the kernel reads or writes memory through a pointer that leads nowhere (or its stack overflowed)";
    case SIGBUS: return "the kernel accesses memory that is not there";
    default: return "the kernel divides an integer by zero";
  }
}

constexpr int kCaughtSignals[] = {SIGSEGV, SIGBUS, SIGFPE};
struct sigaction previous_actions[3];

void on_crash(int signal, siginfo_t* info, void* context) {
  const Worker* worker = this_thread_worker();
  if (worker != nullptr && worker->running_slot() != nullptr) {
    raise_fault(Fault::Crash, nullptr, "look for raw pointers, GM_ADDR arithmetic and tiling fields that are zero",
                "%s", signal_text(signal));
  }
  const auto index = static_cast<size_t>(std::find(kCaughtSignals, kCaughtSignals + 3, signal) - kCaughtSignals);
  const struct sigaction& previous = previous_actions[index];
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler != SIG_DFL && previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  } else {
    sigaction(signal, &previous, nullptr);  // returning runs the instruction again, now with the default action
  }
}

}  // namespace

CrashGuard::CrashGuard() {
  struct sigaction action{};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (size_t i = 0; i < 3; ++i) sigaction(kCaughtSignals[i], &action, &previous_actions[i]);
}

CrashGuard::~CrashGuard() {
  for (size_t i = 0; i < 3; ++i) sigaction(kCaughtSignals[i], &previous_actions[i], nullptr);
}

}  // namespace opkit
