"""A kernel's outputs against their reference, and what of their errors is the operator's own."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from opkit.dtypes import DType
from opkit.errors import OperatorError, PrecisionError
from opkit.testing.cases import HALVES, is_expression, output_tensors
from opkit.testing.numbers import (
    FACTOR,
    STEP,
    Array,
    Comparer,
    Comparison,
    Evaluation,
    ExactOutput,
    Input,
    Standard,
    allowance,
    cancellation,
    complex_parts,
    format_numbers,
    is_complex,
    is_float,
    narrow,
    rounding,
    tensors_of,
    wide_parts,
    widen,
)
from opkit.testing.references import Part, Reference

__all__ = ["Conditioned", "OutputResult", "check_shapes", "judge", "judge_parts"]

# Elements that are asked for at once: a golden's temporaries are some arrays of them.
_SUSPECTS = 1 << 20
# Elements off, and elements to compute them from, up to which numbers without a range are asked.
_LARGEST_SINGLE = float(np.finfo(np.float32).max)
_MOST_DOUBTFUL, _MOST_EXACT = 1 << 12, 1 << 14
# Whole numbers that a decision near a tie explains are few: one of so many elements at most.
_FEW, _TIES_SHARE = 64, 64
# How far beyond a limit an element is that fails however it is looked at.
_CLEARLY = 4.0
# A first look is at so small a part of the inputs.
_SAMPLE_SHARE = 8


@dataclass(frozen=True)
class OutputResult:
    """One output against its golden."""

    name: str
    comparison: Comparison


class Conditioned(Protocol):
    """What the condition of an operator is taken from."""

    def evaluation(self, inputs: Sequence[Input]) -> Evaluation:
        """Return the golden at these inputs."""
        ...

    def exactly(self, inputs: Sequence[Input]) -> list[ExactOutput] | None:
        """Return the golden for real numbers at these inputs; None where it has no such form."""
        ...

    def around(
        self, inputs: Sequence[Input], sizes: Sequence[int], positions: Sequence[Array]
    ) -> tuple[list[Input], list[Array]]:
        """Return inputs that are enough for elements of the outputs, and their indices then."""
        ...


def judge(
    reference: Reference,
    inputs: Sequence[Input],
    actual: Sequence[Array],
    standard: Standard,
    *,
    pictures: bool = False,
    keep: int = 8,
) -> tuple[OutputResult, ...]:
    """Return each output against its reference.

    Raises:
        PrecisionError: another number of outputs, or another shape, than the reference has.
        OperatorError: the reference fails.
        UsageError: the standard has no limits for an output's data type.
    """
    case = reference.case
    tensors = output_tensors(case, reference.spec)
    if len(actual) != len(tensors):
        raise PrecisionError(f"{case.op} has {len(tensors)} outputs, the kernel gave {len(actual)}")

    for (name, dtype), array in zip(tensors, actual, strict=True):
        if array.dtype.name not in (dtype.name, dtype.numpy):
            raise PrecisionError(
                f"output {name} is {array.dtype}, the case is one of {dtype.name}",
                help="compare InferDataType in op_host with the OpDef",
            )

    unsaid: set[int] = set()

    def parts() -> Iterable[Part]:
        found = reference.parts(inputs)
        if found is not None:
            return found
        shaped, whole = reference.whole(inputs, actual)
        pairs = enumerate(zip(shaped, actual, strict=False))
        unsaid.update(number for number, (output, array) in pairs if output is array)
        shapes = [output.shape for output in shaped]
        if case.golden and is_expression(case.golden) and len(shapes) == len(actual):
            # Operators' host code has no scalars: one result is the only element of an axis.
            shapes = [
                shape or ((1,) if array.shape == (1,) else ())
                for shape, array in zip(shapes, actual, strict=True)
            ]
        check_shapes(case.op, actual, shapes)
        return [whole]

    dtypes = [dtype for _, dtype in tensors]
    found = judge_parts(
        *(case.op, parts, actual, dtypes, standard, reference, inputs),
        pictures=pictures,
        keep=keep,
        rounds=bool(case.golden) and is_expression(case.golden),
        exact_ties=case.distribution == HALVES,
    )
    if unsaid and len(unsaid) == len(actual):
        raise OperatorError(
            f"the reference of {case.op} says nothing of any output",
            help="return the results: None stands for an output that is not judged",
        )
    told = [
        replace(one, standard="not judged", figures=()) if number in unsaid else one
        for number, one in enumerate(found)
    ]
    return tuple(OutputResult(name, one) for (name, _), one in zip(tensors, told, strict=True))


def judge_parts(
    op: str,
    parts: Callable[[], Iterable[Part]],
    actual: Sequence[Array],
    dtypes: Sequence[DType],
    standard: Standard,
    conditioned: Conditioned,
    inputs: Sequence[Input],
    *,
    pictures: bool = False,
    keep: int = 8,
    rounds: bool = False,
    exact_ties: bool = False,
) -> list[Comparison]:
    """Return each output's comparison with a reference that is given part by part.

    Args:
        parts: makes the reference, and makes it again where elements are excused.
        conditioned: asked only where an output misses a standard that forgives cancellation.
        rounds: as `Comparer` takes it.
        exact_ties: whether only a few elements of floats are excused too, as of whole numbers.
    Raises:
        PrecisionError: the reference has outputs of other sizes.
    """
    pairs = [is_complex(dtype) for dtype in dtypes]
    # Complex numbers are judged as what they are made of.
    floats = [
        complex_parts(array, dtype) if is_pair else (array, dtype)
        for array, dtype, is_pair in zip(actual, dtypes, pairs, strict=True)
    ]
    actual, dtypes = [array for array, _ in floats], [dtype for _, dtype in floats]
    flat = [array.reshape(-1) for array in actual]
    none: list[_Correction | None] = [None] * len(flat)

    def compared(
        excused: Sequence[Array | None], corrections: Sequence[_Correction | None]
    ) -> list[Comparer]:
        comparers = [
            Comparer(
                *(array.shape, dtype, standard),
                picture=pictures,
                keep=keep,
                excused=mask,
                rounds=rounds,
            )
            for array, dtype, mask in zip(actual, dtypes, excused, strict=True)
        ]
        starts = [0] * len(flat)
        for part in parts():
            for number, comparer in enumerate(comparers):
                golden, start = part.golden[number], starts[number]
                second = None if part.second is None else part.second[number]
                if pairs[number]:
                    golden = wide_parts(golden)
                    second = None if second is None else wide_parts(second)
                end = start + golden.size
                correction = corrections[number]
                if correction is not None:
                    golden = correction.applied(golden, start)
                comparer.add(flat[number][start:end], golden, second)
                starts[number] = end
        if starts != [array.size for array in flat]:
            raise PrecisionError(
                f"{op} wrote outputs of {[array.size for array in flat]} elements,"
                f" the golden has {starts}"
            )
        return comparers

    comparers = compared([None] * len(flat), none)
    plain = [comparer.finish() for comparer in comparers]
    if not standard.forgives_cancellation or all(one.passed for one in plain) or any(pairs):
        return plain
    if _is_surely_wrong(conditioned, inputs, flat, dtypes, plain):
        return plain
    doubtful = [np.union1d(c.misplaced, c.suspects).astype(np.int64) for c in comparers]
    corrections = _corrections(conditioned, inputs, flat, dtypes, doubtful)
    if any(corrections):
        ranges = [c.out_of_range if c is not None else None for c in corrections]
        comparers = compared(ranges, corrections)
        plain = [
            replace(comparer.finish(), out_of_range=0 if mask is None else int(mask.sum()))
            for comparer, mask in zip(comparers, ranges, strict=True)
        ]
    few = [not is_float(dtype) or exact_ties for dtype in dtypes]
    missed = [
        comparer.forgives
        and not (one.passed or one.nan_mismatches or one.inf_mismatches)
        and (comparer.suspects.size <= max(_FEW, one.elements // _TIES_SHARE) or not limited)
        for one, comparer, limited in zip(plain, comparers, few, strict=True)
    ]
    if not any(missed):
        return plain
    suspects = [
        comparer.suspects if miss else np.empty(0, np.int64)
        for comparer, miss in zip(comparers, missed, strict=True)
    ]
    limits = [
        standard.numbers_for(dtype)["T"] if m and is_float(dtype) else 0.0
        for dtype, m in zip(dtypes, missed, strict=True)
    ]
    excuses = _excuses(conditioned, inputs, flat, dtypes, suspects, limits)
    if not any(excuse.positions.size for excuse in excuses):
        return plain
    masks = [
        _either(excuse.mask, None if correction is None else correction.out_of_range)
        for excuse, correction in zip(excuses, corrections, strict=True)
    ]
    again = [comparer.finish() for comparer in compared(masks, corrections)]
    return [
        replace(
            new,
            cancelled=int(excuse.positions.size),
            out_of_range=old.out_of_range,
            figures_of_all=old.figures,
            cancellation=excuse.text,
            # What is shown as the worst of a passing output is the worst of all its elements.
            worst_elements=old.worst_elements if new.passed else new.worst_elements,
        )
        if excuse.positions.size
        else old
        for old, new, excuse in zip(plain, again, excuses, strict=True)
    ]


def _either(one: Array | None, other: Array | None) -> Array | None:
    if one is None or other is None:
        return other if one is None else one
    found: Array = one | other
    return found


@dataclass(frozen=True)
class _Correction:
    """What one output's golden is where float64 or float32 does not reach."""

    positions: Array
    values: Array
    """What the golden is there for real numbers."""
    out_of_range: Array
    """A mask of the elements that no float32 implementation has to give."""

    def applied(self, golden: Array, start: int) -> Array:
        """Return a part of the golden, `start` elements from the first, with the values in it."""
        inside = (self.positions >= start) & (self.positions < start + golden.size)
        if not inside.any():
            return golden
        corrected = golden.astype(np.float64)
        corrected[self.positions[inside] - start] = self.values[inside]
        return corrected


