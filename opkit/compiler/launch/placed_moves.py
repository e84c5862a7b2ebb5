"""How the device's library moves elements along an axis at places: what launches tell it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, NamedTuple

from ..codegen import least, most
from ..ir import Dimension, GraphError, Node, Shape, is_one, product, same

__all__ = ["MOST_AXES", "PlacedAxis", "PlacedMove", "placed_move"]

MOST_AXES = 6
"""Most axes of `opkit::kernels::ElementsPlan`."""
_GATHER, _PUT, _ADD = 0, 1, 2
"""Its actions."""
_LINE_BYTES = 64
"""Bytes of a line of a core's data cache."""
_BLOCK_BYTES = 96 * 1024
"""Bytes of the table that a core holds at once: `kBlockBytes` of `kernels/plans.h`."""
_PICK_CYCLES, _PUT_CYCLES = 2, 24
"""Cycles for an element that Gather picks by its index, and for one that the scalar unit puts."""
_MOST_WIDTH = 1024
_MOST_MASKS = 32
"""Places of which each has a mask: `kMostMasks` of `kernels/plans.h`."""
_LEAST_WORK = 64
"""Elements that a core is worth: the scalar unit takes some hundred cycles to go to one."""


class PlacedAxis(NamedTuple):
    """One axis of the move; steps count elements."""

    extent: Dimension
    plain_step: Dimension
    """In the tensor that has an element for each place."""
    table_step: Dimension
    index_step: Dimension


@dataclass(frozen=True)
class PlacedMove:
    """Members of an ElementsPlan."""

    action: int
    axes: tuple[PlacedAxis, ...]
    """The innermost first, neighbours joined where all three tensors run on."""
    has_rows: bool
    most_cores: int
    rows_together: int
    places: Dimension
    place_step: Dimension

    def cores(self, available: Any, extent_of: Callable[[Dimension], Any]) -> Any:
        """Return the cores that a launch takes: a number, or a term of the host's C++."""
        if self.most_cores:
            return self.most_cores
        total = extent_of(product(axis.extent for axis in self.axes))
        if self.action == _GATHER and not self.has_rows:
            return most(1, least(available, total // _LEAST_WORK))
        rows = extent_of(product(axis.extent for axis in self.axes[1:]))
        return most(1, least(available, rows // self.rows_together, total // _LEAST_WORK))

    def is_by_masks(self, size_bytes: int) -> bool:
        """Return whether blocks of columns are put by a mask for each of few places."""
        is_few = isinstance(self.places, int) and self.places <= _MOST_MASKS
        return self.action == _PUT and is_few and size_bytes in (2, 4)

    def cycles(self, size_bytes: int) -> float:
        """Return the cycles of a core for one element that is picked or put within a block."""
        if self.is_by_masks(size_bytes) and isinstance(self.places, int):
            return 1 + self.places / 16  # two instructions for each place and 64 elements
        return _PICK_CYCLES if self.action == _GATHER else _PUT_CYCLES

    def block_width(self, size_bytes: int, dtype: str, cores: int) -> tuple[int, int]:
        """Return the columns of the table of which a core has all places at once, and how many
        such blocks there are; 0 columns where they do not fit a core or would not help.

        `block_width` of `kernels/block_width.h` has the same rule for the torch device.
        """
        dims = [*self.axes, *[PlacedAxis(1, 0, 0, 0)] * (MOST_AXES - len(self.axes))]
        across, down = dims[0], dims[1]
        extents = [d.extent for d in dims]
        places, step = self.places, self.place_step
        if not all(isinstance(n, int) for n in (*extents, places, step)):
            return 0, 0
        if self.has_rows or (across.plain_step, across.index_step) != (1, 1):
            return 0, 0
        picks = self.action == _GATHER
        if picks and size_bytes not in (2, 4):
            return 0, 0
        if self.action == _ADD and dtype not in ("float32", "float16", "bfloat16"):
            return 0, 0
        if across.table_step == 0:
            fits = places * size_bytes <= _BLOCK_BYTES and step == 1
            return (1, math.prod(extents[1:])) if fits and picks and extents[0] >= 64 else (0, 0)
        if (across.table_step, down.table_step) != (1, 0) or extents[1] < 2:
            return 0, 0
        unit = 64 if self.is_by_masks(size_bytes) else 32 // min(size_bytes, 4)
        outer = math.prod(extents[2:])
        largest = min(_BLOCK_BYTES // (places * size_bytes), _MOST_WIDTH) // unit * unit
        fair = -(-extents[0] * outer // cores)
        width = min(largest, max(unit, -(-fair // unit) * unit))
        return (width, outer * -(-extents[0] // width)) if width else (0, 0)


def placed_move(
    node: Node, table: Shape, index: Shape, plain: Shape, size_bytes: int
) -> PlacedMove:
    """Return how the elements of `take_along` or `put_along` move, of contiguous tensors.

    Elements that go to one place are on one core, in order; so are those that go to one line of a
    core's data cache, which is written back as a whole.

    Args:
        node: with the axis.
        table: the shape that places lie in.
        index: that of the places.
        plain: that of the tensor with an element for each place.
        size_bytes: of an element.

    Raises:
        GraphError: the axes are too many, joined.
    """
    axis = node.settings.axis(len(table))
    is_put = node.operator == "put_along"
    action = _GATHER if not is_put else _ADD if node.settings["add"] else _PUT
    axes = _joined(plain, table, index, axis)[::-1]
    if len(axes) > MOST_AXES:
        raise GraphError(f"indices along {len(axes)} axes that do not join", location=node.location)
    is_row = all(map(same, axes[0][1:], (1, 1, 0)))
    is_apart = axis == len(table) - 1 and all(map(same, plain[:-1], table[:-1]))
    width = table[-1] * size_bytes if isinstance(table[-1], int) else 1
    return PlacedMove(
        action,
        axes,
        has_rows=is_row and (action != _ADD or node.output.dtype == "float32"),
        most_cores=1 if is_put and not is_apart else 0,
        rows_together=_LINE_BYTES // math.gcd(_LINE_BYTES, width) if is_put else 1,
        places=table[axis],
        place_step=product(table[axis + 1 :]),
    )


def _joined(plain: Shape, table: Shape, index: Shape, axis: int) -> tuple[PlacedAxis, ...]:
    """Return the axes, the outermost first."""
    table_steps, index_steps = _steps(table), _steps(index)
    table_steps[axis] = 0
    index_steps = [0 if is_one(n) else step for n, step in zip(index, index_steps, strict=True)]
    found: list[PlacedAxis] = []
    for row in map(PlacedAxis, plain, _steps(plain), table_steps, index_steps):
        if is_one(row.extent) and found:
            continue
        if found and all(
            same(o, s * row.extent) for o, s in zip(found[-1][1:], row[1:], strict=True)
        ):
            row = PlacedAxis(found.pop().extent * row.extent, *row[1:])
        found.append(row)
    return tuple(found)


def _steps(shape: Shape) -> list[Dimension]:
    return [product(shape[at + 1 :]) for at in range(len(shape))]
