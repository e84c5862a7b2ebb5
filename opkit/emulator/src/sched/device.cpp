// The device: a pool of host threads that take the cores of a launch, each core on a fiber with memories of its own.
#include <pthread.h>

#include <algorithm>
#include <optional>
#include <thread>

#include "core/log.h"
#include "observe/builtin.h"
#include "sched/counter_readers.h"
#include "sched/signals.h"
#include "sched/worker.h"

namespace opkit {
namespace {

constexpr uint8_t kPoison = 0xff;  // a NaN in every floating type, -1 in every integer

/// The next of a sequence of numbers that is the same on every host: splitmix64.
uint64_t draw(uint64_t& state) {
  state += 0x9e3779b97f4a7c15ull;
  uint64_t drawn = state;
  drawn = (drawn ^ (drawn >> 30)) * 0xbf58476d1ce4e5b9ull;
  drawn = (drawn ^ (drawn >> 27)) * 0x94d049bb133111ebull;
  return drawn ^ (drawn >> 31);
}

/// 0 to count - 1 in an order that follows from the seed alone.
std::vector<uint32_t> shuffled(uint32_t count, uint64_t seed) {
  std::vector<uint32_t> order(count);
  for (uint32_t i = 0; i < count; ++i) order[i] = i;
  for (uint32_t i = count; i > 1; --i) std::swap(order[i - 1], order[draw(seed) % i]);
  return order;
}

void log_launch(const LaunchRecord& record) {
  if (record.fault.fault != Fault::None) {
    const FaultReport& fault = record.fault;
    const std::string where = fault.file.empty() ? "" : fault.file + ":" + std::to_string(fault.line);
    log(OPKIT_LOG_ERROR, record.kernel + " faulted: " + fault.message, where);
  } else if (opkit_logs(OPKIT_LOG_DEBUG) != 0) {
    log(OPKIT_LOG_DEBUG, record.kernel + " ran on " + std::to_string(record.block_dim) + " blocks, " +
                             std::to_string(record.instructions) + " instructions");
  }
}

}  // namespace

std::optional<uint8_t> DeviceConfig::fill() const {
  if (poison) return kPoison;
  if (seed == 0) return std::nullopt;
  uint64_t state = seed;
  // Never the zero that fresh memory has anyway.
  return static_cast<uint8_t>(1 + draw(state) % 255);
}

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
      worker.work(state, config);
      guard.lock();
      if (--busy == 0) done.notify_one();
    }
  }

  /// Runs every core of a launch on as many threads as the configuration says.
  void execute(LaunchState& launch) {
    // Asked once: the C library reads a file for the answer, which takes longer than a small launch.
    static const uint32_t usable = std::max(1u, std::thread::hardware_concurrency());
    const uint32_t wanted = config.threads != 0 ? config.threads : usable;
    const uint32_t threads = std::min(wanted, std::max(1u, launch.core_count));
    launch.active_workers = threads;
    {
      const InterruptGuard interrupt_guard(launch);
      start_threads(threads);
      if (threads > 1) {
        std::lock_guard<std::mutex> guard(pool_lock);
        job = &launch;
        job_threads = threads;
        busy = threads - 1;
        ++job_number;
        wake.notify_all();
      }
      workers[0]->work(launch, config);
      if (threads > 1) {
        std::unique_lock<std::mutex> guard(pool_lock);
        done.wait(guard, [&] { return busy == 0; });
        job = nullptr;
      }
    }
  }

  /// A launch once more, for observers: in another order, on one thread.
  FaultReport replay(LaunchState& original, const ReplayOrder& order) {
    LaunchState again;
    Reorder reorder(order);
    again.launch = original.launch;
    again.cores_per_block = original.cores_per_block;
    again.core_count = original.core_count;
    again.order = order.cores;
    again.reorder = &reorder;
    const DeviceConfig kept = config;
    config.threads = 1;
    config.poison = true;
    execute(again);
    config = kept;
    if (again.is_interrupted.load()) original.is_interrupted.store(true);
    return again.fault;
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

bool Device::is_watched() const {
  std::lock_guard<std::mutex> guard(state_->launch_lock);
  return !state_->observers.empty();
}

void Device::tell_moved(const void* from, const void* to, uint64_t bytes) {
  std::lock_guard<std::mutex> guard(state_->launch_lock);
  for (Observer* observer : state_->observers) {
    observer->memory_moved(reinterpret_cast<uint64_t>(from), reinterpret_cast<uint64_t>(to), bytes);
  }
}

LaunchRecord Device::run(const Launch& launch) {
  State& state = *state_;
  std::lock_guard<std::mutex> launch_guard(state.launch_lock);
  LaunchState job;
  job.launch = &launch;
  job.cores_per_block = cube_cores(launch.mode) + vector_cores(launch.mode);
  job.core_count = launch.block_dim * job.cores_per_block;
  if (state.config.seed != 0) job.order = shuffled(job.core_count, state.config.seed);
  job.observers = state.observers;
  if (state.config.profile) {
    job.observers.push_back(timing_observer());
  } else if (reads_system_counter(launch)) {
    job.observers.push_back(counter_observer());
  }
  if (state.config.profile && state.config.timing_only) {
    job.uncomputed = std::make_unique<Uncomputed>(launch, job.core_count);
  }
  job.has_chains = job.uncomputed == nullptr && std::none_of(job.observers.begin(), job.observers.end(),
                                                             [](const Observer* each) { return each->reads_values(); });

  LaunchInfo info;
  info.kernel = launch.kernel;
  info.chip = state.config.chip;
  info.block_dim = launch.block_dim;
  info.core_count = job.core_count;
  info.launch = &launch;
  for (Observer* observer : job.observers) observer->launch_begin(info);

  std::optional<RawWrites> raw_writes;
  if (!state.config.allows_raw_writes) job.raw_writes = &raw_writes.emplace(launch, job.core_count);
  state.execute(job);
  if (job.fault.fault == Fault::None && !job.is_interrupted.load()) job.check_raw_writes();
  if (job.fault.fault == Fault::None && !job.is_interrupted.load()) job.check_branch();
  if (job.fault.fault != Fault::None && !job.is_interrupted.load()) {
    for (Observer* observer : job.observers) observer->launch_fault(job.fault);
  }
  for (Observer* observer : job.observers) observer->launch_end();
  if (!job.is_interrupted.load()) {
    const Rerun rerun = [&](const ReplayOrder& order) { return state.replay(job, order); };
    for (Observer* observer : job.observers) observer->launch_again(rerun);
  }

  LaunchRecord record;
  record.kernel = launch.kernel;
  record.block_dim = launch.block_dim;
  record.instructions = job.instructions.load();
  record.fault = job.fault;
  // Where a time limit has ended it, a core says so.
  if (job.is_interrupted.load() && record.fault.fault != Fault::Interrupted) {
    record.fault = FaultReport();
    record.fault.fault = Fault::Interrupted;
    record.fault.kernel = launch.kernel;
    record.fault.message = "the launch was interrupted";
  }
  log_launch(record);
  return record;
}

}  // namespace opkit
