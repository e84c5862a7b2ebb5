"""The numbers that a vector kernel gets with each launch: their layout."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from opkit.dtypes import find_dtype

from ...ir import Dimension, step_size
from .slots import Plan
from .steps import Derived, Field, Operand

__all__ = ["TilingField", "TilingLayout", "element_bytes", "layout_of"]


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
        if program.schedule != "lines":
            wide.append(TilingField("rowsPerBatch", "int64_t"))
            wide.append(TilingField("partsPerRow", "int64_t"))
    if program.schedule not in ("rows", "lines"):
        wide.append(TilingField("columns", "int64_t", "elements of a row"))
    tensors = [*program.inputs, *(tensor for tensor, _ in program.outputs)]
    sizes = []
    strides: list[tuple[str, Dimension]] = []
    batch_axes = range(len(domain.batches))
    down = program.schedule in ("down", "blocks")
    partial = [
        t
        for t in tensors
        if any(domain.varies[t.name][:-2])
        and (down or t.name in domain.windows or not all(domain.varies[t.name][:-1]))
    ]
    for axis in batch_axes:
        if partial and axis > 0:
            wide.append(TilingField(f"extent{axis}", "int64_t"))
            strides.append((f"extent{axis}", domain.batches[axis]))
    for tensor in tensors:
        stem = stems[tensor.name]
        varies = domain.varies[tensor.name]
        wide.append(TilingField(f"{stem}Size", "int64_t"))
        extents = tuple(e for e, v in zip(domain.extents, varies, strict=True) if v)
        if tensor.name in program.one_row:
            step = step_size(tensor.name)
            wide.append(TilingField(f"{stem}Step", "int64_t", "from row to row; 0: one for all"))
            strides.append((f"{stem}Step", step))
            extents = ((domain.rows - 1) * step + domain.columns,)
        window = domain.windows.get(tensor.name)
        if window is not None:
            extents = (window.size,)
            wide.append(TilingField(f"{stem}Begin", "int64_t", "where the part begins"))
            strides.append((f"{stem}Begin", window.begin))
            if varies[-2] and varies[-1]:
                wide.append(TilingField(f"{stem}Step", "int64_t", "from row to row"))
                strides.append((f"{stem}Step", window.strides[-2]))
        sizes.append((f"{stem}Size", extents))
        if tensor in partial:
            for axis in batch_axes:
                if varies[axis]:
                    wide.append(TilingField(f"{stem}Stride{axis}", "int64_t"))
                    strides.append((f"{stem}Stride{axis}", domain.strides(tensor.name)[axis]))
    narrow = [TilingField("tileLength", "uint32_t", "elements that a tile has room for")]
    if program.schedule in ("rows", "lines"):
        narrow.append(TilingField("columns", "uint32_t", "elements of a row"))
        narrow.append(TilingField("stride", "uint32_t", "elements from row to row in the buffer"))
        narrow.append(TilingField("rowsPerTile", "uint32_t"))
        narrow.append(
            TilingField("byChunk", "uint32_t", "1: one instruction for 64 columns of all rows")
        )
    if plan.reduces_rows and not down:
        narrow.append(TilingField("workLength", "uint32_t", "elements that reductions use"))
    if program.schedule == "lines":
        narrow.append(TilingField("partLength", "uint32_t", "columns of a tile, at most"))
        narrow.append(
            TilingField("unit", "uint32_t", "elements that a row's room is a multiple of")
        )
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
    has_gap = program.schedule != "parts" and len(moved) > 1
    return TilingLayout(
        *(plan, (*wide, *narrow), field_of, tuple(sizes), tuple(strides), has_gap),
        copies_blocks=copies_blocks,
    )


def _field(operand: Operand) -> Field | None:
    if isinstance(operand, Derived):
        return _field(operand.operand)
    return operand if isinstance(operand, Field) else None


def element_bytes(dtype: str) -> int:
    """Return the bytes of one element."""
    row = find_dtype(dtype)
    assert row is not None
    return row.size_bytes
