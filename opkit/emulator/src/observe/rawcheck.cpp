// Stores into UB through raw pointers; see memory/raw_local.h.
#include "memory/raw_local.h"

#include <memory>

#include "observe/core_detector.h"

namespace opkit {
namespace {

struct RawCheckState : CoreFindings {
  using CoreFindings::CoreFindings;

  std::unique_ptr<RawLocal> local;  // null before the first instruction
};

class RawCheck final : public CoreDetector<RawCheckState> {
 public:
  using CoreDetector::CoreDetector;

  void before(const Core& core, const Instr& instr) override {
    RawCheckState& state = state_of(core);
    const uint64_t size = core.space_bytes[static_cast<size_t>(Space::UB)];
    if (state.local == nullptr && size != 0) {
      state.local = std::make_unique<RawLocal>(core.at(Space::UB, 0), size);
    }
    if (state.local == nullptr) return;
    if (const auto changed = state.local->before(instr)) report(core, state, instr, *changed);
  }

  void after(const Core& core, const Instr& instr) override {
    RawCheckState& state = state_of(core);
    if (state.local != nullptr) state.local->after(instr);
  }

  void block_end(const Core& core) override {
    RawCheckState* state = find_state(core);
    if (state != nullptr) state->local.reset();
  }

 private:
  static void report(const Core& core, RawCheckState& state, const Instr& instr, const RawLocal::Changed& changed) {
    bool is_new = false;
    Finding& finding = state.findings.at("MEM-RAW", core, site_of(instr), {}, is_new);
    if (!is_new) return;
    place_finding(finding, core, Space::UB, changed.first, changed.last);
    finding.message = raw_local_text(changed, instr);
    finding.help = kRawLocalHelp;
  }
};

}  // namespace

std::unique_ptr<Detector> make_raw_check(const CheckOptions& options) { return std::make_unique<RawCheck>(options); }

}  // namespace opkit
