"""A check's findings as text, as JSON, as SARIF, as JUnit XML."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from pathlib import Path
from urllib.parse import quote

from opkit.junit import JunitCase, junit_text
from opkit.sanitizer.classes import CLASSES, find_class
from opkit.sanitizer.finding import Finding, Gap, Location
from opkit.sanitizer.run import CheckReport
from opkit.sanitizer.suppressions import shown_path
from opkit.sanitizer.witness import witness_text

__all__ = [
    "finding_object",
    "finding_text",
    "gap_text",
    "junit_xml",
    "report_object",
    "sarif_object",
]

_SARIF_SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"


def finding_text(finding: Finding, root: Path) -> str:
    """Return a finding as a developer reads it: sentence, places with source lines, next step."""
    mark = "note: " if find_class(finding.id).is_note else ""
    lines = [f"{mark}{finding.message} [{finding.id}]"]
    where = f"{finding.kernel} block {finding.block} {finding.sub_core}"
    if finding.location is not None:
        lines += _place("-->", finding.location, root)
        pipe = f", pipe {finding.location.pipe}" if finding.location.pipe else ""
        if finding.kernel and finding.sub_core:
            lines.append(f"      {where}{pipe}, instruction {finding.instruction}")
    else:
        lines.append(f"  --> {where}, instruction {finding.instruction}")
    if finding.other is not None:
        lines += _place("and", finding.other, root)
        block = f"block {finding.other_block}, " if finding.other_block != finding.block else ""
        lines.append(f"      {block}pipe {finding.other.pipe}")
    if finding.end > finding.begin:
        lines.append(f"  bytes {finding.begin}..{finding.end} of {_memory(finding)}")
    if finding.witness is not None:
        lines.append(f"  {witness_text(finding.witness)}")
    if finding.count > 1:
        lines.append(f"  {finding.count} times{_in_cases(finding)}")
    elif finding.cases:
        lines.append(f"  in {finding.cases[0]}")
    if finding.help:
        lines.append(f"  help: {finding.help}")
    return "\n".join(lines)


def _memory(finding: Finding) -> str:
    if finding.space == "GM":
        return finding.allocation or "a tensor in global memory"
    return f"{finding.space}, in {finding.allocation}" if finding.allocation else finding.space


def gap_text(gap: Gap) -> str:
    """Return what opkit could not check and why, one line."""
    place = f" ({gap.location.file.name}:{gap.location.line})" if gap.location is not None else ""
    return f"{gap.kernel} was not run to its end: {gap.message} [{gap.category}]{place}"


def _in_cases(finding: Finding) -> str:
    if not finding.cases:
        return ""
    more = len(finding.cases) - 1
    return f", first in {finding.cases[0]}" + (f", also in {more} more cases" if more else "")


def _place(mark: str, location: Location, root: Path) -> list[str]:
    if not location.line:
        shown = shown_path(location.file, root)
        return [f"  {mark} {shown}, {location.instruction}: link it with -g to see the line"]
    lines = [f"  {mark} {shown_path(location.file, root)}:{location.line}"]
    text = location.source_line()
    if text:
        lines.append(f"      {location.line} | {text}")
    return lines


def report_object(report: CheckReport) -> dict[str, object]:
    """Return the report as a JSON object: totals, the findings, one object a case."""
    findings = report.findings
    return {
        "project": report.project,
        "tools": report.tools,
        "clean": report.clean,
        "suppressed": report.suppressed,
        "findings": [finding_object(finding, report.root) for finding in findings],
        "notes": [finding_object(note, report.root) for note in report.notes],
        "gaps": [
            {"category": gap.category, "message": gap.message, "kernel": gap.kernel}
            for gap in report.gaps
        ],
        "exit_code": report.exit_code,
        "cases": [
            {
                "name": case.name,
                "findings": sorted({f.id for f in case.findings}),
                "notes": sorted({note.id for note in case.notes}),
            }
            for case in report.cases
        ],
    }


def finding_object(finding: Finding, root: Path) -> dict[str, object]:
    """Return a finding as a JSON object; files below `root` are named relative to it."""
    return {
        "id": finding.id,
        "tool": find_class(finding.id).tool,
        "message": finding.message,
        "help": finding.help,
        "kernel": finding.kernel,
        "location": _location_object(finding.location, root),
        "other": _location_object(finding.other, root),
        "block": finding.block,
        "other_block": finding.other_block,
        "sub_core": finding.sub_core,
        "sub_block": finding.sub_block,
        "instruction": finding.instruction,
        "space": finding.space,
        "allocation": finding.allocation,
        "begin": finding.begin,
        "end": finding.end,
        "count": finding.count,
        "cases": finding.cases,
        "witness": None if finding.witness is None else asdict(finding.witness),
    }


def _location_object(location: Location | None, root: Path) -> dict[str, object] | None:
    if location is None:
        return None
    return {
        "file": shown_path(location.file, root),
        "line": location.line,
        "source": location.source_line(),
        "instruction": location.instruction,
        "pipe": location.pipe,
    }


def sarif_object(report: CheckReport, *, version: str) -> dict[str, object]:
    """Return the report as a SARIF 2.1.0 log, which code hosts show beside the lines.

    Args:
        version: opkit's own.
    Source: OASIS SARIF 2.1.0, sections 3.13, 3.14, 3.27.
    """
    rules = [
        {
            "id": row.id,
            "shortDescription": {"text": row.title},
            "fullDescription": {"text": row.explanation},
            "properties": {"tags": [row.tool]},
        }
        for row in CLASSES
    ]
    order = {row.id: index for index, row in enumerate(CLASSES)}
    results = []
    for finding in (*report.findings, *report.notes):
        text = f"{finding.message}. {finding.help}" if finding.help else finding.message
        result: dict[str, object] = {
            "partialFingerprints": {"opkit/v1": _fingerprint(finding, report.root)},
            "ruleId": finding.id,
            "ruleIndex": order[finding.id],
            "level": "note" if find_class(finding.id).is_note else "error",
            "message": {"text": text},
            "locations": _sarif_places(finding.location, report.root),
            "occurrenceCount": max(finding.count, 1),
        }
        if finding.other is not None:
            result["relatedLocations"] = [
                {**place, "id": 1, "message": {"text": "the other access"}}
                for place in _sarif_places(finding.other, report.root)
            ]
        results.append(result)
    driver = {
        "name": "opkit check",
        "version": version,
        "rules": rules,
    }
    return {
        "$schema": _SARIF_SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {"driver": driver},
                "originalUriBaseIds": {_BASE_ID: {"uri": _repository(report.root).as_uri() + "/"}},
                "results": results,
            }
        ],
    }


_BASE_ID = "SRCROOT"


def _repository(root: Path) -> Path:
    """Return the folder that code hosts name files by: the repository that holds a project."""
    root = root.resolve()
    return next((folder for folder in (root, *root.parents) if (folder / ".git").exists()), root)


def _artifact(file: Path, root: Path) -> dict[str, object]:
    """Return a file's SARIF location, relative to the repository where it lies in it."""
    repository = _repository(root)
    whole = file if file.is_absolute() else root.resolve() / file
    if whole.is_relative_to(repository):
        return {"uri": quote(str(whole.relative_to(repository))), "uriBaseId": _BASE_ID}
    return {"uri": whole.as_uri()}


