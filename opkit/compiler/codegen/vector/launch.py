"""How a vector kernel is launched: the part of the unified buffer that a tile takes, what each core
does, and the values of the tiling data.

What is computed here is Python's numbers for a launch from Python, and terms of C++ where the
host's tiling function is written (`host_tiling`).
"""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from opkit.chips import DATA_BLOCK_BYTES, REPEAT_BYTES, Chip
from opkit.errors import UsageError

from ...choices import OWN_CHOICES, Choices
from ...ir import Dimension, evaluate, product
from ..core_count import fair_cores
from ..launch_numbers import (
    Number,
    Term,
    both,
    choose,
    divide_up,
    least,
    most,
    named,
    whole_quotient,
)
from ..tiles import Split, split
from .slots import Plan
from .tiling import TilingLayout, element_bytes

__all__ = [
    "LARGEST_REPEAT",
    "DoesNotFit",
    "Launch",
    "Shares",
    "cores_for",
    "fill_values",
    "launch_for",
    "pack_values",
    "row_stride",
    "row_unit",
    "shares_at",
    "shares_of",
    "tensor_values",
    "tile_for",
]

LARGEST_REPEAT = 248
"""Rows of a tile at most: one instruction repeats 255 times, and eight rows share a block."""
_DOWN_WIDTH = 1024
"""Columns of a unit where rows are reduced, at most."""
_LEAST_TILE = 1024
"""Elements below which a tile is not worth a core of its own."""
_FEWEST_PARTIAL = 4
"""Rows that are worth a core where each is a copy of its own."""
_LONGEST_LINE = 15872
"""Columns of a tile that one instruction covers, 64 a repeat: 248 repeats."""
_LARGEST_STEP = 2040
"""Elements from row to row that an instruction steps over: 255 blocks of 32 bytes."""


_COSTS = {
    **dict.fromkeys(("Exp", "Ln", "Sqrt"), "timing.cost.vec_transcendental.float32"),
    **dict.fromkeys(("Div", "DivRow", "DivColumn"), "timing.cost.vec_div.any"),
    **dict.fromkeys(("Select", "Selects"), "timing.cost.vec_select.any"),
    **dict.fromkeys(("Reduce", "Fold"), "timing.op.WholeReduceSum.float32"),
}
"""The chip's number for a repeat of a step; others cost a repeat of the vector unit's own pace."""


class DoesNotFit(UsageError):
    """A tile does not fit the unified buffer."""


@dataclass(frozen=True)
class Launch:
    """A kernel's launch for given shapes."""

    block_dim: int
    data: bytes
    split: Split
    values: Mapping[str, float]


@dataclass(frozen=True)
class Shares:
    """What each core of a launch does."""

    block_dim: Any
    split: Split
    values: dict[str, Any]
    """Fields of the tiling data, except tensor sizes and numbers that come with a launch."""


def row_unit(plan: Plan) -> Any:
    """Return the elements that rows of the narrowest type begin at multiples of."""
    return 32 // plan.least_bytes()


def row_stride(plan: Plan, columns: Any) -> Any:
    """Return the elements from row to row in the buffer."""
    unit = named("unit", most(8, row_unit(plan)))
    return divide_up(columns, unit) * unit


