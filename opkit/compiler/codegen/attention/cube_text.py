"""What cube cores do for attention, and how both kinds of cores count its steps; words in capitals are
replaced, lines from `@if` to `@end` are chosen."""

from __future__ import annotations

__all__ = ["CUBE", "STEPS"]

STEPS = """
// Some keys for some queries: what cube core and vector cores hand to each other.
struct Step {
int64_t task;
int64_t batch;
int64_t row;  // the first query
int64_t limit;  // keys that any of these queries sees
int64_t key;  // the first key
uint32_t rows;
uint32_t keys;
};

class STEMSteps {
protected:
__aicore__ inline Step First(int64_t task) const
{
Step step;
step.task = task;
// The last queries of all batches come first: where a query sees no later key, theirs is the most work.
const int64_t batches = tiling.tasks / tiling.groups;
step.batch = task % batches;
step.row = (tiling.groups - 1 - task / batches) * QUERIES;
step.rows = Shorter(tiling.queries - step.row, QUERIES);
@if causal
step.limit = Shorter(tiling.keys, step.row + step.rows + tiling.ahead);
@end
@if not causal
step.limit = tiling.keys;
@end
step.key = 0;
step.keys = Shorter(step.limit, KEYS);
return step;
}

__aicore__ inline Step After(const Step& step) const
{
if (step.key + step.keys == step.limit) {
@if causal
// Rounds take the cores from either end in turn: none has the most work in all of them.
return First(step.task + 2 * (GetBlockNum() - 1 - step.task % GetBlockNum()) + 1);
@end
@if not causal
return First(step.task + GetBlockNum());
@end
}
Step next = step;
next.key = step.key + step.keys;
next.keys = Shorter(step.limit - next.key, KEYS);
return next;
}

@if not mask
// Whether two rows of keys, and of values, are copied as one, as longer rows copy faster: keys of even places come
// before those of odd ones, which makes no difference to their sums.
__aicore__ inline bool ArePaired(uint32_t keys) const
{
return keys == HALF && tiling.keyHeads == 1 && tiling.valueHeads == 1 && (tiling.width | tiling.valueWidth) % 16 == 0;
}

@end
// A row of one batch, counted in rows of one head, where `heads` of them lie beside each other in each row.
__aicore__ inline int64_t RowAt(int64_t batch, int64_t rows, int64_t row, int64_t heads) const
{
return (batch / heads * rows + row) * heads + batch % heads;
}

__aicore__ inline uint32_t Shorter(int64_t left, int64_t right) const
{
return static_cast<uint32_t>(left < right ? left : right);
}

static constexpr uint16_t SCORES_READY = 4;
static constexpr uint16_t WEIGHTS_READY = 5;
static constexpr uint16_t SUMS_READY = 6;
static constexpr uint32_t HALF = KEYS / 2;  // keys that come to L1 at once
static constexpr uint32_t LINE = 64;  // keys whose scores lie beside each other
static constexpr uint32_t AHEAD = SLOTS - 1;  // steps of scores before the sums of the first
STEMTiling tiling;
};

"""

