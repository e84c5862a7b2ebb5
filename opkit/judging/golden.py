"""A golden in a sandbox of its own, called as if it were here.

The verdict is counted outside of the golden's process, and of the candidate's: what comes out of
either are numbers.
"""

from __future__ import annotations

import contextlib
import inspect
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

from opkit.errors import OperatorError, SetupError
from opkit.executor import Crew, Folder, LocalExecutor, Lost, Work, bare, plain_value, read_value
from opkit.judging.lockdown import Limits
from opkit.judging.sandbox import Sandbox
from opkit.judging.worker import GoldenSetup, begin_golden
from opkit.testing import Golden

__all__ = ["golden_apart", "golden_of_text", "require_torch"]

_INSIDE = "/judge/golden"


def golden_of_text(text: str, source: Path) -> Golden:
    """Return the golden that opkit itself wrote of formulas: it needs no sandbox."""
    module = ModuleType("_opkit_judge_golden")
    exec(compile(text, f"<formulas of {source.name}>", "exec"), vars(module))
    return Golden(source, module)


@contextlib.contextmanager
def golden_apart(
    file: Path, *, uses_torch: bool, limits: Limits, sandboxed: bool
) -> Iterator[Golden]:
    """Yield a golden whose functions run in another process, one for all calls in the block.

    Args:
        file: golden.py; what lies beside it can be read by it.
        uses_torch: its functions take tensors of torch.
        limits: on memory, and on the time of each call.
        sandboxed: without network and other files.
    Raises:
        SetupError: it needs torch, which is not installed.
    """
    if uses_torch:
        require_torch(f"{file}: the golden")
    folder = file.parent.absolute()
    inside = Folder(Path(_INSIDE) if sandboxed else folder)
    setup = GoldenSetup(file.name, uses_torch, limits)
    most = limits.memory_mib << 19
    work = Work(begin_golden, setup, {"golden": inside}, seconds=limits.seconds, most_bytes=most)
    cage = Sandbox(readable={_INSIDE: folder}) if sandboxed else bare
    with LocalExecutor(1, cage=cage).open(work) as crew:
        module = _module(crew, file)
        if uses_torch:
            # A program of torch computes in its arguments' precision: it is its own second.
            for name, function in list(vars(module).items()):
                if isinstance(function, _Function):
                    vars(module).setdefault(f"{name}_same_precision", function)
        yield Golden(file, module)


def require_torch(what: str) -> None:
    """Make sure that torch is there.

    Raises:
        SetupError: it is not.
    """
    import importlib.util

    if importlib.util.find_spec("torch") is None:
        raise SetupError(
            f"{what} is a program of torch, which is not installed",
            help="pip install 'opkit[torch]'",
        )


def _module(crew: Crew, file: Path) -> ModuleType:
    """Return a module that has the golden's functions, each of which asks the other process."""
    names = _answer(crew, None, file)["names"]
    module = ModuleType("_opkit_judge_golden")
    for name in names:
        setattr(module, str(name), _Function(crew, str(name), file))
    return module


class _Function:
    """One function of the golden."""

    def __init__(self, crew: Crew, name: str, file: Path) -> None:
        self._crew, self._name, self._file = crew, name, file
        self.__signature__ = inspect.Signature()

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        """Return what the function gives; arrays of objects it does not take (TypeError)."""
        request = (self._name, plain_value(arguments), plain_value(named))
        answer = _answer(self._crew, request, self._file)
        if "error" in answer:
            raise OperatorError(f"{self._file.name}: {self._name}: {answer['error']}")
        try:
            return read_value(answer["value"])
        except (KeyError, ValueError) as error:
            raise OperatorError(
                f"{self._file.name}: {self._name} gave something else than arrays"
            ) from error


def _answer(crew: Crew, request: object, file: Path) -> dict[str, Any]:
    (found,) = crew.run([request])
    if isinstance(found, Lost):
        raise OperatorError(
            f"{file.name}: {found}",
            help="look for exit and endless loops in it; --memory and --timeout are its limits",
        )
    if not isinstance(found, dict) or (request is None and "names" not in found):
        text = found.get("error") if isinstance(found, dict) else "its process speaks nonsense"
        raise OperatorError(f"{file.name}: {text}")
    return found
