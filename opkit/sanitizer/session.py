"""Checking whatever launches kernels."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from types import TracebackType

from opkit import runtime
from opkit.errors import KernelFault, UsageError
from opkit.sanitizer.classes import TOOLS, find_class
from opkit.sanitizer.finding import (
    Finding,
    Found,
    Gap,
    fault_finding,
    group_findings,
    read_findings,
)

__all__ = ["Check", "chosen_tools", "detectors_of", "kept_findings"]

# What the emulator attaches for each tool; the other tools' findings are faults.
_DETECTORS = {
    "memcheck": ("memory", "free", "place", "scratch"),
    "initcheck": ("init",),
    "racecheck": ("race", "cross"),
    "cachecheck": ("cache",),
    "synccheck": ("leak",),
    "leakcheck": ("leak", "memory"),
    "apicheck": ("overlap",),
    "notecheck": ("note", "race"),
}


class Check:
    """Watches every launch inside a `with` block; results do not change.

    `with Check() as session: operator(x)`, then `session.findings`. A fault that ends a launch is
    among the findings and goes on as the exception that it is. Checks do not nest.
    """

    def __init__(
        self,
        tools: Sequence[str] = (),
        *,
        auto_sync: bool = True,
        block: int | None = None,
        witness: bool = False,
        padding: bool = False,
        raw: bool = False,
    ) -> None:
        """Take the tools of `opkit.sanitizer.TOOLS` to run; all when none is named.

        `auto_sync`: whether the compiler orders scalar accesses on vector cores, its default.
        `block`: findings of this block only.
        `witness`: run launches with races again, in the order that loses, and say what differs;
        global memory is as the launch itself left it afterwards.
        `padding`: memcheck also looks for reads of what rounds a tensor up to 32 bytes.
        `raw`: memcheck also looks for stores into UB through raw pointers.

        Raises:
            UsageError: no such tool.
        """
        self.findings: tuple[Finding, ...] = ()
        """Filled when the block ends, equal ones once."""
        self.notes: tuple[Finding, ...] = ()
        """The same of what is no bug and seldom meant."""
        self.gaps: tuple[Gap, ...] = ()
        """Launches that ended early for a reason of opkit's own."""
        self._tools = chosen_tools(tools)
        self._auto_sync = auto_sync
        self._block = block
        self._witness = witness
        self._padding = padding
        self._raw = raw
        # Host code that is checked runs in this process, and does not know it.
        self._key = secrets.randbits(63) | 1

    def __enter__(self) -> Check:
        runtime.load_emulator()
        import opkit.emulator._emulator as emulator

        emulator.begin_checks(
            detectors=detectors_of(self._tools, padding=self._padding, raw=self._raw),
            auto_sync=self._auto_sync,
            only_block=-1 if self._block is None else self._block,
            witness=self._witness,
            key=self._key,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import opkit.emulator._emulator as emulator

        found = kept_findings(read_findings(emulator.end_checks(self._key)), self._tools)
        self.findings, self.gaps, self.notes = found.findings, found.gaps, found.notes
        told = {finding.message for finding in found.findings}
        told |= {gap.message for gap in found.gaps}
        if isinstance(error, KernelFault) and error.message not in told:
            # Raised before the launch, such as by what its host code asked for.
            fault = fault_finding(error)
            self.findings += (fault,) if fault is not None else ()


def kept_findings(found: Found, tools: Sequence[str]) -> Found:
    """Return the findings of the chosen tools, equal ones once, the faults, and notes apart.

    Faults stay whatever was chosen: a launch that ended early is never clean.
    """
    rows = [(finding, find_class(finding.id)) for finding in found.findings]
    kept = [pair for pair in rows if pair[1].fault or pair[1].tool in tools]
    findings = group_findings(finding for finding, row in kept if not row.is_note)
    notes = group_findings(finding for finding, row in kept if row.is_note)
    return Found(findings, found.gaps, notes)


def detectors_of(tools: Sequence[str], *, padding: bool = False, raw: bool = False) -> str:
    """Return the emulator's detectors for tools, names joined by commas.

    Args:
        padding: memcheck's reads of what rounds a tensor up to 32 bytes, too.
        raw: memcheck's stores into UB through raw pointers, too.
    """
    names = [name for tool in tools for name in _DETECTORS.get(tool, ())]
    names += ["padding"] if padding and "memcheck" in tools else []
    names += ["raw"] if raw and "memcheck" in tools else []
    return ",".join(dict.fromkeys(names))


def chosen_tools(tools: Sequence[str]) -> tuple[str, ...]:
    """Return the tools named, all when none is.

    Raises:
        UsageError: no such tool.
    """
    for tool in tools:
        if tool not in TOOLS:
            raise UsageError(f'"{tool}" is not a tool', help="there are " + ", ".join(TOOLS))
    return tuple(tools) or TOOLS
