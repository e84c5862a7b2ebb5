"""A movement as boxes of elements: where each lies in a source, and where in the result.

Extents may be those of a launch, or sizes that have names: of these a piece is written for all
launches.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .dimensions import same

__all__ = ["Extents", "Piece", "pieces_of"]

Extents = tuple[Any, ...]
"""A shape: whole numbers, or sizes that have names."""


@dataclass(frozen=True)
class Piece:
    """A box of elements, axis by axis, with their steps in the source and in the result."""

    source: int
    """Which input; -1 for a constant."""
    source_offset: Any
    target_offset: Any
    axes: tuple[tuple[Any, Any, Any], ...]
    """Extent, elements from one index to the next in the source, and in the result."""


def pieces_of(
    operator: str,
    settings: Mapping[str, Any],
    shapes: Sequence[Extents],
    target: Extents,
) -> list[Piece]:
    """Return the boxes of a movement, for the inputs' shapes and the result's."""
    boxes = {
        "transpose": _transpose,
        "broadcast_to": _broadcast,
        "slice": _slice,
        "concat": _concat,
        "concat_slices": _concat_slices,
        "pad": _pad,
        "windows": _windows,
    }[operator](settings, shapes, target)
    return [_merged(piece) for piece in boxes if all(extent != 0 for extent, _, _ in piece.axes)]


def _steps(shape: Extents) -> list[Any]:
    steps: list[Any] = [1] * len(shape)
    for axis in reversed(range(len(shape) - 1)):
        steps[axis] = steps[axis + 1] * shape[axis + 1]
    return steps


def _transpose(
    settings: Mapping[str, Any], shapes: Sequence[Extents], target: Extents
) -> list[Piece]:
    (shape,) = shapes
    order = settings["axes"]
    source = _steps(shape)
    axes = zip(target, (source[at] for at in order), _steps(target), strict=True)
    return [Piece(0, 0, 0, tuple(axes))]


def _broadcast(
    settings: Mapping[str, Any], shapes: Sequence[Extents], target: Extents
) -> list[Piece]:
    (shape,) = shapes
    lead = len(target) - len(shape)
    source = [0] * lead + [
        0 if extent == 1 else step for extent, step in zip(shape, _steps(shape), strict=True)
    ]
    return [Piece(0, 0, 0, tuple(zip(target, source, _steps(target), strict=True)))]


def _slice(settings: Mapping[str, Any], shapes: Sequence[Extents], target: Extents) -> list[Piece]:
    (shape,) = shapes
    axis, step = settings["axis"], settings["step"]
    start = settings["start"]
    source = _steps(shape)
    offset = start * source[axis]
    source[axis] *= step
    return [Piece(0, offset, 0, tuple(zip(target, source, _steps(target), strict=True)))]


def _concat(settings: Mapping[str, Any], shapes: Sequence[Extents], target: Extents) -> list[Piece]:
    axis = settings["axis"]
    steps = _steps(target)
    found: list[Piece] = []
    begin: Any = 0
    for index, shape in enumerate(shapes):
        axes = tuple(zip(shape, _steps(shape), steps, strict=True))
        found.append(Piece(index, 0, begin * steps[axis], axes))
        begin += shape[axis]
    return found


def _concat_slices(
    settings: Mapping[str, Any], shapes: Sequence[Extents], target: Extents
) -> list[Piece]:
    axis, cuts = settings["axis"], settings["cuts"]
    steps = _steps(target)
    found: list[Piece] = []
    begin: Any = 0
    for index, (shape, (along, start, step, count)) in enumerate(zip(shapes, cuts, strict=True)):
        source, extents = _steps(shape), list(shape)
        # Of a cut that reaches beyond its tensor the places that lie within.
        first, last = _inside(start, step, 1, shape[along], count)
        offset = (start + first * step) * source[along]
        source[along] *= step
        still = [0] * len(shape)
        for which, low, high in ((-1, 0, first), (index, first, last), (-1, last, count)):
            extents[along] = high - low
            is_data = which >= 0
            axes = zip(extents, source if is_data else still, steps, strict=True)
            to = begin * steps[axis] + low * steps[along]
            found.append(Piece(which, offset if is_data else 0, to, tuple(axes)))
        extents[along] = count
        begin += extents[axis]
    return found


def _pad(settings: Mapping[str, Any], shapes: Sequence[Extents], target: Extents) -> list[Piece]:
    (shape,) = shapes
    widths = settings["widths"]
    steps = _steps(target)
    begin = sum(before * step for (before, _), step in zip(widths, steps, strict=True))
    found = [Piece(0, 0, begin, tuple(zip(shape, _steps(shape), steps, strict=True)))]
    # What lies around: for each axis the two slabs beside it, within the middle of the axes before.
    for axis, (before, after) in enumerate(widths):
        for extent, first in ((before, 0), (after, before + shape[axis])):
            offset = first * steps[axis]
            axes = []
            for other, whole in enumerate(target):
                if other == axis:
                    axes.append((extent, 0, steps[other]))
                elif other < axis:
                    offset += widths[other][0] * steps[other]
                    axes.append((shape[other], 0, steps[other]))
                else:
                    axes.append((whole, 0, steps[other]))
            found.append(Piece(-1, 0, offset, tuple(axes)))
    return found


def _windows(
    settings: Mapping[str, Any], shapes: Sequence[Extents], target: Extents
) -> list[Piece]:
    ((_, high, wide, channels),) = shapes
    images, rows, columns, across = target
    (down, taps), (step, stride), (top, left), (apart, dilation) = (
        _pair(settings[name]) for name in ("kernel", "stride", "padding", "dilation")
    )
    image, line = high * wide * channels, wide * channels
    target_steps = (rows * columns * across, columns * across)
    # Taps beside each other lie beside each other in the image too, unless there are gaps.
    width = taps if dilation == 1 else 1
    strips = [
        replace(strip, tap=strip.tap + tap)
        for tap in range(0, taps, width)
        for strip in _strips(tap * dilation - left, stride, width, wide, columns)
    ]
    found: list[Piece] = []
    for tap_row in range(down):
        shift, lead = tap_row * apart - top, tap_row * taps * channels
        first, last = _inside(shift, step, 1, high, rows)
        for begin, end in ((0, first), (last, rows)):
            shape = (images, end - begin, columns, taps * channels)
            axes = zip(shape, (0,) * 4, (*target_steps, across, 1), strict=True)
            found.append(Piece(-1, 0, lead + begin * target_steps[1], tuple(axes)))
        for strip in strips:
            source, offset, source_steps = -1, 0, (0, 0, 0, 0)
            if strip.column is not None:
                source, offset = 0, (first * step + shift) * line + strip.column * channels
                source_steps = (image, step * line, strip.every * stride * channels, 1)
            shape = (images, last - first, strip.count, strip.width * channels)
            axes = zip(shape, source_steps, (*target_steps, strip.every * across, 1), strict=True)
            to = first * target_steps[1] + strip.place * across + lead + strip.tap * channels
            found.append(Piece(source, offset, to, tuple(axes)))
    return found


@dataclass(frozen=True)
class _Strip:
    """Some taps of one row of taps, at places with the same distance from each other."""

    place: int
    count: int
    every: int
    """Places from one to the next."""
    tap: int
    width: int
    column: int | None
    """Image column that the first window's first tap reads; None: outside of the image."""


