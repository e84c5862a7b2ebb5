// Kernel: attention of one new token a sequence over keys and values that lie in blocks. A core has some heads of keys
// of some sequences, and all the heads of queries that share them. Tokens are taken in tiles of a fixed number,
// gathered from whichever blocks they lie in, so the bits of the result do not depend on the blocks.
#include "kernel_operator.h"

using namespace AscendC;

namespace {

constexpr uint32_t kLanes = 64;           // floats of a repeat
constexpr uint32_t kTileElements = 8192;  // of a tile of keys or values
constexpr uint32_t kMostTokens = 128;     // of a tile
constexpr uint32_t kMostDim = 256;
constexpr int32_t kSegments = 12;
constexpr float kLeast = -3.0e38f;

struct Plan {
  int32_t is_bfloat16, q_heads, kv_heads, head_dim, block_tokens;
  float scale;
};

template <typename T>
class Attention {
 public:
  __aicore__ inline Attention(GM_ADDR q, GM_ADDR out, GM_ADDR tables, GM_ADDR begins, GM_ADDR lengths,
                              GM_ADDR* segments, const Plan& plan)
      : plan_(plan), segments_(segments) {
    q_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(q));
    out_.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(out));
    tables_.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(tables));
    begins_.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(begins));
    lengths_.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(lengths));
    dim_ = static_cast<uint32_t>(plan.head_dim);
    group_ = static_cast<uint32_t>(plan.q_heads / plan.kv_heads);
    tile_ = kTileElements / dim_;
    tile_ = tile_ > kMostTokens ? kMostTokens : tile_ / 8 * 8;
    pipe_.InitBuffer(keys_, 2, kTileElements * sizeof(T));
    pipe_.InitBuffer(values_, 2, kTileElements * sizeof(T));
    pipe_.InitBuffer(queries_in_, 1, kMostDim * sizeof(T));
    pipe_.InitBuffer(result_, 1, kMostDim * sizeof(T));
    pipe_.InitBuffer(wide_, kTileElements * sizeof(float));
    pipe_.InitBuffer(products_, kTileElements * sizeof(float));
    pipe_.InitBuffer(scores_, kMostHeads * kScoreWidth * sizeof(float));
    pipe_.InitBuffer(spread_, kMostTokens * 8 * sizeof(float));
    pipe_.InitBuffer(queries_, kMostHeads * kMostDim * sizeof(float));
    pipe_.InitBuffer(sums_, kMostHeads * kMostDim * sizeof(float));
    pipe_.InitBuffer(work_, 64 * sizeof(float));
  }

  /// All query heads of one head of keys, up to kMostHeads of them at a time.
  __aicore__ inline void head(int32_t sequence, uint32_t kv_head) {
    for (uint32_t first = 0; first < group_; first += kMostHeads) {
      const uint32_t heads = group_ - first < kMostHeads ? group_ - first : kMostHeads;
      heads_of(sequence, kv_head, kv_head * group_ + first, heads);
    }
  }

 private:
  static constexpr uint32_t kMostHeads = 8;
  static constexpr uint32_t kScoreWidth = kMostTokens + 64;  // behind the scores: what the maximum changed by

  __aicore__ inline void heads_of(int32_t sequence, uint32_t kv_head, uint32_t first_head, uint32_t heads) {
    const uint32_t length = static_cast<uint32_t>(lengths_.GetValue(sequence));
    const uint32_t table = static_cast<uint32_t>(begins_.GetValue(sequence));
    const LocalTensor<float> query = queries_.Get<float>();
    const LocalTensor<float> sums = sums_.Get<float>();
    const uint64_t base = (static_cast<uint64_t>(sequence) * plan_.q_heads + first_head) * dim_;
    for (uint32_t h = 0; h < heads; ++h) {
      LocalTensor<T> narrow = queries_in_.AllocTensor<T>();
      DataCopy(narrow, q_[base + h * dim_], dim_);
      queries_in_.EnQue(narrow);
      narrow = queries_in_.DeQue<T>();
      Cast(query[h * kMostDim], narrow, RoundMode::CAST_NONE, dim_);
      queries_in_.FreeTensor(narrow);
      PipeBarrier<PIPE_V>();
      Muls(query[h * kMostDim], query[h * kMostDim], plan_.scale, static_cast<int32_t>(dim_));
    }
    Duplicate(sums, 0.0f, static_cast<int32_t>(kMostHeads * kMostDim));
    float most[kMostHeads], total[kMostHeads];
    for (uint32_t h = 0; h < kMostHeads; ++h) most[h] = kLeast, total[h] = 0;
    PipeBarrier<PIPE_V>();
    copy_in(table, kv_head, 0, length);
    for (uint32_t token = 0; token < length; token += tile_) {
      if (token + tile_ < length) copy_in(table, kv_head, token + tile_, length);
      const uint32_t rows = length - token < tile_ ? length - token : tile_;
      score(rows, heads, most, total);
      add_values(rows, heads);
    }
    for (uint32_t h = 0; h < heads; ++h) {
      Muls(sums[h * kMostDim], sums[h * kMostDim], 1.0f / total[h], static_cast<int32_t>(dim_));
      PipeBarrier<PIPE_V>();
      LocalTensor<T> result = result_.AllocTensor<T>();
      Cast(result, sums[h * kMostDim], RoundMode::CAST_RINT, dim_);
      result_.EnQue(result);
      result = result_.DeQue<T>();
      DataCopy(out_[base + h * dim_], result, dim_);
      result_.FreeTensor(result);
    }
  }

  /// A tile of keys and of values, block by block.
  __aicore__ inline void copy_in(uint32_t table, uint32_t kv_head, uint32_t token, uint32_t length) {
    LocalTensor<T> keys = keys_.AllocTensor<T>();
    LocalTensor<T> values = values_.AllocTensor<T>();
    const uint32_t size = static_cast<uint32_t>(plan_.block_tokens);
    const uint64_t row = static_cast<uint64_t>(plan_.kv_heads) * dim_;
    const uint32_t rows = length - token < tile_ ? length - token : tile_;
    for (uint32_t done = 0; done < rows;) {
      const uint32_t inside = (token + done) % size;
      uint32_t count = size - inside < rows - done ? size - inside : rows - done;
      const int32_t entry = tables_.GetValue(table + (token + done) / size);
      GlobalTensor<T> memory;
      memory.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(segments_[entry >> 24]));
      const uint64_t block = static_cast<uint64_t>(entry & 0xffffff) * 2 * size * row;
      const uint64_t from = block + inside * row + kv_head * dim_;
      const DataCopyParams rows_of_head(static_cast<uint16_t>(count), static_cast<uint16_t>(dim_ * sizeof(T) / 32),
                                        static_cast<uint16_t>((row - dim_) * sizeof(T) / 32), 0);
      DataCopy(keys[done * dim_], memory[from], rows_of_head);
      DataCopy(values[done * dim_], memory[from + size * row], rows_of_head);
      done += count;
    }
    keys_.EnQue(keys);
    values_.EnQue(values);
  }

  /// Products of `rows` rows of `wide` with one row, or with one number each.
  __aicore__ inline void multiply(const LocalTensor<float>& wide, const LocalTensor<float>& by, uint32_t rows,
                                  bool is_number) {
    const LocalTensor<float> products = products_.Get<float>();
    const uint8_t pitch = static_cast<uint8_t>(dim_ / 8);
    for (uint32_t column = 0; column < dim_; column += kLanes) {
      const uint64_t mask = dim_ - column < kLanes ? dim_ - column : kLanes;
      const BinaryRepeatParams strides(1, 1, is_number ? 0 : 1, pitch, pitch, is_number ? 1 : 0);
      Mul(products[column], wide[column], is_number ? by : by[column], mask, static_cast<uint8_t>(rows), strides);
    }
    PipeBarrier<PIPE_V>();
  }

  /// exp(scores - maximum) of each head in scores_, its sum in `total`; what was summed before is scaled to the new
  /// maximum.
  __aicore__ inline void score(uint32_t rows, uint32_t heads, float* most, float* total) {
    const LocalTensor<T> keys = keys_.DeQue<T>();
    const LocalTensor<float> wide = wide_.Get<float>();
    const LocalTensor<float> products = products_.Get<float>();
    const LocalTensor<float> work = work_.Get<float>();
    const LocalTensor<float> sums = sums_.Get<float>();
    const uint8_t pitch = static_cast<uint8_t>(dim_ / 8);
    Cast(wide, keys, RoundMode::CAST_NONE, rows * dim_);
    keys_.FreeTensor(keys);
    PipeBarrier<PIPE_V>();
    for (uint32_t h = 0; h < heads; ++h) {
      const LocalTensor<float> scores = scores_.Get<float>()[h * kScoreWidth];
      multiply(wide, queries_.Get<float>()[h * kMostDim], rows, false);
      for (uint32_t column = kLanes; column < dim_; column += kLanes) {
        const uint64_t mask = dim_ - column < kLanes ? dim_ - column : kLanes;
        Add(products, products, products[column], mask, static_cast<uint8_t>(rows),
            BinaryRepeatParams(1, 1, 1, pitch, pitch, pitch));
        PipeBarrier<PIPE_V>();
      }
      const int32_t lanes = dim_ < kLanes ? static_cast<int32_t>(dim_) : static_cast<int32_t>(kLanes);
      WholeReduceSum(scores, products, lanes, static_cast<int32_t>(rows), 1, 1, pitch);
      PipeBarrier<PIPE_V>();
      ReduceMax(work, scores, work[8], static_cast<int32_t>(rows), false);
      to_scalar();
      const float before = most[h];
      const float largest = work.GetValue(0);
      most[h] = largest > before ? largest : before;
      to_vector();
      Adds(scores, scores, -most[h], static_cast<int32_t>(rows));
      Duplicate(scores[kMostTokens], before - most[h], 8);
      PipeBarrier<PIPE_V>();
      Exp(scores, scores, static_cast<int32_t>(rows));
      Exp(scores[kMostTokens], scores[kMostTokens], 8);
      PipeBarrier<PIPE_V>();
      sum_of(work, scores, rows);
      to_scalar();
      const float scale = scores.GetValue(kMostTokens);
      total[h] = total[h] * scale + work.GetValue(0);
      to_vector();
      Muls(sums[h * kMostDim], sums[h * kMostDim], scale, static_cast<int32_t>(dim_));
    }
    PipeBarrier<PIPE_V>();
  }

  /// The sum of up to 128 numbers, in one order.
  __aicore__ inline void sum_of(const LocalTensor<float>& to, const LocalTensor<float>& from, uint32_t rows) {
    if (rows > kLanes) {
      WholeReduceSum(to[8], from, static_cast<int32_t>(kLanes), 1, 1, 1, 8);
      WholeReduceSum(to[16], from[kLanes], static_cast<int32_t>(rows - kLanes), 1, 1, 1, 8);
      PipeBarrier<PIPE_V>();
      Add(to, to[8], to[16], 1);
    } else {
      WholeReduceSum(to, from, static_cast<int32_t>(rows), 1, 1, 1, 8);
    }
    PipeBarrier<PIPE_V>();
  }

  /// Adds the tile's values, each times its score, to the sums of the heads.
  __aicore__ inline void add_values(uint32_t rows, uint32_t heads) {
    const LocalTensor<T> values = values_.DeQue<T>();
    const LocalTensor<float> wide = wide_.Get<float>();
    const LocalTensor<float> products = products_.Get<float>();
    const LocalTensor<float> spread = spread_.Get<float>();
    const LocalTensor<float> sums = sums_.Get<float>();
    Cast(wide, values, RoundMode::CAST_NONE, rows * dim_);
    values_.FreeTensor(values);
    for (uint32_t h = 0; h < heads; ++h) {
      Brcb(spread, scores_.Get<float>()[h * kScoreWidth], static_cast<uint8_t>((rows + 7) / 8), BrcbRepeatParams(1, 8));
      PipeBarrier<PIPE_V>();
      multiply(wide, spread, rows, true);
      for (uint32_t left = rows; left > 1;) {
        const uint32_t half = (left + 1) / 2;
        Add(products, products, products[half * dim_], static_cast<int32_t>((left - half) * dim_));
        PipeBarrier<PIPE_V>();
        left = half;
      }
      Add(sums[h * kMostDim], sums[h * kMostDim], products, static_cast<int32_t>(dim_));
      PipeBarrier<PIPE_V>();
    }
  }

  __aicore__ inline void to_scalar() {
    SetFlag<HardEvent::V_S>(EVENT_ID0);
    WaitFlag<HardEvent::V_S>(EVENT_ID0);
  }
  __aicore__ inline void to_vector() {
    SetFlag<HardEvent::S_V>(EVENT_ID0);
    WaitFlag<HardEvent::S_V>(EVENT_ID0);
  }

  const Plan& plan_;
  GM_ADDR* segments_;
  GlobalTensor<T> q_, out_;
  GlobalTensor<int32_t> tables_, begins_, lengths_;
  uint32_t dim_, group_, tile_;
  TPipe pipe_;
  TQue<TPosition::VECIN, 2> keys_, values_;
  TQue<TPosition::VECIN, 1> queries_in_;
  TQue<TPosition::VECOUT, 1> result_;
  TBuf<TPosition::VECCALC> wide_, products_, scores_, spread_, queries_, sums_, work_;
};

