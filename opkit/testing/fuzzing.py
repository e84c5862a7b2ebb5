"""Random cases until one fails, then the smallest shape and the simplest values that still fail.

hypothesis draws and shrinks the shape and the kind of values; what is left of a small case is then
written out as numbers, and each is made as simple as it can be.
"""

from __future__ import annotations

import contextlib
import functools
import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from opkit.errors import SetupError, UsageError
from opkit.schema import OpSpec
from opkit.testing.cases import (
    DISTRIBUTIONS,
    EDGES,
    Case,
    ShapeRule,
    Source,
    make_case,
    make_inputs,
)
from opkit.testing.numbers import is_float, tensors_of, widen
from opkit.testing.run import CaseResult, Verdict

if TYPE_CHECKING:
    from hypothesis.strategies import DrawFn, SearchStrategy

__all__ = ["FuzzBudget", "FuzzResult", "fuzz", "read_budget"]

_MOST_ELEMENTS = 1 << 16
_BATCH = 50
# Cases that are drawn before any runs, so that a long hunt need not hold them all.
_MOST_DRAWN = 2000
# A case this small is saved with its numbers written out.
_WRITTEN_OUT = 16
_FAILURES = (Verdict.FAIL, Verdict.FAULT)


@dataclass(frozen=True)
class FuzzBudget:
    """How long to look for a failure; one of the two is set."""

    cases: int | None = None
    seconds: float | None = None


@dataclass(frozen=True)
class FuzzResult:
    """What fuzzing came to."""

    runs: int
    """Launches, those of shrinking too."""
    failure: CaseResult | None
    """The smallest case that still fails; None where every case passed."""


def read_budget(text: str, *, option: str = "--fuzz") -> FuzzBudget:
    """Return the budget that `200` (cases), `30s` or `5m` asks for.

    Args:
        option: what the message names.

    Raises:
        UsageError: it is none of these.
    """
    unit = {"s": 1.0, "m": 60.0}.get(text[-1:])
    number = text[:-1] if unit else text
    try:
        value = float(number) if unit else int(number)
    except ValueError:
        value = 0
    if not value > 0 or math.isinf(value):
        raise UsageError(
            f'{option} "{text}" is no budget', help="write 200 for a number, 30s for seconds, 5m"
        )
    return FuzzBudget(seconds=value * unit) if unit else FuzzBudget(cases=int(value))


RunMany = Callable[[Sequence[Case]], Iterator[CaseResult]]
"""Runs cases, several at a time where it can; their results in the order of the cases."""


def fuzz(
    spec: OpSpec,
    run: Callable[[Case], CaseResult],
    *,
    budget: FuzzBudget,
    seed: int = 0,
    shape_rule: ShapeRule | None = None,
    run_many: RunMany | None = None,
    progress: Callable[[int], None] | None = None,
) -> FuzzResult:
    """Run random cases of an operator and return the smallest that fails, if any does.

    Cases are drawn a batch ahead of their results, and the first that fails in the order in which
    they were drawn is shrunk: so who runs them changes nothing.

    Args:
        run: launches a case and judges it; shrinking takes it.
        seed: another one draws other cases.
        run_many: runs what was drawn; `run`, one by one, when None.
        progress: called with the number of runs so far.
    Raises:
        SetupError: hypothesis is not installed.
        UsageError: nothing says what the results should be, or the operator refuses all cases.
    """
    try:
        import hypothesis
    except ImportError as error:
        raise SetupError(
            "--fuzz needs hypothesis", help='install it with pip install "opkit[test]"'
        ) from error

    many = run_many or functools.partial(map, run)
    end = time.monotonic() + (budget.seconds or math.inf)
    phases = (hypothesis.Phase.generate, hypothesis.Phase.shrink)
    settings = hypothesis.settings(
        max_examples=min(budget.cases or _BATCH, _MOST_DRAWN),
        deadline=None,
        database=None,
        phases=phases[:1],
        suppress_health_check=list(hypothesis.HealthCheck),
        report_multiple_bugs=False,
        verbosity=hypothesis.Verbosity.quiet,
        print_blob=False,
    )
    cases = _strategy(spec, seed, shape_rule)
    runs = refused = 0
    failing: CaseResult | None = None

    def count(result: CaseResult) -> bool:
        """Take a result in, and return whether it fails."""
        nonlocal runs, refused
        runs += 1
        if progress is not None:
            progress(runs)
        if result.verdict is Verdict.NO_REFERENCE:
            raise UsageError(result.message)
        refused += result.verdict is Verdict.ERROR
        return result.verdict in _FAILURES

    batch = 0
    most = budget.cases or math.inf
    while failing is None and (batch == 0 or _goes_on(runs, most, batch, time.monotonic() < end)):
        seeded = hypothesis.seed(seed * 1_000_003 + batch)
        drawn: list[Case] = []
        seeded(settings(hypothesis.given(cases)(_into(drawn))))()
        place = 0
        for result in many(drawn):
            if count(result):
                failing = result
                break
            if time.monotonic() > end:
                break
            place += 1
        if failing is not None:
            # The same again, up to the case that fails; from there on hypothesis shrinks.
            again = _Again(place, failing, run, count)
            hunt = seeded(hypothesis.settings(settings, phases=phases)(_given_to(cases, again)))
            with contextlib.suppress(_Failed):
                hunt()
            failing = again.failing
        batch += 1
    if failing is None:
        if runs and refused == runs:
            raise UsageError(
                f"{spec.name} refused all {runs} cases that were drawn",
                help="give golden.py an <operator>_input_shapes(shape) that says which shapes fit",
            )
        return FuzzResult(runs, None)
    simplest, more = _simplify(failing, run)
    return FuzzResult(runs + more, simplest)