def _fingerprint(finding: Finding, root: Path) -> str:
    """Return what tells a finding from others and stays when lines move: its class and its text."""
    parts = [finding.id, finding.kernel]
    for location in (finding.location, finding.other):
        if location is not None:
            parts += [str(_artifact(location.file, root)["uri"]), location.source_line()]
    return hashlib.sha256("\0".join(parts).encode(errors="surrogateescape")).hexdigest()[:32]


def _sarif_places(location: Location | None, root: Path) -> list[dict[str, object]]:
    if location is None:
        return []
    physical: dict[str, object] = {
        "artifactLocation": _artifact(location.file, root),
    }
    if location.line > 0:
        physical["region"] = {"startLine": location.line}
    return [{"physicalLocation": physical}]


def junit_xml(report: CheckReport) -> str:
    """Return the report as one JUnit test suite.

    A case with findings is a failure, one that was not run to its end an error.
    """
    gaps = {gap.kernel: gap_text(gap) for gap in report.gaps}
    cases = []
    for case in report.cases:
        texts = [finding_text(finding, report.root) for finding in case.findings]
        names = list(dict.fromkeys(finding.id for finding in case.findings))
        gap = gaps.pop(case.name, None)
        cases.append(_junit_case(report, case.name, names, texts, gap))
    # Of programs they carry the kernel's name.
    cases += [_junit_case(report, name, [], [], gap) for name, gap in gaps.items()]
    return junit_text(f"{report.project} check", cases)


def _junit_case(
    report: CheckReport, name: str, names: list[str], texts: list[str], gap: str | None
) -> JunitCase:
    outcome = "failure" if texts else "error" if gap is not None else ""
    return JunitCase(
        f"{report.project}.check",
        name,
        outcome=outcome,
        message=", ".join(names) or gap or "",
        text="\n\n".join([*texts, *([gap] if gap is not None else [])]),
    )
