"""`--executor local:4` to an executor."""

from __future__ import annotations

import os
import re

from opkit.errors import UsageError
from opkit.executor.crew import Executor
from opkit.executor.here import HereExecutor
from opkit.executor.local import LocalExecutor

__all__ = ["EXECUTORS", "open_executor"]

EXECUTORS = "here | local[:N] | dask:tcp://HOST:PORT"
"""What `open_executor` takes."""


def open_executor(text: str = "local") -> Executor:
    """Return the executor that a text names: `local`, `local:4`, `dask:tcp://10.0.0.1:8786`.

    `local` has a process for each core that this one may use; `here` is this process, in which a
    debugger stops, and which a case can end.

    Raises:
        UsageError: it names none.
        SetupError: Dask is not installed, or there is no such scheduler.
    """
    kind, _, rest = text.partition(":")
    if text == "here":
        return HereExecutor()
    if text == "local":
        return LocalExecutor(len(os.sched_getaffinity(0)))
    if kind == "local" and rest.isascii() and rest.isdigit() and int(rest) > 0:
        return LocalExecutor(int(rest))
    if kind == "dask" and re.fullmatch(r"(tcp|tls|ucx)://\S+:\d+", rest):
        from opkit.executor.dask_cluster import DaskExecutor

        return DaskExecutor(rest)
    raise UsageError(
        f'"{text}" is no executor', help="write local, local:4 or dask:tcp://HOST:PORT"
    )
