"""Launches of a model by where they come from: the `nn.Module` and the line of Python.

A launch of a backward pass belongs to the module and the line whose forward pass it differentiates.
Times are modelled; calls that the CPU served have none, and are counted beside them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["CpuCall", "ModelProfile", "Place", "PlaceTime", "TimedLaunch", "model_profile"]

OUTSIDE = "(outside of modules)"
NO_LINE = "(no line of Python)"


@dataclass(frozen=True)
class Place:
    """Where in a program a launch comes from."""

    modules: tuple[str, ...]
    """Paths of the modules that were running, outermost first; empty outside of any."""
    file: str
    """File of the innermost frame that is neither PyTorch's nor opkit's; empty without one."""
    line: int
    is_backward: bool = False

    @property
    def where(self) -> str:
        """The file's name and line."""
        return f"{Path(self.file).name}:{self.line}" if self.file else NO_LINE


@dataclass(frozen=True)
class TimedLaunch:
    """A launch of an operator, with its modelled time."""

    operator: str
    place: Place
    task_us: float


@dataclass(frozen=True)
class CpuCall:
    """A call that the CPU served."""

    operator: str
    place: Place
    host_us: float
    """What it took on this machine."""


@dataclass(frozen=True)
class PlaceTime:
    """What one module, line or operator came to."""

    name: str
    launches: int
    task_us: float
    """Task time of all launches in it; a module includes its parts."""
    own_us: float
    """Task time of a module without its parts; otherwise the same."""
    backward_us: float
    """The part of `task_us` that backward passes took."""
    cpu_calls: int
    """Calls that the CPU served, which have no modelled time."""


@dataclass(frozen=True)
class ModelProfile:
    """The launches of a program summed up, the longest first."""

    operators: tuple[PlaceTime, ...]
    modules: tuple[PlaceTime, ...]
    lines: tuple[PlaceTime, ...]
    task_us: float
    """Task time of all launches."""
    launches: int
    cpu_calls: int
    cpu_host_us: float
    """What the calls that the CPU served took on this machine; no part of `task_us`."""


@dataclass
class _Sum:
    launches: int = 0
    task_us: float = 0.0
    own_us: float = 0.0
    backward_us: float = 0.0
    cpu_calls: int = 0


def model_profile(launches: Sequence[TimedLaunch], cpu_calls: Sequence[CpuCall]) -> ModelProfile:
    """Return the times by operator, by module and by line."""

    def module_names(place: Place) -> tuple[str, ...]:
        return place.modules or (OUTSIDE,)

    return ModelProfile(
        operators=_summed(launches, cpu_calls, lambda call: (call.operator,)),
        modules=_summed(launches, cpu_calls, lambda call: module_names(call.place)),
        lines=_summed(launches, cpu_calls, lambda call: (call.place.where,)),
        task_us=sum(launch.task_us for launch in launches),
        launches=len(launches),
        cpu_calls=len(cpu_calls),
        cpu_host_us=sum(call.host_us for call in cpu_calls),
    )


def _summed(
    launches: Iterable[TimedLaunch],
    cpu_calls: Iterable[CpuCall],
    names_of: Callable[[TimedLaunch | CpuCall], Sequence[str]],
) -> tuple[PlaceTime, ...]:
    """Sum up by names; a launch counts for each of its names, and is the last one's own."""
    sums: dict[str, _Sum] = {}
    for launch in launches:
        names = names_of(launch)
        for name in dict.fromkeys(names):
            found = sums.setdefault(name, _Sum())
            found.launches += 1
            found.task_us += launch.task_us
            found.own_us += launch.task_us if name == names[-1] else 0.0
            found.backward_us += launch.task_us if launch.place.is_backward else 0.0
    for call in cpu_calls:
        for name in dict.fromkeys(names_of(call)):
            sums.setdefault(name, _Sum()).cpu_calls += 1
    rows = [
        PlaceTime(
            name,
            found.launches,
            found.task_us,
            found.own_us,
            found.backward_us,
            found.cpu_calls,
        )
        for name, found in sums.items()
    ]
    return tuple(sorted(rows, key=lambda row: (-row.task_us, -row.cpu_calls, row.name)))
