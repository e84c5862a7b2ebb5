"""The log of every component: written a line a record, read back as records.

Lines and variables are the vendor's, so that what reads its logs reads these:

    [ERROR] EMULATOR(4711,python3):2026-01-31-12:00:00.123.456 [gelu.cpp:42]4711 message

`ASCEND_GLOBAL_LOG_LEVEL` is 0 (debug) to 3 (error, where it is not set) or 4 (nothing);
`ASCEND_PROCESS_LOG_PATH` is the folder, else `log` below `ASCEND_WORK_PATH`, else a folder of the
user; `ASCEND_SLOG_PRINT_TO_STDOUT=1` prints the lines instead. The emulator writes the same lines
from C++ (emulator/include/opkit/process_files.h). In a message `\\n` stands for a new line.

Source: environment variable reference, logs.
"""

from __future__ import annotations

import contextlib
import datetime
import json
import os
import re
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from opkit.folders import state_folder

__all__ = [
    "LEVELS",
    "Record",
    "debug",
    "error",
    "follow",
    "info",
    "log_folder",
    "log_level",
    "parse_line",
    "read_log",
    "warning",
    "write",
]

LEVELS = ("DEBUG", "INFO", "WARNING", "ERROR")
"""By their numbers."""
_OFF = len(LEVELS)
_FILES_KEPT = 200
_FIELDS = " | "
_LINE = re.compile(
    r"\[(?P<level>[A-Z]+)\] (?P<component>\w+)\((?P<pid>\d+),(?P<process>[^)]*)\):"
    r"(?P<time>\d{4}-\d\d-\d\d-\d\d:\d\d:\d\d\.\d{3}\.\d{3}) \[(?P<where>[^\]]*)\] ?"
    r"(?:(?P<thread>\d+) )?(?P<message>.*)"
)
_TIME = "%Y-%m-%d-%H:%M:%S"


@dataclass(frozen=True)
class Record:
    """One line of the log."""

    time: str
    """ISO 8601, local time, microseconds."""
    level: str
    """One of `LEVELS`."""
    component: str
    """Such as EMULATOR, ACL, TOOLCHAIN, RUNTIME, TORCH, SERVICE."""
    pid: int
    process: str
    """The program's name."""
    where: str
    """file:line, or nothing."""
    thread: int
    message: str
    fields: dict[str, object] = field(default_factory=dict)
    """What the component has to say in numbers."""


def debug(component: str, message: str, **fields: object) -> None:
    """Log what only somebody who looks for a fault wants to know."""
    write(0, component, message, fields=fields)


def info(component: str, message: str, **fields: object) -> None:
    """Log what was done."""
    write(1, component, message, fields=fields)


def warning(component: str, message: str, **fields: object) -> None:
    """Log what may be wrong."""
    write(2, component, message, fields=fields)


def error(component: str, message: str, **fields: object) -> None:
    """Log what went wrong."""
    write(3, component, message, fields=fields)


def log_level() -> int:
    """Return the lowest level that is written: that of an error unless a variable says another."""
    text = os.environ.get("ASCEND_GLOBAL_LOG_LEVEL", "")
    return int(text) if text in ("0", "1", "2", "3", "4") else 3


def log_folder() -> Path:
    """Return the folder that logs are written below."""
    if given := os.environ.get("ASCEND_PROCESS_LOG_PATH"):
        return Path(given)
    if work := os.environ.get("ASCEND_WORK_PATH"):
        return Path(work) / "log"
    return state_folder() / "log"


