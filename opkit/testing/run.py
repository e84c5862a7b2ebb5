"""Running cases and judging each output against the project's golden."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from opkit.errors import HostRefusal, KernelFault, OpkitError, PrecisionError
from opkit.schema import OpSpec
from opkit.testing.branches import Untaken
from opkit.testing.cases import Case, Golden
from opkit.testing.judgement import OutputResult, judge
from opkit.testing.launching import Library, is_prototype, launch_of
from opkit.testing.numbers import Standard
from opkit.testing.references import find_reference
from opkit.testing.settings import standard_for

if TYPE_CHECKING:
    from opkit.toolchain import Project

__all__ = [
    "CaseResult",
    "Library",
    "OutputResult",
    "PrecisionReport",
    "Verdict",
    "chip_bounds",
    "is_refusal",
    "run_cases",
]


class Verdict(Enum):
    """What a case came to."""

    PASS = "pass"
    CANCELLATION = "pass (cancellation)"
    """It passes without the elements that cancel for every implementation of the operator."""
    RANGE = "pass (range)"
    """It passes without the elements on whose way float32 overflows."""
    HALF = "pass (half precision)"
    """It passes as far as a kernel can that computes in its tensors' type, float16 or bfloat16."""
    BEHIND = "pass (behind a tensor)"
    """It passes where tensors end as on the chip: the kernel touches bytes behind one, or behind a
    buffer of a local memory. Only of operators that an OpDef alone describes."""
    FAIL = "fail"
    """A result misses the standard."""
    FAULT = "fault"
    """The kernel faulted."""
    ERROR = "error"
    """It did not run: its host code refused, or the golden failed."""
    REFUSED = "refused"
    """The host code of an operator that only its OpDef describes takes no such shapes, or that of
    any operator no such attribute."""
    REFUSED_TYPE = "data type refused"
    """The same, and it takes no others of these data types either, such as those that only the
    operator's function in op_api converts."""
    NO_REFERENCE = "no reference given"
    """It ran, and nothing says whether the result is right."""

    @property
    def passed(self) -> bool:
        """Whether the operator is right in this case."""
        kinds = (Verdict.PASS, Verdict.CANCELLATION, Verdict.RANGE, Verdict.HALF, Verdict.BEHIND)
        return self in kinds


@dataclass(frozen=True)
class CaseResult:
    """One case's verdict and what led to it."""

    case: Case
    verdict: Verdict
    outputs: tuple[OutputResult, ...]
    message: str
    """Why, for every verdict but fail and most that pass; of a pass behind a tensor, where."""
    seconds: float
    """Wall time of the launch on this machine, not the chip's."""
    other_values: Case | None = None
    """The same with another seed, where a later launch in one process got that wrong."""

    @property
    def combination(self) -> tuple[str, int]:
        """The operator and its combination of data types."""
        return self.case.op, self.case.variant


@dataclass(frozen=True)
class PrecisionReport:
    """All cases of one run."""

    project: str
    standard: str
    seed: int
    results: tuple[CaseResult, ...]
    options: tuple[str, ...] = ()
    """Options of the command, to repeat where a case is run again."""
    untaken: tuple[Untaken, ...] = ()
    """Tiling keys that no case takes, those that were not chosen among them."""

    def count(self, verdict: Verdict) -> int:
        """Return how many cases had that verdict."""
        return Counter(result.verdict for result in self.results)[verdict]

    @property
    def untested(self) -> int:
        """How many tiling keys no case takes, over all combinations of data types."""
        return sum(len(one.keys) for one in self.untaken)

    @property
    def passed(self) -> bool:
        """Whether there were cases and every one passed; one without a reference has not.

        What is refused needs another case of the same data types that passes; data types that
        are refused altogether need others of the operator that pass.
        """
        right = {result.combination for result in self.results if result.verdict.passed}
        operators = {op for op, _ in right}
        return bool(right) and all(
            result.verdict.passed
            or (result.verdict is Verdict.REFUSED_TYPE and result.case.op in operators)
            or (result.verdict is Verdict.REFUSED and result.combination in right)
            for result in self.results
        )


