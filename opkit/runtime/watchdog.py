"""A limit on how long a launch may go on without progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from opkit.runtime.device import load_emulator

__all__ = ["DEFAULT_TIMEOUT_SECONDS", "time_limit"]

DEFAULT_TIMEOUT_SECONDS = 60.0
_LOOKS_PER_LIMIT = 20


@contextmanager
def time_limit(seconds: float = DEFAULT_TIMEOUT_SECONDS) -> Iterator[None]:
    """End every launch of which no core has ended for so long, with a KernelFault.

    Its category is `Interrupted`. A kernel that loops never ends a core; one that is only slow
    does, block after block. 0 stands for no limit.
    """
    if seconds <= 0:
        yield
        return
    load_emulator()
    is_over = threading.Event()
    thread = threading.Thread(target=_watch, args=(seconds, is_over), daemon=True)
    thread.start()
    try:
        yield
    finally:
        is_over.set()
        thread.join()


def _watch(seconds: float, is_over: threading.Event) -> None:
    import opkit.emulator._emulator as emulator

    seen, since = emulator.launch_progress(), time.monotonic()
    while not is_over.wait(min(0.25, seconds / _LOOKS_PER_LIMIT)):
        now = emulator.launch_progress()
        if now != seen or not now[1]:
            seen, since = now, time.monotonic()
        elif time.monotonic() - since >= seconds:
            # Again at each look until it has ended: a core may be where it cannot leave.
            emulator.stop_launch(seconds)
