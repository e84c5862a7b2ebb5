// Accesses of two cores to the same bytes of global memory, one of them a write, that no SyncAll or signal between
// cores orders; and those that the cores' data caches make wrong although they are in order. Cores keep what they
// touched, and when; launch_end compares.
#include <algorithm>
#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <tuple>

#include "core/launch_state.h"
#include "isa/table.h"
#include "memory/bounds.h"
#include "observe/cache_lines.h"
#include "observe/checks.h"
#include "observe/core_clocks.h"
#include "observe/gm_accesses.h"
#include "observe/merged_ranges.h"

namespace opkit {
namespace {

/// How each kind of conflict is told: "<core> <text> <core or "it"> <what>".
struct CacheRow {
  const char* id;
  const char* text;
  const char* what;
  const char* help;
};
constexpr CacheRow kCacheRows[] = {
    {"CACHE-LOST-WRITE", " writes into a cache line of 64 bytes that ",
     " has in its data cache and writes back as a whole, over what came between",
     "write with DataCopyPad from the unified buffer, or give each core whole lines; or call DataCacheCleanAndInvalid "
     "behind SetValue, and order the two"},
    {"CACHE-UNWRITTEN", " reads bytes that ", " has set in its data cache, and not written to global memory yet",
     "call DataCacheCleanAndInvalid<T, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(tensor) behind SetValue, "
     "before what signals or copies"},
    {"CACHE-STALE-READ", " reads a cache line that it loaded before ", " wrote to it: it may get what was there before",
     "call DataCacheCleanAndInvalid<T, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(tensor) before GetValue"},
};

class CrossCheck final : public Detector {
 public:
  explicit CrossCheck(const CheckOptions& options)
      : only_block_(options.only_block), finds_races_(options.cross), follows_caches_(options.cache) {}

  void launch_begin(const LaunchInfo& info) override {
    clocks_.launch_begin(info.core_count);
    if (follows_caches_) lines_.launch_begin(info.core_count);
    accesses_.assign(info.core_count, CoreAccesses());
    ranges_.assign(info.core_count, {});
    seen_.assign(info.core_count, std::nullopt);
    cores_per_block_ = info.core_count / std::max(1u, info.block_dim);
    gm_.clear();
    has_faulted_ = false;
  }

  void before(const Core& core, const Instr& instr) override {
    if (is_idle()) return;
    const OpRow& row = row_of(instr.op);
    if (row.cost == Cost::cross_core) {
      if (follows_caches_) lines_.signal(core);
      if (!clocks_.is_single()) clocks_.release(core, instr);
      return;
    }
    if (instr.op == Op::GetValue || instr.op == Op::SetValue) {
      const bool is_write = instr.op == Op::SetValue;
      const Operand& element = is_write ? instr.dst : instr.src[0];
      if (element.space != Space::GM) return;
      touch(core, instr, element.address, size_bytes(element.dtype), is_write, instr.mode != kPastCache);
      if (is_write && !clocks_.is_single()) clocks_.release_word(core, element.address);
      return;
    }
    if (instr.op == Op::DataCacheCleanAndInvalid) {
      if (!follows_caches_) return;
      if (instr.mode == kWholeCache) return lines_.clean(core, clocks_.now(core));
      return lines_.clean_line(core, instr.dst.address, clocks_.now(core));
    }
    if (row.family != Family::DataCopy && row.family != Family::Cube) return;
    std::vector<ByteRange>& ranges = ranges_[core.index];
    joined_ranges(core, instr, ranges);
    for (const ByteRange& range : ranges) {
      const Space space = range.operand == 0 ? instr.dst.space : instr.src[range.operand - 1].space;
      if (space == Space::GM) touch(core, instr, range.begin, range.bytes, range.is_write, false);
    }
  }

