/// The words of the language extension, and the enumerations that tensors, queues and flags use.
#pragma once

#include <cstdint>

#include "opkit/arch.h"
#include "opkit/block_sizes.h"
#include "opkit/kernel_notes.h"
#include "opkit/types.h"

#define __aicore__
#ifndef __global__
#define __global__
#endif
#define __gm__
/// Before `__inline__` and a type: a variable that each core has for itself (src/sched/block_local.h).
#define __BLOCK_LOCAL__ thread_local
#define __ubuf__
#define __cbuf__
#define __ca__
#define __cb__
#define __cc__
#define __fbuf__
#define __biasbuf__
#define __kfc_workspace__
#define __sync_alias__
#define __sync_noalias__
#define __in_pipe__(...)
#define __out_pipe__(...)
#define __inout_pipe__(...)

#define GM_ADDR uint8_t*

/// The pipes under the names that PipeBarrier takes.
enum pipe_t : uint8_t { PIPE_S, PIPE_V, PIPE_M, PIPE_MTE1, PIPE_MTE2, PIPE_MTE3, PIPE_FIX, PIPE_ALL };

enum event_t : int8_t { EVENT_ID0, EVENT_ID1, EVENT_ID2, EVENT_ID3, EVENT_ID4, EVENT_ID5, EVENT_ID6, EVENT_ID7 };

using TEventID = int8_t;

namespace AscendC {

using ::TEventID;

/// Logical positions. Source: Ascend C API, auxiliary data structures, TPosition.
enum class TPosition : uint8_t {
  GM,
  A1,
  A2,
  B1,
  B2,
  C1,
  C2,
  CO1,
  CO2,
  VECIN,
  VECOUT,
  VECCALC,
  LCM,
  SPM,
  SHM,
  TSCM,
  C2PIPE2GM,
  MAX
};
using QuePosition = TPosition;

/// Pairs of pipes that an event orders: the first signals, the second waits. The value holds both.
#define OPKIT_EVENT(first, second) \
  first##_##second = static_cast<uint8_t>(::opkit::Pipe::first) * 16 + static_cast<uint8_t>(::opkit::Pipe::second)
enum class HardEvent : uint8_t {
  OPKIT_EVENT(S, V),
  OPKIT_EVENT(S, M),
  OPKIT_EVENT(S, MTE1),
  OPKIT_EVENT(S, MTE2),
  OPKIT_EVENT(S, MTE3),
  OPKIT_EVENT(S, FIX),
  OPKIT_EVENT(V, S),
  OPKIT_EVENT(V, V),
  OPKIT_EVENT(V, M),
  OPKIT_EVENT(V, MTE1),
  OPKIT_EVENT(V, MTE2),
  OPKIT_EVENT(V, MTE3),
  OPKIT_EVENT(M, S),
  OPKIT_EVENT(M, V),
  OPKIT_EVENT(M, MTE1),
  OPKIT_EVENT(M, MTE2),
  OPKIT_EVENT(M, MTE3),
  OPKIT_EVENT(M, FIX),
  OPKIT_EVENT(MTE1, S),
  OPKIT_EVENT(MTE1, V),
  OPKIT_EVENT(MTE1, M),
  OPKIT_EVENT(MTE1, MTE2),
  OPKIT_EVENT(MTE1, MTE3),
  OPKIT_EVENT(MTE1, FIX),
  OPKIT_EVENT(MTE2, S),
  OPKIT_EVENT(MTE2, V),
  OPKIT_EVENT(MTE2, M),
  OPKIT_EVENT(MTE2, MTE1),
  OPKIT_EVENT(MTE2, MTE3),
  OPKIT_EVENT(MTE2, FIX),
  OPKIT_EVENT(MTE3, S),
  OPKIT_EVENT(MTE3, V),
  OPKIT_EVENT(MTE3, M),
  OPKIT_EVENT(MTE3, MTE1),
  OPKIT_EVENT(MTE3, MTE2),
  OPKIT_EVENT(MTE3, FIX),
  OPKIT_EVENT(FIX, S),
  OPKIT_EVENT(FIX, V),
  OPKIT_EVENT(FIX, M),
  OPKIT_EVENT(FIX, MTE1),
  OPKIT_EVENT(FIX, MTE2),
  OPKIT_EVENT(FIX, MTE3),
  MAX = 255
};
#undef OPKIT_EVENT

enum class CacheMode : uint8_t { CACHE_MODE_DISABLE = 0, CACHE_MODE_NORMAL = 1, CACHE_MODE_PERSISTENT = 4 };

constexpr uint32_t ONE_REPEAT_BYTE_SIZE = 256;
constexpr uint32_t DEFAULT_BLK_NUM = 8;
constexpr uint32_t DEFAULT_BLK_STRIDE = 1;
constexpr uint32_t DEFAULT_REPEAT_STRIDE = 8;
// Of elements of half and of a quarter of the size of what is beside them, as in a Cast.
constexpr uint32_t HALF_DEFAULT_REPEAT_STRIDE = DEFAULT_REPEAT_STRIDE / 2;
constexpr uint32_t ONE_FOURTH_DEFAULT_REPEAT_STRIDE = DEFAULT_REPEAT_STRIDE / 4;
constexpr uint32_t MAX_REPEAT_TIMES = 255;
constexpr uint64_t MASK_PLACEHOLDER = 0;

}  // namespace AscendC

