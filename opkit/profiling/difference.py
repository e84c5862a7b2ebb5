"""Two profiles side by side, and whether the second is slower than it may be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opkit.errors import UsageError
from opkit.profiling.timeline import PIPES

__all__ = ["Change", "ProfileDifference", "compare_reports", "read_report"]

DEFAULT_LIMIT_PERCENT = 2.0


@dataclass(frozen=True)
class Change:
    """One quantity before and after."""

    name: str
    before: float
    after: float

    @property
    def percent(self) -> float | None:
        """Growth in percent; None where there was nothing before."""
        return 100 * (self.after / self.before - 1) if self.before else None


@dataclass(frozen=True)
class ProfileDifference:
    """What changed from one report of `opkit profile --json` to another."""

    chip: str
    limit_percent: float
    """How much slower the task may become."""
    task: Change
    """Microseconds."""
    pipes: tuple[Change, ...]
    """Busy time of each pipe, mean of the cores of its kind, in microseconds."""
    traffic: tuple[Change, ...]
    """Bytes."""
    lines: tuple[Change, ...]
    """Microseconds of pipe time by source line and instruction, largest change first."""

    @property
    def is_slower(self) -> bool:
        """Whether the task takes longer than the limit allows."""
        return self.task.after > self.task.before * (1 + self.limit_percent / 100)


def read_report(path: Path) -> dict[str, Any]:
    """Return a report that `opkit profile --json` has written.

    Raises:
        UsageError: it is none.
    """
    try:
        report = json.loads(path.read_text("utf-8"))
    except OSError as err:
        raise UsageError(f"{path}: cannot be read: {err.strerror}") from err
    except ValueError as err:
        raise UsageError(f"{path}: not JSON: {err}") from err
    needed = ("task_us", "chip", "kernel", "pipes", "lines")
    if not isinstance(report, dict) or any(key not in report for key in needed):
        raise UsageError(
            f"{path}: not a report of opkit profile",
            help='"opkit profile PROJECT --json > FILE" writes one',
        )
    return report


def compare_reports(
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    *,
    limit_percent: float = DEFAULT_LIMIT_PERCENT,
) -> ProfileDifference:
    """Return what changed from one report to another.

    Raises:
        UsageError: they are of different chips, so their times do not compare.
    """
    if before["chip"] != after["chip"]:
        raise UsageError(
            f"the reports are of different chips, {before['chip']} and {after['chip']}",
            help="profile both on one chip: --chip",
        )
    busy = [
        # Reports of earlier versions have no name: one pipe, whichever cores have it.
        {item.get("name") or item["pipe"]: item["mean_us"] for item in report["pipes"]}
        for report in (before, after)
    ]
    names = sorted({*busy[0], *busy[1]}, key=_pipe_order)
    pipes = [Change(name, busy[0].get(name, 0.0), busy[1].get(name, 0.0)) for name in names]
    traffic = [
        Change(name, before.get(name, 0), after.get(name, 0))
        for name in ("gm_read_bytes", "gm_write_bytes", "hbm_read_bytes", "hbm_write_bytes")
    ]
    lines = [_line_times(report) for report in (before, after)]
    changes = [
        Change(name, lines[0].get(name, 0.0), lines[1].get(name, 0.0))
        for name in dict.fromkeys([*lines[0], *lines[1]])
    ]
    changes.sort(key=lambda change: -abs(change.after - change.before))
    return ProfileDifference(
        chip=str(after["chip"]),
        limit_percent=limit_percent,
        task=Change("task", before["task_us"], after["task_us"]),
        pipes=tuple(pipes),
        traffic=tuple(traffic),
        lines=tuple(change for change in changes if change.before != change.after),
    )


def _pipe_order(name: str) -> tuple[str, int]:
    kind, _, pipe = name.rpartition(" ")
    return kind, PIPES.index(pipe)


def _line_times(report: Mapping[str, Any]) -> dict[str, float]:
    times: dict[str, float] = {}
    for line in report["lines"]:
        name = f"{Path(line['file']).name}:{line['line']} {line['instruction']}"
        times[name] = times.get(name, 0.0) + line["cycles"] / report["clock_mhz"]
    return times
