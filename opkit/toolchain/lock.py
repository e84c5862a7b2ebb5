"""One build at a time in an artifact folder."""

from __future__ import annotations

import contextlib
import fcntl
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["locked"]


@contextlib.contextmanager
def locked(file: Path, *, waiting: Callable[[], None]) -> Iterator[None]:
    """Hold a lock file while the body runs; `waiting` is called once if another process has it.

    The lock ends with the process, however that ends.
    """
    with file.open("a") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(handle, fcntl.LOCK_EX)
        yield
