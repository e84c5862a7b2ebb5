"""Rows of the operators that pick or put elements along an axis at places that a tensor names."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from opkit.errors import UsageError

from .dimensions import Dimension, Shape, is_one, product, same, shape_text
from .table import REQUIRED, Operator, Settings, as_first, normal_axes

if TYPE_CHECKING:
    from .builder import Value
    from .graph import Tensor

__all__ = [
    *(
        "ADD",
        "GATHER",
        "MOST_AXES",
        "PUT",
        "ROWS",
        "PlacedAxis",
        "joined_axes",
        "moves_apart",
        "rows_together",
    ),
]

GATHER, PUT, ADD = 0, 1, 2
"""`opkit::kernels::ElementsPlan`'s actions."""
MOST_AXES = 6
"""Its axes."""
_LINE_BYTES = 64
"""Of a core's data cache."""


class PlacedAxis(NamedTuple):
    """One axis of a kernel that moves elements by places; steps count elements."""

    extent: Dimension
    plain_step: Dimension
    """In the tensor that has an element for each place."""
    table_step: Dimension
    index_step: Dimension


def joined_axes(plain: Shape, table: Shape, index: Shape, axis: int) -> tuple[PlacedAxis, ...]:
    """Return the axes of a kernel that moves elements along one axis of contiguous tensors, the
    outermost first, neighbours joined where all three run on."""
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


def moves_apart(action: int, plain: Shape, table: Shape, axis: int) -> bool:
    """Return whether cores may share the lines: what goes to one place is then on one core, and
    rows are all of the table's, so that `rows_together` hold whole lines of a data cache."""
    outer = [shape[:-1] for shape in (plain, table)]
    return action == GATHER or (axis == len(table) - 1 and all(map(same, *outer)))


def rows_together(action: int, width: Dimension, size_bytes: int) -> int:
    """Return how many rows of a table a core writes at a time: so many that no other core writes a
    line of 64 bytes of its data cache."""
    if action == GATHER:
        return 1
    return _LINE_BYTES // math.gcd(_LINE_BYTES, width * size_bytes if isinstance(width, int) else 1)


def _steps(shape: Shape) -> list[Dimension]:
    return [product(shape[at + 1 :]) for at in range(len(shape))]


def _taken(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    x, index = tensors
    axis = _axis(x, index, settings)
    for at, (own, other) in enumerate(zip(x.shape, index.shape, strict=True)):
        if at != axis and not is_one(other) and not same(own, other):
            raise UsageError(
                f"places of {shape_text(index.shape)} do not lie along axis {axis} of"
                f" {shape_text(x.shape)}"
            )
    return (*x.shape[:axis], index.shape[axis], *x.shape[axis + 1 :])


def _put(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    x, index, source = tensors
    _axis(x, index, settings)
    fits = len(source.shape) == len(x.shape) and all(
        is_one(place) or same(place, own)
        for place, own in zip(index.shape, source.shape, strict=True)
    )
    if not fits:
        raise UsageError(
            f"places of {shape_text(index.shape)} for a source of {shape_text(source.shape)}"
        )
    # References are computed in float64, which no kernel is, beside numbers of float32.
    if source.dtype != x.dtype and "float64" not in (source.dtype, x.dtype):
        raise UsageError(f"{source.dtype} is put into {x.dtype}", help="cast one of them")
    return x.shape


def _axis(x: Tensor, index: Tensor, settings: Settings) -> int:
    if index.dtype != "int32":
        raise UsageError(f"places are {index.dtype}, expected int32", help='astype("int32")')
    if len(index.shape) != len(x.shape):
        raise UsageError(f"places have {len(index.shape)} axes, the tensor {len(x.shape)}")
    return normal_axes(settings["axis"], len(x.shape))[0]


def _np_taken(x: Any, index: Any, axis: int) -> Any:
    return np.take_along_axis(x, index.astype(np.int64), axis)


def _np_put(x: Any, index: Any, source: Any, axis: int, add: bool) -> Any:
    result = np.array(x, np.result_type(x, source))
    where = list(np.indices(source.shape))
    where[axis] = np.broadcast_to(index, source.shape).astype(np.int64)
    if add:
        np.add.at(result, tuple(where), source)
    else:
        result[tuple(where)] = source
    return result


def _zeros(x: Value) -> Value:
    zero = x.builder.constant(0, x.dtype)
    return zero.apply("broadcast_to", shape=x.shape)


def _grad_taken(g: Value, x: Value, index: Value, y: Value, axis: int) -> Sequence[Value | None]:
    # Sums of 16 bits lose digits with each element that is added.
    sums = "float32" if x.dtype in ("float16", "bfloat16") else x.dtype
    zeros = x.builder.constant(0, sums).apply("broadcast_to", shape=x.shape)
    added = zeros.apply("put_along", index, g.astype(sums), axis=axis, add=True)
    return added.astype(x.dtype), None


def _grad_put(
    g: Value, x: Value, index: Value, source: Value, y: Value, axis: int, add: bool
) -> Sequence[Value | None]:
    wide = index.apply("broadcast_to", shape=source.shape)
    at_source = g.apply("take_along", wide, axis=axis)
    if add:
        return g, None, at_source
    return g.apply("put_along", wide, _zeros(source), axis=axis), None, at_source


ROWS = (
    # NumPy's take_along_axis: y[i, j] = x[index[i, j], j] for axis 0.
    Operator(
        *("take_along", 2, "index", _taken, as_first, _np_taken),
        gradient=_grad_taken,
        aten="gather",
        parameters={"axis": REQUIRED},
    ),
    # x with the elements of the last operand put, or added, where the places say.
    Operator(
        *("put_along", 3, "index", _put, as_first, _np_put),
        gradient=_grad_put,
        aten="scatter",
        parameters={"axis": REQUIRED, "add": False},
    ),
)
