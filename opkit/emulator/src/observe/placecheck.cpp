// Buffers that InitBuffer places behind a memory's end. Nothing happens there until somebody touches them, which
// faults; a kernel for several types may never do it for some, but the next change of a tile does.
#include <string>

#include "core/buffers.h"
#include "memory/bounds.h"
#include "observe/core_detector.h"

namespace opkit {
namespace {

class PlaceCheck final : public CoreDetector<CoreFindings> {
 public:
  using CoreDetector::CoreDetector;

  void resource(const Core& core, const ResourceEvent& event) override {
    if (event.action != ResourceEvent::Action::PlaceBuffer) return;
    const uint64_t end = uint64_t{event.address} + event.bytes;
    const uint32_t limit = placeable_bytes(event.space);
    if (end <= limit) return;
    bool is_new = false;
    const AccessSite placed = {event.where.file, event.where.line, Op::kCount, Pipe::S};
    Finding& finding = state_of(core).findings.at("MEM-OVERFULL", core, placed, {}, is_new);
    if (!is_new) return;
    place_finding(finding, core, event.space, event.address, end);
    finding.message = "InitBuffer: the buffer at bytes " + std::to_string(event.address) + ".." + std::to_string(end) +
                      " of " + space_name(event.space) + " ends behind its " + std::to_string(limit) +
                      " bytes; given out are:" + buffers_text(event.space);
    finding.help = "make the tiles smaller or use fewer buffers: `opkit targets` lists the sizes";
  }

  void before(const Core&, const Instr&) override {}
  void block_end(const Core&) override {}
};

}  // namespace

std::unique_ptr<Detector> make_place_check(const CheckOptions& options) {
  return std::make_unique<PlaceCheck>(options);
}

}  // namespace opkit
