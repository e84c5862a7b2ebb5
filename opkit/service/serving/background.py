"""Work that no caller waits for: shadow calls, trial calls, questions to the timing model."""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

__all__ = ["Background"]

_MOST_WAITING = 64
_LAST_SECONDS = 2.0
"""How long closing waits for what is under way."""


class Background:
    """One thread and a short queue; what does not fit in is left out, and said so."""

    def __init__(self) -> None:
        self._jobs: queue.Queue[Callable[[], None] | None] = queue.Queue(_MOST_WAITING)
        self._is_closed = False
        self._thread = self._begin()

    def offer(self, job: Callable[[], None]) -> bool:
        """Do something soon; false where too much is waiting already."""
        if self._is_closed:
            return False
        if not self._thread.is_alive():
            # A job that ended in an exception of ours took the thread with it.
            self._thread = self._begin()
        try:
            self._jobs.put_nowait(job)
        except queue.Full:
            return False
        return True

    def settle(self) -> None:
        """Wait until what was offered so far is done; for tests and scripts."""
        done = threading.Event()
        self._jobs.put(done.set)
        done.wait()

    def close(self) -> None:
        """Leave what waits undone, and end the thread."""
        self._is_closed = True
        while True:
            try:
                self._jobs.get_nowait()
            except queue.Empty:
                break
        self._jobs.put(None)
        self._thread.join(timeout=_LAST_SECONDS)

    def _begin(self) -> threading.Thread:
        thread = threading.Thread(target=self._run, name="opkit-background", daemon=True)
        thread.start()
        return thread

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            job()