def _corrections(
    conditioned: Conditioned,
    inputs: Sequence[Input],
    flat: Sequence[Array],
    dtypes: Sequence[DType],
    doubtful: Sequence[Array],
) -> list[_Correction | None]:
    """Return what the goldens are for real numbers at some elements of each; see `exact`."""
    nothing: list[_Correction | None] = [None] * len(flat)
    if not any(indices.size > 0 for indices in doubtful):
        return nothing
    if max(indices.size for indices in doubtful) > _MOST_DOUBTFUL:
        return nothing
    few, moved = conditioned.around(inputs, [array.size for array in flat], doubtful)
    if _elements(few) > _MOST_EXACT:
        return nothing
    exact = conditioned.exactly(few)
    if exact is None:
        return nothing
    evaluation = conditioned.evaluation(few)
    usual = evaluation(evaluation.inputs)
    found = nothing
    for number, (indices, there) in enumerate(zip(doubtful, moved, strict=True)):
        if not indices.size or not is_float(dtypes[number]):
            continue
        real, golden = exact[number], usual[number]
        if real.values.size != golden.size:
            continue
        values = widen(flat[number][indices], dtypes[number])
        rounded = widen(narrow(real.values[there], dtypes[number]), dtypes[number])
        same = (values == rounded) | (np.isnan(values) & np.isnan(rounded))
        with np.errstate(all="ignore"):
            # Infinitely far, or not a number, is the golden that left its range.
            closer = ~(2 * np.abs(values - rounded) >= np.abs(values - golden[there]))
        closer &= np.isfinite(values) & np.isfinite(rounded)
        better = real.known[there] & (same | closer)
        # Infinity is what overflows: NaN only where something makes that of it.
        beyond = np.where(np.isnan(values), real.breaks[there], real.overflows[there])
        beyond |= real.underflows[there] & ~np.isfinite(values)
        beyond |= _as_float32_may(real, there, values, dtypes[number])
        # Neither reference has the digits there: a kernel that cancels differently may be right.
        beyond |= real.lost[there] & ~np.isnan(values)
        # What an input's NaN reaches is NaN, though other elements of its row overflow too.
        beyond &= ~real.poisoned[there]
        mask = np.zeros(flat[number].size, np.bool_)
        mask[indices[beyond & ~better]] = True
        chosen = real.values[there][better]
        found[number] = _Correction(indices[better], chosen, mask)
    return found


