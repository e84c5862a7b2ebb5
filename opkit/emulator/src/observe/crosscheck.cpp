// Accesses of two cores to the same bytes of global memory, one of them a write, that no SyncAll or signal between
// cores orders. Cores keep what they touched, with a clock that their own signals advance; launch_end compares.
// A signal is taken to cover all that its core did before, also where it names one pipe: never an alarm too many.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <string>
#include <tuple>
#include <unordered_map>

#include "core/launch_state.h"
#include "isa/table.h"
#include "memory/bounds.h"
#include "observe/checks.h"
#include "observe/merged_ranges.h"

namespace opkit {
namespace {

using Clock = std::vector<uint64_t>;  // by core index

void join(Clock& into, const Clock& from) {
  for (size_t i = 0; i < from.size(); ++i) into[i] = std::max(into[i], from[i]);
}

/// A run of bytes that one instruction of one core has touched, in one or several executions.
struct Segment {
  uint64_t begin;
  uint64_t end;
  uint32_t core;
  uint32_t seen;  ///< index into what the core had seen of the others
  uint64_t own;   ///< its own time
  bool is_write;
  bool is_atomic;
  uint64_t instruction;
  AccessSite site;
  DType dtype;
};

struct CoreState {
  std::vector<std::shared_ptr<const Clock>> seen;  ///< times of the other cores; the last is the present one
  uint64_t own = 1;                                ///< advanced by each signal of its own
  std::vector<Segment> segments;
  size_t open[8] = {};  ///< segments that the next access may lengthen
  uint32_t open_count = 0;
  uint32_t next_open = 0;
  std::vector<ByteRange> ranges;  ///< of the instruction at hand
  Core core;                      ///< as it was at its first access, for the report
};

class CrossCheck final : public Detector {
 public:
  explicit CrossCheck(const CheckOptions& options) : only_block_(options.only_block) {}

  void launch_begin(const LaunchInfo& info) override {
    cores_.clear();
    cores_.resize(info.core_count);
    cores_per_block_ = info.core_count / std::max(1u, info.block_dim);
    barriers_.clear();
    sets_.clear();
    waits_.clear();
    rounds_.clear();
    channels_.clear();
    words_.clear();
    gm_.clear();
    has_faulted_ = false;
  }

  void before(const Core& core, const Instr& instr) override {
    if (cores_.size() == 1) return;
    const OpRow& row = row_of(instr.op);
    if (row.cost == Cost::cross_core) return release(core, instr);
    if (instr.op == Op::GetValue || instr.op == Op::SetValue) {
      const bool is_write = instr.op == Op::SetValue;
      const Operand& element = is_write ? instr.dst : instr.src[0];
      if (element.space == Space::GM) {
        touch(core, instr, element.address, size_bytes(element.dtype), is_write);
        if (is_write) release_word(core, element.address);
      }
      return;
    }
    if (row.family != Family::DataCopy && row.family != Family::Cube) return;
    std::vector<ByteRange>& ranges = state_of(core).ranges;
    joined_ranges(core, instr, ranges);
    for (const ByteRange& range : ranges) {
      const Space space = range.operand == 0 ? instr.dst.space : instr.src[range.operand - 1].space;
      if (space == Space::GM) touch(core, instr, range.begin, range.bytes, range.is_write);
    }
  }

  void after(const Core& core, const Instr& instr) override {
    if (cores_.size() == 1) return;
    if (row_of(instr.op).cost == Cost::cross_core) return acquire(core, instr);
    if (instr.op == Op::GetValue && instr.src[0].space == Space::GM) acquire_word(core, instr.src[0].address);
  }

  void block_end(const Core& core) override {
    if (core.launch->stop_from.load() != ~0u) has_faulted_ = true;
  }

  void launch_end() override {
    // After a fault the cores have got as far as they happened to, and one has touched what it must not.
    if (!has_faulted_) compare();
    cores_.clear();
  }

  std::vector<Finding> take() override { return findings_.take(); }

 private:
  struct Barrier {
    uint64_t arrived = 0;
    std::vector<Clock> generations;
  };
  struct Signal {
    uint32_t mode;
    Clock clock;
  };
  /// A word of global memory as scalar code wrote it last.
  struct Word {
    uint32_t core = 0;
    uint64_t own = 0;  ///< the writer's time
    std::shared_ptr<const Clock> seen;
  };
  using FlagKey = std::pair<uint32_t, uint32_t>;  // core, flag

