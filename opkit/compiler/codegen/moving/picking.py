"""The kernel that takes elements of rows by index, or few neighbours, the same ones of each row."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from opkit.chips import DATA_BLOCK_BYTES, Chip

from ...ir import Location
from ..core_count import fair_cores
from ..kernel_class import KernelClass, TilingValue, class_of, struct_of
from ..text import Text
from .tiles import COPY_ROWS, MOST_PLACES, ORDER, OWN_UNITS, PICKED_CYCLES, SPLIT, TYPES, filled

__all__ = ["can_pick", "pick_values", "write_pick"]

_ROWS_BYTES = 40960
_PICKED_BYTES = MOST_PLACES * 4
_MOST_UNUSED = 64
"""Elements of a row for each that is picked: rows of more are not worth being copied as a whole."""
_MOST_ROWS = 255
_MOST_RUN = 512
"""Elements that an index stands for: more are copied faster than they are gathered."""


def can_pick(table: Sequence[Any], axis: int, count: Any, size_bytes: int, dtype: str) -> bool:
    """Return whether a core's memory holds the rows of a table, and picks from them.

    Args:
        table: its shape.
        axis: that the indices lie along.
        count: how many indices there are.
        size_bytes: Bytes per element.
        dtype: of the indices.
    """
    if size_bytes not in TYPES or dtype != "int32" or not isinstance(count, int):
        return False
    if not all(isinstance(extent, int) for extent in table):
        return False
    run = math.prod(table[axis + 1 :])
    is_worth_it = 0 < table[axis] <= _MOST_UNUSED * count and 0 < run <= _MOST_RUN
    return bool(is_worth_it and table[axis] * run <= _ROWS_BYTES // size_bytes - _MOST_UNUSED)


def pick_values(
    table: Sequence[int], axis: int, count: int, size_bytes: int, cores: int, chip: Chip
) -> tuple[int, list[TilingValue]]:
    """Return the cores and the tiling data of a launch, as `lookup_values` does."""
    tables, run = math.prod(table[:axis]), math.prod(table[axis + 1 :])
    length = table[axis] * run
    count *= run
    block = DATA_BLOCK_BYTES // size_bytes
    worth: int = fair_cores(
        *(chip, tables * count, cores),
        vector_cycles=PICKED_CYCLES,
        read_bytes=-(-size_bytes * length // count),
        written_bytes=size_bytes,
    )
    pitch = -(-length // block) * block
    part = min(count, MOST_PLACES // run * run)
    picked = -(-part // block) * block
    most = min(_ROWS_BYTES // (pitch * size_bytes), _PICKED_BYTES // (picked * size_bytes))
    parts = -(-count // part)
    # Some for each core.
    rows = max(1, min(most, _MOST_ROWS, -(-tables * parts // worth), tables))
    units = parts * -(-tables // rows)
    used = -(-units // -(-units // min(worth, units)))
    values = {
        "perBlock": units // used,
        "extra": units % used,
        "tables": tables,
        "length": length,
        "run": run,
        "pitch": pitch,
        "rows": rows,
        "count": count,
        "part": part,
        "pickedPitch": picked,
    }
    return used, [TilingValue(name, "int64_t", value) for name, value in values.items()]


def write_pick(name: str, size_bytes: int, location: Location | None = None) -> KernelClass:
    """Return a kernel of `y[a, j, :] = table[a, index[j], :]`, which the user's line asks for."""
    struct_name, class_name = struct_of(name), class_of(name)
    declaration = Text()
    declaration.all(
        [
            f"struct {struct_name} {{",
            "int64_t perBlock;  // tiles of every core",
            "int64_t extra;  // the first cores take one more",
            "int64_t tables;  // rows",
            "int64_t length;  // elements of a row",
            "int64_t run;  // elements that an index stands for",
            "int64_t pitch;  // elements from row to row of a tile",
            "int64_t rows;  // of a tile",
            "int64_t count;  // elements that are picked of each row",
            "int64_t part;  // of these in a tile",
            "int64_t pickedPitch;  // elements from row to row of a tile of the result",
            "};",
        ]
    )
    words = {
        "TYPE": TYPES[size_bytes],
        "CLASS": class_name,
        "STRUCT": struct_name,
        "BLOCK": str(DATA_BLOCK_BYTES // size_bytes),
    }
    out = filled(_KERNEL, words)
    out.mark(location, "DataCopyPad(")
    return KernelClass(name, class_name, struct_name, declaration, out, ("table", "index", "y"))


_KERNEL = f"""
// Some rows of the table are copied in as they are, and gathered by the same places.
class CLASS {{
public:
__aicore__ inline void Init(GM_ADDR table, GM_ADDR index, GM_ADDR y, const STRUCT& given)
{{
tiling = given;
{OWN_UNITS}
tableGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ TYPE*>(table), tiling.tables * tiling.length);
indexGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ int32_t*>(index), tiling.count / tiling.run);
yGlobal.SetGlobalBuffer(reinterpret_cast<__gm__ TYPE*>(y), tiling.tables * tiling.count);
pipe.InitBuffer(queueIn, 2, {_ROWS_BYTES});
pipe.InitBuffer(queueOut, 2, {_PICKED_BYTES});
pipe.InitBuffer(placeBuffer, {MOST_PLACES} * sizeof(int32_t));
pipe.InitBuffer(numberBuffer, {MOST_PLACES} * sizeof(float));
pipe.InitBuffer(extremeBuffer, {MOST_PLACES} * sizeof(float));
pipe.InitBuffer(runBuffer, {MOST_PLACES} * sizeof(float));
}}

__aicore__ inline void Process()
{{
const int64_t down = (tiling.tables + tiling.rows - 1) / tiling.rows;
int64_t begin = -1;  // the first index in the buffer
for (int64_t unit = first; unit < last; ++unit) {{
const int64_t from = unit / down * tiling.part;
const int64_t row = unit % down * tiling.rows;
const int64_t picked = Less(tiling.count - from, tiling.part);
const int64_t rows = Less(tiling.tables - row, tiling.rows);
if (from != begin) {{
begin = from;
FindPlaces(from, static_cast<int32_t>(picked));
}}
LocalTensor<TYPE> tile = queueIn.AllocTensor<TYPE>();
CopyRows(tile, tableGlobal, tiling.tables * tiling.length, row * tiling.length, rows, tiling.length, tiling.length,
         tiling.pitch);
queueIn.EnQue(tile);
Compute(rows, static_cast<uint32_t>(picked));
CopyBack(yGlobal[row * tiling.count + from], rows, picked, tiling.count, tiling.pickedPitch);
}}
}}

private:
// Bytes before each element that is picked. Indices count from the end where they are below 0.
__aicore__ inline void FindPlaces(int64_t from, int32_t picked)
{{
LocalTensor<int32_t> found = placeBuffer.Get<int32_t>();
LocalTensor<int32_t> negative = numberBuffer.Get<int32_t>();
LocalTensor<float> number = numberBuffer.Get<float>();
LocalTensor<float> extreme = extremeBuffer.Get<float>();
const int32_t count = picked / static_cast<int32_t>(tiling.run);
const uint32_t bytes = static_cast<uint32_t>(count * sizeof(int32_t));
Order<HardEvent::V_MTE2>();
DataCopyPad(found, indexGlobal[from / tiling.run], DataCopyExtParams{{1, bytes, 0, 0, 0}}, DataCopyPadExtParams<int32_t>());
Order<HardEvent::MTE2_V>();
Cast(number, found, RoundMode::CAST_RINT, count);
PipeBarrier<PIPE_V>();
ReduceMin<float>(extreme, number, extreme, count);
Order<HardEvent::V_S>();
const float least = extreme.GetValue(0);
Order<HardEvent::S_V>();
ReduceMax<float>(extreme, number, extreme, count);
Order<HardEvent::V_S>();
const float most = extreme.GetValue(0);
Order<HardEvent::S_V>();
const float size = static_cast<float>(tiling.length / tiling.run);
if (least < -size || most >= size) {{
// What is not there is read behind the table, where it is a fault.
DataCopyPad(found, indexGlobal[tiling.count], DataCopyExtParams{{1, bytes, 0, 0, 0}}, DataCopyPadExtParams<int32_t>());
return;
}}
PipeBarrier<PIPE_V>();
ShiftRight(negative, found, 31, count);
PipeBarrier<PIPE_V>();
Muls(negative, negative, static_cast<int32_t>(-tiling.length / tiling.run), count);
PipeBarrier<PIPE_V>();
Add(found, found, negative, count);
PipeBarrier<PIPE_V>();
Muls(found, found, static_cast<int32_t>(tiling.run * sizeof(TYPE)), count);
PipeBarrier<PIPE_V>();
if (tiling.run > 1) {{
Spread(found, picked);
}}
}}

// For each index the bytes before its elements.
__aicore__ inline void Spread(const LocalTensor<int32_t>& found, int32_t picked)
{{
LocalTensor<float> group = numberBuffer.Get<float>();
LocalTensor<float> within = extremeBuffer.Get<float>();
LocalTensor<int32_t> begin = runBuffer.Get<int32_t>();
Split(group, within, static_cast<float>(tiling.run), picked);
Muls(group, group, static_cast<float>(sizeof(int32_t)), picked);
PipeBarrier<PIPE_V>();
Muls(within, within, static_cast<float>(sizeof(TYPE)), picked);
Cast(group.ReinterpretCast<int32_t>(), group, RoundMode::CAST_RINT, picked);
PipeBarrier<PIPE_V>();
Cast(within.ReinterpretCast<int32_t>(), within, RoundMode::CAST_RINT, picked);
Gather(begin, found, group.ReinterpretCast<uint32_t>(), 0, static_cast<uint32_t>(picked));
PipeBarrier<PIPE_V>();
Add(found, begin, within.ReinterpretCast<int32_t>(), picked);
PipeBarrier<PIPE_V>();
}}

__aicore__ inline void Compute(int64_t rows, uint32_t picked)
{{
LocalTensor<TYPE> from = queueIn.DeQue<TYPE>();
LocalTensor<TYPE> to = queueOut.AllocTensor<TYPE>();
LocalTensor<uint32_t> places = placeBuffer.Get<uint32_t>();
for (int64_t row = 0; row < rows; ++row) {{
const uint32_t begin = static_cast<uint32_t>(row * tiling.pitch * sizeof(TYPE));
Gather(to[row * tiling.pickedPitch], from, places, begin, picked);
}}
queueIn.FreeTensor(from);
queueOut.EnQue(to);
}}
{COPY_ROWS}
{SPLIT}
{ORDER}

TPipe pipe;
TQue<QuePosition::VECIN, 2> queueIn;
TQue<QuePosition::VECOUT, 2> queueOut;
TBuf<QuePosition::VECCALC> placeBuffer;
TBuf<QuePosition::VECCALC> numberBuffer;
TBuf<QuePosition::VECCALC> extremeBuffer;
TBuf<QuePosition::VECCALC> runBuffer;
GlobalTensor<TYPE> tableGlobal;
GlobalTensor<int32_t> indexGlobal;
GlobalTensor<TYPE> yGlobal;
int64_t first = 0;
int64_t last = 0;
STRUCT tiling;
}};
"""
