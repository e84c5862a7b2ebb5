// Accesses of a queue's tensor behind its FreeTensor: the queue may have given the buffer to the next tensor by then.
// Source: Ascend C API, resource management, FreeTensor.
#include <algorithm>
#include <string>
#include <vector>

#include "core/buffers.h"
#include "isa/table.h"
#include "memory/bounds.h"
#include "observe/core_detector.h"

namespace opkit {
namespace {

using Action = ResourceEvent::Action;

struct FreedTensor {
  Space space;
  uint64_t begin;
  uint64_t end;
  Where freed;
};

struct FreeCheckState : CoreFindings {
  using CoreFindings::CoreFindings;

  std::vector<FreedTensor> tensors;
};

class FreeCheck final : public CoreDetector<FreeCheckState> {
 public:
  using CoreDetector::CoreDetector;

  void resource(const Core& core, const ResourceEvent& event) override {
    if (event.action != Action::FreeTensor && event.action != Action::AllocateTensor &&
        event.action != Action::PlaceBuffer) {
      return;
    }
    const uint64_t begin = event.address;
    const uint64_t end = begin + event.bytes;
    std::vector<FreedTensor>& tensors = state_of(core).tensors;
    tensors.erase(std::remove_if(tensors.begin(), tensors.end(),
                                 [&](const FreedTensor& tensor) {
                                   return tensor.space == event.space && tensor.begin < end && begin < tensor.end;
                                 }),
                  tensors.end());
    if (event.action == Action::FreeTensor) tensors.push_back({event.space, begin, end, event.where});
  }

  void before(const Core& core, const Instr& instr) override {
    FreeCheckState* state = find_state(core);
    if (state == nullptr || state->tensors.empty()) return;
    look_at(core, *state, instr, instr.dst);
    for (uint32_t i = 0; i < instr.source_count; ++i) look_at(core, *state, instr, instr.src[i]);
    for (uint32_t i = 0; i < instr.list_count; ++i) look_at(core, *state, instr, instr.list[i]);
  }

  void block_end(const Core& core) override {
    if (FreeCheckState* state = find_state(core)) state->tensors.clear();
  }

 private:
  static void look_at(const Core& core, FreeCheckState& state, const Instr& instr, const Operand& operand) {
    if (operand.space == Space::GM || operand.begin == operand.end) return;
    for (const FreedTensor& tensor : state.tensors) {
      if (tensor.space == operand.space && tensor.begin <= operand.address && operand.address < tensor.end) {
        return report(core, state, instr, tensor);
      }
    }
  }

  static void report(const Core& core, FreeCheckState& state, const Instr& instr, const FreedTensor& tensor) {
    bool is_new = false;
    const AccessSite freed = {tensor.freed.file, tensor.freed.line, Op::kCount, Pipe::S};
    Finding& finding = state.findings.at("MEM-FREED-TENSOR", core, site_of(instr), freed, is_new);
    if (!is_new) return;
    finding.space = space_name(tensor.space);
    finding.allocation = buffer_text(tensor.space, tensor.begin);
    finding.message =
        std::string(row_of(instr.op).name) + " uses a tensor that FreeTensor has given back at " + place_text(freed);
    finding.help = "call FreeTensor behind the last use of the tensor";
  }
};

}  // namespace

std::unique_ptr<Detector> make_free_check(const CheckOptions& options) { return std::make_unique<FreeCheck>(options); }

}  // namespace opkit
