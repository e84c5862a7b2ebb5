"""What a case of an operator whose inputs belong together is: shapes, attributes and values.

Sources: the documents of each operator, parameters and constraints.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from opkit.schema import AttrValue
from opkit.testing.cases.cases import Shape
from opkit.testing.cases.values import Source

__all__ = [
    "DIVIDES",
    "MULTIPLIES",
    "POINTS",
    "POSITIVE",
    "PROBABILITY",
    "ROWS",
    "Together",
    "apart",
    "different",
    "given",
    "places_of",
    "repeated",
    "same_place",
]


@dataclass(frozen=True)
class Together:
    """One case's inputs and attributes."""

    shapes: tuple[Shape | None, ...]
    """One for each input in the OpDef's order; None: it is left out. Those behind are too."""
    attrs: Mapping[str, AttrValue] = field(default_factory=dict)
    """Attributes that are not their default."""
    values: Mapping[str, Source] = field(default_factory=dict)
    """Sources of inputs that may not hold arbitrary values."""
    results: frozenset[str] = frozenset()
    """The types of the first output that it is for; all where empty."""


def given(*numbers: float) -> Source:
    return Source(values=numbers)


def places_of(count: int) -> Source:
    """Return any places along an axis of so many."""
    return Source("uniform", 0.0, float(count - 1))


def different(count: int, step: int = 37) -> Source:
    """Return whole numbers that differ, in an order without one, which 16 bits hold."""
    assert math.gcd(count, step) == 1 and count <= _WHOLE_IN_BFLOAT16
    return Source(values=tuple(float(place * step % count) for place in range(count)))


def apart(rows: int, columns: int) -> Source:
    """Numbers of which no two of a row are near each other, so that their order is no rounding."""
    return Source(
        values=tuple(
            8.0 * ((row * 7 + column * 11) % columns) / columns - 4.0
            for row in range(rows)
            for column in range(columns)
        )
    )


def repeated(row: Source, rows: int) -> Source:
    assert row.values is not None
    return Source(values=row.values * rows)


def same_place(places: Iterable[int], columns: int) -> Source:
    """Return the same place in each column of a row, so that no two of a column are the same."""
    return Source(values=tuple(float(place) for place in places for _ in range(columns)))


_WHOLE_IN_BFLOAT16 = 256
POSITIVE = Source("uniform", 0.125, 2.0)
PROBABILITY = Source("uniform", 0.0625, 0.9375)
# What quantises by division, and by multiplication.
DIVIDES, MULTIPLIES = Source("uniform", 0.03125, 0.125), Source("uniform", 8.0, 32.0)
POINTS = Source("uniform", -8.0, 8.0)
ROWS: tuple[Shape, ...] = ((7, 33), (3, 5, 65), (97, 1031))
