"""A project's cases on any executor: in this process, in several, on a cluster."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from opkit import runtime
from opkit.errors import UsageError
from opkit.executor import Executor, Lost, Work, folder_of
from opkit.schema import OpSpec
from opkit.testing.apart import LaunchLost, LibraryApart, close_library, hidden_files
from opkit.testing.cases import Case, Golden, load_golden
from opkit.testing.determinism import DeterminismResult, Setting, check_determinism
from opkit.testing.endurance import Endurance, endure, with_endurance
from opkit.testing.launching import Library
from opkit.testing.numbers import Standard
from opkit.testing.references import find_reference
from opkit.testing.run import (
    CaseResult,
    PrecisionReport,
    Verdict,
    case_standard,
    run_case,
    standard_names,
)
from opkit.testing.settings import operator_standards

if TYPE_CHECKING:
    from opkit.toolchain import Project

__all__ = [
    "Setup",
    "cases_work",
    "explanations_work",
    "kept_result",
    "repeats_work",
    "run_on",
]

_ENDED_HELP = (
    "look for exit, abort or kill in the kernel, its host code and its golden;"
    " --executor here runs it in the process of opkit itself, for a debugger"
)
_NOT_SENT = ("build", "__pycache__", ".git")


@dataclass(frozen=True)
class Setup:
    """What a process needs before it can run cases; standards are found again, from their names."""

    project: Project
    folder: Path
    """The artifact folder."""
    chip: str
    standard: str | None
    """What the user asked for; None leaves it to the project."""
    pictures: bool = False
    keep: int = 8
    """Worst elements to list."""
    timeout_seconds: float = 0.0
    """How long a launch may go on without progress; 0: for ever."""
    threads: int = 1
    """Host threads of a launch; 0: one a core."""
    inaccuracy_seed: int = 0
    """See `runtime.Configuration`."""
    allow_raw_writes: bool = False
    """Whether outputs may change through raw pointers, which is a fault otherwise."""
    together: bool = False
    """Whether kernels run in the process that judges them, where a debugger stops in both; else in
    one of their own, which reaches neither golden nor verdict."""


@dataclass(frozen=True)
class _Begin:
    """A setup as it travels: without paths of this machine."""

    specs: tuple[OpSpec, ...]
    place: str
    """Path of the operators' sources in the project's folder."""
    package: str
    chip: str
    standard: str | None
    pictures: bool
    keep: int
    timeout_seconds: float
    threads: int
    inaccuracy_seed: int
    allow_raw_writes: bool
    together: bool


def cases_work(setup: Setup) -> Work:
    """Return what runs cases of a project and judges them: a `Case`, or an `Endurance`, to a result
    or `Lost`."""
    return _work(setup, _begin)


def repeats_work(setup: Setup, settings: Sequence[Setting] = ()) -> Work:
    """Return what launches cases again and again: a `Case` to a `DeterminismResult` or `Lost`.

    Args:
        settings: what each launch runs under; without any: as it ran, twice, and other orders.
    """
    return _work(setup, partial(_begin_repeats, tuple(settings)))


def explanations_work(setup: Setup) -> Work:
    """Return what says why cases fail: a `Case` to a text. Kernels run in that process."""
    return replace(_work(setup, _begin_explanations), answers=str)


def _work(
    setup: Setup, begin_in: Callable[[_Begin, Mapping[str, Path]], Callable[[Case], object]]
) -> Work:
    project = setup.project
    begin = _Begin(
        project.operators,
        str(project.folder.relative_to(project.root)),
        str(project.package_dir.relative_to(project.root)),
        setup.chip,
        setup.standard,
        setup.pictures,
        setup.keep,
        setup.timeout_seconds,
        setup.threads,
        setup.inaccuracy_seed,
        setup.allow_raw_writes,
        setup.together,
    )
    folders = {
        "artifact": folder_of(setup.folder),
        "project": folder_of(project.root, left_out=_NOT_SENT),
    }
    # Judging takes its time as well; only what never ends is to be found.
    seconds = 120.0 + 10 * setup.timeout_seconds if setup.timeout_seconds else 0.0
    return Work(begin_in, begin, folders, seconds=seconds)


def _begin(setup: _Begin, folders: Mapping[str, Path]) -> _Judge:
    # Poison: what the kernel never writes must not look like a right zero.
    runtime.configure(
        setup.chip,
        poison=True,
        threads=setup.threads,
        inaccuracy_seed=setup.inaccuracy_seed,
        allow_raw_writes=setup.allow_raw_writes,
    )
    golden = load_golden(folders["project"] / setup.package / "golden.py")
    standards = operator_standards(folders["project"], setup.specs, standard=setup.standard)
    return _Judge(setup, _library(setup, folders), golden, standards)


def _library(setup: _Begin, folders: Mapping[str, Path]) -> Library:
    if setup.together:
        return runtime.open(folders["artifact"])
    timeout = setup.timeout_seconds
    hidden = hidden_files(folders["project"], folders["project"] / setup.package)
    return LibraryApart(folders["artifact"], setup.chip, timeout_seconds=timeout, hidden=hidden)


class _Judge:
    """Runs cases, and ends the library's process in the end, with all that this has started."""

    def __init__(
        self,
        setup: _Begin,
        library: Library,
        golden: Golden | None,
        standards: Mapping[str, Standard],
    ) -> None:
        self._setup, self._library, self._golden = setup, library, golden
        self._standards = standards
        self._specs = {spec.op: spec for spec in setup.specs}

    def __call__(self, asked: Case | Endurance) -> CaseResult | Lost:
        try:
            if isinstance(asked, Endurance):
                with self._time_limit():
                    return endure(self._library, asked, self._specs[asked.case.op], self._judged)
            return self._judged(self._library, asked)
        except LaunchLost as error:
            return error.lost

    def _judged(self, library: Library, case: Case) -> CaseResult:
        setup = self._setup
        with self._time_limit():
            return run_case(
                library,
                case,
                self._specs[case.op],
                self._golden,
                self._standards[case.kernel],
                pictures=setup.pictures,
                keep=setup.keep,
                golden_seconds=setup.timeout_seconds or None,
            )

    def _time_limit(self) -> AbstractContextManager[None]:
        return runtime.time_limit(self._setup.timeout_seconds if self._setup.together else 0.0)

    def close(self) -> None:
        close_library(self._library)


