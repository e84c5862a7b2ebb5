"""Cases in several processes: a process runs one launch at a time, and much of a case is NumPy."""

from __future__ import annotations

import multiprocessing
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from opkit import runtime
from opkit.errors import OpkitError
from opkit.testing.cases import Case
from opkit.testing.golden import Golden, load_golden
from opkit.testing.run import CaseResult, Library, PrecisionReport, run_case, standard_names
from opkit.testing.settings import operator_standards
from opkit.testing.standards import Standard

if TYPE_CHECKING:
    from opkit.toolchain import Project

__all__ = ["Setup", "run_parallel"]


@dataclass(frozen=True)
class Setup:
    """What a process needs before it can run cases; standards are found again, from their names."""

    project: Project
    folder: Path
    """The artifact folder."""
    chip: str
    standard: str | None
    """What the user asked for; None leaves it to the project."""
    pictures: bool
    keep: int
    """Worst elements to list."""
    timeout_seconds: float = 0.0
    """How long a launch may go on without progress; 0: for ever."""


@dataclass(frozen=True)
class _Worker:
    setup: Setup
    library: Library
    golden: Golden | None
    standards: Mapping[str, Standard]


_worker: list[_Worker] = []


def _start(setup: Setup, threads: int) -> None:
    runtime.configure(setup.chip, poison=True, threads=threads)
    project = setup.project
    golden = load_golden(project.package_dir / "golden.py")
    standards = operator_standards(project.root, project.operators, standard=setup.standard)
    _worker.append(_Worker(setup, runtime.open(setup.folder), golden, standards))


def _run(case: Case) -> CaseResult:
    worker = _worker[0]
    spec = next(spec for spec in worker.setup.project.operators if spec.op == case.op)
    standard = worker.standards[case.kernel]
    setup = worker.setup
    with runtime.time_limit(setup.timeout_seconds):
        return run_case(
            worker.library,
            case,
            spec,
            worker.golden,
            standard,
            pictures=setup.pictures,
            keep=setup.keep,
        )


def run_parallel(
    setup: Setup,
    cases: Sequence[Case],
    *,
    jobs: int,
    seed: int = 0,
    options: Sequence[str] = (),
    progress: Callable[[CaseResult], None] | None = None,
) -> PrecisionReport:
    """Run cases in `jobs` processes; verdicts in the order of the cases, as `run_cases` gives them.

    Args:
        seed, options: for the line that runs a case again.

    Raises:
        OpkitError: a process died; our own bugs.
    """
    results = []
    # Not forked: the emulator has threads, and locks with them.
    context = multiprocessing.get_context("spawn")
    pool = ProcessPoolExecutor(jobs, mp_context=context, initializer=_start, initargs=(setup, 1))
    with pool:
        try:
            for result in pool.map(_run, cases):
                results.append(result)
                if progress is not None:
                    progress(result)
        except BrokenProcessPool as error:
            raise OpkitError(
                f"a process died while it ran {cases[len(results)].name}",
                help="run this case alone, without -j",
            ) from error
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
    project = setup.project
    standards = operator_standards(project.root, project.operators, standard=setup.standard)
    names = standard_names(standards.values())
    return PrecisionReport(project.name, names, seed, tuple(results), tuple(options))
