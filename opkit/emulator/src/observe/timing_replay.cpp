#include "observe/timing_replay.h"

#include <algorithm>
#include <functional>
#include <map>
#include <queue>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>

#include "observe/timing_core.h"

namespace opkit {
namespace {

/// All cores of a launch on one scoreboard.
class LaunchReplay {
 public:
  LaunchReplay(const TimingCosts& costs, const std::vector<const CoreRecord*>& records, uint64_t events_per_core,
               Lifted lifted, LaunchTiming& timing)
      : timing_(timing), memory_(costs, records.size(), lifted), cross_(records) {
    timing.cores.resize(records.size());
    for (size_t i = 0; i < records.size(); ++i) {
      cores_.push_back(std::make_unique<CoreReplay>(costs, *records[i], i, events_per_core, lifted, timing));
      not_begun_[kind_of(i)].push(i);
    }
    states_.resize(records.size(), State::NotBegun);
    for (uint32_t kind = 0; kind < 2; ++kind) {
      limit_[kind] = std::min<size_t>(costs.core_limit[kind], not_begun_[kind].size());
    }
    if (costs.drift_share > 0) note_shared_reads(records);
    if (!costs.has_inputs_in_l2) return;
    for (const CoreRecord* record : records) fill_l2(*record);
  }

  void run() {
    std::vector<size_t> first;
    for (uint32_t kind = 0; kind < 2; ++kind) {
      for (size_t i = 0; i < limit_[kind]; ++i) first.push_back(take_next(kind));
    }
    for (size_t core : first) {
      begin(core, 0);
      advance(core);
    }
    wake();
    while (serve_next() || begin_stuck()) wake();
    // Nothing can be left waiting: the launch itself came to its end.
    for (size_t core = 0; core < cores_.size(); ++core) {
      if (states_[core] == State::Runs || states_[core] == State::Waits) end(core);
    }
  }

  const std::vector<std::unique_ptr<CoreReplay>>& cores() const { return cores_; }

 private:
  using Pending = std::pair<double, size_t>;                    // start of a copy, its owner
  enum class State : uint8_t { NotBegun, Runs, Waits, Ended };  // Waits: in blocked_

  /// Reads that several cores make hold these in step.
  void note_shared_reads(const std::vector<const CoreRecord*>& records) {
    std::unordered_map<uint64_t, uint32_t> reader;
    for (const CoreRecord* core : records) {
      size_t next = 0;
      for (const Record& record : core->records) {
        if (record.kind != RecordKind::Copy) continue;
        const uint64_t address = core->copies[next++].address;
        if (record.peer == 0) continue;
        if (reader.emplace(address, core->index).first->second != core->index) memory_.read_by_several.insert(address);
      }
    }
  }

  /// With all that a core reads.
  void fill_l2(const CoreRecord& core) {
    size_t next = 0;
    BurstTraffic traffic;
    for (const Record& record : core.records) {
      if (record.kind != RecordKind::Copy) continue;
      const CopyRecord& copy = core.copies[next++];
      if (record.peer == 0 || copy.bypasses_l2) continue;
      for (uint32_t burst = 0; burst < copy.burst_count; ++burst) {
        memory_.l2.touch(copy.address + burst * copy.stride, copy.burst_bytes, L2Contents::Access::Read, traffic);
      }
    }
  }

  uint32_t kind_of(size_t core) const { return static_cast<uint32_t>(cores_[core]->record().kind); }

  void begin(size_t core, double cycle) {
    cores_[core]->begin(cycle);
    states_[core] = State::Runs;
  }

  double end(size_t core) {
    states_[core] = State::Ended;
    const double cycle = cores_[core]->finish();
    timing_.total_cycles = std::max(timing_.total_cycles, cycle);
    return cycle;
  }

  size_t take_next(uint32_t kind) {
    const size_t core = not_begun_[kind].front();
    not_begun_[kind].pop();
    return core;
  }

  void advance(size_t core) {
    for (;;) {
      starts_.clear();
      const bool has_ended = cores_[core]->advance(cross_, starts_);
      for (const CopyStart& start : starts_) pending_.emplace(start.cycle, core * kPipeCount + start.pipe);
      if (!has_ended) {
        if (!cores_[core]->waits_for_cores() || states_[core] == State::Waits) return;
        states_[core] = State::Waits;
        return blocked_.push_back(core);
      }
      // A core that ends leaves its place to the next block that has none yet.
      const double cycle = end(core);
      const uint32_t kind = kind_of(core);
      if (not_begun_[kind].empty()) return;
      core = take_next(kind);
      begin(core, cycle);
    }
  }

