"""Running a project's cases under the checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol

from opkit.errors import KernelFault, UsageError
from opkit.sanitizer.finding import Finding, group_findings
from opkit.sanitizer.session import Check
from opkit.sanitizer.suppressions import Suppressions

__all__ = ["CaseFindings", "CaseRun", "CheckReport", "check_cases"]


class CaseRun(Protocol):
    """One launch with a name: `opkit.cli.check` makes them of a project's test cases."""

    @property
    def name(self) -> str: ...
    @property
    def op(self) -> str: ...


@dataclass(frozen=True)
class CaseFindings:
    """What one case showed."""

    name: str
    findings: tuple[Finding, ...]


@dataclass(frozen=True)
class CheckReport:
    """All cases of one check."""

    project: str
    root: Path
    """Files below it are named relative to it."""
    tools: tuple[str, ...]
    cases: tuple[CaseFindings, ...]
    suppressed: int
    """Groups of findings that suppressions hid."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Each class and place once, over all cases."""
        return group_findings(finding for case in self.cases for finding in case.findings)

    @property
    def clean(self) -> bool:
        """Whether nothing was found that is not suppressed."""
        return not any(case.findings for case in self.cases)


def check_cases(
    project: str,
    root: Path,
    cases: Iterable[CaseRun],
    launch: Callable[[Any], object],
    *,
    tools: Sequence[str],
    auto_sync: bool = True,
    suppressions: Suppressions | None = None,
    progress: Callable[[str], None] | None = None,
) -> CheckReport:
    """Launch every case under the checks and return what they found.

    Args:
        launch: runs one case; its results are not looked at.
        suppressions: what is not to be reported; see `read_suppressions`.
        progress: called with a case's name after it.
    Raises:
        UsageError: there are no cases.
        KernelFault: a launch ended for a reason that is opkit's and not the kernel's.
    """
    results = []
    hidden: dict[tuple[object, ...], Finding] = {}
    for case in cases:
        session = Check(tools, auto_sync=auto_sync)
        try:
            with session:
                launch(case)
        except KernelFault as fault:
            if not session.findings or session.findings[-1].message != fault.message:
                raise
        kept = []
        for finding in session.findings:
            if suppressions is not None and suppressions.match(finding, root):
                hidden[(finding.id, finding.location, finding.other)] = finding
            else:
                kept.append(replace(finding, cases=(case.name,)))
        results.append(CaseFindings(case.name, tuple(kept)))
        if progress is not None:
            progress(case.name)
    if not results:
        raise UsageError(f"{project} has no cases to check", help="leave out --shape or --dtype")
    return CheckReport(project, root, tuple(tools), tuple(results), len(hidden))
