/// Flags and barriers inside a core and between cores. Source: Ascend C API, synchronisation control.
#pragma once

#include "opkit/api/tensor.h"

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

inline void issue_sync_all(bool is_vector_only, int32_t used_cores, Where where) {
  Instr instr;
  instr.op = Op::SyncAll;
  instr.pipe = Pipe::ALL;
  instr.mode = is_vector_only ? 1 : 0;
  instr.count = static_cast<uint32_t>(used_cores);
  instr.where = where;
  issue(instr);
}

inline void issue_cross_core(Op op, uint8_t mode, Pipe pipe, uint16_t flag, Where where) {
  Instr instr;
  instr.op = op;
  instr.pipe = pipe;
  instr.mode = mode;
  instr.event_id = static_cast<uint8_t>(flag);
  instr.where = where;
  issue(instr);
}

inline void issue_block_flag(Op op, const Operand& workspace, int32_t block, int32_t event, Where where) {
  Instr instr;
  instr.op = op;
  instr.pipe = Pipe::S;
  instr.dst = workspace;
  instr.scalar_bits[0] = static_cast<uint64_t>(block);
  instr.scalar_bits[1] = static_cast<uint64_t>(event);
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

/// Which pipes of a core signal its arrival and wait for the others.
struct SyncAllConfig {
  pipe_t triggerPipe;
  pipe_t waitPipe;
};
constexpr SyncAllConfig DEFAULT_SYNC_ALL_CONFIG = {PIPE_ALL, PIPE_ALL};

template <bool isAIVOnly = true, const SyncAllConfig& config = DEFAULT_SYNC_ALL_CONFIG>
inline void SyncAll(opkit::Where where = opkit::Where::here()) {
  opkit::issue_sync_all(isAIVOnly, 0, where);
}

/// The software form: `usedCores` vector cores take part, all when 0. The workspaces carry the hardware's own signals
/// and are only checked for here.
template <bool isAIVOnly = true>
inline void SyncAll(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace,
                    int32_t usedCores = 0, opkit::Where where = opkit::Where::here()) {
  (void)gmWorkspace, (void)ubWorkspace;
  static_assert(isAIVOnly, "SyncAll: the form with workspaces is for vector cores only");
  opkit::issue_sync_all(true, usedCores, where);
}

template <uint8_t modeId, pipe_t pipe>
inline void CrossCoreSetFlag(uint16_t flagId, opkit::Where where = opkit::Where::here()) {
  opkit::issue_cross_core(opkit::Op::CrossCoreSetFlag, modeId, static_cast<opkit::Pipe>(pipe), flagId, where);
}

template <uint8_t modeId = 0, pipe_t pipe = PIPE_S>
inline void CrossCoreWaitFlag(uint16_t flagId, opkit::Where where = opkit::Where::here()) {
  opkit::issue_cross_core(opkit::Op::CrossCoreWaitFlag, modeId, static_cast<opkit::Pipe>(pipe), flagId, where);
}

template <bool isAIVOnly = true>
inline void IBSet(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace, int32_t blockIdx,
                  int32_t eventID, opkit::Where where = opkit::Where::here()) {
  (void)ubWorkspace;
  opkit::issue_block_flag(opkit::Op::IBSet, gmWorkspace.operand(), blockIdx, eventID, where);
}

template <bool isAIVOnly = true>
inline void IBWait(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace, int32_t blockIdx,
                   int32_t eventID, opkit::Where where = opkit::Where::here()) {
  (void)ubWorkspace;
  opkit::issue_block_flag(opkit::Op::IBWait, gmWorkspace.operand(), blockIdx, eventID, where);
}

}  // namespace AscendC