CUBE = """
// Multiplies queries by keys, steps ahead of weights by values: the vector cores make weights of scores meanwhile.
class KernelSTEMCube : STEMSteps {
public:
__aicore__ inline void Init(GM_ADDR q, GM_ADDR k, GM_ADDR v, GM_ADDR scores, GM_ADDR weights, GM_ADDR sums, const STEMTiling& given)
{
tiling = given;
qGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ TYPE*>(q));
kGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ TYPE*>(k));
vGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ TYPE*>(v));
scoresGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(scores));
weightsGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ TYPE*>(weights));
sumsGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ float*>(sums));
depth = RoundUp(tiling.width);
valueColumns = RoundUp(tiling.valueWidth);
pipe.InitBuffer(queryBuffer, 2 * QUERIES * depth * sizeof(TYPE));
pipe.InitBuffer(keyBuffer, 2 * HALF * depth * sizeof(TYPE));
pipe.InitBuffer(weightBuffer, 2 * QUERIES * HALF * sizeof(TYPE));
pipe.InitBuffer(valueBuffer, 2 * HALF * valueColumns * sizeof(TYPE));
pipe.InitBuffer(leftBuffer, 2 * QUERIES * UNIT * sizeof(TYPE));
pipe.InitBuffer(rightBuffer, 2 * UNIT * UNIT * sizeof(TYPE));
pipe.InitBuffer(resultBuffer, 2 * QUERIES * UNIT * sizeof(float));
if (tiling.queries % 16 == 1) {
// A single row is multiplied with the one below it.
const LocalTensor<TYPE> queries = queryBuffer.Get<TYPE>();
const LocalTensor<TYPE> weights1 = weightBuffer.Get<TYPE>();
InitConstValue(queries, InitConstValueParams<TYPE>(1, 2 * QUERIES * depth * sizeof(TYPE) / 32, 0, 0));
InitConstValue(weights1, InitConstValueParams<TYPE>(1, 2 * QUERIES * HALF * sizeof(TYPE) / 32, 0, 0));
SetFlag<HardEvent::MTE2_MTE1>(0);
WaitFlag<HardEvent::MTE2_MTE1>(0);
}
}

__aicore__ inline void Process()
{
Step ahead = First(GetBlockIdx());
Step behind = ahead;
if (ahead.task >= tiling.tasks) {
return;
}
for (int32_t i = 0; i < 6; ++i) {
SetFlag<HardEvent::MTE1_MTE2>(i);
}
for (int32_t i = 0; i < 2; ++i) {
SetFlag<HardEvent::M_MTE1>(i);
}
uint32_t begun = 0;
uint32_t done = 0;
while (behind.task < tiling.tasks) {
if (ahead.task < tiling.tasks) {
Scores(ahead, begun % SLOTS);
ahead = After(ahead);
++begun;
}
if (begun - done > AHEAD || ahead.task >= tiling.tasks) {
Sums(behind, done % SLOTS);
behind = After(behind);
++done;
}
}
for (int32_t i = 0; i < 6; ++i) {
WaitFlag<HardEvent::MTE1_MTE2>(i);
}
for (int32_t i = 0; i < 2; ++i) {
WaitFlag<HardEvent::M_MTE1>(i);
}
}

private:
// Queries by keys, in pieces of 64 keys that two parts of L0C hold in turn.
__aicore__ inline void Scores(const Step& step, uint32_t slot)
{
if (step.key == 0) {
query = 1 - query;
WaitFlag<HardEvent::MTE1_MTE2>(query);
Copy(queryBuffer.Get<TYPE>()[query * QUERIES * depth], qGlobal[RowAt(step.batch, tiling.queries, step.row, tiling.queryHeads) * tiling.width], step.rows, tiling.width, tiling.queryHeads * tiling.width);
SetFlag<HardEvent::MTE2_MTE1>(query);
WaitFlag<HardEvent::MTE2_MTE1>(query);
}
const uint32_t rows = RoundUp(step.rows);
for (uint32_t begin = 0; begin < step.keys; begin += HALF) {
const uint32_t count = Shorter(step.keys - begin, HALF);
const int32_t flag = 2 + half1;
const LocalTensor<TYPE> keys = keyBuffer.Get<TYPE>()[half1 * HALF * depth];
half1 = 1 - half1;
WaitFlag<HardEvent::MTE1_MTE2>(flag);
const uint32_t pairs = CopyRows(keys, kGlobal[RowAt(step.batch / tiling.keyGroup, tiling.keys, step.key + begin, tiling.keyHeads) * tiling.width], count, tiling.width, tiling.keyHeads);
const uint32_t height = RoundUp(count) / pairs;
SetFlag<HardEvent::MTE2_MTE1>(flag);
WaitFlag<HardEvent::MTE2_MTE1>(flag);
for (uint32_t first = 0; first < count; first += UNIT) {
const uint32_t unit = Shorter(count - first, UNIT);
const uint32_t place = first / height * depth * height + first % height * 16;
const LocalTensor<TYPE> left = Left();
const LocalTensor<TYPE> right = Right();
WaitFlag<HardEvent::M_MTE1>(stage);
LoadRows(left, queryBuffer.Get<TYPE>()[query * QUERIES * depth], rows, rows, depth, depth / 16);
for (uint32_t piece = 0; piece < unit; piece += LINE) {
const uint32_t columns = RoundUp(Shorter(unit - piece, LINE));
for (uint32_t i = 0; i < depth / 16; ++i) {
LoadData(right[piece * depth + i * columns * 16], keys[place + (i * height + piece) * 16], LoadData2DParams(0, columns / 16, 1, 0, 0, false, 0));
}
}
SetFlag<HardEvent::MTE1_M>(stage);
WaitFlag<HardEvent::MTE1_M>(stage);
for (uint32_t piece = 0; piece < unit; piece += LINE) {
const uint32_t columns = Shorter(unit - piece, LINE);
const LocalTensor<float> scores = resultBuffer.Get<float>()[QUERIES * UNIT + part * QUERIES * LINE];
Mmad(scores, left, right[piece * depth], MmadParams(Rows(step), columns, tiling.width, FILLED, false, true));
const int64_t to = Slot(slot) * QUERIES * KEYS + (begin + first + piece) * QUERIES;
FixpipeParamsV220 shape(columns, step.rows, rows, LINE, false);
shape.unitFlag = FILLED;
Fixpipe(scoresGlobal[to], scores, shape);
part = 1 - part;
}
SetFlag<HardEvent::M_MTE1>(stage);
stage = 1 - stage;
}
SetFlag<HardEvent::MTE1_MTE2>(flag);
}
if (step.key + step.keys == step.limit) {
// The next scores are of other queries.
SetFlag<HardEvent::MTE1_MTE2>(query);
}
CrossCoreSetFlag<2, PIPE_FIX>(SCORES_READY);
}

// Weights by values, summed up over the step.
__aicore__ inline void Sums(const Step& step, uint32_t slot)
{
CrossCoreWaitFlag<2, PIPE_MTE2>(WEIGHTS_READY);
const uint32_t rows = RoundUp(step.rows);
const LocalTensor<float> sums = resultBuffer.Get<float>();
for (uint32_t begin = 0; begin < step.keys; begin += HALF) {
const uint32_t count = Shorter(step.keys - begin, HALF);
const int32_t flag = 4 + half2;
const LocalTensor<TYPE> weights = weightBuffer.Get<TYPE>()[half2 * QUERIES * HALF];
const LocalTensor<TYPE> values = valueBuffer.Get<TYPE>()[half2 * HALF * valueColumns];
half2 = 1 - half2;
WaitFlag<HardEvent::MTE1_MTE2>(flag);
DataCopy(weights, weightsGlobal[(Slot(slot) * KEYS + begin) * QUERIES], DataCopyParams(static_cast<uint16_t>(RoundUp(count) / 16), static_cast<uint16_t>(step.rows), static_cast<uint16_t>(QUERIES - step.rows), static_cast<uint16_t>(rows - step.rows)));
const uint32_t pairs = CopyRows(values, vGlobal[RowAt(step.batch / tiling.keyGroup, tiling.keys, step.key + begin, tiling.valueHeads) * tiling.valueWidth], count, tiling.valueWidth, tiling.valueHeads);
const uint32_t height = RoundUp(count) / pairs;
SetFlag<HardEvent::MTE2_MTE1>(flag);
WaitFlag<HardEvent::MTE2_MTE1>(flag);
for (uint32_t first = 0; first < count; first += UNIT) {
const uint32_t unit = Shorter(count - first, UNIT);
const uint32_t place = first / height * valueColumns * height + first % height * 16;
const LocalTensor<TYPE> left = Left();
const LocalTensor<TYPE> right = Right();
WaitFlag<HardEvent::M_MTE1>(stage);
LoadRows(left, weights[first * rows], rows, rows, RoundUp(unit), RoundUp(unit) / 16);
for (uint32_t i = 0; i < RoundUp(unit) / 16; ++i) {
LoadData(right[i * valueColumns * 16], values[place + i * 256], LoadData2DParams(0, valueColumns / 16, height / 16, 0, 0, true, 0));
}
SetFlag<HardEvent::MTE1_M>(stage);
WaitFlag<HardEvent::MTE1_M>(stage);
const uint8_t filled = begin + first + unit == step.keys ? FILLED : FILLING;
Mmad(sums, left, right, MmadParams(Rows(step), tiling.valueWidth, unit, filled, false, begin + first == 0));
if (rows * valueColumns < 2560) {
// So short a product has not written its sums when the next one reads them.
PipeBarrier<PIPE_M>();
}
SetFlag<HardEvent::M_MTE1>(stage);
stage = 1 - stage;
}
SetFlag<HardEvent::MTE1_MTE2>(flag);
}
FixpipeParamsV220 shape(tiling.valueWidth, step.rows, rows, valueColumns, false);
shape.unitFlag = FILLED;
Fixpipe(sumsGlobal[Slot(slot) * QUERIES * valueColumns], sums, shape);
CrossCoreSetFlag<2, PIPE_FIX>(SUMS_READY);
}

// Columns of 32 bytes one behind the other, each of a multiple of 16 rows.
__aicore__ inline void Copy(const LocalTensor<TYPE>& to, const GlobalTensor<TYPE>& from, uint32_t rows, uint32_t columns, uint32_t stride)
{
DataCopy(to, from, Nd2NzParams(1, rows, columns, 0, stride, RoundUp(rows), 1, 0));
}

// Rows of keys or values; returns how many rows are copied as one.
__aicore__ inline uint32_t CopyRows(const LocalTensor<TYPE>& to, const GlobalTensor<TYPE>& from, uint32_t rows, uint32_t columns, uint32_t heads)
{
@if not mask
if (ArePaired(rows)) {
Copy(to, from, rows / 2, 2 * columns, 2 * columns);
return 2;
}
@end
Copy(to, from, rows, columns, heads * columns);
return 1;
}

// A left operand: fractals of a row beside each other.
__aicore__ inline void LoadRows(const LocalTensor<TYPE>& to, const LocalTensor<TYPE>& from, uint32_t rows, uint32_t height, uint32_t columns, uint32_t step)
{
for (uint32_t i = 0; i < columns / 16; ++i) {
LoadData(to[i * 256], from[i * height * 16], LoadData2DParams(0, rows / 16, 1, 0, step - 1, false, 0));
}
}

__aicore__ inline LocalTensor<TYPE> Left()
{
return leftBuffer.Get<TYPE>()[stage * QUERIES * UNIT];
}

__aicore__ inline LocalTensor<TYPE> Right()
{
return rightBuffer.Get<TYPE>()[stage * UNIT * UNIT];
}

__aicore__ inline int64_t Slot(uint32_t slot) const
{
return GetBlockIdx() * SLOTS + slot;
}

// A product of one row would be a vector's, which lies otherwise in L0A.
__aicore__ inline uint32_t Rows(const Step& step) const
{
return step.rows == 1 ? 2 : step.rows;
}

__aicore__ inline uint32_t RoundUp(uint32_t count) const
{
return (count + 15) / 16 * 16;
}

static constexpr uint32_t UNIT = 128;  // keys that come to L0 at once
static constexpr uint8_t FILLING = 2;  // unit flags: more is added to a block of L0C; it is carried out next
static constexpr uint8_t FILLED = 3;
TPipe pipe;
TBuf<TPosition::A1> queryBuffer;
TBuf<TPosition::B1> keyBuffer;
TBuf<TPosition::A1> weightBuffer;
TBuf<TPosition::B1> valueBuffer;
TBuf<TPosition::A2> leftBuffer;
TBuf<TPosition::B2> rightBuffer;
TBuf<TPosition::CO1> resultBuffer;
GlobalTensor<TYPE> qGlobal;
GlobalTensor<TYPE> kGlobal;
GlobalTensor<TYPE> vGlobal;
GlobalTensor<float> scoresGlobal;
GlobalTensor<TYPE> weightsGlobal;
GlobalTensor<float> sumsGlobal;
uint32_t depth = 0;
uint32_t valueColumns = 0;
int32_t query = 0;
int32_t half1 = 0;
int32_t half2 = 0;
int32_t stage = 0;
int32_t part = 0;
};

"""