template <typename T>
__aicore__ inline void attend(GM_ADDR q, GM_ADDR out, GM_ADDR tables, GM_ADDR begins, GM_ADDR lengths, GM_ADDR starts,
                              GM_ADDR order, GM_ADDR* segments, const Plan& plan) {
  Attention<T> attention(q, out, tables, begins, lengths, segments, plan);
  GlobalTensor<int32_t> own, items;
  own.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(starts));
  items.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(order));
  const int32_t end = own.GetValue(GetBlockIdx() + 1);
  for (int32_t i = own.GetValue(GetBlockIdx()); i < end; ++i) {
    const int32_t item = items.GetValue(i);
    attention.head(item / plan.kv_heads, static_cast<uint32_t>(item % plan.kv_heads));
  }
}

}  // namespace

extern "C" __global__ __vector__ void paged_attention(GM_ADDR q, GM_ADDR out, GM_ADDR tables, GM_ADDR begins,
                                                      GM_ADDR lengths, GM_ADDR starts, GM_ADDR order,
                                                      GM_ADDR plan_address, GM_ADDR s0, GM_ADDR s1, GM_ADDR s2,
                                                      GM_ADDR s3, GM_ADDR s4, GM_ADDR s5, GM_ADDR s6, GM_ADDR s7,
                                                      GM_ADDR s8, GM_ADDR s9, GM_ADDR s10, GM_ADDR s11) {
  const Plan& plan = *reinterpret_cast<__gm__ const Plan*>(plan_address);
  GM_ADDR segments[kSegments] = {s0, s1, s2, s3, s4, s5, s6, s7, s8, s9, s10, s11};
  if (plan.is_bfloat16 != 0) {
    attend<bfloat16_t>(q, out, tables, begins, lengths, starts, order, segments, plan);
  } else {
    attend<half>(q, out, tables, begins, lengths, starts, order, segments, plan);
  }
}
