#include "sched/signals.h"

#include <cxxabi.h>
#include <link.h>
#include <pthread.h>
#include <ucontext.h>

#include <csetjmp>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <ctime>

#include <array>
#include <atomic>
#include <exception>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <typeinfo>

#include "memory/bounds.h"
#include "sched/division.h"
#include "sched/worker.h"

namespace opkit {
namespace {

constexpr size_t kSignalStackBytes = 64 * 1024;
constexpr int kCrashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
constexpr int kStop = SIGURG;  ///< to a worker's thread: ignored where nobody handles it
constexpr size_t kMostThreads = 1024;

struct sigaction previous_actions[std::size(kCrashes)];
constexpr int kInterrupts[] = {SIGINT, SIGTERM};
struct sigaction previous_interrupts[std::size(kInterrupts)];
struct sigaction previous_stop;
std::atomic<LaunchState*> interruptible{nullptr};
std::mutex interruptible_lock;         ///< held while another thread looks at it, and while it changes
std::atomic<double> stopped_after{0};  ///< seconds; 0: no time limit has ended the launch
std::atomic<uint64_t> progress_steps{0};
std::array<std::atomic<pthread_t>, kMostThreads> worker_threads{};  ///< of the launch; 0: free

/// The code that the launch's kernel was linked into.
struct CodeRange {
  std::atomic<uintptr_t> begin{0};
  std::atomic<uintptr_t> end{0};
} kernel_code;
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

int find_code(dl_phdr_info* info, size_t, void* context) {
  const auto wanted = *static_cast<uintptr_t*>(context);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr) & part = info->dlpi_phdr[i];
    const uintptr_t begin = info->dlpi_addr + part.p_vaddr;
    if (part.p_type != PT_LOAD || (part.p_flags & PF_X) == 0) continue;
    if (wanted < begin || wanted >= begin + part.p_memsz) continue;
    kernel_code.begin = begin;
    kernel_code.end = begin + part.p_memsz;
    return 1;
  }
  return 0;
}

/// Asked of the loader once for each kernel that comes after another one: it takes longer than a small launch.
void note_kernel_code(const LaunchState& launch) {
  static uintptr_t known = 0;
  auto invoke = reinterpret_cast<uintptr_t>(launch.launch->invoke);
  if (invoke == known) return;
  known = invoke;
  kernel_code.begin = kernel_code.end = 0;
  dl_iterate_phdr(find_code, &invoke);
}

uintptr_t program_counter(const void* context) {
  const auto* machine = &static_cast<const ucontext_t*>(context)->uc_mcontext;
#if defined(__x86_64__)
  return static_cast<uintptr_t>(machine->gregs[REG_RIP]);
#elif defined(__aarch64__)
  return static_cast<uintptr_t>(machine->pc);
#else
  return static_cast<void>(machine), 0;
#endif
}

bool has_stopped_core() {
  const Worker* worker = this_thread_worker();
  if (worker == nullptr || worker->running_slot() == nullptr) return false;
  const Core& core = worker->running_slot()->running.core;
  return core.index >= core.launch->stop_from.load();
}

/// Sets whether each instruction of a thread raises SIGTRAP, from where a signal has stopped it. False where the host
/// cannot.
bool set_steps(void* context, bool is_on) {
#if defined(__x86_64__)
  constexpr greg_t kTrapFlag = 1 << 8;
  greg_t& flags = static_cast<ucontext_t*>(context)->uc_mcontext.gregs[REG_EFL];
  flags = is_on ? flags | kTrapFlag : flags & ~kTrapFlag;
  return true;
#else
  return static_cast<void>(context), static_cast<void>(is_on), false;
#endif
}

constexpr uint32_t kMostSteps = 100000;
thread_local uint32_t steps_left = 0;

void on_step(int signal, siginfo_t* info, void* context);

/// A core whose launch was stopped leaves where it is, if that is the kernel's own code: there no lock is held and
/// nothing of the emulator is half done. Where it is in a function that the kernel calls, such as printf, it goes on
/// step by step until it is back, for so many steps at most. `context` is where a signal has stopped this thread.
void leave_kernel_code(void* context) {
  if (!has_stopped_core()) return;
  const uintptr_t at = program_counter(context);
  if (at >= kernel_code.begin && at < kernel_code.end) leave_stopped_launch(nullptr);
  struct sigaction step{};
  step.sa_sigaction = on_step;
  step.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  struct sigaction before{};
  sigaction(SIGTRAP, nullptr, &before);
  // A debugger's or a program's own traps stay theirs.
  if (before.sa_sigaction != on_step && (before.sa_handler != SIG_DFL || sigaction(SIGTRAP, &step, nullptr) != 0)) {
    return;
  }
  steps_left = set_steps(context, true) ? kMostSteps : 0;
}

