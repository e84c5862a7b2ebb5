"""Boxes of a movement as its kernel copies them: rows that lie together, and what the host says of
each."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from opkit.chips import DATA_BLOCK_BYTES, Chip
from opkit.errors import UsageError

from ...ir import Dimension, Piece
from ..core_count import PARTIAL_CYCLES, fair_cores
from ..kernel_class import TilingValue
from ..launch_numbers import choose, divide_up, least, most, named

__all__ = [
    "BUFFER_BYTES",
    "MOST_OUTER",
    "Box",
    "boxes_of",
    "copy_cores",
    "copy_values",
    "word_bytes",
]

MOST_OUTER = 4
"""Axes of a box beside its rows and what lies together."""
BUFFER_BYTES = 32768
_WHOLE_CYCLES = 10
_COPY_CYCLES = 600
"""Cycles that a copy in and out takes to begin, beside its rows."""
_MOST_ROWS = 4095
_FEW_ROWS = 16
_FEW_BYTES = 4096
"""Rows of less take no longer than a copy needs to begin."""


@dataclass(frozen=True)
class Box:
    """What one copy after another moves, counted in words: elements, or halves of those of eight
    bytes. Sizes that have names stand for those of a launch."""

    source: int
    """Which input; -1 for a constant."""
    source_offset: Any
    target_offset: Any
    outer: tuple[tuple[Any, Any, Any], ...]
    """Extent, words from one index to the next in the source, and in the result."""
    rows: tuple[Any, Any, Any]
    run: Any
    """Words of a row."""


def word_bytes(size_bytes: int) -> int:
    """Return the bytes of what is copied as one, for elements of so many."""
    return min(size_bytes, 4)


def boxes_of(pieces: Sequence[Piece], size_bytes: int) -> list[Box]:
    """Return the boxes of pieces whose elements have so many bytes.

    Raises:
        UsageError: a box has more axes than a kernel takes.
    """
    words = max(1, size_bytes // 4)
    longest = BUFFER_BYTES // word_bytes(size_bytes) // words
    return [_box(part, words) for piece in pieces for part in _parts(piece, longest)]


def _parts(piece: Piece, longest: int) -> list[Piece]:
    """Return a box in boxes whose innermost runs are no longer than what a buffer holds."""
    if not piece.axes:
        return [piece]
    extent, source, target = piece.axes[-1]
    is_short = isinstance(extent, int) and extent <= longest
    if is_short or (source, target) not in ((1, 1), (0, 1)):
        return [piece]
    whole, rest = extent // longest, extent % longest
    outer = piece.axes[:-1]
    found = []
    if whole != 0:
        inner = ((whole, source * longest, target * longest), (longest, source, target))
        found.append(replace(piece, axes=(*outer, *inner)))
    if rest != 0:
        done = whole * longest
        offsets = (piece.source_offset + done * source, piece.target_offset + done * target)
        found.append(Piece(piece.source, *offsets, (*outer, (rest, source, target))))
    return found


def _box(piece: Piece, words: int) -> Box:
    axes = [(e, s * words, t * words) for e, s, t in piece.axes]
    run: Any = words
    is_constant = piece.source < 0
    if axes and axes[-1][2] == words and (is_constant or axes[-1][1] == words):
        run = axes.pop()[0] * words
    rows = (1, run, run)
    at = _rows_of(axes, run, is_constant)
    if at is not None:
        rows = axes.pop(at)
    if len(axes) > MOST_OUTER:
        raise UsageError(f"a movement with {len(axes)} axes that do not join has no kernel")
    return Box(
        piece.source,
        piece.source_offset * words,
        piece.target_offset * words,
        tuple(axes),
        rows,
        run,
    )


def _rows_of(axes: Sequence[tuple[Any, Any, Any]], run: Any, is_constant: bool) -> int | None:
    """Return which axis has the rows of a copy: the innermost, unless it has few and another has
    many; None where rows would overlap."""

    def is_apart(axis: tuple[Any, Any, Any]) -> bool:
        steps = axis[2:] if is_constant else axis[1:]
        # Of steps that a launch knows: what is no repetition does not overlap.
        return all(
            step >= run if isinstance(step, int) and isinstance(run, int) else step != 0
            for step in steps
        )

    if not axes or not is_apart(axes[-1]):
        return None
    last = len(axes) - 1
    # Those that a launch knows count as many.
    many = [each[0] if isinstance(each[0], int) else _MOST_ROWS for each in axes]
    longest = max(range(len(axes)), key=lambda at: many[at] if is_apart(axes[at]) else 0)
    is_better = many[last] < _FEW_ROWS and many[longest] > _FEW_ROWS * many[last]
    return longest if is_better else last


def copy_cores(boxes: Sequence[Box], size_bytes: int, cores: int, chip: Chip) -> int:
    """Return how many cores make the copy of boxes of known sizes the shortest.

    Args:
        size_bytes: of an element.
        cores: that the chip has.
    """
    unit = word_bytes(size_bytes)
    words, read, cycles = 0, 0, 0
    for box in boxes:
        rows = math.prod(extent for extent, *_ in (*box.outer, box.rows))
        words += rows * box.run
        read += rows * box.run * (box.source >= 0)
        cycles += rows * (PARTIAL_CYCLES if box.run * unit % DATA_BLOCK_BYTES else _WHOLE_CYCLES)
        cycles += math.prod(extent for extent, *_ in box.outer) * _COPY_CYCLES
    if not words:
        return cores
    worth: int = fair_cores(
        chip,
        words,
        cores,
        vector_cycles=cycles / words,
        read_bytes=-(-unit * read // words),
        written_bytes=unit,
    )
    return worth


def copy_values(
    boxes: Sequence[Box],
    sizes: Sequence[Any],
    output_size: Any,
    size_bytes: int,
    constant_bits: int,
    cores: Any,
    outer: int,
    extent_of: Callable[[Dimension], Any],
) -> tuple[Any, list[TilingValue]]:
    """Return the cores and the tiling data of a movement.

    Args:
        boxes: what is copied.
        sizes: elements of each input.
        output_size: elements of the result.
        size_bytes: of one element; 8 bytes move as two words.
        constant_bits: what a constant box holds, its element repeated to four bytes.
        cores: that the chip has.
        outer: the axes that the kernel has room for.
        extent_of: the number of a size that has a name.
    """
    words, unit = max(1, size_bytes // 4), word_bytes(size_bytes)
    lines: list[tuple[Any, list[TilingValue]]] = []
    for index, box in enumerate(boxes):
        lines.append(_box_values(index, box, unit, outer, cores, extent_of))
    total = named("units", sum(units for units, _ in lines))
    used = named("used", most(1, least(cores, total)))
    values = [
        TilingValue("perBlock", "int64_t", total // used),
        TilingValue("extra", "int64_t", total % used),
        TilingValue("constant", "uint32_t", constant_bits),
        TilingValue("reserved", "uint32_t", 0),
    ]
    for index, size in enumerate(sizes or [0]):
        values.append(TilingValue(f"inputSizes[{index}]", "int64_t", extent_of(size) * words))
    values.append(TilingValue("outputSize", "int64_t", extent_of(output_size) * words))
    for _, members in lines:
        values += members
    return used, values


def _box_values(
    index: int,
    box: Box,
    unit: int,
    outer: int,
    cores: Any,
    extent_of: Callable[[Dimension], Any],
) -> tuple[Any, list[TilingValue]]:
    run = named(f"run{index}", extent_of(box.run))
    rows, source_row, target_row = (extent_of(each) for each in box.rows)
    rows = named(f"rows{index}", rows)
    # What is left of a run that a buffer just holds may be nothing.
    pitch = divide_up(most(run, 1) * unit, 32) * 32
    axes = [tuple(extent_of(each) for each in axis) for axis in box.outer]
    axes = [(1, 0, 0)] * (outer - len(axes)) + axes
    times = 1
    for extent, _, _ in axes:
        times = times * extent
    # As many rows as a buffer holds, but no core is idle while others have more than a few.
    share = most(divide_up(rows * times, cores), least(_FEW_ROWS, divide_up(_FEW_BYTES, pitch)))
    most_rows = least(_MOST_ROWS, BUFFER_BYTES // pitch, rows, share)
    per_unit = named(f"rowsPerUnit{index}", most(1, most_rows))
    units = divide_up(rows, per_unit) * times
    units = named(f"units{index}", choose(run > 0, units, 0))
    place = f"boxes[{index}]."
    members = {
        "units": units,
        "source": extent_of(box.source_offset),
        "target": extent_of(box.target_offset),
        **{f"extents[{at}]": axis[0] for at, axis in enumerate(axes)},
        **{f"sourceSteps[{at}]": axis[1] for at, axis in enumerate(axes)},
        **{f"targetSteps[{at}]": axis[2] for at, axis in enumerate(axes)},
        "rows": rows,
        "sourceRow": source_row,
        "targetRow": target_row,
        "run": run,
        "rowsPerUnit": per_unit,
        "input": box.source,
    }
    return units, [TilingValue(place + name, "int64_t", v) for name, v in members.items()]
