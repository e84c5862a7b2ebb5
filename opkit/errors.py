"""Every exception that opkit raises on purpose, by who must act.

    OpkitError                exit 70   our bug, unless a subclass says otherwise
    ├── UsageError            exit 2    the call or the command line is wrong
    │   ├── SpecError         exit 2    a prototype JSON is wrong (file, JSON pointer, line)
    │   └── HostRefusal       exit 2    an operator's host code takes no such shapes or types
    ├── OperatorError         exit 1    the user's operator is at fault
    │   ├── BuildError        exit 1    its source does not compile
    │   ├── KernelFault       exit 1    it faulted on the emulated core
    │   └── PrecisionError    exit 1    its result misses the precision standard
    └── SetupError            exit 3    something is missing on this machine
        └── BusyError         exit 3    a service has no room or no time for a call now

    Terminated                exit 143  SIGTERM has come; no `Exception`: nothing takes it for
                                        a failure of what runs

Only `cli/console.py` catches `Exception`; it prints `str(error)` and exits with `error.exit_code`.
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "FAULT_IDS",
    "BuildError",
    "BusyError",
    "Diagnostic",
    "HostRefusal",
    "KernelFault",
    "OperatorError",
    "OpkitError",
    "PrecisionError",
    "SetupError",
    "SpecError",
    "Terminated",
    "UsageError",
    "cannot_write",
]

# A fault that is the kernel's, and what `opkit check` and `opkit explain` call it.
FAULT_IDS = {
    "Deadlock": "SYNC-DEADLOCK",
    "OutOfBounds": "MEM-BOUNDS",
    "UseAfterFree": "MEM-FREED",
    "Misaligned": "MEM-ALIGN",
    "Crash": "MEM-CRASH",
    "QueueMisuse": "QUEUE-MISUSE",
    "RawWrite": "MEM-RAW",
    "IllegalOperand": "API-OPERAND",
    "Assertion": "API-ASSERT",
}


class OpkitError(Exception):
    """Root of the tree; carries the next step as `help` where there is one."""

    exit_code = 70

    def __init__(self, message: str, *, help: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.help = help

    def __str__(self) -> str:
        return f"{self.message}\n  help: {self.help}" if self.help else self.message

    def __reduce__(self) -> tuple[object, ...]:
        """Go through a pipe whole: what was given by name is no argument of `BaseException`."""
        return _made_again, (type(self), self.args, self.__dict__)


def _made_again(
    kind: type[OpkitError], arguments: tuple[object, ...], fields: dict[str, object]
) -> OpkitError:
    error = kind.__new__(kind, *arguments)
    vars(error).update(fields)
    return error


class UsageError(OpkitError):
    """The call or the command line asks for something that cannot be done."""

    exit_code = 2


class SpecError(UsageError):
    """A prototype JSON is wrong at one place."""

    def __init__(
        self,
        message: str,
        *,
        file: Path | None = None,
        pointer: str = "",
        line: int | None = None,
        help: str | None = None,
    ) -> None:
        super().__init__(message, help=help)
        self.file = file
        self.pointer = pointer
        self.line = line

    def __str__(self) -> str:
        where = "".join(
            [
                str(self.file) if self.file else "",
                f":{self.line}" if self.line is not None else "",
            ]
        )
        parts = [part for part in (where, self.pointer) if part]
        head = ": ".join([*parts, self.message])
        return f"{head}\n  help: {self.help}" if self.help else head


class HostRefusal(UsageError):
    """An operator's own tiling or InferShape function returned an error, or asked for no core."""


class OperatorError(OpkitError):
    """The user's operator is at fault."""

    exit_code = 1


@dataclass(frozen=True)
class Diagnostic:
    """One compiler message, against the user's own file."""

    file: Path
    line: int
    column: int
    severity: str
    """`error`, `warning` or `note`."""
    message: str
    source_line: str = ""


class BuildError(OperatorError):
    """A compiler rejected the user's source."""

    def __init__(
        self,
        message: str,
        *,
        diagnostics: tuple[Diagnostic, ...] = (),
        log: str = "",
        help: str | None = None,
    ) -> None:
        super().__init__(message, help=help)
        self.diagnostics = diagnostics
        self.log = log


class KernelFault(OperatorError):
    """A launch ended early; the device can be used again.

    `category` is one of the names of `opkit::Fault` (include/opkit/fault.h), such as `OutOfBounds`;
    `id` the class that `opkit explain` knows, such as `MEM-BOUNDS`, and the category where it is no
    fault of the kernel's.
    """

    def __init__(
        self,
        message: str,
        *,
        category: str,
        file: Path | None = None,
        line: int | None = None,
        kernel: str = "",
        block: int = 0,
        sub_core: str = "",
        pipe: str = "",
        instruction: int = 0,
        help: str | None = None,
    ) -> None:
        super().__init__(message, help=help)
        self.category = category
        self.id = FAULT_IDS.get(category, category)
        self.file = file
        self.line = line
        self.kernel = kernel
        self.block = block
        self.sub_core = sub_core
        self.pipe = pipe
        self.instruction = instruction

    def __str__(self) -> str:
        lines = [f"{self.message} [{self.id}]"]
        if self.file is not None:
            lines.append(
                f"  --> {self.file}:{self.line}      {self.kernel} block {self.block}"
                f" {self.sub_core}, pipe {self.pipe}, instruction {self.instruction}"
            )
        if self.help:
            lines.append(f"  help: {self.help}")
        return "\n".join(lines)


class PrecisionError(OperatorError, AssertionError):
    """A result misses the precision standard that was asked for; an assertion, for pytest."""


class SetupError(OpkitError):
    """Something is missing on this machine: a compiler, a package, disk space."""

    exit_code = 3


class BusyError(SetupError):
    """A service has no room or no time for a call now; the same call may be made again."""


class Terminated(BaseException):
    """SIGTERM has come: everything ends, and cleans up on the way, as for `KeyboardInterrupt`."""

    exit_code = 143


_OF_THE_MACHINE = {
    errno.ENOSPC: "free some space there, or name another place",
    errno.EDQUOT: "your quota there is used up: free some space, or name another place",
    errno.EROFS: "that file system cannot be written: name another place",
    errno.EIO: "the disk reports an error: name another place",
}


def cannot_write(path: Path | str, error: OSError, *, help: str | None = None) -> OpkitError:
    """Return the error of a file or folder that cannot be written, by who must act.

    A full or read-only disk is the machine's; a path that cannot be, or is not one's own, the
    user's, with `help` as advice.
    """
    text = f"{path}: cannot be written: {error.strerror or error}"
    if error.errno in _OF_THE_MACHINE:
        return SetupError(text, help=_OF_THE_MACHINE[error.errno])
    return UsageError(text, help=help)
