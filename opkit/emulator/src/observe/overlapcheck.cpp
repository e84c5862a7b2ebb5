// Vector instructions whose destination lies over a source in a way that the documents forbid: over a part of what the
// same repeat reads, or over what a later repeat reads; of some instructions over any of it. The emulator executes
// repeat by repeat; a chip reads ahead.
// Source: Ascend C API, general notes and restrictions, overlapping addresses; Brcb, Gather, Gatherb, MrgSort.
#include <algorithm>
#include <string>
#include <vector>

#include "isa/footprint.h"
#include "isa/table.h"
#include "isa/vector_shape.h"
#include "memory/bounds.h"
#include "observe/core_detector.h"

namespace opkit {
namespace {

struct Range {
  uint64_t begin = 0;
  uint64_t end = 0;

  bool meets(const Range& other) const { return begin < other.end && other.begin < end; }
  bool equals(const Range& other) const { return begin == other.begin && end == other.end; }
};

/// Where an operand's lanes lie.
class Lanes {
 public:
  Lanes(const LaneShape& shape, const Operand& operand)
      : shape_(shape),
        operand_(operand),
        element_bits_(operand.dtype == DType::S4 ? 4 : size_bytes(operand.dtype) * 8) {
    const bool is_run = shape.is_count;
    block_step_ = (is_run ? 1 : operand.block_stride) * kBlockBytes;
    repeat_step_ = is_run ? shape.lanes * element_bits_ / 8 : operand.repeat_stride * kBlockBytes;
    lanes_per_block_ = kBlockBytes * 8 / element_bits_;
  }

  uint32_t blocks() const { return (shape_.lanes + lanes_per_block_ - 1) / lanes_per_block_; }

  /// Bounds of one repeat, for a first look.
  Range repeat(uint32_t index) const {
    const uint64_t begin = operand_.address + uint64_t{index} * repeat_step_;
    return {begin, begin + uint64_t{blocks() - 1} * block_step_ + kBlockBytes};
  }
  Range all() const { return {operand_.address, repeat(shape_.repeat - 1).end}; }

  /// The lanes of one data block that take part, from the first to the last; empty when none does.
  Range block(uint32_t repeat, uint32_t index) const {
    const uint32_t lanes = repeat + 1 == shape_.repeat ? shape_.tail : shape_.active;
    uint32_t first = index * lanes_per_block_;
    uint32_t last = std::min(lanes, first + lanes_per_block_);
    if (shape_.is_bits) {
      while (first < last && !shape_.is_active(first)) ++first;
      while (first < last && !shape_.is_active(last - 1)) --last;
    }
    if (first >= last) return {};
    const uint64_t begin = operand_.address + uint64_t{repeat} * repeat_step_ + uint64_t{index} * block_step_;
    const uint32_t skipped = index * lanes_per_block_;
    return {begin + (first - skipped) * element_bits_ / 8, begin + (last - skipped) * element_bits_ / 8};
  }

  uint64_t repeat_step() const { return repeat_step_; }
  uint64_t block_step() const { return block_step_; }

 private:
  const LaneShape& shape_;
  const Operand& operand_;
  uint32_t element_bits_;
  uint64_t block_step_;
  uint64_t repeat_step_;
  uint32_t lanes_per_block_;
};

/// Two-source instructions that may gather up their results in src1: one of the two stays at its place.
bool may_accumulate(const Instr& instr, uint32_t source) {
  if (!row_of(instr.op).has(trait::ACCUMULATES)) return false;
  const DType type = instr.dst.dtype;
  const bool has_type = type == DType::F16 || type == DType::S32 || type == DType::F32;
  return has_type && source == 1 && (instr.src[1].repeat_stride == 0 || instr.dst.repeat_stride == 0);
}

class OverlapCheck final : public CoreDetector<CoreFindings> {
 public:
  using CoreDetector::CoreDetector;

  void before(const Core& core, const Instr& instr) override {
    const OpRow& row = row_of(instr.op);
    if (row.has(trait::APART)) return look_at_all(core, instr);
    if (!row.has(trait::LANES) || size_bytes(instr.dst.dtype) == 0) return;
    const LaneShape shape = lane_shape(core, instr, lane_bytes(instr));
    if (shape.repeat == 0) return;
    for (uint32_t i = 0; i < instr.source_count; ++i) look_at(core, instr, shape, i);
  }

  void block_end(const Core& core) override { (void)core; }

