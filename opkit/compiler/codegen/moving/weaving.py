"""The kernel for movements whose result has an element of each of a few rows in turn: stacks along
the last axis, repeated elements, neighbours that change places, elements with zeros between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from opkit.chips import DATA_BLOCK_BYTES, Chip

from ...ir import Location, Piece
from ..core_count import fair_cores
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
    SPLIT,
    TYPES,
    filled,
)

__all__ = ["Weave", "weave_of", "weave_values", "write_weave"]

_MOST_WIDTH = 16
_FEW_PLACES = 256
"""A tile of fewer elements is not worth another core."""


@dataclass(frozen=True)
class _Column:
    """One of the elements that lie together in the result, of all of them."""

    source: int
    """-1: the constant."""
    offset: int
    step: int
    """Elements from one group to the next in the source."""
    outer: tuple[int, ...]
    """Elements from one to the next along the outer axes of the source."""


@dataclass(frozen=True)
class _Strip:
    """Rows of one source that are copied in together."""

    source: int
    offset: int
    step: int
    rows: int
    row_step: int
    outer: tuple[int, ...]


@dataclass(frozen=True)
class Weave:
    """A movement whose result has groups of a few elements, counted in elements."""

    count: int
    """Groups that follow each other."""
    strips: tuple[_Strip, ...]
    places: tuple[tuple[int, int, int], ...]
    """For each element of a group: the row of a tile, counted through the strips, the elements
    before it in there, and those from group to group; the row behind the last is the constant."""
    outer: tuple[tuple[int, int], ...]
    """Extents, and steps in the result."""
    target: int

    @property
    def rows(self) -> int:
        """How many rows a tile has."""
        return sum(strip.rows for strip in self.strips)

    def elements(self) -> int:
        """Return how many elements there are."""
        found = self.count * len(self.places)
        for extent, _ in self.outer:
            found *= extent
        return found


def weave_of(pieces: Sequence[Piece], size_bytes: int) -> Weave | None:
    """Return a movement as groups of a few elements; None where it is no such one."""
    numbers = (
        number
        for piece in pieces
        for number in (piece.source_offset, piece.target_offset, *sum(piece.axes, ()))
    )
    if size_bytes not in TYPES or not all(isinstance(number, int) for number in numbers):
        return None
    columns: dict[int, _Column] = {}
    shapes = set()
    for piece in pieces:
        axes = list(piece.axes)
        extent, apart = next(((n, step) for n, step, to in axes if to == 1), (1, 0))
        axes = [axis for axis in axes if axis[2] != 1]
        if not axes or extent > _MOST_WIDTH:
            return None
        count, step, width = axes.pop(min(range(len(axes)), key=lambda at: axes[at][2]))
        if not 0 <= step <= LONGEST_STEP_BYTES // size_bytes:
            return None
        shapes.add((count, width, tuple((n, to) for n, _, to in axes)))
        outer = tuple(from_ for _, from_, _ in axes)
        for at in range(extent):
            offset = piece.source_offset + at * apart
            columns[piece.target_offset + at] = _Column(piece.source, offset, step, outer)
    target = min(columns, default=0)
    if len(shapes) != 1 or sorted(columns) != list(range(target, target + len(columns))):
        return None
    ((count, width, around),) = shapes
    if not 2 <= width == len(columns) <= _MOST_WIDTH or len(around) > MOST_OUTER or count < FEW:
        return None
    strips, places = _strips([columns[at] for at in sorted(columns)], count)
    return Weave(count, strips, places, around, target) if strips else None


def _strips(
    columns: Sequence[_Column], count: int
) -> tuple[tuple[_Strip, ...], tuple[tuple[int, int, int], ...]]:
    """Return what is copied in, and where in there the columns lie."""
    strips: list[_Strip] = []
    found: dict[_Column, tuple[int, int, int]] = {}
    rows = begin = 0
    constants = {column for column in columns if column.source < 0}
    order = sorted(
        set(columns) - constants, key=lambda each: (each.source, each.step, each.outer, each.offset)
    )
    for column in order:
        last, step = (strips[-1] if strips else None), column.step
        if last and (last.source, last.step, last.outer) == (column.source, step, column.outer):
            apart = column.offset - begin
            if apart < step:
                found[column] = (rows - 1, apart, step)
                continue
            if apart >= (count + 1) * step and last.row_step in (0, apart):
                strips[-1] = replace(last, rows=last.rows + 1, row_step=apart)
                found[column], begin, rows = (rows, 0, step), column.offset, rows + 1
                continue
        strips.append(_Strip(column.source, column.offset, step, 1, 0, column.outer))
        found[column], begin, rows = (rows, 0, step), column.offset, rows + 1
    found |= dict.fromkeys(constants, (rows, 0, 0))
    return tuple(strips), tuple(found[column] for column in columns)


def weave_values(
    weave: Weave,
    inputs: Sequence[int],
    output: int,
    size_bytes: int,
    bits: int,
    cores: int,
    chip: Chip,
) -> tuple[int, list[TilingValue]]:
    """Return the cores and the tiling data of a launch.

    Args:
        inputs: elements of each.
        output: elements of the result.
        size_bytes: Bytes per element.
        bits: of the constant.
        cores: that the chip has.
    """
    worth: int = fair_cores(
        *(chip, weave.elements(), cores),
        vector_cycles=PICKED_CYCLES,
        read_bytes=-(-size_bytes * sum(s.step * s.rows for s in weave.strips) // len(weave.places)),
        written_bytes=size_bytes,
    )
    tile, pitch = _tile(weave, size_bytes, worth)
    units = -(-weave.count // tile)
    for extent, _ in weave.outer:
        units *= extent
    # No more cores than take the time of the one with the most units.
    used = -(-units // -(-units // min(worth, units)))
    missing = MOST_OUTER - len(weave.outer)
    values = {
        "perBlock": units // used,
        "extra": units % used,
        "target": weave.target,
        "count": weave.count,
        "tile": tile,
        "pitch": pitch,
        "rows": weave.rows,
        "span": _span(weave),
        "hasConstant": any(row == weave.rows for row, _, _ in weave.places),
        "constant": bits & ((1 << 8 * size_bytes) - 1),
        "outputSize": output,
    }
    for at, (extent, to) in enumerate([(1, 0)] * missing + list(weave.outer)):
        values |= {f"extents[{at}]": extent, f"targetSteps[{at}]": to}
    values |= {f"inputSizes[{at}]": size for at, size in enumerate(inputs)}
    for at, strip in enumerate(weave.strips):
        values |= {
            f"strips[{at}].source": strip.source,
            f"strips[{at}].offset": strip.offset,
            f"strips[{at}].step": strip.step,
            f"strips[{at}].rows": strip.rows,
            f"strips[{at}].rowStep": strip.row_step,
        }
        for axis, from_ in enumerate([0] * missing + list(strip.outer)):
            values[f"strips[{at}].steps[{axis}]"] = from_
    for at, (row, shift, step) in enumerate(weave.places):
        values[f"places[{at}]"] = (row * pitch + shift) * size_bytes
        values[f"steps[{at}]"] = step * size_bytes
    names = _members(len(inputs), len(weave.strips), len(weave.places))
    return used, [TilingValue(name, "int64_t", values[name]) for name in names]


def _members(inputs: int, strips: int, width: int) -> list[str]:
    """Return the tiling data's members, in order."""
    return [
        *("perBlock", "extra", "target", "count", "tile", "pitch", "rows", "span"),
        *("hasConstant", "constant", "outputSize"),
        *(f"extents[{at}]" for at in range(MOST_OUTER)),
        *(f"targetSteps[{at}]" for at in range(MOST_OUTER)),
        *(f"inputSizes[{at}]" for at in range(inputs)),
        *(
            f"strips[{at}].{name}"
            for at in range(strips)
            for name in (
                *("source", "offset", "step", "rows", "rowStep"),
                *(f"steps[{axis}]" for axis in range(MOST_OUTER)),
            )
        ),
        *(f"places[{at}]" for at in range(width)),
        *(f"steps[{at}]" for at in range(width)),
    ]


