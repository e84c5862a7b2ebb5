// What the chip does without a word and people seldom mean: no bug by itself, so a note. Lengths that are rounded or
// lose their high bits, bursts that are taken from packed elements, rows that were padded and are read as packed,
// instructions whose pages state an accuracy. Source: Ascend C API, DataCopy, DataCopyPad, Rsqrt, Reciprocal.
#include <algorithm>
#include <string>
#include <vector>

#include "isa/accuracy.h"
#include "isa/table.h"
#include "memory/bounds.h"
#include "observe/core_detector.h"
#include "observe/interval_map.h"
#include "observe/merged_ranges.h"

namespace opkit {
namespace {

/// The instruction that wrote some bytes last, and how many it wrote in one piece.
struct Written {
  uint64_t begin = 0;
  uint64_t bytes = 0;
  AccessSite site;
};

/// Rows that a copy has padded to whole data blocks.
struct PaddedRows {
  uint64_t begin;
  uint64_t end;
  uint64_t row_bytes;
  uint32_t rows;
  AccessSite site;
};

struct CoreState : CoreFindings {
  using CoreFindings::CoreFindings;

  IntervalMap<Written> written;  // of UB
  std::vector<PaddedRows> rows;
  std::vector<ByteRange> ranges;
};

class NoteCheck final : public CoreDetector<CoreState> {
 public:
  using CoreDetector::CoreDetector;

  void before(const Core& core, const Instr& instr) override {
    const OpRow& row = row_of(instr.op);
    if (row.family == Family::Control) return;
    CoreState& state = state_of(core);
    note_length(core, state, instr);
    note_accuracy(core, state, instr);
    note_packed_bursts(core, state, instr);
    joined_ranges(core, instr, state.ranges);
    for (const ByteRange& range : state.ranges) {
      if (!range.is_write && space_of(instr, range) == Space::UB) note_padded_rows(core, state, instr, range);
    }
    for (const ByteRange& range : state.ranges) {
      if (range.is_write && space_of(instr, range) == Space::UB) follow_write(state, instr, range);
    }
    follow_padded_copy(state, instr);
  }

  void block_end(const Core& core) override {
    CoreState* state = find_state(core);
    if (state == nullptr) return;
    state->written.clear();
    state->rows.clear();
  }

 private:
  static Space space_of(const Instr& instr, const ByteRange& range) {
    return range.operand == 0 ? instr.dst.space : instr.src[range.operand - 1].space;
  }

  static Finding* note(const Core& core, CoreState& state, const Instr& instr, const char* id,
                       const AccessSite& other = {}) {
    bool is_new = false;
    Finding& finding = state.findings.at(id, core, site_of(instr), other, is_new);
    return is_new ? &finding : nullptr;
  }

  static void note_length(const Core& core, CoreState& state, const Instr& instr) {
    const CopyShape& copy = instr.copy;
    if (row_of(instr.op).family != Family::DataCopy || copy.asked_bytes == 0) return;
    const bool is_rounded = copy.asked_bytes / kBlockBytes * kBlockBytes == copy.burst_bytes;
    Finding* finding = note(core, state, instr, is_rounded ? "NOTE-COPY-ROUNDED" : "NOTE-COPY-LENGTH");
    if (finding == nullptr) return;
    finding->message = std::string(row_of(instr.op).name) + " is asked for " + std::to_string(copy.asked_bytes) +
                       " bytes and copies " + std::to_string(copy.burst_bytes) +
                       (is_rounded ? ": it moves whole data blocks of 32 bytes" : ": blockLen has 16 bits");
    finding->help = is_rounded ? "copy the last block with DataCopyPad, or round the count up where there is room"
                               : "use DataCopyExtParams, whose blockLen has 32 bits, or several bursts";
  }

  static void note_accuracy(const Core& core, CoreState& state, const Instr& instr) {
    const double error = stated_error(instr);
    if (error == 0) return;
    Finding* finding = note(core, state, instr, "NOTE-ACCURACY");
    if (finding == nullptr) return;
    finding->message = std::string(row_of(instr.op).name) + " may be off by more than 1/" +
                       std::to_string(static_cast<int>(1 / error + 0.5)) + " on the chip, its page says";
    finding->help = instr.op == Op::Rsqrt ? "use Sqrt and Div where results must be better than that"
                                          : "use Div where results must be better than that";
  }

