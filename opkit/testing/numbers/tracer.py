"""One evaluation of a reference: which of its places is moved, and which of its sums cancels."""

from __future__ import annotations

import contextlib
import linecache
import sys
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType

import numpy as np

from opkit.testing.numbers.arrays import Array

__all__ = ["Cancellation", "Site", "Tracer"]


@dataclass(frozen=True)
class Site:
    """One place where a value is perturbed: the same expression twice is one place.

    A kernel that computes it twice rounds it twice alike, so that a row's largest element stays
    equal to it.
    """

    kind: str
    """`constant`, `term`, `sum`, `decision` or `tie`."""
    expression: Hashable


@dataclass(frozen=True)
class Cancellation:
    """The sum of a golden that loses most of its operands' digits at one element."""

    file: Path
    line: int
    text: str
    """The expression in the golden, or its whole line."""
    operands: tuple[float, ...]
    """What is added; the sum of the magnitudes where it is added up over an axis."""
    result: float

    def __str__(self) -> str:
        added = " and ".join(f"{value:.6g}" for value in self.operands)
        return f"{self.file.name}:{self.line}: {self.text}: {added} cancel to {self.result:.3g}"


_ROUNDINGS = frozenset({np.rint, np.floor, np.ceil, np.trunc})


@dataclass
class Tracer:
    """One evaluation: which place is perturbed, and by what factor less 1."""

    target: int = -1
    step: float = 0.0
    watched: int | None = None
    """A flat position in the result, whose worst cancellation is looked for."""
    watched_shape: tuple[int, ...] = ()
    sites: dict[Site, int] = field(default_factory=dict)
    """The places met, in their order."""
    worst: Cancellation | None = None
    measures: bool = False
    """Whether the five below are kept, of everything that is computed."""
    largest_whole: float = 0.0
    """The largest magnitude among whole numbers."""
    largest_fraction: float = 0.0
    """The largest finite one among numbers with a fraction."""
    rounds: bool = False
    """Whether anything is rounded to a whole number."""
    decides: bool = False
    """Whether values are compared, the larger of them chosen or asked for their sign."""
    thresholds: set[float] = field(default_factory=set)
    """The numbers that they are compared with."""
    _loss: float = 4.0
    _expressions: dict[Hashable, int] = field(default_factory=dict)
    # With their arrays, so that none is freed and another has its address.
    _foreign: dict[int, tuple[Array, int]] = field(default_factory=dict)
    _count: int = 0

    def step_at(self, kind: str, expression: Hashable) -> float:
        """Note a place; return how far its value is moved in this evaluation, relatively."""
        number = self.sites.setdefault(Site(kind, expression), len(self.sites))
        return self.step if number == self.target else 0.0

    def met(self, function: object, result: object) -> None:
        """Note what a function gave, where that is asked for."""
        if not self.measures:
            return
        self.rounds |= function in _ROUNDINGS
        for one in result if isinstance(result, (tuple, list)) else (result,):
            array = np.asarray(one)
            if array.dtype.kind not in "iuf" or not array.size:
                continue
            largest = max(-float(array.min()), float(array.max()))
            if array.dtype.kind != "f":
                self.largest_whole = max(self.largest_whole, largest)
            elif np.isfinite(largest):
                self.largest_fraction = max(self.largest_fraction, largest)

    def decided(self, operands: Iterable[object]) -> None:
        """Note what is compared, or kept within bounds, where that is asked for."""
        if not self.measures:
            return
        self.decides = True
        for value in operands:
            if isinstance(value, (int, float, np.number)) or np.ndim(value) == 0:  # type: ignore[arg-type]
                with contextlib.suppress(TypeError, ValueError, OverflowError):
                    self.thresholds.add(float(value))  # type: ignore[arg-type]

    def number(self) -> int:
        """Return a number that no expression has."""
        self._count += 1
        return self._count

    def expression(self, form: Hashable) -> int:
        """Return the number of an expression, the same for the same function of the same."""
        found = self._expressions.get(form)
        if found is None:
            found = self._expressions[form] = self.number()
        return found

    def foreign(self, array: Array) -> int:
        """Return the number of an array that the reference made itself."""
        if id(array) not in self._foreign:
            self._foreign[id(array)] = array, self.number()
        return self._foreign[id(array)][1]

    def watch(self, result: Array, *operands: object) -> None:
        """Note the operands of a sum where they cancel at the watched position."""
        if self.watched is None:
            return
        found = _at(result, self.watched, self.watched_shape)
        values = [_at(np.asarray(o), self.watched, self.watched_shape) for o in operands]
        if found is None or any(value is None for value in values):
            return
        known = [value for value in values if value is not None]
        total = sum(abs(value) for value in known)
        loss = total / abs(found) if found else np.inf if total else 0.0
        if np.isfinite(total) and loss > self._loss:
            place = _place()
            if place is not None:
                self._loss = loss
                self.worst = Cancellation(*place, tuple(known), found)


_PACKAGES = (
    str(Path(np.__file__).parent),
    *(str(Path(__file__).with_name(name).resolve()) for name in ("tracer.py", "traced.py")),
    # Which evaluates the formulas of a golden.
    str(Path(__file__).parents[2] / "compiler"),
)


def _place() -> tuple[Path, int, str] | None:
    """Return file, line and expression of the golden that is being evaluated."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None and frame.f_code.co_filename.startswith(_PACKAGES):
        frame = frame.f_back
    if frame is None:
        return None
    file, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(file, line)
    text = source.strip()
    # Only from Python 3.11 on does a frame know its columns.
    positions = getattr(frame.f_code, "co_positions", None)
    if positions is not None:
        first, last, start, end = list(positions())[frame.f_lasti // 2]
        if first == last == line and start is not None and end is not None:
            text = source.encode()[start:end].decode(errors="replace").strip() or text
    return Path(file), line, text


def _at(values: Array, position: int, shape: tuple[int, ...]) -> float | None:
    """Return the element that ends up at a flat position of an array of `shape`."""
    if values.size == 1:
        return float(values.reshape(-1)[0])
    if values.ndim > len(shape):
        return None
    index = np.unravel_index(position, shape)[len(shape) - values.ndim :]
    fits = all(a in (1, b) for a, b in zip(values.shape, shape[len(shape) - values.ndim :]))  # noqa: B905
    if not fits:
        return None
    return float(values[tuple(i if n > 1 else 0 for i, n in zip(index, values.shape, strict=True))])
