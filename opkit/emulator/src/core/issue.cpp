#include <algorithm>

#include "core/launch_state.h"
#include "isa/accuracy.h"
#include "isa/table.h"
#include "memory/raw_writes.h"
#include "sched/signals.h"

namespace opkit {

namespace {
thread_local RunningCore* this_thread_core = nullptr;

constexpr uint32_t kMaxListed = 32;  ///< operands behind Instr::list: TransDataTo5HD has the most

/// What a call that brings its own mask leaves in the registers. Source: Ascend C API, SIMD compute, mask
void leave_mask(Core& core, const Instr& instr) {
  constexpr uint64_t kAll = ~0ull;
  if (instr.mask_form == MaskForm::Count) {
    core.mask_mode = MaskMode::Normal;
    core.mask[0] = core.mask[1] = kAll;
    return;
  }
  core.mask[0] = instr.mask[0];
  core.mask[1] = instr.mask[1];
  if (instr.mask_form != MaskForm::Prefix || core.mask_mode == MaskMode::Counter) return;
  const uint64_t lanes = instr.mask[0];
  core.mask[0] = lanes >= 64 ? kAll : (1ull << lanes) - 1;
  core.mask[1] = lanes >= 128 ? kAll : lanes > 64 ? (1ull << (lanes - 64)) - 1 : 0;
}

/// The memories of the chip know no buffers.
void end_with_memory(const Core& core, Operand& operand) {
  if (operand.space == Space::GM) return;
  operand.begin = 0;
  operand.end = core.space_bytes[static_cast<uint32_t>(operand.space)];
}

void execute(Core& core, const Instr& instr) {
  if (__builtin_expect(core.inaccuracy_seed != 0, 0) && stated_error(instr) != 0) {
    return execute_inaccurately(core, instr, core.inaccuracy_seed);
  }
  row_of(instr.op).execute(core, instr);
}

/// Executes an instruction, or lets it wait in the core's chain, after those that wait and do not take it in.
void execute_in_chain(Core& core, const Instr& instr) {
  // Elementwise instructions and casts join what waits; a barrier has nothing to do.
  const bool may_join = row_of(instr.op).family <= Family::VecBinaryScalar || instr.op == Op::Cast;
  if (!may_join && instr.op != Op::PipeBarrier) finish_chain(core);
  execute(core, instr);
}

/// Has a replay take the instruction, or executes it between its observers.
void run_observed(Core& core, LaunchState& launch, Instr& instr) {
  if (__builtin_expect(launch.observers.empty(), 1)) {
    if (__builtin_expect(launch.reorder != nullptr, 0)) return launch.reorder->issue(core, instr);
    return execute_in_chain(core, instr);
  }
  for (Observer* observer : launch.observers) observer->before(core, instr);
  if (__builtin_expect(launch.uncomputed != nullptr, 0)) {
    launch.uncomputed->run(core, instr);
  } else {
    execute_in_chain(core, instr);
  }
  for (Observer* observer : launch.observers) observer->after(core, instr);
}

void run(Core& core, LaunchState& launch, Instr& instr) {
  run_observed(core, launch, instr);
  if (launch.raw_writes != nullptr) launch.raw_writes->keep(core.index);
}

void run_with_chip_bounds(Core& core, LaunchState& launch, Instr& instr) {
  end_with_memory(core, instr.dst);
  for (Operand& source : instr.src) end_with_memory(core, source);
  Operand list[kMaxListed];
  OPKIT_CHECK(instr.list_count <= kMaxListed, Internal, &instr, nullptr, "%s", row_of(instr.op).name);
  std::copy_n(instr.list, instr.list_count, list);
  for (uint32_t i = 0; i < instr.list_count; ++i) end_with_memory(core, list[i]);
  instr.list = list;
  run(core, launch, instr);
}

}  // namespace

RunningCore* running_core() { return this_thread_core; }
void set_running_core(RunningCore* core) { this_thread_core = core; }

Core* current_core() { return this_thread_core == nullptr ? nullptr : &this_thread_core->core; }

void issue(Instr& instr) {
  RunningCore* running = this_thread_core;
  OPKIT_CHECK(running != nullptr, Internal, &instr, nullptr, "%s", row_of(instr.op).name);
  Core& core = running->core;
  LaunchState& launch = *core.launch;
  // A lower core's fault or the user ends the launch: this one has nothing left to compute for.
  if (__builtin_expect(core.index >= launch.stop_from.load(std::memory_order_relaxed), 0)) leave_stopped_launch(&instr);

  ++core.issued;
  // By its fields: the kernel has just written them one by one, and a load of both at once would wait for that.
  running->last_where.file = instr.where.file;
  running->last_where.line = instr.where.line;
  if (__builtin_expect(core.has_chip_bounds, 0)) {
    run_with_chip_bounds(core, launch, instr);
  } else {
    run(core, launch, instr);
  }
  if (instr.sets_mask) leave_mask(core, instr);
}

}  // namespace opkit
