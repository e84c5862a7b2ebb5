"""The kernel that puts elements, or rows, at the places that indices name: each core has a part of
the result, looks through the indices for those within, and joins what they name to it in order."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from opkit.chips import DATA_BLOCK_BYTES, Chip

from ...ir import Location
from ..core_count import fair_cores
from ..kernel_class import KernelClass, TilingValue, class_of, struct_of
from ..text import Text
from .tiles import COPY_IN, ORDER, OWN_UNITS, SPLIT, filled

__all__ = ["PLACED_TYPES", "Placing", "placing_of", "placing_values", "write_placing"]

_BLOCK_ELEMENTS = 12288
"""Elements of the result that a core has at once."""
_TILE = 2048
"""Indices that a core looks through at once."""
_ROOM_BYTES = 16384
"""Of rows that are joined to the result at once."""
_LANE_BITS = 11
_ELEMENT_CYCLES, _ROW_CYCLES = 40, 100
"""Cycles of a core for an element, which the scalar unit joins, and for a row, beside its bytes."""
_MOST_PLACES = 1 << 24
"""Places that floats hold."""
_RAW = {1: "uint8_t", 2: "uint16_t", 4: "uint32_t"}
PLACED_TYPES = {
    "float32": "float",
    "float16": "half",
    "bfloat16": "bfloat16_t",
    "int32": "int32_t",
}
"""Types whose elements are joined, as C++ writes them; any are put."""
_JOINS = {
    "put": ("value", "DataCopy(to, from, count);"),
    "add": ("old + value", "Add(to, to, from, count);"),
    "multiply": ("old * value", "Mul(to, to, from, count);"),
    "max": ("old > value || old != old ? old : value", "Max(to, to, from, count);"),
    "min": ("old < value || old != old ? old : value", "Min(to, to, from, count);"),
}
"""What becomes of an element and what is put there: of the scalar unit, and of rows."""


@dataclass(frozen=True)
class Placing:
    """A put whose indices, elements and result lie as (outer, along the axis, inner)."""

    outer: int
    places: int
    inner: int
    count: int
    """Indices along the axis."""
    is_shared: bool
    """All of `outer` have the same indices."""
    has_rows: bool
    """An index is for all of `inner`."""


def placing_of(
    table: Sequence[Any], index: Sequence[Any], source: Sequence[Any], axis: int, dtype: str
) -> Placing | None:
    """Return how elements are put; None where the kernel does not fit the shapes.

    Args:
        table: its shape.
        index: the shape of the indices, which may have one element where the source has more.
        source: the shape of what is put.
        axis: that the indices lie along.
        dtype: of the elements.
    """
    if not all(isinstance(extent, int) for extent in (*table, *index, *source)):
        return None
    if (*table[:axis], *table[axis + 1 :]) != (*source[:axis], *source[axis + 1 :]):
        return None
    outer, inner = math.prod(table[:axis]), math.prod(table[axis + 1 :])
    around = math.prod(index[:axis]), math.prod(index[axis + 1 :])
    if around[0] not in (1, outer) or around[1] not in (1, inner) or index[axis] != source[axis]:
        return None
    has_rows = inner > 1 and around[1] == 1
    if (
        not 0 < table[axis] < _MOST_PLACES
        or not (has_rows or inner <= _TILE)
        or not math.prod(source)
    ):
        return None
    return Placing(outer, table[axis], inner, source[axis], around[0] == 1 and outer > 1, has_rows)


def placing_values(
    placing: Placing, size_bytes: int, cores: int, chip: Chip
) -> tuple[int, list[TilingValue]]:
    """Return the cores and the tiling data of a launch.

    Args:
        size_bytes: Bytes per element.
        cores: that the chip has.
    """
    block = DATA_BLOCK_BYTES // size_bytes
    group, span = placing.places * placing.inner, placing.count * placing.inner
    width, pitch, across = 1, 1, 1
    if placing.has_rows:
        # A core has some columns, so many that a row is worth its copy.
        group, span = placing.places, placing.count
        width = min(placing.inner, _ROOM_BYTES // 4)
        across = -(-placing.inner // width)
        pitch = -(-width // block) * block
        wide = -(-width * size_bytes // 37)
        cycles: float = (_ROW_CYCLES + wide) / placing.inner
    else:
        cycles = _ELEMENT_CYCLES
    worth: int = fair_cores(
        *(chip, placing.outer * placing.count * placing.inner, cores),
        vector_cycles=cycles,
        read_bytes=2 * size_bytes,
        written_bytes=size_bytes,
    )
    # A copy takes 4095 rows at most.
    most = min(_BLOCK_ELEMENTS // pitch, 4095 if placing.has_rows else _BLOCK_ELEMENTS)
    together, part, parts = 1, group, 1
    if group > most or placing.outer * across < worth:
        # Some places of a line are a core's.
        parts = max(-(-worth // (placing.outer * across)), -(-group // most))
        unit = 1 if placing.has_rows else block
        part = min(most, -(-group // (parts * unit)) * unit)
        parts = -(-group // part)
    elif not placing.is_shared and not placing.has_rows:
        together = max(1, min(most // group, -(-placing.outer // worth)))
    units = -(-placing.outer // together) * parts * across
    used = -(-units // -(-units // min(cores, max(worth, 1), units)))
    step = _TILE // span * span if span <= _TILE else _TILE // placing.inner * placing.inner
    if placing.has_rows or placing.is_shared:
        step = min(span, _TILE)
    values = {
        "perBlock": units // used,
        "extra": units % used,
        "outer": placing.outer,
        "places": placing.places,
        "inner": placing.inner,
        "count": placing.count,
        "isShared": placing.is_shared,
        "group": group,
        "span": span,
        "together": together,
        "part": part,
        "parts": parts,
        "width": width,
        "across": across,
        "pitch": pitch,
        "step": step,
    }
    return used, [TilingValue(name, "int64_t", int(value)) for name, value in values.items()]


def write_placing(
    name: str,
    join: str,
    dtype: str,
    size_bytes: int,
    *,
    has_rows: bool,
    location: Location | None = None,
) -> KernelClass:
    """Return a kernel of `y = x` with elements of `source` joined where `index` says, as the
    user's line asks for.

    Args:
        join: one of `_JOINS`.
        dtype: of the elements: float32, float16, bfloat16 or int32; any where elements are put.
        has_rows: an index is for a row of elements.
    """
    struct_name, class_name = struct_of(name), class_of(name)
    stored = _RAW[size_bytes] if join == "put" else PLACED_TYPES[dtype]
    computed = stored if join == "put" or size_bytes == 4 else "float"
    scalar, vector = _JOINS[join]
    declaration = Text()
    declaration.all(
        [
            f"struct {struct_name} {{",
            "int64_t perBlock;  // parts of every core",
            "int64_t extra;  // the first cores take one more",
            "int64_t outer;  // lines, each with places of its own",
            "int64_t places;  // of a line",
            "int64_t inner;  // elements of a place",
            "int64_t count;  // indices of a line, for each of the inner elements",
            "int64_t isShared;  // all lines have the same indices",
            "int64_t group;  // places of a line, in all",
            "int64_t span;  // indices of a line, in all",
            "int64_t together;  // lines of a part",
            "int64_t part;  // places of a part of a line",
            "int64_t parts;  // of a line",
            "int64_t width;  // elements of a row",
            "int64_t across;  // rows side by side",
            "int64_t pitch;  // elements from row to row in a core",
            "int64_t step;  // indices of a tile",
            "};",
        ]
    )
    words = {
        "PROCESS": _ROWS if has_rows else _ELEMENTS,
        "WIDEN": "return raw;" if stored == computed else _WIDEN.strip(),
        "MOVE_BLOCK": "MoveRows(block, at, rows, length, step, pitch, isOut);"
        if stored == computed
        else _MOVE_CAST.strip(),
        "SAME": "true" if stored == computed else "false",
        "ROWS": "true" if has_rows else "false",
        "VECTOR": vector,
        "JOIN_ELEMENT": "block.SetValue(at, value);"
        if join == "put"
        else f"const COMPUTED old = block.GetValue(at);\nblock.SetValue(at, {scalar});",
        "STORED": stored,
        "COMPUTED": computed,
        "CLASS": class_name,
        "STRUCT": struct_name,
        "ROOM": str(_ROOM_BYTES),
        "BLOCK_ELEMENTS": str(_BLOCK_ELEMENTS),
        "BITS": str(_LANE_BITS),
        "TILE": str(_TILE),
        "BLOCK": str(DATA_BLOCK_BYTES // size_bytes),
        "TYPE": stored,
    }
    out = filled(_KERNEL, words)
    out.mark(location, "DataCopyPad(")
    return KernelClass(
        name, class_name, struct_name, declaration, out, ("x", "index", "source", "y")
    )


_ELEMENTS = """
// Elements go one by one, as they follow each other.
__aicore__ inline void JoinTile(int64_t from, int32_t count, uint32_t found)
{
LocalTensor<STORED> raw = sourceQueue.DeQue<STORED>();
LocalTensor<COMPUTED> values = Widened(raw, count);
Order<HardEvent::V_S>();
const LocalTensor<COMPUTED> block = blockBuffer.Get<COMPUTED>();
const LocalTensor<uint64_t> hits = hitBuffer.Get<uint64_t>();
for (uint32_t i = 0; i < found; i += 2) {
const uint64_t pair = hits.GetValue(i / 2);
JoinOne(block, values, static_cast<uint32_t>(pair));
if (i + 1 < found) {
JoinOne(block, values, static_cast<uint32_t>(pair >> 32));
}
}
Order<HardEvent::S_V>();
sourceQueue.FreeTensor(raw);
}

