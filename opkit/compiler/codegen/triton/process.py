"""The process that runs Triton files, as its callers see it."""

from __future__ import annotations

import importlib.util
import os
import pickle
import subprocess
import sys
import threading
from typing import Any, ClassVar

from opkit.errors import OpkitError, SetupError

__all__ = ["TritonProcess"]


class TritonProcess:
    """A process that lives until this one ends, begun at the first call."""

    _shared: ClassVar[TritonProcess | None] = None

    def __init__(self) -> None:
        """Begin it.

        Raises:
            SetupError: triton or torch lacks.
        """
        for package in ("torch", "triton"):
            if importlib.util.find_spec(package) is None:
                raise SetupError(
                    f"Triton programs run by {package}, which is not installed",
                    help="pip install 'opkit[triton]'; writing the file needs neither",
                )
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._process = subprocess.Popen(
            [sys.executable, "-m", "opkit.compiler.codegen.triton.worker"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    @classmethod
    def shared(cls) -> TritonProcess:
        """Return this process's own, begun anew where it has ended or belongs to a parent."""
        found = cls._shared
        if found is None or found._owner != os.getpid() or found._process.poll() is not None:
            found = cls._shared = TritonProcess()
        return found

    def call(
        self, source: str, name: str, arrays: list[tuple[Any, str]], numbers: list[float]
    ) -> list[Any]:
        """Return the arrays that a function of a file returns.

        Args:
            source: the file.
            name: the function.
            arrays: what it is called with, each with its data type.
            numbers: what it is called with behind these.

        Raises:
            OpkitError: it raised, or the process ended.
        """
        process = self._process
        assert process.stdin is not None and process.stdout is not None
        with self._lock:
            try:
                pickle.dump((source, name, arrays, numbers), process.stdin)
                process.stdin.flush()
                has_returned, result = pickle.load(process.stdout)
            except (EOFError, BrokenPipeError) as err:
                process.wait()
                raise OpkitError(f"the process that runs Triton ended while in {name}") from err
            except BaseException:
                # Half a message would be taken for the next one's beginning.
                process.kill()
                raise
        if not has_returned:
            raise OpkitError(f"{name} failed: {result}")
        return result  # type: ignore[no-any-return]
