"""Running a project's cases under the checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from opkit.errors import KernelFault, OpkitError, UsageError
from opkit.sanitizer.classes import known_class
from opkit.sanitizer.finding import Finding, Gap, Location, group_findings, located_findings
from opkit.sanitizer.session import Check
from opkit.sanitizer.settings import CheckSettings

__all__ = [
    "CaseFindings",
    "CaseRun",
    "CheckReport",
    "CheckedCase",
    "check_case",
    "check_cases",
    "check_report",
    "lost_case",
    "retold_case",
    "split_findings",
    "watch",
]


class CaseRun(Protocol):
    """One launch with a name: `opkit.cli.commands.check` makes them of a project's test cases."""

    @property
    def name(self) -> str: ...
    @property
    def op(self) -> str: ...


@dataclass(frozen=True)
class CaseFindings:
    """What one case showed."""

    name: str
    findings: tuple[Finding, ...]
    notes: tuple[Finding, ...] = ()


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
    gaps: tuple[Gap, ...] = ()
    """Launches that opkit could not finish, and calls that the operator refused."""
    exit_code: int = 0
    """Exit code of the program or script that was checked."""

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Each class and place once, over all cases."""
        return group_findings(finding for case in self.cases for finding in case.findings)

    @property
    def notes(self) -> tuple[Finding, ...]:
        """The same of what is no bug; a report with notes alone is clean."""
        return group_findings(note for case in self.cases for note in case.notes)

    @property
    def clean(self) -> bool:
        """Whether every launch was finished and nothing was found that is not suppressed."""
        return not self.gaps and not any(case.findings for case in self.cases)


Place: TypeAlias = tuple[str, Location | None, Location | None]
"""A finding's class, its place and the access that it conflicts with."""


@dataclass(frozen=True)
class CheckedCase:
    """One case, as it comes out of the process that it ran in."""

    name: str
    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]
    hidden: frozenset[Place]
    """Places of findings that suppressions hide."""
    notes: tuple[Finding, ...] = ()


def check_cases(
    project: str,
    root: Path,
    cases: Iterable[CaseRun],
    launch: Callable[[Any], Sequence[Finding]],
    *,
    settings: CheckSettings,
) -> CheckReport:
    """Launch every case under the checks, in this process, and return what they found.

    Args: as `check_case`.
    Raises: as `check_case` and `check_report`.
    """
    checked = [check_case(case, root, launch, settings=settings) for case in cases]
    return check_report(project, root, checked, settings=settings)


def check_case(
    case: CaseRun,
    root: Path,
    launch: Callable[[Any], Sequence[Finding]],
    *,
    settings: CheckSettings,
) -> CheckedCase:
    """Launch one case under the checks.

    Args:
        root: suppressions name files relative to it.
        launch: runs the case and returns what its results show.
    Raises:
        KernelFault: the launch ended for a reason that is opkit's and not the kernel's.
    """
    session = watch(settings)
    shown: Sequence[Finding] = ()
    gaps: tuple[Gap, ...] = ()
    try:
        with session:
            shown = launch(case)
    except KernelFault as fault:
        if fault.category == "Interrupted":
            # By the time limit: the case shows no more, the others can still be checked.
            place = None if fault.file is None else Location(Path(fault.file), fault.line or 0)
            gaps = (Gap(fault.category, fault.message, case.name, place),)
        elif fault.message not in {finding.message for finding in session.findings}:
            raise
    except OpkitError as error:
        if error.exit_code == OpkitError.exit_code:
            raise
        # The others can still be checked.
        gaps = (Gap("Refused", " ".join(str(error).split()), case.name, None),)
    if any(finding.id == "INIT-COPY-OUT" for finding in session.findings):
        shown = ()  # it says where, and the outputs hold what was copied
    kept, hidden = split_findings((*session.findings, *shown), settings, root, case.name)
    notes, hidden_notes = split_findings(session.notes, settings, root, case.name)
    return CheckedCase(case.name, kept, gaps, frozenset(hidden | hidden_notes), notes)


def lost_case(name: str, reason: str) -> CheckedCase:
    """Return a case whose process has ended, or was ended, in the middle of it."""
    return CheckedCase(name, (), (Gap("Ended", reason, name, None),), frozenset())


def retold_case(told: CheckedCase, name: str) -> CheckedCase | None:
    """Return what another process says of a case; None where `opkit check` says no such thing."""
    for shown, are_notes in ((told.findings, False), (told.notes, True)):
        for each in shown:
            row = known_class(each.id)
            if row is None or row.is_note != are_notes or each.cases != (name,):
                return None
    return told if told.name == name else None


def check_report(
    project: str, root: Path, checked: Sequence[CheckedCase], *, settings: CheckSettings
) -> CheckReport:
    """Return the report of checked cases.

    Raises:
        UsageError: there are none.
    """
    if not checked:
        raise UsageError(f"{project} has no cases to check", help="give it at least one")
    hidden = frozenset[Place]().union(*(case.hidden for case in checked))
    return CheckReport(
        project,
        root,
        settings.tools,
        tuple(CaseFindings(case.name, case.findings, case.notes) for case in checked),
        len(hidden),
        gaps=tuple(gap for case in checked for gap in case.gaps),
    )


def watch(settings: CheckSettings) -> Check:
    """Return the session that looks for what the settings say."""
    return Check(
        settings.tools,
        auto_sync=settings.auto_sync,
        block=settings.block,
        witness=settings.witness,
        padding=settings.padding,
    )


def split_findings(
    findings: Iterable[Finding], settings: CheckSettings, root: Path, case: str
) -> tuple[tuple[Finding, ...], dict[Place, Finding]]:
    """Return the findings to report, as `case`'s, and those that suppressions hide, by place."""
    kept = []
    hidden: dict[Place, Finding] = {}
    for finding in located_findings(findings, root):
        if not fnmatchcase(finding.kernel, settings.kernel or "*"):
            continue
        if settings.suppressions is not None and settings.suppressions.match(finding, root):
            hidden[(finding.id, finding.location, finding.other)] = finding
        else:
            kept.append(replace(finding, cases=(case,)))
    return tuple(kept), hidden