def _strips(offset: int, stride: int, width: int, extent: int, places: int) -> list[_Strip]:
    """Return what `width` taps beside each other read at all places of a row, of which the first
    begins at a column."""
    begin, stop = _inside(offset, stride, width, extent, places)
    # A copy's rows do not overlap: every second place, or third, is one box.
    every = min(-(-width // stride), stop - begin)
    found = [
        _Strip(place, -(-(stop - place) // every), every, 0, width, place * stride + offset)
        for place in range(begin, begin + every)
    ]
    for place in (*range(begin), *range(stop, places)):
        column = place * stride + offset
        low = min(max(-column, 0), width)
        high = max(min(extent - column, width), low)
        found += [
            _Strip(place, 1, 1, 0, low, None),
            _Strip(place, 1, 1, low, high - low, column + low),
            _Strip(place, 1, 1, high, width - high, None),
        ]
    return found


def _inside(offset: int, step: int, width: int, extent: int, count: int) -> tuple[int, int]:
    """Return the first of `count` places, `step` apart from an offset on, from which `width`
    elements lie within an extent, and the one behind the last."""
    first = min(max(-(offset // step), 0), count)
    last = min(max((extent - width - offset) // step + 1, first), count)
    return first, last


def _pair(value: object) -> tuple[int, int]:
    assert isinstance(value, tuple)
    return value[0], value[1]


def _merged(piece: Piece) -> Piece:
    """Return a box with axes of extent 1 left out, and neighbours that follow each other joined."""
    axes: list[tuple[Any, Any, Any]] = []
    for extent, source, target in piece.axes:
        if extent == 1:
            continue
        if axes:
            before, source_before, target_before = axes[-1]
            if same(source_before, source * extent) and same(target_before, target * extent):
                axes[-1] = (before * extent, source, target)
                continue
        axes.append((extent, source, target))
    return Piece(piece.source, piece.source_offset, piece.target_offset, tuple(axes))
