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

inline Instr sync_all_instr(bool is_vector_only, Where where) {
  Instr instr;
  instr.op = Op::SyncAll;
  instr.pipe = Pipe::ALL;
  instr.mode = is_vector_only ? 1 : 0;
  instr.where = where;
  return instr;
}

inline void issue_cross_core(Op op, uint8_t mode, Pipe pipe, uint16_t flag, Where where) {
  if (flag > UINT8_MAX) illegal_operand("CrossCoreSetFlag, CrossCoreWaitFlag: flag ids are 0 to 15", where);
  Instr instr;
  instr.op = op;
  instr.pipe = pipe;
  instr.mode = mode;
  instr.event_id = static_cast<uint8_t>(flag);
  instr.where = where;
  issue(instr);
}

inline void issue_block_flag(Op op, const Operand& workspace, const Operand& local, int32_t block, int32_t event,
                             Where where) {
  Instr instr;
  instr.op = op;
  instr.pipe = Pipe::S;
  instr.dst = workspace;
  instr.src[0] = local;
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
  opkit::Instr instr = opkit::sync_all_instr(isAIVOnly, where);
  opkit::issue(instr);
}

/// The software form: `usedCores` vector cores take part, all when 0. Each writes a 1 to its data block of
/// `gmWorkspace`, which must be zeros before, and waits for those of the others.
template <bool isAIVOnly = true>
inline void SyncAll(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace,
                    int32_t usedCores = 0, opkit::Where where = opkit::Where::here()) {
  static_assert(isAIVOnly, "SyncAll: the form with workspaces is for vector cores only");
  opkit::Instr instr = opkit::sync_all_instr(true, where);
  instr.count = static_cast<uint32_t>(usedCores);
  instr.dst = gmWorkspace.operand();
  instr.src[0] = ubWorkspace.operand();
  opkit::issue(instr);
}

template <uint8_t modeId, pipe_t pipe>
inline void CrossCoreSetFlag(uint16_t flagId, opkit::Where where = opkit::Where::here()) {
  opkit::issue_cross_core(opkit::Op::CrossCoreSetFlag, modeId, static_cast<opkit::Pipe>(pipe), flagId, where);
}

template <uint8_t modeId = 0, pipe_t pipe = PIPE_S>
inline void CrossCoreWaitFlag(uint16_t flagId, opkit::Where where = opkit::Where::here()) {
  opkit::issue_cross_core(opkit::Op::CrossCoreWaitFlag, modeId, static_cast<opkit::Pipe>(pipe), flagId, where);
}

/// The older name of CrossCoreSetFlag between the cube and the vector cores of a block. Source: programming guide,
/// matrix products whose vector cores prepare the inputs.
template <pipe_t pipe>
inline void NotifyEvent(uint16_t flagId, opkit::Where where = opkit::Where::here()) {
  CrossCoreSetFlag<2, pipe>(flagId, where);
}

/// The older name of CrossCoreWaitFlag.
inline void WaitEvent(uint16_t flagId, opkit::Where where = opkit::Where::here()) { CrossCoreWaitFlag(flagId, where); }

template <bool isAIVOnly = true>
inline void IBSet(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace, int32_t blockIdx,
                  int32_t eventID, opkit::Where where = opkit::Where::here()) {
  opkit::issue_block_flag(opkit::Op::IBSet, gmWorkspace.operand(), ubWorkspace.operand(), blockIdx, eventID, where);
}

template <bool isAIVOnly = true>
inline void IBWait(const GlobalTensor<int32_t>& gmWorkspace, const LocalTensor<int32_t>& ubWorkspace, int32_t blockIdx,
                   int32_t eventID, opkit::Where where = opkit::Where::here()) {
  opkit::issue_block_flag(opkit::Op::IBWait, gmWorkspace.operand(), ubWorkspace.operand(), blockIdx, eventID, where);
}

/// Flags between two pipes, as an object. Source: Ascend C API, TQueSync.
template <pipe_t source, pipe_t destination>
class TQueSync {
 public:
  void SetFlag(TEventID id, opkit::Where where = opkit::Where::here()) { issue(opkit::Op::SetFlag, id, where); }
  void WaitFlag(TEventID id, opkit::Where where = opkit::Where::here()) { issue(opkit::Op::WaitFlag, id, where); }

