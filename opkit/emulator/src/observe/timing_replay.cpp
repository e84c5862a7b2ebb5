#include "observe/timing_replay.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <tuple>
#include <utility>

#include "observe/timing_memory.h"

namespace opkit {
namespace {

constexpr uint32_t at(Pipe pipe) { return static_cast<uint32_t>(pipe); }

/// One core on the scoreboard.
class CoreReplay {
 public:
  CoreReplay(const TimingCosts& costs, const CoreRecord& record, uint32_t index, uint64_t event_limit,
             LaunchTiming& timing)
      : costs_(costs),
        record_(record),
        index_(index),
        events_left_(event_limit),
        timing_(timing),
        copy_cycles_(record.lines.size(), 0.0) {}

  void begin(double cycle) {
    start_ = cycle;
    std::fill(free_, free_ + kPipeCount, cycle);
    std::fill(done_, done_ + kPipeCount, cycle);
  }

  /// Runs until the next copy through GM and returns true with its start, or false at the end of the kernel.
  bool advance(double& copy_start);
  /// Serves the copy that advance() stopped at.
  void copy(SharedBandwidth& hbm, SharedBandwidth& writes, L2Contents& l2);
  double finish();

  const std::vector<double>& copy_cycles() const { return copy_cycles_; }

 private:
  double& scalar() { return free_[at(Pipe::S)]; }
  void vector(const Record& record);
  void local(const Record& record);
  void set_flag(const Record& record);
  void wait_flag(const Record& record);
  void barrier(const Record& record);
  /// Counts a pipe busy from `begin` to `end`, what it overlaps with earlier work only once.
  void occupy(uint32_t pipe, double begin, double end) {
    busy_[pipe] += std::max(0.0, end - std::max(begin, done_[pipe]));
    done_[pipe] = std::max(done_[pipe], end);
  }
  void note(uint32_t line, double begin, double end, uint64_t bytes) {
    if (events_left_ == 0) {
      ++timing_.events_dropped;
      return;
    }
    --events_left_;
    timing_.events.push_back({index_, line, begin, end, bytes});
  }