def _into(drawn: list[Case]) -> Callable[[Case], None]:
    def keep(case: Case) -> None:
        drawn.append(case)

    return keep


def _goes_on(runs: int, most: float, batch: int, has_time: bool) -> bool:
    """Return whether to draw again; hypothesis may find fewer cases than it was asked for."""
    if math.isinf(most):
        return has_time
    return runs < most and batch < most / _MOST_DRAWN


class _Again:
    """Runs drawn cases once more: those before the failing one are known to pass."""

    def __init__(
        self,
        place: int,
        failing: CaseResult,
        run: Callable[[Case], CaseResult],
        count: Callable[[CaseResult], bool],
    ) -> None:
        self.failing = failing
        self._place = place
        self._seen = -1
        self._run = run
        self._count = count

    def check(self, case: Case) -> None:
        self._seen += 1
        if self._seen < self._place:
            return
        if self._seen > self._place:
            result = self._run(case)
            if not self._count(result):
                return
            self.failing = result
        # On one line: hypothesis tells failures apart by where they are raised.
        raise _Failed


def _given_to(cases: SearchStrategy[Case], again: _Again) -> Callable[[], None]:
    import hypothesis

    def check(case: Case) -> None:
        again.check(case)

    return hypothesis.given(cases)(check)


class _Failed(Exception):
    """A case failed: what hypothesis shrinks towards."""


def _strategy(spec: OpSpec, seed: int, rule: ShapeRule | None) -> SearchStrategy[Case]:
    from hypothesis import strategies as st

    # Simple first: hypothesis shrinks towards the front.
    kinds = ("uniform", *(n for n in DISTRIBUTIONS if n != "uniform"), *EDGES)
    floats = all(is_float(dtype) for dtype in spec.variant_dtypes(0)[: len(spec.inputs)])
    kinds = kinds if floats else ("uniform", "normal", "edge")

    @st.composite
    def cases(draw: DrawFn) -> Case:
        variant = draw(st.integers(0, spec.variant_count - 1))
        rank = draw(st.integers(1, 4))
        room = _MOST_ELEMENTS
        shape: list[int] = []
        for _ in range(rank):
            shape.append(draw(st.integers(0, max(1, room))))
            room //= max(shape[-1], 1)
        kind = draw(st.sampled_from(kinds))
        case = make_case(
            spec,
            tuple(reversed(shape)),
            variant=variant,
            seed=seed,
            distribution=kind,
            shape_rule=rule,
        )
        scale = draw(st.sampled_from((None, 1.0, 100.0, 1e4)))
        if scale is None or kind not in DISTRIBUTIONS:
            return case
        sources = tuple(Source(kind, -scale, scale) for _ in case.shapes)
        return replace(case, sources=sources, label=f"{case.name}-{scale:g}")

    return cases()