__aicore__ inline void JoinOne(const LocalTensor<COMPUTED>& block, const LocalTensor<COMPUTED>& values, uint32_t hit)
{
const uint32_t at = hit >> BITS;
const COMPUTED value = values.GetValue(hit & (TILE - 1));
JOIN_ELEMENT
}

__aicore__ inline void BeginTile(int64_t from, int32_t count)
{
LocalTensor<STORED> raw = sourceQueue.AllocTensor<STORED>();
CopyRow(raw, sourceGlobal[from], count);
sourceQueue.EnQue(raw);
}
"""
_ROWS = """
// Rows are copied in, some at a time, the next while some are joined.
__aicore__ inline void JoinTile(int64_t from, int32_t count, uint32_t found)
{
Order<HardEvent::V_S>();
const uint32_t some = static_cast<uint32_t>(Less(ROOM / (tiling.pitch * sizeof(COMPUTED)), 64));
for (uint32_t i = 0; i < found; i += some) {
if (i == 0) {
FetchRows(from, 0, Fewer(found, some));
}
if (i + some < found) {
FetchRows(from, i + some, Fewer(found - i - some, some));
}
const uint32_t rows = Fewer(found - i, some);
const LocalTensor<STORED> raw = sourceQueue.DeQue<STORED>();
const LocalTensor<COMPUTED> values = Widened(raw, static_cast<int32_t>(rows * tiling.pitch));
for (uint32_t row = 0; row < rows; ++row) {
const uint32_t at = hitBuffer.Get<uint32_t>().GetValue(i + row) >> BITS;
JoinRow(blockBuffer.Get<COMPUTED>()[at * tiling.pitch], values[row * tiling.pitch]);
PipeBarrier<PIPE_V>();
}
sourceQueue.FreeTensor(raw);
}
Order<HardEvent::S_V>();
}

