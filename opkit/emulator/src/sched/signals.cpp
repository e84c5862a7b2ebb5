// Signals during a launch: a crash of kernel code ends the launch, not the process; so does the first interrupt from
// the keyboard.
#include <csignal>

#include <algorithm>
#include <atomic>

#include "memory/bounds.h"
#include "sched/worker.h"

namespace opkit {
namespace {

const char* signal_text(int signal) {
  switch (signal) {
    case SIGSEGV:
      return "the kernel reads or writes memory through a pointer that leads nowhere (or its stack overflowed)";
    case SIGBUS: return "the kernel accesses memory that is not there";
    case SIGILL: return "the kernel stops itself (a trap, or a path that the compiler holds for impossible)";
    case SIGABRT: return "the kernel aborts (an exception that nothing catches, a failed assert, a broken heap)";
    default: return "the kernel divides an integer by zero";
  }
}

constexpr int kCaughtSignals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGINT};
constexpr size_t kCaughtCount = sizeof(kCaughtSignals) / sizeof(kCaughtSignals[0]);
struct sigaction previous_actions[kCaughtCount];
std::atomic<LaunchState*> interruptible{nullptr};

/// To whoever handled the signal before the launch.
void pass_on(int signal, siginfo_t* info, void* context) {
  const auto index =
      static_cast<size_t>(std::find(kCaughtSignals, kCaughtSignals + kCaughtCount, signal) - kCaughtSignals);
  const struct sigaction& previous = previous_actions[index];
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else if (previous.sa_handler == SIG_DFL) {
    sigaction(signal, &previous, nullptr);
    raise(signal);
  } else if (previous.sa_handler != SIG_IGN) {
    previous.sa_handler(signal);
  }
}

/// The cores leave at their next instruction. Kernel code that loops without one ends only with the process: the second
/// interrupt does that.
void on_interrupt(int signal, siginfo_t* info, void* context) {
  LaunchState* launch = interruptible.load();
  if (launch == nullptr || launch->is_interrupted.exchange(true)) {
    std::signal(signal, SIG_DFL);
    raise(signal);
    return;
  }
  launch->stop_from.store(0);
  pass_on(signal, info, context);
}

void on_crash(int signal, siginfo_t* info, void* context) {
  const Worker* worker = this_thread_worker();
  if (worker != nullptr && worker->running_slot() != nullptr) {
    // Plain C++ has no position of its own; the last instruction before it is near.
    Instr last;
    const RunningCore* running = running_core();
    const bool has_last = running != nullptr && running->core.issued > 0;
    if (has_last) last.where = running->last_where;
    last.pipe = Pipe::S;
    const auto address = reinterpret_cast<uint64_t>(info->si_addr);
    const bool has_address = signal == SIGSEGV || signal == SIGBUS;
    const GmRange* freed = has_address ? range_at(running->core.launch->launch->freed, address) : nullptr;
    if (freed != nullptr) {
      raise_fault(
          Fault::UseAfterFree, has_last ? &last : nullptr, "free device memory once the stream has been synchronised",
          "the kernel reads or writes %s that the program has freed, through a raw pointer", freed->name.c_str());
    }
    raise_fault(Fault::Crash, has_last ? &last : nullptr,
                "look for raw pointers, GM_ADDR arithmetic and tiling fields that are zero", "%s%s",
                signal_text(signal), has_last ? ", after the instruction at this line" : "");
  }
  pass_on(signal, info, context);
}

}  // namespace

SignalGuard::SignalGuard(LaunchState& launch) {
  struct sigaction action{};
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (size_t i = 0; i < kCaughtCount; ++i) {
    action.sa_sigaction = kCaughtSignals[i] == SIGINT ? on_interrupt : on_crash;
    sigaction(kCaughtSignals[i], &action, &previous_actions[i]);
  }
  interruptible.store(&launch);
}

SignalGuard::~SignalGuard() {
  interruptible.store(nullptr);
  for (size_t i = 0; i < kCaughtCount; ++i) sigaction(kCaughtSignals[i], &previous_actions[i], nullptr);
}

}  // namespace opkit