void on_step(int, siginfo_t*, void* context) {
  const uintptr_t at = program_counter(context);
  const bool is_stopped = has_stopped_core();
  if (is_stopped && at >= kernel_code.begin && at < kernel_code.end) leave_stopped_launch(nullptr);
  const bool goes_on = is_stopped && steps_left > 0;
  steps_left -= goes_on ? 1 : 0;
  set_steps(context, goes_on);
}

bool is_handled(const struct sigaction& action) {
  return (action.sa_flags & SA_SIGINFO) != 0 || (action.sa_handler != SIG_DFL && action.sa_handler != SIG_IGN);
}

void on_stop(int signal, siginfo_t* info, void* context) {
  leave_kernel_code(context);
  if (this_thread_worker() == nullptr && previous_stop.sa_handler != SIG_DFL) {
    pass_on(previous_stop, signal, info, context);
  }
}

/// All but the calling thread, which sees to itself: pthread_kill blocks all signals for a while, and a thread that
/// goes step by step ends there.
void wake_workers() {
  const pthread_t self = pthread_self();
  for (const std::atomic<pthread_t>& place : worker_threads) {
    const pthread_t thread = place.load();
    if (thread != 0 && pthread_equal(thread, self) == 0) pthread_kill(thread, kStop);
  }
}

