"""What may be chosen: knobs with their values, and the candidates that they make."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

from opkit.errors import UsageError
from opkit.schema import nearest

__all__ = ["Candidate", "Knob", "Space", "Value"]

Value: TypeAlias = int | str
Candidate: TypeAlias = tuple[Value, ...]
"""A value for each knob, in the space's order."""


@dataclass(frozen=True)
class Knob:
    """One thing to choose."""

    name: str
    values: tuple[Value, ...]
    """In an order in which neighbours are alike; the start is among them."""
    start: Value
    """What is there without tuning."""
    note: str = ""
    """What it is, with its unit."""


@dataclass(frozen=True)
class Space:
    """All combinations of the knobs' values."""

    knobs: tuple[Knob, ...]

    @property
    def size(self) -> int:
        """How many candidates there are."""
        return math.prod(len(knob.values) for knob in self.knobs)

    @property
    def start(self) -> Candidate:
        """The candidate that is there without tuning."""
        return tuple(knob.start for knob in self.knobs)

    def candidates(self) -> Iterator[Candidate]:
        """Yield every candidate."""
        return itertools.product(*(knob.values for knob in self.knobs))

    def at(self, indices: Sequence[int]) -> Candidate:
        """Return the candidate with these positions in the knobs' values."""
        return tuple(knob.values[at] for knob, at in zip(self.knobs, indices, strict=True))

    def indices(self, candidate: Candidate) -> tuple[int, ...]:
        """Return the positions of a candidate's values."""
        return tuple(
            knob.values.index(value) for knob, value in zip(self.knobs, candidate, strict=True)
        )

    def neighbours(self, candidate: Candidate) -> Iterator[Candidate]:
        """Yield the candidates that differ in one knob, by one step and then by two."""
        here = self.indices(candidate)
        for step in (1, 2):
            for place, knob in enumerate(self.knobs):
                for at in (here[place] - step, here[place] + step):
                    if 0 <= at < len(knob.values):
                        yield self.at((*here[:place], at, *here[place + 1 :]))

    def text(self, candidate: Candidate) -> str:
        """Return a candidate as people read it, such as `tiles=4 buffers=3 blocks=40`."""
        return " ".join(
            f"{knob.name}={value}" for knob, value in zip(self.knobs, candidate, strict=True)
        )

    def narrowed(self, texts: Sequence[str]) -> Space:
        """Return the space with other values for some knobs: `tiles=1,2,4`; the start stays.

        Raises:
            UsageError: there is no such knob, or a value of it is no whole number from 0.
        """
        knobs = {knob.name: knob for knob in self.knobs}
        for text in texts:
            name, equals, given = text.partition("=")
            if name not in knobs:
                near = nearest(name, list(knobs))
                raise UsageError(
                    f'there is no knob "{name}"',
                    help=f'did you mean "{near}"?' if near else "there are " + ", ".join(knobs),
                )
            knob = knobs[name]
            values: list[Value] = []
            for part in given.split(",") if equals else []:
                word = part.strip()
                if isinstance(knob.start, str):
                    values.append(word)
                elif word.isascii() and word.isdigit():
                    values.append(int(word))
                else:
                    raise UsageError(
                        f'--knob "{text}": "{word}" is no whole number from 0',
                        help=f"write {name}=1,2,4",
                    )
            if not values or "" in values:
                raise UsageError(f'--knob "{text}" gives no values', help=f"write {name}=1,2,4")
            if knob.start not in values:
                values.insert(0, knob.start)
            knobs[name] = replace(knob, values=tuple(dict.fromkeys(values)))
        return Space(tuple(knobs.values()))