def _begin_repeats(
    settings: tuple[Setting, ...], setup: _Begin, folders: Mapping[str, Path]
) -> Callable[[Case], DeterminismResult | Lost]:
    return _Repeats(setup, _library(setup, folders), settings)


class _Repeats:
    """Launches cases again and again, in one process, and ends that in the end."""

    def __init__(self, setup: _Begin, library: Library, settings: Sequence[Setting]) -> None:
        self._setup, self._library = setup, library
        self._specs = {spec.op: spec for spec in setup.specs}
        usual = self._usual = Setting(setup.threads, 0)
        self._settings = settings or (*(usual, usual, Setting(1, 0), Setting(1, 1), Setting(1, 2)),)

    def __call__(self, case: Case) -> DeterminismResult | Lost:
        spec = self._specs[case.op]
        try:
            with runtime.time_limit(self._setup.timeout_seconds if self._setup.together else 0.0):
                return check_determinism(
                    case, spec, self._library, self._configure, settings=self._settings
                )
        except LaunchLost as error:
            return error.lost
        finally:
            self._configure(self._usual)

    def _configure(self, setting: Setting) -> None:
        chip = self._setup.chip
        runtime.configure(chip, poison=True, threads=setting.threads, seed=setting.seed)

    def close(self) -> None:
        close_library(self._library)


def _begin_explanations(setup: _Begin, folders: Mapping[str, Path]) -> Callable[[Case], str]:
    runtime.configure(setup.chip, poison=True, inaccuracy_seed=setup.inaccuracy_seed)
    golden = load_golden(folders["project"] / setup.package / "golden.py")
    standards = operator_standards(folders["project"], setup.specs, standard=setup.standard)
    library = runtime.open(folders["artifact"])
    specs = {spec.op: spec for spec in setup.specs}
    place = folders["project"] / setup.place

    def run(case: Case) -> str:
        from opkit.testing.explanation import explain_case, explanation_text

        reference = find_reference(case, specs[case.op], golden, wants_second=False)
        assert reference is not None
        rule = case_standard(case, standards[case.kernel])
        try:
            with runtime.time_limit(setup.timeout_seconds):
                found = explain_case(reference, library, rule)
        except UsageError as error:
            return f"  not explained: {error.message}"
        return "\n".join(explanation_text(one, place) for one in found)

    return run


def kept_result(case: Case, result: CaseResult | Lost) -> CaseResult:
    """Return what a case came to; one that ends its workers is a fault of the operator's."""
    if isinstance(result, Lost):
        message = f"{result}\n  help: {_ENDED_HELP}"
        return CaseResult(case, Verdict.FAULT, (), message, 0.0)
    return result


def run_on(
    executor: Executor,
    setup: Setup,
    cases: Sequence[Case],
    *,
    seed: int = 0,
    options: Sequence[str] = (),
    progress: Callable[[CaseResult], None] | None = None,
) -> PrecisionReport:
    """Run cases and return their verdicts, in the order of the cases.

    The smallest of those that pass are launched many times afterwards: see `with_endurance`.

    Args:
        seed, options: for the line that runs a case again.
        progress: called with each result when it comes.
    Raises:
        OpkitError: our own bugs only; what the operator does wrong becomes a verdict.
    """
    project = setup.project
    standards = operator_standards(project.root, project.operators, standard=setup.standard)
    names = standard_names(standards.values())
    results: dict[int, CaseResult] = {}
    with executor.open(cases_work(setup)) as crew:
        for index, result in crew.stream(cases):
            results[index] = kept_result(cases[index], result)
            if progress is not None:
                progress(results[index])

        def run(asked: Sequence[Endurance]) -> list[CaseResult]:
            found = dict(crew.stream(asked))
            return [kept_result(one.case, found[number]) for number, one in enumerate(asked)]

        ordered = tuple(results[index] for index in range(len(cases)))
        report = PrecisionReport(project.name, names, seed, ordered, tuple(options))
        return with_endurance(report, run)