__aicore__ inline void FetchRows(int64_t from, uint32_t first, uint32_t rows)
{
LocalTensor<STORED> raw = sourceQueue.AllocTensor<STORED>();
for (uint32_t row = 0; row < rows; ++row) {
const uint32_t lane = hitBuffer.Get<uint32_t>().GetValue(first + row) & (TILE - 1);
CopyRow(raw[row * tiling.pitch], sourceGlobal[(from + lane) * tiling.inner + column], columns);
}
sourceQueue.EnQue(raw);
}

__aicore__ inline void JoinRow(const LocalTensor<COMPUTED>& to, const LocalTensor<COMPUTED>& from)
{
const int32_t count = static_cast<int32_t>(Blocks(columns) * BLOCK);
VECTOR
}

__aicore__ inline uint32_t Fewer(uint32_t a, uint32_t b) { return a < b ? a : b; }

__aicore__ inline void BeginTile(int64_t, int32_t) {}
"""
_WIDEN = """
const LocalTensor<COMPUTED> room = roomBuffer.Get<COMPUTED>();
Cast(room, raw, RoundMode::CAST_NONE, count);
PipeBarrier<PIPE_V>();
return room;
"""
_MOVE_CAST = """
const int32_t count = static_cast<int32_t>(ROWS ? size * pitch : size);
const LocalTensor<STORED> stored = storedBuffer.Get<STORED>();
if (isOut) {
PipeBarrier<PIPE_V>();
Cast(stored, block, RoundMode::CAST_RINT, count);
}
MoveRows(stored, at, rows, length, step, pitch, isOut);
if (!isOut) {
Cast(block, stored, RoundMode::CAST_NONE, count);
PipeBarrier<PIPE_V>();
}
"""
_KERNEL = f"""
// A part of the result is copied in, and out again with what belongs there.
class CLASS {{
public:
__aicore__ inline void Init(GM_ADDR x, GM_ADDR index, GM_ADDR source, GM_ADDR y, const STRUCT& given)
{{
tiling = given;
{OWN_UNITS}
const int64_t size = tiling.outer * tiling.places * tiling.inner;
xGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ STORED*>(x), size);
yGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ STORED*>(y), size);
sourceGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ STORED*>(source), tiling.outer * tiling.count * tiling.inner);
indexSize = tiling.span * (tiling.isShared != 0 ? 1 : tiling.outer);
indexGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(index), indexSize);
pipe.InitBuffer(blockBuffer, BLOCK_ELEMENTS * sizeof(COMPUTED));
if (!SAME) {{
pipe.InitBuffer(storedBuffer, BLOCK_ELEMENTS * sizeof(STORED));
pipe.InitBuffer(roomBuffer, ROOM);
}}
pipe.InitBuffer(indexQueue, 2, TILE * sizeof(int32_t));
pipe.InitBuffer(sourceQueue, 2, ROWS ? ROOM : TILE * sizeof(STORED));
pipe.InitBuffer(laneBuffer, TILE * sizeof(int32_t));
pipe.InitBuffer(beforeBuffer, TILE * sizeof(int32_t));
pipe.InitBuffer(otherBuffer, TILE * sizeof(int32_t));
pipe.InitBuffer(hitBuffer, TILE * sizeof(int32_t));
pipe.InitBuffer(mostBuffer, TILE * sizeof(int32_t));
pipe.InitBuffer(leastBuffer, TILE * sizeof(int32_t));
pipe.InitBuffer(maskBuffer, TILE / 4);
}}

