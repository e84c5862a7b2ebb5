"""One array against its golden, by a precision standard."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from opkit.dtypes import DType
from opkit.errors import PrecisionError, UsageError
from opkit.testing.numbers.arrays import (
    Array,
    complex_parts,
    dtype_of,
    is_complex,
    is_float,
    narrow,
    storage,
    wide_parts,
    widen,
)
from opkit.testing.numbers.measures import Measure, Numbers
from opkit.testing.numbers.picture import ErrorPicture, Painter
from opkit.testing.numbers.standards import EXACT, ROUNDED, Standard, find_standard

__all__ = ["Comparer", "Comparison", "Figure", "Worst", "compare"]

# Elements per step: the temporaries of a step stay near 64 MiB whatever the size of the arrays.
CHUNK = 1 << 20


@dataclass(frozen=True)
class Figure:
    """One measured figure beside its limit."""

    name: str
    value: float
    limit: float
    strict: bool
    alternative: str = ""
    """One of the figures with the same word here suffices."""

    @property
    def passed(self) -> bool:
        """Whether the figure keeps its limit."""
        return self.value < self.limit if self.strict else self.value <= self.limit

    def __str__(self) -> str:
        sign = "<" if self.strict else "<="
        return f"{self.name} {self.value:.3g} ({sign} {self.limit:.3g})"


@dataclass(frozen=True)
class Worst:
    """An element that is far off."""

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
    shape: tuple[int, ...]
    elements: int
    figures: tuple[Figure, ...]
    nan_mismatches: int
    """Elements where one side only is NaN."""
    inf_mismatches: int
    """Elements where one side only is infinite, or the signs differ; golden is rounded first."""
    worst_elements: tuple[Worst, ...]
    """The worst first; empty where no element differs."""
    picture: ErrorPicture | None = None
    """Where and how large the errors are, if it was asked for."""
    cancelled: int = 0
    """Elements that the figures leave out: their error is the operator's own condition."""
    out_of_range: int = 0
    """Elements that the figures leave out: float32 overflows on the way to them."""
    figures_of_all: tuple[Figure, ...] = ()
    """The figures with those elements; empty where there are none."""
    cancellation: str = ""
    """Which sum of the golden cancels at the worst of them, where that is known."""

    @property
    def worst(self) -> Worst | None:
        """The element that is furthest off, None where no element differs."""
        return self.worst_elements[0] if self.worst_elements else None

    @property
    def passed(self) -> bool:
        """Whether every figure keeps its limit and NaN and infinity stand where they should."""
        if self.nan_mismatches or self.inf_mismatches:
            return False
        excused = {figure.alternative for figure in self.figures if figure.passed} - {""}
        return all(figure.passed or figure.alternative in excused for figure in self.figures)

    def __str__(self) -> str:
        parts = [str(figure) for figure in self.figures]
        if self.nan_mismatches:
            parts.append(f"{self.nan_mismatches} NaN in the wrong place")
        if self.inf_mismatches:
            parts.append(f"{self.inf_mismatches} infinities in the wrong place")
        return ", ".join(parts)


class _Tally:
    """One measure so far, of the result or of the second reference."""

    def __init__(self, measure: Measure, numbers: Numbers) -> None:
        self._measure = measure
        self._numbers = numbers
        self._total = 0.0
        self._count = 0

    def add(self, actual: Array, golden: Array, errors: Array | None = None) -> None:
        measure, numbers = self._measure, self._numbers
        if measure.domain is not None:
            inside = measure.domain(actual, golden, numbers)
            actual, golden, errors = actual[inside], golden[inside], None
        if errors is None:
            errors = measure.element(actual, golden, numbers)
        if errors.size == 0:
            return
        self._count += int(errors.size)
        if measure.gather == "max":
            self._total = max(self._total, float(errors.max()))
        elif measure.gather == "rms":
            self._total += float(np.square(errors).sum())
        else:
            self._total += float(errors.sum())

    @property
    def value(self) -> float:
        if self._measure.gather in ("max", "count"):
            return self._total
        mean = self._total / max(self._count, 1)
        return float(np.sqrt(mean)) if self._measure.gather == "rms" else mean


# No instruction of the AI core computes in it: a kernel gives what it was given. Source: the data
# types of each page of the Ascend C API.
_ONLY_MOVED = "float64"