  /// Serves what comes first in time, a copy that begins or one that ends; false when there is neither.
  bool serve_next() {
    FairShare& link = memory_.hbm.next_end() <= memory_.writes.next_end() ? memory_.hbm : memory_.writes;
    if (!pending_.empty() && pending_.top().first <= link.next_end()) {
      const size_t owner = pending_.top().second;
      pending_.pop();
      if (cores_[owner / kPipeCount]->copy(owner % kPipeCount, memory_)) advance(owner / kPipeCount);
      return true;
    }
    if (link.is_idle()) return false;
    const double cycle = link.next_end();
    const size_t owner = link.end_next();
    if (owner == FairShare::kNobody) return true;
    cores_[owner / kPipeCount]->end_transfer(owner % kPipeCount, cycle);
    advance(owner / kPipeCount);
    return true;
  }

  /// Lets every core that waits for another look again, for as long as that brings news.
  void wake() {
    while (cross_.take_news()) {
      for (size_t core : std::exchange(blocked_, {})) {
        if (states_[core] == State::Ended) continue;
        states_[core] = State::Runs;
        advance(core);
      }
    }
  }

  /// When every core that runs waits for one that has no place yet, the emulator runs it all the same.
  bool begin_stuck() {
    for (uint32_t kind = 0; kind < 2; ++kind) {
      if (not_begun_[kind].empty()) continue;
      const size_t core = take_next(kind);
      begin(core, timing_.total_cycles);
      advance(core);
      wake();
      return true;
    }
    return false;
  }

