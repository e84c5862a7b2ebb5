"""What vector cores do for attention, and the kernel's entry point."""

from __future__ import annotations

__all__ = ["ENTRY", "VECTOR"]

VECTOR = """
// Makes weights of scores by a softmax that goes along with the keys: where a later step has a larger score, the sums
// so far are scaled down. A vector core has half of a step's queries.
class KernelSTEMVector : STEMSteps {
public:
@if mask
__aicore__ inline void Init(GM_ADDR mask, GM_ADDR y, GM_ADDR scores, GM_ADDR weights, GM_ADDR sums, const STEMTiling& given)
@end
@if not mask
__aicore__ inline void Init(GM_ADDR y, GM_ADDR scores, GM_ADDR weights, GM_ADDR sums, const STEMTiling& given)
@end
{
tiling = given;
@if mask
maskGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ MASKTYPE*>(mask));
@end
yGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ TYPE*>(y));
scoresGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(scores));
weightsGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ TYPE*>(weights));
sumsGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(sums));
valueColumns = (tiling.valueWidth + 15) / 16 * 16;
pipe.InitBuffer(inputQueue, 2, TILE * sizeof(float));
pipe.InitBuffer(outputQueue, 1, TILE * sizeof(TYPE));
@if mask
pipe.InitBuffer(maskQueue, 1, TILE * sizeof(MASKTYPE));
@end
@if cast
pipe.InitBuffer(maskBuffer, TILE * sizeof(float));
@end
@if causal
pipe.InitBuffer(distanceBuffer, 2 * ROWS * 64 * sizeof(float));
distance = distanceBuffer.Get<float>();
// Column less row, for 64 columns.
for (uint32_t row = 0; row < ROWS; ++row) {
CreateVecIndex(distance[row * 64], -static_cast<float>(row), 64);
}
@end
pipe.InitBuffer(totalBuffer, QUERIES / 2 * valueColumns * sizeof(float));
pipe.InitBuffer(smallBuffer, SMALL * sizeof(float));
total = totalBuffer.Get<float>();
const LocalTensor<float> all = smallBuffer.Get<float>();
// Whole repeats of few rows meet defined values.
Duplicate(all, 0.0f, SMALL);
spread = all;
largest = all[ROWS * 128];
sum = largest[OWN];
kept = largest[2 * OWN];
ended = largest[(2 + SLOTS) * OWN];
fresh = largest[(2 + 2 * SLOTS) * OWN];
block = largest[(3 + 2 * SLOTS) * OWN];
eighths = largest[(11 + 2 * SLOTS) * OWN];
}

__aicore__ inline void Process()
{
Step ahead = First(GetBlockIdx() / GetSubBlockNum());
Step behind = ahead;
uint32_t begun = 0;
uint32_t done = 0;
while (behind.task < tiling.tasks) {
if (ahead.task < tiling.tasks) {
Weights(ahead, begun % SLOTS);
ahead = After(ahead);
++begun;
}
if (begun - done > AHEAD || ahead.task >= tiling.tasks) {
Sums(behind, done % SLOTS);
behind = After(behind);
++done;
}
}
}

private:
__aicore__ inline uint32_t FirstRow(const Step& step) const
{
return GetSubBlockIdx() == 0 ? 0 : (step.rows + 1) / 2;
}

__aicore__ inline uint32_t OwnRows(const Step& step) const
{
return GetSubBlockIdx() == 0 ? (step.rows + 1) / 2 : step.rows / 2;
}

__aicore__ inline int64_t Slot(uint32_t slot) const
{
return GetBlockIdx() / GetSubBlockNum() * SLOTS + slot;
}

__aicore__ inline void Weights(const Step& step, uint32_t slot)
{
const uint32_t own = OwnRows(step);
CrossCoreWaitFlag<2, PIPE_MTE2>(SCORES_READY);
if (own > 0) {
CopyIn(step, slot, 0);
}
for (uint32_t row = 0; row < own; row += ROWS) {
if (row + ROWS < own) {
CopyIn(step, slot, row + ROWS);
}
Compute(step, slot, row, own - row < ROWS ? own - row : ROWS);
CopyOut(step, slot, row, own - row < ROWS ? own - row : ROWS);
}
CrossCoreSetFlag<2, PIPE_MTE3>(WEIGHTS_READY);
}

__aicore__ inline void CopyIn(const Step& step, uint32_t slot, uint32_t row)
{
const uint32_t own = OwnRows(step);
const uint32_t rows = own - row < ROWS ? own - row : ROWS;
LocalTensor<float> input = inputQueue.AllocTensor<float>();
const int64_t from = (Slot(slot) * QUERIES + FirstRow(step) + row) * KEYS;
const uint32_t gap = (Stride(step) - (step.keys + 7) / 8 * 8) / 8;
DataCopyPad(input, scoresGlobal[from], DataCopyExtParams{static_cast<uint16_t>(rows), static_cast<uint32_t>(step.keys * sizeof(float)), static_cast<uint32_t>((KEYS - step.keys) * sizeof(float)), gap, 0}, DataCopyPadExtParams<float>());
inputQueue.EnQue(input);
}

// Elements from row to row in the buffer.
__aicore__ inline uint32_t Stride(const Step& step) const
{
return (step.keys + 63) / 64 * 64;
}

__aicore__ inline void Compute(const Step& step, uint32_t slot, uint32_t row, uint32_t rows)
{
const uint32_t stride = Stride(step);
const uint32_t count = rows * stride;
const uint8_t jump = stride / 8;
const LocalTensor<float> scores = inputQueue.DeQue<float>();
if (step.keys < stride) {
// What lies behind the last key has no weight.
uint64_t behind[2] = {~0ull << (step.keys % 64), 0};
Duplicate(scores[stride - 64], LEAST, behind, rows, 1, jump);
}
Muls(scores, scores, tiling.scale, count);
@if mask
AddMask(step, scores, row, rows);
@end
@if causal
HideLater(step, scores, row, rows);
@end
// The largest score of each row, of all steps so far. The weights' buffer serves meanwhile.
LocalTensor<TYPE> output = outputQueue.AllocTensor<TYPE>();
Fold<true>(output.template ReinterpretCast<float>(), scores, rows, stride);
const LocalTensor<float> before = largest[row];
if (step.key > 0) {
Max(fresh, fresh, before, rows);
}
// Each number in two data blocks, one for even columns of 64 and one for odd: in the banks that these do not read.
Brcb(spread, fresh, (rows + 7) / 8, {16, 128});
Brcb(spread[64], fresh, (rows + 7) / 8, {16, 128});
const LocalTensor<float> factor = kept[slot * OWN + row];
if (step.key > 0) {
Sub(factor, before, fresh, rows);
}
for (uint32_t column = 0; column < stride; column += 64) {
Sub(scores[column], scores[column], spread[column / 64 % 2 == 0 ? 64 : 0], 64, rows, {1, 1, 0, jump, jump, 16});
}
if (step.key > 0) {
Exp(factor, factor, rows);
}
Exp(scores, scores, count);
Adds(before, fresh, 0.0f, rows);
Cast(output, scores, RoundMode::CAST_RINT, count);
outputQueue.EnQue(output);
if (step.key > 0) {
Mul(sum[row], sum[row], factor, rows);
}
Fold<false>(scores, scores, rows, stride);
if (step.key > 0) {
Add(sum[row], sum[row], fresh, rows);
} else {
Adds(sum[row], fresh, 0.0f, rows);
}
inputQueue.FreeTensor(scores);
if (step.key + step.keys == step.limit) {
// The sums of the weights wait for those of the values.
Adds(ended[slot * OWN + row], sum[row], 0.0f, rows);
}
}

// Joins the columns of each row pair by pair, in another place or in the same; the result is one number a row.
template <bool isMax>
__aicore__ inline void Fold(const LocalTensor<float>& to, const LocalTensor<float>& scores, uint32_t rows, uint32_t stride)
{
const uint8_t jump = stride / 8;
const uint8_t step = isMax ? KEYS / 16 : jump;
uint32_t chunks = stride / 64;
if (chunks == 1) {
Reduce<isMax>(scores, rows, jump);
return;
}
LocalTensor<float> from = scores;
uint8_t fromStep = jump;
while (chunks > 1) {
// Neighbours lie in different groups of banks.
for (uint32_t i = 0; i < chunks / 2; ++i) {
if (isMax) {
Max(to[i * 64], from[2 * i * 64], from[(2 * i + 1) * 64], 64, rows, {1, 1, 1, step, fromStep, fromStep});
} else {
Add(to[i * 64], from[2 * i * 64], from[(2 * i + 1) * 64], 64, rows, {1, 1, 1, step, fromStep, fromStep});
}
}
if (chunks % 2 == 1) {
Adds(to[chunks / 2 * 64], from[(chunks - 1) * 64], 0.0f, 64, rows, {1, 1, step, fromStep});
}
from = to;
fromStep = step;
chunks = (chunks + 1) / 2;
}
Reduce<isMax>(to, rows, step);
}

template <bool isMax>
__aicore__ inline void Reduce(const LocalTensor<float>& folded, uint32_t rows, uint8_t step)
{
if (isMax) {
BlockReduceMax(eighths, folded, rows, 64, 1, 1, step);
BlockReduceMax(fresh, eighths, (rows + 7) / 8, 64, 1, 1, 8);
} else {
BlockReduceSum(eighths, folded, rows, 64, 1, 1, step);
BlockReduceSum(fresh, eighths, (rows + 7) / 8, 64, 1, 1, 8);
}
}

@if mask
__aicore__ inline void AddMask(const Step& step, const LocalTensor<float>& scores, uint32_t row, uint32_t rows)
{
const uint32_t stride = Stride(step);
constexpr uint32_t unit = 32 / sizeof(MASKTYPE);
LocalTensor<MASKTYPE> mask = maskQueue.AllocTensor<MASKTYPE>();
const int64_t first = step.row + FirstRow(step) + row;
const int64_t from = step.batch * tiling.batchMask + first * tiling.rowMask + step.key;
const uint32_t gap = (stride - (step.keys + unit - 1) / unit * unit) / unit;
const DataCopyPadExtParams<MASKTYPE> pad;
for (uint32_t i = 0; i < (tiling.rowMask == 0 ? rows : 0); ++i) {
DataCopyPad(mask[i * stride], maskGlobal[from], DataCopyExtParams{1, static_cast<uint32_t>(step.keys * sizeof(MASKTYPE)), 0, 0, 0}, pad);
}
if (tiling.rowMask > 0) {
DataCopyPad(mask, maskGlobal[from], DataCopyExtParams{static_cast<uint16_t>(rows), static_cast<uint32_t>(step.keys * sizeof(MASKTYPE)), static_cast<uint32_t>((tiling.rowMask - step.keys) * sizeof(MASKTYPE)), gap, 0}, pad);
}
maskQueue.EnQue(mask);
mask = maskQueue.DeQue<MASKTYPE>();
if (step.keys < stride) {
uint64_t behind[2] = {~0ull << (step.keys % 64), 0};
@if cast
// 64 elements are half a repeat of 16 bits.
Duplicate(mask[stride - 64], static_cast<MASKTYPE>(0), behind, rows, 1, stride / 16);
@end
@if not cast
Duplicate(mask[stride - 64], 0.0f, behind, rows, 1, stride / 8);
@end
}
@if cast
const LocalTensor<float> wide = maskBuffer.Get<float>();
Cast(wide, mask, RoundMode::CAST_NONE, rows * stride);
Add(scores, scores, wide, rows * stride);
@end
@if not cast
Add(scores, scores, mask, rows * stride);
@end
maskQueue.FreeTensor(mask);
}

@end
@if causal
// A query sees the keys up to its own place.
__aicore__ inline void HideLater(const Step& step, const LocalTensor<float>& scores, uint32_t row, uint32_t rows)
{
const uint32_t stride = Stride(step);
const uint8_t jump = stride / 8;
const int64_t own = step.row + FirstRow(step) + row;
const LocalTensor<float> hidden = distance[ROWS * 64];
for (uint32_t column = 0; column < stride; column += 64) {
const int64_t key = step.key + column;
if (key + 63 <= own) {
continue;
}
// Places behind the query's own, one for the first of them: far below every score.
Adds(hidden, distance, static_cast<float>(key - own), rows * 64);
Maxs(hidden, hidden, 0.0f, rows * 64);
Muls(hidden, hidden, LEAST, rows * 64);
Maxs(hidden, hidden, LEAST, rows * 64);
Add(scores[column], scores[column], hidden, 64, rows, {1, 1, 1, jump, jump, 8});
}
}

@end
__aicore__ inline void CopyOut(const Step& step, uint32_t slot, uint32_t row, uint32_t rows)
{
LocalTensor<TYPE> output = outputQueue.DeQue<TYPE>();
const int64_t to = (Slot(slot) * QUERIES + FirstRow(step) + row) * KEYS;
const uint32_t gap = (Stride(step) - (step.keys + 15) / 16 * 16) / 16;
DataCopyPad(weightsGlobal[to], output, DataCopyExtParams{static_cast<uint16_t>(rows), static_cast<uint32_t>(step.keys * sizeof(TYPE)), gap, static_cast<uint32_t>((KEYS - step.keys) * sizeof(TYPE)), 0});
outputQueue.FreeTensor(output);
}

// What a step has summed up joins the total; after the last step it is divided by the sum of the weights.
__aicore__ inline void Sums(const Step& step, uint32_t slot)
{
const uint32_t own = OwnRows(step);
const uint32_t first = FirstRow(step);
const uint8_t jump = valueColumns / 8;
CrossCoreWaitFlag<2, PIPE_MTE2>(SUMS_READY);
if (own == 0) {
return;
}
LocalTensor<float> sums = inputQueue.AllocTensor<float>();
const uint32_t bytes = tiling.valueWidth * sizeof(float);
const uint32_t skipped = (valueColumns - tiling.valueWidth) * sizeof(float);
const uint32_t gap = (valueColumns - (tiling.valueWidth + 7) / 8 * 8) / 8;
DataCopyPad(sums, sumsGlobal[(Slot(slot) * QUERIES + first) * valueColumns], DataCopyExtParams{static_cast<uint16_t>(own), bytes, skipped, gap, 0}, DataCopyPadExtParams<float>());
inputQueue.EnQue(sums);
sums = inputQueue.DeQue<float>();
if (step.key > 0) {
Brcb(block, kept[slot * OWN], (own + 7) / 8, {1, 8});
}
for (uint32_t column = 0; column < tiling.valueWidth; column += 64) {
const uint64_t width = Shorter(tiling.valueWidth - column, 64);
if (step.key > 0) {
Mul(total[column], total[column], block, width, own, {1, 1, 0, jump, jump, 1});
Add(total[column], total[column], sums[column], width, own, {1, 1, 1, jump, jump, jump});
} else {
Adds(total[column], sums[column], 0.0f, width, own, {1, 1, jump, jump});
}
}
inputQueue.FreeTensor(sums);
if (step.key + step.keys < step.limit) {
return;
}
Brcb(block, ended[slot * OWN], (own + 7) / 8, {1, 8});
LocalTensor<TYPE> output = outputQueue.AllocTensor<TYPE>();
for (uint32_t column = 0; column < tiling.valueWidth; column += 64) {
const uint64_t width = Shorter(tiling.valueWidth - column, 64);
Div(total[column], total[column], block, width, own, {1, 1, 0, jump, jump, 1});
Cast(output[column], total[column], RoundMode::CAST_RINT, width, own, {1, 1, static_cast<uint8_t>(jump / 2), jump});
}
outputQueue.EnQue(output);
output = outputQueue.DeQue<TYPE>();
const int64_t to = RowAt(step.batch, tiling.queries, step.row + first, tiling.resultHeads) * tiling.valueWidth;
const uint32_t others = static_cast<uint32_t>((tiling.resultHeads - 1) * tiling.valueWidth * sizeof(TYPE));
DataCopyPad(yGlobal[to], output, DataCopyExtParams{static_cast<uint16_t>(own), static_cast<uint32_t>(tiling.valueWidth * sizeof(TYPE)), (valueColumns - (static_cast<uint32_t>(tiling.valueWidth) + 15) / 16 * 16) / 16, others, 0});
outputQueue.FreeTensor(output);
}

static constexpr uint32_t ROWS = ROWCOUNT;  // whose scores are computed at once
static constexpr uint32_t TILE = ROWS * KEYS;
static constexpr uint32_t OWN = QUERIES / 2;  // rows of a step, at most
static constexpr uint32_t SMALL = (11 + 2 * SLOTS) * OWN + ROWS * 136;
static constexpr float LEAST = -1.0e30f;
TPipe pipe;
TQue<QuePosition::VECIN, 2> inputQueue;
TQue<QuePosition::VECOUT, 1> outputQueue;
@if mask
TQue<QuePosition::VECIN, 1> maskQueue;
@end
@if cast
TBuf<QuePosition::VECCALC> maskBuffer;
@end
@if causal
TBuf<QuePosition::VECCALC> distanceBuffer;
LocalTensor<float> distance;
@end
TBuf<QuePosition::VECCALC> totalBuffer;
TBuf<QuePosition::VECCALC> smallBuffer;
LocalTensor<float> total;
LocalTensor<float> largest;  // score of each row so far
LocalTensor<float> sum;  // of each row's weights so far
LocalTensor<float> kept;  // what each step scales the sums before it by
LocalTensor<float> ended;  // sums of the weights, of tasks whose steps are all done
LocalTensor<float> fresh;
LocalTensor<float> block;
LocalTensor<float> eighths;
LocalTensor<float> spread;
@if mask
GlobalTensor<MASKTYPE> maskGlobal;
@end
GlobalTensor<TYPE> yGlobal;
GlobalTensor<float> scoresGlobal;
GlobalTensor<TYPE> weightsGlobal;
GlobalTensor<float> sumsGlobal;
uint32_t valueColumns = 0;
};

"""

ENTRY = """
@if mask
extern "C" __global__ __mix__(1, 2) void NAME(GM_ADDR q, GM_ADDR k, GM_ADDR v, GM_ADDR mask, GM_ADDR y, GM_ADDR scores, GM_ADDR weights, GM_ADDR sums, STEMTiling tiling)
@end
@if not mask
extern "C" __global__ __mix__(1, 2) void NAME(GM_ADDR q, GM_ADDR k, GM_ADDR v, GM_ADDR y, GM_ADDR scores, GM_ADDR weights, GM_ADDR sums, STEMTiling tiling)
@end
{
if ASCEND_IS_AIC {
KernelSTEMCube op;
op.Init(q, k, v, scores, weights, sums, tiling);
op.Process();
} else {
KernelSTEMVector op;
@if mask
op.Init(mask, y, scores, weights, sums, tiling);
@end
@if not mask
op.Init(y, scores, weights, sums, tiling);
@end
op.Process();
}
}
"""
