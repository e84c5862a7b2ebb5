"""A limit on how long a launch may go on without progress."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from opkit.runtime.device import load_emulator

__all__ = ["DEFAULT_TIMEOUT_SECONDS", "time_limit"]

DEFAULT_TIMEOUT_SECONDS = 60.0


@contextmanager
def time_limit(
    seconds: float = DEFAULT_TIMEOUT_SECONDS, *, counts_host: bool = False
) -> Iterator[None]:
    """End every launch of which no core has ended for so long, with a KernelFault.

    Its category is `Interrupted`. A kernel that loops never ends a core; one that is only slow
    does, block after block. 0 stands for no limit. A launch that is then in a call into the system
    which never comes back has the process end 5 s later, with exit code 124: nothing else ends it.
    With `counts_host` so does what runs for so long without a launch: an operator's host code.
    """
    if seconds <= 0:
        yield
        return
    load_emulator()
    import opkit.emulator._emulator as emulator

    limit = emulator.TimeLimit(seconds, counts_host)
    try:
        yield
    finally:
        del limit
