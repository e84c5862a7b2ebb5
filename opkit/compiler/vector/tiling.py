"""The numbers that a vector kernel gets with each launch: their layout, and their values for given
shapes."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from opkit.chips import Chip
from opkit.dtypes import find_dtype
from opkit.errors import UsageError

from ..choices import OWN_CHOICES, Choices
from ..dimensions import Dimension, evaluate
from ..text import identifier
from ..tiles import Split, split
from .plan import ROW_CAPACITY, Plan
from .steps import Derived, Field, Operand

__all__ = [
    "LARGEST_REPEAT",
    "DoesNotFit",
    "Launch",
    "TilingField",
    "TilingLayout",
    "fill_values",
    "launch_for",
    "layout_of",
    "pack_values",
    "row_stride",
    "row_unit",
    "tile_for",
]

LARGEST_REPEAT = 248
"""Rows of a tile at most: one instruction repeats 255 times, and eight rows share a block."""
_DOWN_WIDTH = 1024
"""Columns of a unit where rows are reduced, at most."""
_LEAST_TILE = 1024
"""Elements below which a tile is not worth a core of its own."""


class DoesNotFit(UsageError):
    """A tile does not fit the unified buffer."""


@dataclass(frozen=True)
class TilingField:
    """One member of the tiling structure."""

    name: str
    cpp_type: str
    note: str = ""

    @property
    def code(self) -> str:
        """How Python's struct packs it."""
        return {"int64_t": "q", "uint32_t": "I", "int32_t": "i", "float": "f"}[self.cpp_type]


@dataclass(frozen=True)
class Launch:
    """A kernel's launch for given shapes."""

    block_dim: int
    data: bytes
    split: Split
    values: Mapping[str, float]


@dataclass(frozen=True)
class TilingLayout:
    """The members, and what the host must know to fill them."""

    plan: Plan
    fields: tuple[TilingField, ...]
    field_of: Mapping[str, str]
    """The member of each scalar tensor."""
    sizes: tuple[tuple[str, tuple[Dimension, ...]], ...]
    """Stem of each tensor, and the extents along which it varies."""
    strides: tuple[tuple[str, Dimension], ...]
    has_gap: bool
    """Whether rows of some type end more than a block before the stride."""
    copies_blocks: bool = False
    """Whether the chip copies whole blocks of 32 bytes only: it has no DataCopyPad."""

    @cached_property
    def has_single_row(self) -> bool:
        """Whether there is one row for certain."""
        domain = self.plan.program.domain
        return len(domain.extents) == 2 and isinstance(domain.rows, int) and domain.rows == 1

    @cached_property
    def splits_batches(self) -> bool:
        """Whether a tile stays within a batch."""
        return bool(self.plan.program.domain.batches)