 private:
  void look_at(const Core& core, const Instr& instr, const LaneShape& shape, uint32_t source) {
    const Operand& operand = instr.src[source];
    const uint32_t written_bytes = size_bytes(instr.dst.dtype);
    const uint32_t read_bytes = size_bytes(operand.dtype);
    if (operand.space != instr.dst.space || read_bytes == 0) return;
    const Lanes written(shape, instr.dst);
    const Lanes read(shape, operand);
    if (!written.all().meets(read.all())) return;
    const bool is_same_place = instr.dst.address == operand.address && written_bytes == read_bytes &&
                               written.block_step() == read.block_step() && written.repeat_step() == read.repeat_step();
    const bool has_apart = written.repeat_step() >= written.repeat(0).end - written.repeat(0).begin;
    if (is_same_place && (shape.repeat == 1 || has_apart)) return;
    for (uint32_t repeat = 0; repeat < shape.repeat; ++repeat) {
      // A narrower result at its source's place is written behind what is read.
      const bool is_apart_or_same = written_bytes < read_bytes || !covers_part(written, read, repeat) ||
                                    is_widened_in_place(instr, written, read, repeat);
      if (!is_apart_or_same) {
        return report(core, instr, source, repeat, repeat, written.repeat(repeat));
      }
      if (may_accumulate(instr, source)) continue;
      for (uint32_t later = repeat + 1; later < shape.repeat; ++later) {
        if (!written.repeat(repeat).meets(read.repeat(later)) || !blocks_meet(written, read, repeat, later)) continue;
        return report(core, instr, source, repeat, later, written.repeat(repeat));
      }
    }
  }

  /// For instructions that read in an order of their own. What Gather picks depends on data: its source begins at src.
  void look_at_all(const Core& core, const Instr& instr) {
    std::vector<Range> written;
    std::vector<Range> read;
    for_each_range(core, instr, [&](const ByteRange& range) {
      (range.is_write ? written : read).push_back({range.begin, range.begin + range.bytes});
    });
    if (row_of(instr.op).has(trait::INDEXED)) {
      read.push_back({instr.src[0].address, instr.src[0].address + size_bytes(instr.src[0].dtype)});
    }
    for (const Range& result : written) {
      for (const Range& source : read) {
        if (!result.meets(source)) continue;
        const std::string message = std::string(row_of(instr.op).name) + " writes over what it reads";
        return report(core, instr, result, message, "give the result bytes of its own");
      }
    }
  }

  /// Whether the result of a repeat lies over its source without being at the same place.
  static bool covers_part(const Lanes& written, const Lanes& read, uint32_t repeat) {
    if (!written.repeat(repeat).meets(read.repeat(repeat))) return false;
    const bool is_same_size = written.blocks() == read.blocks();
    for (uint32_t i = 0; i < written.blocks(); ++i) {
      const Range result = written.block(repeat, i);
      for (uint32_t j = 0; j < read.blocks(); ++j) {
        const Range source = read.block(repeat, j);
        if (result.meets(source) && !(i == j && result.equals(source) && is_same_size)) return true;
      }
    }
    return false;
  }

  /// A widening cast whose source fills the end of its result meets it in the last repeat alone, which ends where the
  /// result does. Source: public operators, which load narrow elements there
  static bool is_widened_in_place(const Instr& instr, const Lanes& written, const Lanes& read, uint32_t repeat) {
    const bool widens = size_bytes(instr.dst.dtype) > size_bytes(instr.src[0].dtype);
    return instr.op == Op::Cast && widens && end_of(read, repeat) >= end_of(written, repeat);
  }

  static uint64_t end_of(const Lanes& lanes, uint32_t repeat) {
    uint64_t end = 0;
    for (uint32_t i = 0; i < lanes.blocks(); ++i) end = std::max(end, lanes.block(repeat, i).end);
    return end;
  }

  static bool blocks_meet(const Lanes& written, const Lanes& read, uint32_t repeat, uint32_t later) {
    for (uint32_t i = 0; i < written.blocks(); ++i) {
      const Range result = written.block(repeat, i);
      for (uint32_t j = 0; j < read.blocks(); ++j) {
        if (result.meets(read.block(later, j))) return true;
      }
    }
    return false;
  }

  void report(const Core& core, const Instr& instr, uint32_t source, uint32_t repeat, uint32_t later,
              const Range& range) {
    const std::string name = "src" + (instr.source_count > 1 ? std::to_string(source) : std::string());
    const std::string first = std::string(row_of(instr.op).name) + " writes in repeat " + std::to_string(repeat);
    report(core, instr, range,
           repeat == later ? first + " over a part of what the same repeat reads of " + name
                           : first + " what repeat " + std::to_string(later) + " reads of " + name,
           "give the result bytes of its own, or exactly those of the source");
  }

  void report(const Core& core, const Instr& instr, const Range& range, const std::string& message, const char* help) {
    bool is_new = false;
    Finding& finding = state_of(core).findings.at("API-OVERLAP", core, site_of(instr), {}, is_new);
    if (!is_new) return;
    place_finding(finding, core, instr.dst.space, range.begin, range.end);
    finding.message = message;
    finding.help = help;
  }
};

}  // namespace

std::unique_ptr<Detector> make_overlap_check(const CheckOptions& options) {
  return std::make_unique<OverlapCheck>(options);
}

}  // namespace opkit
