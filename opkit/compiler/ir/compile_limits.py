"""What a compilation may take of this machine, and the error by name where it takes more.

A program can be made of more operators than anybody meant: a loop that is run out while it is
traced, an operator that is taken apart into copies of its input. Whoever makes nodes, steps or
groups says so by `charge`, which looks at the clock and at memory now and then.
"""

from __future__ import annotations

import os
import resource
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from opkit.errors import UsageError

from .graph import GraphError, Location, here

__all__ = ["CompileLimitError", "allowance", "charge"]

SECONDS, GIBIBYTES = "OPKIT_COMPILE_SECONDS", "OPKIT_COMPILE_GIB"
_MOST = {SECONDS: 30.0, GIBIBYTES: 2.0}
_CHARGES_A_LOOK = 128
_STATM = Path("/proc/self/statm")


class CompileLimitError(GraphError):
    """Compiling took more memory or time than it may.

    `resource` is the variable that names the limit, `most` its value, `taken` what it has come to.
    """

    def __init__(self, resource: str, taken: float, most: float, location: Location | None) -> None:
        unit = "s of processor time" if resource == SECONDS else "GiB of memory"
        super().__init__(
            f"compiling has taken {taken:.2g} {unit}, and may take {most:g}",
            location=location,
            help=f"the program is too large here: cut it, or loops that it runs out; {resource}=N"
            " allows more",
        )
        self.resource = resource
        self.taken = taken
        self.most = most


class _Allowance:
    """What a compilation has taken since it began."""

    def __init__(self) -> None:
        self._most = {name: _number(name, default) for name, default in _MOST.items()}
        # Of this thread alone: on a busy machine the clock on the wall would refuse good programs.
        self._began = time.thread_time()
        self._held_bytes = _resident_bytes()
        self._charges = 0

    def charge(self, location: Location | None) -> None:
        self._charges += 1
        if self._charges % _CHARGES_A_LOOK:
            return
        taken = {
            SECONDS: time.thread_time() - self._began,
            GIBIBYTES: (_resident_bytes() - self._held_bytes) / 2**30,
        }
        for name, most in self._most.items():
            if taken[name] > most:
                raise CompileLimitError(name, taken[name], most, location or here())


_current: ContextVar[_Allowance | None] = ContextVar("allowance", default=None)


@contextmanager
def allowance() -> Iterator[None]:
    """Limit what is compiled in the block; one inside of another is part of that.

    Raises:
        CompileLimitError: it took more than OPKIT_COMPILE_SECONDS or OPKIT_COMPILE_GIB say.
        UsageError: one of these is no number above 0.
    """
    if _current.get() is not None:
        yield
        return
    token = _current.set(_Allowance())
    try:
        yield
    finally:
        _current.reset(token)


def charge(location: Location | None = None) -> None:
    """Count one more node, step or group of the compilation under way, if there is one.

    Raises:
        CompileLimitError: the compilation takes too much.
    """
    current = _current.get()
    if current is not None:
        current.charge(location)


def _resident_bytes() -> int:
    return int(_STATM.read_text().split()[1]) * resource.getpagesize()


def _number(name: str, default: float) -> float:
    text = os.environ.get(name, "")
    try:
        number = float(text) if text else default
    except ValueError:
        number = 0.0
    if not number > 0:
        raise UsageError(f"{name}={text} is no number above 0", help=f"{name}={default:g}")
    return number
