"""Tiles: parts of tensors that programs view, and put together again."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from opkit.compiler import GraphError

from .diagnostics import depends_on
from .enumerations import dtype_name
from .location import here
from .traced import Traced
from .valid_shapes import padded

__all__ = ["FUNCTIONS", "place_of"]


def place_of(
    function: str, tile: Traced, offsets: Sequence[int], out: Traced, *, help: str | None = None
) -> tuple[slice, ...]:
    """Return the part of `out` that a tile takes from some offsets on.

    Raises:
        GraphError: the tile reaches over `out`.
    """
    there = tile.valid_shape
    for axis, (offset, extent, own) in enumerate(zip(offsets, there, out.shape, strict=True)):
        if offset < 0 or offset + extent > own:
            raise GraphError(
                f"{function}: {extent} elements from {offset} on do not fit into axis {axis},"
                f" which has {own}",
                location=here(),
                help=help,
            )
    return tuple(slice(o, o + e) for o, e in zip(offsets, there, strict=True))


def _view(
    x: Traced,
    shape: Sequence[int] | None = None,
    offsets: Sequence[int] | None = None,
    valid_shape: Sequence[int] | None = None,
    *,
    dtype: object = None,
) -> Traced:
    """The part of `x` at some offsets, of which `valid_shape` elements are there."""
    if dtype is not None and dtype_name(dtype) != x.dtype:
        raise GraphError("view: opkit has no dtype= yet", location=here(), help="cast the tensor")
    shape = x.shape if shape is None else shape
    offsets = (0,) * x.ndim if offsets is None else offsets
    if not len(shape) == len(offsets) == x.ndim:
        raise GraphError(
            f"view of a tensor with {x.ndim} axes: {len(shape)} extents, {len(offsets)} offsets",
            location=here(),
        )
    # More than the view has is all of it; where nothing is said, it is what the tensor has.
    valid = (
        tuple(map(min, valid_shape, shape))
        if valid_shape is not None
        else tuple(
            min(extent, own - offset) if offset < own else extent
            for extent, offset, own in zip(shape, offsets, x.shape, strict=True)
        )
    )
    for axis, (extent, there, offset, own) in enumerate(
        zip(shape, valid, offsets, x.shape, strict=True)
    ):
        if there > extent or offset < 0 or offset + there > own:
            what = "valid_shape" if valid_shape is not None else "shape"
            raise GraphError(
                f"view: {what} says {there} elements from {offset} on along axis {axis}, where the"
                f" view has {extent} and the tensor {own}",
                location=here(),
                help=f"valid_shape={max(0, min(extent, own - offset))} along this axis fits",
            )
    part: Traced = x[tuple(slice(o, o + n) for o, n in zip(offsets, valid, strict=True))]
    if valid == tuple(shape):
        return part
    return Traced(x.builder, part.value, shape=tuple(shape))


def _fillpad(x: Traced, mode: str = "constant", value: float | str = 0) -> Traced:
    """A tensor with a number behind what is there."""
    if mode != "constant":
        raise GraphError(f'fillpad: opkit has no mode="{mode}"', location=here())
    if not x.is_partial:
        return x
    with x.builder.at(here()):
        return Traced(x.builder, padded(x.value, x.shape, float(value)))


def _assemble(x: Any, offsets: Any = None, out: Any = None, **_: object) -> None:
    """Write a tile, or a list of (tile, offsets), into a tensor."""
    if isinstance(x, list | tuple):
        for tile, place in x:
            _assemble(tile, place, offsets if out is None else out)
        return
    start = out._value
    if start is not None and depends_on(x.builder, x.value, start):
        raise GraphError(
            "this assembles into a tensor that the tile was viewed from: a cycle",
            location=here(),
            help="assemble into a tensor of its own",
        )
    advice = "view the tile with a valid_shape, and assemble that part"
    out[place_of("assemble", x, offsets, out, help=advice)] = x


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "view": _view,
    "assemble": _assemble,
    "fillpad": _fillpad,
}
