#include "core/reorder.h"

#include <algorithm>
#include <utility>

#include "isa/table.h"

namespace opkit {
namespace {

/// What an instruction points to lives while it is issued, no longer.
template <typename Part>
void keep(const Part* part, Part& copy) {
  if (part != nullptr) copy = *part;
}

template <typename Part>
void point_at(const Part*& part, const Part& copy) {
  if (part != nullptr) part = &copy;
}

}  // namespace

void Reorder::issue(Core& core, Instr& instr) {
  const OpRow& row = row_of(instr.op);
  if (is_over_ || order_.earlier == 0 || core.index != order_.core) return row.execute(core, instr);
  if (core.issued == order_.earlier) held_pipes_ = 1u << static_cast<uint32_t>(instr.pipe);
  if (held_pipes_ == 0) return row.execute(core, instr);
  if (core.issued == order_.later) {
    // What comes late on the later one's own pipe is ordered after all.
    if (is_held(instr.pipe)) release(core);
    row.execute(core, instr);
    release(core);
    is_over_ = true;
    return;
  }
  const Flag flag = {instr.pipe, instr.peer_pipe, instr.event_id};
  const bool waits_for_held = instr.op == Op::WaitFlag && held_flags_.count(flag) != 0;
  if (waits_for_held) held_pipes_ |= 1u << static_cast<uint32_t>(instr.peer_pipe);
  const bool is_barrier = instr.op == Op::PipeBarrier && instr.pipe == Pipe::ALL;
  // The scalar pipe issues all that follows: nothing is left to come early once it waits.
  const bool scalar_waits = waits_for_held && instr.peer_pipe == Pipe::S;
  const bool is_scalar = instr.op == Op::GetValue || instr.op == Op::SetValue;
  const bool is_auto_synced = is_scalar && order_.has_auto_sync && core.has_auto_sync && core.kind == SubCore::AIV;
  if (is_barrier || scalar_waits || is_auto_synced || row.cost == Cost::cross_core) {
    release(core);
    is_over_ = true;
    return row.execute(core, instr);
  }
  const bool is_held_wait = instr.op == Op::WaitFlag && (waits_for_held || is_held(instr.peer_pipe));
  if (is_held_wait || (instr.op != Op::WaitFlag && is_held(instr.pipe))) {
    if (instr.op == Op::SetFlag) held_flags_.insert(flag);
    return hold(core, instr);
  }
  row.execute(core, instr);
}

void Reorder::hold(Core& core, const Instr& instr) {
  Held held;
  held.instr = instr;
  held.list.assign(instr.list, instr.list + instr.list_count);
  keep(instr.load, held.load);
  keep(instr.image, held.image);
  keep(instr.fill, held.fill);
  keep(instr.product, held.product);
  keep(instr.fixpipe, held.fixpipe);
  held.registers = registers_of(core);
  held_.push_back(std::move(held));
}

void Reorder::release(Core& core) {
  const Registers now = registers_of(core);
  for (Held& held : held_) {
    restore(core, held.registers);
    Instr& instr = held.instr;
    instr.list = held.list.data();
    point_at(instr.load, held.load);
    point_at(instr.image, held.image);
    point_at(instr.fill, held.fill);
    point_at(instr.product, held.product);
    point_at(instr.fixpipe, held.fixpipe);
    row_of(instr.op).execute(core, instr);
  }
  restore(core, now);
  held_.clear();
  held_flags_.clear();
  held_pipes_ = 0;
}

Reorder::Registers Reorder::registers_of(const Core& core) {
  return {core.mask_mode,
          {core.mask[0], core.mask[1]},
          {core.compare_mask[0], core.compare_mask[1]},
          core.deq_scale_bits,
          core.pad_value_bits,
          core.atomic_op,
          core.atomic_dtype,
          core.deq_scale,
          core.saturates_floats,
          core.saturates_casts};
}

void Reorder::restore(Core& core, const Registers& registers) {
  core.mask_mode = registers.mask_mode;
  std::copy(std::begin(registers.mask), std::end(registers.mask), core.mask);
  std::copy(std::begin(registers.compare_mask), std::end(registers.compare_mask), core.compare_mask);
  core.deq_scale_bits = registers.deq_scale_bits;
  core.pad_value_bits = registers.pad_value_bits;
  core.atomic_op = registers.atomic_op;
  core.atomic_dtype = registers.atomic_dtype;
  core.deq_scale = registers.deq_scale;
  core.saturates_floats = registers.saturates_floats;
  core.saturates_casts = registers.saturates_casts;
}

}  // namespace opkit