namespace opkit {

constexpr Pipe first_pipe(AscendC::HardEvent event) { return static_cast<Pipe>(static_cast<uint8_t>(event) / 16); }
constexpr Pipe second_pipe(AscendC::HardEvent event) { return static_cast<Pipe>(static_cast<uint8_t>(event) % 16); }

/// No bias table: C2 is L0C itself, and cube and vector unit share UB.
constexpr bool kIsCoupled = kArchTraits.is_coupled;

/// The memory behind a position. Source: Ascend C API, general notes, table of positions and memories.
constexpr Space space_of(AscendC::TPosition position) {
  using AscendC::TPosition;
  switch (position) {
    case TPosition::A1:
    case TPosition::B1:
    case TPosition::TSCM: return Space::L1;
    case TPosition::C1: return kIsCoupled ? Space::UB : Space::L1;
    case TPosition::A2: return Space::L0A;
    case TPosition::B2: return Space::L0B;
    case TPosition::CO1: return Space::L0C;
    case TPosition::C2: return kIsCoupled ? Space::L0C : Space::BT;
    case TPosition::C2PIPE2GM: return Space::FB;
    case TPosition::CO2: return kIsCoupled ? Space::UB : Space::GM;
    case TPosition::SPM: return kIsCoupled ? Space::L1 : Space::GM;
    case TPosition::GM: return Space::GM;
    default: return Space::UB;
  }
}

/// Whether matrices lie there in whole fractals.
constexpr bool holds_fractals(AscendC::TPosition position) {
  using AscendC::TPosition;
  return position == TPosition::A2 || position == TPosition::B2 || space_of(position) == Space::L0C;
}

/// The pipe that fills a buffer at a position, when it is a queue's source.
constexpr Pipe filling_pipe(AscendC::TPosition position) {
  using AscendC::TPosition;
  switch (position) {
    case TPosition::GM:
    case TPosition::VECIN:
    case TPosition::A1:
    case TPosition::B1:
    case TPosition::C1:
    case TPosition::TSCM: return Pipe::MTE2;
    case TPosition::A2:
    case TPosition::B2: return Pipe::MTE1;
    case TPosition::C2: return kIsCoupled ? Pipe::V : Pipe::MTE1;
    case TPosition::CO1: return Pipe::M;
    case TPosition::CO2: return kIsCoupled ? Pipe::V : Pipe::FIX;
    default: return Pipe::V;
  }
}

/// The pipe that empties a buffer at a position, when it is a queue's destination.
constexpr Pipe emptying_pipe(AscendC::TPosition position) {
  using AscendC::TPosition;
  switch (position) {
    case TPosition::VECIN:
    case TPosition::VECCALC: return Pipe::V;
    case TPosition::A1:
    case TPosition::B1:
    case TPosition::TSCM: return Pipe::MTE1;
    case TPosition::C1: return kIsCoupled ? Pipe::V : Pipe::MTE1;
    case TPosition::A2:
    case TPosition::B2:
    case TPosition::C2: return Pipe::M;
    case TPosition::CO1: return kIsCoupled ? Pipe::V : Pipe::FIX;
    default: return Pipe::MTE3;
  }
}

}  // namespace opkit
