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
pipe.InitBuffer(inputQueue, 2, (TILE + 2 * LINE) * sizeof(float));
pipe.InitBuffer(totalBuffer, (tiling.valueWidth + LINE - 1) / LINE * LINE * OWN * sizeof(float));
@if mask
pipe.InitBuffer(maskQueue, 1, TILE * sizeof(MASKTYPE));
@end
@if cast
pipe.InitBuffer(maskBuffer, TILE * sizeof(float));
@end
// What instructions write while they read scores lies behind them, where the banks are others.
pipe.InitBuffer(outputQueue, 1, KEYS / 16 * (ROWS + 1) * 16 * sizeof(TYPE));
pipe.InitBuffer(smallBuffer, SMALL * sizeof(float));
total = totalBuffer.Get<float>();
const LocalTensor<float> all = smallBuffer.Get<float>();
// Whole repeats of few rows meet defined values.
Duplicate(all, 0.0f, SMALL);
spread = all[LINE];
eighths = all[(OWN + 1) * LINE];
largest = eighths[ROWS * KEYS / 8];
sum = largest[OWN];
kept = largest[2 * OWN];
ended = largest[(2 + SLOTS) * OWN];
fresh = largest[(2 + 2 * SLOTS) * OWN];
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

// Scores come as they lie in memory: 64 keys of all rows, then the next 64.
__aicore__ inline void CopyIn(const Step& step, uint32_t slot, uint32_t row)
{
const uint32_t own = OwnRows(step);
const uint32_t rows = own - row < ROWS ? own - row : ROWS;
LocalTensor<float> input = inputQueue.AllocTensor<float>();
const int64_t from = Slot(slot) * QUERIES * KEYS + (FirstRow(step) + row) * LINE;
const uint32_t whole = step.keys / LINE;
const uint32_t rest = step.keys % LINE;
if (whole > 0) {
const uint32_t others = static_cast<uint32_t>((QUERIES - rows) * LINE * sizeof(float));
DataCopyPad(input, scoresGlobal[from], DataCopyExtParams{static_cast<uint16_t>(whole), static_cast<uint32_t>(rows * LINE * sizeof(float)), others, 0, 0}, DataCopyPadExtParams<float>());
}
if (rest > 0) {
DataCopyPad(input[whole * rows * LINE], scoresGlobal[from + whole * QUERIES * LINE], DataCopyExtParams{static_cast<uint16_t>(rows), static_cast<uint32_t>(rest * sizeof(float)), static_cast<uint32_t>((LINE - rest) * sizeof(float)), (LINE - (rest + 7) / 8 * 8) / 8, 0}, DataCopyPadExtParams<float>());
}
inputQueue.EnQue(input);
}

__aicore__ inline void Compute(const Step& step, uint32_t slot, uint32_t row, uint32_t rows)
{
const uint32_t lines = (step.keys + LINE - 1) / LINE;
const uint32_t length = rows * LINE;
// In halves, so that an instruction does not wait for what the one before is writing.
const uint32_t first = lines / 2 * length;
const uint32_t second = lines * length - first;
const LocalTensor<float> scores = inputQueue.DeQue<float>();
const uint32_t rest = step.keys % LINE;
uint64_t behind[2] = {~0ull << rest, 0};
const LocalTensor<float> last = scores[(lines - 1) * length];
if (rest > 0) {
Duplicate(last, 0.0f, behind, rows, 1, 8);
}
Twice([&](uint32_t from, uint32_t count) { Muls(scores[from], scores[from], tiling.scale, count); }, first, second);
@if mask
AddMask(step, scores, row, rows);
@end
if (rest > 0) {
// What lies behind the last key has no weight.
Duplicate(last, LEAST, behind, rows, 1, 8);
}
@if causal
HideLater(step, scores, row, rows);
@end
// The largest score of each row, of all steps so far.
Twice([&](uint32_t from, uint32_t count) { BlockReduceMax(eighths[from / 8], scores[from], count / LINE, 64, 1, 1, 8); }, first, second);
for (uint32_t parts = lines; parts > 1;) {
parts = Join<true>(parts, rows);
}
BlockReduceMax(fresh, eighths, (rows + 7) / 8, 64, 1, 1, 8);
@if mask
// A row whose keys are all hidden has a largest score as well: what is hidden then has no weight.
Maxs(fresh, fresh, LOWEST, rows);
@end
const LocalTensor<float> before = largest[row];
const LocalTensor<float> factor = kept[slot * OWN + row];
if (step.key > 0) {
Max(fresh, fresh, before, rows);
}
Spread(fresh, rows);
if (step.key > 0) {
Sub(factor, before, fresh, rows);
Exp(factor, factor, rows);
}
Adds(before, fresh, 0.0f, rows);
for (uint32_t line = 0; line < lines; ++line) {
Sub(scores[line * length], scores[line * length], spread, 64, rows, {1, 1, 0, 8, 8, 8});
}
Twice([&](uint32_t from, uint32_t count) { Exp(scores[from], scores[from], count); }, first, second);
Twice([&](uint32_t from, uint32_t count) { BlockReduceSum(eighths[from / 8], scores[from], count / LINE, 64, 1, 1, 8); }, first, second);
// Weights become columns of 32 bytes one behind the other, as the cube takes them: meanwhile their sums are joined.
LocalTensor<TYPE> output = outputQueue.AllocTensor<TYPE>();
const uint32_t even = (lines + 1) / 2;
const uint16_t height = rows | 1;
uint32_t parts = lines;
for (uint32_t i = 0; i < lines; ++i) {
const uint32_t line = i < even ? 2 * i : 2 * (i - even) + 1;
Cast(output[line * LINE * height], scores[line * length], RoundMode::CAST_RINT, 64, rows, {height, 1, 1, 8});
if (i % 2 == 1 && parts > 1) {
parts = Join<false>(parts, rows);
}
}
outputQueue.EnQue(output);
inputQueue.FreeTensor(scores);
while (parts > 1) {
parts = Join<false>(parts, rows);
}
BlockReduceSum(fresh, eighths, (rows + 7) / 8, 64, 1, 1, 8);
if (step.key > 0) {
Mul(sum[row], sum[row], factor, rows);
Add(sum[row], sum[row], fresh, rows);
} else {
Adds(sum[row], fresh, 0.0f, rows);
}
if (step.key + step.keys == step.limit) {
// The sums of the weights wait for those of the values.
@if mask
// The largest score of a row has the weight 1; a row that sees no key has none, and gives zeros.
Maxs(ended[slot * OWN + row], sum[row], 1.0f, rows);
@end
@if not mask
Adds(ended[slot * OWN + row], sum[row], 0.0f, rows);
@end
}
}

