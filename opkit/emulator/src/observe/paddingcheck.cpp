// Reads of what rounds a tensor of global memory up to a whole data block. They are allowed, and what they give belongs
// to nobody: a kernel that computes with it is right only where nothing of the result comes from there.
#include <algorithm>
#include <string>

#include "core/launch_state.h"
#include "isa/footprint.h"
#include "isa/table.h"
#include "memory/bounds.h"
#include "observe/core_detector.h"

namespace opkit {
namespace {

class PaddingCheck final : public CoreDetector<CoreFindings> {
 public:
  using CoreDetector::CoreDetector;

  void before(const Core& core, const Instr& instr) override {
    if (row_of(instr.op).family == Family::Control) {
      if (instr.op == Op::GetValue) look_at(core, instr, instr.src[0].space, instr.src[0].address, bytes_of(instr));
      return;
    }
    for_each_range(core, instr, [&](const ByteRange& range) {
      if (range.is_write || range.operand == 0) return;
      look_at(core, instr, instr.src[range.operand - 1].space, range.begin, range.bytes);
    });
  }

  void block_end(const Core&) override {}

 private:
  static uint64_t bytes_of(const Instr& instr) { return size_bytes(instr.src[0].dtype); }

  void look_at(const Core& core, const Instr& instr, Space space, uint64_t begin, uint64_t bytes) {
    if (space != Space::GM || bytes == 0) return;
    const GmRange* tensor = range_at(core.launch->launch->gm, begin);
    const uint64_t end = begin + bytes;
    // What leaves the tensor's room is a fault.
    if (tensor == nullptr || tensor->padding_bytes == 0 || end > tensor->end) return;
    const uint64_t data_end = tensor->end - tensor->padding_bytes;
    if (end <= data_end) return;
    bool is_new = false;
    Finding& finding = state_of(core).findings.at("MEM-PADDING", core, site_of(instr), {}, is_new);
    if (!is_new) return;
    place_finding(finding, core, space, std::max(begin, data_end), end);
    finding.message = std::string(row_of(instr.op).name) + " reads " + std::to_string(finding.end - finding.begin) +
                      " bytes behind the end of " + (tensor->name.empty() ? "a tensor" : tensor->name) +
                      ", inside what rounds it up to 32 bytes";
    finding.help = "copy the last tile by DataCopyPad, or see that nothing of the result comes from these bytes";
  }
};

}  // namespace

std::unique_ptr<Detector> make_padding_check(const CheckOptions& options) {
  return std::make_unique<PaddingCheck>(options);
}

}  // namespace opkit