 private:
  static void issue(opkit::Op op, TEventID id, opkit::Where where) {
    opkit::Instr instr;
    instr.op = op;
    instr.pipe = static_cast<opkit::Pipe>(source);
    instr.peer_pipe = static_cast<opkit::Pipe>(destination);
    instr.event_id = static_cast<uint8_t>(id);
    instr.where = where;
    opkit::issue(instr);
  }
};

enum class MemDsbT : uint8_t { ALL = 0, DDR, UB, SEQ };

/// Waits until earlier accesses of the memory are done: in program order they are.
template <MemDsbT memory>
inline void DataSyncBarrier(opkit::Where where = opkit::Where::here()) {
  PipeBarrier<PIPE_S>(where);
}

/// Vector cores that run a stretch of code in the order of their block index. The words of the workspace are the
/// hardware's; here they are only checked to be there.
inline void InitDetermineComputeWorkspace(GlobalTensor<int32_t>& gmWorkspace, LocalTensor<int32_t>& ubWorkspace) {
  (void)gmWorkspace, (void)ubWorkspace;
}
inline void WaitPreBlock(GlobalTensor<int32_t>& gmWorkspace, LocalTensor<int32_t>& ubWorkspace,
                         opkit::Where where = opkit::Where::here()) {
  opkit::issue_block_flag(opkit::Op::WaitPreBlock, gmWorkspace.operand(), ubWorkspace.operand(), 0, 0, where);
}
inline void NotifyNextBlock(GlobalTensor<int32_t>& gmWorkspace, LocalTensor<int32_t>& ubWorkspace,
                            opkit::Where where = opkit::Where::here()) {
  opkit::issue_block_flag(opkit::Op::NotifyNextBlock, gmWorkspace.operand(), ubWorkspace.operand(), 0, 0, where);
}

enum class PipeMode : uint8_t { SCALAR_MODE = 0, MTE3_MODE = 1, MAX };

/// A group of vector cores that waits until another has arrived, as often as both like.
template <PipeMode pipeMode = PipeMode::MTE3_MODE>
class GroupBarrier {
 public:
  GroupBarrier(GM_ADDR groupWorkspace, uint32_t arriveSizeIn, uint32_t waitSizeIn)
      : workspace_(groupWorkspace), arrive_size_(arriveSizeIn), wait_size_(waitSizeIn) {
    static_assert(pipeMode == PipeMode::MTE3_MODE, "GroupBarrier has MTE3_MODE only");
  }
  void Arrive(uint32_t arriveIndex, opkit::Where where = opkit::Where::here()) {
    issue(opkit::Op::GroupArrive, arriveIndex, where);
  }
  void Wait(uint32_t waitIndex, opkit::Where where = opkit::Where::here()) {
    issue(opkit::Op::GroupWait, waitIndex, where);
  }
  uint64_t GetWorkspaceLen() { return uint64_t{wait_size_} * 512; }

 private:
  void issue(opkit::Op op, uint32_t index, opkit::Where where) {
    opkit::Instr instr;
    instr.op = op;
    instr.pipe = opkit::Pipe::S;
    instr.dst.space = opkit::Space::GM;
    instr.dst.dtype = opkit::DType::U8;
    instr.dst.address = reinterpret_cast<uint64_t>(workspace_);
    instr.dst.end = ~0ull;
    instr.scalar_bits[0] = index;
    instr.scalar_bits[1] = arrive_size_;
    instr.repeat = wait_size_;
    instr.where = where;
    opkit::issue(instr);
  }

  GM_ADDR workspace_;
  uint32_t arrive_size_;
  uint32_t wait_size_;
};

/// Overlap between the kernels of a SuperKernel: compiled and without effect on A2, as documented. Source: Ascend C
/// API, synchronisation between tasks.
template <pipe_t AIV_PIPE = PIPE_MTE3, pipe_t AIC_PIPE = PIPE_FIX, bool FORCE = false>
inline void SetNextTaskStart() {}
template <bool FORCE = false>
inline void WaitPreTaskEnd() {}

}  // namespace AscendC