  void after(const Core& core, const Instr& instr) override {
    if (clocks_.is_single()) return;
    if (row_of(instr.op).cost == Cost::cross_core) return clocks_.acquire(core, instr);
    if (instr.op != Op::GetValue || instr.src[0].space != Space::GM) return;
    if (!clocks_.acquire_word(core, instr.src[0].address) || !follows_caches_) return;
    const Operand& word = instr.src[0];
    lines_.acquired(core, word.address, clocks_.now(core));
    // It reads what the other core has written, which it did not know of when the instruction began.
    accesses_[core.index].add(access_of(core, instr, word.address, size_bytes(word.dtype), false, true));
  }

  void block_end(const Core& core) override {
    if (core.launch->stop_from.load() != ~0u) has_faulted_ = true;
    if (follows_caches_) lines_.clean(core, clocks_.now(core));
  }

  void launch_end() override {
    // After a fault the cores have got as far as they happened to, and one has touched what it must not.
    if (!has_faulted_) {
      if (finds_races_) compare_races();
      if (follows_caches_) {
        lines_.compare(clocks_, accesses_, [this](const CacheConflict& conflict) { report_conflict(conflict); });
      }
    }
    accesses_.clear();
  }

  std::vector<Finding> take() override { return findings_.take(); }

 private:
  /// Races take two cores.
  bool is_idle() const { return clocks_.is_single() && !follows_caches_; }

  void touch(const Core& core, const Instr& instr, uint64_t begin, uint64_t bytes, bool is_write, bool is_cached) {
    if (!seen_[core.index]) {
      seen_[core.index] = core;
      // The launch's own list is gone when the report is written.
      const std::lock_guard<std::mutex> guard(lock_);
      if (gm_.empty()) gm_ = core.launch->launch->gm;
    }
    const Segment access = access_of(core, instr, begin, bytes, is_write, is_cached);
    if (!clocks_.is_single()) accesses_[core.index].add(access);
    if (!follows_caches_) return;
    if (is_cached) {
      lines_.access(core, access);
    } else {
      lines_.copy(core, access);
    }
  }

  Segment access_of(const Core& core, const Instr& instr, uint64_t begin, uint64_t bytes, bool is_write,
                    bool is_cached) {
    const bool is_atomic = is_write && core.atomic_op != AtomicOp::None && instr.pipe != Pipe::S;
    return {begin,     begin + bytes, clocks_.now(core), is_write,       is_atomic,
            is_cached, core.issued,   site_of(instr),    instr.dst.dtype};
  }

  bool is_ordered(const Segment& first, const Segment& second) const {
    return clocks_.is_before(first.when, second.when) || clocks_.is_before(second.when, first.when);
  }

