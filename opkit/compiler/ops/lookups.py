"""Rows of the operators that pick or put elements along an axis at indices that a tensor names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkit.errors import UsageError

from ..ir import (
    REQUIRED,
    Operator,
    Settings,
    Shape,
    Tensor,
    Value,
    as_first,
    is_one,
    same,
    shape_text,
)

__all__ = ["ROWS"]


def _taken(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    x, index = tensors
    axis = _axis(x, index, settings)
    for at, (own, other) in enumerate(zip(x.shape, index.shape, strict=True)):
        if at != axis and not is_one(other) and not same(own, other):
            raise UsageError(
                f"indices of {shape_text(index.shape)} do not lie along axis {axis} of"
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
            f"indices of {shape_text(index.shape)} for a source of {shape_text(source.shape)}"
        )
    # References are computed in float64, which no kernel is, beside numbers of float32.
    if source.dtype != x.dtype and "float64" not in (source.dtype, x.dtype):
        raise UsageError(f"{source.dtype} is put into {x.dtype}", help="cast one of them")
    return x.shape


def _axis(x: Tensor, index: Tensor, settings: Settings) -> int:
    if index.dtype != "int32":
        raise UsageError(f"indices are {index.dtype}, expected int32", help='cast it to "int32"')
    if len(index.shape) != len(x.shape):
        lacks = len(x.shape) - len(index.shape)
        raise UsageError(
            f"indices have {len(index.shape)} axes, the tensor {len(x.shape)}",
            help=f"reshape the indices to {shape_text((*index.shape, *(1,) * lacks))}, and what is"
            " taken back"
            if lacks > 0
            else "leave out axes of the indices",
        )
    return settings.axis(len(x.shape))


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


_JOINED = {"max": np.maximum, "min": np.minimum, "multiply": np.multiply}


def _np_joined(x: Any, index: Any, source: Any, axis: int, join: str) -> Any:
    result = np.array(x, np.result_type(x, source))
    where = list(np.indices(source.shape))
    where[axis] = np.broadcast_to(index, source.shape).astype(np.int64)
    _JOINED[join].at(result, tuple(where), source)
    return result


def _zeros(x: Value, dtype: str = "") -> Value:
    zero = x.builder.constant(0, dtype or x.dtype)
    return zero.apply("broadcast_to", shape=x.shape)


def _grad_taken(g: Value, x: Value, index: Value, y: Value, axis: int) -> Sequence[Value | None]:
    return _zeros(x, g.dtype).apply("put_along", index, g, axis=axis, add=True), None


def _grad_put(
    g: Value, x: Value, index: Value, source: Value, y: Value, axis: int, add: bool
) -> Sequence[Value | None]:
    wide = index.apply("broadcast_to", shape=source.shape)
    at_source = g.apply("take_along", wide, axis=axis)
    if add:
        return g, None, at_source
    return g.apply("put_along", wide, _zeros(source, g.dtype), axis=axis), None, at_source


ROWS = (
    # NumPy's take_along_axis: y[i, j] = x[index[i, j], j] for axis 0.
    Operator(
        *("take_along", 2, "index", _taken, as_first, _np_taken),
        gradient=_grad_taken,
        aten="gather",
        parameters={"axis": REQUIRED},
    ),
    # x with the elements of the last operand put, or added, where the indices say.
    Operator(
        *("put_along", 3, "index", _put, as_first, _np_put),
        gradient=_grad_put,
        aten="scatter",
        parameters={"axis": REQUIRED, "add": False},
    ),
    # x where the indices say the largest or smallest of its elements and the last operand's there,
    # or their product.
    Operator(
        *("join_along", 3, "join", _put, as_first, _np_joined),
        aten="scatter_reduce",
        parameters={"axis": REQUIRED, "join": REQUIRED},
    ),
)
