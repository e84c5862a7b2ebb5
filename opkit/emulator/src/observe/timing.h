/// The timing model as an observer: it records what each core issues and, at the end of the launch, replays it on an
/// in-order scoreboard with the numbers of the chip. It is a model, not a measurement.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "observe/observer.h"

namespace opkit {

/// A limit of the kernel or the chip that a launch can be timed without, to see what it costs.
enum class Limit : uint8_t {
#define OPKIT_LIMIT(name, text) name,
#include "observe/timing_limits.inc"
#undef OPKIT_LIMIT
  kCount
};
constexpr uint32_t kLimitCount = static_cast<uint32_t>(Limit::kCount);
const char* limit_name(Limit limit);

struct TimingOptions {
  uint64_t event_limit = 200000;    ///< timeline events kept per launch; totals always count everything
  double clock_mhz = 0;             ///< 0: the chip's own
  bool lift_limits = false;         ///< also time the launch without each limit in turn
  bool keeps_instructions = false;  ///< for take_kept_launches()
  /// Numbers that stand in for the chip's own, by key: for calibration.
  std::vector<std::pair<std::string, double>> numbers = {};
  bool only_counts = false;  ///< answers system_cycle(), and times nothing
};

/// One sub-core's share of a launch. Cycles count from the launch's first instruction.
struct CoreTiming {
  uint32_t block = 0;
  uint32_t sub_block = 0;
  SubCore kind = SubCore::AIV;
  double start_cycle = 0;
  double end_cycle = 0;
  double busy_cycles[kPipeCount] = {};
  double wait_cycles[kPipeCount] = {};  ///< for flags, barriers and other cores, while the pipe had work to do
  uint64_t instructions[kPipeCount] = {};
  uint64_t gm_read_bytes = 0;
  uint64_t gm_write_bytes = 0;
  uint64_t l2_read_hit_bytes = 0;
  uint64_t l2_write_hit_bytes = 0;
  uint64_t hbm_read_bytes = 0;
  uint64_t hbm_write_bytes = 0;
};

/// All executions of one instruction on one source line.
struct LineTiming {
  std::string file;
  uint32_t line = 0;
  Op op = Op::kCount;
  Pipe pipe = Pipe::S;
  uint64_t count = 0;
  Space from = Space::kCount;  ///< of copies: the memory read
  Space to = Space::kCount;    ///< and the one written
  double cycles = 0;           ///< pipe time, summed over cores
  double conflict_cycles = 0;  ///< of these, what UB bank conflicts added
  double wait_cycles = 0;      ///< that flags, barriers or other cores held its pipe before it
  uint64_t bytes = 0;          ///< moved, for copies
  uint64_t bursts = 0;
  uint64_t unaligned = 0;   ///< copies with a burst off the alignment that global memory likes
  uint64_t operations = 0;  ///< arithmetic, one for each element of a vector instruction, two for each product of M
};

struct TimelineEvent {
  uint32_t core = 0;  ///< index into LaunchTiming::cores
  uint32_t line = 0;  ///< index into LaunchTiming::lines
  double start_cycle = 0;
  double end_cycle = 0;
  uint64_t bytes = 0;
  uint64_t l2_bytes = 0;  ///< of `bytes`, what L2 served or took
};

/// What stands for a line or a core that there is not.
constexpr uint32_t kNoIndex = ~uint32_t{0};

/// What a pipe waits for while it has work to do.
enum class WaitReason : uint8_t {
  Data,     ///< a flag of the pipe that makes what it reads
  Buffer,   ///< a flag of the pipe that has still to read where it writes
  Barrier,  ///< PipeBarrier
  Cores,    ///< other cores
  kCount
};

struct TimelineWait {
  uint32_t core = 0;  ///< index into LaunchTiming::cores
  Pipe pipe = Pipe::S;
  WaitReason reason = WaitReason::Data;
  Pipe cause = Pipe::S;  ///< the pipe that sets the flag; of barriers and other cores the pipe itself
  double start_cycle = 0;
  double end_cycle = 0;
  uint32_t line = kNoIndex;        ///< index into LaunchTiming::lines, of what the pipe does next; or of the barrier
  uint32_t cause_core = kNoIndex;  ///< of waits for other cores, the one whose signal ended it
};

/// A stretch in which the scalar pipe issues without a gap.
struct ScalarSpan {
  uint32_t core = 0;
  double start_cycle = 0;
  double end_cycle = 0;
};

struct LaunchTiming {
  std::string kernel;
  std::string chip;
  uint32_t block_dim = 0;
  double clock_mhz = 0;
  std::string fault;     ///< why the launch did not come to its end; empty where it did
  double launch_us = 0;  ///< what the task takes beside its slowest core
  double task_us = 0;
  double total_cycles = 0;
  std::vector<CoreTiming> cores;
  std::vector<LineTiming> lines;
  std::vector<TimelineEvent> events;
  std::vector<TimelineWait> waits;
  std::vector<ScalarSpan> scalar;  ///< each core's in order
  uint64_t events_dropped = 0;     ///< instructions beyond the event limit
  uint64_t gm_read_bytes = 0;
  uint64_t gm_write_bytes = 0;
  uint64_t l2_hit_bytes = 0;
  uint64_t hbm_read_bytes = 0;
  uint64_t hbm_write_bytes = 0;
  uint64_t l2_lost_bytes = 0;  ///< read from HBM again, because L2 had given them up
  uint64_t ub_bytes_used = 0;  ///< highest UB address that any core used
  /// By Limit: cycles of the slowest core without it; empty unless asked for.
  std::vector<double> lifted_cycles;
};

struct KeptLaunch;

class TimingObserver final : public Observer {
 public:
  explicit TimingObserver(const TimingOptions& options = {});
  ~TimingObserver() override;

  void launch_begin(const LaunchInfo& info) override;
  void before(const Core& core, const Instr& instr) override;
  bool reads_values() const override { return false; }
  void block_end(const Core& core) override;
  std::optional<uint64_t> system_cycle(const Core& core) const override;
  void launch_fault(const FaultReport& report) override;
  void launch_end() override;

  /// For launches that begin later.
  void set_options(const TimingOptions& options);
  /// The launches timed since the last call, oldest first.
  std::vector<LaunchTiming> take();
  /// How many launches the next take() returns.
  size_t count() const;
  std::vector<std::shared_ptr<const KeptLaunch>> take_kept();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// The observer that DeviceConfig::profile attaches: what it does next, and what it has timed since the last call.
OPKIT_API void set_timing_options(const TimingOptions& options);
OPKIT_API std::vector<LaunchTiming> take_timings();
OPKIT_API size_t count_timings();

/// A launch as JSON: what opkit.profiling.Timeline reads.
OPKIT_API std::string timing_json(const LaunchTiming& timing);

}  // namespace opkit
