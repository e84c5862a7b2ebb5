"""Running cases and judging each output against the project's golden."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from opkit.errors import KernelFault, OpkitError, PrecisionError
from opkit.schema import AttrValue, OpSpec
from opkit.testing.arrays import Array, widen
from opkit.testing.cases import Case, make_inputs
from opkit.testing.comparison import Comparison, compare
from opkit.testing.golden import Golden
from opkit.testing.standards import Standard, find_standard

if TYPE_CHECKING:
    from opkit.toolchain import Project

__all__ = ["CaseResult", "Library", "OutputResult", "PrecisionReport", "Verdict", "run_cases"]


class Library(Protocol):
    """What runs an operator: `opkit.runtime.open(artifact_folder)`."""

    def run(
        self,
        op_type: str,
        inputs: Sequence[Array | None],
        attrs: Mapping[str, AttrValue],
        *,
        dtypes: Sequence[str],
    ) -> list[Array]:
        """Return the outputs; bfloat16 is uint16 where `dtypes` says so."""
        ...


class Verdict(Enum):
    """What a case came to."""

    PASS = "pass"
    FAIL = "fail"
    """A result misses the standard."""
    FAULT = "fault"
    """The kernel faulted."""
    ERROR = "error"
    """It did not run: its host code refused, or the golden failed."""
    NO_REFERENCE = "no reference given"
    """It ran, and nothing says whether the result is right."""


@dataclass(frozen=True)
class OutputResult:
    """One output against its golden."""

    name: str
    comparison: Comparison


@dataclass(frozen=True)
class CaseResult:
    """One case's verdict and what led to it."""

    case: Case
    verdict: Verdict
    outputs: tuple[OutputResult, ...]
    message: str
    """Why, for every verdict but pass and fail."""
    seconds: float
    """Wall time of the launch on this machine, not the chip's."""


@dataclass(frozen=True)
class PrecisionReport:
    """All cases of one run."""

    project: str
    standard: str
    seed: int
    results: tuple[CaseResult, ...]

    def count(self, verdict: Verdict) -> int:
        """Return how many cases had that verdict."""
        return Counter(result.verdict for result in self.results)[verdict]

    @property
    def passed(self) -> bool:
        """Whether there were cases and every one passed; one without a reference has not."""
        return bool(self.results) and self.count(Verdict.PASS) == len(self.results)


def run_cases(
    project: Project,
    cases: Iterable[Case],
    *,
    library: Library,
    golden: Golden | None,
    standard: Standard | str = "ecosystem",
    seed: int = 0,
    progress: Callable[[CaseResult], None] | None = None,
) -> PrecisionReport:
    """Run every case and return the verdicts, in the order of the cases.

    Args:
        project: whose operators the cases are of.
        library: what runs an operator, such as `opkit.runtime.open(artifact_folder)`.
        golden: the project's references; None where it has none.
        progress: called after each case.
    Raises:
        OpkitError: our own bugs only; what the operator does wrong becomes a verdict.
    """
    rule = find_standard(standard) if isinstance(standard, str) else standard
    by_op = {spec.op: spec for spec in project.operators}
    results = []
    for case in cases:
        result = _run_case(library, case, by_op[case.op], golden, rule)
        results.append(result)
        if progress is not None:
            progress(result)
    return PrecisionReport(project.name, rule.name, seed, tuple(results))


def _run_case(
    library: Library, case: Case, spec: OpSpec, golden: Golden | None, standard: Standard
) -> CaseResult:
    inputs = make_inputs(case)
    start = time.perf_counter()
    try:
        names = [dtype.name for dtype in case.dtypes[: len(inputs)]]
        actual = library.run(case.op, inputs, dict(case.attrs), dtypes=names)
    except KernelFault as fault:
        return CaseResult(case, Verdict.FAULT, (), str(fault), time.perf_counter() - start)
    except OpkitError as error:
        return _stopped(case, error, time.perf_counter() - start)
    seconds = time.perf_counter() - start
    if golden is None or not golden.has(case.kernel):
        message = _no_reference(case, golden)
        return CaseResult(case, Verdict.NO_REFERENCE, (), message, seconds)
    try:
        outputs = _judge(case, spec, inputs, actual, golden, standard)
    except OpkitError as error:
        return _stopped(case, error, seconds)
    passed = all(output.comparison.passed for output in outputs)
    return CaseResult(case, Verdict.PASS if passed else Verdict.FAIL, outputs, "", seconds)


def _stopped(case: Case, error: OpkitError, seconds: float) -> CaseResult:
    """Return the verdict of a case that ended in an error; our own bugs are raised again."""
    if error.exit_code == OpkitError.exit_code:
        raise error
    verdict = Verdict.FAIL if isinstance(error, PrecisionError) else Verdict.ERROR
    return CaseResult(case, verdict, (), str(error), seconds)


def _no_reference(case: Case, golden: Golden | None) -> str:
    where = golden.path if golden is not None else Path("golden.py")
    return f"{where.name} has no function {case.kernel}: write one, or give the op a formula"


def _judge(
    case: Case,
    spec: OpSpec,
    inputs: list[Array],
    actual: list[Array],
    golden: Golden,
    standard: Standard,
) -> tuple[OutputResult, ...]:
    wide = [widen(array, dtype) for array, dtype in zip(inputs, case.dtypes, strict=False)]
    expected = golden.reference(case.kernel, wide, attrs=dict(case.attrs))
    if not len(actual) == len(expected) == len(spec.outputs):
        raise PrecisionError(
            f"{case.op} has {len(spec.outputs)} outputs, the kernel gave {len(actual)}"
            f" and {golden.path.name} {len(expected)}"
        )
    dtypes = case.dtypes[len(spec.inputs) :]
    return tuple(
        OutputResult(tensor.name, compare(result, reference, dtype=dtype, standard=standard))
        for tensor, dtype, result, reference in zip(
            spec.outputs, dtypes, actual, expected, strict=True
        )
    )
