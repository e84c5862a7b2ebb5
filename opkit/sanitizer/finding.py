"""Findings as data, and how equal ones become one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from opkit.errors import KernelFault
from opkit.sanitizer.classes import class_of_fault

__all__ = ["Finding", "Location", "fault_finding", "group_findings", "read_finding"]


@dataclass(frozen=True)
class Location:
    """One instruction or call in a kernel's source."""

    file: Path
    line: int
    instruction: str = ""
    """The instruction table's name; empty for a queue or event call."""
    pipe: str = ""
    """The pipe that it runs on, such as MTE2."""

    def source_line(self) -> str:
        """Return the line's text without indentation; empty where the file cannot be read."""
        try:
            lines = self.file.read_text(encoding="utf-8", errors="replace").splitlines()
        except OSError:
            return ""
        return lines[self.line - 1].strip() if 0 < self.line <= len(lines) else ""


@dataclass(frozen=True)
class Finding:
    """One bug at one place, or pair of places, of a kernel."""

    id: str
    """Its class, such as RACE-RAW."""
    message: str
    help: str
    kernel: str
    location: Location | None
    other: Location | None
    """The access that it conflicts with."""
    block: int
    """Where it happened first."""
    other_block: int
    sub_core: str
    """aiv or aic."""
    sub_block: int
    instruction: int
    """Instructions that the core had issued by then."""
    space: str
    """The memory concerned: UB, GM, ...; empty where none is."""
    begin: int
    """First byte concerned; in GM from the start of its tensor."""
    end: int
    count: int
    """How often it happened, over all blocks and cases."""
    cases: tuple[str, ...] = ()
    """The launches that showed it, where they have names."""


def read_finding(record: Mapping[str, Any]) -> Finding:
    """Return a finding from what the emulator hands over."""
    return Finding(
        id=record["id"],
        message=record["message"],
        help=record["help"],
        kernel=record["kernel"],
        location=_location(record["site"]),
        other=_location(record["other"]),
        block=record["block"],
        other_block=record["other_block"],
        sub_core=record["sub_core"],
        sub_block=record["sub_block"],
        instruction=record["instruction"],
        space=record["space"],
        begin=record["begin"],
        end=record["end"],
        count=record["count"],
    )


def _location(site: Mapping[str, Any] | None) -> Location | None:
    if site is None:
        return None
    return Location(Path(site["file"]), site["line"], site["instruction"], site["pipe"])


def fault_finding(fault: KernelFault) -> Finding | None:
    """Return the finding that a fault is; None where opkit is at fault and not the kernel."""
    row = class_of_fault(fault.category)
    if row is None:
        return None
    location = None
    if fault.file is not None:
        location = Location(Path(fault.file), fault.line or 0, "", fault.pipe)
    return Finding(
        id=row.id,
        message=fault.message,
        help=fault.help or "",
        kernel=fault.kernel,
        location=location,
        other=None,
        block=fault.block,
        other_block=fault.block,
        sub_core=fault.sub_core,
        sub_block=0,
        instruction=fault.instruction,
        space="",
        begin=0,
        end=0,
        count=1,
    )


def group_findings(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return each class and place once, in order of first appearance: counts and cases add up."""
    groups: dict[tuple[object, ...], Finding] = {}
    for finding in findings:
        key = (finding.id, finding.kernel, finding.location, finding.other)
        known = groups.get(key)
        if known is None:
            groups[key] = finding
            continue
        cases = tuple(dict.fromkeys((*known.cases, *finding.cases)))
        groups[key] = replace(known, count=known.count + finding.count, cases=cases)
    return tuple(groups.values())