def write(
    level: int,
    component: str,
    message: str,
    *,
    where: str = "",
    fields: dict[str, object] | None = None,
) -> None:
    """Log one record. Never raises: a log that cannot be written changes nothing else."""
    if level < log_level():
        return
    text = message.replace("\\", "\\\\").replace("\n", "\\n")
    if fields:
        text += _FIELDS + json.dumps(fields, default=str, ensure_ascii=False)
    now = time.time_ns() // 1000
    local = datetime.datetime.fromtimestamp(now // 1_000_000)
    date = f"{local.strftime(_TIME)}.{now // 1000 % 1000:03d}.{now % 1000:03d}"
    head = f"[{LEVELS[level]}] {component}({os.getpid()},{_process_name()}):{date} [{where}]"
    _writer.write(f"{head}{threading.get_native_id()} {text}\n", now // 1_000_000)


class _Writer:
    """The file of this process, opened for the first record; a forked child has one of its own."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._owner: tuple[int, Path] | None = None
        self._descriptor = -1

    def write(self, line: str, seconds: int) -> None:
        data = line.encode("utf-8", "surrogateescape")
        with self._lock, contextlib.suppress(OSError, RuntimeError, ValueError):
            if os.environ.get("ASCEND_SLOG_PRINT_TO_STDOUT") == "1":
                sys.stdout.write(line)
                sys.stdout.flush()
                return
            # One write a line: lines of several processes do not mix.
            os.write(self._file(seconds), data)

    def _file(self, seconds: int) -> int:
        owner = (os.getpid(), log_folder())
        if owner == self._owner:
            return self._descriptor
        if self._owner is not None and self._owner[0] == owner[0]:
            os.close(self._descriptor)
        self._owner = None
        folder = _plog(owner[1])
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"plog-{owner[0]}_{seconds}.log"
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        self._descriptor = os.open(path, flags, 0o640)
        self._owner = owner
        _sweep(folder)
        return self._descriptor


_writer = _Writer()


def _process_name() -> str:
    try:
        return Path("/proc/self/comm").read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return Path(sys.argv[0]).name


def _plog(folder: Path) -> Path:
    return folder / "debug" / "plog"


def _sweep(folder: Path) -> None:
    """Delete the oldest files where there are too many."""
    files = sorted(folder.glob("plog-*.log"), key=lambda path: path.stat().st_mtime)
    for path in files[:-_FILES_KEPT]:
        path.unlink(missing_ok=True)


def parse_line(line: str) -> Record | None:
    """Return the record of a line, also of the vendor's own; None where it is none."""
    found = _LINE.match(line.rstrip("\n"))
    if found is None:
        return None
    date, millis, micros = found["time"].split(".")
    moment = datetime.datetime.strptime(date, _TIME) + datetime.timedelta(
        milliseconds=int(millis), microseconds=int(micros)
    )
    message, fields = _split_fields(found["message"])
    return Record(
        moment.isoformat(timespec="microseconds"),
        found["level"],
        found["component"],
        int(found["pid"]),
        found["process"],
        found["where"],
        int(found["thread"] or 0),
        re.sub(r"\\(.)", lambda m: "\n" if m[1] == "n" else m[1], message),
        fields,
    )


def _split_fields(text: str) -> tuple[str, dict[str, object]]:
    message, mark, tail = text.rpartition(_FIELDS + "{")
    if mark:
        with contextlib.suppress(json.JSONDecodeError):
            found = json.loads("{" + tail)
            if isinstance(found, dict):
                return message, found
    return text, {}


def read_log(folder: Path | None = None) -> list[Record]:
    """Return every record below a folder, oldest first; `log_folder()` by default."""
    records: list[Record] = []
    for path in _files(folder or log_folder()):
        with contextlib.suppress(OSError):
            records += _records(path.read_text("utf-8", "replace").splitlines())
    return sorted(records, key=lambda record: record.time)


def follow(
    folder: Path | None = None,
    *,
    is_over: Callable[[], bool] = lambda: False,
    pause_seconds: float = 0.2,
) -> Iterator[Record]:
    """Return the records that are written from this call on, as they come, until `is_over()`."""
    root = folder or log_folder()
    places = {path: path.stat().st_size for path in _files(root)}
    return _later(root, places, is_over, pause_seconds)


def _later(
    root: Path, places: dict[Path, int], is_over: Callable[[], bool], pause_seconds: float
) -> Iterator[Record]:
    while not is_over():
        fresh: list[Record] = []
        for path in _files(root):
            with contextlib.suppress(OSError), path.open("rb") as file:
                file.seek(places.get(path, 0))
                whole = file.read().rpartition(b"\n")
                places[path] = places.get(path, 0) + len(whole[0]) + len(whole[1])
                fresh += _records(whole[0].decode("utf-8", "replace").splitlines())
        yield from sorted(fresh, key=lambda record: record.time)
        if not fresh:
            time.sleep(pause_seconds)


def _files(root: Path) -> Sequence[Path]:
    # The vendor puts its own below run/ too, and one folder a device.
    return sorted(root.rglob("*.log")) if root.is_dir() else []


def _records(lines: Iterable[str]) -> list[Record]:
    return [record for line in lines if (record := parse_line(line)) is not None]
