"""Files of `profile`, `test`, `check` and `tune` as the dashboard shows them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from opkit.errors import UsageError
from opkit.profiling import PIPES, TimelineEvent, timeline_data

__all__ = ["DashFiles", "read_dash_file"]

_LARGEST_BYTES = 256 << 20
_ROWS_SHOWN = 500
_EVENTS_SHOWN = 100_000
_TRIALS_SHOWN = 60
_PROFILE_FACTS = (
    *("kernel", "chip", "case", "block_dim", "task_us", "band_percent", "bound_by"),
    *("ub_bytes_used", "gm_read_bytes", "gm_write_bytes", "hbm_read_bytes", "l2_hit_bytes"),
)


class DashFiles:
    """Files and folders that a dashboard was given; read again when they change."""

    def __init__(self, paths: tuple[Path, ...]) -> None:
        """Take files, and folders whose *.json files are meant.

        Raises:
            UsageError: one is not there.
        """
        for path in paths:
            if not path.exists():
                raise UsageError(f"there is no {path}")
        self._paths = paths
        self._known: dict[Path, tuple[tuple[int, int], dict[str, Any]]] = {}

    def read(self) -> list[dict[str, Any]]:
        """Return what each file holds; one that cannot be read says why in `problem`."""
        files: list[Path] = []
        for path in self._paths:
            files += sorted(path.glob("*.json")) if path.is_dir() else [path]
        return [self._read(path) for path in dict.fromkeys(files)]

    def _read(self, path: Path) -> dict[str, Any]:
        try:
            status = path.stat()
            mark = (status.st_mtime_ns, status.st_size)
            known = self._known.get(path)
            if known is not None and known[0] == mark:
                return known[1]
            found = {"name": path.name, "changed_at": status.st_mtime, **read_dash_file(path)}
            self._known[path] = (mark, found)
        except (OSError, UsageError) as error:
            return {"name": path.name, "kind": "unknown", "problem": str(error)}
        return found


def read_dash_file(path: Path) -> dict[str, Any]:
    """Return a file's kind and what is shown of it.

    Raises:
        UsageError: it is no JSON, or of no kind that opkit writes.
        OSError: it cannot be read.
    """
    if path.stat().st_size > _LARGEST_BYTES:
        raise UsageError(f"it has more than {_LARGEST_BYTES >> 20} MiB")
    try:
        value = json.loads(path.read_bytes())
    except (ValueError, RecursionError) as err:
        raise UsageError(f"it is no JSON: {err}") from err
    kind, read = _kind_of(value)
    if read is not None:
        try:
            return {"kind": kind, "problem": "", **read(value)}
        except (KeyError, TypeError, ValueError, AttributeError) as err:
            raise UsageError(f"it looks like {kind} and is not: {err!r}") from err
    raise UsageError("it is none of opkit's: profile, test, check, tune --json, or a trace")


def _profile(value: Mapping[str, Any]) -> dict[str, Any]:
    lines = [
        {
            "where": f"{Path(str(line['file'])).name}:{line['line']}",
            "instruction": line["instruction"],
            "pipe": line["pipe"],
            "cycles": line["cycles"],
            "count": line["count"],
        }
        for line in value["lines"][:40]
    ]
    found = {name: value.get(name) for name in _PROFILE_FACTS}
    return {**found, "pipes": value["pipes"], "advice": value.get("advice", []), "lines": lines}


def _test(value: Mapping[str, Any]) -> dict[str, Any]:
    cases = [
        {
            "name": case["name"],
            "verdict": case["verdict"],
            "milliseconds": 1e3 * float(case["seconds"]),
            "message": str(case["message"]),
        }
        for case in value["cases"]
    ]
    # What failed first: a page shows so many rows.
    cases.sort(key=lambda case: str(case["verdict"]).startswith("pass"))
    counts = {name: count for name, count in value["counts"].items() if count}
    return {
        "project": value["project"],
        "standard": value["standard"],
        "passed": bool(value["passed"]),
        "counts": counts,
        "cases": cases[:_ROWS_SHOWN],
        "left_out": max(0, len(cases) - _ROWS_SHOWN),
    }


def _check(value: Mapping[str, Any]) -> dict[str, Any]:
    findings = [
        {
            "id": item["id"],
            "message": item["message"],
            "help": item.get("help") or "",
            "kernel": item["kernel"],
            "where": _place(item.get("location")),
            "count": item["count"],
        }
        for item in value["findings"][:_ROWS_SHOWN]
    ]
    return {
        "project": value["project"],
        "clean": bool(value["clean"]),
        "suppressed": value.get("suppressed"),
        "findings": findings,
        "cases": len(value["cases"]),
    }


def _place(location: Mapping[str, Any] | None) -> str:
    return f"{location['file']}:{location['line']}" if location else ""


def _tune(value: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """Return what is shown of `opkit tune --json`: one report an operator and shape."""
    reports = []
    for report in value:
        trials = [
            {
                "values": ", ".join(f"{name} {item}" for name, item in trial["values"].items()),
                "task_us": trial["task_us"],
                "wrong": str(trial["wrong"] or ", ".join(trial["findings"] or ())),
            }
            for trial in report["trials"]
        ]
        # The shortest first; those that do not count last.
        trials.sort(key=lambda trial: (trial["task_us"] is None, trial["task_us"] or 0.0))
        reports.append(
            {
                "name": report["name"],
                "chip": report["chip"],
                "ratio": report["ratio"],
                "searched": report["searched"],
                "candidates": len(trials),
                "space": report["space"]["size"],
                "start_us": report["start"]["task_us"],
                "best_us": report["best"]["task_us"],
                "relief": (report.get("relief") or {}).get("pipe", ""),
                "trials": trials[:_TRIALS_SHOWN],
            }
        )
    return {"reports": reports}


def _trace(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return a Chrome trace of `opkit profile --trace` as the timeline's script takes it."""
    names: dict[int, str] = {}
    threads: dict[tuple[int, int], str] = {}
    lines: dict[tuple[str, str, str], int] = {}
    events: list[TimelineEvent] = []
    clock_mhz = 1000.0
    for event in value["traceEvents"]:
        process, thread = int(event["pid"]), int(event["tid"])
        if event["ph"] == "M":
            if event["name"] == "process_name":
                names[process] = str(event["args"]["name"])
            elif event["name"] == "thread_name":
                threads[process, thread] = str(event["args"]["name"])
            continue
        pipe = threads.get((process, thread), "")
        if event["ph"] != "X" or pipe not in PIPES or len(events) >= _EVENTS_SHOWN:
            continue
        details = event.get("args", {})
        start, duration = float(event["ts"]), float(event["dur"])
        if start > 0:
            # opkit's own traces say cycles too; of others a nanosecond counts as one.
            clock_mhz = float(details.get("start_cycle", 1000 * start)) / start
        name = (str(event["name"]), str(details.get("where", "")), pipe)
        line = lines.setdefault(name, len(lines))
        size = int(details.get("bytes", 0))
        events.append(TimelineEvent(process, line, start, start + duration, size))
    order = sorted(names)
    place = {process: core for core, process in enumerate(order)}
    events = [
        TimelineEvent(
            place[event.core],
            event.line,
            event.start_cycle * clock_mhz,
            event.end_cycle * clock_mhz,
            event.bytes,
        )
        for event in events
    ]
    end = max((event.end_cycle for event in events), default=1.0)
    data = timeline_data(
        clock_mhz=clock_mhz,
        total_cycles=end,
        cores=[(names[process], end) for process in order],
        lines=[(name, Path(where).name, pipe) for name, where, pipe in lines],
        events=events,
    )
    told = value.get("otherData", {})
    facts = {name: told.get(name) for name in ("kernel", "chip", "block_dim", "task_us")}
    return {**facts, "timeline": data}


_Reader = Callable[[Any], dict[str, Any]]
_KINDS: dict[str, tuple[frozenset[str], _Reader]] = {
    "trace": (frozenset({"traceEvents"}), _trace),
    "profile": (frozenset({"task_us", "pipes", "lines"}), _profile),
    "test": (frozenset({"project", "standard", "counts", "cases"}), _test),
    "check": (frozenset({"project", "findings", "clean", "cases"}), _check),
}
"""By kind: the keys that its files have, and what reads them."""
_TUNE_KEYS = frozenset({"start", "best", "trials", "space"})


def _kind_of(value: object) -> tuple[str, _Reader | None]:
    if isinstance(value, list) and value:
        reports = all(isinstance(item, dict) and item.keys() >= _TUNE_KEYS for item in value)
        return ("tune", _tune) if reports else ("", None)
    if isinstance(value, dict):
        for kind, (keys, read) in _KINDS.items():
            if keys <= value.keys():
                return kind, read
    return "", None
