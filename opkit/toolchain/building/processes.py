"""Running compilers side by side, so that none outlives the build."""

from __future__ import annotations

import contextlib
import os
import shlex
import signal
import subprocess
import threading
from collections.abc import Sequence
from pathlib import Path

from opkit import log
from opkit.errors import SetupError

__all__ = ["Cancelled", "ProcessGroup"]


class Cancelled(Exception):
    """The build was stopped while this command ran."""


class ProcessGroup:
    """The commands of one build. Any thread may run one; `stop` ends all."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: set[subprocess.Popen[bytes]] = set()
        self._stopped = False

    def run(self, argv: Sequence[str], *, cwd: Path) -> tuple[int, str]:
        """Run a command to its end and return its exit code and what it printed.

        Raises:
            SetupError: it cannot be started.
            Cancelled: `stop` was called.
        """
        with self._lock:
            if self._stopped:
                raise Cancelled
            try:
                process = subprocess.Popen(
                    list(argv),
                    cwd=cwd,
                    stdin=subprocess.DEVNULL,
                    stdout=subprocess.PIPE,
                    stderr=subprocess.STDOUT,
                    # English messages: we parse them.
                    env={**os.environ, "LC_ALL": "C"},
                    # Its own group: a compiler is a driver with children, and all must go.
                    start_new_session=True,
                )
            except OSError as err:
                raise SetupError(f"{argv[0]} cannot be started: {err}") from err
            self._running.add(process)
        log.debug("TOOLCHAIN", shlex.join(argv))
        try:
            output, _ = process.communicate()
        except BaseException:
            # Ctrl-C in the thread that waits here.
            _kill(process)
            raise
        finally:
            with self._lock:
                self._running.discard(process)
        if self._stopped:
            raise Cancelled
        if process.returncode != 0:
            text = output.decode(errors="replace")
            log.error("TOOLCHAIN", f"{shlex.join(argv)}\n{text}", exit_code=process.returncode)
        return process.returncode, output.decode(errors="replace")

    def stop(self) -> None:
        """Kill what runs and start nothing more."""
        with self._lock:
            self._stopped = True
            for process in self._running:
                _kill(process)


def _kill(process: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
