#include "sched/signals.h"

#include <csetjmp>
#include <csignal>

#include <atomic>
#include <iterator>
#include <memory>
#include <mutex>

#include "memory/bounds.h"
#include "sched/worker.h"

namespace opkit {
namespace {

constexpr size_t kSignalStackBytes = 64 * 1024;
constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

struct sigaction previous_actions[std::size(kCrashes)];
struct sigaction previous_interrupt;
std::atomic<LaunchState*> interruptible{nullptr};
thread_local jmp_buf* host_exit = nullptr;  ///< where a crash of a host function goes on
thread_local bool is_passing_on = false;

/// A thread's stack for handlers: its own may be what overflowed.
class SignalStack {
 public:
  SignalStack() : memory_(new char[kSignalStackBytes]) {}
  ~SignalStack() {
    stack_t current{};
    sigaltstack(nullptr, &current);
    if (current.ss_sp != memory_.get()) return;
    current.ss_flags = SS_DISABLE;
    sigaltstack(&current, nullptr);
  }
  void install() {
    stack_t stack{};
    stack.ss_sp = memory_.get();
    stack.ss_size = kSignalStackBytes;
    sigaltstack(&stack, nullptr);
    is_installed_ = true;
  }
  bool is_installed() const { return is_installed_; }

 private:
  std::unique_ptr<char[]> memory_;
  bool is_installed_ = false;
};

thread_local SignalStack signal_stack;

/// To whoever handled the signal before.
void pass_on(const struct sigaction& previous, int signal, siginfo_t* info, void* context) {
  // A handler that gives the signal back to the one before it, which is this one, has had its turn.
  const bool ends_here = previous.sa_handler == SIG_DFL || is_passing_on;
  if (ends_here) {
    std::signal(signal, SIG_DFL);
    raise(signal);
    return;
  }
  if (previous.sa_handler == SIG_IGN && (previous.sa_flags & SA_SIGINFO) == 0) return;
  is_passing_on = true;
  if ((previous.sa_flags & SA_SIGINFO) != 0) {
    previous.sa_sigaction(signal, info, context);
  } else {
    previous.sa_handler(signal);
  }
  is_passing_on = false;
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
  pass_on(previous_interrupt, signal, info, context);
}

[[noreturn]] void raise_crash(int signal, const siginfo_t* info) {
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
    raise_fault(Fault::UseAfterFree, has_last ? &last : nullptr,
                "free device memory once the stream has been synchronised",
                "the kernel reads or writes %s that the program has freed, through a raw pointer", freed->name.c_str());
  }
  const std::string place = has_address ? place_text(*running->core.launch->launch, address, 1) : "";
  if (!place.empty()) {
    raise_fault(Fault::Crash, has_last ? &last : nullptr, "look for raw pointers and GM_ADDR arithmetic",
                "the kernel reads or writes %s, through a raw pointer%s", place.c_str(),
                has_last ? ", after the instruction at this line" : "");
  }
  raise_fault(Fault::Crash, has_last ? &last : nullptr,
              "look for raw pointers, GM_ADDR arithmetic and tiling fields that are zero", "the kernel %s%s",
              crash_text(signal), has_last ? ", after the instruction at this line" : "");
}

void on_crash(int signal, siginfo_t* info, void* context) {
  const Worker* worker = this_thread_worker();
  if (worker != nullptr && worker->running_slot() != nullptr) raise_crash(signal, info);
  if (host_exit != nullptr) _longjmp(*host_exit, signal);
  for (size_t i = 0; i < std::size(kCrashes); ++i) {
    if (kCrashes[i] == signal) pass_on(previous_actions[i], signal, info, context);
  }
}

bool is_ours(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 && action.sa_sigaction == on_crash;
}

void install_handlers() {
  static std::mutex lock;
  const std::lock_guard<std::mutex> guard(lock);
  struct sigaction action{};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (size_t i = 0; i < std::size(kCrashes); ++i) {
    struct sigaction found{};
    sigaction(kCrashes[i], &action, &found);
    if (!is_ours(found)) previous_actions[i] = found;
  }
}

}  // namespace

const char* crash_text(int signal) {
  switch (signal) {
    case SIGSEGV: return "reads or writes memory through a pointer that leads nowhere (or its stack overflowed)";
    case SIGBUS: return "accesses memory that is not there";
    case SIGILL: return "stops itself (a trap, or a path that the compiler holds for impossible)";
    case SIGABRT: return "aborts (an exception that nothing catches, a failed assert, a broken heap)";
    default: return "divides an integer by zero";
  }
}

void watch_crashes() {
  struct sigaction current{};
  // Who replaces one handler, such as Python's faulthandler, replaces that of SIGSEGV.
  sigaction(SIGSEGV, nullptr, &current);
  const bool is_watched = is_ours(current);
  if (!is_watched) install_handlers();
  if (!is_watched || !signal_stack.is_installed()) signal_stack.install();
}

std::optional<int> crash_of(void (*body)(void*), void* context) {
  jmp_buf exit;
  jmp_buf* const outer = host_exit;
  if (const int signal = _setjmp(exit); signal != 0) {
    host_exit = outer;
    return signal;
  }
  host_exit = &exit;
  body(context);
  host_exit = outer;
  return std::nullopt;
}

InterruptGuard::InterruptGuard(LaunchState& launch) {
  struct sigaction action{};
  action.sa_sigaction = on_interrupt;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  sigaction(SIGINT, &action, &previous_interrupt);
  interruptible.store(&launch);
}

InterruptGuard::~InterruptGuard() {
  interruptible.store(nullptr);
  sigaction(SIGINT, &previous_interrupt, nullptr);
}

}  // namespace opkit
