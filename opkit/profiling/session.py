"""Profiling whatever launches kernels."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import TracebackType
from typing import Any, ParamSpec

from opkit import runtime
from opkit.errors import UsageError
from opkit.profiling.shown import read_timeline
from opkit.profiling.timeline import Timeline

__all__ = ["Profile", "profile", "profile_all"]

P = ParamSpec("P")

DEFAULT_EVENT_LIMIT = 200_000


class Profile:
    """Times every launch inside a `with` block; other settings of the device stay as they are.

    `with Profile() as session: operator(x)`, then `session.timelines`, one a launch, oldest first.
    """

    def __init__(
        self,
        *,
        event_limit: int = DEFAULT_EVENT_LIMIT,
        lift_limits: bool = False,
        timing_only: bool = False,
    ) -> None:
        """Prepare; `lift_limits` also times each launch without each limit, for `advise`.

        That takes as long again as the timing itself for each limit that the launch meets.
        `timing_only` computes no tensors: outputs are left as they are, times are the same, and a
        scalar that reads what was not computed ends the launch.
        """
        if event_limit < 0:
            raise UsageError(f"event_limit is {event_limit}, expected 0 or more")
        self._launches: tuple[Any, ...] = ()
        self._timelines: tuple[Timeline, ...] | None = None
        self._event_limit = event_limit
        self._lift_limits = lift_limits
        self._timing_only = timing_only
        self._before = (False, False)

    @property
    def timelines(self) -> tuple[Timeline, ...]:
        """One a launch, oldest first; empty before the block ends."""
        if self._timelines is None:
            self._timelines = tuple(
                read_timeline(json.loads(item.json())) for item in self._launches
            )
        return self._timelines

    def __enter__(self) -> Profile:
        runtime.load_emulator()
        import opkit.emulator._emulator as emulator

        emulator.timing_options(self._event_limit, lift_limits=self._lift_limits)
        emulator.take_timings()
        now = runtime.configuration()
        self._before = (now.profile, now.timing_only)
        runtime.configure(profile=True, timing_only=self._timing_only)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import opkit.emulator._emulator as emulator

        profile, timing_only = self._before
        runtime.configure(profile=profile, timing_only=timing_only)
        launches = tuple(emulator.take_timings())
        # A launch that faulted has timed only what it got to.
        self._launches = () if kind else launches
        self._timelines = None


def profile_all(function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> list[Timeline]:
    """Call a function and return the timelines of all its launches, oldest first."""
    with Profile(lift_limits=True) as session:
        function(*args, **kwargs)
    return list(session.timelines)


def profile(function: Callable[P, object], *args: P.args, **kwargs: P.kwargs) -> Timeline:
    """Call a function and return the timeline of its launch; of its longest, if there are several.

    Raises:
        UsageError: it launched no kernel.
    """
    timelines = profile_all(function, *args, **kwargs)
    if not timelines:
        name = getattr(function, "__name__", repr(function))
        raise UsageError(
            f"{name} launched no kernel, so there is nothing to profile",
            help="profile a call that runs an operator on the emulator",
        )
    return max(timelines, key=lambda timeline: timeline.task_us)
