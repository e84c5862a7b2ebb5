// Kernel: softmax(q kᵀ scale + mask) v. A vector core has some queries of one head at a time; the cube core of its
// block multiplies for it. Scores and weights of those queries pass through global memory of the core's own.
#include "global_memory.h"
#include "kernel_operator.h"
#include "lib/matmul_intf.h"
#include "plans.h"

using namespace AscendC;
using namespace matmul;
using opkit::kernels::AttentionPlan;
using opkit::kernels::global;

namespace {

/// (rows, depth) by (depth, columns), of one base block or of several.
__aicore__ inline TCubeTiling tiling_of(uint32_t rows, uint32_t columns, uint32_t depth, uint32_t base_depth) {
  const auto part = [](uint32_t size, uint32_t limit) {
    const uint32_t whole = (size + 15) / 16 * 16;
    return static_cast<int32_t>(whole < limit ? whole : limit);
  };
  TCubeTiling t;
  t.usedCoreNum = 1;
  t.M = t.singleCoreM = rows;
  t.N = t.singleCoreN = columns;
  t.Ka = t.Kb = t.singleCoreK = depth;
  t.baseM = part(rows, 128);
  t.baseN = part(columns, 128);
  t.baseK = part(depth, base_depth);
  t.depthA1 = t.depthB1 = 2;
  t.stepM = t.stepN = t.stepKa = t.stepKb = 1;
  t.dbL0A = t.dbL0B = 2;
  t.dbL0C = 1;
  return t;
}

/// The vector core's part: weights of scores, a row at a time.
template <typename T>
class Weights {
 public:
  __aicore__ inline Weights(TPipe* pipe, GM_ADDR mask, GM_ADDR lse, const AttentionPlan& plan)
      : mask_(mask), lse_(lse), p_(plan) {
    pipe->InitBuffer(scores_, p_.pitch * sizeof(float));
    pipe->InitBuffer(weights_, p_.pitch * sizeof(float));
    pipe->InitBuffer(spare_, p_.pitch * sizeof(float));
    pipe->InitBuffer(stage_, p_.pitch * sizeof(T));
    pipe->InitBuffer(work_, 32);
    pipe->InitBuffer(sums_, kRows * sizeof(float));
    pipe->InitBuffer(most_, kRows * sizeof(float));
  }

  /// Of `rows` queries from `first` on, which see `limit` keys at most.
  __aicore__ inline void make(GM_ADDR scores, GM_ADDR weights, int64_t batch, int64_t head, int64_t first,
                              uint32_t rows, uint32_t limit) {
    const LocalTensor<float> sums = sums_.Get<float>();
    const LocalTensor<float> most = most_.Get<float>();
    for (uint32_t r = 0; r < rows; ++r) {
      const int64_t row = first + r;
      const uint32_t seen = p_.is_causal != 0 && row + 1 < limit ? static_cast<uint32_t>(row + 1) : limit;
      load(scores, static_cast<int64_t>(r) * p_.pitch, batch, head, row, seen);
      make_row(r, seen, limit);
      PipeBarrier<PIPE_ALL>();
      if constexpr (sizeof(T) == sizeof(float)) {
        DataCopyPad(global<float>(weights, static_cast<int64_t>(r) * p_.pitch), weights_.Get<float>(),
                    DataCopyExtParams(1, limit * sizeof(float), 0, 0, 0));
      } else {
        Cast(stage_.Get<T>(), weights_.Get<float>(), RoundMode::CAST_RINT, limit);
        PipeBarrier<PIPE_ALL>();
        DataCopyPad(global<T>(weights, static_cast<int64_t>(r) * p_.pitch), stage_.Get<T>(),
                    DataCopyExtParams(1, limit * sizeof(T), 0, 0, 0));
      }
      PipeBarrier<PIPE_ALL>();
    }
    Ln(sums, sums, rows);
    PipeBarrier<PIPE_V>();
    Add(sums, sums, most, rows);
    PipeBarrier<PIPE_ALL>();
    DataCopyPad(global<float>(lse_, (batch * p_.heads + head) * p_.queries + first), sums,
                DataCopyExtParams(1, rows * sizeof(float), 0, 0, 0));
    PipeBarrier<PIPE_ALL>();
  }

  static constexpr uint32_t kRows = AttentionPlan::kMostRows;

 private:
  __aicore__ inline void load(GM_ADDR scores, int64_t at, int64_t batch, int64_t head, int64_t row, uint32_t seen) {
    const LocalTensor<float> line = scores_.Get<float>();
    DataCopyPad(line, global<float>(scores, at), DataCopyExtParams(1, seen * sizeof(float), 0, 0, 0),
                DataCopyPadExtParams<float>(false, 0, 0, 0));
    if (p_.has_mask != 0) {
      const int64_t begin = batch * p_.mask_batch + head * p_.mask_head + row * p_.mask_row;
      const LocalTensor<T> mask = stage_.Get<T>();
      DataCopyPad(mask, global<T>(mask_, begin), DataCopyExtParams(1, seen * sizeof(T), 0, 0, 0),
                  DataCopyPadExtParams<T>(false, 0, 0, 0));
    }
    PipeBarrier<PIPE_ALL>();
    Muls(line, line, p_.scale, seen);
    PipeBarrier<PIPE_V>();
    if (p_.has_mask == 0) return;
    if constexpr (sizeof(T) == sizeof(float)) {
      Add(line, line, stage_.Get<float>(), seen);
    } else {
      Cast(spare_.Get<float>(), stage_.Get<T>(), RoundMode::CAST_NONE, seen);
      PipeBarrier<PIPE_V>();
      Add(line, line, spare_.Get<float>(), seen);
    }
    PipeBarrier<PIPE_V>();
  }

