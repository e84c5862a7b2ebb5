"""Timing side by side: two callables in turn, in one process, pinned to one core."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

__all__ = ["Pair", "compare", "host_scaling", "least_seconds", "median_seconds", "pin_to_one_core"]


@dataclass(frozen=True)
class Pair:
    """What two callables took, run in turn."""

    first_seconds: float
    second_seconds: float
    ratio: float
    """Median over the rounds of first / second, so that a drifting clock cancels."""


def pin_to_one_core() -> None:
    """Keep this process on the last core it may use."""
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def median_seconds(call: Callable[[], object], *, rounds: int = 15) -> float:
    """Return the median time of `call`, after two warm-up calls."""
    call(), call()
    return statistics.median(_seconds(call) for _ in range(rounds))


def compare(
    first: Callable[[], object],
    second: Callable[[], object],
    *,
    rounds: int = 15,
    clock: Callable[[], float] = time.perf_counter,
) -> Pair:
    """Time both in turn and return medians and the median ratio.

    Of one thread time.process_time may be the clock: it stands still while others have the core.
    """
    for call in (first, second):
        call(), call()
    times = [(_seconds(first, clock), _seconds(second, clock)) for _ in range(rounds)]
    return Pair(
        first_seconds=statistics.median(a for a, _ in times),
        second_seconds=statistics.median(b for _, b in times),
        ratio=statistics.median(a / b for a, b in times),
    )


def least_seconds(
    first: Callable[[], object], second: Callable[[], object], *, rounds: int = 15
) -> tuple[float, float]:
    """Run both in turn; return the least processor times, to which other processes do not add."""

    def processor_seconds(call: Callable[[], object]) -> float:
        start = time.process_time()
        call()
        return time.process_time() - start

    for call in (first, second):
        call(), call()
    times = [(processor_seconds(first), processor_seconds(second)) for _ in range(rounds)]
    return min(a for a, _ in times), min(b for _, b in times)


def host_scaling() -> float:
    """Return how much more two processes get done on this host than one; 2.0 with two free cores.

    Shared machines give less, and then no figure of two threads means anything.
    """
    spin = [sys.executable, "-c", "for _ in range(6_000_000): pass"]

    def seconds(count: int) -> float:
        start = time.perf_counter()
        for process in [subprocess.Popen(spin) for _ in range(count)]:
            process.wait()
        return time.perf_counter() - start

    return statistics.median(2 * seconds(1) / seconds(2) for _ in range(3))


def _seconds(call: Callable[[], object], clock: Callable[[], float] = time.perf_counter) -> float:
    start = clock()
    call()
    return clock() - start
