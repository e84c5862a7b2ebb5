"""A check's findings as one page that needs nothing else: each with the lines it happened at."""

from __future__ import annotations

from pathlib import Path

from opkit.sanitizer.classes import find_class
from opkit.sanitizer.finding import Finding, Location
from opkit.sanitizer.report import gap_text
from opkit.sanitizer.run import CheckReport
from opkit.sanitizer.suppressions import shown_path
from opkit.sanitizer.witness import witness_text
from opkit.templating import render_template

__all__ = ["check_page"]

_AROUND = 3
_LONGEST = 160

_View = dict[str, object]


def check_page(report: CheckReport, *, made: str = "") -> str:
    """Return the page: findings to filter and to sort, each with its source, its cases, its class.

    Args:
        made: when, and by which versions.
    """
    shown = (*report.findings, *report.notes)
    names = {finding.id for finding in shown}
    verdict = "clean" if report.clean else f"{len(report.findings)} findings"
    notes = f", {len(report.notes)} notes" if report.notes else ""
    hidden = f", {report.suppressed} suppressed" if report.suppressed else ""
    context = {
        "title": f"{report.project}: {verdict}",
        "is_clean": report.clean,
        "summary": (
            f"{len(report.cases)} cases under {', '.join(report.tools)}: {verdict}{notes}{hidden}"
        ),
        "made": made,
        "gaps": [gap_text(gap) for gap in report.gaps],
        "findings": [_finding(finding, report.root) for finding in shown],
        "classes": [
            {"id": row.id, "title": row.title, "text": row.explanation}
            for row in map(find_class, sorted(names))
        ],
        "cases": [
            {
                "name": case.name,
                "classes": ", ".join(sorted({f.id for f in (*case.findings, *case.notes)})),
                "is_clean": not case.findings,
            }
            for case in report.cases
        ],
    }
    return render_template("pages/check.html.jinja", context)


def _finding(finding: Finding, root: Path) -> _View:
    places = [(finding.location, "here"), (finding.other, "and here")]
    bytes_text = ""
    if finding.end > finding.begin:
        memory = finding.allocation or finding.space or "a tensor"
        bytes_text = f"bytes {finding.begin}..{finding.end} of {memory}"
    return {
        "id": finding.id,
        "is_note": find_class(finding.id).is_note,
        "message": finding.message,
        "help": finding.help,
        "kernel": finding.kernel,
        "where": _where(finding.location, root),
        "core": f"block {finding.block} {finding.sub_core}, instruction {finding.instruction}",
        "count": max(1, finding.count),
        "bytes": bytes_text,
        "witness": witness_text(finding.witness) if finding.witness is not None else "",
        "cases": finding.cases,
        "places": [
            _place(location, label, root) for location, label in places if location is not None
        ],
    }


def _where(location: Location | None, root: Path) -> str:
    if location is None:
        return ""
    return f"{shown_path(location.file, root)}:{location.line}"


def _place(location: Location, label: str, root: Path) -> _View:
    """Return the lines around a place; none where its file cannot be read."""
    try:
        texts = location.file.read_text("utf-8", errors="replace").splitlines()
    except OSError:
        texts = []
    first, last = max(1, location.line - _AROUND), min(len(texts), location.line + _AROUND)
    is_known = 0 < location.line <= len(texts)
    on = f" on {location.pipe}" if location.pipe else ""
    return {
        "where": _where(location, root),
        "label": f"{label}: {location.instruction}{on}" if location.instruction else label,
        "lines": [
            {
                "number": number,
                "text": texts[number - 1][:_LONGEST],
                "is_it": number == location.line,
            }
            for number in range(first, last + 1)
            if is_known
        ],
    }