def _is_surely_wrong(
    conditioned: Conditioned,
    inputs: Sequence[Input],
    flat: Sequence[Array],
    dtypes: Sequence[DType],
    plain: Sequence[Comparison],
) -> bool:
    """Whether one of the worst elements is neither excused nor right for real numbers.

    What is asked of thousands of elements costs seconds, and of a wrong result it changes nothing.
    """
    sizes = [array.size for array in flat]
    found = [
        _clearly_off(comparison) if is_float(dtype) else np.empty(0, np.int64)
        for comparison, dtype in zip(plain, dtypes, strict=True)
    ]
    if not any(indices.size for indices in found):
        return False
    few, moved = conditioned.around(inputs, sizes, found)
    if _elements(few) * _SAMPLE_SHARE > _elements(inputs):
        return False
    left = []
    allowed = allowance(conditioned.evaluation(few))
    for number, (indices, there) in enumerate(zip(found, moved, strict=True)):
        # Of more elements other draws are taken, whose changes are others.
        ample = replace(allowed[number], errors=_CLEARLY * allowed[number].errors)
        values = widen(flat[number][indices], dtypes[number])
        left.append(indices[~ample.excused(values, there, dtypes[number], 1.0)])
    if not any(indices.size for indices in left):
        return False
    for indices, correction in zip(
        left, _corrections(conditioned, inputs, flat, dtypes, left), strict=True
    ):
        if correction is not None:
            right = np.isin(indices, correction.positions) | correction.out_of_range[indices]
            indices = indices[~right]
        if indices.size:
            return True
    return False


