"""The commands of a compat run: each with its output, its limit, and an end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

__all__ = ["Ran", "Running"]

_HALF_OUTPUT_BYTES = 2 << 20
# How long a process that has ended may leave its output open to others that it started.
_GRACE_SECONDS = 0.5


@dataclass(frozen=True)
class Ran:
    """What a command did."""

    code: int
    """Its exit code; negative for a signal."""
    output: str
    """What it wrote to stdout and stderr, in its order."""
    timed_out: bool = False
    failed_to_start: str = ""
    """Why it could not be started; empty otherwise."""


class Running:
    """The processes of one compat run; any thread may start one, `stop` ends all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._processes: set[subprocess.Popen[bytes]] = set()
        self.stopped = False
        """Whether `stop` was called: start nothing more."""

    def call(
        self, argv: Sequence[str], *, cwd: Path, env: Mapping[str, str], seconds: float
    ) -> Ran:
        """Run a command to its end or its limit."""
        with self._lock:
            if self.stopped:
                return Ran(-signal.SIGKILL, "", failed_to_start="the run was stopped")
            try:
                process = subprocess.Popen(
                    list(argv),
                    cwd=cwd,
                    env=dict(env),
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    # Its own group: make and cmake have children, and all must go.
                    start_new_session=True,
                )
            except OSError as err:
                return Ran(127, "", failed_to_start=f"{argv[0]}: {err.strerror}")
            self._processes.add(process)
        try:
            output = _Output(process)
            in_time = output.read(seconds)
        finally:
            # What it left in the background, too.
            _kill(process)
            code = process.wait()
            with self._lock:
                self._processes.discard(process)
        if not in_time:
            return Ran(-signal.SIGKILL, output.text(), timed_out=True)
        return Ran(code, output.text())

    def stop(self) -> None:
        """Kill what runs and start nothing more."""
        with self._lock:
            self.stopped = True
            for process in self._processes:
                _kill(process)


class _Output:
    """What a process prints: the beginning and the end, for one that prints without end."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdout is not None
        self._stream = process.stdout
        self._process = process
        self._head = bytearray()
        self._tail = bytearray()
        self._is_cut = False

    def read(self, seconds: float) -> bool:
        """Read until the process ends; return whether it does so in time.

        A child that it leaves behind may hold its output open for as long as it likes.
        """
        deadline = time.monotonic() + seconds
        ended = os.pidfd_open(self._process.pid)
        try:
            waiting = [self._stream.fileno(), ended]
            while waiting:
                left = deadline - time.monotonic()
                ready, _, _ = select.select(waiting, [], [], max(left, 0))
                if left <= 0:
                    return ended not in waiting
                if ended in ready:
                    waiting.remove(ended)
                    deadline = min(deadline, time.monotonic() + _GRACE_SECONDS)
                elif ready and not self._take():
                    waiting.remove(self._stream.fileno())
            return True
        finally:
            os.close(ended)
            self._stream.close()

    def text(self) -> str:
        """Return what was printed."""
        middle = b"\n...\n" if self._is_cut else b""
        return (bytes(self._head) + middle + bytes(self._tail)).decode("utf-8", errors="replace")

    def _take(self) -> bool:
        """Keep the next bytes; return whether there may be more."""
        data = os.read(self._stream.fileno(), 1 << 16)
        room = _HALF_OUTPUT_BYTES - len(self._head)
        self._head += data[:room]
        self._tail += data[room:] if room > 0 else data
        if len(self._tail) > 2 * _HALF_OUTPUT_BYTES:
            del self._tail[:-_HALF_OUTPUT_BYTES]
            self._is_cut = True
        return bool(data)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
