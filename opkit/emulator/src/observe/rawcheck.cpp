// Stores into UB through raw pointers: bytes that differ between two instructions of a core. The host's processor has
// computed them, and nothing times that. References that LocalTensor gives, and SetValue, count as instructions. Cores
// that take results of a Matmul object are left out: another core writes their UB.
#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "isa/table.h"
#include "observe/core_detector.h"
#include "observe/written_bits.h"

namespace opkit {
namespace {

struct RawCheckState : CoreFindings {
  using CoreFindings::CoreFindings;

  std::vector<uint8_t> kept;          // UB as the last instruction left it; empty before the first
  std::unique_ptr<WrittenBits> open;  // what scalar accesses write by themselves, behind their instruction
  bool is_shared = false;
};

bool is_of_cube(Op op) {
  return op == Op::CubePost || op == Op::CubeTake || op == Op::CubeServe || op == Op::CubeFinish || op == Op::CubeAwait;
}

class RawCheck final : public CoreDetector<RawCheckState> {
 public:
  using CoreDetector::CoreDetector;

  void before(const Core& core, const Instr& instr) override {
    RawCheckState& state = state_of(core);
    state.is_shared |= is_of_cube(instr.op);
    const size_t size = state.kept.size();
    if (size == 0 || state.is_shared) return;
    const uint8_t* now = core.at(Space::UB, 0);
    if (std::memcmp(now, state.kept.data(), size) == 0) return;
    uint64_t first = size, last = 0, bytes = 0;
    for (uint64_t at = 0; at < size; ++at) {
      if (now[at] == state.kept[at] || state.open->get(at)) continue;
      first = std::min(first, at);
      last = at + 1;
      ++bytes;
    }
    if (bytes != 0) report(core, state, instr, first, last, bytes);
  }

  void after(const Core& core, const Instr& instr) override {
    RawCheckState& state = state_of(core);
    const uint64_t size = core.space_bytes[static_cast<size_t>(Space::UB)];
    if (size == 0 || state.is_shared) return;
    if (state.open == nullptr) state.open = std::make_unique<WrittenBits>(size);
    const bool is_write = instr.op == Op::SetValue;
    if (is_write || (instr.op == Op::GetValue && instr.mode == kReference)) {
      const Operand& element = is_write ? instr.dst : instr.src[0];
      if (element.space == Space::UB) state.open->set(element.address, element.address + size_bytes(element.dtype));
    }
    const uint8_t* now = core.at(Space::UB, 0);
    state.kept.assign(now, now + size);
  }

  void block_end(const Core& core) override {
    RawCheckState* state = find_state(core);
    if (state == nullptr) return;
    state->kept.clear();
    state->open.reset();
    state->is_shared = false;
  }

 private:
  static void report(const Core& core, RawCheckState& state, const Instr& instr, uint64_t first, uint64_t last,
                     uint64_t bytes) {
    bool is_new = false;
    Finding& finding = state.findings.at("MEM-RAW", core, site_of(instr), {}, is_new);
    if (!is_new) return;
    place_finding(finding, core, Space::UB, first, last);
    finding.message = std::to_string(bytes) + " bytes of UB have changed in front of this " +
                      std::string(row_of(instr.op).name) + ", and no instruction has written them";
    finding.help = "compute with instructions, or with GetValue and SetValue: stores through pointers are not timed";
  }
};

}  // namespace

std::unique_ptr<Detector> make_raw_check(const CheckOptions& options) { return std::make_unique<RawCheck>(options); }

}  // namespace opkit