  LaunchTiming& timing_;
  SharedMemory memory_;
  CrossReplay cross_;
  std::vector<std::unique_ptr<CoreReplay>> cores_;
  std::queue<size_t> not_begun_[2];  ///< by SubCore
  size_t limit_[2] = {};
  std::vector<State> states_;  ///< by core
  std::vector<size_t> blocked_;
  std::vector<CopyStart> starts_;  ///< of the core that advances
  std::priority_queue<Pending, std::vector<Pending>, std::greater<Pending>> pending_;
};

std::vector<const CoreRecord*> present(const std::vector<std::unique_ptr<CoreRecord>>& cores) {
  std::vector<const CoreRecord*> records;
  for (const std::unique_ptr<CoreRecord>& core : cores) {
    if (core != nullptr) records.push_back(core.get());
  }
  return records;
}

/// Joins the cores' line totals by file, line, instruction and pipe, and renames the events' lines to match.
void join_lines(const std::vector<std::unique_ptr<CoreReplay>>& cores, LaunchTiming& timing) {
  std::map<std::tuple<std::string_view, uint32_t, Op, Pipe>, uint32_t> known;
  std::vector<std::vector<uint32_t>> renamed(cores.size());
  for (size_t core = 0; core < cores.size(); ++core) {
    const std::vector<LineTotals>& lines = cores[core]->record().lines;
    for (size_t i = 0; i < lines.size(); ++i) {
      const LineTotals& totals = lines[i];
      const auto key = std::make_tuple(std::string_view(totals.file), totals.line, totals.op, totals.pipe);
      const auto [found, is_new] = known.emplace(key, static_cast<uint32_t>(timing.lines.size()));
      if (is_new) {
        LineTiming line;
        line.file = totals.file;
        line.line = totals.line;
        line.op = totals.op;
        line.pipe = totals.pipe;
        line.from = totals.from;
        line.to = totals.to;
        timing.lines.push_back(line);
      }
      LineTiming& line = timing.lines[found->second];
      line.count += totals.count;
      line.cycles += totals.cycles + cores[core]->copy_cycles()[i];
      line.conflict_cycles += totals.conflict_cycles;
      line.wait_cycles += cores[core]->wait_cycles()[i];
      line.bytes += totals.bytes;
      line.bursts += totals.bursts;
      line.unaligned += totals.unaligned;
      line.operations += totals.operations;
      renamed[core].push_back(found->second);
    }
  }
  for (TimelineEvent& event : timing.events) event.line = renamed[event.core][event.line];
  for (TimelineWait& wait : timing.waits) {
    if (wait.line != kNoIndex) wait.line = renamed[wait.core][wait.line];
  }
}

/// Whether leaving the limit out can change anything, as far as that is cheap to tell.
bool is_met(Limit limit, const std::vector<const CoreRecord*>& records, const LaunchTiming& timing) {
  const auto any = [&](auto&& holds) {
    for (const CoreRecord* core : records) {
      for (const Record& record : core->records) {
        if (holds(record)) return true;
      }
    }
    return false;
  };
  switch (limit) {
    case Limit::BankConflicts: return any([](const Record& record) { return record.conflict_cycles > 0; });
    case Limit::VectorStalls: return any([](const Record& record) { return record.stall_cycles > 0; });
    case Limit::Elements: return any([](const Record& record) { return record.element_cycles > 0; });
    case Limit::ReadBack:
      return any([](const Record& record) {
        return record.kind == RecordKind::WaitFlag && record.pipe == static_cast<uint8_t>(Pipe::V) &&
               record.peer == static_cast<uint8_t>(Pipe::S);
      });
    case Limit::Barriers:
      return any([](const Record& record) {
        return record.kind == RecordKind::Barrier && record.pipe == static_cast<uint8_t>(Pipe::ALL);
      });
    case Limit::CrossCore: return any([](const Record& record) { return record.kind == RecordKind::Cross; });
    case Limit::L2Reuse: return timing.l2_lost_bytes > 0 || timing.hbm_write_bytes > 0;
    case Limit::Alignment:
      for (const LineTiming& line : timing.lines) {
        if (line.unaligned > 0) return true;
      }
      return false;
    case Limit::SameAddress: return records.size() > 1;
    case Limit::BaseBlocks:
      return std::any_of(records.begin(), records.end(),
                         [](const CoreRecord* core) { return core->l0c_bytes_used > 0; });
    case Limit::UnitFlags:
      return any([](const Record& record) {
        return record.event == 0 && record.pipe == static_cast<uint8_t>(Pipe::FIX) &&
               (record.kind == RecordKind::Copy || record.kind == RecordKind::Local);
      });
    case Limit::VectorCores: {
      const auto of_kind = [&](SubCore kind) {
        return std::count_if(records.begin(), records.end(),
                             [&](const CoreRecord* core) { return core->kind == kind; });
      };
      return of_kind(SubCore::AIC) > 0 && of_kind(SubCore::AIC) == of_kind(SubCore::AIV);
    }
    case Limit::HandOver:
      return any([](const Record& record) { return record.kind == RecordKind::Cross; }) &&
             std::any_of(records.begin(), records.end(),
                         [](const CoreRecord* core) { return core->kind == SubCore::AIC; });
    case Limit::Tiling: return any([](const Record& record) { return record.library_cycles > 0; });
    default: return true;
  }
}

}  // namespace

const char* limit_name(Limit limit) {
  static constexpr const char* kNames[] = {
#define OPKIT_LIMIT(name, text) #name,
#include "observe/timing_limits.inc"
#undef OPKIT_LIMIT
      "none"};
  return kNames[static_cast<size_t>(limit)];
}

void replay(const TimingCosts& costs, const std::vector<std::unique_ptr<CoreRecord>>& cores, uint64_t events_per_core,
            LaunchTiming& timing) {
  const std::vector<const CoreRecord*> records = present(cores);
  for (const CoreRecord* record : records) {
    timing.events_dropped += record->dropped;
    timing.ub_bytes_used = std::max(timing.ub_bytes_used, record->ub_bytes_used);
  }
  LaunchReplay launch(costs, records, events_per_core, Lifted(), timing);
  launch.run();
  for (const CoreTiming& core : timing.cores) {
    timing.gm_read_bytes += core.gm_read_bytes;
    timing.gm_write_bytes += core.gm_write_bytes;
    timing.l2_hit_bytes += core.l2_read_hit_bytes;
    timing.hbm_read_bytes += core.hbm_read_bytes;
    timing.hbm_write_bytes += core.hbm_write_bytes;
  }
  join_lines(launch.cores(), timing);
}

double scalar_cycle_alone(const TimingCosts& costs, const CoreRecord& record) {
  CoreRecord own = record;
  const auto is_cross = [](const Record& each) { return each.kind == RecordKind::Cross; };
  own.records.erase(std::remove_if(own.records.begin(), own.records.end(), is_cross), own.records.end());
  LaunchTiming scratch;
  LaunchReplay launch(costs, {&own}, 0, Lifted(), scratch);
  launch.run();
  return launch.cores().front()->scalar_cycle();
}

void replay_lifted(const TimingCosts& costs, const std::vector<std::unique_ptr<CoreRecord>>& cores,
                   LaunchTiming& timing) {
  const std::vector<const CoreRecord*> records = present(cores);
  for (uint32_t i = 0; i < kLimitCount; ++i) {
    const auto limit = static_cast<Limit>(i);
    double cycles = timing.total_cycles;
    if (is_met(limit, records, timing)) {
      LaunchTiming scratch;
      LaunchReplay launch(costs, records, 0, Lifted(limit), scratch);
      launch.run();
      cycles = scratch.total_cycles;
    }
    timing.lifted_cycles.push_back(cycles);
  }
}

}  // namespace opkit
