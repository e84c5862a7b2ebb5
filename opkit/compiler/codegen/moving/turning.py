"""The kernels for movements whose elements do not lie together on both sides: tiles are copied in
rows of the source, ordered in the core, and copied out in rows of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from opkit.chips import DATA_BLOCK_BYTES, Chip

from ...ir import Location, Piece
from ..core_count import PARTIAL_CYCLES, fair_cores
from ..kernel_class import KernelClass, TilingValue, class_of, struct_of
from ..text import Text
from .boxes import MOST_OUTER
from .tiles import (
    BUFFER_BYTES,
    COPY_ROWS,
    FEW,
    LONGEST_STEP_BYTES,
    MOST_PLACES,
    OWN_UNITS,
    PICKED_CYCLES,
    TYPES,
    filled,
)

__all__ = ["Turn", "turn_of", "turn_values", "write_turn"]

_SIDE = 16
"""Rows that TransDataTo5HD turns at once."""
_MOST_ROWS = 255
_FEW_PLACES = 256
_SHORT_BYTES = 128
"""Rows of less, and fewer elements, are not worth another core."""
_TURNED_CYCLES = 1 / 32
"""Vector unit's cycles for one element."""


Way: TypeAlias = Literal["turn", "pick"]
"""Rows become columns; rows have each so-many-th element of a row, or of one that they share."""


@dataclass(frozen=True)
class Turn:
    """A movement by tiles of two axes, all sizes known, counted in elements."""

    way: Way
    columns: tuple[int, int]
    """Extent, and elements from one to the next in the source; in the result they lie together."""
    rows: tuple[int, int, int]
    """Extent, elements from one to the next in the source, and in the result. They lie together in
    the source, but for picks from rows of their own."""
    outer: tuple[tuple[int, int, int], ...]
    source: int
    target: int

    def count(self) -> int:
        """Return how many elements are moved."""
        found = self.columns[0] * self.rows[0]
        for extent, _, _ in self.outer:
            found *= extent
        return found


def turn_of(pieces: Sequence[Piece], size_bytes: int) -> Turn | None:
    """Return a movement as tiles to be turned or picked; None where it is no such one."""
    if len(pieces) != 1 or size_bytes not in TYPES or pieces[0].source < 0:
        return None
    (piece,) = pieces
    numbers = (piece.source_offset, piece.target_offset, *(n for axis in piece.axes for n in axis))
    if not all(isinstance(number, int) for number in numbers):
        return None
    axes = list(piece.axes)
    across = next((at for at, axis in enumerate(axes) if axis[2] == 1), None)
    if across is None or axes[across][1] < 2:
        return None
    columns, step, _ = axes.pop(across)
    down = next((at for at, axis in enumerate(axes) if axis[1] == 1), None)
    way: Way = "pick"
    rows = (1, 0, 0)
    is_close = step * size_bytes <= LONGEST_STEP_BYTES
    if down is not None:
        rows = axes.pop(down)
        if rows[0] > step:
            # Rows of windows overlap.
            return None
        if rows[0] >= FEW or not is_close:
            way = "turn"
    elif not is_close:
        return None
    elif (longest := _longest(axes, columns, step)) is not None:
        rows = axes.pop(longest)
    if len(axes) > MOST_OUTER:
        return None
    found = (way, (columns, step), rows, tuple(axes), piece.source_offset, piece.target_offset)
    return Turn(*found)


def _longest(axes: Sequence[tuple[int, int, int]], columns: int, step: int) -> int | None:
    """Return the axis with the most rows that are apart in the source."""
    apart = [at for at, axis in enumerate(axes) if axis[1] > (columns - 1) * step]
    return max(apart, key=lambda at: axes[at][0], default=None)


