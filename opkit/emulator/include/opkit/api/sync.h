/// Flags and barriers inside a core. Source: Ascend C API, synchronisation inside a core.
#pragma once

#include "opkit/api/base.h"
#include "opkit/instr.h"

namespace opkit {

inline void issue_flag(Op op, AscendC::HardEvent event, int32_t id, Where where) {
  Instr instr;
  instr.op = op;
  instr.pipe = first_pipe(event);
  instr.peer_pipe = second_pipe(event);
  instr.event_id = static_cast<uint8_t>(id);
  instr.where = where;
  issue(instr);
}

}  // namespace opkit

namespace AscendC {

template <HardEvent event>
inline void SetFlag(int32_t event_id, opkit::Where where = opkit::Where::here()) {
  opkit::issue_flag(opkit::Op::SetFlag, event, event_id, where);
}

template <HardEvent event>
inline void WaitFlag(int32_t event_id, opkit::Where where = opkit::Where::here()) {
  opkit::issue_flag(opkit::Op::WaitFlag, event, event_id, where);
}

template <pipe_t pipe>
inline void PipeBarrier(opkit::Where where = opkit::Where::here()) {
  opkit::Instr instr;
  instr.op = opkit::Op::PipeBarrier;
  instr.pipe = static_cast<opkit::Pipe>(pipe);
  instr.where = where;
  opkit::issue(instr);
}

}  // namespace AscendC