def run_cases(
    project: Project,
    cases: Iterable[Case],
    *,
    library: Library,
    golden: Golden | None,
    standard: Standard | str | Mapping[str, Standard] = "conditioned",
    seed: int = 0,
    pictures: bool = False,
    keep: int = 8,
    options: Sequence[str] = (),
    progress: Callable[[CaseResult], None] | None = None,
) -> PrecisionReport:
    """Run every case and return the verdicts, in the order of the cases.

    Args:
        project: whose operators the cases are of.
        library: what runs an operator, such as `opkit.runtime.open(artifact_folder)`.
        golden: the project's references; None where it has none.
        standard: one for all, or one for each operator by its snake_case name; a case's own wins.
        pictures: keep where the errors of each output are, for the HTML report.
        keep: how many of an output's worst elements to list.
        options: of the command, for the line that runs a case again.
        progress: called after each case.
    Raises:
        OpkitError: our own bugs only; what the operator does wrong becomes a verdict.
    """
    by_op = {spec.op: spec for spec in project.operators}
    rules = (
        standard
        if isinstance(standard, Mapping)
        else {
            spec.name: standard_for(standard, spec.name) if isinstance(standard, str) else standard
            for spec in project.operators
        }
    )
    results = []
    for case in cases:
        result = run_case(
            library, case, by_op[case.op], golden, rules[case.kernel], pictures=pictures, keep=keep
        )
        results.append(result)
        if progress is not None:
            progress(result)
    names = standard_names(rules.values())
    return PrecisionReport(project.name, names, seed, tuple(results), tuple(options))


def standard_names(standards: Iterable[Standard]) -> str:
    """Return the names of the standards of a run, each once."""
    return ", ".join(dict.fromkeys(standard.name for standard in standards))


def run_case(
    library: Library,
    case: Case,
    spec: OpSpec,
    golden: Golden | None,
    standard: Standard,
    *,
    pictures: bool = False,
    keep: int = 8,
    golden_seconds: float | None = None,
) -> CaseResult:
    """Run one case and judge it; arguments and errors as `run_cases`.

    Args:
        golden_seconds: what each call of the golden may take; None: as long as it likes.
    """
    attempt = partial(
        _attempt, library, case, spec, golden, standard, pictures, keep, golden_seconds
    )
    result = _launch_and_judge(attempt, case, spec)
    if result.verdict is Verdict.FAIL and _passes_rounded(attempt):
        note = (
            "it passes with Rsqrt and Reciprocal rounded correctly, and their pages state errors "
            "of 1/1000 (half) and 1/10000 (float): use Sqrt and Div"
        )
        result = replace(result, message="\n".join(filter(None, (result.message, note))))
    if not case.expects_failure:
        return result
    if result.verdict in (Verdict.FAULT, Verdict.ERROR):
        return replace(result, verdict=Verdict.PASS)
    return replace(result, verdict=Verdict.FAIL, message="expected to fail, and it ran")


def _launch_and_judge(attempt: Callable[[], CaseResult], case: Case, spec: OpSpec) -> CaseResult:
    start = time.perf_counter()
    try:
        return attempt()
    except KernelFault as fault:
        message, seconds = str(fault), time.perf_counter() - start
        if fault.category == "OutOfBounds" and not is_prototype(spec) and not case.expects_failure:
            again = _with_chip_bounds(attempt)
            if again is not None and again.verdict.passed:
                return replace(again, verdict=Verdict.BEHIND, message=message)
            if again is not None:
                places = (
                    f": worst {o.comparison.worst}"
                    for o in again.outputs
                    if not o.comparison.passed
                )
                wrong = "where nothing stops it, as on the chip, its results are wrong"
                message += f"\n  note: {wrong}{next(places, '')}"
        return CaseResult(case, Verdict.FAULT, (), message, seconds)


def _passes_rounded(attempt: Callable[[], CaseResult]) -> bool:
    """Return whether a case passes once instructions do not have the errors that pages state."""
    from opkit import runtime

    seed = runtime.configuration().inaccuracy_seed
    if seed == 0:
        return False
    runtime.configure(inaccuracy_seed=0)
    try:
        return attempt().verdict.passed
    except KernelFault:
        return False
    finally:
        runtime.configure(inaccuracy_seed=seed)


@contextmanager
def chip_bounds() -> Iterator[None]:
    """Let tensors end as on the chip: what reaches beyond a buffer meets what lies there."""
    from opkit import runtime

    before = runtime.configuration().chip_bounds
    runtime.configure(chip_bounds=True)
    try:
        yield
    finally:
        runtime.configure(chip_bounds=before)


def _with_chip_bounds(attempt: Callable[[], CaseResult]) -> CaseResult | None:
    """Return what comes of a case where tensors end as on the chip; None where that faults too."""
    with chip_bounds():
        try:
            return attempt()
        except KernelFault:
            return None


