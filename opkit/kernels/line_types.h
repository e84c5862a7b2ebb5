// Elements of lines as the vector unit's floats, and back.
#pragma once

#include "kernel_operator.h"
#include "plans.h"

namespace opkit::kernels {

using namespace AscendC;

/// Whether floats hold every element of a kind.
__aicore__ inline bool fits_floats(Kind kind) { return kind != Kind::S64 && kind != Kind::S32; }

/// Bytes of an element of a kind that floats hold.
__aicore__ inline uint32_t line_bytes(Kind kind) {
  return kind == Kind::F32 ? 4 : kind == Kind::F16 || kind == Kind::BF16 || kind == Kind::S16 ? 2 : 1;
}

/// to = `count` elements that lie in the unified buffer. `room`: halves, as many, which bytes become on the way.
__aicore__ inline void as_floats(Kind kind, const LocalTensor<float>& to, const LocalTensor<uint8_t>& raw,
                                 const LocalTensor<half>& room, uint32_t count) {
  switch (kind) {
    case Kind::F32: DataCopy(to, raw.ReinterpretCast<float>(), (count + 7) / 8 * 8); break;
    case Kind::F16: Cast(to, raw.ReinterpretCast<half>(), RoundMode::CAST_NONE, count); break;
    case Kind::BF16: Cast(to, raw.ReinterpretCast<bfloat16_t>(), RoundMode::CAST_NONE, count); break;
    case Kind::S16: Cast(to, raw.ReinterpretCast<int16_t>(), RoundMode::CAST_NONE, count); break;
    case Kind::S8: Cast(room, raw.ReinterpretCast<int8_t>(), RoundMode::CAST_NONE, count); break;
    default: Cast(room, raw, RoundMode::CAST_NONE, count); break;
  }
  PipeBarrier<PIPE_V>();
  if (line_bytes(kind) > 1) return;
  Cast(to, room, RoundMode::CAST_NONE, count);
  PipeBarrier<PIPE_V>();
}

/// Floats in the kind that they were read in, in place: nothing is rounded.
__aicore__ inline void from_floats(Kind kind, const LocalTensor<float>& from, const LocalTensor<half>& room,
                                   uint32_t count) {
  switch (kind) {
    case Kind::F32: return;
    case Kind::F16: Cast(from.ReinterpretCast<half>(), from, RoundMode::CAST_RINT, count); break;
    case Kind::BF16: Cast(from.ReinterpretCast<bfloat16_t>(), from, RoundMode::CAST_RINT, count); break;
    case Kind::S16: Cast(from.ReinterpretCast<int16_t>(), from, RoundMode::CAST_RINT, count); break;
    default:
      Cast(room, from, RoundMode::CAST_RINT, count);
      PipeBarrier<PIPE_V>();
      if (kind == Kind::S8) {
        Cast(from.ReinterpretCast<int8_t>(), room, RoundMode::CAST_TRUNC, count);
      } else {
        Cast(from.ReinterpretCast<uint8_t>(), room, RoundMode::CAST_TRUNC, count);
      }
  }
  PipeBarrier<PIPE_V>();
}

}  // namespace opkit::kernels