def tile_for(plan: Plan, chip: Chip, columns: Any) -> Any:
    """Return the elements of the largest tile for rows of this length; 0 where no row fits."""
    ub = chip.count("memory.ub_bytes")
    schedule = plan.program.schedule
    fixed: Any = plan.fixed_bytes()
    per_element = plan.bytes_per_element()
    if schedule == "down":
        columns = _DOWN_WIDTH
    if schedule == "parts":
        if plan.reduces_rows:
            per_element, fixed = per_element + 0.75, fixed + 1024
        return whole_quotient(ub - fixed, per_element) // 256 * 256
    stride = named("stride", row_stride(plan, columns))
    fixed = fixed + 4 * (stride + 64) * plan.counts.get("column", 0)
    if plan.reduces_rows:
        # Rows that reductions fold 64 columns at a time need those for every row.
        folds = both(stride > 64, stride <= _LARGEST_STEP)
        per_element = named("perElement", per_element + choose(folds, 256 / stride, 0) + 0.75)
        fixed = fixed + 1024
    if schedule == "lines":
        return whole_quotient(ub - fixed, per_element) // 256 * 256
    room = named("largest", whole_quotient(ub - fixed, per_element) // 256 * 256)
    return choose(room >= divide_up(stride, 256) * 256, room, 0)


def cores_for(plan: Plan, chip: Chip, elements: Number, cores: Number, columns: Number) -> Any:
    """Return how many cores a launch of so many elements is worth, of those that there are.

    Args:
        columns: elements of a row.
    """
    passes = plan.program.passes
    repeats = 0.0
    for section in passes:
        for step in section.steps:
            if step.operation not in ("Load", "Read") and "tile" in step.spaces:
                repeats += chip.number(_COSTS.get(step.operation, "timing.cost.vec_alu.any"))
    again = len(passes) if plan.program.schedule in ("parts", "down") else 1
    return fair_cores(
        *(chip, elements, cores),
        vector_cycles=repeats / (REPEAT_BYTES // 4),
        read_bytes=again * sum(size for _, size in plan.input_bytes),
        written_bytes=sum(size for _, size in plan.output_bytes),
        partial_rows=_partial_rows(plan, columns),
        columns=columns,
    )


def _partial_rows(plan: Plan, columns: Number) -> Any:
    """Return how many rows that are no whole blocks a kernel copies for each of its own, one way:
    such are copied one by one. None where a tile is no rows."""
    if plan.program.schedule not in ("rows", "lines"):
        return 0

    def count(tensors: Sequence[tuple[str, int]]) -> Any:
        sizes = Counter(size for _, size in tensors)
        parts = (
            choose(columns * size % DATA_BLOCK_BYTES > 0, number, 0)
            for size, number in sizes.items()
        )
        return sum(parts)

    return named("partialRows", most(count(plan.input_bytes), count(plan.output_bytes)))


def _enough_rows(plan: Plan, columns: Number, stride: Any) -> Any:
    """Return the rows that are worth a core, beside others that take as many."""
    alone = choose(_partial_rows(plan, columns) > 0, _LEAST_TILE // _FEWEST_PARTIAL, 1)
    return named("enough", most(1, _LEAST_TILE // most(stride, named("alone", alone))))


def launch_for(
    layout: TilingLayout,
    chip: Chip,
    sizes: Mapping[str, int],
    scalars: Mapping[str, float],
    choices: Choices = OWN_CHOICES,
) -> Launch:
    """Return the launch of a kernel for named sizes.

    Args:
        choices: limits on cores and tiles; what does not fit the chip is made to.

    Raises:
        DoesNotFit: a row is too long for the schedule of whole rows, or even the least tile for
        the buffer.
        UsageError: rows are no multiple of the blocks that the chip copies.
    """

    def extent_of(extent: Dimension) -> int:
        return evaluate(extent, sizes)

    if layout.copies_blocks:
        _check_blocks(layout.plan, chip, extent_of(layout.plan.program.domain.columns))
    cores = chip.count("cores.aiv") or chip.count("cores.aic")
    shares = shares_at(
        layout, chip, cores, extent_of, most_cores=choices.cores, rounds=choices.tiles or 1
    )
    shares.values.update({field: scalars[tensor] for tensor, field in layout.field_of.items()})
    data = pack_values(layout, shares.values)
    return Launch(shares.block_dim, data, shares.split, shares.values)


def shares_at(
    layout: TilingLayout,
    chip: Chip,
    cores: Number,
    extent_of: Callable[[Dimension], Any],
    *,
    most_cores: int = 0,
    rounds: Number = 1,
    parts: Number = 1,
) -> Shares:
    """Return what each core of a launch does, with the tensors' sizes and strides.

    Args:
        cores: that the chip has.
        extent_of: an extent as a number, or as a term of the host's C++.
        most_cores: in place of as many as make the launch shortest.
        rounds: into how many tiles the longest share of a core is cut, at least.
        parts: into how many a row is cut, at least, where one kernel serves both.
    Raises:
        DoesNotFit: not even the least tile fits. The host's function returns 0 then.
    """
    plan = layout.plan
    domain = plan.program.domain
    columns = extent_of(domain.columns)
    batches = product(extent_of(extent) for extent in domain.batches)
    room = named("room", tile_for(plan, chip, columns))
    if isinstance(room, Term):
        if plan.program.schedule in ("rows", "down"):
            room.host.lines += [f"if ({room.text} == 0) {{", "return 0;", "}"]
    elif room == 0:
        need = plan.fixed_bytes() + int(plan.bytes_per_element() * 256)
        which = "rows" if isinstance(columns, Term) else f"a row of {columns} elements"
        raise DoesNotFit(
            f"the tile of a kernel over {which} takes more than the"
            f" {chip.count('memory.ub_bytes')} bytes of UB"
            f" ({need} bytes already for 256 elements)"
        )
    rows = extent_of(domain.rows)
    used = (
        least(cores, most_cores)
        if most_cores
        else cores_for(plan, chip, columns * rows * batches, cores, columns)
    )
    shares = shares_of(layout, used, room, columns, rows, batches, rounds, parts)
    return replace(shares, values=shares.values | tensor_values(layout, extent_of))


def shares_of(
    layout: TilingLayout,
    cores: Number,
    room: Number,
    columns: Number,
    rows_per_batch: Number,
    batches: Number,
    rounds: Number = 1,
    parts: Number = 1,
) -> Shares:
    """Return what each core does.

    Args:
        cores: at most.
        room: the elements of the largest tile.
        columns: elements of a row, one at least.
        rounds: into how many tiles the longest share of a core is cut, at least.
        parts: into how many a row is cut, at least, where one kernel serves both.
    """
    rows = named("rows", rows_per_batch * batches)
    schedule = layout.plan.program.schedule
    share = {"rows": _share_rows, "down": _share_down}.get(schedule)
    if schedule == "lines":
        shares = _share_lines(layout, cores, room, columns, rows, rounds, parts)
    elif share is not None:
        shares = share(layout, cores, room, columns, rows, rows_per_batch, rounds)
    else:
        shares = _share_parts(layout, cores, room, columns, rows, rounds)
    values = shares.values
    values = {"rowsPerBatch": rows_per_batch, "columns": columns, "partsPerRow": 1, **values}
    length = values["tileLength"] // 64 * 10 + 128
    if "stride" in values:
        # Reductions of rows that one repeat covers need no such room, and `tile_for` leaves none.
        folds = both(values["byChunk"] > 0, values["stride"] > 64)
        length = most(length, choose(folds, 64 * values["rowsPerTile"], 0))
    values["workLength"] = length
    return Shares(shares.block_dim, shares.split, values)


def _share_rows(
    layout: TilingLayout,
    cores: Number,
    room: Any,
    columns: Any,
    rows: Any,
    rows_per_batch: Any,
    rounds: Any,
) -> Shares:
    """Whole rows a tile."""
    plan = layout.plan
    stride = named("stride", row_stride(plan, columns))
    most_rows = least(LARGEST_REPEAT, room // stride)
    enough = _enough_rows(plan, columns, stride)
    used = named("used", least(cores, most(1, divide_up(rows, enough))))
    cut = split(rows, cores=used, width=most_rows * plan.buffers, buffers=plan.buffers)
    longest = named("perCore", divide_up(rows, used))
    tile = named("rowsPerTile", least(cut.tile, rows_per_batch, divide_up(longest, rounds)))
    block_dim = named("blockDim", least(used, rows))
    return Shares(
        block_dim,
        cut,
        {
            "stride": stride,
            **_tile_values(stride, tile),
            **_even(rows, block_dim),
        },
    )


def _share_lines(
    layout: TilingLayout,
    cores: Number,
    room: Any,
    columns: Any,
    rows: Any,
    rounds: Any,
    parts: Any,
) -> Shares:
    """Whole rows a tile, or parts of one."""
    plan = layout.plan
    unit = named("unit", most(8, row_unit(plan)))
    longest = least(room, _LONGEST_LINE, divide_up(divide_up(columns, parts), 64) * 64)
    part = named("partLength", least(columns, longest))
    stride = named("partStride", divide_up(part, unit) * unit)
    fitting = choose(part < columns, 1, least(LARGEST_REPEAT, room // stride))
    fitting = named("fittingRows", fitting)
    enough = _enough_rows(plan, columns, stride)
    used = named("used", least(cores, most(1, divide_up(rows, enough))))
    cut = split(rows, cores=used, width=fitting * plan.buffers, buffers=plan.buffers)
    share = named("perCore", divide_up(rows, used))
    tile = least(cut.tile, divide_up(share, rounds))
    tile = named("rowsPerTile", choose(part < columns, 1, tile))
    block_dim = named("blockDim", least(used, rows))
    values = _tile_values(stride, tile)
    # A total of several parts is not of one instruction.
    values["byChunk"] = named("chunks", choose(part < columns, 0, values["byChunk"]))
    return Shares(
        block_dim,
        cut,
        {"stride": stride, "partLength": part, "unit": unit, **values, **_even(rows, block_dim)},
    )


def _share_down(
    layout: TilingLayout,
    cores: Number,
    room: Any,
    columns: Any,
    rows: Any,
    rows_per_batch: Any,
    rounds: Any,
) -> Shares:
    """Parts of columns, from top to bottom."""
    unit = named("unit", most(8, row_unit(layout.plan)))
    batches = named("batches", rows // rows_per_batch)
    wanted = divide_up(columns * batches, cores)
    part = least(_DOWN_WIDTH, most(64, divide_up(wanted, 64) * 64), divide_up(columns, unit) * unit)
    part = named("part", part)
    parts = named("parts", divide_up(columns, part))
    stride = named("stride", divide_up(part, unit) * unit)
    tile = least(LARGEST_REPEAT, room // stride, divide_up(rows_per_batch, rounds))
    tile = named("rowsPerTile", tile)
    units = named("units", batches * parts)
    block_dim = named("blockDim", least(cores, units))
    return Shares(
        block_dim,
        Split(units, 1, units, block_dim),
        {
            "partsPerRow": parts,
            "partLength": stride,
            "unit": unit,
            **_tile_values(stride, tile),
            **_even(units, block_dim),
        },
    )


def _share_parts(
    layout: TilingLayout, cores: Number, room: Any, columns: Any, rows: Any, rounds: Any
) -> Shares:
    """Parts of a row; all parts of one for the same core where the row is reduced."""
    plan = layout.plan
    steps = [step for section in plan.program.sections for step in section.steps]
    if any(step.operation == "Accumulate" for step in steps):
        tile = named("tile", least(room, divide_up(columns, 256 * rounds) * 256))
        parts = divide_up(columns, tile)
        things: Any = rows
        used: Any = cores
        cut = Split(rows, 1, rows, least(cores, rows))
    else:
        used = named("used", least(cores, most(1, divide_up(rows * columns, _LEAST_TILE))))
        per_row = named("coresPerRow", choose(rows < used, used // rows, 1))
        width = room * plan.buffers
        row_cut = split(columns, cores=per_row, width=width, buffers=plan.buffers, unit=256)
        share = named("perCore", divide_up(columns, per_row))
        tile = named("tile", least(row_cut.tile, divide_up(share, 256 * rounds) * 256))
        parts = named("parts", divide_up(columns, tile))
        things = named("tiles", rows * parts)
        cut = Split(rows * columns, tile, things, least(used, things))
    block_dim = named("blockDim", cut.cores)
    return Shares(
        block_dim,
        cut,
        {
            "partsPerRow": parts,
            "tileLength": named("tileLength", divide_up(tile, 256) * 256),
            **_even(things, block_dim),
        },
    )


def _tile_values(stride: Any, rows: Any) -> dict[str, Any]:
    """Return what says how large a tile of whole rows, or of parts of them, is."""
    # One instruction takes 64 columns of all rows.
    fits = both(stride <= _LARGEST_STEP, rows >= divide_up(stride, 64))
    return {
        "rowsPerTile": rows,
        "tileLength": named("tileLength", divide_up(rows * stride, 256) * 256),
        "byChunk": named("byChunk", choose(fits, 1, 0)),
    }


def _even(things: Any, cores: Any) -> dict[str, Any]:
    """Return how many each core takes, and how many cores take one more."""
    return {"perBlock": things // cores, "extra": things % cores}


def _check_blocks(plan: Plan, chip: Chip, columns: int) -> None:
    """Refuse rows that are no whole blocks."""
    tensors = (*plan.program.inputs, *(tensor for tensor, _ in plan.program.outputs))
    for tensor in tensors:
        if columns * element_bytes(tensor.dtype) % 32:
            raise UsageError(
                f"rows of {columns} {tensor.dtype} are no multiple of 32 bytes, which"
                f" {chip.name} copies",
                help="pad the last axis",
            )


def fill_values(
    layout: TilingLayout,
    values: dict[str, float],
    sizes: Mapping[str, int],
    scalars: Mapping[str, float],
) -> None:
    """Add what every schedule has: the tensors' sizes and strides, and the numbers of a launch."""
    values |= tensor_values(layout, lambda extent: evaluate(extent, sizes))
    for tensor, field in layout.field_of.items():
        values[field] = scalars[tensor]


def tensor_values(layout: TilingLayout, extent_of: Callable[[Dimension], Any]) -> dict[str, Any]:
    """Return the tensors' sizes and strides, in elements."""
    values = {name: product(map(extent_of, extents)) for name, extents in layout.sizes}
    return values | {name: extent_of(stride) for name, stride in layout.strides}


def pack_values(layout: TilingLayout, values: Mapping[str, float]) -> bytes:
    """Return the tiling data."""
    code = "=" + "".join(field.code for field in layout.fields)
    numbers = []
    for field in layout.fields:
        value = values.get(field.name, 0)
        numbers.append(float(value) if field.cpp_type == "float" else int(value))
    return struct.pack(code, *numbers)
