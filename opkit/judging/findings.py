"""Cheats and faults of candidates by name; `opkit check`'s own findings keep theirs."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["KINDS", "JudgeFinding", "JudgeGap", "finding"]

KINDS = {
    "BUILD": "it does not compile",
    "INTERFACE": "it takes or gives other tensors than the operator of the task",
    "FOREIGN-KERNEL": "its kernel calls functions of this machine, or has assembly: no AI core has"
    " an operating system, a libm or a libc",
    "LIBRARY-KERNEL": "its kernel calls libm or libc, which no AI core has",
    "FOREIGN-HOST": "its host code asks for processes, files, the network, clocks or other"
    " libraries",
    "WRONG": "a result misses the precision standard",
    "SHAPE": "an output has another shape or data type than the golden gives",
    "NOT-BY-INSTRUCTIONS": "an output has more bytes than the launch's instructions wrote to"
    " global memory",
    "HOST-COMPUTED": "what its Python, or torch, has computed of the inputs is part of its result,"
    " or of what it launches: kernels alone compute",
    "INPUT-WRITTEN": "a launch changes an input that is no output",
    "NO-LAUNCH": "no kernel was launched, and there is something to compute",
    "CACHED": "a launch gives what an earlier one with other inputs gave",
    "STATE": "a launch is right alone and wrong after others: it keeps something between launches",
    "TIME-LIMIT": "a launch does not end within its time",
    "MEMORY-LIMIT": "a launch asks for more memory than a process may use",
    "ENDED": "the process in which it ran ended: exit, abort, a crash",
    "SYSTEM-CALL": "it asked the system for another process, a socket or the like, and was ended",
    "GARBLED": "its process sent something else than results",
    "RAISED": "its Python raises an exception for a case of the task",
    "REFUSED": "its host code refuses a case of the task",
}
"""What each finding of the judge's own says."""


@dataclass(frozen=True, order=True)
class JudgeFinding:
    """One thing that speaks against a candidate."""

    id: str
    """One of `KINDS`, or a class of `opkit explain`."""
    message: str
    file: str = ""
    """Relative to the candidate; empty where no line is to blame."""
    line: int = 0
    cases: tuple[str, ...] = field(default=())
    """The first few that show it."""

    def as_object(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {
            "id": self.id,
            "message": self.message,
            "file": self.file or None,
            "line": self.line or None,
            "cases": list(self.cases),
        }


@dataclass(frozen=True, order=True)
class JudgeGap:
    """A launch that ended for a reason that is not the candidate's."""

    category: str
    """Unimplemented, Unspecified or Internal, as `opkit check` has them; else the error's class."""
    message: str
    cases: tuple[str, ...] = ()
    """The first few of which it happened."""

    def as_object(self) -> dict[str, object]:
        """Return it as JSON has it."""
        return {"category": self.category, "message": self.message, "cases": list(self.cases)}


def finding(id: str, detail: str = "", *, file: str = "", line: int = 0) -> JudgeFinding:
    """Return a finding of a kind, with what is particular about it."""
    text = KINDS[id] + (f": {detail}" if detail else "")
    return JudgeFinding(id, text, file, line)
