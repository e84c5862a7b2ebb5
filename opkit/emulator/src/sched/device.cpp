// The device: a pool of host threads that take blocks off a launch, each block on a fiber with memories of its own.
#include <pthread.h>
#include <sys/mman.h>

#include <csignal>

#include <algorithm>
#include <condition_variable>
#include <cstring>
#include <thread>

#include "core/launch_state.h"
#include "memory/bounds.h"
#include "observe/builtin.h"
#include "sched/fiber.h"

namespace opkit {
namespace {

constexpr uint8_t kPoison = 0xff;  // a NaN in every floating type, -1 in every integer
constexpr size_t kSignalStackBytes = 64 * 1024;

/// One host thread's share of the device: a fiber and the memories of the sub-core that it plays.
struct Worker {
  Fiber fiber;
  RunningCore running;
  LaunchState* launch = nullptr;
  uint8_t* memory = nullptr;
  size_t memory_bytes = 0;
  const Chip* memory_chip = nullptr;
  bool is_in_kernel = false;
  std::vector<char> signal_stack = std::vector<char>(kSignalStackBytes);

  ~Worker() {
    if (memory != nullptr) munmap(memory, memory_bytes);
  }

  /// Maps the local memories of one sub-core, each at a multiple of 4096 bytes; untouched pages cost nothing.
  void map_memories(const Chip& chip) {
    if (memory_chip == &chip) return;
    if (memory != nullptr) munmap(memory, memory_bytes);
    constexpr size_t kPage = 4096;
    memory_bytes = 0;
    for (uint32_t bytes : chip.space_bytes) memory_bytes += (bytes + kPage - 1) / kPage * kPage;
    void* mapped = mmap(nullptr, memory_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (mapped == MAP_FAILED) throw std::bad_alloc();
    memory = static_cast<uint8_t*>(mapped);
    memory_chip = &chip;
    size_t offset = 0;
    for (uint32_t space = 1; space < 8; ++space) {
      running.core.space_base[space] = memory + offset;
      running.core.space_bytes[space] = chip.space_bytes[space];
      offset += (chip.space_bytes[space] + kPage - 1) / kPage * kPage;
    }
  }
};

thread_local Worker* this_thread_worker = nullptr;

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

/// A crash inside kernel code ends the launch; any other goes to whoever handled it before.
void on_crash(int signal, siginfo_t* info, void* context) {
  Worker* worker = this_thread_worker;
  if (worker != nullptr && worker->is_in_kernel) {
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

/// Handlers are in place only while a launch runs, so that the host program's own are never lost.
class CrashGuard {
 public:
  CrashGuard() {
    struct sigaction action{};
    action.sa_sigaction = on_crash;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK | SA_NODEFER;
    for (size_t i = 0; i < 3; ++i) sigaction(kCaughtSignals[i], &action, &previous_actions[i]);
  }
  ~CrashGuard() {
    for (size_t i = 0; i < 3; ++i) sigaction(kCaughtSignals[i], &previous_actions[i], nullptr);
  }
};

void run_kernel(void* context) {
  auto* worker = static_cast<Worker*>(context);
  const Launch& launch = *worker->launch->launch;
  launch.invoke(launch.arguments);
}

/// Gives the core of a new block its number and its state after reset.
void reset_core(Worker& worker, LaunchState& state, uint32_t block, const DeviceConfig& config) {
  RunningCore& running = worker.running;
  Core& core = running.core;
  Core fresh;
  std::copy(std::begin(core.space_base), std::end(core.space_base), fresh.space_base);
  std::copy(std::begin(core.space_bytes), std::end(core.space_bytes), fresh.space_bytes);
  fresh.chip = config.chip;
  fresh.launch = &state;
  fresh.block = fresh.index = block;
  fresh.block_count = state.launch->block_dim;
  core = fresh;
  running.kernel_pipe = nullptr;
  running.variables = {block, state.launch->block_dim, 0, 1, state.launch->tiling_key, false};
  if (config.poison) std::memset(worker.memory, kPoison, worker.memory_bytes);
}

void work(Worker& worker, LaunchState& state, const DeviceConfig& config) {
  stack_t stack{};
  stack_t previous{};
  stack.ss_sp = worker.signal_stack.data();
  stack.ss_size = worker.signal_stack.size();
  sigaltstack(&stack, &previous);
  this_thread_worker = &worker;
  worker.launch = &state;
  worker.map_memories(*config.chip);
  for (;;) {
    const uint32_t block = state.next_block.fetch_add(1);
    if (block >= state.launch->block_dim || block > state.stop_above.load()) break;
    reset_core(worker, state, block, config);
    set_running_core(&worker.running);
    worker.is_in_kernel = true;
    worker.fiber.run(run_kernel, &worker);
    worker.is_in_kernel = false;
    set_running_core(nullptr);
    state.instructions.fetch_add(worker.running.core.issued);
    for (Observer* observer : state.observers) observer->block_end(worker.running.core);
  }
  this_thread_worker = nullptr;
  sigaltstack(&previous, nullptr);
}

}  // namespace

void abandon_fiber() { this_thread_worker->fiber.leave(); }

struct Device::State {
  std::mutex launch_lock;  // one launch at a time
  DeviceConfig config;
  std::vector<Observer*> observers;
  std::vector<std::unique_ptr<Worker>> workers;

  // The pool: threads 1.. wait for `job` to change; the launching thread plays worker 0 itself.
  std::mutex pool_lock;
  std::condition_variable wake;
  std::condition_variable done;
  std::vector<std::thread> threads;
  LaunchState* job = nullptr;
  uint64_t job_number = 0;
  uint32_t job_threads = 0;
  uint32_t busy = 0;
  bool is_closing = false;

  void start_threads(uint32_t count) {
    while (workers.size() < count) workers.push_back(std::make_unique<Worker>());
    while (threads.size() + 1 < count) {
      const auto index = static_cast<uint32_t>(threads.size() + 1);
      threads.emplace_back([this, index] { thread_loop(index); });
    }
  }

  void thread_loop(uint32_t index) {
    uint64_t seen = 0;
    std::unique_lock<std::mutex> guard(pool_lock);
    for (;;) {
      wake.wait(guard, [&] { return is_closing || (job != nullptr && job_number != seen && index < job_threads); });
      if (is_closing) return;
      seen = job_number;
      LaunchState& state = *job;
      Worker& worker = *workers[index];
      guard.unlock();
      work(worker, state, config);
      guard.lock();
      if (--busy == 0) done.notify_one();
    }
  }

  ~State() {
    {
      std::lock_guard<std::mutex> guard(pool_lock);
      is_closing = true;
    }
    wake.notify_all();
    for (std::thread& thread : threads) thread.join();
  }
};

Device::Device() : state_(std::make_unique<State>()) { state_->config.chip = &all_chips().front(); }
Device::~Device() = default;

// Never destroyed: at exit other libraries' destructors may still launch, and idle threads end with the process.
Device& Device::get() {
  static Device* device = [] {
    auto* created = new Device();
    // The pool's threads do not survive a fork: the child starts with a pool of its own, same configuration.
    pthread_atfork(nullptr, nullptr, [] {
      Device& inherited = Device::get();
      auto fresh = std::make_unique<State>();
      fresh->config = inherited.state_->config;
      fresh->observers = inherited.state_->observers;
      (void)inherited.state_.release();
      inherited.state_ = std::move(fresh);
    });
    return created;
  }();
  return *device;
}

void Device::configure(const DeviceConfig& config) {
  std::lock_guard<std::mutex> guard(state_->launch_lock);
  state_->config = config;
  if (config.chip == nullptr) state_->config.chip = &all_chips().front();
}

DeviceConfig Device::config() const {
  std::lock_guard<std::mutex> guard(state_->launch_lock);
  return state_->config;
}

const Chip& Device::chip() const {
  std::lock_guard<std::mutex> guard(state_->launch_lock);
  return *state_->config.chip;
}

void Device::attach(Observer* observer) {
  std::lock_guard<std::mutex> guard(state_->launch_lock);
  state_->observers.push_back(observer);
}

void Device::detach(Observer* observer) {
  std::lock_guard<std::mutex> guard(state_->launch_lock);
  auto& observers = state_->observers;
  observers.erase(std::remove(observers.begin(), observers.end(), observer), observers.end());
}

LaunchRecord Device::run(const Launch& launch) {
  State& state = *state_;
  std::lock_guard<std::mutex> launch_guard(state.launch_lock);
  LaunchState job;
  job.launch = &launch;
  job.observers = state.observers;
  if (Observer* timing = state.config.profile ? timing_observer() : nullptr) job.observers.push_back(timing);

  LaunchInfo info;
  info.kernel = launch.kernel;
  info.chip = state.config.chip;
  info.block_dim = info.core_count = launch.block_dim;
  for (Observer* observer : job.observers) observer->launch_begin(info);

  const uint32_t wanted =
      state.config.threads != 0 ? state.config.threads : std::max(1u, std::thread::hardware_concurrency());
  const uint32_t threads = std::min(wanted, std::max(1u, launch.block_dim));
  {
    const CrashGuard crash_guard;
    state.start_threads(threads);
    if (threads > 1) {
      std::lock_guard<std::mutex> guard(state.pool_lock);
      state.job = &job;
      state.job_threads = threads;
      state.busy = threads - 1;
      ++state.job_number;
      state.wake.notify_all();
    }
    work(*state.workers[0], job, state.config);
    if (threads > 1) {
      std::unique_lock<std::mutex> guard(state.pool_lock);
      state.done.wait(guard, [&] { return state.busy == 0; });
      state.job = nullptr;
    }
  }
  for (Observer* observer : job.observers) observer->launch_end();

  LaunchRecord record;
  record.kernel = launch.kernel;
  record.block_dim = launch.block_dim;
  record.instructions = job.instructions.load();
  record.fault = job.fault;
  return record;
}

}  // namespace opkit