def _attempt(
    library: Library,
    case: Case,
    spec: OpSpec,
    golden: Golden | None,
    standard: Standard,
    pictures: bool,
    keep: int,
    golden_seconds: float | None,
) -> CaseResult:
    """Return what came of one launch; a fault is raised."""
    start = time.perf_counter()
    try:
        launch = launch_of(case, spec)
        inputs, shapes = launch.inputs, launch.shapes
        start = time.perf_counter()
        actual = launch(library)
    except KernelFault:
        raise
    except OpkitError as error:
        stopped = _stopped(case, error, time.perf_counter() - start)
        refused = is_refusal(case, spec, error)
        return replace(stopped, verdict=Verdict.REFUSED) if refused else stopped
    seconds = time.perf_counter() - start
    try:
        rule = case_standard(case, standard)
        second = rule.needs_second
        reference = find_reference(case, spec, golden, wants_second=second, seconds=golden_seconds)
        if reference is None:
            message = _no_reference(case, spec, golden)
            return CaseResult(case, Verdict.NO_REFERENCE, (), message, seconds)
        outputs = judge(reference, inputs, actual, rule, pictures=pictures, keep=keep)
        verdict = _verdict(outputs)
        # Of a prototype's kernel the prototype says what it computes, and it does so in float32.
        if verdict is Verdict.FAIL and rule.forgives_cancellation and not is_prototype(spec):
            from opkit.testing.half_precision import is_right_in_halves

            if is_right_in_halves(reference, library, rule, inputs, actual, outputs, shapes):
                verdict = Verdict.HALF
    except OpkitError as error:
        return _stopped(case, error, seconds)
    return _with_inputs_kept(CaseResult(case, verdict, outputs, "", seconds), library, spec)


def _with_inputs_kept(result: CaseResult, library: Library, spec: OpSpec) -> CaseResult:
    """Return the result, a failure where the kernel has changed an input that is no output.

    Nobody who calls the operator expects that. An OpDef's operator may mean it: there it is told.
    """
    # Not every library knows: one that a test has made up runs no kernel.
    changed: Sequence[str] = getattr(library, "changed_inputs", tuple)()
    if not changed:
        return result
    names = ", ".join(changed)
    message = f"the kernel writes to its input {names}, which the operator does not give back"
    verdict = Verdict.FAIL if is_prototype(spec) else result.verdict
    return replace(result, verdict=verdict, message=message)


def is_refusal(case: Case, spec: OpSpec, error: OpkitError) -> bool:
    """Whether a call ended because host code refuses a case that it may refuse, such as one that
    opkit has made of an OpDef."""
    is_generated = case.origin is None and not is_prototype(spec)
    return (is_generated or case.may_be_refused) and isinstance(error, HostRefusal)


def _verdict(outputs: Sequence[OutputResult]) -> Verdict:
    if not all(output.comparison.passed for output in outputs):
        return Verdict.FAIL
    if any(output.comparison.cancelled for output in outputs):
        return Verdict.CANCELLATION
    beyond = any(output.comparison.out_of_range for output in outputs)
    return Verdict.RANGE if beyond else Verdict.PASS


def case_standard(case: Case, standard: Standard) -> Standard:
    """Return the standard that the case is judged by: its own, or the operator's."""
    rule = standard_for(case.standard, case.kernel) if case.standard else standard
    if not case.limits:
        return rule
    return rule.with_numbers({dtype: dict(case.limits) for dtype in rule.numbers})


def _stopped(case: Case, error: OpkitError, seconds: float) -> CaseResult:
    """Return the verdict of a case that ended in an error; our own bugs are raised again."""
    if error.exit_code == OpkitError.exit_code:
        raise error
    verdict = Verdict.FAIL if isinstance(error, PrecisionError) else Verdict.ERROR
    return CaseResult(case, verdict, (), str(error), seconds)


def _no_reference(case: Case, spec: OpSpec, golden: Golden | None) -> str:
    if not is_prototype(spec):
        arguments = ", ".join(tensor.name for tensor in spec.inputs)
        return (
            f"torch has no function of its name that takes its inputs and attributes: give one,"
            f' --golden "torch.NAME({arguments})", or golden: in tests/cases.yaml'
        )
    where = golden.path if golden is not None else Path("golden.py")
    return f"{where.name} has no function {case.kernel}: write one, or give the op a formula"
