"""Rows of images that are sampled at places between their elements, which a grid names."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from opkit.compiler import AtenCall as Call
from opkit.compiler import Refused, Value, fixed_shape

__all__ = ["ROWS"]

Row = Callable[..., Any]
_LINEAR, _NEAREST, _CUBIC = 0, 1, 2
_ZEROS, _BORDER, _REFLECTION = 0, 1, 2
_CURVE = -0.75
"""Torch's constant of cubic convolution."""
_HELD_BYTES = 96 * 1024
"""Of an image that a core picks from: elements of larger ones are picked as rows of channels."""


class _Tap(NamedTuple):
    """An element along one axis that a sample takes part of."""

    place: Value
    """Where it is, as a float that is whole and within the image."""
    share: Value | None
    """What it counts; None: all."""


def _reflected(at: Value, size: int, aligned: bool) -> Value:
    """Return places that go back from both ends, of an element's middle or its edge."""
    low, span = (0.0, size - 1) if aligned else (-0.5, size)
    if span == 0:
        return at * 0.0
    # A wave of triangles: up along the axis, and back.
    way = (at - low).apply("abs").apply("fmod", 2.0 * span)
    return (way - span).apply("abs") * -1.0 + (span + low)


def _clipped(at: Value, size: int) -> Value:
    return at.apply("maximum", 0.0).apply("minimum", float(size - 1))


def _padded(at: Value, size: int, padding: int, aligned: bool) -> Value:
    """Return places of samples within the image, where what lies around it is made of it."""
    if padding == _REFLECTION:
        at = _reflected(at, size, aligned)
    return at if padding == _ZEROS else _clipped(at, size)


def _tap(at: Value, share: Value | None, size: int, padding: int) -> _Tap:
    """Return the element at a whole place; one that there is not has no share."""
    within = _clipped(at, size)
    if padding != _ZEROS:
        return _Tap(within, share)
    is_within = within.apply("equal", at)
    return _Tap(within, is_within.apply("where", 1.0 if share is None else share, 0.0))


def _taps(at: Value, size: int, mode: int, padding: int, aligned: bool) -> list[_Tap]:
    """Return the elements along an axis for samples at -1, the first, to 1, the last."""
    at = (at + 1.0) * (0.5 * (size - 1)) if aligned else ((at + 1.0) * float(size) - 1.0) * 0.5
    if mode != _CUBIC:
        at = _padded(at, size, padding, aligned)
    if mode == _NEAREST:
        return [_tap(at.apply("round"), None, size, padding)]
    first = at.apply("floor")
    rest = at - first
    if mode == _LINEAR:
        return [
            _tap(first, 1.0 - rest, size, padding),
            _tap(first + 1.0, rest, size, padding),
        ]
    taps = []
    for step, share in zip((-1.0, 0.0, 1.0, 2.0), _cubic_shares(rest), strict=True):
        there = _padded(first + step, size, padding, aligned)
        # What is reflected at edges lies between elements: torch takes the one before.
        taps.append(_tap(there.apply("floor"), share, size, padding))
    return taps


def _cubic_shares(rest: Value) -> tuple[Value, ...]:
    def near(x: Value) -> Value:
        return ((_CURVE + 2.0) * x - (_CURVE + 3.0)) * x * x + 1.0

    def far(x: Value) -> Value:
        return ((_CURVE * x - 5.0 * _CURVE) * x + 8.0 * _CURVE) * x - 4.0 * _CURVE

    other = 1.0 - rest
    return far(rest + 1.0), near(rest), near(other), far(other + 1.0)


def _sampled(c: Call, x: Value, grid: Value, mode: int, padding: int, aligned: bool) -> Value:
    batch, channels, *sizes = fixed_shape(x.shape)
    places = math.prod(fixed_shape(grid.shape[1:-1]))
    if not math.prod((batch, channels, *sizes, places)):
        raise Refused("images without elements have no kernel")
    wide = grid.astype("float32").reshape(batch, places, len(sizes))
    taps = []
    for axis, size in enumerate(sizes):
        # The grid names the last axis first.
        at = len(sizes) - 1 - axis
        where = wide.apply("slice", axis=2, start=at, stop=at + 1, step=1).reshape(batch, places)
        taps.append(_taps(where, size, int(mode), int(padding), bool(aligned)))
    total: Value | None = None
    for corner in itertools.product(*taps):
        part = _picked(x, _place(corner, sizes), sizes).astype("float32")
        shares = [tap.share for tap in corner if tap.share is not None]
        if shares:
            part = part * math.prod(shares[1:], start=shares[0]).reshape(batch, 1, places)
        total = part if total is None else total + part
    assert total is not None
    return c.typed(total).reshape(*c.shape)  # type: ignore[union-attr]


def _place(corner: Sequence[_Tap], sizes: Sequence[int]) -> Value:
    """Return where elements lie in an image."""
    place = corner[0].place.astype("int32")
    for tap, size in zip(corner[1:], sizes[1:], strict=True):
        place = place * size + tap.place.astype("int32")
    return place


def _picked(x: Value, place: Value, sizes: Sequence[int]) -> Value:
    """Return elements of all channels of each image at some places."""
    batch, channels = fixed_shape(x.shape[:2])
    area, places = math.prod(sizes), fixed_shape(place.shape)[1]
    flat = x.reshape(batch, channels, area)
    if area * (2 if x.dtype in ("float16", "bfloat16") else 4) <= _HELD_BYTES:
        return flat.apply("take_along", place.reshape(batch, 1, places), axis=2)
    rows = flat.transpose(0, 2, 1).reshape(batch * area, channels)
    first = x.builder.apply("arange", count=batch, dtype="int32").reshape(batch, 1) * area
    taken = rows.apply("take", (place + first).reshape(-1), axis=0)
    return taken.reshape(batch, places, channels).transpose(0, 2, 1)


ROWS: Mapping[str, Row] = {
    "aten.grid_sampler_2d.default": _sampled,
    "aten.grid_sampler_3d.default": _sampled,
}
