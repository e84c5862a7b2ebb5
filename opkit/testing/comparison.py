"""One array against its golden, by a precision standard."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opkit.dtypes import DType
from opkit.errors import PrecisionError
from opkit.testing.arrays import Array, dtype_of, is_float, narrow, storage, widen
from opkit.testing.standards import EXACT, Measure, Numbers, Standard, find_standard

__all__ = ["Comparison", "Figure", "Worst", "compare"]

# Elements per step: the temporaries of a step stay near 64 MiB whatever the size of the arrays.
CHUNK = 1 << 20


@dataclass(frozen=True)
class Figure:
    """One measured figure beside its limit."""

    name: str
    value: float
    limit: float
    strict: bool

    @property
    def passed(self) -> bool:
        """Whether the figure keeps its limit."""
        return self.value < self.limit if self.strict else self.value <= self.limit

    def __str__(self) -> str:
        sign = "<" if self.strict else "<="
        return f"{self.name} {self.value:.3g} ({sign} {self.limit:.3g})"


@dataclass(frozen=True)
class Worst:
    """The element that is furthest off."""

    index: tuple[int, ...]
    actual: float | int
    golden: float | int
    error: float
    """By the standard's first measure; infinite where NaN or infinity stands on one side only."""

    def __str__(self) -> str:
        place = ", ".join(str(number) for number in self.index)
        return f"at [{place}]: got {self.actual!r}, golden {self.golden!r}"


@dataclass(frozen=True)
class Comparison:
    """What comparing one array came to."""

    dtype: str
    standard: str
    elements: int
    figures: tuple[Figure, ...]
    nan_mismatches: int
    """Elements where one side only is NaN."""
    inf_mismatches: int
    """Elements where one side only is infinite, or the signs differ; golden is rounded first."""
    worst: Worst | None
    """None where no element differs."""

    @property
    def passed(self) -> bool:
        """Whether every figure keeps its limit and NaN and infinity stand where they should."""
        return (
            not self.nan_mismatches
            and not self.inf_mismatches
            and all(figure.passed for figure in self.figures)
        )

    def __str__(self) -> str:
        parts = [str(figure) for figure in self.figures]
        if self.nan_mismatches:
            parts.append(f"{self.nan_mismatches} NaN in the wrong place")
        if self.inf_mismatches:
            parts.append(f"{self.inf_mismatches} infinities in the wrong place")
        return ", ".join(parts)


class _Gathered:
    """Figures and worst element so far."""

    def __init__(self, measures: tuple[Measure, ...]) -> None:
        self.totals = [0.0] * len(measures)
        self.finite = 0
        self.nan_mismatches = 0
        self.inf_mismatches = 0
        self.worst_error = 0.0
        self.worst_position: int | None = None

    def consider(self, error: float, position: int) -> None:
        if error > self.worst_error:
            self.worst_error = error
            self.worst_position = position


def compare(
    actual: Array,
    golden: Array,
    *,
    dtype: DType | str | None = None,
    standard: Standard | str = "ecosystem",
) -> Comparison:
    """Return how far `actual` is from `golden` and whether the standard allows it.

    NaN must stand where golden has NaN, and infinity, with its sign, where golden rounded to the
    data type has it: a golden of 1e5 is infinite in float16. Figures cover the other elements.
    Whole numbers must be equal, under every standard.

    Args:
        actual: what the operator wrote; bfloat16 is uint16 with `dtype` given.
        golden: the reference, same shape; float64, or whole numbers.
    Raises:
        PrecisionError: the shapes differ.
        UsageError: no such data type or standard, or the standard has no limits for it.
    """
    row = dtype_of(actual, dtype)
    rule = find_standard(standard) if isinstance(standard, str) else standard
    golden = np.asarray(golden)
    if actual.shape != golden.shape:
        raise PrecisionError(
            f"the result has shape {actual.shape}, the golden has {golden.shape}",
            help="compare InferShape in op_host with the golden",
        )
    if not is_float(row):
        rule = EXACT
    numbers: Numbers = {} if rule is EXACT else rule.numbers_for(row)

    flat_actual = storage(actual, row).reshape(-1)
    flat_golden = golden.reshape(-1)
    gathered = _Gathered(rule.measures)
    for start in range(0, flat_actual.size, CHUNK):
        part = slice(start, start + CHUNK)
        wide = widen(flat_actual[part], row)
        reference = flat_golden[part]
        positions: Array | None = None
        if is_float(row):
            reference = reference.astype(np.float64)
            wide, reference, positions = _finite_part(wide, reference, row, gathered, start)
        if wide.size == 0:
            continue
        gathered.finite += int(wide.size)
        for number, measure in enumerate(rule.measures):
            with np.errstate(all="ignore"):
                errors = measure.element(wide, reference, numbers)
            if measure.gather == "max":
                gathered.totals[number] = max(gathered.totals[number], float(errors.max()))
            else:
                gathered.totals[number] += float(errors.sum())
            if number == 0:
                at = int(errors.argmax())
                position = at if positions is None else int(positions[at])
                gathered.consider(float(errors[at]), start + position)
    return _finish(gathered, rule, row, flat_actual, flat_golden, actual.shape, numbers)


def _finite_part(
    actual: Array, golden: Array, dtype: DType, gathered: _Gathered, start: int
) -> tuple[Array, Array, Array | None]:
    """Count NaN and infinities in the wrong place; return the elements that are left, and where."""
    rounded = widen(narrow(golden, dtype), dtype)
    plain = np.isfinite(actual) & np.isfinite(rounded)
    if plain.all():
        return actual, golden, None
    wrong_nan = np.isnan(actual) != np.isnan(rounded)
    infinite = np.isinf(actual) | np.isinf(rounded)
    wrong_infinity = infinite & (actual != rounded) & ~wrong_nan
    gathered.nan_mismatches += int(wrong_nan.sum())
    gathered.inf_mismatches += int(wrong_infinity.sum())
    wrong = np.flatnonzero(wrong_nan | wrong_infinity)
    if wrong.size:
        gathered.consider(float("inf"), start + int(wrong[0]))
    return actual[plain], golden[plain], np.flatnonzero(plain)


def _finish(
    gathered: _Gathered,
    rule: Standard,
    dtype: DType,
    actual: Array,
    golden: Array,
    shape: tuple[int, ...],
    numbers: Numbers,
) -> Comparison:
    figures = []
    for total, measure in zip(gathered.totals, rule.measures, strict=True):
        value = total if measure.gather == "max" else total / max(gathered.finite, 1)
        limit = measure.limit(numbers)
        figures.append(Figure(measure.name, value, limit, measure.strict))
    worst = None
    if gathered.worst_position is not None:
        at = gathered.worst_position
        worst = Worst(
            index=tuple(int(number) for number in np.unravel_index(at, shape)),
            actual=widen(actual[at : at + 1], dtype)[0].item(),
            golden=golden[at].item(),
            error=gathered.worst_error,
        )
    return Comparison(
        dtype=dtype.name,
        standard=rule.name,
        elements=int(actual.size),
        figures=tuple(figures),
        nan_mismatches=gathered.nan_mismatches,
        inf_mismatches=gathered.inf_mismatches,
        worst=worst,
    )
