"""Findings as data, and how equal ones become one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from opkit.errors import KernelFault
from opkit.sanitizer.addresses import resolve_addresses
from opkit.sanitizer.classes import class_of_fault
from opkit.sanitizer.witness import Witness, read_witness

__all__ = [
    "Finding",
    "Found",
    "Gap",
    "Location",
    "fault_finding",
    "group_findings",
    "located",
    "located_findings",
    "read_findings",
]


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
    allocation: str = ""
    """What the bytes belong to, in words; empty where that is not known."""
    cases: tuple[str, ...] = ()
    """The launches that showed it, where they have names."""
    witness: Witness | None = None
    """Witness of a race that was replayed; see `Check`."""


@dataclass(frozen=True)
class Gap:
    """A launch that ended for a reason that is not the kernel's: the rest is unchecked."""

    category: str
    """Unimplemented, Unspecified or Internal; Refused where a host function took no such call;
    Ended where the process that it ran in has."""
    message: str
    kernel: str
    location: Location | None


@dataclass(frozen=True)
class Found:
    """What one session of checks has left."""

    findings: tuple[Finding, ...]
    gaps: tuple[Gap, ...]
    notes: tuple[Finding, ...] = ()
    """Findings of classes that are no bugs; `read_findings` leaves them among the findings."""


def read_findings(text: str) -> Found:
    """Return the findings of the JSON array that the emulator hands over."""
    records: list[dict[str, Any]] = json.loads(text)
    places = resolve_addresses(
        (Path(record["site"]["module"]), record["site"]["offset"])
        for record in records
        if record["site"] is not None and record["site"]["module"]
    )
    findings = []
    gaps = []
    for record in records:
        location = _location(record["site"], places)
        row = class_of_fault(record["fault"]) if record["fault"] else None
        if record["fault"] and row is None:
            gaps.append(Gap(record["fault"], record["message"], record["kernel"], location))
            continue
        finding = Finding(
            id=row.id if row is not None else record["id"],
            location=location,
            other=_location(record["other"], places),
            witness=read_witness(record["witness"]),
            **{name: record[name] for name in _PLAIN_FIELDS},
        )
        findings.append(finding)
    return Found(tuple(findings), tuple(gaps))


_PLAIN_FIELDS = (
    *("message", "help", "kernel", "block", "other_block", "sub_core", "sub_block"),
    *("instruction", "space", "allocation", "begin", "end", "count"),
)


def _location(
    site: Mapping[str, Any] | None, places: Mapping[tuple[Path, int], tuple[Path, int]]
) -> Location | None:
    if site is None:
        return None
    if site["module"]:
        module = Path(site["module"])
        file, line = places.get((module, site["offset"]), (module, 0))
        return Location(file, line, site["instruction"])
    return Location(Path(site["file"]), site["line"], site["instruction"], site["pipe"])


def located(file: Path, root: Path) -> Path:
    """Return a file of the source: below `root` where it is relative and is there."""
    below = root / file
    return below if not file.is_absolute() and below.exists() else file


def located_findings(findings: Iterable[Finding], root: Path) -> tuple[Finding, ...]:
    """Return findings whose files are found from every folder, not from a project's own alone."""

    def place(location: Location | None) -> Location | None:
        return None if location is None else replace(location, file=located(location.file, root))

    return tuple(replace(f, location=place(f.location), other=place(f.other)) for f in findings)


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
