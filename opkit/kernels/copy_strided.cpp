// Kernel: moves elements of 1, 2, 4 or 8 bytes from one layout to another, by DMA alone.
#include "kernel_operator.h"
#include "plans.h"

using namespace AscendC;
using opkit::kernels::CopyPlan;
using opkit::kernels::kCopyDims;

namespace {

constexpr uint32_t kSpace = 128 * 1024;
constexpr uint32_t kMaxBursts = 4095;  // Source: DataCopyPad, blockCount

class Mover {
 public:
  __aicore__ inline Mover(GM_ADDR source, GM_ADDR destination, const CopyPlan& plan)
      : source_(source), destination_(destination), p_(plan) {
    pipe_.InitBuffer(space_, kSpace);
  }

  __aicore__ inline void run() {
    const uint32_t bytes = p_.element_bytes;
    // A burst is a piece of a row, or one element; bursts go along dim 1, or along dim 0.
    const int64_t piece = p_.has_rows ? smaller(p_.sizes[0], kSpace / 32 * 32 / bytes) : 1;
    const uint32_t padded = (static_cast<uint32_t>(piece) * bytes + 31) / 32 * 32;
    const uint32_t along = p_.has_rows ? 1 : 0;
    const int64_t bursts = smaller(smaller(p_.sizes[along], kMaxBursts), kSpace / padded);
    const int64_t pieces = p_.has_rows ? (p_.sizes[0] + piece - 1) / piece : 1;
    const int64_t groups = (p_.sizes[along] + bursts - 1) / bursts;
    int64_t items = pieces * groups;
    for (uint32_t d = along + 1; d < kCopyDims; ++d) items *= p_.sizes[d];
    const int64_t cores = GetBlockNum();
    for (int64_t item = GetBlockIdx(); item < items; item += cores) {
      int64_t rest = item;
      const int64_t column = rest % pieces * piece;
      rest /= pieces;
      const int64_t first = rest % groups * bursts;
      rest /= groups;
      int64_t from = column * p_.source_strides[0] + first * p_.source_strides[along];
      int64_t to = column * p_.destination_strides[0] + first * p_.destination_strides[along];
      for (uint32_t d = along + 1; d < kCopyDims; ++d) {
        from += rest % p_.sizes[d] * p_.source_strides[d];
        to += rest % p_.sizes[d] * p_.destination_strides[d];
        rest /= p_.sizes[d];
      }
      const auto count = static_cast<uint32_t>(smaller(p_.sizes[along] - first, bursts));
      const int64_t length = p_.has_rows ? smaller(p_.sizes[0] - column, piece) : 1;
      move(from, to, count, static_cast<uint32_t>(length), along);
    }
  }

 private:
  __aicore__ static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }

  __aicore__ inline GlobalTensor<uint8_t> global(GM_ADDR base, int64_t element) const {
    GlobalTensor<uint8_t> tensor;
    tensor.SetGlobalBuffer(base + element * p_.element_bytes);
    return tensor;
  }

  __aicore__ inline void move(int64_t from, int64_t to, uint32_t count, uint32_t length, uint32_t along) {
    const uint32_t bytes = length * p_.element_bytes;
    const uint32_t padded = (bytes + 31) / 32 * 32;
    const LocalTensor<uint8_t> local = space_.Get<uint8_t>();
    const DataCopyPadExtParams<uint8_t> unpadded(false, 0, 0, 0);
    const int64_t source_gap = p_.source_strides[along] * p_.element_bytes - bytes;
    const int64_t destination_gap = p_.destination_strides[along] * p_.element_bytes - bytes;
    PipeBarrier<PIPE_ALL>();
    if (count == 1 || source_gap >= 0) {
      const auto gap = static_cast<uint32_t>(count == 1 ? 0 : source_gap);
      DataCopyPad(local, global(source_, from), DataCopyExtParams(count, bytes, gap, 0, 0), unpadded);
    } else {
      for (uint32_t i = 0; i < count; ++i) {
        DataCopyPad(local[i * padded], global(source_, from + i * p_.source_strides[along]),
                    DataCopyExtParams(1, bytes, 0, 0, 0), unpadded);
      }
    }
    PipeBarrier<PIPE_ALL>();
    const auto gap = static_cast<uint32_t>(count == 1 ? 0 : destination_gap);
    DataCopyPad(global(destination_, to), local, DataCopyExtParams(count, bytes, 0, gap, 0));
    PipeBarrier<PIPE_ALL>();
  }

  GM_ADDR source_;
  GM_ADDR destination_;
  const CopyPlan& p_;
  TPipe pipe_;
  TBuf<TPosition::VECCALC> space_;
};

}  // namespace

extern "C" __global__ __aicore__ void copy_strided(GM_ADDR source, GM_ADDR destination, GM_ADDR plan) {
  Mover(source, destination, *reinterpret_cast<__gm__ const CopyPlan*>(plan)).run();
}
