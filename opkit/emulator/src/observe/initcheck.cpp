// Reads of bytes that nothing wrote: in the local memories of each block, and in outputs and workspaces of the launch.
// Copies carry what they move: bytes that were never written stay so on the other side, and count once an instruction
// computes with them. What a data block has behind its last written byte is padding (in comparisons, what a repeat
// has), and only reductions, scalar reads and whole blocks of it are reported. Gather's source, which depends on data,
// is not looked at.
#include <algorithm>
#include <iterator>
#include <string>
#include <utility>
#include <vector>

#include "core/launch_state.h"
#include "isa/cube.h"
#include "isa/footprint.h"
#include "isa/table.h"
#include "memory/bounds.h"
#include "observe/core_detector.h"
#include "observe/merged_ranges.h"
#include "observe/written_bits.h"
#include "sync/cross_core.h"

namespace opkit {
namespace {

/// One core's local memories. A block starts with none of them written.
struct InitCheckState : CoreFindings {
  using CoreFindings::CoreFindings;

  std::unique_ptr<WrittenBits> spaces[static_cast<size_t>(Space::kCount)];
  std::vector<ByteRange> ranges;  // of the instruction at hand
};

/// An allocation of global memory that starts out without data.
struct GmBits {
  uint64_t begin;
  uint64_t end;
  WrittenBits* bits;
  std::unique_ptr<WrittenBits> owned;  ///< of this launch only
};

/// What an instruction reads at least in one go, so that what lies behind the last written byte of it is padding: a
/// data block, and a whole repeat where the count has to fill one. Source: Compare, CompareScalar, constraints of count
uint64_t padding_unit(Op op) { return op == Op::Compare || op == Op::CompareScalar ? kRepeatBytes : kBlockBytes; }

/// Where a range's bits are: `bits` is null where nothing is tracked.
struct Place {
  WrittenBits* bits = nullptr;
  uint64_t begin = 0;  ///< of the range, in `bits`
  uint64_t end = 0;
  uint64_t base = 0;  ///< address of `bits`' byte 0
};

class InitCheck final : public CoreDetector<InitCheckState> {
 public:
  using CoreDetector::CoreDetector;

  void launch_begin(const LaunchInfo& info) override {
    CoreDetector::launch_begin(info);
    gm_.clear();
    is_gm_known_ = false;
  }

  void before(const Core& core, const Instr& instr) override {
    const OpRow& row = row_of(instr.op);
    const SignalWords signals = signal_words(core, instr);
    if (row.family == Family::Control && instr.op != Op::GetValue && instr.op != Op::SetValue && signals.bytes == 0)
      return;
    learn_gm(core);
    InitCheckState& state = state_of(core);
    if (signals.bytes != 0) {
      const Place words = place_of(core, state, Space::GM, signals.begin, signals.bytes);
      if (words.bits != nullptr) check(core, state, instr, words, Space::GM, false);
      return;
    }
    if (row.family == Family::Control) return scalar(core, state, instr);
    if (row.family == Family::DataCopy) return copy(core, state, instr);
    if (instr.load != nullptr || instr.image != nullptr) return load(core, state, instr);
    compute(core, state, instr, row);
  }

  void block_end(const Core& core) override {
    InitCheckState* state = find_state(core);
    if (state == nullptr) return;
    for (std::unique_ptr<WrittenBits>& space : state->spaces) space.reset();
  }

  void launch_end() override {
    CoreDetector::launch_end();
    gm_.clear();
  }

 private:
  /// Lists the launch's global memory at a core's first access: launch_begin does not know it yet.
  void learn_gm(const Core& core) {
    if (find_state(core) != nullptr) return;
    const std::lock_guard<std::mutex> guard(lock_);
    if (is_gm_known_) return;
    is_gm_known_ = true;
    for (const GmRange& range : core.launch->launch->gm) {
      if (range.written != nullptr) {
        gm_.push_back({range.begin, range.end, range.written, nullptr});
      } else if (!range.is_written) {
        auto bits = std::make_unique<WrittenBits>(range.end - range.begin);
        gm_.push_back({range.begin, range.end, bits.get(), std::move(bits)});
      }
    }
  }

