#include "isa/chain.h"

#include <utility>

#include "core/core.h"
#include "isa/execute.h"
#include "isa/lanes/lanes.h"

namespace opkit {
namespace {

constexpr uint32_t kNoPlace = Chain::kPlaces;

/// The index of a place, which is new or known; kNoPlace where it overlaps another one or there are too many.
uint32_t place_of(Chain& chain, uint64_t address) {
  const uint64_t bytes = uint64_t{chain.count} * sizeof(float);
  for (uint32_t i = 0; i < chain.place_count; ++i) {
    const uint64_t known = chain.places[i];
    if (known == address) return i;
    if (address < known + bytes && known < address + bytes) return kNoPlace;
  }
  if (chain.place_count == Chain::kPlaces) return kNoPlace;
  chain.places[chain.place_count] = address;
  return chain.place_count++;
}

/// False, with places added at most, where the instruction does not fit behind those that wait.
bool append(Chain& chain, const Instr& instr) {
  if (chain.step_count == Chain::kSteps || chain.count != instr.count) return false;
  Chain::Step& step = chain.steps[chain.step_count];
  for (uint32_t i = 0; i < instr.source_count; ++i) {
    const uint32_t place = place_of(chain, instr.src[i].address);
    if (place == kNoPlace) return false;
    step.sources[i] = static_cast<uint8_t>(place);
  }
  const uint32_t place = place_of(chain, instr.dst.address);
  if (place == kNoPlace) return false;
  step.dst = static_cast<uint8_t>(place);
  step.op = instr.op;
  step.source_count = instr.source_count;
  step.scalar = instr.scalar_bits[0];
  ++chain.step_count;
  return true;
}

bool commutes(Op op) { return op == Op::Add || op == Op::Mul; }

/// Finds out, from the last step to the first, which first sources are the result of the step before, and which results
/// nobody reads from memory before something else is written there.
void plan(Chain& chain, uint8_t* base, lanes::ChainStep* planned) {
  bool is_needed[Chain::kPlaces];
  for (bool& needed : is_needed) needed = true;
  for (uint32_t i = chain.step_count; i-- > 0;) {
    Chain::Step& step = chain.steps[i];
    lanes::ChainStep& to = planned[i];
    to.op = step.op;
    to.scalar = step.scalar;
    to.dst = base + chain.places[step.dst];
    to.is_stored = is_needed[step.dst];
    is_needed[step.dst] = reads_destination(step.op);
    const uint32_t before = i == 0 ? kNoPlace : chain.steps[i - 1].dst;
    if (commutes(step.op) && step.sources[1] == before) std::swap(step.sources[0], step.sources[1]);
    const bool is_kept = step.sources[0] == before;
    to.first = is_kept ? nullptr : base + chain.places[step.sources[0]];
    if (!is_kept) is_needed[step.sources[0]] = true;
    if (step.source_count < 2) continue;
    to.second = base + chain.places[step.sources[1]];
    is_needed[step.sources[1]] = true;
  }
}

/// Executes steps one by one, from an element on.
void run_from(const Chain& chain, uint8_t* base, size_t first) {
  if (first == chain.count) return;
  base += first * sizeof(float);
  for (uint32_t i = 0; i < chain.step_count; ++i) {
    const Chain::Step& step = chain.steps[i];
    const void* sources[2] = {base + chain.places[step.sources[0]], nullptr};
    if (step.source_count > 1) sources[1] = base + chain.places[step.sources[1]];
    const uint64_t scalars[2] = {step.scalar, 0};
    const lanes::Lane lane = lanes::table().elementwise[static_cast<size_t>(step.op)][static_cast<size_t>(DType::F32)];
    lane(base + chain.places[step.dst], sources, scalars, chain.count - first);
  }
}

}  // namespace

bool join_chain(Core& core, const Instr& instr) {
  Chain& chain = core.chain;
  if (chain.step_count > 0) {
    if (append(chain, instr)) return true;
    run_chain(core);
  }
  chain.place_count = 0;
  chain.count = instr.count;
  return append(chain, instr);
}

void run_chain(Core& core) {
  Chain& chain = core.chain;
  uint8_t* base = core.space_base[static_cast<uint32_t>(Space::UB)];
  size_t done = 0;
  if (chain.step_count > 1) {
    lanes::ChainStep planned[Chain::kSteps];
    plan(chain, base, planned);
    done = lanes::table().run_chain(planned, chain.step_count, chain.count);
  }
  run_from(chain, base, done);
  chain.step_count = 0;
}

}  // namespace opkit
