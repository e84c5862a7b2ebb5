"""A product of matrices of 16 or 8 bits on cube cores, block by block, as Ascend C."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from opkit.dtypes import find_dtype

from ...ir import Location
from ..kernel_class import struct_of
from ..text import Text, identifier, upper
from .cutting import CHUNK_BYTES, MOST_SIDE, STEP_BYTES

__all__ = [
    "BEGUN",
    "FREE",
    "READY",
    "SLOTS",
    "BlockProduct",
    "write_blocks",
    "write_cube_class",
]

SLOTS = 4
"""Parts of blocks that a cube core hands over before it waits for its vector cores."""


@dataclass(frozen=True)
class BlockProduct:
    """What one kernel multiplies; the names are data types."""

    name: str
    dtype: str
    """Data type of both matrices: `float16`, `bfloat16` or `int8`."""
    result: str
    """Data type of the result in global memory."""
    transpose_left: bool
    """The left matrices lie by columns."""
    transpose_right: bool
    location: Location | None = None
    bias: str | None = None
    """Data type of the bias: one number a column, with which the sums begin."""

    @property
    def stem(self) -> str:
        """What the names of its classes begin with."""
        return upper(identifier(self.name))

    @property
    def struct(self) -> str:
        """The tiling structure's name."""
        return struct_of(self.name)

    @property
    def cube_class(self) -> str:
        """The name of the cube cores' class."""
        return f"Kernel{self.stem}Cube"

    @property
    def operand(self) -> str:
        """The matrices' type in C++."""
        return cpp(self.dtype)

    @property
    def is_blocked(self) -> bool:
        """Whether its blocks are multiplied here, not by a Matmul object: matrices of 16 bits, and
        of 8 where both lie along K, as such fractals cannot be turned on their way."""
        if self.dtype == "int8":
            return not self.transpose_left and self.transpose_right
        return self.dtype in ("float16", "bfloat16")

    @property
    def sums(self) -> str:
        """The data type in which the cube adds up."""
        return "int32" if self.dtype == "int8" else "float32"

    @property
    def lane(self) -> int:
        """Elements of 32 bytes, which is how wide a fractal of an operand is."""
        return 32 // size_bytes(self.dtype)

    @property
    def chunk(self) -> int:
        """Elements of K that a copy to L1 brings."""
        return CHUNK_BYTES // size_bytes(self.dtype)

    @property
    def step(self) -> int:
        """Elements of K that one Mmad multiplies at least."""
        return STEP_BYTES // size_bytes(self.dtype)


def cpp(dtype: str) -> str:
    """Return a data type's name in kernels."""
    row = find_dtype(dtype)
    assert row is not None
    return row.kernel


def size_bytes(dtype: str) -> int:
    """Return the bytes of an element."""
    row = find_dtype(dtype)
    assert row is not None
    return row.size_bytes


def write_blocks(
    declaration: Text,
    out: Text,
    product: BlockProduct,
    members: Sequence[tuple[str, str, str]],
    *,
    hands_over: bool,
) -> None:
    """Write the tiling structure, and the class that all kinds of cores know the blocks by.

    Args:
        declaration: where the structure goes.
        out: where the class goes.
        product: what is multiplied.
        members: all of the structure's: name, type and note.
        hands_over: vector cores finish the parts.
    """
    declaration(f"// How {product.name} is cut into blocks: written by the host for each launch.")
    declaration(f"struct {product.struct} {{")
    for name, kind, note in members:
        declaration(f"{kind} {name};{f'  // {note}' if note else ''}")
    declaration("};")
    note, end = _HANDED_ENDS if hands_over else _STORED_ENDS
    text = _BLOCKS.replace("STRUCT", product.struct).replace("@ends", note).replace("@end", end)
    out.all(text.strip().splitlines())
    out()