class Comparer:
    """Compares an array with its golden part by part, each part given once, in order."""

    def __init__(
        self,
        shape: tuple[int, ...],
        dtype: DType,
        standard: Standard | str = "ecosystem",
        *,
        picture: bool = False,
        keep: int = 8,
        excused: Array | None = None,
        rounds: bool = False,
    ) -> None:
        """Take the shape and data type of what is to be compared.

        `picture`: also make an `ErrorPicture`; `keep`: how many of the worst elements to list;
        `excused`: a flat mask of the elements that the figures leave out; `rounds`: whether whole
        numbers are rounded from a golden with a fraction.

        Raises:
            UsageError: no such standard, or it has no limits for the data type.
        """
        rule = find_standard(standard) if isinstance(standard, str) else standard
        self._is_float = is_float(dtype)
        self.forgives = rule.forgives_cancellation
        """Whether the operator's condition may excuse elements: of whole numbers, decisions."""
        if dtype.name not in rule.numbers and dtype.name == _ONLY_MOVED:
            rule = EXACT
        if not self._is_float and not (rule.also_whole and dtype.name in rule.numbers):
            rule = EXACT
        self._shape = shape
        self._dtype = dtype
        self._judge_by(rule)
        self._nan_mismatches = 0
        self._inf_mismatches = 0
        self._seen = 0
        self._keep = keep
        self._worst_errors: Array = np.empty(0)
        self._worst: list[tuple[int, float | int, float | int]] = []
        self._painter = Painter(shape) if picture and self._is_float else None
        self._excused = excused
        self._rounds = rounds and self.rule is EXACT and dtype.name in ROUNDED.numbers
        self._suspects: list[Array] = []
        self._misplaced: list[Array] = []

    def _judge_by(self, rule: Standard) -> None:
        self.rule = rule
        self._numbers: Numbers = {} if rule is EXACT else rule.numbers_for(self._dtype)
        self._own = [_Tally(measure, self._numbers) for measure in rule.measures]
        self._second = [_Tally(measure, self._numbers) for measure in rule.measures]

    def add(self, actual: Array, golden: Array, second: Array | None = None) -> None:
        """Compare the next elements: as they are stored, wide, and wide; each of one dimension."""
        if self._rounds and golden.dtype.kind == "f" and (golden != np.rint(golden)).any():
            self._judge_by(ROUNDED)
            self._rounds = False
        if self.rule.needs_second and second is None:
            raise UsageError(
                f'the precision standard "{self.rule.name}" needs a second reference',
                help="pass `second`, a result of the same precision; in a project write"
                " <operator>_same_precision in golden.py",
            )
        for start in range(0, actual.size, CHUNK):
            part = slice(start, start + CHUNK)
            other = None if second is None else second[part]
            self._add_chunk(widen(actual[part], self._dtype), golden[part], other)

    def _add_chunk(self, actual: Array, golden: Array, second: Array | None) -> None:
        start, self._seen = self._seen, self._seen + int(actual.size)
        indices: Array | None = None
        if self._is_float:
            golden = golden.astype(np.float64)
            if self._painter is not None:
                self._painter.add(start, actual, golden)
        if self._excused is not None:
            indices = np.flatnonzero(~self._excused[start : self._seen])
            actual, golden = actual[indices], golden[indices]
            second = None if second is None else second[indices]
        positions = indices
        if self._is_float:
            actual, golden, left = self._finite_part(actual, golden, start, indices)
            if left is not None:
                positions = left if indices is None else indices[left]
                second = None if second is None else second[left]
        if actual.size == 0:
            return
        with np.errstate(all="ignore"):
            errors = self.rule.measures[0].element(actual, golden, self._numbers)
            self._keep_worst(errors, actual, golden, start, positions)
            if self.forgives:
                suspects = np.flatnonzero(errors > self._numbers.get("T", 0.0))
                self._suspects.append(
                    start + (suspects if positions is None else positions[suspects])
                )
            for number, tally in enumerate(self._own):
                tally.add(actual, golden, errors if number == 0 else None)
            if self.rule.needs_second and second is not None:
                usable = np.isfinite(second)
                for tally in self._second:
                    tally.add(second[usable], golden[usable])

    def _finite_part(
        self, actual: Array, golden: Array, start: int, indices: Array | None
    ) -> tuple[Array, Array, Array | None]:
        """Count NaN and infinities in the wrong place; return the elements left, and which.

        `indices`: where the elements stand behind `start`; None where all of them do.
        """
        rounded = widen(narrow(golden, self._dtype), self._dtype)
        plain = np.isfinite(actual) & np.isfinite(rounded)
        if plain.all():
            return actual, golden, None
        wrong_nan = np.isnan(actual) != np.isnan(rounded)
        infinite = np.isinf(actual) | np.isinf(rounded)
        wrong_infinity = infinite & (actual != rounded) & ~wrong_nan
        if self.rule.infinity_is_largest:
            largest = self._numbers["largest"]
            actual = np.where(wrong_infinity, np.clip(actual, -largest, largest), actual)
            golden = np.where(wrong_infinity, np.clip(golden, -largest, largest), golden)
            plain |= wrong_infinity
            wrong_infinity = np.zeros_like(wrong_infinity)
        self._nan_mismatches += int(wrong_nan.sum())
        self._inf_mismatches += int(wrong_infinity.sum())
        wrong = np.flatnonzero(wrong_nan | wrong_infinity)
        where = start + (wrong if indices is None else indices[wrong])
        if self.rule.forgives_cancellation:
            self._misplaced.append(where)
        wrong = wrong[: self._keep]
        self._note(np.full(wrong.size, np.inf), where[: self._keep], actual[wrong], golden[wrong])
        return actual[plain], golden[plain], np.flatnonzero(plain)

    def _keep_worst(
        self, errors: Array, actual: Array, golden: Array, start: int, positions: Array | None
    ) -> None:
        full = self._worst_errors.size >= self._keep
        bar = float(self._worst_errors[-1]) if full else 0.0
        if not float(errors.max()) > bar:
            return
        chosen = np.flatnonzero(errors > bar)
        if chosen.size > self._keep:
            # Sorting all of a tensor's errors takes longer than everything else here.
            least = np.partition(errors[chosen], chosen.size - self._keep)[-self._keep]
            chosen = chosen[errors[chosen] >= least]
            # Stable: among equals the first elements are the ones that are told.
            chosen = chosen[np.argsort(-errors[chosen], kind="stable")[: self._keep]]
        indices = chosen if positions is None else positions[chosen]
        self._note(errors[chosen], start + indices, actual[chosen], golden[chosen])

    def _note(self, errors: Array, positions: Array, actual: Array, golden: Array) -> None:
        if errors.size == 0:
            return
        errors = np.concatenate([self._worst_errors, errors])
        order = np.argsort(-errors, kind="stable")[: self._keep]
        self._worst_errors = errors[order]
        kept = [
            *self._worst,
            *zip(positions.tolist(), actual.tolist(), golden.tolist(), strict=True),
        ]
        self._worst = [kept[number] for number in order.tolist()]

    @property
    def suspects(self) -> Array:
        """The flat positions of elements whose error alone is above what the mean may be."""
        return np.concatenate(self._suspects) if self._suspects else np.empty(0, np.int64)

    @property
    def misplaced(self) -> Array:
        """The flat positions of NaN and infinities that stand on one side only."""
        return np.concatenate(self._misplaced) if self._misplaced else np.empty(0, np.int64)

    def finish(self) -> Comparison:
        """Return what all parts came to."""
        figures = []
        for measure, own, second in zip(self.rule.measures, self._own, self._second, strict=True):
            value = _ratio(measure, own.value, second.value) if measure.is_ratio else own.value
            limit = measure.limit(self._numbers)
            figures.append(Figure(measure.name, value, limit, measure.strict, measure.alternative))
        worst = tuple(
            Worst(
                tuple(int(number) for number in np.unravel_index(position, self._shape)),
                actual,
                golden,
                error,
            )
            for error, (position, actual, golden) in zip(
                self._worst_errors.tolist(), self._worst, strict=True
            )
        )
        return Comparison(
            dtype=self._dtype.name,
            standard=self.rule.name,
            shape=self._shape,
            elements=self._seen,
            figures=tuple(figures),
            nan_mismatches=self._nan_mismatches,
            inf_mismatches=self._inf_mismatches,
            worst_elements=worst,
            picture=self._painter.picture() if self._painter is not None else None,
        )