/// SIGINT or SIGTERM: the cores leave at their next call of the library, or in the kernel's own code. The second
/// interrupt ends the process. A launch that ends first has one more: the program learns of that one behind it.
void on_interrupt(int signal, siginfo_t* info, void* context) {
  static std::atomic<int64_t> first_seconds{0};
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  LaunchState* launch = interruptible.load();
  if (launch != nullptr && launch->launch->ends_before_interrupt) {
    if (!launch->has_passed_interrupt.exchange(true)) {
      first_seconds.store(now.tv_sec);
      pass_on(previous_interrupts[signal == SIGTERM ? 1 : 0], signal, info, context);
      return;
    }
    if (now.tv_sec - first_seconds.load() < 2) return;
  }
  if (launch == nullptr || launch->is_interrupted.exchange(true)) {
    // One that comes at once is the first again: sent to the process and to its group.
    if (launch != nullptr && now.tv_sec - first_seconds.load() < 2) return;
    std::signal(signal, SIG_DFL);
    raise(signal);
    return;
  }
  first_seconds.store(now.tv_sec);
  launch->stop_from.store(0);
  pass_on(previous_interrupts[signal == SIGTERM ? 1 : 0], signal, info, context);
  wake_workers();
  leave_kernel_code(context);
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
  if (const std::string thrown = signal == SIGABRT ? exception_text() : ""; !thrown.empty()) {
    // The frames that would have ended it are left: it is over, and the next abort is not by it.
    abi::__cxa_end_catch();
    raise_fault(Fault::Crash, has_last ? &last : nullptr, "catch it in the kernel, or check what it is thrown for",
                "the kernel throws %s%s", thrown.c_str(), has_last ? ", after the instruction at this line" : "");
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

/// The chip goes on behind a division by zero: so does a kernel here, and says so once a launch. Not where an observer
/// wants it to end the launch.
bool goes_on_behind(int signal, void* context) {
  const uintptr_t at = program_counter(context);
  if (signal != SIGFPE || at < kernel_code.begin || at >= kernel_code.end) return false;
  const RunningCore& running = *running_core();
  for (const Observer* observer : running.core.launch->observers) {
    if (observer->ends_at_division_by_zero()) return false;
  }
  if (!step_over_division_by_zero(context)) return false;
  if (running.core.launch->divides_by_zero.exchange(true)) return true;
  constexpr const char* kText =
      "warning: the kernel divides an integer by zero: 0 here, on the chip what no document says";
  if (running.core.issued > 0) {
    const Where& last = running.last_where;
    std::fprintf(stderr, "%s\n  --> behind the instruction at %s:%u\n", kText, last.file, last.line);
  } else {
    std::fprintf(stderr, "%s\n", kText);
  }
  return true;
}

void on_crash(int signal, siginfo_t* info, void* context) {
  const Worker* worker = this_thread_worker();
  if (worker != nullptr && worker->running_slot() != nullptr) {
    if (goes_on_behind(signal, context)) return;
    raise_crash(signal, info);
  }
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
  struct sigaction stop{};
  stop.sa_sigaction = on_stop;
  stop.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER | SA_RESTART;
  struct sigaction before{};
  sigaction(kStop, &stop, &before);
  if (before.sa_sigaction != on_stop) previous_stop = before;
}

/// A kernel that calls exit would end the program with whatever code it likes. What it has found is written by then:
/// this was registered first, and so comes last.
void refuse_exit() {
  const RunningCore* running = running_core();
  if (running == nullptr) return;
  const Where& last = running->last_where;
  std::fprintf(stderr, "error: the kernel %s ends its process in block %u: exit is no function of the AI core\n",
               running->core.launch->launch->kernel, running->core.block);
  if (running->core.issued > 0) std::fprintf(stderr, "  --> behind the instruction at %s:%u\n", last.file, last.line);
  std::_Exit(EXIT_FAILURE);
}

__attribute__((constructor)) void watch_exit() {
  std::atexit(refuse_exit);
  std::at_quick_exit(refuse_exit);
}

}  // namespace

const char* crash_text(int signal) {
  switch (signal) {
    case SIGSEGV: return "reads or writes memory through a pointer that leads nowhere (or its stack overflowed)";
    case SIGBUS: return "accesses memory that is not there";
    case SIGILL: return "stops itself (a trap, or a path that the compiler holds for impossible)";
    case SIGABRT: return "aborts (an exception that nothing catches, a failed assert, a broken heap)";
    default: return "divides an integer by zero, or the smallest one by -1";
  }
}

std::string exception_text() {
  const std::type_info* type = abi::__cxa_current_exception_type();
  if (type == nullptr) return "";
  int status = 0;
  const std::unique_ptr<char, void (*)(void*)> name(abi::__cxa_demangle(type->name(), nullptr, nullptr, &status),
                                                    std::free);
  const std::string text = name == nullptr ? type->name() : name.get();
  try {
    throw;
  } catch (const std::exception& error) {
    return text + ": " + error.what();
  } catch (const std::string& said) {
    return "std::string: " + said;
  } catch (const char* said) {
    return text + ": " + said;
  } catch (...) {
    return text;
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

LaunchProgress launch_progress() { return {progress_steps.load(), interruptible.load() != nullptr}; }

void count_progress() { progress_steps.fetch_add(1, std::memory_order_relaxed); }

void stop_launch(double seconds) {
  const std::lock_guard<std::mutex> guard(interruptible_lock);
  LaunchState* launch = interruptible.load();
  if (launch == nullptr) return;
  if (!launch->is_interrupted.exchange(true)) stopped_after.store(seconds);
  launch->stop_from.store(0);
  wake_workers();
}

void hurry_interrupted_launch() {
  const std::lock_guard<std::mutex> guard(interruptible_lock);
  const LaunchState* launch = interruptible.load();
  if (launch != nullptr && launch->is_interrupted.load()) wake_workers();
}

void leave_stopped_launch(const Instr* instr) {
  const double seconds = stopped_after.load();
  RunningCore& running = *running_core();
  if (seconds == 0) abandon_fiber();
  Instr last;
  last.pipe = Pipe::S;
  if (instr == nullptr && running.core.issued > 0) {
    last.where = running.last_where;
    instr = &last;
  }
  raise_fault(Fault::Interrupted, instr, "look for a loop that never ends; --timeout allows more time",
              "no core has ended for %g s, and this one is still at work", seconds);
}

WorkerThread::WorkerThread() : place_(0) {
  for (;; place_ = (place_ + 1) % kMostThreads) {
    pthread_t free = 0;
    if (worker_threads[place_].compare_exchange_strong(free, pthread_self())) return;
  }
}

WorkerThread::~WorkerThread() {
  // Not while another thread sends signals: this one may be gone by then.
  const std::lock_guard<std::mutex> guard(interruptible_lock);
  worker_threads[place_].store(0);
}

InterruptGuard::InterruptGuard(LaunchState& launch) {
  note_kernel_code(launch);
  count_progress();
  stopped_after.store(0);
  struct sigaction action{};
  action.sa_sigaction = on_interrupt;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
  for (size_t i = 0; i < std::size(kInterrupts); ++i) {
    sigaction(kInterrupts[i], &action, &previous_interrupts[i]);
    // Who ignores it, or is ended by it, needs no launch to be stopped first.
    if (!is_handled(previous_interrupts[i])) sigaction(kInterrupts[i], &previous_interrupts[i], nullptr);
  }
  interruptible.store(&launch);
}

InterruptGuard::~InterruptGuard() {
  {
    const std::lock_guard<std::mutex> guard(interruptible_lock);
    interruptible.store(nullptr);
  }
  for (size_t i = 0; i < std::size(kInterrupts); ++i) sigaction(kInterrupts[i], &previous_interrupts[i], nullptr);
}

}  // namespace opkit