template <typename Work>
__aicore__ inline void Twice(const Work& work, uint32_t first, uint32_t second)
{
if (first > 0) {
work(0, first);
}
work(first, second);
}

// Joins the last of some parts, eight numbers a row, with the first; returns how many are left.
template <bool isMax>
__aicore__ inline uint32_t Join(uint32_t parts, uint32_t rows)
{
const uint32_t last = parts / 2;
const uint32_t left = parts - last;
if (isMax) {
Max(eighths, eighths, eighths[left * rows * 8], last * rows * 8);
} else {
Add(eighths, eighths, eighths[left * rows * 8], last * rows * 8);
}
return left;
}

// A number a row becomes a data block a row, in the banks that this row's 64 numbers do not have.
__aicore__ inline void Spread(const LocalTensor<float>& numbers, uint32_t rows)
{
Brcb(spread, numbers, (rows + 7) / 8, {8, 64});
}

@if mask
__aicore__ inline void AddMask(const Step& step, const LocalTensor<float>& scores, uint32_t row, uint32_t rows)
{
const uint32_t stride = (step.keys + LINE - 1) / LINE * LINE;
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
uint64_t behind[2] = {~0ull << (step.keys % LINE), 0};
@if cast
// 64 elements are half a repeat of 16 bits.
Duplicate(mask[stride - LINE], static_cast<MASKTYPE>(0), behind, rows, 1, stride / 16);
@end
@if not cast
Duplicate(mask[stride - LINE], 0.0f, behind, rows, 1, stride / 8);
@end
}
@if cast
const LocalTensor<float> added = maskBuffer.Get<float>();
Cast(added, mask, RoundMode::CAST_NONE, rows * stride);
@end
@if not cast
const LocalTensor<float> added = mask;
@end
const uint8_t jump = stride / 8;
for (uint32_t line = 0; line < stride / LINE; ++line) {
Add(scores[line * rows * LINE], scores[line * rows * LINE], added[line * LINE], 64, rows, {1, 1, 1, 8, 8, jump});
}
maskQueue.FreeTensor(mask);
}

@end
@if causal
// A query sees the keys up to its own place, before which `ahead` keys come that no query has.
__aicore__ inline void HideLater(const Step& step, const LocalTensor<float>& scores, uint32_t row, uint32_t rows)
{
const int64_t own = step.row + FirstRow(step) + row + tiling.ahead;
for (uint32_t line = 0; line * LINE < step.keys; ++line) {
@if mask
const int64_t key = step.key + line * LINE;
constexpr int64_t each = 1;
@end
@if not mask
// Of pairs that were copied as one row the lines of the first keys come first.
const uint32_t half = line * LINE / HALF * HALF;
const uint32_t inHalf = line * LINE - half;
const bool arePaired = ArePaired(Shorter(step.keys - half, HALF));
const int64_t each = arePaired ? 2 : 1;
const int64_t key = step.key + half + (arePaired ? inHalf % (HALF / 2) * 2 + inHalf / (HALF / 2) : inHalf);
@end
const int64_t last = key + (LINE - 1) * each;
if (last <= own) {
continue;
}
// Of these keys the first rows see none, the next ones some.
const LocalTensor<float> those = scores[line * rows * LINE];
const uint32_t blind = key > own ? Shorter(rows, key - own) : 0;
if (blind > 0) {
Duplicate(those, LEAST, blind * LINE);
}
for (uint32_t i = blind; i < rows && own + i < last; ++i) {
uint64_t later[2] = {~0ull << ((own + i - key) / each + 1), 0};
Duplicate(those[i * LINE], LEAST, later, 1, 1, 8);
}
}
}