  Place place_of(const Core& core, InitCheckState& state, Space space, uint64_t begin, uint64_t bytes) const {
    if (space == Space::GM) {
      const auto after = std::upper_bound(gm_.begin(), gm_.end(), begin,
                                          [](uint64_t at, const GmBits& range) { return at < range.begin; });
      if (after == gm_.begin()) return {};
      const GmBits& range = *std::prev(after);
      if (begin + bytes > range.end) return {};
      range.bits->touch();
      const Place place = {range.bits, begin - range.begin, begin + bytes - range.begin, range.begin};
      if (range.owned == nullptr) range.bits->adopt(core.at(Space::GM, range.begin), place.begin, place.end);
      return place;
    }
    std::unique_ptr<WrittenBits>& bits = state.spaces[static_cast<size_t>(space)];
    const uint64_t limit = core.space_bytes[static_cast<size_t>(space)];
    if (begin + bytes > limit) return {};  // the instruction itself will fault
    if (bits == nullptr) bits = std::make_unique<WrittenBits>(limit);
    return {bits.get(), begin, begin + bytes};
  }

  void scalar(const Core& core, InitCheckState& state, const Instr& instr) {
    const bool is_write = instr.op == Op::SetValue;
    const Operand& element = is_write ? instr.dst : instr.src[0];
    const Place place = place_of(core, state, element.space, element.address, size_bytes(element.dtype));
    if (place.bits == nullptr) return;
    // GlobalTensor::operator() gives a reference, which may be there to be written.
    if (!is_write && element.space != Space::GM) check(core, state, instr, place, element.space, false);
    place.bits->set(place.begin, place.end);
  }

  void compute(const Core& core, InitCheckState& state, const Instr& instr, const OpRow& row) {
    std::vector<ByteRange>& ranges = state.ranges;
    merged_ranges(core, instr, ranges);
    const bool has_padding = row.cost != Cost::vec_reduce;
    for (size_t i = 0; i < ranges.size(); ++i) {
      const ByteRange& range = ranges[i];
      if (range.is_write) continue;
      // A work buffer is written before it is read: footprints give it as both.
      const bool is_work = range.operand != 0 && i + 1 < ranges.size() && ranges[i + 1].is_write &&
                           ranges[i + 1].operand == range.operand;
      if (is_work) continue;
      const Space space = space_of(instr, range);
      const Place place = place_of(core, state, space, range.begin, range.bytes);
      if (place.bits != nullptr) check(core, state, instr, place, space, has_padding);
    }
    for (const ByteRange& range : ranges) {
      if (!range.is_write) continue;
      const Space space = space_of(instr, range);
      const Place place = place_of(core, state, space, range.begin, range.bytes);
      if (place.bits == nullptr) continue;
      combined(core, state, instr, place, space);
      place.bits->set(place.begin, place.end);
    }
  }

  /// An atomic write reads what it adds to, or compares with.
  static void combined(const Core& core, InitCheckState& state, const Instr& instr, const Place& place, Space space) {
    const bool is_atomic = space == Space::GM && core.atomic_op != AtomicOp::None && instr.pipe != Pipe::S;
    if (is_atomic) check(core, state, instr, place, space, true);
  }

  void copy(const Core& core, InitCheckState& state, const Instr& instr) {
    Place source;
    uint64_t source_bytes = 0;
    for_each_range(core, instr, [&](const ByteRange& range) {
      const Space space = space_of(instr, range);
      const Place place = place_of(core, state, space, range.begin, range.bytes);
      if (!range.is_write) {
        source = place;
        source_bytes = range.bytes;
        const bool is_out = space != Space::GM && instr.dst.space == Space::GM;
        // DataCopyPad names bytes, so none of them is padding.
        if (is_out && place.bits != nullptr) check(core, state, instr, place, space, !instr.copy.is_padded);
        return;
      }
      if (place.bits == nullptr) return;
      combined(core, state, instr, place, space);
      // Padding is written by the copy itself, so a padded burst is whole.
      if (source.bits == nullptr || source_bytes != range.bytes) {
        place.bits->set(place.begin, place.end);
      } else {
        place.bits->carry(*source.bits, source.begin, source.end, place.begin);
      }
    });
  }

