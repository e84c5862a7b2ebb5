// Launches on addresses that the caller has, and the modelled clock that they advance.
#include "opkit/direct_launch.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/chip.h"
#include "core/launch.h"
#include "launch_run.h"
#include "observe/timing.h"

namespace opkit::host {
namespace {

/// Times launches for as long as somebody wants the device's clock to advance.
class Clock {
 public:
  static Clock& get() {
    static auto* clock = new Clock();
    return *clock;
  }

  void run(bool is_timed) {
    const std::lock_guard<std::mutex> guard(lock_);
    if (is_timed == is_running_) return;
    is_running_ = is_timed;
    if (is_timed) {
      Device::get().attach(&observer_);
    } else {
      Device::get().detach(&observer_);
    }
  }

  bool is_running() {
    const std::lock_guard<std::mutex> guard(lock_);
    return is_running_;
  }

  double now_us() {
    const std::lock_guard<std::mutex> guard(lock_);
    for (const LaunchTiming& timing : observer_.take()) now_us_ += timing.task_us;
    return now_us_;
  }

 private:
  Clock() : observer_(options()) {}
  static TimingOptions options() {
    TimingOptions totals_only;
    totals_only.event_limit = 0;
    return totals_only;
  }

  std::mutex lock_;
  TimingObserver observer_;
  bool is_running_ = false;
  double now_us_ = 0;
};

/// Sorted and without overlap: tensors may share their memory.
std::vector<GmRange> ranges_of(const opkit_direct_launch& launch) {
  std::vector<GmRange> ranges;
  ranges.reserve(launch.range_count);
  for (size_t i = 0; i < launch.range_count; ++i) {
    const opkit_gm_range& range = launch.ranges[i];
    const auto begin = reinterpret_cast<uint64_t>(range.data);
    if (range.bytes == 0) continue;
    GmRange one{begin, begin + range.bytes, range.is_written != 0, range.name == nullptr ? "" : range.name};
    ranges.insert(std::upper_bound(ranges.begin(), ranges.end(), one,
                                   [](const GmRange& a, const GmRange& b) { return a.begin < b.begin; }),
                  std::move(one));
  }
  size_t kept = 0;
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].begin < ranges[kept].end) {
      ranges[kept].end = std::max(ranges[kept].end, ranges[i].end);
      ranges[kept].is_written = ranges[kept].is_written || ranges[i].is_written;
    } else if (++kept != i) {
      ranges[kept] = std::move(ranges[i]);
    }
  }
  if (!ranges.empty()) ranges.resize(kept + 1);
  return ranges;
}

}  // namespace

opkit_status launch_direct(const opkit_direct_launch& given, std::string& error) {
  Launch launch;
  launch.kernel = given.kernel;
  launch.invoke = given.invoke;
  launch.arguments = given.arguments;
  launch.mode = static_cast<KernelMode>(given.mode);
  launch.block_dim = given.block_dim;
  launch.tiling_key = given.tiling_key;
  launch.ends_before_interrupt = given.ends_before_interrupt != 0;
  launch.gm = ranges_of(given);
  const LaunchRecord record = Device::get().run(launch);
  if (record.fault.fault == Fault::None) return OPKIT_OK;
  error = fault_text(record.fault);
  return OPKIT_FAULT;
}

}  // namespace opkit::host

uint32_t opkit_core_count(int32_t is_vector) {
  const opkit::Chip& chip = opkit::Device::get().chip();
  return is_vector != 0 ? chip.aiv_count : chip.aic_count;
}

uint32_t opkit_fair_cores(const opkit_core_work* work) {
  const opkit::Chip& chip = opkit::Device::get().chip();
  const double limit = std::max(1u, chip.aiv_count);
  const double cycles_per_us = chip.clock_mhz;
  const double read_us = work->read_bytes / chip.number("timing.mte2.bytes_per_cycle") / cycles_per_us;
  const double written_us = work->written_bytes / chip.number("timing.mte3.bytes_per_cycle") / cycles_per_us;
  const double work_us = std::max({work->vector_cycles / cycles_per_us, read_us, written_us});
  const double hbm_us = work->read_bytes / chip.number("timing.hbm.bytes_per_second") * 1e6;
  const double all_us = chip.number("timing.launch.all_cores_us") - chip.number("timing.launch.one_core_us");
  // Some more than those that could read as fast as HBM gives if none ever waited.
  constexpr double kSaturation = 1.35;
  const double worth = std::floor(std::sqrt(work_us * std::max(1.0, limit - 1) / all_us));
  const double saturated = hbm_us > 0 ? std::ceil(kSaturation * work_us / hbm_us) : limit;
  return static_cast<uint32_t>(std::min(limit, std::max(1.0, std::min(worth, saturated))));
}

const char* opkit_chip_name(void) { return opkit::Device::get().chip().name.c_str(); }

double opkit_modelled_us(void) { return opkit::host::Clock::get().now_us(); }

void opkit_time_launches(int32_t is_timed) { opkit::host::Clock::get().run(is_timed != 0); }

int32_t opkit_are_launches_timed(void) { return opkit::host::Clock::get().is_running() ? 1 : 0; }
