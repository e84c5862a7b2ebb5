"""A launch against the ceilings of its chip: arithmetic over bytes moved, and what bounds it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from opkit.chips import Chip, find_chip
from opkit.profiling.timeline import Timeline

__all__ = [
    "Attained",
    "Ceiling",
    "RooflinePoint",
    "attained",
    "binding_text",
    "ceilings",
    "roofline_drawing",
    "roofline_points",
]

_WIDTH, _HEIGHT, _LEFT, _BOTTOM = 376, 260, 50, 34
_LABEL_HEIGHT = 13
_TOP_SPACE = 1.6
_GRID_COLOUR = "#8c959f55"


@dataclass(frozen=True)
class Line:
    """A stroke of the drawing, in pixels."""

    x1: float
    y1: float
    x2: float
    y2: float
    colour: str


@dataclass(frozen=True)
class Label:
    """A text, or a point with its text, in pixels."""

    x: float
    y: float
    text: str
    is_strong: bool = False
    """The name of a ceiling."""


@dataclass(frozen=True)
class Drawing:
    """What a page draws."""

    width: int
    height: int
    lines: tuple[Line, ...]
    marks: tuple[Label, ...]
    labels: tuple[Label, ...]


@dataclass(frozen=True)
class Ceiling:
    """A rate that no kernel passes."""

    name: str
    operations_per_second: float | None
    """Rate of a compute unit on all cores; None for a memory."""
    bytes_per_second: float | None
    """Rate of a memory; None for a compute unit."""


@dataclass(frozen=True)
class RooflinePoint:
    """What a launch attained on one kind of unit."""

    unit: str
    """`vector` or `cube`."""
    operations_per_byte: float
    """Over the bytes between global memory and the cores."""
    operations_per_second: float
    """Over the time of the slowest core."""


@dataclass(frozen=True)
class Attained:
    """What a launch attained of a ceiling."""

    ceiling: Ceiling
    rate: float
    """Bytes or operations a second."""
    share: float


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


def attained(timeline: Timeline) -> tuple[Attained, ...]:
    """Return how near the launch came to each ceiling that it meets, the nearest first."""
    chip = find_chip(timeline.chip)
    seconds = timeline.core_us * 1e-6
    points = roofline_points(timeline)
    if not points:
        return ()
    kind = "aic" if any(point.unit == "cube" for point in points) else "aiv"
    moved = timeline.gm_read_bytes + timeline.gm_write_bytes
    through_hbm = timeline.hbm_read_bytes + timeline.hbm_write_bytes
    found = []
    for ceiling in ceilings(chip, kind):
        if ceiling.bytes_per_second is not None:
            rate = (through_hbm if ceiling.name == "HBM" else moved) / seconds
            found.append(Attained(ceiling, rate, rate / ceiling.bytes_per_second))
            continue
        assert ceiling.operations_per_second is not None
        for point in points:
            if ceiling.name.startswith(point.unit):
                rate = point.operations_per_second
                found.append(Attained(ceiling, rate, rate / ceiling.operations_per_second))
    return tuple(sorted(found, key=lambda item: -item.share))


def binding_text(timeline: Timeline) -> str:
    """Return which ceiling is the nearest, and what the launch is bound by beside it."""
    near = attained(timeline)
    if not near:
        return ""
    first = near[0]
    text = (
        f"The nearest ceiling is {first.ceiling.name}: {100 * first.share:.0f} % of it is attained"
    )
    busiest = next(iter(timeline.bounds.values()), None)
    if busiest is None or first.share > 0.6:
        return f"{text}; it binds the launch."
    if timeline.bound_by == "launch":
        return f"{text}. What binds is the launch itself, which takes longer than the cores run."
    return (
        f"{text}. What binds is {busiest.name}, busy {100 * busiest.utilisation:.0f} % of the time."
    )


def roofline_drawing(timeline: Timeline) -> Drawing | None:
    """Return the drawing, both axes logarithmic; None where there is nothing to draw."""
    points = roofline_points(timeline)
    if not points:
        return None
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

    lines, labels = _grid(left, right, bottom, top, x_of, y_of)
    roof = max(compute)
    taken: list[float] = []
    for item in shown:
        if item.bytes_per_second:
            knee = roof / item.bytes_per_second
            begin = max(2**left, 10**bottom / item.bytes_per_second)
            end = min(2**right, knee)
            x, y = x_of(begin), y_of(begin * item.bytes_per_second)
            lines.append(Line(x, y, x_of(end), y_of(end * item.bytes_per_second), "var(--good)"))
            labels.append(Label(x + 4, _free(y - 8, taken), item.name, is_strong=True))
        elif item.operations_per_second:
            y = y_of(item.operations_per_second)
            lines.append(Line(_LEFT, y, _WIDTH, y, "var(--mark)"))
            place = _free(y - 4, taken)
            labels.append(Label(_WIDTH - 6.4 * len(item.name), place, item.name, is_strong=True))
    marks = [
        Label(
            x_of(point.operations_per_byte),
            y_of(point.operations_per_second),
            f"{point.unit}: {point.operations_per_second / 1e12:.3g} T operations/s,"
            f" {point.operations_per_byte:.3g} a byte",
        )
        for point in points
    ]
    # The numbers stand in the table: beside a point there is only its unit.
    labels += [Label(mark.x + 8, mark.y + 4, mark.text.partition(":")[0]) for mark in marks]
    labels.append(Label(_LEFT + 10, _HEIGHT - 3, "operations a byte of global memory"))
    return Drawing(_WIDTH + 4, _HEIGHT, tuple(lines), tuple(marks), tuple(labels))


def _free(y: float, taken: list[float]) -> float:
    """Return the height nearest below `y` where no label stands yet."""
    while any(abs(y - other) < _LABEL_HEIGHT for other in taken):
        y += _LABEL_HEIGHT
    taken.append(y)
    return y


def _grid(
    left: float,
    right: float,
    bottom: float,
    top: float,
    x_of: Callable[[float], float],
    y_of: Callable[[float], float],
) -> tuple[list[Line], list[Label]]:
    lines, labels = [], []
    for power in range(math.ceil(left), math.floor(right) + 1, 2):
        x = x_of(2.0**power)
        lines.append(Line(x, 0, x, _HEIGHT - _BOTTOM, _GRID_COLOUR))
        labels.append(Label(x - 6, _HEIGHT - _BOTTOM + 13, f"{2.0**power:g}"))
    for power in range(math.ceil(bottom), math.floor(top) + 1):
        y = y_of(10.0**power)
        lines.append(Line(_LEFT, y, _WIDTH, y, _GRID_COLOUR))
        labels.append(Label(0, y + 4, f"{10.0 ** (power - 12):g} T/s"))
    return lines, labels
