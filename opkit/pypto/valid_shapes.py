"""Tensors that hold fewer elements than their shape says: views with a `valid_shape`.

Such a tensor's value has the elements that are there, from the first on along each axis; its shape
is the one that the program asked for. Operators work on what is there, so that a sum along the last
tile of an axis does not see what lies behind it. An operator that cannot be said of a part alone
takes the whole tensor, with zeros behind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from opkit.compiler import OPERATORS, GraphBuilder, Value

__all__ = ["Partial", "extents", "padded", "partial_result"]

Extents: TypeAlias = tuple[int, ...]
# Of one tensor, besides element-wise operators and reductions.
_WITHIN_WHAT_IS_THERE = ("transpose", "softmax", "log_softmax", "layer_norm", "rms_norm")


def extents(value: Value) -> Extents:
    """Return a value's shape as numbers."""
    return tuple(int(extent) for extent in value.shape)


@dataclass(frozen=True)
class Partial:
    """A tensor of which only the first elements along each axis are there."""

    value: Value
    """The elements that are there."""
    shape: Extents
    """The shape that the program asked for."""

    @property
    def ndim(self) -> int:
        """The number of axes."""
        return len(self.shape)

    @property
    def dtype(self) -> str:
        """The data type of the elements."""
        return self.value.dtype

    @property
    def valid_shape(self) -> Extents:
        """The number of elements that are there along each axis."""
        return extents(self.value)


def padded(value: Value, shape: Sequence[int], number: float = 0) -> Value:
    """Return a value with a number behind it, up to a shape."""
    widths = tuple((0, extent - there) for extent, there in zip(shape, extents(value), strict=True))
    return value.apply("pad", widths=widths, value=number) if any(map(any, widths)) else value


def partial_result(
    builder: GraphBuilder, operator: str, operands: Sequence[Any], settings: dict[str, Any]
) -> tuple[Value, Extents]:
    """Return an operator's value, and the shape of its result, where operands are partly there.

    Args:
        operands: tensors as `Partial`, and numbers.

    Raises:
        GraphError: the operator does not take tensors of these shapes.
    """
    shape = _whole_shape(builder, operator, operands, settings)
    values = [each.value if isinstance(each, Partial) else each for each in operands]
    tensors = [each for each in operands if isinstance(each, Partial)]
    kind = OPERATORS[operator].kind
    if operator == "reshape":
        there = _reshaped(tensors[0].shape, tensors[0].valid_shape, shape)
        if there is not None:
            return values[0].apply("reshape", shape=there), shape
    elif operator == "broadcast_to":
        lead = len(shape) - tensors[0].ndim
        own = zip(tensors[0].shape, tensors[0].valid_shape, shape[lead:], strict=True)
        there = (
            *shape[:lead],
            *(valid if whole == wide else wide for whole, valid, wide in own),
        )
        return values[0].apply("broadcast_to", shape=there), shape
    elif len(tensors) == 1 and (
        operator in _WITHIN_WHAT_IS_THERE or kind in ("elementwise", "reduction", "scan", "line")
    ):
        return builder.apply(operator, *values, **settings), shape
    elif kind == "elementwise":
        return builder.apply(operator, *_cut_alike(operands, values), **settings), shape
    elif operator == "matmul":
        return builder.apply(operator, *_cut_product(tensors, values, settings), **settings), shape
    whole = [
        padded(value, each.shape) if isinstance(each, Partial) else value
        for each, value in zip(operands, values, strict=True)
    ]
    return builder.apply(operator, *whole, **settings), shape


def _whole_shape(
    builder: GraphBuilder, operator: str, operands: Sequence[Any], settings: dict[str, Any]
) -> Extents:
    """Return the result's shape if everything were there."""
    scratch = GraphBuilder("shapes")
    with scratch.at(builder.location):
        given = [
            scratch.input(f"x{at}", each.shape, each.dtype) if isinstance(each, Partial) else each
            for at, each in enumerate(operands)
        ]
        return extents(scratch.apply(operator, *given, **settings))


def _reshaped(before: Extents, there: Extents, after: Extents) -> Extents | None:
    """Return what is there of a tensor in another shape; None where it is no block of it."""
    partial = [axis for axis, (a, b) in enumerate(zip(before, there, strict=True)) if a != b]
    if len(partial) != 1:
        return None
    axis = partial[0]
    inner = _size(before[axis + 1 :])
    # Everything in front is whole or one element: along the axis the elements follow each other.
    for at, extent in enumerate(after):
        behind = _size(after[at + 1 :])
        ahead_fits = _size(after[:at]) == _size(before[:axis])
        if ahead_fits and extent * behind == before[axis] * inner:
            elements = there[axis] * inner
            if elements % behind == 0:
                return (*after[:at], elements // behind, *after[at + 1 :])
    return None


def _size(shape: Sequence[int]) -> int:
    total = 1
    for extent in shape:
        total *= extent
    return total


def _cut_alike(operands: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Return operands of an element-wise operator cut to what all of them have."""
    rank = max(each.ndim for each in operands if isinstance(each, Partial))
    least: list[int | None] = [None] * rank
    for each in operands:
        if isinstance(each, Partial):
            for axis, (whole, there) in enumerate(
                zip(each.shape, each.valid_shape, strict=True), start=rank - each.ndim
            ):
                if whole != 1:
                    least[axis] = min(there, there if least[axis] is None else least[axis])  # type: ignore[type-var]
    return [
        _cut_to(value, [least[axis] for axis in range(rank - each.ndim, rank)])
        if isinstance(each, Partial)
        else value
        for each, value in zip(operands, values, strict=True)
    ]


def _cut_product(
    tensors: Sequence[Partial], values: Sequence[Value], settings: dict[str, Any]
) -> list[Value]:
    """Return the operands of a product cut to the same length along what is summed, and batches."""
    a, b = tensors
    inner_a = a.ndim - (2 if settings.get("transpose_a") else 1)
    inner_b = b.ndim - (1 if settings.get("transpose_b") else 2)
    cuts: list[list[int | None]] = [[None] * a.ndim, [None] * b.ndim]
    batches = zip(range(a.ndim - 3, -1, -1), range(b.ndim - 3, -1, -1), strict=False)
    for axis_a, axis_b in ((inner_a, inner_b), *batches):
        if a.shape[axis_a] == b.shape[axis_b]:
            least = min(a.valid_shape[axis_a], b.valid_shape[axis_b])
            cuts[0][axis_a] = cuts[1][axis_b] = least
    return [_cut_to(value, cut) for value, cut in zip(values, cuts, strict=True)]


def _cut_to(value: Value, stops: Sequence[int | None]) -> Value:
    for axis, stop in enumerate(stops):
        if stop is not None and stop < int(value.shape[axis]):
            value = value.apply("slice", axis=axis, start=0, stop=stop)
    return value