def _simplify(failing: CaseResult, run: Callable[[Case], CaseResult]) -> tuple[CaseResult, int]:
    """Return the failing case with values as simple as they can be, and how many runs it took."""
    runs = 0
    if failing.case.lists:
        return failing, runs  # a case writes out the values of tensors, not of lists

    def attempt(case: Case) -> CaseResult | None:
        nonlocal runs
        runs += 1
        result = run(case)
        return result if result.verdict in _FAILURES else None

    best = _one_element(failing, attempt) or failing
    case = best.case
    if math.prod(case.shape) > _WRITTEN_OUT or any(
        shape is not None and math.prod(shape) > _WRITTEN_OUT for shape in case.shapes
    ):
        return best, runs
    written = attempt(_written_out(case))
    if written is None:
        return best, runs
    best = written
    for tensor in range(len(best.case.sources)):
        best = _simplify_tensor(best, tensor, attempt)
    return best, runs


Attempt = Callable[[Case], "CaseResult | None"]


def _one_element(failing: CaseResult, attempt: Attempt) -> CaseResult | None:
    """Return a case of the worst element's inputs alone, if it still fails."""
    case = failing.case
    worst = next((o.comparison.worst for o in failing.outputs if o.comparison.worst), None)
    inputs = make_inputs(case)
    arrays = tensors_of(inputs)
    if worst is None or len(arrays) < len(inputs) or any(a.shape != case.shape for a in arrays):
        return None
    values = [
        float(widen(array, dtype)[worst.index])
        for array, dtype in zip(arrays, case.dtypes, strict=False)
    ]
    return attempt(_named(replace(case, shape=(1,), shapes=((1,),) * len(values)), [values]))


def _written_out(case: Case) -> Case:
    rows = [
        []
        if not isinstance(array, np.ndarray)
        else widen(array, dtype).reshape(-1).astype(np.float64).tolist()
        for array, dtype in zip(make_inputs(case), case.dtypes, strict=False)
    ]
    return _named(case, list(map(list, zip(*rows, strict=True))) if _even(rows) else [], rows)


def _even(rows: Sequence[Sequence[float]]) -> bool:
    return len({len(row) for row in rows}) == 1


def _named(case: Case, elements: list[list[float]], rows: list[list[float]] | None = None) -> Case:
    """Return the case with these values, one list for each tensor, or for each element."""
    tensors = rows if rows is not None else [list(column) for column in zip(*elements, strict=True)]
    dtype = case.dtypes[0].name
    shape = "x".join(map(str, case.shape)) or "scalar"
    return replace(
        case,
        label=f"{case.kernel}-{dtype}-{shape}-found",
        sources=tuple(Source("uniform", values=tuple(values)) for values in tensors),
    )


def _simplify_tensor(best: CaseResult, tensor: int, attempt: Attempt) -> CaseResult:
    source = best.case.sources[tensor]
    if source is None or source.values is None:
        return best
    for place in range(len(source.values)):
        for simple in _simpler(_value(best.case, tensor, place)):
            trial = attempt(_with_value(best.case, tensor, place, simple))
            if trial is not None:
                best = trial
                break
    return best


def _value(case: Case, tensor: int, place: int) -> float:
    source = case.sources[tensor]
    assert source is not None and source.values is not None
    return source.values[place]


def _with_value(case: Case, tensor: int, place: int, value: float) -> Case:
    sources = list(case.sources)
    source = sources[tensor]
    assert source is not None and source.values is not None
    values = (*source.values[:place], value, *source.values[place + 1 :])
    sources[tensor] = replace(source, values=values)
    return replace(case, sources=tuple(sources))


def _simpler(value: float) -> list[float]:
    """Return values that are simpler than this one, the simplest first."""
    if not math.isfinite(value):
        return []
    rounded = [float(f"{value:.{digits}g}") for digits in (1, 2, 3)]
    simple = [0.0, 1.0, -1.0, float(round(value)), *rounded]
    kept: list[float] = []
    for candidate in simple:
        if candidate == value:
            break
        if candidate not in kept:
            kept.append(candidate)
    return kept