  CoreState& state_of(const Core& core) {
    std::unique_ptr<CoreState>& state = cores_[core.index];
    if (state == nullptr) {
      state = std::make_unique<CoreState>();
      state->core = core;
      state->seen.push_back(std::make_shared<const Clock>(cores_.size(), 0));
      // The launch's own list is gone when the report is written.
      const std::lock_guard<std::mutex> guard(lock_);
      if (gm_.empty()) gm_ = core.launch->launch->gm;
    }
    return *state;
  }

  void touch(const Core& core, const Instr& instr, uint64_t begin, uint64_t bytes, bool is_write) {
    CoreState& state = state_of(core);
    const auto seen = static_cast<uint32_t>(state.seen.size() - 1);
    const AccessSite site = site_of(instr);
    const bool is_atomic = is_write && core.atomic_op != AtomicOp::None && instr.pipe != Pipe::S;
    for (uint32_t i = 0; i < state.open_count; ++i) {
      Segment& open = state.segments[state.open[i]];
      if (open.seen != seen || open.own != state.own || open.is_write != is_write || open.is_atomic != is_atomic ||
          open.site.line != site.line || open.site.op != site.op || open.site.file != site.file) {
        continue;
      }
      if (begin < open.begin || begin > open.end) continue;
      open.end = std::max(open.end, begin + bytes);
      return;
    }
    state.segments.push_back(
        {begin, begin + bytes, core.index, seen, state.own, is_write, is_atomic, core.issued, site, instr.dst.dtype});
    constexpr uint32_t kOpenLimit = sizeof(state.open) / sizeof(state.open[0]);
    state.open[state.next_open] = state.segments.size() - 1;
    state.next_open = (state.next_open + 1) % kOpenLimit;
    state.open_count = std::min(state.open_count + 1, kOpenLimit);
  }

  /// The core's clock as of now; whatever it does later has a later one.
  Clock publish(const Core& core) {
    CoreState& state = state_of(core);
    Clock published = *state.seen.back();
    published[core.index] = state.own++;
    return published;
  }

  void receive(const Core& core, const Clock& clock) {
    CoreState& state = state_of(core);
    Clock next = *state.seen.back();
    join(next, clock);
    state.seen.push_back(std::make_shared<const Clock>(std::move(next)));
  }

  static std::pair<uint32_t, uint32_t> barrier_key(const Core& core, const Instr& instr) {
    const LaunchState& launch = *core.launch;
    uint32_t all = 0;
    for (uint32_t i = 0; i < launch.core_count; ++i) all += instr.mode != 1 || launch.kind_of(i) == SubCore::AIV;
    return {instr.mode, instr.count == 0 ? all : instr.count};
  }

  static uint64_t channel_of(const Core& core, const Instr& instr) {
    if (instr.op != Op::IBSet && instr.op != Op::IBWait) return instr.dst.address;
    return instr.dst.address + (core.block_count * instr.scalar_bits[1] + instr.scalar_bits[0]) * kBlockBytes;
  }

  void release(const Core& core, const Instr& instr) {
    if (instr.op == Op::CrossCoreWaitFlag || instr.op == Op::IBWait) return;
    if (instr.op == Op::SyncAll && instr.mode == 1 && core.kind == SubCore::AIC) return;
    Clock clock = publish(core);
    const std::lock_guard<std::mutex> guard(lock_);
    if (instr.op == Op::SyncAll) {
      const auto key = barrier_key(core, instr);
      Barrier& barrier = barriers_[key];
      const uint64_t generation = barrier.arrived++ / std::max(1u, key.second);
      if (barrier.generations.size() <= generation) barrier.generations.emplace_back(cores_.size(), 0);
      join(barrier.generations[generation], clock);
      rounds_of(core.index, key) = generation;
    } else if (instr.op == Op::CrossCoreSetFlag) {
      sets_[{core.index, instr.event_id}].push_back({instr.mode, std::move(clock)});
    } else {
      Clock& channel = channels_[channel_of(core, instr)];
      channel.resize(cores_.size());
      join(channel, clock);
    }
  }

