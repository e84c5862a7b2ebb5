/// Single elements of global memory.
///
/// Scalar code writes there through a data cache that each core has for itself, in lines of 64 bytes that are written
/// back as a whole: two cores must not write the same line. Results therefore go out by copies. Source: Ascend C API,
/// GlobalTensor::SetValue.
#pragma once

#include "kernel_operator.h"

namespace opkit::kernels {

/// A tensor that begins at an element of what lies at `base`.
template <typename T>
__aicore__ inline AscendC::GlobalTensor<T> global(GM_ADDR base, int64_t element) {
  AscendC::GlobalTensor<T> tensor;
  tensor.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(base) + element);
  return tensor;
}

/// Elements on their way to global memory: those that lie at equal distances go there by one copy.
class Outbox {
 public:
  static constexpr uint32_t kBytes = 4096;

  /// `local`: kBytes of the unified buffer.
  __aicore__ inline Outbox(const AscendC::LocalTensor<uint8_t>& local, GM_ADDR to) : local_(local), to_(to) {}

  /// Puts an element where the `at`-th of its type lies. All elements are of one type.
  template <typename T>
  __aicore__ inline void put(int64_t at, T value) {
    constexpr uint32_t kSize = sizeof(T);
    if (count_ == 1) {
      step_ = at - first_;
      pitch_ = step_ == 1 ? 1 : kBlock / kSize;
    }
    const bool is_next = step_ > 0 && step_ <= kMostStep && at == first_ + count_ * step_;
    if (count_ > 0 && (!is_next || count_ * pitch_ * kSize == kBytes)) flush();
    if (count_ == 0) first_ = at;
    local_.ReinterpretCast<T>().SetValue(count_ * pitch_, value);
    element_bytes_ = kSize;
    ++count_;
  }

  /// Copies what is left.
  __aicore__ inline void flush() {
    using namespace AscendC;
    if (count_ == 0) return;
    const bool is_packed = count_ == 1 || step_ == 1;
    const uint32_t gap = is_packed ? 0 : static_cast<uint32_t>((step_ - 1) * element_bytes_);
    const DataCopyExtParams shape(is_packed ? 1 : static_cast<uint16_t>(count_),
                                  is_packed ? count_ * element_bytes_ : element_bytes_, 0, gap, 0);
    SetFlag<HardEvent::S_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::S_MTE3>(EVENT_ID0);
    DataCopyPad(global<uint8_t>(to_, first_ * element_bytes_), local_, shape);
    SetFlag<HardEvent::MTE3_S>(EVENT_ID0);
    WaitFlag<HardEvent::MTE3_S>(EVENT_ID0);
    count_ = 0;
    step_ = 1;
    pitch_ = 1;
  }

 private:
  static constexpr uint32_t kBlock = 32;
  static constexpr int64_t kMostStep = 1 << 28;  // whose bytes a copy's parameter holds

  AscendC::LocalTensor<uint8_t> local_;
  GM_ADDR to_;
  uint32_t element_bytes_ = 1;
  uint32_t count_ = 0;
  uint32_t pitch_ = 1;  // elements from one to the next in the unified buffer
  int64_t first_ = 0;
  int64_t step_ = 1;  // and in global memory
};

}  // namespace opkit::kernels