def turn_values(
    turn: Turn, sizes: tuple[int, int], size_bytes: int, cores: int, chip: Chip
) -> tuple[int, list[TilingValue]]:
    """Return the cores and the tiling data of a launch.

    Args:
        sizes: elements of the input and of the result.
        size_bytes: of an element.
        cores: that the chip has.
    """
    (columns, step), rows = turn.columns, turn.rows[0]
    is_shared = turn.way == "pick" and turn.rows[1] == 1
    # Rows that are no whole blocks of the core's memory take longer.
    is_partial = columns * size_bytes % DATA_BLOCK_BYTES
    slow = PARTIAL_CYCLES / columns if is_partial else 0
    worth: int = fair_cores(
        *(chip, turn.count(), cores),
        vector_cycles=max(slow, _TURNED_CYCLES if turn.way == "turn" else PICKED_CYCLES),
        read_bytes=size_bytes * (step // rows if is_shared else step if turn.way == "pick" else 1),
        written_bytes=size_bytes,
    )
    across, down = _tile(turn, size_bytes, worth)
    in_pitch, out_pitch = _pitches(turn, across, down, size_bytes)
    units = -(-turn.columns[0] // across) * -(-turn.rows[0] // down)
    for extent, _, _ in turn.outer:
        units *= extent
    # No more cores than take the time of the one with the most units.
    used = -(-units // -(-units // min(worth, units)))
    axes = [(1, 0, 0)] * (MOST_OUTER - len(turn.outer)) + list(turn.outer)
    values = {
        "perBlock": units // used,
        "extra": units % used,
        "source": turn.source,
        "target": turn.target,
        **{f"extents[{at}]": axis[0] for at, axis in enumerate(axes)},
        **{f"sourceSteps[{at}]": axis[1] for at, axis in enumerate(axes)},
        **{f"targetSteps[{at}]": axis[2] for at, axis in enumerate(axes)},
        "columns": turn.columns[0],
        "columnStep": turn.columns[1],
        "rows": turn.rows[0],
        "sourceRow": turn.rows[1],
        "targetRow": turn.rows[2],
        "columnTile": across,
        "rowTile": down,
        "inPitch": in_pitch,
        "outPitch": out_pitch,
        "inputSize": sizes[0],
        "outputSize": sizes[1],
    }
    return used, [TilingValue(name, "int64_t", value) for name, value in values.items()]


def _pitches(turn: Turn, across: int, down: int, size_bytes: int) -> tuple[int, int]:
    """Return the elements from row to row of a tile as it is copied in, and as it is copied out:
    rows of a turn begin in blocks that are in other banks than those of their neighbours."""
    block = DATA_BLOCK_BYTES // size_bytes
    if turn.way == "pick":
        read = -(-((across - 1) * turn.columns[1] + turn.rows[0]) // block)
        if turn.rows[1] != 1:
            read = -(-((across - 1) * turn.columns[1] + 1) // block)
        return read * block, -(-across // block) * block
    read = -(-down // block)
    written = -(-across // _SIDE) * _SIDE // block
    return (read | 1) * block, (written | 1) * block


def _elements(turn: Turn, across: int, down: int, size_bytes: int) -> int:
    """Return the elements of a tile's larger side, with those between its rows."""
    block = DATA_BLOCK_BYTES // size_bytes
    in_pitch, out_pitch = _pitches(turn, across, down, size_bytes)
    if turn.way == "pick":
        return max(in_pitch * (1 if turn.rows[1] == 1 else down), down * out_pitch)
    return max(across * in_pitch, -(-down // block) * block * out_pitch)


def _tile(turn: Turn, size_bytes: int, cores: int) -> tuple[int, int]:
    """Return the columns and rows of the result's tiles: as many as fit a buffer, but some for
    each core."""
    block = DATA_BLOCK_BYTES // size_bytes
    columns, rows = turn.columns[0], turn.rows[0]
    outer = turn.count() // (columns * rows)
    is_shared = turn.way == "pick" and turn.rows[1] == 1
    across, down = min(columns, MOST_PLACES), min(rows, _MOST_ROWS)
    steps, few = (down if is_shared else 1, block), (down if is_shared else 1, _FEW_PLACES)
    if turn.way == "turn":
        across, down = -(-columns // _SIDE) * _SIDE, -(-rows // block) * block
        steps, few = (block, _SIDE), (_SHORT_BYTES // size_bytes,) * 2

    def fits() -> bool:
        units = -(-columns // across) * -(-rows // down) * outer
        is_small = _elements(turn, across, down, size_bytes) * size_bytes <= BUFFER_BYTES
        return is_small and (units >= cores or (down <= few[0] and across <= few[1]))

    while not fits():
        if down > steps[0] and (turn.way != "turn" or down >= across or across <= steps[1]):
            down = _part(down, steps[0])
        elif across > steps[1]:
            across = _part(across, steps[1])
        else:
            break
    return across, down


def _part(extent: int, step: int) -> int:
    """Return three quarters of an extent in whole steps, but at least one step less."""
    return max(step, min(extent - step, extent * 3 // 4 // step * step))


def write_turn(
    name: str, way: Way, size_bytes: int, location: Location | None = None
) -> KernelClass:
    """Return a kernel that moves tiles of two axes within four more, as the user's line asks
    for."""
    kind = TYPES[size_bytes]
    block = DATA_BLOCK_BYTES // size_bytes
    struct_name, class_name = struct_of(name), class_of(name)
    declaration = Text()
    declaration.all(
        [
            f"struct {struct_name} {{",
            "int64_t perBlock;  // tiles of every core",
            "int64_t extra;  // the first cores take one more",
            "int64_t source;  // where it begins",
            "int64_t target;",
            f"int64_t extents[{MOST_OUTER}];",
            f"int64_t sourceSteps[{MOST_OUTER}];",
            f"int64_t targetSteps[{MOST_OUTER}];",
            "int64_t columns;  // elements that lie together in the result",
            "int64_t columnStep;  // from one to the next in the source",
            "int64_t rows;",
            "int64_t sourceRow;  // from one to the next",
            "int64_t targetRow;",
            "int64_t columnTile;",
            "int64_t rowTile;",
            "int64_t inPitch;  // elements from row to row of a tile",
            "int64_t outPitch;",
            "int64_t inputSize;",
            "int64_t outputSize;",
            "};",
        ]
    )
    words = {"TYPE": kind, "CLASS": class_name, "STRUCT": struct_name, "BLOCK": str(block)}
    out = Text()
    for part in (_HEAD, COPY_ROWS, {"turn": _TURN, "pick": _PICK}[way], _TAIL):
        out.extend(filled(part, words))
    out.mark(location, "DataCopyPad(")
    return KernelClass(name, class_name, struct_name, declaration, out, ("x", "y"))


_HEAD = f"""
// A tile is copied in by rows of the source, and copied out by rows of the result.
class CLASS {{
public:
__aicore__ inline void Init(GM_ADDR x, GM_ADDR y, const STRUCT& given)
{{
tiling = given;
{OWN_UNITS}
input.SetGlobalBuffer(reinterpret_cast<__gm__ TYPE*>(x), tiling.inputSize);
output.SetGlobalBuffer(reinterpret_cast<__gm__ TYPE*>(y), tiling.outputSize);
pipe.InitBuffer(queueIn, 2, {BUFFER_BYTES});
pipe.InitBuffer(queueOut, 2, {BUFFER_BYTES});
Begin();
}}

__aicore__ inline void Process()
{{
const int64_t across = (tiling.columns + tiling.columnTile - 1) / tiling.columnTile;
const int64_t down = (tiling.rows + tiling.rowTile - 1) / tiling.rowTile;
for (int64_t unit = first; unit < last; ++unit) {{
const int64_t column = unit % across * tiling.columnTile;
const int64_t row = unit / across % down * tiling.rowTile;
int64_t source = tiling.source + column * tiling.columnStep + row * tiling.sourceRow;
int64_t target = tiling.target + column + row * tiling.targetRow;
int64_t index = unit / across / down;
for (int32_t axis = {MOST_OUTER - 1}; axis >= 0; --axis) {{
source += index % tiling.extents[axis] * tiling.sourceSteps[axis];
target += index % tiling.extents[axis] * tiling.targetSteps[axis];
index /= tiling.extents[axis];
}}
const int64_t columns = Less(tiling.columns - column, tiling.columnTile);
const int64_t rows = Less(tiling.rows - row, tiling.rowTile);
CopyIn(source, columns, rows);
Compute(columns, rows);
CopyBack(output[target], rows, columns, tiling.targetRow, tiling.outPitch);
}}
}}

private:
// Copies rows that lie `step` elements apart.
__aicore__ inline void CopyTile(int64_t source, int64_t rows, int64_t length, int64_t step)
{{
LocalTensor<TYPE> tile = queueIn.AllocTensor<TYPE>();
CopyRows(tile, input, tiling.inputSize, source, rows, length, step, tiling.inPitch);
queueIn.EnQue(tile);
}}
"""
_TURN = f"""

// Rows and columns at the edge are turned with the others: they have values, too.
__aicore__ inline void Begin()
{{
LocalTensor<TYPE> tiles[2];
for (uint32_t index = 0; index < 2; ++index) {{
tiles[index] = queueIn.AllocTensor<TYPE>();
Duplicate(tiles[index], static_cast<TYPE>(0), {BUFFER_BYTES} / sizeof(TYPE));
}}
for (uint32_t index = 0; index < 2; ++index) {{
queueIn.FreeTensor(tiles[index]);
}}
}}

__aicore__ inline void CopyIn(int64_t source, int64_t columns, int64_t rows)
{{
CopyTile(source, columns, rows, tiling.columnStep);
}}

// {_SIDE} rows of the source at once; a block of each holds as many columns as elements.
__aicore__ inline void Compute(int64_t columns, int64_t rows)
{{
LocalTensor<TYPE> from = queueIn.DeQue<TYPE>();
LocalTensor<TYPE> to = queueOut.AllocTensor<TYPE>();
const uint32_t repeats = Blocks(rows);
TransDataTo5HDParams params;
params.repeatTimes = static_cast<uint8_t>(repeats);
params.srcRepStride = repeats > 1 ? 1 : 0;
params.dstRepStride = repeats > 1 ? static_cast<uint16_t>(tiling.outPitch) : 0;
for (int64_t row = 0; row < columns; row += {_SIDE}) {{
LocalTensor<TYPE> sources[{_SIDE}];
LocalTensor<TYPE> targets[{_SIDE}];
for (uint32_t index = 0; index < {_SIDE}; ++index) {{
sources[index] = from[(row + index) * tiling.inPitch];
// {_SIDE} elements of a column fill one block, or two.
targets[index] = to[index * BLOCK / {_SIDE} * tiling.outPitch + row + index * BLOCK % {_SIDE}];
}}
TransDataTo5HD<TYPE>(targets, sources, params);
}}
queueIn.FreeTensor(from);
queueOut.EnQue(to);
}}
"""
_PLACES = f"""

__aicore__ inline void Begin()
{{
pipe.InitBuffer(placeBuffer, {MOST_PLACES} * sizeof(int32_t));
LocalTensor<int32_t> found = placeBuffer.Get<int32_t>();
MakePlaces(found);
PipeBarrier<PIPE_V>();
places = found.ReinterpretCast<uint32_t>();
}}
"""
_PICK = (
    _PLACES
    + """

__aicore__ inline void MakePlaces(const LocalTensor<int32_t>& found)
{
const int32_t count = static_cast<int32_t>(tiling.columnTile);
CreateVecIndex(found, 0, count);
PipeBarrier<PIPE_V>();
Muls(found, found, static_cast<int32_t>(tiling.columnStep * sizeof(TYPE)), count);
}

// Rows that begin with neighbours are in one row of the source.
__aicore__ inline void CopyIn(int64_t source, int64_t columns, int64_t rows)
{
const int64_t length = (columns - 1) * tiling.columnStep + 1;
if (tiling.sourceRow == 1) {
CopyTile(source, 1, length + rows - 1, 0);
} else {
CopyTile(source, rows, length, tiling.sourceRow);
}
}

__aicore__ inline void Compute(int64_t columns, int64_t rows)
{
LocalTensor<TYPE> from = queueIn.DeQue<TYPE>();
LocalTensor<TYPE> to = queueOut.AllocTensor<TYPE>();
const int64_t pitch = tiling.sourceRow == 1 ? 1 : tiling.inPitch;
for (int64_t row = 0; row < rows; ++row) {
const uint32_t begin = static_cast<uint32_t>(row * pitch * sizeof(TYPE));
Gather(to[row * tiling.outPitch], from, places, begin, static_cast<uint32_t>(columns));
}
queueIn.FreeTensor(from);
queueOut.EnQue(to);
}
"""
)
_TAIL = """

TPipe pipe;
TQue<QuePosition::VECIN, 2> queueIn;
TQue<QuePosition::VECOUT, 2> queueOut;
TBuf<QuePosition::VECCALC> placeBuffer;
LocalTensor<uint32_t> places;
GlobalTensor<TYPE> input;
GlobalTensor<TYPE> output;
int64_t first = 0;
int64_t last = 0;
STRUCT tiling;
};
"""