  /// Every segment that meets a write; most reads are of memory that nobody writes.
  std::vector<const Segment*> segments_to_compare() const {
    std::vector<std::pair<uint64_t, uint64_t>> written;
    for (const CoreAccesses& accesses : accesses_) {
      for (const Segment& segment : accesses.segments()) {
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
    for (const CoreAccesses& accesses : accesses_) {
      for (const Segment& segment : accesses.segments()) {
        if (segment.is_write || is_written(segment)) found.push_back(&segment);
      }
    }
    return found;
  }

  void compare_races() {
    std::vector<const Segment*> all = segments_to_compare();
    std::sort(all.begin(), all.end(), [](const Segment* a, const Segment* b) {
      return std::tie(a->begin, a->when.core, a->instruction) < std::tie(b->begin, b->when.core, b->instruction);
    });
    std::vector<const Segment*> writes;  // that may still overlap
    std::vector<const Segment*> reads;
    const auto meet = [this](std::vector<const Segment*>& active, const Segment& segment) {
      size_t kept = 0;
      for (const Segment* other : active) {
        if (other->end <= segment.begin) continue;
        active[kept++] = other;
        if (other->when.core == segment.when.core || (other->is_atomic && segment.is_atomic)) continue;
        // Scalar code that polls what other scalar code writes is a kernel's own signal.
        if (other->site.pipe == Pipe::S && segment.site.pipe == Pipe::S) continue;
        if (!is_ordered(*other, segment)) report_race(*other, segment);
      }
      active.resize(kept);
    };
    for (const Segment* segment : all) {
      meet(writes, *segment);
      if (segment->is_write) meet(reads, *segment);
      (segment->is_write ? writes : reads).push_back(segment);
    }
  }

  void report_race(const Segment& a, const Segment& b) {
    const bool is_read = !a.is_write || !b.is_write;
    // The read stands first; of two writes that of the higher core.
    const bool a_first = is_read ? !a.is_write : a.when.core > b.when.core;
    const Segment& subject = a_first ? a : b;
    const Segment& other = a_first ? b : a;
    Finding* finding = find(is_read ? "RACE-CORES-READ" : "RACE-CORES-WRITE", subject, other,
                            std::max(a.begin, b.begin), std::min(a.end, b.end));
    if (finding == nullptr) return;
    finding->message = text_of(subject) + (is_read ? " reads" : " writes") + " bytes of global memory that " +
                       text_of(other) + " writes, and nothing orders the two cores";
    finding->help = is_read ? "put SyncAll, or CrossCoreSetFlag and CrossCoreWaitFlag, between the write and the read"
                            : "give each block bytes of its own, use SetAtomicAdd, or put SyncAll between the two";
  }

  void report_conflict(const CacheConflict& conflict) {
    const CacheRow& row = kCacheRows[static_cast<size_t>(conflict.kind)];
    Finding* finding = find(row.id, conflict.first, conflict.other, conflict.begin, conflict.end);
    if (finding == nullptr) return;
    const bool is_alone = conflict.first.when.core == conflict.other.when.core;
    finding->message = text_of(conflict.first) + row.text + (is_alone ? "it" : text_of(conflict.other)) + row.what;
    finding->help = row.help;
  }

  /// The finding of two accesses where it is a new one that is wanted; null otherwise.
  Finding* find(const char* id, const Segment& subject, const Segment& other, uint64_t begin, uint64_t end) {
    Core core = *seen_[subject.when.core];
    const uint32_t other_block = seen_[other.when.core]->block;
    if (only_block_ != kEveryBlock && core.block != only_block_ && other_block != only_block_) return nullptr;
    core.issued = subject.instruction;
    bool is_new = false;
    Finding& finding = findings_.at(id, core, subject.site, other.site, is_new);
    if (!is_new) return ++finding.count, nullptr;
    finding.other_block = other_block;
    finding.other_core = other.when.core;
    finding.other_instruction = other.instruction;
    finding.dtype = subject.dtype;
    finding.space = "GM";
    uint64_t base = begin;
    if (const GmRange* range = range_at(gm_, begin)) {
      base = range->begin;
      end = std::min(end, range->end);
      finding.allocation = range->name;
    }
    finding.begin = begin - base;
    finding.end = end - base;
    return &finding;
  }

  /// "block 3", and of kernels with several cores a block "aiv 1 of block 3".
  std::string text_of(const Segment& access) const {
    const Core& core = *seen_[access.when.core];
    const std::string block = "block " + std::to_string(core.block);
    if (cores_per_block_ == 1) return block;
    const bool is_cube = core.kind == SubCore::AIC;
    return (is_cube ? std::string("aic") : "aiv " + std::to_string(core.sub_block)) + " of " + block;
  }

  uint32_t only_block_;
  bool finds_races_;
  bool follows_caches_;
  uint32_t cores_per_block_ = 1;
  CoreClocks clocks_;
  CacheLines lines_;
  std::vector<CoreAccesses> accesses_;          // by core
  std::vector<std::vector<ByteRange>> ranges_;  // of the instruction at hand, by core
  std::vector<std::optional<Core>> seen_;       // as they were at their first access, for the report
  std::mutex lock_;                             // of the ranges
  std::vector<GmRange> gm_;
  std::atomic<bool> has_faulted_{false};
  FindingList findings_;
};

}  // namespace

std::unique_ptr<Detector> make_cross_check(const CheckOptions& options) {
  return std::make_unique<CrossCheck>(options);
}

}  // namespace opkit
