"""Boxes: parts of tensors, a start and a stop along each axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from opkit.compiler import Value

__all__ = ["Box", "best_cuts", "box_text", "cut", "holds", "meets", "with_ones"]

Box: TypeAlias = tuple[tuple[int, int], ...]


def with_ones(there: Sequence[int], shape: Sequence[int], wide: Sequence[int]) -> tuple[int, ...]:
    """Return extents `there` of `shape` with the axes of one element that `wide` has besides."""
    spread: list[int] = []
    rest = list(zip(there, shape, strict=True))
    for at, extent in enumerate(wide):
        is_besides = extent == 1 and len(rest) < len(wide) - at
        if is_besides and (not rest or rest[0][1] != 1):
            spread.append(1)
        else:
            spread.append(rest.pop(0)[0])
    return tuple(spread)


def cut(value: Value, box: Box) -> Value:
    """Return a part of a value."""
    for axis, (start, stop) in enumerate(box):
        if (start, stop) != (0, value.shape[axis]):
            value = value.apply("slice", axis=axis, start=start, stop=stop)
    return value


def meets(a: Box, b: Box) -> bool:
    """Return whether two boxes have an element in common."""
    return all(x[0] < y[1] and y[0] < x[1] for x, y in zip(a, b, strict=True))


def holds(outer: Box, inner: Box) -> bool:
    """Return whether one box lies within another."""
    return all(x[0] <= y[0] and y[1] <= x[1] for x, y in zip(outer, inner, strict=True))


def best_cuts(box: Box, writes: Sequence[Box]) -> tuple[int, list[int]]:
    """Return an axis and the places to cut it at: where the fewest writes are cut through."""
    best: tuple[int, int, list[int]] | None = None
    for axis, (start, stop) in enumerate(box):
        edges = {edge for write in writes for edge in write[axis]}
        cuts = sorted(edge for edge in edges if start < edge < stop)
        if not cuts:
            continue
        split = sum(w[axis][0] < at < w[axis][1] for w in writes for at in cuts)
        if best is None or split < best[0]:
            best = (split, axis, cuts)
    assert best is not None
    return best[1], best[2]


def box_text(box: Box) -> str:
    """Return a box as slices are written."""
    return "[" + ", ".join(f"{a}:{b}" for a, b in box) + "]"
