"""Which cases failed last time, for `--last-failed`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

from opkit.files import written_aside
from opkit.testing.cases import Case
from opkit.testing.run import PrecisionReport

__all__ = ["failed_last", "notes_file", "remember_failures"]


def notes_file(root: Path, artifact: Path | None) -> Path:
    """Return where a run's failures are noted: beside the artifact folder, or the project's own."""
    return (artifact or root / "build" / "opkit").with_name("opkit-last-test.json")


def remember_failures(path: Path, report: PrecisionReport) -> None:
    """Note a run's failures in `notes_file`; cases that did not run keep theirs."""
    ran = {result.case.name for result in report.results}
    failed = [r.case.name for r in report.results if not r.verdict.passed]
    kept = [name for name in _names(path) if name not in ran]
    text = json.dumps({"failed": kept + failed}, indent=1) + "\n"
    # A folder that cannot be written is no reason for the tests to fail.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_aside(path) as aside:
            aside.write_text(text, encoding="utf-8")


def failed_last(path: Path, cases: Sequence[Case]) -> tuple[Case, ...]:
    """Return those of the cases that failed when they last ran; all where none did."""
    names = set(_names(path))
    chosen = tuple(case for case in cases if case.name in names)
    return chosen or tuple(cases)


def _names(path: Path) -> list[str]:
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return []
    names = document.get("failed") if isinstance(document, dict) else None
    return [name for name in names if isinstance(name, str)] if isinstance(names, list) else []