def _clearly_off(comparison: Comparison) -> Array:
    """Return the flat positions of the worst elements that no figure passes with."""
    limits = [figure.limit for figure in comparison.figures if figure.name == "MARE"]
    bar = _CLEARLY * max(limits, default=np.inf)
    indices = [
        np.ravel_multi_index(worst.index, comparison.shape) if comparison.shape else 0
        for worst in comparison.worst_elements
        if worst.error > bar
    ]
    return np.unique(np.array(indices, np.int64))


def _elements(inputs: Sequence[Input]) -> int:
    return sum(array.size for array in tensors_of(inputs) if array is not None)


def _as_float32_may(real: ExactOutput, there: Array, values: Array, dtype: DType) -> Array:
    """Return which values are what underflow, or a comparison that roundings decide, may give."""
    exact, errors = real.values[there], real.errors[there]
    largest = min(format_numbers(dtype.name)["largest"], _LARGEST_SINGLE)
    with np.errstate(all="ignore"):
        # What is chosen instead has roundings of its own.
        limit = errors + FACTOR * STEP * (np.abs(exact) + errors) + rounding(exact, errors, dtype)
        near: Array = (errors > 0) & (np.abs(values - exact) <= limit)
        reached = np.abs(exact) + errors + FACTOR * real.noise[there] >= largest
        near |= np.isinf(values) & (np.sign(values) == np.sign(exact)) & reached
    return near | np.isinf(errors)


@dataclass(frozen=True)
class _Excuse:
    """The elements of one output whose error is the operator's own."""

    positions: Array
    mask: Array | None
    text: str


def _excuses(
    conditioned: Conditioned,
    inputs: Sequence[Input],
    flat: Sequence[Array],
    dtypes: Sequence[DType],
    suspects: Sequence[Array],
    limits: Sequence[float],
) -> list[_Excuse]:
    """Return which suspects each output is excused; `limits`: each one's T."""
    found: list[list[Array]] = [[] for _ in flat]
    texts = [""] * len(flat)
    sizes = [array.size for array in flat]
    steps = range(0, max(indices.size for indices in suspects), _SUSPECTS)
    for start in steps:
        some = [indices[start : start + _SUSPECTS] for indices in suspects]
        few, moved = conditioned.around(inputs, sizes, some)
        evaluation = conditioned.evaluation(few)
        allowed = allowance(evaluation)
        for number, (indices, there) in enumerate(zip(some, moved, strict=True)):
            if not indices.size:
                continue
            values = widen(flat[number][indices], dtypes[number])
            excused = allowed[number].excused(values, there, dtypes[number], limits[number])
            if not excused.any():
                continue
            found[number].append(indices[excused])
            if not texts[number]:
                right = allowed[number].golden[there]
                with np.errstate(invalid="ignore"):
                    off = np.abs(values - right) / (np.abs(right) + 1e-7)
                relative = np.where(excused, off, -1.0)
                worst = int(there[int(relative.argmax())])
                texts[number] = str(cancellation(evaluation, number, worst) or "")
    result = []
    for number, parts in enumerate(found):
        if not parts:
            result.append(_Excuse(np.empty(0, np.int64), None, ""))
            continue
        positions = np.concatenate(parts)
        mask = np.zeros(sizes[number], np.bool_)
        mask[positions] = True
        result.append(_Excuse(positions, mask, texts[number]))
    return result


def check_shapes(op: str, actual: Sequence[Array], golden: Sequence[tuple[int, ...]]) -> None:
    """Raise PrecisionError unless the reference's outputs have the kernel's shapes."""
    if len(golden) != len(actual):
        raise PrecisionError(f"{op} has {len(actual)} outputs, its reference gave {len(golden)}")
    for array, shape in zip(actual, golden, strict=True):
        if array.shape != shape:
            raise PrecisionError(
                f"the result has shape {array.shape}, the golden has {shape}",
                help="compare InferShape in op_host with the golden",
            )
