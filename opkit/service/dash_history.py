"""What a dashboard has seen, over time, in SQLite; and what of it deserves a look."""

from __future__ import annotations

import sqlite3
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from opkit.errors import UsageError

__all__ = ["Alert", "DashLimits", "History"]

_KEPT_SECONDS = 30 * 24 * 3600.0
_POINTS_SHOWN = 400
"""Points of one series on the page; older ones are joined to as many."""
_SERVICE_SECONDS = 5.0
"""Between two points of a service."""
_HELP = "name a new file, or one of opkit dash"
_TABLE = """
CREATE TABLE IF NOT EXISTS points (series TEXT NOT NULL, unit TEXT NOT NULL, at REAL NOT NULL,
  value REAL NOT NULL, PRIMARY KEY (series, at)) WITHOUT ROWID
"""


@dataclass(frozen=True)
class DashLimits:
    """From where on something is an alert."""

    slower_percent: float = 2.0
    """By how much a modelled time may have grown since the file's time before."""
    failures_percent: float = 1.0
    """How many of a service's calls may fail between two points."""


@dataclass(frozen=True)
class Alert:
    """Something that deserves a look."""

    level: str
    """`bad` or `warn`."""
    text: str
    view: str
    """The page's view that shows it."""


class History:
    """Figures of files and of a service, each with the time at which they were seen."""

    def __init__(self, path: Path | None = None) -> None:
        """Open a database, or keep everything in memory.

        Raises:
            UsageError: the file cannot be opened, or is something else.
        """
        if path is not None and path.exists() and not path.is_file():
            raise UsageError(f"{path} keeps no history: it is no regular file", help=_HELP)
        self._lock = threading.Lock()
        self._calls: dict[str, tuple[float, int, int]] = {}
        try:
            self._database = sqlite3.connect(
                ":memory:" if path is None else path, check_same_thread=False, timeout=10
            )
            with self._database:
                self._database.execute(_TABLE)
        except sqlite3.Error as err:
            raise UsageError(f"{path} keeps no history: {err}", help=_HELP) from err
        self._failed_percent: dict[str, float] = {}

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            self._database.close()

    def note(self, state: Mapping[str, Any], now: float | None = None) -> None:
        """Keep the figures of a dashboard's state; of files only what has changed.

        Args:
            now: seconds since 1970, of which a service's figures are.
        """
        now = time.time() if now is None else now
        points = list(_of_files(state["files"]))
        with self._lock, self._database:
            points += self._of_service(state["service"], now)
            self._database.executemany("INSERT OR IGNORE INTO points VALUES (?, ?, ?, ?)", points)
            self._database.execute("DELETE FROM points WHERE at < ?", (now - _KEPT_SECONDS,))

    def series(self) -> list[dict[str, Any]]:
        """Return every series by its name: its unit, times in seconds since 1970, and values."""
        with self._lock, closing(self._database.cursor()) as cursor:
            names = cursor.execute(
                "SELECT series, unit, min(at), max(at) FROM points GROUP BY series ORDER BY series"
            ).fetchall()
            found = []
            for name, unit, first, last in names:
                step = max((last - first) / _POINTS_SHOWN, 1e-3)
                # Of what is joined the largest: a peak stays one.
                rows = cursor.execute(
                    "SELECT max(at), max(value) FROM points WHERE series = ?"
                    " GROUP BY CAST((at - ?) / ? AS INTEGER) ORDER BY 1",
                    (name, first, step),
                ).fetchall()
                times, values = zip(*rows, strict=True)
                found.append({"name": name, "unit": unit, "times": times, "values": values})
        return found

    def alerts(self, state: Mapping[str, Any], limits: DashLimits) -> list[dict[str, Any]]:
        """Return what deserves a look in a state that has been noted."""
        found = [*self._alerts_of_files(state["files"], limits), *self._alerts_of_service(state)]
        for name, percent in self._failed_percent.items():
            if percent > limits.failures_percent:
                text = f"{name}: {percent:.3g} % of the calls fail"
                found.append(Alert("bad", text, f"operator/{name}"))
        return [asdict(alert) for alert in found]

    def _alerts_of_files(self, files: list[dict[str, Any]], limits: DashLimits) -> Iterator[Alert]:
        for index, file in enumerate(files):
            view, name = f"file/{index}", file["name"]
            if file["problem"]:
                yield Alert("warn", f"{name}: {file['problem']}", view)
            elif file["kind"] == "test" and not file["passed"]:
                yield Alert("bad", f"{name}: cases of {file['project']} fail", view)
            elif file["kind"] == "check" and not file["clean"]:
                yield Alert("bad", f"{name}: {len(file['findings'])} findings", view)
            for series, _, _, value in _of_file(file):
                before = self._before(series)
                if before is None or not series.endswith("modelled time") or before <= 0:
                    continue
                grown = 100 * (value / before - 1)
                if grown > limits.slower_percent:
                    text = f"{name}: {before:.4g} us became {value:.4g} us, {grown:.3g} % more"
                    yield Alert("bad", text, view)

    def _alerts_of_service(self, state: Mapping[str, Any]) -> Iterator[Alert]:
        if state["problem"]:
            yield Alert("bad", state["problem"], "operators")
        for operator in (state["service"] or {}).get("operators", []):
            name = operator["operator"]
            for version in operator["versions"]:
                label = f"{name} {version['version']}"
                if version["problem"]:
                    yield Alert("bad", f"{label}: {version['problem']}", f"operator/{name}")
                elif version["breaker"] == "open":
                    text = f"{label} is out: {version['breaker_reason']}"
                    yield Alert("bad", text, f"operator/{name}")
            if operator["reference"]["available"] and not operator["reference"]["ready"]:
                text = f"{name}: the reference is not ready: {operator['reference']['problem']}"
                yield Alert("warn", text, f"operator/{name}")

    def _before(self, series: str) -> float | None:
        """Return the last but one value of a series."""
        with self._lock, closing(self._database.cursor()) as cursor:
            rows = cursor.execute(
                "SELECT value FROM points WHERE series = ? ORDER BY at DESC LIMIT 2", (series,)
            ).fetchall()
        return float(rows[1][0]) if len(rows) == 2 else None

    def _of_service(
        self, service: Mapping[str, Any] | None, now: float
    ) -> Iterator[tuple[str, str, float, float]]:
        for operator in (service or {}).get("operators", []):
            name, versions = operator["operator"], operator["versions"]
            ran = [*versions, operator["reference"]]
            answers = sum(each["answers"] for each in ran)
            failures = sum(sum(each["failures"].values()) for each in ran)
            then, answers_then, failures_then = self._calls.get(name, (None, 0, 0))
            if then is not None and now - then < _SERVICE_SECONDS:
                continue
            self._calls[name] = (now, answers, failures)
            longest = max((each["p99_us"] or 0.0 for each in versions), default=0.0)
            memory = sum(each["memory_bytes"] for each in versions)
            yield f"{name}: p99 latency", "us", now, longest
            yield f"{name}: memory of the workers", "MiB", now, memory / 2**20
            # A service that was started again counts from 0.
            if then is None or answers < answers_then or failures < failures_then:
                continue
            more, failed = answers - answers_then, failures - failures_then
            yield f"{name}: answers a second", "1/s", now, more / (now - then)
            yield f"{name}: failures a second", "1/s", now, failed / (now - then)
            self._failed_percent[name] = 100 * failed / (more + failed) if more + failed else 0.0


def _of_files(files: list[dict[str, Any]]) -> Iterator[tuple[str, str, float, float]]:
    for file in files:
        yield from _of_file(file)


def _of_file(file: Mapping[str, Any]) -> Iterator[tuple[str, str, float, float]]:
    """Yield series, unit, time and value of what a file says."""
    if file["problem"]:
        return
    name, at, kind = file["name"], file["changed_at"], file["kind"]
    if kind in ("profile", "trace") and file["task_us"] is not None:
        yield f"{name}: modelled time", "us", at, file["task_us"]
    elif kind == "test":
        lost = sum(n for verdict, n in file["counts"].items() if not verdict.startswith("pass"))
        yield f"{name}: cases that do not pass", "cases", at, lost
    elif kind == "check":
        yield f"{name}: findings", "findings", at, len(file["findings"])
    elif kind == "tune":
        for report in file["reports"]:
            if report["best_us"] is not None:
                yield f"{name}, {report['name']}: modelled time", "us", at, report["best_us"]