  /// Fractals carry what they move, too: what surrounds a matrix that is no multiple of a fractal is never computed
  /// with.
  void load(const Core& core, InitCheckState& state, const Instr& instr) {
    for_each_move(instr, [&](const ByteMove& move) {
      Place source;
      if (move.from != kNoSource) source = place_of(core, state, instr.src[0].space, move.from, move.bytes);
      const Place target = place_of(core, state, instr.dst.space, move.to, move.bytes);
      if (target.bits == nullptr) return;
      if (source.bits == nullptr) return target.bits->set(target.begin, target.end);
      target.bits->carry(*source.bits, source.begin, source.end, target.begin);
    });
  }

  static Space space_of(const Instr& instr, const ByteRange& range) {
    return range.operand == 0 ? instr.dst.space : instr.src[range.operand - 1].space;
  }

  /// Reports the first unwritten bytes of a place, and takes them as written from then on.
  static void check(const Core& core, InitCheckState& state, const Instr& instr, const Place& place, Space space,
                    bool has_padding) {
    uint64_t first = place.bits->first_unwritten(place.begin, place.end);
    while (has_padding && first < place.end && is_padding(place, first)) {
      const uint64_t block_end = (first / kBlockBytes + 1) * kBlockBytes;
      if (block_end >= place.end) return;
      first = place.bits->first_unwritten(block_end, place.end);
    }
    if (first >= place.end) return;
    const uint64_t last = place.bits->end_of_unwritten(first, place.end);
    const bool is_tail = first > place.begin && last == place.end && last - first < padding_unit(instr.op);
    if (has_padding && is_tail && padding_unit(instr.op) > kBlockBytes) return;
    report(core, state, instr, space, first + place.base, last + place.base);
    place.bits->set(place.begin, place.end);
  }

  /// Whether the byte before lies in the same data block and was written.
  static bool is_padding(const Place& place, uint64_t at) {
    return at % kBlockBytes != 0 && at > 0 && place.bits->get(at - 1);
  }

  static void report(const Core& core, InitCheckState& state, const Instr& instr, Space space, uint64_t first,
                     uint64_t last) {
    const bool is_copy = row_of(instr.op).family == Family::DataCopy || instr.fixpipe != nullptr;
    const bool is_out = is_copy && space != Space::GM;
    bool is_new = false;
    Finding& finding = state.findings.at(is_out ? "INIT-COPY-OUT" : "INIT-READ", core, site_of(instr), {}, is_new);
    if (!is_new) return;
    place_finding(finding, core, space, first, last);
    const std::string name = row_of(instr.op).name;
    const std::string bytes = std::to_string(last - first) + " bytes of " + finding.space;
    if (is_copy && !is_out) {
      finding.message = name + " combines what it writes with " + bytes + " that nothing has written";
      finding.help = "write zeros there before the first atomic write, with SyncAll where other cores add to them";
      return;
    }
    finding.message = name + (is_out ? " copies " : " reads ") + bytes + " that nothing in this block has written";
    finding.help = is_out ? "copy out only what was computed, or compute the rest of the tile"
                          : "write the bytes before this line, or give the instruction the count that was written";
  }

  std::mutex lock_;  // while the tracked allocations are set up
  bool is_gm_known_ = false;
  std::vector<GmBits> gm_;
};

}  // namespace

std::unique_ptr<Detector> make_init_check(const CheckOptions& options) { return std::make_unique<InitCheck>(options); }

}  // namespace opkit
