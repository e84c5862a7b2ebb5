/// Arange and its older name ArithProgression. Source: Ascend C API, high-level API, index computation.
#pragma once

#include "opkit/api/pipe.h"
#include "opkit/api/vector.h"

namespace AscendC {

/// dst[i] = firstValue + i * diffValue, in as few instructions as its documents say: 8 values, then copies of them.
template <typename T>
inline void Arange(const LocalTensor<T>& dst, const T firstValue, const T diffValue, const int32_t count, OPKIT_HERE) {
  constexpr uint32_t kBlockElements = opkit::kBlockBytes / sizeof(T);
  const uint32_t total = count < 0 ? 0 : static_cast<uint32_t>(count);
  uint32_t done = total < kBlockElements ? total : kBlockElements;
  for (uint32_t i = 0; i < done; ++i) {
    const auto value = static_cast<float>(firstValue) + static_cast<float>(diffValue) * static_cast<float>(i);
    if constexpr (std::is_integral_v<T>) {
      dst.SetValue(i, static_cast<T>(firstValue + diffValue * static_cast<T>(i)), where);
    } else {
      dst.SetValue(i, static_cast<T>(value), where);
    }
  }
  if (done == total) return;
  const auto event = static_cast<event_t>(GetTPipePtr()->FetchEventID(HardEvent::S_V));
  SetFlag<HardEvent::S_V>(event);
  WaitFlag<HardEvent::S_V>(event);
  while (done < total) {
    const uint32_t length = total - done < done ? total - done : done;
    if constexpr (std::is_integral_v<T>) {
      Adds(dst[done], dst, static_cast<T>(diffValue * static_cast<T>(done)), length, where);
    } else {
      Adds(dst[done], dst, static_cast<T>(static_cast<float>(diffValue) * static_cast<float>(done)), length, where);
    }
    PipeBarrier<PIPE_V>();
    done += length;
  }
}

template <typename T>
inline void ArithProgression(const LocalTensor<T>& dst, const T firstValue, const T diffValue, const int32_t count,
                             OPKIT_HERE) {
  Arange(dst, firstValue, diffValue, count, where);
}

}  // namespace AscendC
