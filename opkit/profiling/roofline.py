"""A launch against the ceilings of its chip: arithmetic over bytes moved, and what bounds it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from html import escape

from opkit.chips import Chip, find_chip
from opkit.profiling.timeline import Timeline

__all__ = ["Ceiling", "RooflinePoint", "ceilings", "roofline_points", "roofline_svg"]

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 460, 260, 46, 34
_TOP_SPACE = 1.6


@dataclass(frozen=True)
class Ceiling:
    """A rate that no kernel passes."""

    name: str
    operations_per_second: float | None
    """Of a compute unit on all cores; None for a memory."""
    bytes_per_second: float | None
    """Of a memory; None for a compute unit."""


@dataclass(frozen=True)
class RooflinePoint:
    """What a launch attained on one kind of unit."""

    unit: str
    """`vector` or `cube`."""
    operations_per_byte: float
    """Over the bytes between global memory and the cores."""
    operations_per_second: float
    """Over the time of the slowest core."""


def ceilings(chip: Chip, kind: str = "aiv") -> tuple[Ceiling, ...]:
    """Return what a chip can do at the most: an operation is one element, or half a product.

    Args:
        kind: the cores that read L2, `aiv` or `aic`.
    """
    hertz = chip.number("clock.mhz") * 1e6
    vector = chip.count("cores.aiv") * hertz * chip.number("timing.vector.repeat_bytes")
    cube = 2 * chip.count("cores.aic") * hertz * chip.number("timing.cube.macs_per_cycle.fp16")
    l2_rate = chip.number(f"timing.mte2.l2_hit_{kind}_bytes_per_cycle")
    return (
        Ceiling("HBM", None, chip.number("timing.hbm.bytes_per_second")),
        Ceiling("L2", None, chip.count(f"cores.{kind}") * hertz * l2_rate),
        Ceiling("vector float16", vector / 2, None),
        Ceiling("vector float32", vector / 4, None),
        Ceiling("cube float16", cube, None),
    )


def roofline_points(timeline: Timeline) -> tuple[RooflinePoint, ...]:
    """Return the launch's points; none where it moved or computed nothing."""
    moved = timeline.gm_read_bytes + timeline.gm_write_bytes
    if not moved or not timeline.core_us:
        return ()
    points = []
    for unit, pipe in (("vector", "V"), ("cube", "M")):
        done = sum(line.operations for line in timeline.lines if line.pipe == pipe)
        if done:
            points.append(RooflinePoint(unit, done / moved, done / (timeline.core_us * 1e-6)))
    return tuple(points)


def roofline_svg(timeline: Timeline) -> str:
    """Return the drawing, both axes logarithmic."""
    points = roofline_points(timeline)
    if not points:
        return "<p>The launch moved or computed nothing.</p>"
    is_cube = any(point.unit == "cube" for point in points)
    kind = "aic" if is_cube else "aiv"
    every = ceilings(find_chip(timeline.chip), kind)
    shown = [item for item in every if is_cube or "cube" not in item.name]
    compute = [item.operations_per_second for item in shown if item.operations_per_second]
    left = min(-3.0, *(math.log2(point.operations_per_byte) - 1 for point in points))
    right = max(8.0, *(math.log2(point.operations_per_byte) + 1 for point in points))
    top = math.log10(max(compute) * _TOP_SPACE)
    lowest = min(point.operations_per_second for point in points)
    bottom = min(top - 4, math.log10(lowest) - 0.3)

    def x_of(intensity: float) -> float:
        share = (math.log2(intensity) - left) / (right - left)
        return _LEFT + share * (_WIDTH - _LEFT)

    def y_of(rate: float) -> float:
        share = (math.log10(rate) - bottom) / (top - bottom)
        return (1 - share) * (_HEIGHT - _BOTTOM)

    parts = [_grid(left, right, bottom, top, x_of, y_of)]
    roof = max(compute)
    for item in shown:
        if item.bytes_per_second:
            knee = roof / item.bytes_per_second
            begin = max(2**left, 10**bottom / item.bytes_per_second)
            end = min(2**right, knee)
            x, y = x_of(begin), y_of(begin * item.bytes_per_second)
            label = f"{item.name} {item.bytes_per_second / 1e12:.2g} TB/s"
            parts.append(_line(x, y, x_of(end), y_of(end * item.bytes_per_second), "#1a7f37"))
            parts.append(_text(x + 4, y - 8, label))
        elif item.operations_per_second:
            y = y_of(item.operations_per_second)
            label = f"{item.name} {item.operations_per_second / 1e12:.3g} T/s"
            parts.append(_line(_LEFT, y, _WIDTH, y, "#0969da"))
            parts.append(_text(_WIDTH - 150, y - 4, label))
    for point in points:
        parts.append(
            _mark(point, x_of(point.operations_per_byte), y_of(point.operations_per_second))
        )
    return (
        f'<svg width="{_WIDTH + 10}" height="{_HEIGHT}" role="img">{"".join(parts)}'
        f"{_text(_WIDTH / 2 - 60, _HEIGHT - 3, 'operations a byte of global memory')}</svg>"
    )


def _mark(point: RooflinePoint, x: float, y: float) -> str:
    text = (
        f"{point.unit}: {point.operations_per_second / 1e12:.3g} T operations/s,"
        f" {point.operations_per_byte:.3g} a byte"
    )
    # Where the right edge is near, the text stands on the left.
    place = x + 8 if x < _WIDTH / 2 else x - 8 - 5.6 * len(text)
    dot = f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="#cf222e"><title>{escape(text)}</title>'
    return f"{dot}</circle>{_text(place, y + 4, text)}"


def _grid(
    left: float,
    right: float,
    bottom: float,
    top: float,
    x_of: Callable[[float], float],
    y_of: Callable[[float], float],
) -> str:
    parts = []
    for power in range(math.ceil(left), math.floor(right) + 1, 2):
        x = x_of(2.0**power)
        parts.append(_line(x, 0, x, _HEIGHT - _BOTTOM, "#eaeef2"))
        parts.append(_text(x - 6, _HEIGHT - _BOTTOM + 13, f"{2.0**power:g}"))
    for power in range(math.ceil(bottom), math.floor(top) + 1):
        y = y_of(10.0**power)
        parts.append(_line(_LEFT, y, _WIDTH, y, "#eaeef2"))
        parts.append(_text(0, y + 4, f"{10.0 ** (power - 12):g} T/s"))
    return "".join(parts)


def _line(x1: float, y1: float, x2: float, y2: float, colour: str) -> str:
    ends = f'x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}"'
    return f'<line {ends} stroke="{colour}"/>'


def _text(x: float, y: float, text: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}">{escape(text)}</text>'