__aicore__ inline void Process()
{{
Prepare();
for (int64_t unit = first; unit < last; ++unit) {{
const int64_t across = unit % tiling.across;
const int64_t part = unit / tiling.across % tiling.parts;
const int64_t line = unit / tiling.across / tiling.parts * tiling.together;
const int64_t lines = Less(tiling.together, tiling.outer - line);
column = across * tiling.width;
columns = Less(tiling.width, tiling.inner - column);
begin = line * tiling.group + part * tiling.part;
size = tiling.together > 1 ? lines * tiling.group : Less(tiling.part, tiling.group - part * tiling.part);
MoveBlock(false);
Look(line * tiling.span, (line + lines) * tiling.span);
MoveBlock(true);
}}
CheckLimits();
}}

private:
// What a tile's places have in common, wherever it begins.
__aicore__ inline void Prepare()
{{
CreateVecIndex(laneBuffer.Get<int32_t>(), 0, TILE);
Duplicate(mostBuffer.Get<int32_t>(), 0, TILE);
Duplicate(leastBuffer.Get<int32_t>(), 0, TILE);
Duplicate(otherBuffer.Get<int32_t>(), 0, TILE);
Duplicate(hitBuffer.Get<int32_t>(), 0, TILE);
if (ROWS && tiling.inner % tiling.pitch != 0) {{
// What lies between rows is computed with.
Duplicate(blockBuffer.Get<int32_t>(), 0, BLOCK_ELEMENTS * sizeof(COMPUTED) / sizeof(int32_t));
if (!SAME) {{
Duplicate(storedBuffer.Get<int32_t>(), 0, BLOCK_ELEMENTS * sizeof(STORED) / sizeof(int32_t));
}}
for (int32_t i = 0; i < 2; ++i) {{
const LocalTensor<int32_t> raw = sourceQueue.AllocTensor<int32_t>();
Duplicate(raw, 0, ROOM / sizeof(int32_t));
sourceQueue.FreeTensor(raw);
}}
}}
PipeBarrier<PIPE_V>();
if (!HasBefore()) {{
return;
}}
LocalTensor<float> group = otherBuffer.Get<float>();
LocalTensor<float> within = hitBuffer.Get<float>();
LocalTensor<float> sum = beforeBuffer.Get<float>();
Split(group, within, static_cast<float>(tiling.inner), TILE);
if (tiling.step > tiling.span) {{
DataCopy(sum, within, TILE);
PipeBarrier<PIPE_V>();
Split(group, within, static_cast<float>(tiling.span), TILE);
Axpy(sum, group, static_cast<float>(tiling.group), TILE);
}} else {{
DataCopy(sum, within, TILE);
}}
PipeBarrier<PIPE_V>();
Cast(sum.ReinterpretCast<int32_t>(), sum, RoundMode::CAST_RINT, TILE);
PipeBarrier<PIPE_V>();
}}

