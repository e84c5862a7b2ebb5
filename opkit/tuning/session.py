"""One tuning: measure candidates, check the best, say what is gained."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from opkit.errors import OperatorError, UsageError
from opkit.executor import Executor, Lost, Work
from opkit.tuning.journal import Journal
from opkit.tuning.measurement import Measurement, Relief, relief_of
from opkit.tuning.search import Budget, search, searches_all
from opkit.tuning.space import Candidate, Space

__all__ = ["Subject", "Trial", "TuningReport", "tune"]


@dataclass(frozen=True)
class Subject:
    """Something to tune."""

    name: str
    """Operator or program, data type and shape."""
    chip: str
    space: Space
    work: Work
    """Its cases are (`time` or `check`, candidate); a result is a `Measurement`."""
    identity: str
    """A hash of all that decides on the measurements: sources, shape, chip, versions."""


@dataclass(frozen=True)
class Trial:
    """A candidate and what it came to."""

    candidate: Candidate
    measurement: Measurement


@dataclass(frozen=True)
class TuningReport:
    """What a tuning found; the same from the same seed and number of candidates."""

    name: str
    chip: str
    space: Space
    trials: tuple[Trial, ...]
    """In the order in which they were chosen, the start first."""
    best: Trial
    """Verified and clean under `opkit check`; never slower than the start."""
    searched_all: bool

    @property
    def start(self) -> Trial:
        """What is there without tuning."""
        return self.trials[0]

    @property
    def ratio(self) -> float:
        """Modelled time of the best over that of the start; 1 at most."""
        return self.best.measurement.task_us / self.start.measurement.task_us

    @property
    def relief(self) -> Relief | None:
        """Which pipe the best relieves most; None where it is the start, or relieves none."""
        if self.best.candidate == self.start.candidate:
            return None
        return relief_of(self.start.measurement, self.best.measurement)

    @property
    def wrong(self) -> tuple[Trial, ...]:
        """Candidates that do not count: they did not run, or their results are wrong."""
        return tuple(trial for trial in self.trials if not trial.measurement.verified)

    @property
    def unclean(self) -> tuple[Trial, ...]:
        """Candidates that `opkit check` found something in."""
        return tuple(trial for trial in self.trials if trial.measurement.findings)


def tune(
    subject: Subject,
    *,
    executor: Executor,
    state: Path,
    budget: Budget | None = None,
    seed: int = 0,
    progress: Callable[[str, int], None] | None = None,
) -> TuningReport:
    """Search a subject's space; goes on from what `state` holds.

    Args:
        state: the file that keeps every measurement.
        progress: called with the best so far and how many candidates were measured.
    Raises:
        OperatorError: the start itself is wrong or not clean.
        UsageError: nothing can be chosen, or the state is damaged.
    """
    limit = budget or Budget()
    if subject.space.size < 2:
        raise UsageError(
            f"{subject.name}: there is nothing to choose, every knob has one value",
            help="give values with --knob NAME=1,2,4",
        )
    whole_name = f"{subject.name} on {subject.chip} {subject.identity}"
    with Journal(state, whole_name) as journal, executor.open(subject.work) as crew:
        best_us: list[float] = []

        def run(kind: str, candidates: Sequence[Candidate]) -> list[Measurement]:
            missing = [c for c in candidates if (kind, c) not in journal.known]
            for at, result in crew.stream([(kind, c) for c in missing]):
                if isinstance(result, Lost):
                    result = Measurement(0.0, wrong=str(result), findings=(result.reason,))
                journal.add(kind, missing[at], result)
            return [journal.known[kind, c] for c in candidates]

        def run_timed(candidates: Sequence[Candidate]) -> list[Measurement]:
            found = run("time", candidates)
            if subject.space.start in candidates:
                _refuse_start(subject, found[list(candidates).index(subject.space.start)])
            best_us.extend(m.task_us for m in found if m.verified)
            if progress is not None:
                progress(f"{min(best_us):.2f} us", len(candidates))
            return found

        tried = search(subject.space, run_timed, budget=limit, seed=seed)
        best, checked = _cleanest(subject, tried, run)
    trials = tuple(Trial(c, checked.get(c, m)) for c, m in tried.items())
    return TuningReport(
        subject.name,
        subject.chip,
        subject.space,
        trials,
        Trial(best, checked[best]),
        searches_all(subject.space, limit),
    )


def _refuse_start(subject: Subject, start: Measurement) -> None:
    if not start.verified:
        raise OperatorError(
            f"{subject.name} as it is does not count: {start.wrong}",
            help="only what is right can be tuned: see opkit test",
        )


def _cleanest(
    subject: Subject,
    tried: dict[Candidate, Measurement],
    run: Callable[[str, Sequence[Candidate]], list[Measurement]],
) -> tuple[Candidate, dict[Candidate, Measurement]]:
    """Return the fastest candidate that the checks find nothing in, and what was checked."""
    start = subject.space.start
    order = list(tried)
    rank = {candidate: at for at, candidate in enumerate(order)}
    good = [c for c in order if tried[c].verified and tried[c].task_us <= tried[start].task_us]
    # The start among equals: nothing is changed without a gain.
    good.sort(key=lambda c: (tried[c].task_us, c != start, rank[c]))
    checked: dict[Candidate, Measurement] = {}
    for candidate in good:
        (found,) = run("check", [candidate])
        timed = tried[candidate]
        checked[candidate] = Measurement(
            timed.task_us,
            timed.launch_us,
            timed.pipes,
            found.wrong,
            found.findings,
            timed.facts,
        )
        if not found.findings and not found.wrong:
            return candidate, checked
    findings = ", ".join(checked[start].findings or ()) or checked[start].wrong
    raise OperatorError(
        f"{subject.name} as it is is not clean: {findings}",
        help="mend what opkit check shows first",
    )