  const TimingCosts& costs_;
  const CoreRecord& record_;
  uint32_t index_;
  uint64_t events_left_;
  LaunchTiming& timing_;
  std::vector<double> copy_cycles_;
  size_t next_ = 0;
  size_t next_copy_ = 0;
  double start_ = 0;
  double vector_end_ = -1e300;
  double free_[kPipeCount] = {};  ///< earliest start of the pipe's next instruction; S: the scalar pipe's clock
  double done_[kPipeCount] = {};  ///< when all that it was given has taken effect
  double busy_[kPipeCount] = {};
  double flags_[kPipeCount][kPipeCount][kEventCount] = {};
};

bool CoreReplay::advance(double& copy_start) {
  for (; next_ < record_.records.size(); ++next_) {
    const Record& record = record_.records[next_];
    switch (record.kind) {
      case RecordKind::Vector: vector(record); break;
      case RecordKind::Local: local(record); break;
      case RecordKind::SetFlag: set_flag(record); break;
      case RecordKind::WaitFlag: wait_flag(record); break;
      case RecordKind::Barrier: barrier(record); break;
      case RecordKind::Scalar:
        note(record.line, scalar(), scalar() + record.scalar_cycles, 0);
        scalar() += record.scalar_cycles;
        busy_[at(Pipe::S)] += record.scalar_cycles;
        break;
      case RecordKind::Copy: copy_start = std::max(free_[record.pipe], scalar() + record.scalar_cycles); return true;
    }
  }
  return false;
}

void CoreReplay::vector(const Record& record) {
  constexpr uint32_t kVector = at(Pipe::V);
  const double end =
      std::max({vector_end_ + record.busy_cycles, free_[kVector] + record.busy_cycles - record.first_stall,
                scalar() + record.path_cycles});
  const bool is_single = record.peer != 0;
  const double cycles = is_single ? record.path_cycles - record.scalar_cycles : record.busy_cycles;
  if (is_single) note(record.line, end - cycles, end + costs_.vector_startup, 0);
  // The stall is the drain of the instruction before, which its own time covers.
  occupy(kVector, end - (record.busy_cycles - record.first_stall), end + costs_.vector_startup);
  free_[kVector] = vector_end_ = end;
  scalar() += record.scalar_cycles;
  busy_[at(Pipe::S)] += record.scalar_cycles;
}

void CoreReplay::local(const Record& record) {
  const uint32_t pipe = record.pipe;
  scalar() += record.scalar_cycles;
  busy_[at(Pipe::S)] += record.scalar_cycles;
  const double start = std::max(free_[pipe], scalar());
  const double end = start + record.busy_cycles;
  note(record.line, start, end + record.path_cycles, 0);
  occupy(pipe, start, end + record.path_cycles);
  free_[pipe] = end;
  if (pipe == at(Pipe::V)) vector_end_ = end;
}

void CoreReplay::set_flag(const Record& record) {
  scalar() += record.scalar_cycles;
  busy_[at(Pipe::S)] += record.scalar_cycles;
  const double source = record.pipe == at(Pipe::S) ? scalar() : done_[record.pipe];
  flags_[record.pipe][record.peer][record.event] = std::max(scalar(), source);
}

void CoreReplay::wait_flag(const Record& record) {
  scalar() += record.scalar_cycles;
  busy_[at(Pipe::S)] += record.scalar_cycles;
  double& free = free_[record.peer];
  free = std::max(free, flags_[record.pipe][record.peer][record.event]);
}

void CoreReplay::barrier(const Record& record) {
  scalar() += record.scalar_cycles;
  busy_[at(Pipe::S)] += record.scalar_cycles;
  if (record.pipe != at(Pipe::ALL)) {
    free_[record.pipe] = std::max(free_[record.pipe], done_[record.pipe]);
    return;
  }
  double all = scalar();
  for (double done : done_) all = std::max(all, done);
  std::fill(free_, free_ + kPipeCount, all);
}

void CoreReplay::copy(SharedBandwidth& hbm, SharedBandwidth& writes, L2Contents& l2) {
  const Record& record = record_.records[next_++];
  const CopyRecord& shape = record_.copies[next_copy_++];
  const bool is_read = record.peer != 0;
  const CopyCosts& law = is_read ? costs_.mte2 : (record.pipe == at(Pipe::FIX) ? costs_.fixpipe : costs_.mte3);
  const double hit_rate = record_.kind == SubCore::AIC ? costs_.l2_hit_aic_rate : law.l2_hit_bytes_per_cycle;
  scalar() += record.scalar_cycles;
  busy_[at(Pipe::S)] += record.scalar_cycles;
  const double start = std::max(free_[record.pipe], scalar());

  BurstTraffic traffic;
  bool is_aligned = true;
  for (uint32_t burst = 0; burst < shape.burst_count; ++burst) {
    const uint64_t address = shape.address + burst * shape.stride;
    is_aligned &= address % costs_.alignment_bytes == 0;
    if (is_read)
      l2.read(address, shape.burst_bytes, traffic);
    else
      l2.write(address, shape.burst_bytes, traffic);
  }
  const uint64_t bytes = uint64_t{shape.burst_count} * shape.burst_bytes;
  // L2 counts whole lines; what the core moves is the copy's own bytes, split in the same proportion.
  const uint64_t touched = traffic.hit_bytes + traffic.hbm_read_bytes;
  const double hit =
      touched == 0 ? 0
                   : static_cast<double>(bytes) * static_cast<double>(traffic.hit_bytes) / static_cast<double>(touched);
  const double rate = law.bytes_per_cycle * (is_aligned ? 1 : law.unaligned_rate);
  const double moving = (static_cast<double>(bytes) - hit) / rate + (hit > 0 ? hit / hit_rate : 0);
  double end = start + law.instruction_cycles + law.burst_cycles * shape.burst_count + moving;
  const double from_hbm = static_cast<double>(traffic.hbm_read_bytes + traffic.hbm_write_bytes);
  if (from_hbm > 0) {
    const double wasted = traffic.hbm_read_bytes > 0 ? costs_.hbm_burst_bytes * shape.burst_count : 0;
    // A write is done when it is in L2; what leaves L2 to make room only takes HBM time from others.
    const double through = hbm.take(start, from_hbm + wasted);
    if (is_read) end = std::max(end, through);
  }
  if (!is_read) end = std::max(end, writes.take(start, static_cast<double>(bytes)));

  note(record.line, start, end + law.startup_cycles, bytes);
  copy_cycles_[record.line] += end - start;
  occupy(record.pipe, start, end + law.startup_cycles);
  free_[record.pipe] = end;
  (is_read ? timing_.gm_read_bytes : timing_.gm_write_bytes) += bytes;
  timing_.l2_hit_bytes += traffic.hit_bytes;
  timing_.hbm_read_bytes += traffic.hbm_read_bytes;
  timing_.hbm_write_bytes += traffic.hbm_write_bytes;
}

double CoreReplay::finish() {
  CoreTiming& core = timing_.cores[index_];
  core.block = record_.block;
  core.sub_block = record_.sub_block;
  core.kind = record_.kind;
  core.start_cycle = start_;
  core.end_cycle = std::max(start_, scalar());
  for (uint32_t pipe = 0; pipe < kPipeCount; ++pipe) {
    core.end_cycle = std::max(core.end_cycle, done_[pipe]);
    core.busy_cycles[pipe] = busy_[pipe];
  }
  return core.end_cycle;
}

/// Joins the cores' line totals by file, line, instruction and pipe, and renames the events' lines to match.
void join_lines(const std::vector<const CoreRecord*>& records, const std::vector<std::unique_ptr<CoreReplay>>& cores,
                LaunchTiming& timing) {
  std::map<std::tuple<std::string, uint32_t, Op, Pipe>, uint32_t> known;
  std::vector<std::vector<uint32_t>> renamed(records.size());
  for (size_t core = 0; core < records.size(); ++core) {
    for (size_t i = 0; i < records[core]->lines.size(); ++i) {
      const LineTotals& totals = records[core]->lines[i];
      const auto key = std::make_tuple(std::string(totals.file), totals.line, totals.op, totals.pipe);
      const auto [found, is_new] = known.emplace(key, static_cast<uint32_t>(timing.lines.size()));
      if (is_new) {
        LineTiming line;
        line.file = totals.file;
        line.line = totals.line;
        line.op = totals.op;
        line.pipe = totals.pipe;
        timing.lines.push_back(line);
      }
      LineTiming& line = timing.lines[found->second];
      line.count += totals.count;
      line.cycles += totals.cycles + cores[core]->copy_cycles()[i];
      line.conflict_cycles += totals.conflict_cycles;
      line.bytes += totals.bytes;
      renamed[core].push_back(found->second);
    }
  }
  for (TimelineEvent& event : timing.events) event.line = renamed[event.core][event.line];
}

}  // namespace

void replay(const TimingCosts& costs, const std::vector<std::unique_ptr<CoreRecord>>& cores, uint64_t events_per_core,
            LaunchTiming& timing) {
  std::vector<const CoreRecord*> records;
  for (const std::unique_ptr<CoreRecord>& core : cores) {
    if (core != nullptr) records.push_back(core.get());
  }
  timing.cores.resize(records.size());
  std::vector<std::unique_ptr<CoreReplay>> replays;
  for (size_t i = 0; i < records.size(); ++i) {
    replays.push_back(
        std::make_unique<CoreReplay>(costs, *records[i], static_cast<uint32_t>(i), events_per_core, timing));
    timing.events_dropped += records[i]->dropped;
  }

  SharedBandwidth hbm(costs.hbm_bytes_per_cycle);
  SharedBandwidth writes(costs.write_bytes_per_cycle);
  L2Contents l2(costs.l2_bytes);
  using Pending = std::pair<double, size_t>;  // start of the next copy, core
  std::priority_queue<Pending, std::vector<Pending>, std::greater<Pending>> pending;
  size_t next_block = std::min<size_t>(replays.size(), costs.core_limit);
  // A core that ends takes the next block that has none yet.
  const auto run = [&](size_t core) {
    double copy_start = 0;
    while (!replays[core]->advance(copy_start)) {
      const double end = replays[core]->finish();
      timing.total_cycles = std::max(timing.total_cycles, end);
      if (next_block == replays.size()) return;
      core = next_block++;
      replays[core]->begin(end);
    }
    pending.emplace(copy_start, core);
  };
  const size_t first_blocks = next_block;
  for (size_t core = 0; core < first_blocks; ++core) {
    replays[core]->begin(0);
    run(core);
  }
  while (!pending.empty()) {
    const size_t core = pending.top().second;
    pending.pop();
    replays[core]->copy(hbm, writes, l2);
    run(core);
  }
  join_lines(records, replays, timing);
}

}  // namespace opkit