__aicore__ inline bool HasBefore() {{ return !ROWS && (tiling.inner > 1 || tiling.step > tiling.span); }}

// Looks through the numbers from one line's first to another's last; the next tile is copied in meanwhile.
__aicore__ inline void Look(int64_t from, int64_t to)
{{
if (from < to) {{
Fetch(from, Count(from, to));
}}
while (from < to) {{
const int64_t count = Count(from, to);
const int64_t next = from + count;
if (next < to) {{
Fetch(next, Count(next, to));
}}
const int64_t before = from / tiling.span * tiling.group - begin;
LocalTensor<int32_t> number = indexQueue.DeQue<int32_t>();
const uint32_t found = Find(number, static_cast<int32_t>(count), static_cast<int32_t>(before));
indexQueue.FreeTensor(number);
JoinTile(from, static_cast<int32_t>(count), found);
from = next;
}}
}}

__aicore__ inline int64_t Count(int64_t from, int64_t to)
{{
const int64_t left = tiling.step > tiling.span ? to - from : tiling.span - from % tiling.span;
return Less(tiling.step, left);
}}

__aicore__ inline void Fetch(int64_t from, int64_t count)
{{
LocalTensor<int32_t> number = indexQueue.AllocTensor<int32_t>();
const uint32_t bytes = static_cast<uint32_t>(count * sizeof(int32_t));
DataCopyPad(number, indexGlobal[tiling.isShared != 0 ? from % tiling.span : from], DataCopyExtParams{{1, bytes, 0, 0, 0}},
            DataCopyPadExtParams<int32_t>());
indexQueue.EnQue(number);
BeginTile(from, static_cast<int32_t>(count));
}}

// Leaves the place in the block and the number in the tile of each that lies within, in order.
__aicore__ inline uint32_t Find(const LocalTensor<int32_t>& number, int32_t count, int32_t before)
{{
const LocalTensor<int32_t> other = otherBuffer.Get<int32_t>();
const LocalTensor<float> place = otherBuffer.Get<float>();
const LocalTensor<int32_t> most = mostBuffer.Get<int32_t>();
const LocalTensor<int32_t> least = leastBuffer.Get<int32_t>();
const LocalTensor<uint8_t> mask = maskBuffer.Get<uint8_t>();
const LocalTensor<uint8_t> second = mask[TILE / 8];
const int32_t whole = (count + 63) / 64 * 64;
ShiftRight(other, number, 31, count);
PipeBarrier<PIPE_V>();
Muls(other, other, static_cast<int32_t>(-tiling.places), count);
PipeBarrier<PIPE_V>();
// Indices count from the end where they are below 0.
Add(number, number, other, count);
PipeBarrier<PIPE_V>();
Max(most, most, number, count);
Min(least, least, number, count);
if (!ROWS && tiling.inner > 1) {{
PipeBarrier<PIPE_V>();
Muls(number, number, static_cast<int32_t>(tiling.inner), count);
}}
if (HasBefore()) {{
PipeBarrier<PIPE_V>();
Add(number, number, beforeBuffer.Get<int32_t>(), count);
}}
PipeBarrier<PIPE_V>();
Adds(number, number, before, count);
PipeBarrier<PIPE_V>();
Cast(place, number, RoundMode::CAST_RINT, count);
ShiftLeft(number, number, BITS, count);
PipeBarrier<PIPE_V>();
Add(number, number, laneBuffer.Get<int32_t>(), count);
CompareScalar(mask, place, 0.0f, CMPMODE::GE, whole);
CompareScalar(second, place, static_cast<float>(size), CMPMODE::LT, whole);
PipeBarrier<PIPE_V>();
And(mask.ReinterpretCast<uint16_t>(), mask.ReinterpretCast<uint16_t>(), second.ReinterpretCast<uint16_t>(), whole / 16);
PipeBarrier<PIPE_V>();
uint64_t found = 0;
GatherMask(hitBuffer.Get<int32_t>(), number, mask.ReinterpretCast<uint32_t>(), true, static_cast<uint32_t>(count),
           GatherMaskParams(1, 1, 8, 8), found);
PipeBarrier<PIPE_V>();
return static_cast<uint32_t>(found);
}}
PROCESS
// Elements as they are computed with.
__aicore__ inline LocalTensor<COMPUTED> Widened(const LocalTensor<STORED>& raw, int32_t count)
{{
WIDEN
}}

