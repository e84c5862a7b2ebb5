// Kernel: moves elements of 1, 2, 4 or 8 bytes from one layout to another: rows by DMA alone; where rows of one side
// lie across those of the other, in tiles that Gather turns.
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

/// Tiles of a source whose rows run along another dim than the destination's.
class Turner {
 public:
  /// The dim of the source's rows; 0 where tiles do not serve.
  __aicore__ static inline uint32_t dim_of(const CopyPlan& p) {
    if (p.has_rows || p.destination_strides[0] != 1 || (p.element_bytes != 2 && p.element_bytes != 4)) return 0;
    for (uint32_t d = 1; d < kCopyDims; ++d) {
      if (p.sizes[d] < 2 || p.source_strides[d] != 1) continue;
      const bool is_apart = p.source_strides[0] >= p.sizes[d] && p.destination_strides[d] >= p.sizes[0];
      return is_apart ? d : 0;
    }
    return 0;
  }

  __aicore__ inline Turner(GM_ADDR source, GM_ADDR destination, const CopyPlan& plan, uint32_t dim)
      : source_(source), destination_(destination), p_(plan), dim_(dim) {
    const uint32_t bytes = p_.element_bytes, unit = 32 / bytes;
    const int64_t most = bytes == 2 ? 16384 : 9216;  // elements of a tile: with its result and their offsets
    const int64_t side = bytes == 2 ? 128 : 96;
    down_ = smaller(p_.sizes[0], side);
    across_ = smaller(smaller(p_.sizes[dim], most / round_up(down_, unit)), kMaxBursts);
    if (p_.sizes[dim] > across_) across_ = across_ / unit * unit;
    down_ = smaller(smaller(p_.sizes[0], most / round_up(across_, unit)), kMaxBursts);
    if (p_.sizes[0] > down_) down_ = down_ / unit * unit;
    down_pitch_ = round_up(down_, unit);
    across_pitch_ = round_up(across_, unit);
    pipe_.InitBuffer(from_, most * bytes);
    pipe_.InitBuffer(to_, most * bytes);
    pipe_.InitBuffer(offsets_, most * 4);
  }

  __aicore__ inline void run() {
    const LocalTensor<int32_t> offsets = offsets_.Get<int32_t>();
    const auto bytes = static_cast<int32_t>(p_.element_bytes);
    Duplicate(from_.Get<int16_t>(), static_cast<int16_t>(0),
              static_cast<int32_t>(down_pitch_ * across_pitch_ * bytes / 2));
    // Row r of the source is column r of the result; rows of the result lie an element apart.
    CreateVecIndex(offsets, 0, static_cast<uint32_t>(down_pitch_));
    PipeBarrier<PIPE_V>();
    Muls(offsets, offsets, static_cast<int32_t>(across_pitch_ * bytes), static_cast<int32_t>(down_pitch_));
    PipeBarrier<PIPE_V>();
    for (int64_t made = 1; made < across_; made *= 2) {
      const int64_t more = smaller(made, across_ - made);
      Adds(offsets[made * down_pitch_], offsets, static_cast<int32_t>(made * bytes),
           static_cast<int32_t>(more * down_pitch_));
      PipeBarrier<PIPE_V>();
    }
    const int64_t columns = (p_.sizes[0] + down_ - 1) / down_, rows = (p_.sizes[dim_] + across_ - 1) / across_;
    int64_t items = columns * rows;
    for (uint32_t d = 1; d < kCopyDims; ++d) items *= d == dim_ ? 1 : p_.sizes[d];
    for (int64_t item = GetBlockIdx(); item < items; item += GetBlockNum()) {
      int64_t rest = item;
      const int64_t column = rest % columns * down_;
      rest /= columns;
      const int64_t row = rest % rows * across_;
      rest /= rows;
      int64_t from = column * p_.source_strides[0] + row;
      int64_t to = column + row * p_.destination_strides[dim_];
      for (uint32_t d = 1; d < kCopyDims; ++d) {
        if (d == dim_) continue;
        from += rest % p_.sizes[d] * p_.source_strides[d];
        to += rest % p_.sizes[d] * p_.destination_strides[d];
        rest /= p_.sizes[d];
      }
      turn(from, to, smaller(p_.sizes[0] - column, down_), smaller(p_.sizes[dim_] - row, across_));
    }
  }

 private:
  __aicore__ static inline int64_t smaller(int64_t a, int64_t b) { return a < b ? a : b; }
  __aicore__ static inline int64_t round_up(int64_t a, int64_t unit) { return (a + unit - 1) / unit * unit; }

  __aicore__ inline GlobalTensor<uint8_t> global(GM_ADDR base, int64_t element) const {
    GlobalTensor<uint8_t> tensor;
    tensor.SetGlobalBuffer(base + element * p_.element_bytes);
    return tensor;
  }

  /// How rows of `length` elements, `step` apart in global memory and `pitch` apart in the buffer, are copied.
  __aicore__ inline DataCopyExtParams shape(int64_t rows, int64_t length, int64_t step, int64_t pitch,
                                            bool is_out) const {
    const int64_t bytes = length * p_.element_bytes;
    const auto there = static_cast<uint32_t>(rows > 1 ? (step - length) * p_.element_bytes : 0);
    const auto here = static_cast<uint32_t>(rows > 1 ? (pitch * p_.element_bytes - round_up(bytes, 32)) / 32 : 0);
    return DataCopyExtParams(static_cast<uint16_t>(rows), static_cast<uint32_t>(bytes), is_out ? here : there,
                             is_out ? there : here, 0);
  }

  __aicore__ inline void turn(int64_t from, int64_t to, int64_t down, int64_t across) {
    const auto lanes = static_cast<uint32_t>(across * down_pitch_);
    PipeBarrier<PIPE_ALL>();
    DataCopyPad(from_.Get<uint8_t>(), global(source_, from),
                shape(down, across, p_.source_strides[0], across_pitch_, false),
                DataCopyPadExtParams<uint8_t>(false, 0, 0, 0));
    PipeBarrier<PIPE_ALL>();
    const LocalTensor<uint32_t> offsets = offsets_.Get<uint32_t>();
    if (p_.element_bytes == 2) {
      Gather(to_.Get<half>(), from_.Get<half>(), offsets, 0, lanes);
    } else {
      Gather(to_.Get<float>(), from_.Get<float>(), offsets, 0, lanes);
    }
    PipeBarrier<PIPE_ALL>();
    DataCopyPad(global(destination_, to), to_.Get<uint8_t>(),
                shape(across, down, p_.destination_strides[dim_], down_pitch_, true));
  }

  GM_ADDR source_;
  GM_ADDR destination_;
  const CopyPlan& p_;
  uint32_t dim_;
  int64_t down_;
  int64_t across_;
  int64_t down_pitch_;
  int64_t across_pitch_;
  TPipe pipe_;
  TBuf<TPosition::VECCALC> from_;
  TBuf<TPosition::VECCALC> to_;
  TBuf<TPosition::VECCALC> offsets_;
};

}  // namespace

extern "C" __global__ __aicore__ void copy_strided(GM_ADDR source, GM_ADDR destination, GM_ADDR plan) {
  const CopyPlan& given = *reinterpret_cast<__gm__ const CopyPlan*>(plan);
  const uint32_t dim = Turner::dim_of(given);
  if (dim > 0) {
    Turner(source, destination, given, dim).run();
  } else {
    Mover(source, destination, given).run();
  }
}