def layout_of(
    plan: Plan,
    stems: Mapping[str, str],
    lead: Sequence[TilingField] = (),
    *,
    copies_blocks: bool = False,
) -> TilingLayout:
    """Return the tiling structure of a kernel.

    Args:
        plan: the kernel.
        stems: its tensors' names in C++.
        lead: members that come first, in place of those that give rows and tiles to cores.
        copies_blocks: the chip copies whole blocks of 32 bytes only.
    """
    program = plan.program
    domain = program.domain
    wide = [*lead]
    if not lead:
        wide.append(TilingField("perBlock", "int64_t", "tiles or rows of every core"))
        wide.append(TilingField("extra", "int64_t", "the first cores take one more"))
        wide.append(TilingField("rowsPerBatch", "int64_t"))
        wide.append(TilingField("partsPerRow", "int64_t"))
    if program.schedule != "rows":
        wide.append(TilingField("columns", "int64_t", "elements of a row"))
    tensors = [*program.inputs, *(tensor for tensor, _ in program.outputs)]
    sizes = []
    strides: list[tuple[str, Dimension]] = []
    batch_axes = range(len(domain.batches))
    down = program.schedule in ("down", "blocks")
    partial = [
        t
        for t in tensors
        if any(domain.varies[t.name][:-2]) and (down or not all(domain.varies[t.name][:-1]))
    ]
    for axis in batch_axes:
        if partial and axis > 0:
            wide.append(TilingField(f"extent{axis}", "int64_t"))
            strides.append((f"extent{axis}", domain.batches[axis]))
    for tensor in tensors:
        stem = stems[tensor.name]
        varies = domain.varies[tensor.name]
        wide.append(TilingField(f"{stem}Size", "int64_t"))
        sizes.append(
            (f"{stem}Size", tuple(e for e, v in zip(domain.extents, varies, strict=True) if v))
        )
        if tensor in partial:
            for axis in batch_axes:
                if varies[axis]:
                    wide.append(TilingField(f"{stem}Stride{axis}", "int64_t"))
                    strides.append((f"{stem}Stride{axis}", domain.strides(tensor.name)[axis]))
    narrow = [TilingField("tileLength", "uint32_t", "elements that a tile has room for")]
    if program.schedule == "rows":
        narrow.append(TilingField("columns", "uint32_t", "elements of a row"))
        narrow.append(TilingField("stride", "uint32_t", "elements from row to row in the buffer"))
        narrow.append(TilingField("rowsPerTile", "uint32_t"))
        narrow.append(
            TilingField("byChunk", "uint32_t", "1: one instruction for 64 columns of all rows")
        )
    if plan.reduces_rows and not down:
        narrow.append(TilingField("workLength", "uint32_t", "elements that reductions use"))
    if down:
        narrow.append(TilingField("partLength", "uint32_t", "columns of a unit, at most"))
        narrow.append(
            TilingField("unit", "uint32_t", "elements that a row's room is a multiple of")
        )
        narrow.append(TilingField("rowsPerTile", "uint32_t"))
        narrow.append(TilingField("byChunk", "uint32_t", "1: one instruction for 64 columns"))
    field_of: dict[str, str] = {}
    for section in program.sections:
        for step in section.steps:
            for source in step.sources:
                given = _field(source)
                if given is not None and given.tensor not in field_of:
                    name = f"factor{len(field_of)}"
                    field_of[given.tensor] = name
                    narrow.append(TilingField(name, "int32_t" if given.is_integer else "float"))
    if (len(narrow)) % 2:
        narrow.append(TilingField("reserved", "uint32_t"))
    moved = {size for _, size in (*plan.input_bytes, *plan.output_bytes)}
    has_gap = program.schedule in ("rows", "down", "blocks") and len(moved) > 1
    return TilingLayout(
        *(plan, (*wide, *narrow), field_of, tuple(sizes), tuple(strides), has_gap),
        copies_blocks=copies_blocks,
    )


def _field(operand: Operand) -> Field | None:
    if isinstance(operand, Derived):
        return _field(operand.operand)
    return operand if isinstance(operand, Field) else None


def row_unit(plan: Plan) -> int:
    """Return the elements that rows of the narrowest type begin at multiples of."""
    smallest = min([size for _, size in (*plan.input_bytes, *plan.output_bytes)], default=4)
    return 32 // smallest


