"""`x[...]` and `x.split(...)`: basic indexing as slices and reshapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeVar

from opkit.errors import UsageError

from .dimensions import Dimension, Shape, normal_axes
from .graph import GraphError, here

__all__ = ["index", "split"]


class _Sliceable(Protocol):
    """The operations of a value that basic indexing is made of."""

    @property
    def ndim(self) -> int: ...

    @property
    def shape(self) -> Shape: ...

    def apply(self: _Value, operator: str, **attributes: object) -> _Value: ...

    def reshape(self: _Value, *shape: Dimension) -> _Value: ...


_Value = TypeVar("_Value", bound=_Sliceable)


def index(value: _Value, key: object) -> _Value:
    """Return a part of a tensor: whole numbers, slices with steps, `...` and None, as NumPy has
    them.

    Raises:
        GraphError: the index is out of range, or of another kind.
    """
    keys = list(key) if isinstance(key, tuple) else [key]
    given = sum(1 for each in keys if each is not None and each is not Ellipsis)
    if given > value.ndim:
        raise GraphError(f"{given} indices for {value.ndim} axes", location=here())
    rest = [at for at, each in enumerate(keys) if each is Ellipsis]
    if rest:
        at = rest[0]
        keys[at : at + 1] = [slice(None)] * (value.ndim - given)
    else:
        keys += [slice(None)] * (value.ndim - given)
    result, axis = value, 0
    shape: list[Dimension] = []
    for each in keys:
        if each is None:
            shape.append(1)
            continue
        extent = value.shape[axis]
        if isinstance(each, bool) or not isinstance(each, int | slice):
            raise GraphError(
                f"an index of type {type(each).__name__} cannot be traced",
                location=here(),
                help="use whole numbers, slices, `...` or None; take() looks up by a tensor, and"
                " where() chooses by truth",
            )
        if isinstance(each, int):
            start = each + extent if each < 0 else each
            result = _part(result, axis, start, start + 1, 1)
        else:
            start, stop, step = _bounds(each, extent)
            result = _part(result, axis, start, stop, step)
            shape.append(result.shape[axis])
        axis += 1
    same = len(shape) == result.ndim and all(
        a is b or a == b for a, b in zip(shape, result.shape, strict=True)
    )
    return result if same else result.reshape(*shape)


def split(value: _Value, parts: int | Sequence[int], axis: int) -> tuple[_Value, ...]:
    """Return parts along an axis: so many equal ones, or of these sizes.

    Raises:
        GraphError: they do not make up the axis.
    """
    try:
        (at,) = normal_axes(axis, value.ndim)
    except UsageError as err:
        raise GraphError(err.message, location=here()) from err
    extent = value.shape[at]
    if isinstance(parts, int):
        if parts < 1 or (isinstance(extent, int) and extent % parts):
            raise GraphError(
                f"{extent} elements are not {parts} equal parts",
                location=here(),
                help="give the size of each part",
            )
        sizes: Sequence[Dimension] = [extent // parts] * parts
    else:
        sizes = parts
        if isinstance(extent, int) and sum(parts) != extent:
            raise GraphError(
                f"parts of {sum(parts)} elements do not make up {extent}", location=here()
            )
    found, start = [], 0
    for size in sizes:
        found.append(_part(value, at, start, start + size, 1))
        start = start + size
    return tuple(found)


def _part(value: _Value, axis: int, start: Dimension, stop: Dimension, step: int) -> _Value:
    if start == 0 and step == 1 and stop == value.shape[axis]:
        return value
    try:
        return value.apply("slice", axis=axis, start=start, stop=stop, step=step)
    except UsageError as err:
        raise GraphError(err.message, location=here()) from err


def _bounds(key: slice, extent: Dimension) -> tuple[Dimension, Dimension, int]:
    step = 1 if key.step is None else key.step
    if not isinstance(step, int) or step < 1:
        raise GraphError(f"a step of {step} cannot be traced", location=here())
    is_known = all(bound is None or isinstance(bound, int) for bound in (key.start, key.stop))
    if isinstance(extent, int) and is_known:
        start, stop, _ = slice(key.start, key.stop).indices(extent)
        return start, stop, step
    start = 0 if key.start is None else key.start
    stop = extent if key.stop is None else key.stop
    return _from_begin(start, extent), _from_begin(stop, extent), step


def _from_begin(bound: Dimension, extent: Dimension) -> Dimension:
    """Return where a bound is, counted from the axis' begin."""
    if not isinstance(bound, int) and bound.is_Integer:
        bound = int(bound)
    is_below = bound < 0 if isinstance(bound, int) else bound.is_nonpositive
    return bound + extent if is_below else bound