  void acquire(const Core& core, const Instr& instr) {
    if (instr.op == Op::CrossCoreSetFlag || instr.op == Op::IBSet) return;
    if (instr.op == Op::SyncAll && instr.mode == 1 && core.kind == SubCore::AIC) return;
    Clock clock(cores_.size(), 0);
    {
      const std::lock_guard<std::mutex> guard(lock_);
      if (instr.op == Op::SyncAll) {
        const auto key = barrier_key(core, instr);
        clock = barriers_[key].generations[rounds_of(core.index, key)];
      } else if (instr.op == Op::CrossCoreWaitFlag) {
        clock = signals_for(core, instr);
      } else {
        join(clock, channels_[channel_of(core, instr)]);
      }
    }
    receive(core, clock);
  }

  /// Scalar code that writes a word may signal with it. Before it executes: whoever reads the new value finds it here.
  void release_word(const Core& core, uint64_t address) {
    CoreState& state = state_of(core);
    const std::lock_guard<std::mutex> guard(lock_);
    words_[address] = {core.index, state.own++, state.seen.back()};
  }

  /// Scalar code that reads a word which another core has written comes behind what that core did before.
  void acquire_word(const Core& core, uint64_t address) {
    Word word;
    {
      const std::lock_guard<std::mutex> guard(lock_);
      const auto found = words_.find(address);
      if (found == words_.end() || found->second.core == core.index) return;
      word = found->second;
    }
    if ((*state_of(core).seen.back())[word.core] >= word.own) return;
    Clock clock = *word.seen;
    clock[word.core] = word.own;
    receive(core, clock);
  }

  uint64_t& rounds_of(uint32_t core, std::pair<uint32_t, uint32_t> barrier) {
    return rounds_[{core, barrier.first, barrier.second}];
  }

  /// The n-th wait of a flag follows the n-th signal of every core whose group signals it.
  Clock signals_for(const Core& core, const Instr& instr) {
    const LaunchState& launch = *core.launch;
    const uint64_t round = waits_[{core.index, instr.event_id}]++;
    Clock clock(cores_.size(), 0);
    for (uint32_t i = 0; i < launch.core_count; ++i) {
      const auto found = sets_.find({i, instr.event_id});
      if (found == sets_.end() || found->second.size() <= round) continue;
      const Signal& signal = found->second[round];
      const bool is_same_block = i / launch.cores_per_block == core.index / launch.cores_per_block;
      const bool is_same_kind = launch.kind_of(i) == core.kind;
      const bool is_for_us = signal.mode == 0 ? is_same_kind : is_same_block && is_same_kind == (signal.mode == 1);
      if (is_for_us) join(clock, signal.clock);
    }
    return clock;
  }

  bool is_ordered(const Segment& first, const Segment& second) const {
    const Clock& first_seen = *cores_[first.core]->seen[first.seen];
    const Clock& second_seen = *cores_[second.core]->seen[second.seen];
    return second_seen[first.core] >= first.own || first_seen[second.core] >= second.own;
  }

  /// Every segment that meets a write; most reads are of memory that nobody writes.
  std::vector<const Segment*> segments_to_compare() const {
    std::vector<std::pair<uint64_t, uint64_t>> written;
    for (const auto& state : cores_) {
      if (state == nullptr) continue;
      for (const Segment& segment : state->segments) {
        if (segment.is_write) written.emplace_back(segment.begin, segment.end);
      }
    }
    std::sort(written.begin(), written.end());
    size_t kept = 0;
    for (const auto& range : written) {
      if (kept > 0 && range.first <= written[kept - 1].second) {
        written[kept - 1].second = std::max(written[kept - 1].second, range.second);
      } else {
        written[kept++] = range;
      }
    }
    written.resize(kept);
    const auto is_written = [&written](const Segment& segment) {
      const auto after = std::lower_bound(written.begin(), written.end(), std::make_pair(segment.end, uint64_t{0}));
      return after != written.begin() && (after - 1)->second > segment.begin;
    };
    std::vector<const Segment*> found;
    for (const auto& state : cores_) {
      if (state == nullptr) continue;
      for (const Segment& segment : state->segments) {
        if (segment.is_write || is_written(segment)) found.push_back(&segment);
      }
    }
    return found;
  }

