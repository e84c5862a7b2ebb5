"""Checking whatever launches kernels."""

from __future__ import annotations

from collections.abc import Sequence
from types import TracebackType

from opkit import runtime
from opkit.errors import KernelFault, UsageError
from opkit.sanitizer.classes import TOOLS, find_class
from opkit.sanitizer.finding import Finding, fault_finding, group_findings, read_finding

__all__ = ["Check", "chosen_tools"]


class Check:
    """Watches every launch inside a `with` block; results do not change.

    `with Check() as session: operator(x)`, then `session.findings`. A fault that ends a launch is
    among the findings and goes on as the exception that it is. Checks do not nest.
    """

    def __init__(self, tools: Sequence[str] = (), *, auto_sync: bool = True) -> None:
        """Take the tools of `opkit.sanitizer.TOOLS` to run; all when none is named.

        `auto_sync`: whether the compiler orders scalar accesses on vector cores, its default.

        Raises:
            UsageError: no such tool.
        """
        self.findings: tuple[Finding, ...] = ()
        """Filled when the block ends, equal ones once."""
        self._tools = chosen_tools(tools)
        self._auto_sync = auto_sync

    def __enter__(self) -> Check:
        runtime.load_emulator()
        import opkit.emulator._emulator as emulator

        emulator.begin_checks(
            race="racecheck" in self._tools,
            cross="racecheck" in self._tools,
            init="initcheck" in self._tools,
            leak="leakcheck" in self._tools or "synccheck" in self._tools,
            auto_sync=self._auto_sync,
        )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        import opkit.emulator._emulator as emulator

        found = [read_finding(record) for record in emulator.end_checks()]
        kept = [finding for finding in found if find_class(finding.id).tool in self._tools]
        if isinstance(error, KernelFault):
            fault = fault_finding(error)
            # Whatever was asked for: a launch that ended early is never clean.
            kept += [fault] if fault is not None else []
        self.findings = group_findings(kept)


def chosen_tools(tools: Sequence[str]) -> tuple[str, ...]:
    """Return the tools named, all when none is.

    Raises:
        UsageError: no such tool.
    """
    for tool in tools:
        if tool not in TOOLS:
            raise UsageError(f'"{tool}" is not a tool', help="there are " + ", ".join(TOOLS))
    return tuple(tools) or TOOLS