  /// Each burst starts on a data block of UB. A source that one instruction has written as exactly the bytes of all
  /// bursts, one behind the other, has its elements elsewhere.
  static void note_packed_bursts(const Core& core, CoreState& state, const Instr& instr) {
    const CopyShape& copy = instr.copy;
    const bool is_out = copy.is_padded && instr.src[0].space == Space::UB && instr.dst.space == Space::GM;
    if (!is_out || copy.burst_count < 2 || copy.burst_bytes % kBlockBytes == 0) return;
    const uint64_t begin = instr.src[0].address;
    const uint64_t bytes = uint64_t{copy.burst_count} * copy.burst_bytes;
    Written writer;
    state.written.update(begin, begin + 1, [&](uint64_t, uint64_t, Written& written) { writer = written; });
    if (writer.bytes != bytes || writer.begin != begin) return;
    Finding* finding = note(core, state, instr, "NOTE-PACKED-BURSTS", writer.site);
    if (finding == nullptr) return;
    place_finding(*finding, core, Space::UB, begin, begin + bytes);
    finding->message = "DataCopyPad takes each of " + std::to_string(copy.burst_count) + " bursts of " +
                       std::to_string(copy.burst_bytes) + " bytes from a data block of its own, and " +
                       row_of(writer.site.op).name + " has written " + std::to_string(bytes) +
                       " bytes one behind the other there";
    finding->help = "copy them as one burst of " + std::to_string(bytes) + " bytes, or write each to a data block";
  }

  static void note_padded_rows(const Core& core, CoreState& state, const Instr& instr, const ByteRange& range) {
    for (const PaddedRows& rows : state.rows) {
      const uint64_t packed = rows.row_bytes * rows.rows;
      if (range.begin != rows.begin || range.bytes != packed) continue;
      Finding* finding = note(core, state, instr, "NOTE-PADDED-ROWS", rows.site);
      if (finding == nullptr) return;
      place_finding(*finding, core, Space::UB, range.begin, range.begin + range.bytes);
      finding->message = std::string(row_of(instr.op).name) + " reads " + std::to_string(packed) +
                         " bytes in one piece, which are " + std::to_string(rows.rows) + " rows of " +
                         std::to_string(rows.row_bytes) + " bytes; DataCopyPad has put each row on data blocks of " +
                         "its own, " + std::to_string((rows.end - rows.begin) / rows.rows) + " bytes apart";
      finding->help = "count the padding, too, or copy the rows as one burst";
      return;
    }
  }

  static void follow_write(CoreState& state, const Instr& instr, const ByteRange& range) {
    const uint64_t end = range.begin + range.bytes;
    state.written.assign(
        range.begin, end, [](uint64_t, uint64_t, const Written&) {},
        [&](Written& written) { written = {range.begin, range.bytes, site_of(instr)}; });
    state.rows.erase(std::remove_if(state.rows.begin(), state.rows.end(),
                                    [&](const PaddedRows& rows) { return rows.begin < end && range.begin < rows.end; }),
                     state.rows.end());
  }

  static void follow_padded_copy(CoreState& state, const Instr& instr) {
    const CopyShape& copy = instr.copy;
    const bool is_in = copy.is_padded && instr.dst.space == Space::UB && instr.src[0].space == Space::GM;
    if (!is_in || copy.burst_count < 2 || copy.dst_stride <= copy.burst_bytes || copy.left_padding != 0) return;
    const uint64_t begin = instr.dst.address;
    state.rows.push_back(
        {begin, begin + copy.burst_count * copy.dst_stride, copy.burst_bytes, copy.burst_count, site_of(instr)});
  }
};

}  // namespace

std::unique_ptr<Detector> make_note_check(const CheckOptions& options) { return std::make_unique<NoteCheck>(options); }

}  // namespace opkit