def write_cube_class(out: Text, product: BlockProduct, slots: int = 0) -> None:
    """Write the cube cores' class.

    Args:
        out: where to.
        product: what is multiplied.
        slots: parts of blocks that a core hands over to its vector cores before it waits for the first
            of them; 0 for a kernel whose results go to global memory at once.
    """
    words = {
        "CLASS": product.cube_class,
        "STRUCT": product.struct,
        "TYPE": product.operand,
        "RESULT": cpp(product.sums if slots else product.result),
        "SUMS": cpp(product.sums),
        # Nothing but zeros is written with it, which all types of its size share.
        "ZEROS": "half" if product.dtype == "int8" else product.operand,
        "CHUNK": str(product.chunk),
        "STEP": str(product.step),
        "LONGEST": str(MOST_SIDE),
        "LANE": str(product.lane),
        "GIVEN": "" if product.bias is None else "GM_ADDR bias, ",
    }
    if product.bias is not None:
        words |= {"BIAS": cpp(product.bias), "READ": str(64 // size_bytes(product.bias))}
    text = _CUBE.replace("@copy\n", _COPY_PORTION if slots else _COPY)
    for line in text.strip().splitlines():
        line = line.strip()
        if line.startswith("@bias"):
            line = line.removeprefix("@bias").strip()
            if product.bias is None:
                continue
        if line.startswith("@"):
            _insert(out, line[1:], product, slots)
            continue
        for word, text in words.items():
            line = line.replace(word, text)
        is_work = line.startswith(("Mmad(", "LoadData("))
        out(line, product.location if is_work else None)


def _insert(out: Text, what: str, product: BlockProduct, slots: int) -> None:
    place = product.location
    if what == "left" or what == "right":
        turned = product.transpose_left if what == "left" else product.transpose_right
        side = "rows" if what == "left" else "columns"
        first = "row" if what == "left" else "column"
        extent = "m" if what == "left" else "n"
        batch = f"chunk.block.batch * tiling.batch{what.title()}"
        if (what == "left") == turned:
            at = f"{batch} + chunk.k * tiling.{extent} + chunk.block.{first}"
            shape = f"chunk.depth, chunk.block.{side}, tiling.{extent}"
        else:
            at = f"{batch} + chunk.block.{first} * tiling.k + chunk.k"
            shape = f"chunk.block.{side}, chunk.depth, tiling.k"
        share = "place, chunk.block.wide" if what == "left" else "above, chunk.block.down"
        share += ", portion" if slots else ""
        out(
            f"Copy({what.title()}Chunk(slot), {what}Global[{at}], {shape}, chunk.block.{share});",
            place,
        )
    elif what == "loads":
        lane = product.lane
        for side, first, count, gap in (
            ("left", "0", "rows / 16", f"length / {lane} - 1"),
            ("right", "begin / 16", "(end - begin) / 16", "0"),
        ):
            turned = product.transpose_left if side == "left" else product.transpose_right
            by_depth = (side == "left") == turned
            # Fractals of L1 lie down the rows that were copied, column of 16 after column.
            if by_depth:
                stride, at = "depth / 16", f"(({first}) * depth / 16 + k / 16 + i) * 256"
            else:
                extent = "rows" if side == "left" else "RoundUp(chunk.block.columns)"
                stride, at = "1", f"((k / {lane} + i) * {extent} / 16 + {first}) * {16 * lane}"
            is_turned = "true" if by_depth else "false"
            step = f"i * {16 * lane}" if side == "left" else f"i * (end - begin) * {lane}"
            if side == "left":
                out("if (!isThere) {")
            out(
                f"LoadData({side}Step[{step}], {side}L1[{at}],"
                f" LoadData2DParams(0, {count}, {stride}, 0, {gap}, {is_turned}, 0));",
                place,
            )
            if side == "left":
                out("}")
    elif what == "multiply":
        out("const uint8_t unitFlag = chunk.isLast && k + most >= chunk.depth ? 3 : 2;")
        begins = "chunk.isFirst && k == 0" if product.bias is None else "false"
        out(f"const MmadParams shape(realRows, realColumns, real, unitFlag, false, {begins});")
        call = "Mmad(sums, leftStep, rightStep, shape);"
        if product.bias is None:
            out(call, place)
        else:
            out("if (isBegin) {")
            out("Mmad(sums, leftStep, rightStep, table, shape);", place)
            out("} else {")
            out(call, place)
            out("}")
    elif what == "store":
        lines = _HAND_OVER if slots else _STORE
        mode = {"float16": "F322F16", "bfloat16": "F322BF16"}.get(product.result, "NoQuant")
        for line in lines.strip().splitlines():
            text = line.strip().replace("MODE", mode).replace("SUMS", cpp(product.sums))
            text = (
                text.replace("SLOTS", str(slots))
                .replace("FREE", str(FREE))
                .replace("READY", str(READY))
            )
            out(text, place if text.startswith("Fixpipe(") else None)
    elif what == "shift" and slots:
        out(
            "// Cores that have rows or columns in common begin with other chunks, so that few read the"
        )
        out(
            "// same lines in step; at the beginning with the first, which vector cores fetch first, too."
        )
        by = "(chunk.block.above + chunk.block.place) % all"
        out("const bool isEarly = index == core;")
        out(f"const int64_t shift = isEarly ? 0 : {by};")
    elif what == "shift":
        out("// Of the cores that have rows or columns in common half begin")
        out("// in the middle of K, so that fewer read the same lines in step.")
        by = "% 2 * (all / 2)"
        out(f"const int64_t shift = (core / chunk.block.wide + chunk.block.place) {by};")
    elif what == "turned" and slots:
        out(
            "// Of those that begin with the first every other takes the third and later ones in pairs, turned round."
        )
        out("const bool isTurned = isEarly && number >= 2 && (number | 1) < all;")
        out("const int64_t other = isTurned ? (chunk.block.above + chunk.block.place) % 2 : 0;")
        out(f"chunk.k = ((number ^ other) + shift) % all * {product.chunk};")
    elif what == "turned":
        out(f"chunk.k = (number + shift) % all * {product.chunk};")
    elif what == "copies":
        if slots:
            out("// As long as nothing is in L2 a core brings its shares of both operands first,")
            out("// and what others bring after them.")
            out("const bool isEarly = chunk.index == core && chunk.turn < 2;")
            out("const uint32_t last = isEarly ? OTHERS : ALL;")
            out("for (uint32_t portion = isEarly ? SHARE : ALL; portion <= last; ++portion) {")
        _insert(out, "left", product, slots)
        if slots:
            out("if (portion == SHARE && chunk.turn == 0) {")
            out(
                "// Memory is the cube cores' alone until they have their shares: until vector cores hear of this."
            )
            out(f"CrossCoreSetFlag<2, PIPE_MTE2>({BEGUN});")
            out("}")
        _insert(out, "right", product, slots)
        if slots:
            out("}")
    elif what == "drain":
        if slots:
            out("// The vector cores have read what was handed over last.")
            out(f"for (uint32_t i = handed < {slots} ? 0 : handed - {slots}; i < handed; ++i) {{")
            out(f"CrossCoreWaitFlag<2, PIPE_FIX>({FREE});")
            out("}")
    elif what == "results" and slots:
        out("uint32_t handed = 0;")
        out(
            "static constexpr uint32_t SHARE = 0;  // of what is copied, what other cores leave to this one"
        )
        out("static constexpr uint32_t OTHERS = 1;")
        out("static constexpr uint32_t ALL = 2;")


READY, FREE, BEGUN = 4, 5, 6
"""Flags between a cube core and its vector cores: a part lies in its slot; a slot may be used
again; the first share of a chunk has come."""

_BLOCKS = """
// A part of the result that one core computes.
struct Block {
int64_t batch;
int64_t row;
int64_t column;
uint32_t rows;
uint32_t columns;
uint32_t place;  // among the blocks of its row in the band
uint32_t wide;  // blocks of its row in the band
uint32_t above;  // cores that work above it at the same time
uint32_t down;  // cores that work in its column at the same time, at most
};

// Blocks lie in bands of some columns: cores that work at the same time share rows and columns of the operands.
class Blocks {
protected:
__aicore__ inline Block BlockAt(int64_t index) const
{
const int64_t inBatch = index % (tiling.blocksM * tiling.blocksN);
const int64_t first = inBatch / (tiling.blocksM * tiling.band) * tiling.band;
const int64_t rest = inBatch - first * tiling.blocksM;
const int64_t wide = tiling.blocksN - first < tiling.band ? tiling.blocksN - first : tiling.band;
const int64_t i = rest / wide;
const int64_t j = first + rest % wide;
Block block;
block.place = rest % wide;
block.wide = wide;
block.above = index % cores / wide;
block.down = (cores + wide - 1) / wide;
block.batch = index / (tiling.blocksM * tiling.blocksN);
block.row = i * tiling.rowsEach + (i < tiling.rowsMore ? i : tiling.rowsMore) * 16;
block.column = j * tiling.columnsEach + (j < tiling.columnsMore ? j : tiling.columnsMore) * 16;
block.rows = Shorter(tiling.m - block.row, tiling.rowsEach + (i < tiling.rowsMore ? 16 : 0));
block.columns = Shorter(tiling.n - block.column, tiling.columnsEach + (j < tiling.columnsMore ? 16 : 0));
return block;
}

// The columns of a block's first part, about half: it is carried out while the other multiplies.
__aicore__ inline uint32_t PartOf(uint32_t columns) const
{
return (columns + 31) / 32 * 16;
}

// Where the part of a block ends that begins at a column. Of a core's final block
@ends
__aicore__ inline uint32_t PartEnd(uint32_t begin, uint32_t columns, bool isFinal) const
{
const uint32_t half = PartOf(columns);
const uint32_t quarter = half < 32 ? 16 : half / 32 * 16;
@end
return end < columns ? end : columns;
}

__aicore__ inline bool IsFinal(int64_t index) const
{
return index + cores >= tiling.blocks;
}

__aicore__ inline uint32_t Shorter(int64_t left, int64_t right) const
{
return static_cast<uint32_t>(left < right ? left : right);
}

STRUCT tiling;
int64_t cores = GetBlockNum();  // that share the blocks
};
"""

_HANDED_ENDS = (
    "// the first parts are shorter: vector cores begin sooner with what they have to do when the cube is through.",
    "const uint32_t end = isFinal && begin == 0 ? quarter : begin < half ? half : columns;",
)
_STORED_ENDS = (
    "// the last parts are shorter: little is carried out when the cube is through.",
    "const uint32_t end = begin < half ? half : isFinal && begin == half ? half + quarter : columns;",
)

_CUBE = """
// A cube core's blocks, one after another: chunks of K come to L1, and in steps to L0, while the one before multiplies.
class CLASS : Blocks {
public:
__aicore__ inline void Init(GM_ADDR left, GM_ADDR right, GIVENGM_ADDR result, const STRUCT& given)
{
tiling = given;
leftGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ TYPE*>(left));
rightGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ TYPE*>(right));
@bias biasGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ BIAS*>(bias));
resultGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ RESULT*>(result));
mostRows = tiling.rowsEach + (tiling.rowsMore > 0 ? 16 : 0);
mostColumns = tiling.columnsEach + (tiling.columnsMore > 0 ? 16 : 0);
pipe.InitBuffer(leftBuffer, 2 * mostRows * CHUNK * sizeof(TYPE));
pipe.InitBuffer(rightBuffer, 2 * mostColumns * CHUNK * sizeof(TYPE));
pipe.InitBuffer(leftSteps, 2 * HALF * sizeof(TYPE));
pipe.InitBuffer(rightSteps, 2 * HALF * sizeof(TYPE));
pipe.InitBuffer(sumsBuffer, mostRows * mostColumns * sizeof(SUMS));
@bias pipe.InitBuffer(biasBuffer, 2 * LONGEST * sizeof(BIAS));
@bias pipe.InitBuffer(biasTable, LONGEST * sizeof(float));
if (tiling.m % 16 == 1) {
// A single row is multiplied with the one below it.
const LocalTensor<ZEROS> all = leftBuffer.Get<ZEROS>();
InitConstValue(all, InitConstValueParams<ZEROS>(1, 2 * mostRows * CHUNK * sizeof(TYPE) / 32, 0, 0));
SetFlag<HardEvent::MTE2_MTE1>(2);
WaitFlag<HardEvent::MTE2_MTE1>(2);
}
}

__aicore__ inline void Process()
{
Chunk chunk = ChunkAt(core, 0);
if (chunk.index >= tiling.blocks) {
return;
}
for (int32_t i = 0; i < 2; ++i) {
SetFlag<HardEvent::MTE1_MTE2>(i);
SetFlag<HardEvent::M_MTE1>(i);
}
CopyIn(chunk, 0);
for (uint32_t slot = 0; chunk.index < tiling.blocks; slot = 1 - slot) {
const Chunk next = chunk.isLast ? ChunkAt(chunk.index + cores, 0) : ChunkAt(chunk.index, chunk.turn + 1);
if (next.index < tiling.blocks) {
CopyIn(next, 1 - slot);
}
Multiply(chunk, slot);
chunk = next;
}
for (int32_t i = 0; i < 2; ++i) {
WaitFlag<HardEvent::MTE1_MTE2>(i);
WaitFlag<HardEvent::M_MTE1>(i);
}
@drain
}

private:
// Some of a block's products: those of `depth` elements of K.
struct Chunk {
int64_t index;
Block block;
int64_t turn;  // how many chunks of the block come before
int64_t k;
uint32_t depth;
bool isFirst;
bool isLast;
};

__aicore__ inline Chunk ChunkAt(int64_t index, int64_t turn) const
{
Chunk chunk;
chunk.index = index;
chunk.turn = turn;
if (index >= tiling.blocks) {
return chunk;
}
chunk.block = BlockAt(index);
const int64_t all = (tiling.k + CHUNK - 1) / CHUNK;
@shift
// The first chunk of all comes in halves, so that the cube has something to do soon.
const bool isSplit = index == core && (shift + 1) * CHUNK <= tiling.k;
const int64_t number = isSplit && turn > 0 ? turn - 1 : turn;
@turned
chunk.depth = Shorter(tiling.k - chunk.k, CHUNK);
if (isSplit && turn < 2) {
chunk.k += turn * (CHUNK / 2);
chunk.depth = CHUNK / 2;
}
chunk.isFirst = turn == 0;
chunk.isLast = number == all - 1 && !(isSplit && turn == 0);
return chunk;
}

__aicore__ inline void CopyIn(const Chunk& chunk, uint32_t slot)
{
WaitFlag<HardEvent::MTE1_MTE2>(slot);
@copies
@bias if (chunk.isFirst) {
@bias const uint32_t columns = chunk.block.columns;
@bias DataCopy(BiasChunk(slot), biasGlobal[chunk.block.column], Nd2NzParams(1, 1, columns, 0, columns, 1, 1, 0));
@bias }
SetFlag<HardEvent::MTE2_MTE1>(slot);
}

// Columns of 32 bytes one behind the other, each of a multiple of 16 rows. Each of the cores that need the same rows
// begins with its share of them, so that all bring some of them from memory, and find the others in L2.
@copy

__aicore__ inline void CopyRows(const LocalTensor<TYPE>& to, const GlobalTensor<TYPE>& from, uint32_t begin, uint32_t end,
uint32_t columns, int64_t stride, uint16_t height)
{
if (begin == end) {
return;
}
if (stride <= 65535) {
DataCopy(to[begin * LANE], from[begin * stride], Nd2NzParams(1, end - begin, columns, 0, stride, height, 1, 0));
return;
}
// The instruction cannot say so long a way from row to row.
for (uint32_t row = begin; row < end; ++row) {
DataCopy(to[row * LANE], from[row * stride], Nd2NzParams(1, 1, columns, 0, columns, height, 1, 0));
}
}

__aicore__ inline void Multiply(const Chunk& chunk, uint32_t slot)
{
WaitFlag<HardEvent::MTE2_MTE1>(slot);
const uint32_t columns = RoundUp(chunk.block.columns);
// At both ends of its sums a block comes in parts: one is carried out while the next multiplies.
const bool isWhole = !chunk.isFirst && !chunk.isLast;
for (uint32_t begin = 0; begin < columns;) {
const uint32_t end = isWhole ? columns : PartEnd(begin, columns, chunk.isLast && IsFinal(chunk.index));
Part(chunk, slot, begin, end);
if (chunk.isLast) {
CopyOut(chunk.block, begin, end < chunk.block.columns ? end : chunk.block.columns);
}
begin = end;
}
SetFlag<HardEvent::MTE1_MTE2>(slot);
}

// The elements of K that one Mmad multiplies: as many as half of L0A and of L0B hold, and of a chunk equal shares.
__aicore__ inline uint32_t StepOf(uint32_t rows, uint32_t columns) const
{
const uint32_t longest = HALF / (rows > columns ? rows : columns) / LANE * LANE;
const uint32_t count = (CHUNK + longest - 1) / longest;
return ((CHUNK + count - 1) / count + LANE - 1) / LANE * LANE;
}

// A block's sums: those of its first part end where those of all blocks' first parts do, so that no block writes
// where the second part of the one before is still being carried out.
__aicore__ inline LocalTensor<SUMS> SumsOf(const Block& block, uint32_t begin)
{
const uint32_t rows = RoundUp(block.rows);
return sumsBuffer.Get<SUMS>()[PartOf(mostColumns) * mostRows - PartOf(block.columns) * rows + begin * rows];
}

__aicore__ inline void Part(const Chunk& chunk, uint32_t slot, uint32_t begin, uint32_t end)
{
const uint32_t rows = RoundUp(chunk.block.rows);
const uint32_t depth = (chunk.depth + LANE - 1) / LANE * LANE;
// A product of one row would be a vector's, which lies otherwise in L0A.
const uint32_t realRows = chunk.block.rows == 1 ? 2 : chunk.block.rows;
const uint32_t realColumns = (end < chunk.block.columns ? end : chunk.block.columns) - begin;
const LocalTensor<TYPE> leftL1 = LeftChunk(slot);
const LocalTensor<TYPE> rightL1 = RightChunk(slot);
const LocalTensor<SUMS> sums = SumsOf(chunk.block, begin);
const uint32_t part = PartOf(chunk.block.columns);
const uint32_t most = StepOf(rows, end - begin > part ? end - begin : part);
// Two steps fill L0A with the rows of the whole chunk, which the next part multiplies, too.
const bool isThere = begin > 0 && depth > most && depth <= 2 * most;
for (uint32_t k = 0; k < chunk.depth; k += most) {
const uint32_t length = depth - k < most ? depth - k : most;
const LocalTensor<TYPE> leftStep = leftSteps.Get<TYPE>()[step * HALF];
const LocalTensor<TYPE> rightStep = rightSteps.Get<TYPE>()[step * HALF];
WaitFlag<HardEvent::M_MTE1>(step);
@bias // The sums begin with a number for each column; a part has one step at least, and each of the two its place.
@bias const bool isBegin = chunk.isFirst && k == 0;
@bias const LocalTensor<float> table = biasTable.Get<float>()[step * LONGEST / 2];
@bias if (isBegin) {
@bias const uint16_t count = (end - begin + READ - 1) / READ;
@bias DataCopy(table, BiasChunk(slot)[begin], DataCopyParams(1, count, 0, 0));
@bias }
for (uint32_t i = 0; i < length / LANE; ++i) {
@loads
}
SetFlag<HardEvent::MTE1_M>(step);
WaitFlag<HardEvent::MTE1_M>(step);
const uint32_t real = chunk.depth - k < length ? chunk.depth - k : length;
@multiply
if (rows * (end - begin) < 2560) {
// So short a product has not written its sums when the next one reads them.
PipeBarrier<PIPE_M>();
}
SetFlag<HardEvent::M_MTE1>(step);
step = 1 - step;
}
}

@store

__aicore__ inline LocalTensor<TYPE> LeftChunk(uint32_t slot)
{
return leftBuffer.Get<TYPE>()[slot * mostRows * CHUNK];
}

__aicore__ inline LocalTensor<TYPE> RightChunk(uint32_t slot)
{
return rightBuffer.Get<TYPE>()[slot * mostColumns * CHUNK];
}

@bias __aicore__ inline LocalTensor<BIAS> BiasChunk(uint32_t slot)
@bias {
@bias return biasBuffer.Get<BIAS>()[slot * LONGEST];
@bias }
@bias
__aicore__ inline uint32_t RoundUp(uint32_t count) const
{
return (count + 15) / 16 * 16;
}

static constexpr uint32_t HALF = LONGEST * STEP;  // elements of half of L0A, and of L0B
TPipe pipe;
TBuf<TPosition::A1> leftBuffer;
TBuf<TPosition::B1> rightBuffer;
TBuf<TPosition::A2> leftSteps;
TBuf<TPosition::B2> rightSteps;
TBuf<TPosition::CO1> sumsBuffer;
@bias TBuf<TPosition::C1> biasBuffer;
@bias TBuf<TPosition::C2> biasTable;
@bias GlobalTensor<BIAS> biasGlobal;
GlobalTensor<TYPE> leftGlobal;
GlobalTensor<TYPE> rightGlobal;
GlobalTensor<RESULT> resultGlobal;
int64_t core = GetBlockIdx();
uint32_t mostRows = 0;
uint32_t mostColumns = 0;
uint32_t step = 0;
@results
};
"""

_COPY = """
__aicore__ inline void Copy(const LocalTensor<TYPE>& to, const GlobalTensor<TYPE>& from, uint32_t rows, uint32_t columns,
int64_t stride, uint32_t place, uint32_t shares)
{
const uint32_t begin = rows * place / shares / 16 * 16;
CopyRows(to, from, begin, rows, columns, stride, RoundUp(rows));
CopyRows(to, from, 0, begin, columns, stride, RoundUp(rows));
}
"""

_COPY_PORTION = """
__aicore__ inline void Copy(const LocalTensor<TYPE>& to, const GlobalTensor<TYPE>& from, uint32_t rows, uint32_t columns,
int64_t stride, uint32_t place, uint32_t shares, uint32_t portion)
{
const uint32_t begin = rows * place / shares / 16 * 16;
const uint32_t end = portion == ALL || place + 1 >= shares ? rows : rows * (place + 1) / shares / 16 * 16;
if (portion != OTHERS) {
CopyRows(to, from, begin, end, columns, stride, RoundUp(rows));
}
if (portion != SHARE) {
CopyRows(to, from, end, rows, columns, stride, RoundUp(rows));
CopyRows(to, from, 0, begin, columns, stride, RoundUp(rows));
}
}
"""

_STORE = """
__aicore__ inline void CopyOut(const Block& block, uint32_t begin, uint32_t end)
{
const LocalTensor<SUMS> sums = SumsOf(block, begin);
const int64_t at = (block.batch * tiling.m + block.row) * tiling.n + block.column + begin;
FixpipeParamsV220 params(end - begin, block.rows, RoundUp(block.rows), tiling.n, false);
params.quantPre = QuantMode_t::MODE;
params.unitFlag = 3;
Fixpipe(resultGlobal[at], sums, params);
}
"""

_HAND_OVER = """
// The vector cores of this block get a part as soon as it is there, and say when they have read it.
__aicore__ inline void CopyOut(const Block& block, uint32_t begin, uint32_t end)
{
const LocalTensor<SUMS> sums = SumsOf(block, begin);
if (handed >= SLOTS) {
CrossCoreWaitFlag<2, PIPE_FIX>(FREE);
}
const int64_t slot = core * SLOTS + handed % SLOTS;
FixpipeParamsV220 params(end - begin, block.rows, RoundUp(block.rows), tiling.slotColumns, false);
params.unitFlag = 3;
Fixpipe(resultGlobal[slot * tiling.slotLength], sums, params);
CrossCoreSetFlag<2, PIPE_FIX>(READY);
++handed;
}
"""