@end
__aicore__ inline void CopyOut(const Step& step, uint32_t slot, uint32_t row, uint32_t rows)
{
LocalTensor<TYPE> output = outputQueue.DeQue<TYPE>();
const int64_t to = Slot(slot) * QUERIES * KEYS + (FirstRow(step) + row) * 16;
const uint16_t height = rows | 1;
DataCopy(weightsGlobal[to], output, DataCopyParams(static_cast<uint16_t>((step.keys + 15) / 16), static_cast<uint16_t>(rows), static_cast<uint16_t>(height - rows), static_cast<uint16_t>(QUERIES - rows)));
outputQueue.FreeTensor(output);
}

// What a step has summed up joins the total; after the last step it is divided by the sum of the weights.
__aicore__ inline void Sums(const Step& step, uint32_t slot)
{
const uint32_t own = OwnRows(step);
const uint32_t first = FirstRow(step);
CrossCoreWaitFlag<2, PIPE_MTE2>(SUMS_READY);
if (own == 0) {
return;
}
LocalTensor<float> sums = inputQueue.AllocTensor<float>();
const int64_t from = (Slot(slot) * QUERIES + first) * valueColumns;
for (uint32_t column = 0; column < tiling.valueWidth; column += LINE) {
const uint32_t width = Shorter(tiling.valueWidth - column, LINE);
DataCopyPad(sums[LINE + column * OWN], sumsGlobal[from + column], DataCopyExtParams{static_cast<uint16_t>(own), static_cast<uint32_t>(width * sizeof(float)), static_cast<uint32_t>((valueColumns - width) * sizeof(float)), (LINE - (width + 7) / 8 * 8) / 8, 0}, DataCopyPadExtParams<float>());
}
inputQueue.EnQue(sums);
sums = inputQueue.DeQue<float>();
if (step.key > 0) {
Spread(kept[slot * OWN], own);
for (uint32_t column = 0; column < tiling.valueWidth; column += LINE) {
Mul(total[column * OWN], total[column * OWN], spread, Shorter(tiling.valueWidth - column, LINE), own, {1, 1, 0, 8, 8, 8});
}
}
for (uint32_t column = 0; column < tiling.valueWidth; column += LINE) {
const uint64_t width = Shorter(tiling.valueWidth - column, LINE);
if (step.key > 0) {
Add(total[column * OWN], total[column * OWN], sums[LINE + column * OWN], width, own, {1, 1, 1, 8, 8, 8});
} else {
Adds(total[column * OWN], sums[LINE + column * OWN], 0.0f, width, own, {1, 1, 8, 8});
}
}
inputQueue.FreeTensor(sums);
if (step.key + step.keys < step.limit) {
return;
}
Spread(ended[slot * OWN], own);
LocalTensor<TYPE> output = outputQueue.AllocTensor<TYPE>();
const uint8_t jump = valueColumns / 16;
for (uint32_t column = 0; column < tiling.valueWidth; column += LINE) {
Div(total[column * OWN], total[column * OWN], spread, Shorter(tiling.valueWidth - column, LINE), own, {1, 1, 0, 8, 8, 8});
}
for (uint32_t column = 0; column < tiling.valueWidth; column += LINE) {
Cast(output[column], total[column * OWN], RoundMode::CAST_RINT, Shorter(tiling.valueWidth - column, LINE), own, {1, 1, jump, 8});
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
static constexpr uint32_t SMALL = (OWN + 1) * LINE + ROWS * KEYS / 8 + (3 + 2 * SLOTS) * OWN;
@if mask
static constexpr float LEAST = -INFINITY;
static constexpr float LOWEST = -3.402823466e38f;
@end
@if not mask
static constexpr float LEAST = -1.0e30f;
@end
TPipe pipe;
TQue<QuePosition::VECIN, 2> inputQueue;
TQue<QuePosition::VECOUT, 1> outputQueue;
@if mask
TQue<QuePosition::VECIN, 1> maskQueue;
@end
@if cast
TBuf<QuePosition::VECCALC> maskBuffer;
@end
TBuf<QuePosition::VECCALC> totalBuffer;
TBuf<QuePosition::VECCALC> smallBuffer;
LocalTensor<float> total;
LocalTensor<float> largest;  // score of each row so far
LocalTensor<float> sum;  // of each row's weights so far
LocalTensor<float> kept;  // what each step scales the sums before it by
LocalTensor<float> ended;  // sums of the weights, of tasks whose steps are all done
LocalTensor<float> fresh;
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
