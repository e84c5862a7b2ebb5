// Scalar accesses, flags and barriers.
#include "core/launch_state.h"
#include "core/names.h"
#include "isa/table.h"
#include "memory/bounds.h"
#include "opkit/instr.h"
#include "sync/cross_core.h"
#include "sync/cube_service.h"

namespace opkit {
namespace {

uint8_t& flag_of(Core& core, const Instr& instr) {
  OPKIT_CHECK(instr.event_id < kEventCount, IllegalOperand, &instr, "use EVENT_ID0 to EVENT_ID7 or AllocEventID",
              "%s: event id %d is not one of 0 to %u", row_of(instr.op).name, static_cast<int8_t>(instr.event_id),
              kEventCount - 1);
  return core.flags[static_cast<uint32_t>(instr.pipe)][static_cast<uint32_t>(instr.peer_pipe)][instr.event_id];
}

void set_flag(Core& core, const Instr& instr) {
  uint8_t& flag = flag_of(core, instr);
  OPKIT_CHECK(flag < 255, IllegalOperand, &instr, "wait for the event before it is signalled again",
              "SetFlag: event %s_%s id %u was signalled 255 times without a wait", pipe_name(instr.pipe),
              pipe_name(instr.peer_pipe), instr.event_id);
  ++flag;
}

void wait_flag(Core& core, const Instr& instr) {
  uint8_t& flag = flag_of(core, instr);
  // Only this core can signal its own events, and it does so in program order: nothing will end this wait.
  OPKIT_CHECK(flag > 0, Deadlock, &instr, "signal it with SetFlag before this line",
              "WaitFlag: nothing has signalled event %s_%s id %u", pipe_name(instr.pipe), pipe_name(instr.peer_pipe),
              instr.event_id);
  --flag;
}

}  // namespace

void execute_control(Core& core, const Instr& instr) {
  switch (instr.op) {
    case Op::SetFlag: set_flag(core, instr); return;
    case Op::WaitFlag: wait_flag(core, instr); return;
    case Op::SyncAll: execute_sync_all(core, instr); return;
    case Op::CrossCoreSetFlag: execute_cross_core_set(core, instr); return;
    case Op::CrossCoreWaitFlag: execute_cross_core_wait(core, instr); return;
    case Op::IBSet: execute_ib_set(core, instr); return;
    case Op::IBWait: execute_ib_wait(core, instr); return;
    case Op::WaitPreBlock: execute_wait_pre_block(core, instr); return;
    case Op::NotifyNextBlock: execute_notify_next_block(core, instr); return;
    case Op::CubePost: execute_cube_post(core, instr); return;
    case Op::CubeTake: execute_cube_take(core, instr); return;
    case Op::CubeFinish: execute_cube_finish(core, instr); return;
    case Op::CubeAwait: execute_cube_await(core, instr); return;
    case Op::GroupArrive: execute_group_arrive(core, instr); return;
    case Op::GroupWait: execute_group_wait(core, instr); return;
    case Op::GetValue: {
      const Operand& element = instr.src[0];
      const uint64_t bytes = size_bytes(element.dtype);
      check_bounds(core, instr, element, element.address, bytes, false);
      if (instr.mode == kReference) note_scalar(core, element);
      return;
    }
    case Op::SetValue:
      check_bounds(core, instr, instr.dst, instr.dst.address, size_bytes(instr.dst.dtype), true);
      // The value follows.
      note_scalar(core, instr.dst);
      return;
    default: return;  // PipeBarrier: execution is in program order already
  }
}

}  // namespace opkit
