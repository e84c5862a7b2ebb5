#include "observe/timing.h"

#include <algorithm>
#include <utility>

#include "observe/builtin.h"
#include "observe/timing_kept.h"
#include "observe/timing_replay.h"

namespace opkit {

namespace {

// Never destroyed: other libraries may still launch while the process ends.
TimingObserver& process_observer() {
  static TimingObserver* observer = new TimingObserver();
  return *observer;
}

/// However many cores take part, each shows at least its first instructions on the timeline.
constexpr uint64_t kFewestEventsPerCore = 64;

/// Of a core, whose storage the next launch fills: half a megabyte.
constexpr size_t kMostKeptRecords = 1 << 12;

}  // namespace

struct TimingObserver::State {
  TimingOptions options;
  TimingCosts costs;  // of `chip` and `options`
  std::string kernel;
  std::string fault;
  const Chip* chip = nullptr;
  uint32_t block_dim = 0;
  uint64_t detail_per_core = 0;
  std::vector<std::unique_ptr<CoreRecord>> cores;
  std::vector<std::vector<Record>> storage;  // by core: of the launch before
  std::mutex lock;
  std::vector<LaunchTiming> finished;
  std::shared_ptr<KeptLaunch> kept;  // what runs, where instructions are kept
  std::vector<std::shared_ptr<const KeptLaunch>> kept_launches;
};

TimingObserver::TimingObserver(const TimingOptions& options) : state_(std::make_unique<State>()) {
  state_->options = options;
}

TimingObserver::~TimingObserver() = default;

void TimingObserver::set_options(const TimingOptions& options) {
  const bool are_costs_kept =
      options.clock_mhz == state_->options.clock_mhz && options.numbers == state_->options.numbers;
  state_->options = options;
  if (!are_costs_kept) state_->chip = nullptr;
}

void TimingObserver::launch_begin(const LaunchInfo& info) {
  state_->kernel = info.kernel;
  state_->block_dim = info.block_dim;
  // Reading hundreds of numbers by name would cost more than a small launch.
  if (info.chip != state_->chip) {
    state_->costs = read_costs(*info.chip, state_->options);
    state_->chip = info.chip;
  }
  const uint32_t core_count = std::max(1u, info.core_count);
  state_->detail_per_core = std::max(kFewestEventsPerCore, state_->options.event_limit / core_count);
  state_->cores.clear();
  state_->cores.resize(core_count);
  state_->storage.resize(core_count);
  state_->kept.reset();
  if (!state_->options.keeps_instructions) return;
  state_->kept = std::make_shared<KeptLaunch>();
  state_->kept->kernel = info.kernel;
  state_->kept->block_dim = info.block_dim;
  state_->kept->cores.resize(core_count);
}

void TimingObserver::before(const Core& core, const Instr& instr) {
  std::unique_ptr<CoreRecord>& record = state_->cores[core.index];
  if (record == nullptr) {
    record = std::make_unique<CoreRecord>(state_->costs, core, state_->detail_per_core,
                                          std::exchange(state_->storage[core.index], {}));
  }
  record->add(core, instr);
  if (state_->kept == nullptr) return;
  std::unique_ptr<KeptCore>& kept = state_->kept->cores[core.index];
  if (kept == nullptr) {
    kept = std::make_unique<KeptCore>();
    kept->block = core.block;
    kept->sub_block = core.sub_block;
    kept->kind = core.kind;
  }
  kept->keep(core, instr);
}

void TimingObserver::block_end(const Core& core) { (void)core; }

std::optional<uint64_t> TimingObserver::system_cycle(const Core& core) const {
  const std::unique_ptr<CoreRecord>& record = state_->cores[core.index];
  const TimingCosts& costs = state_->costs;
  const double cycles = record == nullptr ? costs.entry_cycles : scalar_cycle_alone(costs, *record);
  return static_cast<uint64_t>(cycles / costs.clock_mhz * costs.system_counter_mhz);
}

void TimingObserver::launch_fault(const FaultReport& report) { state_->fault = report.message; }

void TimingObserver::launch_end() {
  if (state_->options.only_counts) return state_->cores.clear();
  LaunchTiming timing;
  timing.fault = std::exchange(state_->fault, {});
  timing.kernel = state_->kernel;
  timing.chip = state_->chip->name;
  timing.block_dim = state_->block_dim;
  timing.clock_mhz = state_->costs.clock_mhz;
  const auto has = [&](SubCore kind) {
    return std::any_of(state_->cores.begin(), state_->cores.end(),
                       [&](const auto& core) { return core != nullptr && core->kind == kind; });
  };
  timing.launch_us = state_->costs.launch_us(state_->block_dim, has(SubCore::AIC) ? SubCore::AIC : SubCore::AIV);
  replay(state_->costs, state_->cores, state_->detail_per_core, timing);
  if (state_->options.lift_limits) replay_lifted(state_->costs, state_->cores, timing);
  timing.task_us = timing.launch_us + timing.total_cycles / timing.clock_mhz;
  for (const std::unique_ptr<CoreRecord>& core : state_->cores) {
    if (core == nullptr || core->records.capacity() > kMostKeptRecords) continue;
    state_->storage[core->index] = std::move(core->records);
  }
  state_->cores.clear();
  const std::lock_guard<std::mutex> guard(state_->lock);
  state_->finished.push_back(std::move(timing));
  if (state_->kept != nullptr) state_->kept_launches.push_back(std::move(state_->kept));
}

std::vector<LaunchTiming> TimingObserver::take() {
  const std::lock_guard<std::mutex> guard(state_->lock);
  return std::exchange(state_->finished, {});
}

size_t TimingObserver::count() const {
  const std::lock_guard<std::mutex> guard(state_->lock);
  return state_->finished.size();
}

Observer* timing_observer() { return &process_observer(); }

Observer* counter_observer() {
  static TimingObserver* observer = [] {
    TimingOptions options;
    options.event_limit = 0;
    options.only_counts = true;
    return new TimingObserver(options);
  }();
  return observer;
}

void set_timing_options(const TimingOptions& options) { process_observer().set_options(options); }

std::vector<std::shared_ptr<const KeptLaunch>> TimingObserver::take_kept() {
  const std::lock_guard<std::mutex> guard(state_->lock);
  return std::exchange(state_->kept_launches, {});
}

std::vector<std::shared_ptr<const KeptLaunch>> take_kept_launches() { return process_observer().take_kept(); }

std::vector<LaunchTiming> take_timings() { return process_observer().take(); }

size_t count_timings() { return process_observer().count(); }

}  // namespace opkit
