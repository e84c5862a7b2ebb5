"""Where the rounds begin to differ: the parts that they read, and the numbers that they count."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...ir import Node, Tensor, Value
from ...tracing import GraphBuilder
from .packs import Pack

__all__ = ["Places", "counted", "numbers_of", "places_of", "windows"]

_MOST_OVERLAPS = 16
"""Parts into which windows that overlap are cut."""
_MOST_EXACT = 1 << 24
"""Whole numbers up to which float32 holds each."""


class Places(NamedTuple):
    """Parts of one tensor, at the same distance from each other."""

    axis: int
    start: int
    step: int
    extent: int
    rounds: int


def places_of(slices: Sequence[Node], source: Tensor) -> Places | None:
    """Return where the rounds' slices of one tensor are; None where a number does not say it."""
    first: Any = slices[0].settings
    starts: list[Any] = [node.settings["start"] for node in slices]
    extents = [node.settings.integer("stop") - node.settings.integer("start") for node in slices]
    step = starts[1] - starts[0]
    if first["step"] != 1 or step <= 0 or any(each != extents[0] for each in extents):
        return None
    if any(start != starts[0] + at * step for at, start in enumerate(starts)):
        return None
    if -(-extents[0] // step) > _MOST_OVERLAPS:
        return None
    axis = first["axis"] % len(source.shape)
    return Places(axis, starts[0], step, extents[0], len(starts))


def windows(source: Value, places: Places) -> Pack:
    """Return parts of a tensor, an axis in front of the one that they were cut along."""
    axis, start, step, extent, count = places
    shape: Any = source.shape
    pieces = []
    for offset in range(0, extent, step):
        begin, end = start + offset, start + offset + count * step
        lacking = max(0, end - shape[axis])
        piece = source
        if (begin, end) != (0, shape[axis] + lacking):
            piece = piece.apply("slice", axis=axis, start=begin, stop=end - lacking)
        if lacking:
            # Behind the last part, where nothing is read.
            widths = tuple((0, lacking if at == axis else 0) for at in range(len(shape)))
            piece = piece.apply("pad", widths=widths)
        piece = piece.reshape(*shape[:axis], count, step, *shape[axis + 1 :])
        width = min(step, extent - offset)
        if width < step:
            piece = piece.apply("slice", axis=axis + 1, start=0, stop=width)
        pieces.append(piece)
    value = pieces[0]
    if len(pieces) > 1:
        value = source.builder.apply("concat", *pieces, axis=axis + 1)
    return Pack(value, len(shape) - axis)


def numbers_of(constants: Sequence[Node]) -> tuple[int, int] | None:
    """Return the first of the rounds' numbers and the distance to the next; None where they are
    not at the same distance, or none that the data type counts exactly."""
    values: list[Any] = [node.settings["value"] for node in constants]
    if constants[0].output.dtype == "bool" or any(isinstance(each, bool) for each in values):
        return None
    if any(each != each // 1 or abs(each) > _MOST_EXACT for each in values):
        return None
    step = values[1] - values[0]
    if any(each != values[0] + at * step for at, each in enumerate(values)):
        return None
    return int(values[0]), int(step)


def counted(builder: GraphBuilder, node: Node, numbers: tuple[int, int], count: int) -> Pack:
    """Return the rounds' numbers."""
    start, step = numbers
    value = builder.apply("arange", count=count, dtype="int32") * step + start
    return Pack(value.astype(node.output.dtype), 0)
