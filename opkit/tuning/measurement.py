"""What a candidate came to on the modelled chip."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opkit.profiling import Timeline

__all__ = ["Measurement", "PipeLoad", "Relief", "measure", "relief_of"]


@dataclass(frozen=True)
class PipeLoad:
    """One pipe, mean of the cores of its kind, summed over the launches."""

    pipe: str
    busy_us: float
    wait_us: float
    """Held by flags, barriers or other cores while it had work to do."""


@dataclass(frozen=True)
class Measurement:
    """A candidate's modelled time, and whether its results are right."""

    task_us: float
    """Task time of all launches; 0 where the run did not come to its end."""
    launch_us: float = 0.0
    """The part of it that launching takes."""
    pipes: tuple[PipeLoad, ...] = ()
    wrong: str = ""
    """Why it does not count; empty where its results are verified."""
    findings: tuple[str, ...] | None = None
    """Classes that `opkit check` found; None where it was not checked."""
    facts: tuple[tuple[str, int], ...] = ()
    """What the subject learnt of the launch, such as the bucket of its shape."""

    @property
    def verified(self) -> bool:
        """Whether it ran and its results are right."""
        return not self.wrong

    def to_json(self) -> dict[str, Any]:
        """Return it as what JSON holds."""
        return {
            "task_us": self.task_us,
            "launch_us": self.launch_us,
            "pipes": [[load.pipe, load.busy_us, load.wait_us] for load in self.pipes],
            "wrong": self.wrong,
            "findings": self.findings,
            "facts": [list(fact) for fact in self.facts],
        }

    @classmethod
    def from_json(cls, value: dict[str, Any]) -> Measurement:
        """Return what `to_json` was given.

        Raises:
            KeyError, TypeError, ValueError: it is none.
        """
        findings = value["findings"]
        return cls(
            float(value["task_us"]),
            float(value["launch_us"]),
            tuple(PipeLoad(str(p), float(b), float(w)) for p, b, w in value["pipes"]),
            str(value["wrong"]),
            None if findings is None else tuple(map(str, findings)),
            tuple((str(name), int(number)) for name, number in value["facts"]),
        )


def measure(
    timelines: Iterable[Timeline], *, wrong: str = "", facts: Sequence[tuple[str, int]] = ()
) -> Measurement:
    """Return the sums over some launches."""
    task = launch = 0.0
    busy: dict[str, float] = {}
    waits: dict[str, float] = {}
    for timeline in timelines:
        task += timeline.task_us
        launch += timeline.launch_us
        for time in timeline.pipes(with_idle=True):
            busy[time.name] = busy.get(time.name, 0.0) + time.mean_us
            waits[time.name] = waits.get(time.name, 0.0) + time.wait_us
    names = [pipe for pipe in dict.fromkeys((*busy, *waits)) if busy.get(pipe) or waits.get(pipe)]
    pipes = tuple(PipeLoad(p, busy.get(p, 0.0), waits.get(p, 0.0)) for p in names)
    return Measurement(task, launch, pipes, wrong, facts=tuple(facts))


@dataclass(frozen=True)
class Relief:
    """What a winner takes away from the pipe that it helps most."""

    pipe: str
    """The name of an `opkit.profiling.PipeTime`, or `launch`."""
    before: PipeLoad
    after: PipeLoad

    @property
    def saved_us(self) -> float:
        """Busy and waiting time of the pipe, less than before."""
        return (self.before.busy_us + self.before.wait_us) - (
            self.after.busy_us + self.after.wait_us
        )

    def __str__(self) -> str:
        waits = ""
        if self.before.wait_us or self.after.wait_us:
            waits = f", waiting {self.before.wait_us:.2f} -> {self.after.wait_us:.2f} us"
        return (
            f"relieves {self.pipe} by {self.saved_us:.2f} us: busy {self.before.busy_us:.2f} ->"
            f" {self.after.busy_us:.2f} us{waits}"
        )


def relief_of(start: Measurement, best: Measurement) -> Relief | None:
    """Return which pipe, or the launch, a candidate relieves most; None where it relieves none."""
    before = {load.pipe: load for load in _loads(start)}
    after = {load.pipe: load for load in _loads(best)}
    nothing = PipeLoad("", 0.0, 0.0)
    found = [Relief(pipe, load, after.get(pipe, nothing)) for pipe, load in before.items()]
    most = max(found, key=lambda relief: relief.saved_us, default=None)
    return most if most is not None and most.saved_us > 1e-3 else None


def _loads(measurement: Measurement) -> tuple[PipeLoad, ...]:
    return (*measurement.pipes, PipeLoad("launch", measurement.launch_us, 0.0))