def row_stride(plan: Plan, columns: int) -> int:
    """Return the elements from row to row in the buffer."""
    unit = max(8, row_unit(plan))
    return -(-columns // unit) * unit


def tile_for(plan: Plan, chip: Chip, columns: int) -> int:
    """Return the elements of the largest tile for rows of this length; 0 where no row fits."""
    ub = chip.count("memory.ub_bytes")
    program = plan.program
    fixed = plan.fixed_bytes()
    per_element = max(plan.bytes_per_element(), 1.0)
    if program.schedule == "down":
        columns = _DOWN_WIDTH
    if program.schedule == "parts":
        if plan.reduces_rows:
            per_element, fixed = per_element + 0.75, fixed + 1024
        return int((ub - fixed) / per_element) // 256 * 256
    stride = row_stride(plan, columns)
    fixed += 4 * (stride + 64) * plan.counts.get("column", 0)
    if plan.reduces_rows:
        # Rows that reductions fold 64 columns at a time need those for every row.
        per_element += 4 * (64 / stride if 64 < stride <= 2040 else 0) + 0.75
        fixed += 1024
    room = int((ub - fixed) / per_element) // 256 * 256
    return room if room >= -(-stride // 256) * 256 else 0


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
    plan = layout.plan
    program = plan.program
    domain = program.domain
    columns = evaluate(domain.columns, sizes)
    if layout.copies_blocks:
        _check_blocks(plan, chip, columns)
    per_batch = evaluate(domain.rows, sizes)
    rows = per_batch
    for extent in domain.batches:
        rows *= evaluate(extent, sizes)
    cores = chip.count("cores.aiv") or chip.count("cores.aic")
    cores = min(cores, choices.cores or cores)
    rounds = choices.tiles or 1
    room = tile_for(plan, chip, columns)
    if room == 0:
        need = plan.fixed_bytes() + int(plan.bytes_per_element() * 256)
        raise DoesNotFit(
            f"a row of {columns} elements takes more than the"
            f" {chip.count('memory.ub_bytes')} bytes of UB"
            f" ({need} bytes already for 256 elements)"
        )
    values: dict[str, float] = {"rowsPerBatch": per_batch, "columns": columns, "partsPerRow": 1}
    if program.schedule == "rows":
        stride = row_stride(plan, columns)
        most = min(LARGEST_REPEAT, room // stride)
        least = max(1, _LEAST_TILE // stride)
        used = min(cores, max(1, -(-rows // least)))
        cut = split(rows, cores=used, width=most * plan.buffers, buffers=plan.buffers)
        longest = -(-rows // used)
        tile = min(cut.tile, per_batch, -(-longest // rounds))
        chunks = -(-stride // 64)
        values |= {
            "stride": stride,
            "rowsPerTile": tile,
            "tileLength": -(-tile * stride // 256) * 256,
            "byChunk": int(stride <= 2040 and tile >= chunks),
        }
        block_dim = min(used, rows)
        each, extra = divmod(rows, block_dim)
    elif program.schedule == "down":
        unit = max(8, row_unit(plan))
        batches = rows // per_batch
        wanted = -(-columns * batches // cores)
        part = min(_DOWN_WIDTH, max(64, -(-wanted // 64) * 64), -(-columns // unit) * unit)
        parts = -(-columns // part)
        stride = -(-part // unit) * unit
        tile = min(LARGEST_REPEAT, room // stride, -(-per_batch // rounds))
        cut = Split(batches * parts, 1, batches * parts, min(cores, batches * parts))
        block_dim, (each, extra) = cut.cores, divmod(batches * parts, cut.cores)
        values |= {
            "partsPerRow": parts,
            "partLength": stride,
            "unit": unit,
            "rowsPerTile": tile,
            "tileLength": -(-tile * stride // 256) * 256,
            "byChunk": int(stride <= 2040 and tile >= -(-stride // 64)),
        }
    else:
        reduces = any(s.operation == "Accumulate" for sec in program.sections for s in sec.steps)
        if reduces:
            tile = min(room, -(-columns // (256 * rounds)) * 256)
            parts = -(-columns // tile)
            cut = Split(rows, 1, rows, min(cores, rows))
            block_dim, (each, extra) = cut.cores, divmod(rows, cut.cores)
        else:
            used = min(cores, max(1, -(-rows * columns // _LEAST_TILE)))
            per_row = max(1, used // rows) if rows < used else 1
            row_cut = split(
                columns, cores=per_row, width=room * plan.buffers, buffers=plan.buffers, unit=256
            )
            share = -(-columns // per_row)
            tile = min(row_cut.tile, -(-share // (256 * rounds)) * 256)
            parts = -(-columns // tile)
            cut = Split(rows * columns, tile, rows * parts, min(used, rows * parts))
            block_dim, (each, extra) = cut.cores, divmod(rows * parts, cut.cores)
        values |= {"partsPerRow": parts, "tileLength": -(-tile // 256) * 256}
    values |= {"perBlock": each, "extra": extra}
    chunked = 64 * (values["rowsPerTile"] if values.get("byChunk") else 0)
    values["workLength"] = max(chunked, int(values["tileLength"]) // 64 * 10 + 128)
    fill_values(layout, values, sizes, scalars)
    return Launch(block_dim, pack_values(layout, values), cut, values)


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
    for name, extents in layout.sizes:
        total = 1
        for extent in extents:
            total *= evaluate(extent, sizes)
        values[name] = total
    for name, stride_of in layout.strides:
        values[name] = evaluate(stride_of, sizes)
    for tensor, field in layout.field_of.items():
        values[field] = scalars[tensor]


def pack_values(layout: TilingLayout, values: Mapping[str, float]) -> bytes:
    code = "=" + "".join(field.code for field in layout.fields)
    numbers = []
    for field in layout.fields:
        value = values.get(field.name, 0)
        numbers.append(float(value) if field.cpp_type == "float" else int(value))
    return struct.pack(code, *numbers)


def stem_of(name: str) -> str:
    """Return a tensor's name in C++."""
    return identifier(name)


def element_bytes(dtype: str) -> int:
    """Return the bytes of one element."""
    row = find_dtype(dtype)
    assert row is not None
    return row.size_bytes


ROWS_AT_MOST = min(ROW_CAPACITY, LARGEST_REPEAT)
