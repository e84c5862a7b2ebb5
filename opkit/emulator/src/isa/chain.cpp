#include "isa/chain.h"

#include <utility>

#include "core/core.h"
#include "isa/execute.h"
#include "isa/lanes/lanes.h"

namespace opkit {
namespace {

constexpr uint32_t kNoPlace = Chain::kPlaces;

/// The index of a place, which is new or known; kNoPlace where it overlaps another one or there are too many.
uint32_t place_of(Chain& chain, const Operand& operand) {
  const uint64_t address = operand.address;
  const uint64_t end = address + uint64_t{chain.count} * size_bytes(operand.dtype);
  for (uint32_t i = 0; i < chain.place_count; ++i) {
    const Chain::Place& known = chain.places[i];
    if (known.address == address && known.dtype == operand.dtype) return i;
    if (address < known.address + uint64_t{chain.count} * size_bytes(known.dtype) && known.address < end) {
      return kNoPlace;
    }
  }
  if (chain.place_count == Chain::kPlaces) return kNoPlace;
  chain.places[chain.place_count] = {address, operand.dtype};
  return chain.place_count++;
}

/// False, with places added at most, where the instruction does not fit behind those that wait.
bool append(Chain& chain, const Instr& instr, lanes::Lane lane) {
  if (chain.step_count == Chain::kSteps || chain.count != instr.count) return false;
  Chain::Step& step = chain.steps[chain.step_count];
  for (uint32_t i = 0; i < instr.source_count; ++i) {
    const uint32_t place = place_of(chain, instr.src[i]);
    if (place == kNoPlace) return false;
    step.sources[i] = static_cast<uint8_t>(place);
  }
  const uint32_t place = place_of(chain, instr.dst);
  if (place == kNoPlace) return false;
  step.dst = static_cast<uint8_t>(place);
  step.op = instr.op;
  step.source_count = instr.source_count;
  step.scalar = instr.scalar_bits[0];
  step.lane = lane;
  ++chain.step_count;
  return true;
}

bool commutes(Op op) { return op == Op::Add || op == Op::Mul; }

/// Finds out, from the last step to the first, which first sources are the result of the step before, and which results
/// nobody reads from memory before something else is written there. What is narrower is always written and read: as the
/// result of a step it is not in registers.
void plan(Chain& chain, uint8_t* base, lanes::ChainStep* planned) {
  bool is_needed[Chain::kPlaces];
  for (bool& needed : is_needed) needed = true;
  for (uint32_t i = chain.step_count; i-- > 0;) {
    Chain::Step& step = chain.steps[i];
    lanes::ChainStep& to = planned[i];
    const Chain::Place& dst = chain.places[step.dst];
    to.op = step.op;
    to.scalar = step.scalar;
    to.dst = base + dst.address;
    to.dst_dtype = dst.dtype;
    to.is_stored = is_needed[step.dst] || dst.dtype != DType::F32;
    is_needed[step.dst] = reads_destination(step.op);
    const uint32_t before = i == 0 ? kNoPlace : chain.steps[i - 1].dst;
    if (commutes(step.op) && step.sources[1] == before) std::swap(step.sources[0], step.sources[1]);
    const Chain::Place& first = chain.places[step.sources[0]];
    const bool is_kept = step.sources[0] == before && first.dtype == DType::F32;
    to.first = is_kept ? nullptr : base + first.address;
    to.first_dtype = first.dtype;
    if (!is_kept) is_needed[step.sources[0]] = true;
    if (step.source_count < 2) continue;
    to.second = base + chain.places[step.sources[1]].address;
    is_needed[step.sources[1]] = true;
  }
}

/// Executes steps one by one, from an element on.
void run_from(const Chain& chain, uint8_t* base, size_t first) {
  if (first == chain.count) return;
  const auto at = [&](uint8_t place) {
    return base + chain.places[place].address + first * size_bytes(chain.places[place].dtype);
  };
  for (uint32_t i = 0; i < chain.step_count; ++i) {
    const Chain::Step& step = chain.steps[i];
    const void* sources[2] = {at(step.sources[0]), step.source_count > 1 ? at(step.sources[1]) : nullptr};
    const uint64_t scalars[2] = {step.scalar, 0};
    step.lane(at(step.dst), sources, scalars, chain.count - first);
  }
}

}  // namespace

bool is_chain_cast(const Instr& instr) {
  const auto is_narrow = [](DType type) { return type == DType::F16 || type == DType::BF16; };
  const DType from = instr.src[0].dtype, to = instr.dst.dtype;
  constexpr uint8_t kRint = 1;  // RoundMode: none, which is this one here, and to the nearest
  return (is_narrow(from) && to == DType::F32) || (from == DType::F32 && is_narrow(to) && instr.mode <= kRint);
}

bool join_chain(Core& core, const Instr& instr, lanes::Lane lane) {
  Chain& chain = core.chain;
  if (chain.step_count > 0) {
    if (append(chain, instr, lane)) return true;
    run_chain(core);
  }
  chain.place_count = 0;
  chain.count = instr.count;
  return append(chain, instr, lane);
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
