#include "core/launch_state.h"
#include "isa/table.h"

namespace opkit {

namespace {
thread_local RunningCore* this_thread_core = nullptr;
}

RunningCore* running_core() { return this_thread_core; }
void set_running_core(RunningCore* core) { this_thread_core = core; }

Core* current_core() { return this_thread_core == nullptr ? nullptr : &this_thread_core->core; }

void issue(Instr& instr) {
  RunningCore* running = this_thread_core;
  OPKIT_CHECK(running != nullptr, Internal, &instr, nullptr, "%s", row_of(instr.op).name);
  Core& core = running->core;
  LaunchState& launch = *core.launch;
  // A lower core's fault or the user ends the launch: this one has nothing left to compute for.
  if (__builtin_expect(core.index >= launch.stop_from.load(std::memory_order_relaxed), 0)) abandon_fiber();

  const OpRow& row = row_of(instr.op);
  ++core.issued;
  running->last_where = instr.where;
  if (__builtin_expect(launch.observers.empty(), 1)) {
    if (__builtin_expect(launch.reorder != nullptr, 0)) return launch.reorder->issue(core, instr);
    row.execute(core, instr);
    return;
  }
  for (Observer* observer : launch.observers) observer->before(core, instr);
  row.execute(core, instr);
  for (Observer* observer : launch.observers) observer->after(core, instr);
}

}  // namespace opkit
