/// Synchronisation and system variables of the C interface. Source: C API of asc-devkit, sync, sys_var, misc.
#pragma once

#include "opkit/api/builtin.h"

/// Every launch starts as it asks for; see InitSocState.
inline void asc_init() {}

inline void asc_sync(opkit::Where where = opkit::Where::here()) { pipe_barrier(PIPE_ALL, where); }
inline void asc_sync_vec(opkit::Where where = opkit::Where::here()) { asc_sync(where); }
inline void asc_sync_pipe(pipe_t pipe, opkit::Where where = opkit::Where::here()) { pipe_barrier(pipe, where); }
inline void asc_sync_notify(pipe_t pipe, pipe_t tpipe, event_t id, opkit::Where where = opkit::Where::here()) {
  set_flag(pipe, tpipe, id, where);
}
inline void asc_sync_wait(pipe_t pipe, pipe_t tpipe, event_t id, opkit::Where where = opkit::Where::here()) {
  wait_flag(pipe, tpipe, id, where);
}

inline int64_t asc_get_block_idx() { return AscendC::GetBlockIdx(); }
inline int64_t asc_get_block_num() { return AscendC::GetBlockNum(); }
inline int64_t asc_get_sub_block_id() { return AscendC::GetSubBlockIdx(); }
inline int64_t asc_get_sub_block_num() { return AscendC::GetSubBlockNum(); }
inline int64_t asc_get_system_cycle(opkit::Where where = opkit::Where::here()) {
  return AscendC::GetSystemCycle(where);
}

/// An address that scalar code may read through, too.
inline uint64_t asc_get_phy_buf_addr(uint64_t offset) {
  return reinterpret_cast<uint64_t>(opkit::local_memory(opkit::Space::UB)) + offset;
}