def _span(weave: Weave) -> int:
    """Return the elements of a row behind the first of its last group."""
    return max(shift for _, shift, _ in weave.places)


def _tile(weave: Weave, size_bytes: int, cores: int) -> tuple[int, int]:
    """Return the groups of a tile, as many as fit but some for each core, and the elements from row
    to row in there."""
    block = DATA_BLOCK_BYTES // size_bytes
    width, step = len(weave.places), max(strip.step for strip in weave.strips)
    outer = weave.elements() // (weave.count * width)
    tile = min(weave.count, MOST_PLACES // width)

    def pitch_of(tile: int) -> int:
        return -(-((tile - 1) * step + 1 + _span(weave)) // block) * block

    while tile > block:
        is_small = (weave.rows * pitch_of(tile) + block) * size_bytes <= BUFFER_BYTES
        units = -(-weave.count // tile) * outer
        if is_small and (units >= cores or tile * width <= _FEW_PLACES):
            break
        tile = max(block, min(tile - block, tile * 3 // 4 // block * block))
    return tile, pitch_of(tile)


def write_weave(
    name: str,
    inputs: int,
    strips: int,
    width: int,
    size_bytes: int,
    location: Location | None = None,
) -> KernelClass:
    """Return a kernel whose result has groups of `width` elements from `strips` stretches of
    `inputs` tensors, as the user's line asks for."""
    struct_name, class_name = struct_of(name), class_of(name)
    strip = struct_name.removesuffix("Tiling") + "Strip"
    declaration = Text()
    declaration.all(
        [
            f"struct {strip} {{",
            "int64_t source;  // which input",
            "int64_t offset;  // where it begins",
            "int64_t step;  // from one group of the result to the next",
            "int64_t rows;",
            "int64_t rowStep;  // elements from row to row",
            f"int64_t steps[{MOST_OUTER}];",
            "};",
            "",
            f"struct {struct_name} {{",
            "int64_t perBlock;  // tiles of every core",
            "int64_t extra;  // the first cores take one more",
            "int64_t target;  // where it begins",
            "int64_t count;  // groups of elements that lie together in the result",
            "int64_t tile;  // groups of a tile",
            "int64_t pitch;  // elements from row to row of a tile",
            "int64_t rows;  // of a tile; the constant lies behind them",
            "int64_t span;  // elements of a row behind the first of its last group",
            "int64_t hasConstant;",
            "int64_t constant;",
            "int64_t outputSize;",
            f"int64_t extents[{MOST_OUTER}];",
            f"int64_t targetSteps[{MOST_OUTER}];",
            f"int64_t inputSizes[{inputs}];",
            f"{strip} strips[{strips}];",
            f"int64_t places[{width}];  // bytes before each element of the first group",
            f"int64_t steps[{width}];  // bytes to that of the next",
            "};",
        ]
    )
    kind = TYPES[size_bytes]
    words = {
        "TYPE": kind,
        "CLASS": class_name,
        "STRUCT": struct_name,
        "BLOCK": str(DATA_BLOCK_BYTES // size_bytes),
        "STRIPS": str(strips),
        "WIDTH": str(width),
        "INPUTS": str(inputs),
        "PARAMETERS": "".join(f"GM_ADDR x{index}, " for index in range(inputs)),
        "SOURCES": "\n".join(
            f"inputs[{index}].SetGlobalBuffer(reinterpret_cast<__gm__ {kind}*>(x{index}),"
            f" tiling.inputSizes[{index}]);"
            for index in range(inputs)
        ),
    }
    out = filled(_KERNEL, words)
    out.mark(location, "DataCopyPad(")
    names = (*(f"x{index}" for index in range(inputs)), "y")
    return KernelClass(name, class_name, struct_name, declaration, out, names)


_KERNEL = f"""
// A tile is copied in by rows of the inputs, gathered to groups of elements, and copied out as one row.
class CLASS {{
public:
__aicore__ inline void Init(PARAMETERSGM_ADDR y, const STRUCT& given)
{{
tiling = given;
{OWN_UNITS}
SOURCES
output.SetGlobalBuffer(reinterpret_cast<__gm__ TYPE*>(y), tiling.outputSize);
pipe.InitBuffer(queueIn, 2, {BUFFER_BYTES});
pipe.InitBuffer(queueOut, 2, {BUFFER_BYTES});
pipe.InitBuffer(placeBuffer, {MOST_PLACES} * sizeof(int32_t));
pipe.InitBuffer(groupBuffer, {MOST_PLACES} * sizeof(float));
pipe.InitBuffer(shiftBuffer, {MOST_PLACES} * sizeof(float));
pipe.InitBuffer(tableBuffer, 2 * {_MOST_WIDTH} * sizeof(float));
MakePlaces();
}}

__aicore__ inline void Process()
{{
const int64_t along = (tiling.count + tiling.tile - 1) / tiling.tile;
for (int64_t unit = first; unit < last; ++unit) {{
const int64_t group = unit % along * tiling.tile;
const int64_t groups = Less(tiling.count - group, tiling.tile);
int64_t sources[STRIPS];
for (int32_t strip = 0; strip < STRIPS; ++strip) {{
sources[strip] = tiling.strips[strip].offset + group * tiling.strips[strip].step;
}}
int64_t target = tiling.target + group * WIDTH;
int64_t rest = unit / along;
for (int32_t axis = {MOST_OUTER - 1}; axis >= 0; --axis) {{
const int64_t index = rest % tiling.extents[axis];
rest /= tiling.extents[axis];
target += index * tiling.targetSteps[axis];
for (int32_t strip = 0; strip < STRIPS; ++strip) {{
sources[strip] += index * tiling.strips[strip].steps[axis];
}}
}}
CopyIn(sources, groups);
Compute(groups);
CopyBack(output[target], 1, groups * WIDTH, 0, static_cast<int64_t>(Blocks(groups * WIDTH)) * BLOCK);
}}
}}

private:
// Where in a tile each element of the result lies: where that of the first group does, and a step for each group before.
__aicore__ inline void MakePlaces()
{{
LocalTensor<int32_t> found = placeBuffer.Get<int32_t>();
LocalTensor<float> index = found.ReinterpretCast<float>();
LocalTensor<float> group = groupBuffer.Get<float>();
LocalTensor<float> shift = shiftBuffer.Get<float>();
LocalTensor<float> table = tableBuffer.Get<float>();
LocalTensor<float> steps = table[{_MOST_WIDTH}];
for (uint32_t element = 0; element < WIDTH; ++element) {{
table.SetValue(element, static_cast<float>(tiling.places[element]));
steps.SetValue(element, static_cast<float>(tiling.steps[element]));
}}
const int32_t id = static_cast<int32_t>(pipe.FetchEventID(HardEvent::S_V));
SetFlag<HardEvent::S_V>(id);
WaitFlag<HardEvent::S_V>(id);
const int32_t elements = static_cast<int32_t>(tiling.tile * WIDTH);
Split(group, index, 1.0f * WIDTH, elements);
Muls(index, index, static_cast<float>(sizeof(float)), elements);
PipeBarrier<PIPE_V>();
Cast(found, index, RoundMode::CAST_ROUND, elements);
PipeBarrier<PIPE_V>();
Gather(shift, steps, found.ReinterpretCast<uint32_t>(), 0, static_cast<uint32_t>(elements));
PipeBarrier<PIPE_V>();
Mul(group, group, shift, elements);
PipeBarrier<PIPE_V>();
Gather(shift, table, found.ReinterpretCast<uint32_t>(), 0, static_cast<uint32_t>(elements));
PipeBarrier<PIPE_V>();
Add(shift, shift, group, elements);
PipeBarrier<PIPE_V>();
Cast(found, shift, RoundMode::CAST_ROUND, elements);
PipeBarrier<PIPE_V>();
places = found.ReinterpretCast<uint32_t>();
}}

__aicore__ inline void CopyIn(const int64_t* sources, int64_t groups)
{{
LocalTensor<TYPE> tile = queueIn.AllocTensor<TYPE>();
int64_t row = 0;
for (int32_t strip = 0; strip < STRIPS; ++strip) {{
const int64_t length = (groups - 1) * tiling.strips[strip].step + 1 + tiling.span;
const int64_t source = tiling.strips[strip].source;
const int64_t rows = tiling.strips[strip].rows;
// Behind the last group of one strip may lie less than behind that of another.
const int64_t left = tiling.inputSizes[source] - sources[strip] - (rows - 1) * tiling.strips[strip].rowStep;
CopyRows(tile[row * tiling.pitch], inputs[source], tiling.inputSizes[source], sources[strip], rows,
         Less(length, left), tiling.strips[strip].rowStep, tiling.pitch);
row += rows;
}}
queueIn.EnQue(tile);
}}

__aicore__ inline void Compute(int64_t groups)
{{
LocalTensor<TYPE> from = queueIn.DeQue<TYPE>();
LocalTensor<TYPE> to = queueOut.AllocTensor<TYPE>();
if (tiling.hasConstant != 0) {{
Duplicate(from[tiling.rows * tiling.pitch], static_cast<TYPE>(tiling.constant), BLOCK);
PipeBarrier<PIPE_V>();
}}
Gather(to, from, places, 0, static_cast<uint32_t>(groups * WIDTH));
queueIn.FreeTensor(from);
queueOut.EnQue(to);
}}
{COPY_ROWS}
{SPLIT}
TPipe pipe;
TQue<QuePosition::VECIN, 2> queueIn;
TQue<QuePosition::VECOUT, 2> queueOut;
TBuf<QuePosition::VECCALC> placeBuffer;
TBuf<QuePosition::VECCALC> groupBuffer;
TBuf<QuePosition::VECCALC> shiftBuffer;
TBuf<QuePosition::VECCALC> tableBuffer;
LocalTensor<uint32_t> places;
GlobalTensor<TYPE> inputs[INPUTS];
GlobalTensor<TYPE> output;
int64_t first = 0;
int64_t last = 0;
STRUCT tiling;
}};
"""
