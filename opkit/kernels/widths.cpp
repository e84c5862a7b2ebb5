// Kernel: whole numbers of 64 bits from 32, which keep their sign, or of 32 from 64, which keep the lowest bits.
// Numbers lie side by side.
#include "kernel_operator.h"
#include "plans.h"

using namespace AscendC;
using opkit::kernels::WidthPlan;

namespace {

constexpr int64_t kTile = 4096;  // numbers

template <typename From, typename To>
class Widths {
 public:
  __aicore__ inline Widths(GM_ADDR from, GM_ADDR to, int64_t count) : count_(count) {
    from_.SetGlobalBuffer(reinterpret_cast<__gm__ From*>(from), count);
    to_.SetGlobalBuffer(reinterpret_cast<__gm__ To*>(to), count);
    pipe_.InitBuffer(in_, 2, kTile * sizeof(From));
    pipe_.InitBuffer(out_, 2, kTile * sizeof(To));
  }

  __aicore__ inline void run() {
    // Whole blocks of 32 bytes for each core, on either side.
    const int64_t units = (count_ + kUnit - 1) / kUnit;
    const int64_t begin = units * GetBlockIdx() / GetBlockNum() * kUnit;
    const int64_t end = units * (GetBlockIdx() + 1) / GetBlockNum() * kUnit;
    const int64_t last = end < count_ ? end : count_;
    for (int64_t at = begin; at < last; at += kTile) {
      const int64_t left = last - at;
      copy(at, static_cast<uint32_t>(left < kTile ? left : kTile));
    }
  }

 private:
  static constexpr int64_t kUnit = 64;

  __aicore__ inline void copy(int64_t at, uint32_t count) {
    LocalTensor<From> given = in_.template AllocTensor<From>();
    DataCopyPad(given, from_[at], DataCopyExtParams(1, static_cast<uint32_t>(count * sizeof(From)), 0, 0, 0),
                DataCopyPadExtParams<From>(false, 0, 0, 0));
    in_.EnQue(given);
    given = in_.template DeQue<From>();
    LocalTensor<To> made = out_.template AllocTensor<To>();
    convert(made, given, count);
    in_.FreeTensor(given);
    out_.EnQue(made);
    made = out_.template DeQue<To>();
    DataCopyPad(to_[at], made, DataCopyExtParams(1, static_cast<uint32_t>(count * sizeof(To)), 0, 0, 0));
    out_.FreeTensor(made);
  }

  __aicore__ inline void convert(const LocalTensor<To>& to, const LocalTensor<From>& from, uint32_t count) {
    if constexpr (sizeof(To) > sizeof(From)) {
      Cast(to, from, RoundMode::CAST_NONE, count);
    } else {
      // Cast would saturate; the lower half of each number is every other one of 32 bits.
      constexpr uint8_t kEven = 1;
      uint64_t taken = 0;
      GatherMask(to, from.template ReinterpretCast<To>(), kEven, true, 2 * count, GatherMaskParams(1, 1, 8, 0), taken);
    }
  }

  int64_t count_;
  GlobalTensor<From> from_;
  GlobalTensor<To> to_;
  TPipe pipe_;
  TQue<TPosition::VECIN, 2> in_;
  TQue<TPosition::VECOUT, 2> out_;
};

}  // namespace

extern "C" __global__ __aicore__ void convert_widths(GM_ADDR from, GM_ADDR to, GM_ADDR plan) {
  const WidthPlan& given = *reinterpret_cast<__gm__ const WidthPlan*>(plan);
  if (given.is_wider != 0) {
    Widths<int32_t, int64_t>(from, to, given.count).run();
  } else {
    Widths<int64_t, int32_t>(from, to, given.count).run();
  }
}
