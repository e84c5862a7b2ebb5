// Reads of bytes that an instruction has used as scratch. Some instructions want 8 KiB of UB for themselves and take no
// tensor for it. The pages do not say where these lie; public reports say at the end of UB, and a public constant of
// the library names the same place. Sources: Select, Brcb, constraints; public reports: from 184 KiB on (910B)
#include <algorithm>
#include <string>
#include <vector>

#include "isa/table.h"
#include "memory/bounds.h"
#include "observe/core_detector.h"
#include "observe/interval_map.h"
#include "observe/merged_ranges.h"

namespace opkit {
namespace {

constexpr uint64_t kScratchBytes = 8192;

/// Since when bytes that a kernel has written are lost; no file while they are not.
struct Loss {
  AccessSite site;
  bool is_lost = false;
};

struct ScratchCheckState : CoreFindings {
  using CoreFindings::CoreFindings;

  IntervalMap<Loss> written;  // what the kernel has written of the scratch
  std::vector<ByteRange> ranges;
};

bool uses_scratch(const Core& core, const Instr& instr) {
  // SELMODE 1 and 2; a scalar that lies in a register is marked by a bit of its own.
  if (instr.op == Op::Select) return (instr.mode & ~kScalarInRegister) != 0;
  return instr.op == Op::Brcb && !core.chip->traits().sorts_pairs;
}

class ScratchCheck final : public CoreDetector<ScratchCheckState> {
 public:
  using CoreDetector::CoreDetector;

  void before(const Core& core, const Instr& instr) override {
    ScratchCheckState& state = state_of(core);
    const uint64_t limit = core.space_bytes[static_cast<size_t>(Space::UB)];
    if (limit < kScratchBytes) return;
    const uint64_t first = limit - kScratchBytes;
    state.ranges.clear();
    if (instr.op == Op::GetValue || instr.op == Op::SetValue) {
      const bool is_write = instr.op == Op::SetValue;
      const Operand& element = is_write ? instr.dst : instr.src[0];
      state.ranges.push_back({is_write ? 0u : 1u, element.address, size_bytes(element.dtype), is_write});
    } else if (row_of(instr.op).family != Family::Control) {
      joined_ranges(core, instr, state.ranges);
    }
    for (const bool is_write : {false, true}) {
      for (const ByteRange& range : state.ranges) {
        const Space space = range.operand == 0 ? instr.dst.space : instr.src[range.operand - 1].space;
        const uint64_t begin = std::max(first, range.begin), end = std::min(limit, range.begin + range.bytes);
        if (space != Space::UB || range.is_write != is_write || begin >= end) continue;
        if (uses_scratch(core, instr)) report(core, state, instr, {}, begin, end);
        if (is_write) {
          state.written.assign(
              begin, end, [](uint64_t, uint64_t, const Loss&) {}, [](Loss& loss) { loss.is_lost = false; });
        } else {
          state.written.update(begin, end, [&](uint64_t from, uint64_t to, Loss& loss) {
            if (loss.is_lost) report(core, state, instr, loss.site, from, to);
            loss.is_lost = false;
          });
        }
      }
      // It has read its sources by then; its result may still be written there.
      if (!is_write && uses_scratch(core, instr)) {
        state.written.each([&](Loss& loss) { loss = {site_of(instr), true}; });
      }
    }
  }

  void block_end(const Core& core) override {
    if (ScratchCheckState* state = find_state(core)) state->written.clear();
  }

 private:
  static void report(const Core& core, ScratchCheckState& state, const Instr& instr, const AccessSite& user,
                     uint64_t first, uint64_t last) {
    bool is_new = false;
    Finding& finding = state.findings.at("MEM-SCRATCH", core, site_of(instr), user, is_new);
    if (!is_new) return;
    place_finding(finding, core, Space::UB, first, last);
    const bool is_own = user.op == Op::kCount;
    const std::string name = row_of(instr.op).name, user_name = is_own ? name : row_of(user.op).name;
    finding.message = is_own ? name + " has an operand in the last 8 KiB of UB, which it uses as scratch"
                             : name + " reads bytes of the last 8 KiB of UB, which " + user_name +
                                   " has used as scratch since they were written";
    finding.help = "leave the last 8 KiB of UB free in kernels that call " + user_name + " in this form";
  }
};

}  // namespace

std::unique_ptr<Detector> make_scratch_check(const CheckOptions& options) {
  return std::make_unique<ScratchCheck>(options);
}

}  // namespace opkit