  __aicore__ inline void make_row(uint32_t r, uint32_t seen, uint32_t limit) {
    const LocalTensor<float> line = scores_.Get<float>();
    const LocalTensor<float> weights = weights_.Get<float>();
    const LocalTensor<float> spare = spare_.Get<float>();
    const LocalTensor<float> work = work_.Get<float>();
    ReduceMax(work, line, spare, seen);
    PipeBarrier<PIPE_ALL>();
    float most = work.GetValue(0);
    // A query that sees no key at all has no largest score.
    const bool sees_nothing = most == -__builtin_inff();
    if (sees_nothing) most = 0.0f;
    if (seen < limit) Duplicate(weights, 0.0f, limit);
    PipeBarrier<PIPE_ALL>();
    Adds(line, line, -most, seen);
    PipeBarrier<PIPE_V>();
    Exp(weights, line, seen);
    PipeBarrier<PIPE_V>();
    ReduceSum(work, weights, spare, seen);
    PipeBarrier<PIPE_ALL>();
    const float sum = work.GetValue(0);
    // Its weights are 0 then, and infinity as its sum keeps them so in the gradient.
    sums_.Get<float>().SetValue(r, sees_nothing ? 1.0f : sum);
    most_.Get<float>().SetValue(r, sees_nothing ? __builtin_inff() : most);
    PipeBarrier<PIPE_ALL>();
    Muls(weights, weights, sees_nothing ? 0.0f : 1.0f / sum, seen);
  }

  GM_ADDR mask_;
  GM_ADDR lse_;
  const AttentionPlan& p_;
  TBuf<TPosition::VECCALC> scores_, weights_, spare_, stage_, work_, sums_, most_;
};

template <typename T>
__aicore__ inline void attend(GM_ADDR q, GM_ADDR k, GM_ADDR v, GM_ADDR mask, GM_ADDR out, GM_ADDR lse, GM_ADDR scores,
                              GM_ADDR weights, const AttentionPlan& p) {
  using Rows = MatmulType<TPosition::GM, CubeFormat::ND, T>;
  using Turned = MatmulType<TPosition::GM, CubeFormat::ND, T, true>;
  using Scores = MatmulType<TPosition::GM, CubeFormat::ND, float>;
  const uint32_t base_depth = sizeof(T) == sizeof(float) ? 32 : 64;
  const TCubeTiling for_scores = tiling_of(p.rows, p.keys, p.width, base_depth);
  const TCubeTiling for_result = tiling_of(p.rows, p.value_width, p.keys, base_depth);
  TPipe pipe;
  Matmul<Rows, Turned, Scores, Scores> by_keys;
  Matmul<Rows, Rows, Rows, Scores> by_values;
  REGIST_MATMUL_OBJ(&pipe, GetSysWorkSpacePtr(), by_keys, &for_scores, by_values, &for_result);
  Weights<T> made(&pipe, mask, lse, p);
  const int64_t core = GetBlockIdx();
  const int64_t cores = static_cast<int64_t>(GetBlockNum()) * GetTaskRation();
  GM_ADDR own_scores = scores + core * p.rows * p.pitch * sizeof(float);
  GM_ADDR own_weights = weights + core * p.rows * p.pitch * sizeof(T);
  const int64_t groups = (p.queries + p.rows - 1) / p.rows;
  for (int64_t task = core; task < p.batch * p.heads * groups; task += cores) {
    const int64_t first = task % groups * p.rows;
    const int64_t head = task / groups % p.heads;
    const int64_t batch = task / groups / p.heads;
    const int64_t left = p.queries - first;
    const auto rows = static_cast<uint32_t>(left < p.rows ? left : p.rows);
    const bool is_cut = p.is_causal != 0 && first + rows < p.keys;
    const auto limit = static_cast<uint32_t>(is_cut ? first + rows : p.keys);
    const int64_t shared = head / (p.heads / p.kv_heads);
    by_keys.SetOrgShape(rows, p.keys, p.q_row, p.k_row, p.pitch);
    by_keys.SetTensorA(global<T>(q, batch * p.q_batch + head * p.q_head + first * p.q_row));
    by_keys.SetTensorB(global<T>(k, batch * p.k_batch + shared * p.k_head), true);
    by_keys.SetSingleShape(rows, limit, p.width);
    by_keys.IterateAll(global<float>(own_scores, 0));
    PipeBarrier<PIPE_ALL>();
    made.make(own_scores, own_weights, batch, head, first, rows, limit);
    by_values.SetOrgShape(rows, p.v_row, p.pitch, p.keys, p.out_row);
    by_values.SetTensorA(global<T>(own_weights, 0));
    by_values.SetTensorB(global<T>(v, batch * p.v_batch + shared * p.v_head));
    by_values.SetSingleShape(rows, p.value_width, limit);
    by_values.IterateAll(global<T>(out, batch * p.out_batch + head * p.out_head + first * p.out_row));
    PipeBarrier<PIPE_ALL>();
  }
  by_keys.End();
  by_values.End();
}

}  // namespace

extern "C" __global__ __aicore__ void attention(GM_ADDR q, GM_ADDR k, GM_ADDR v, GM_ADDR mask, GM_ADDR out, GM_ADDR lse,
                                                GM_ADDR scores, GM_ADDR weights, GM_ADDR plan) {
  const AttentionPlan& p = *reinterpret_cast<__gm__ const AttentionPlan*>(plan);
  switch (p.kind) {
    case 0: attend<half>(q, k, v, mask, out, lse, scores, weights, p); break;
    case 1: attend<bfloat16_t>(q, k, v, mask, out, lse, scores, weights, p); break;
    default: attend<float>(q, k, v, mask, out, lse, scores, weights, p); break;
  }
}
