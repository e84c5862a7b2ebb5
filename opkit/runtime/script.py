"""Python scripts, run in this process as `python script.py` would run them."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

from opkit.errors import OpkitError

__all__ = ["run_script"]


def run_script(script: Path, arguments: Sequence[str]) -> int | str | None:
    """Run a script to its end and return what it has passed to sys.exit; None where it has not.

    An exception that it does not catch is shown as Python shows it and makes the result 1; only
    opkit's own are raised.
    """
    sys.argv = [str(script), *arguments]
    sys.path.insert(0, str(script.parent.resolve()))
    ending = _Ending()
    with ending:
        runpy.run_path(str(script), run_name="__main__")
    return ending.code


class _Ending:
    """How a script ends; what Python's own main loop does with an exception."""

    def __init__(self) -> None:
        self.code: int | str | None = None

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        if kind is None or error is None:
            return False
        if isinstance(error, SystemExit):
            self.code = error.code
            return True
        if isinstance(error, (OpkitError, KeyboardInterrupt)):
            return False
        sys.excepthook(kind, error, trace)
        self.code = 1
        return True