  void compare() {
    std::vector<const Segment*> all = segments_to_compare();
    std::sort(all.begin(), all.end(), [](const Segment* a, const Segment* b) {
      return std::tie(a->begin, a->core, a->instruction) < std::tie(b->begin, b->core, b->instruction);
    });
    std::vector<const Segment*> writes;  // that may still overlap
    std::vector<const Segment*> reads;
    const auto meet = [this](std::vector<const Segment*>& active, const Segment& segment) {
      size_t kept = 0;
      for (const Segment* other : active) {
        if (other->end <= segment.begin) continue;
        active[kept++] = other;
        if (other->core == segment.core || (other->is_atomic && segment.is_atomic)) continue;
        // Scalar code that polls what other scalar code writes is a kernel's own signal.
        if (other->site.pipe == Pipe::S && segment.site.pipe == Pipe::S) continue;
        if (!is_ordered(*other, segment)) report(*other, segment);
      }
      active.resize(kept);
    };
    for (const Segment* segment : all) {
      meet(writes, *segment);
      if (segment->is_write) meet(reads, *segment);
      (segment->is_write ? writes : reads).push_back(segment);
    }
  }

  void report(const Segment& a, const Segment& b) {
    const bool is_read = !a.is_write || !b.is_write;
    // The read stands first; of two writes that of the higher core.
    const bool a_first = is_read ? !a.is_write : a.core > b.core;
    const Segment& subject = a_first ? a : b;
    const Segment& other = a_first ? b : a;
    Core core = cores_[subject.core]->core;
    const uint32_t other_block = cores_[other.core]->core.block;
    if (only_block_ != kEveryBlock && core.block != only_block_ && other_block != only_block_) return;
    core.issued = subject.instruction;
    bool is_new = false;
    Finding& finding =
        findings_.at(is_read ? "RACE-CORES-READ" : "RACE-CORES-WRITE", core, subject.site, other.site, is_new);
    if (!is_new) return ++finding.count, void();
    finding.other_block = other_block;
    finding.other_core = other.core;
    finding.other_instruction = other.instruction;
    finding.dtype = subject.dtype;
    finding.space = "GM";
    const uint64_t begin = std::max(a.begin, b.begin);
    uint64_t base = begin;
    if (const GmRange* range = range_at(gm_, begin)) {
      base = range->begin;
      finding.allocation = range->name;
    }
    finding.begin = begin - base;
    finding.end = std::min(a.end, b.end) - base;
    const std::string both = core_text(core) + (is_read ? " reads" : " writes") + " bytes of global memory that " +
                             core_text(cores_[other.core]->core) + " writes";
    finding.message = both + ", and nothing orders the two cores";
    finding.help = is_read ? "put SyncAll, or CrossCoreSetFlag and CrossCoreWaitFlag, between the write and the read"
                           : "give each block bytes of its own, use SetAtomicAdd, or put SyncAll between the two";
  }

  /// "block 3", and of kernels with several cores a block "aiv 1 of block 3".
  std::string core_text(const Core& core) const {
    const std::string block = "block " + std::to_string(core.block);
    if (cores_per_block_ == 1) return block;
    const bool is_cube = core.kind == SubCore::AIC;
    return (is_cube ? std::string("aic") : "aiv " + std::to_string(core.sub_block)) + " of " + block;
  }

  uint32_t only_block_;
  uint32_t cores_per_block_ = 1;
  std::mutex lock_;  // of what cores share: barriers, signals, channels
  std::vector<std::unique_ptr<CoreState>> cores_;
  std::map<std::pair<uint32_t, uint32_t>, Barrier> barriers_;
  std::map<std::tuple<uint32_t, uint32_t, uint32_t>, uint64_t> rounds_;
  std::map<FlagKey, std::vector<Signal>> sets_;
  std::map<FlagKey, uint64_t> waits_;
  std::map<uint64_t, Clock> channels_;
  std::unordered_map<uint64_t, Word> words_;
  std::vector<GmRange> gm_;
  std::atomic<bool> has_faulted_{false};
  FindingList findings_;
};

}  // namespace

std::unique_ptr<Detector> make_cross_check(const CheckOptions& options) {
  return std::make_unique<CrossCheck>(options);
}

}  // namespace opkit
