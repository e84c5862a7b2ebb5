"""Which cases failed last time, for `--last-failed`."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Sequence
from pathlib import Path

from opkit.files import written_aside
from opkit.testing.cases import Case
from opkit.testing.run import PrecisionReport, Verdict

__all__ = ["failed_last", "failed_names", "notes_file", "remember_failures"]


def notes_file(root: Path, artifact: Path | None) -> Path:
    """Return where a run's failures are noted: beside the artifact folder, or the project's own."""
    return (artifact or root / "build" / "opkit").with_name("opkit-last-test.json")


def remember_failures(path: Path, report: PrecisionReport) -> None:
    """Note a run's failures in `notes_file`; cases that did not run keep theirs."""
    ran = {result.case.name for result in report.results}
    right = (Verdict.REFUSED, Verdict.REFUSED_TYPE)
    failed = [
        r.case.name for r in report.results if not r.verdict.passed and r.verdict not in right
    ]
    kept = [name for name in failed_names(path) if name not in ran]
    text = json.dumps({"failed": kept + failed}, indent=1) + "\n"
    # A folder that cannot be written is no reason for the tests to fail.
    with contextlib.suppress(OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        with written_aside(path) as aside:
            aside.write_text(text, encoding="utf-8")


def failed_last(path: Path, cases: Sequence[Case]) -> tuple[Case, ...]:
    """Return those of the cases that failed when they last ran; all where none did."""
    names = set(failed_names(path))
    chosen = tuple(case for case in cases if case.name in names)
    return chosen or tuple(cases)


def failed_names(path: Path) -> tuple[str, ...]:
    """Return the names of the cases that failed when they last ran."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ()
    names = document.get("failed") if isinstance(document, dict) else None
    return tuple(n for n in names if isinstance(n, str)) if isinstance(names, list) else ()