def _ratio(measure: Measure, own: float, second: float) -> float:
    """Return own / second; counts are divided by 1 at least, and nothing is 0 times an error."""
    if measure.gather == "count":
        return own / max(second, 1.0)
    if own == 0.0:
        return 0.0
    return own / second if second else float("inf")


def compare(
    actual: Array,
    golden: Array,
    *,
    dtype: DType | str | None = None,
    standard: Standard | str = "ecosystem",
    second: Array | None = None,
    picture: bool = False,
) -> Comparison:
    """Return how far `actual` is from `golden` and whether the standard allows it.

    NaN must stand where golden has NaN, and infinity, with its sign, where golden rounded to the
    data type has it: a golden of 1e5 is infinite in float16. Figures cover the other elements.
    Whole numbers must be equal, under every standard but `quant`; float64 too where it has no
    numbers for it.

    Args:
        actual: what the operator wrote; bfloat16 is uint16 with `dtype` given.
        golden: the reference, same shape; float64, whole numbers, or complex ones, of which real
            and imaginary parts are compared.
        second: another result of the operator's own precision, as float64, same shape; the double
            benchmark and cann_bench measure errors by its errors.
        picture: also make an `ErrorPicture`.
    Raises:
        PrecisionError: the shapes differ.
        UsageError: no such data type or standard, the standard has no limits for it, or `second` is
            missing.
    """
    row = dtype_of(actual, dtype)
    golden = np.asarray(golden)
    for array in (golden, second):
        if array is not None and actual.shape != array.shape:
            raise PrecisionError(
                f"the result has shape {actual.shape}, the golden has {array.shape}",
                help="compare InferShape in op_host with the golden",
            )
    if is_complex(row):
        actual, row = complex_parts(actual, row)
        golden = wide_parts(golden)
        second = None if second is None else wide_parts(second)
    comparer = Comparer(actual.shape, row, standard, picture=picture)
    wide = None if second is None else second.reshape(-1)
    comparer.add(storage(actual, row).reshape(-1), golden.reshape(-1), wide)
    return comparer.finish()