__aicore__ inline void MoveBlock(bool isOut)
{{
const int64_t rows = ROWS ? size : 1;
const int64_t length = ROWS ? columns : size;
const int64_t pitch = ROWS ? tiling.pitch : static_cast<int64_t>(Blocks(length)) * BLOCK;
const int64_t step = ROWS ? tiling.inner : length;
const int64_t at = ROWS ? begin * tiling.inner + column : begin;
const LocalTensor<COMPUTED> block = blockBuffer.Get<COMPUTED>();
MOVE_BLOCK
}}

// All that is done with the block is done before, and what is done next waits for it.
__aicore__ inline void MoveRows(const LocalTensor<STORED>& tile, int64_t at, int64_t rows, int64_t length, int64_t step,
                                int64_t pitch, bool isOut)
{{
if (!isOut) {{
Order<HardEvent::MTE3_MTE2>();
Order<HardEvent::V_MTE2>();
CopyRows(tile, xGlobal, tiling.outer * tiling.places * tiling.inner, at, rows, length, step, pitch);
Order<HardEvent::MTE2_V>();
return;
}}
Order<HardEvent::S_V>();
Order<HardEvent::V_MTE3>();
const uint32_t bytes = static_cast<uint32_t>(length * sizeof(STORED));
const uint32_t gap = rows > 1 ? static_cast<uint32_t>((step - length) * sizeof(STORED)) : 0;
const uint32_t skip = static_cast<uint32_t>(pitch / BLOCK) - Blocks(length);
DataCopyPad(yGlobal[at], tile, DataCopyExtParams{{static_cast<uint16_t>(rows), bytes, skip, gap, 0}});
}}

__aicore__ inline void CopyRow(const LocalTensor<STORED>& tile, const GlobalTensor<STORED>& from, int64_t length)
{{
CopyPart(tile, from, 1, length, length, static_cast<int64_t>(Blocks(length)) * BLOCK);
}}

// What is not there is read behind the indices, where it is a fault.
__aicore__ inline void CheckLimits()
{{
const LocalTensor<float> number = otherBuffer.Get<float>();
const LocalTensor<float> extreme = hitBuffer.Get<float>();
Order<HardEvent::S_V>();
Cast(number, mostBuffer.Get<int32_t>(), RoundMode::CAST_RINT, TILE);
PipeBarrier<PIPE_V>();
ReduceMax<float>(extreme, number, extreme[64], TILE);
Order<HardEvent::V_S>();
const float most = extreme.GetValue(0);
Order<HardEvent::S_V>();
Cast(number, leastBuffer.Get<int32_t>(), RoundMode::CAST_RINT, TILE);
PipeBarrier<PIPE_V>();
ReduceMin<float>(extreme, number, extreme[64], TILE);
Order<HardEvent::V_S>();
if (extreme.GetValue(0) < 0.0f || most >= static_cast<float>(tiling.places)) {{
LocalTensor<int32_t> nothing = indexQueue.AllocTensor<int32_t>();
DataCopyPad(nothing, indexGlobal[indexSize], DataCopyExtParams{{1, sizeof(int32_t), 0, 0, 0}}, DataCopyPadExtParams<int32_t>());
indexQueue.FreeTensor(nothing);
}}
}}
{COPY_IN}
{SPLIT}
{ORDER}

TPipe pipe;
TQue<QuePosition::VECIN, 2> indexQueue;
TQue<QuePosition::VECIN, 2> sourceQueue;
TBuf<QuePosition::VECCALC> blockBuffer;
TBuf<QuePosition::VECCALC> storedBuffer;
TBuf<QuePosition::VECCALC> roomBuffer;
TBuf<QuePosition::VECCALC> laneBuffer;
TBuf<QuePosition::VECCALC> beforeBuffer;
TBuf<QuePosition::VECCALC> otherBuffer;
TBuf<QuePosition::VECCALC> hitBuffer;
TBuf<QuePosition::VECCALC> mostBuffer;
TBuf<QuePosition::VECCALC> leastBuffer;
TBuf<QuePosition::VECCALC> maskBuffer;
GlobalTensor<STORED> xGlobal;
GlobalTensor<int32_t> indexGlobal;
GlobalTensor<STORED> sourceGlobal;
GlobalTensor<STORED> yGlobal;
int64_t first = 0;
int64_t last = 0;
int64_t indexSize = 0;
int64_t begin = 0;   // the first place of the block
int64_t size = 0;    // places of the block
int64_t column = 0;  // of a row, the first
int64_t columns = 0;
STRUCT tiling;
}};
"""
