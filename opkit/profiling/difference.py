"""Two profiles side by side, and whether the second is slower than it may be."""

from __future__ import annotations

import difflib
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from opkit.errors import UsageError
from opkit.profiling.timeline import PIPES

__all__ = ["Change", "ProfileDifference", "SourceChange", "compare_reports", "read_report"]

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
class SourceChange:
    """One line of a file in either run, or in both."""

    file: str
    """Its name, without folders."""
    text: str
    before_line: int | None
    """None where only the second run has it."""
    after_line: int | None
    before_us: float
    """Pipe time of its instructions, summed over cores."""
    after_us: float
    before_wait_us: float
    """What held pipes before them."""
    after_wait_us: float


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
    sources: tuple[SourceChange, ...] = ()
    """Where the reports hold their source: each line of either, as they stand in it."""

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
        sources=tuple(_source_changes(before, after)),
    )


_Costs = dict[int, tuple[float, float]]


def _source_changes(before: Mapping[str, Any], after: Mapping[str, Any]) -> Iterator[SourceChange]:
    """Yield the lines of files that both reports hold, matched by their text and not by number."""
    texts = [_texts(report) for report in (before, after)]
    for name in texts[1]:
        if name not in texts[0]:
            continue
        old, new = texts[0][name], texts[1][name]
        costs = [_line_costs(report, name) for report in (before, after)]
        matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
        for tag, old_first, old_end, new_first, new_end in matcher.get_opcodes():
            if tag == "equal":
                for at in range(old_end - old_first):
                    yield _changed(name, new[new_first + at], costs, old_first + at, new_first + at)
                continue
            for at in range(old_first, old_end):
                yield _changed(name, old[at], costs, at, None)
            for at in range(new_first, new_end):
                yield _changed(name, new[at], costs, None, at)


def _changed(
    name: str, text: str, costs: list[_Costs], old: int | None, new: int | None
) -> SourceChange:
    nothing = (0.0, 0.0)
    was = costs[0].get(old + 1, nothing) if old is not None else nothing
    now = costs[1].get(new + 1, nothing) if new is not None else nothing
    return SourceChange(
        file=name,
        text=text,
        before_line=old + 1 if old is not None else None,
        after_line=new + 1 if new is not None else None,
        before_us=was[0],
        after_us=now[0],
        before_wait_us=was[1],
        after_wait_us=now[1],
    )


def _texts(report: Mapping[str, Any]) -> dict[str, list[str]]:
    # Reports of earlier versions hold no source.
    sources: Mapping[str, list[str]] = report.get("sources", {})
    return {Path(path).name: list(lines) for path, lines in sources.items()}


def _line_costs(report: Mapping[str, Any], name: str) -> _Costs:
    costs: _Costs = {}
    for line in report["lines"]:
        if Path(line["file"]).name == name:
            time, wait = costs.get(line["line"], (0.0, 0.0))
            us = report["clock_mhz"]
            held = line.get("wait_cycles", 0.0)
            costs[line["line"]] = (time + line["cycles"] / us, wait + held / us)
    return costs


def _pipe_order(name: str) -> tuple[str, int]:
    kind, _, pipe = name.rpartition(" ")
    return kind, PIPES.index(pipe)


def _line_times(report: Mapping[str, Any]) -> dict[str, float]:
    times: dict[str, float] = {}
    for line in report["lines"]:
        name = f"{Path(line['file']).name}:{line['line']} {line['instruction']}"
        times[name] = times.get(name, 0.0) + line["cycles"] / report["clock_mhz"]
    return times
