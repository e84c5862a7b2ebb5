"""Whether an operator is right in its hundredth launch as it was in its first.

A program launches an operator many times in one process, with other values each time. A kernel or
host code that keeps something from one launch to the next, such as a counter or what it computed
for the same shape, is right in the few launches of a test and wrong in those of a program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace

import numpy as np

from opkit.errors import KernelFault, OpkitError
from opkit.schema import AttrValue, OpSpec
from opkit.testing.cases import Case
from opkit.testing.launching import Library, launch_of
from opkit.testing.numbers import Array, Input
from opkit.testing.run import CaseResult, PrecisionReport, Verdict, chip_bounds

__all__ = ["LAUNCHES", "Endurance", "endurance_of", "endure", "with_endurance"]

LAUNCHES = 100
"""Launches of one case in one process, half of them with other values."""
_FEWEST = 4
_SECONDS = 2.0
"""What they may take together; slow cases are launched less often."""
_MOST_JUDGED = 4
"""Results with other bits than the first, as sums in an open order have, that are judged."""

Judge = Callable[[Library, Case], CaseResult]


@dataclass(frozen=True)
class Endurance:
    """A case that is launched many times in one process."""

    case: Case
    launches: int
    chip_bounds: bool = False
    """Whether tensors end as on the chip: so the case has passed."""


@dataclass(frozen=True)
class _Given:
    """A library that gives what another has computed before."""

    outputs: list[Array]
    launcher: Library
    """The other one, which a verdict may need to launch again."""

    def run(
        self,
        op_type: str,
        inputs: Sequence[Input],
        attrs: Mapping[str, AttrValue],
        *,
        dtypes: Sequence[str],
        out_shape: Sequence[Sequence[int] | None] | None = None,
        out_dtype: Sequence[str | None] | None = None,
    ) -> list[Array]:
        return self.outputs


def endure(library: Library, asked: Endurance, spec: OpSpec, judge: Judge) -> CaseResult:
    """Launch a case and its twin with other values by turns; return the first result that is not
    right, or that of the last launch.

    A result is judged where its bits are not those of the first launch with the same values.

    Args:
        judge: runs a case on a library and judges it.
    """
    with chip_bounds() if asked.chip_bounds else nullcontext():
        return _endure(library, asked, spec, judge)


def _endure(library: Library, asked: Endurance, spec: OpSpec, judge: Judge) -> CaseResult:
    case = asked.case
    twins = [launch_of(one, spec) for one in (case, replace(case, seed=case.seed + 1))]
    first: list[list[Array]] = []
    judged = 0
    result = CaseResult(case, Verdict.PASS, (), "", 0.0)
    for number in range(asked.launches):
        twin = twins[number % 2]
        try:
            outputs = twin(library)
        except OpkitError as error:
            if error.exit_code == OpkitError.exit_code:
                raise
            verdict = Verdict.FAULT if isinstance(error, KernelFault) else Verdict.ERROR
            result = CaseResult(twin.case, verdict, (), _told(number, str(error)), 0.0)
            return _of_first(result, case)
        if number < len(twins):
            first.append(outputs)
        elif _are_equal(outputs, first[number % 2]):
            continue
        if judged == _MOST_JUDGED:
            break
        judged += 1
        result = judge(_Given(outputs, library), twin.case)
        if not result.verdict.passed:
            return _of_first(replace(result, message=_told(number, result.message)), case)
    return replace(result, case=case)


def _of_first(result: CaseResult, case: Case) -> CaseResult:
    return replace(result, case=case, other_values=None if result.case == case else result.case)


def _told(number: int, message: str) -> str:
    told = (
        f"launch {number + 1} of the same case in one process, by turns with other values: its host"
        " code or kernel keeps something from one launch to the next"
    )
    return "\n".join(filter(None, (told, message)))


def _are_equal(one: Sequence[Array], other: Sequence[Array]) -> bool:
    return all(
        a.shape == b.shape
        and np.ascontiguousarray(a).tobytes() == np.ascontiguousarray(b).tobytes()
        for a, b in zip(one, other, strict=True)
    )


def endurance_of(result: CaseResult) -> Endurance:
    """Return how a case that has passed is launched again."""
    launches = int(_SECONDS / max(result.seconds, 1e-3))
    is_behind = result.verdict is Verdict.BEHIND
    return Endurance(result.case, max(_FEWEST, min(LAUNCHES, launches)), is_behind)


def with_endurance(
    report: PrecisionReport, run: Callable[[Sequence[Endurance]], Sequence[CaseResult]]
) -> PrecisionReport:
    """Return a report in which the smallest passing case of each combination of data types has
    been launched many times, in one process; its verdict is that of a launch that is not right.

    Args:
        run: returns what each came to, as `endure`.
    """
    smallest: dict[tuple[str, int], int] = {}
    for number, result in enumerate(report.results):
        if not result.verdict.passed or result.case.expects_failure or not _elements(result):
            continue
        known = smallest.get(result.combination)
        if known is None or _elements(result) < _elements(report.results[known]):
            smallest[result.combination] = number
    numbers = list(smallest.values())
    asked = [endurance_of(report.results[number]) for number in numbers]
    results = list(report.results)
    for number, found in zip(numbers, run(asked) if asked else (), strict=True):
        if not found.verdict.passed:
            results[number] = found
    return replace(report, results=tuple(results))


def _elements(result: CaseResult) -> int:
    return sum(output.comparison.elements for output in result.outputs)
