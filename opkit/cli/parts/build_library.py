"""`opkit build` of a library: a line an operator, and the causes of those that do not build."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from opkit.cli.console import Console

if TYPE_CHECKING:
    from opkit.toolchain import OperatorBuild

__all__ = ["report_library"]


def report_library(
    console: Console,
    folders: tuple[Path, ...],
    *,
    chip: str,
    into: Path | None,
    jobs: int | None,
    cache_dir: Path | None,
) -> bool:
    """Build the operators, tell of each, and return whether all were built."""
    from opkit.toolchain import build_operators

    results = []
    for result in build_operators(folders, chip=chip, into=into, jobs=jobs, cache_dir=cache_dir):
        results.append(result)
        _report(console, result)
    failed = [result for result in results if result.artifact is None]
    causes = Counter(result.cause.rpartition(": ")[2] for result in failed)
    console.status("built", f"{len(results) - len(failed)} of {len(results)} operators")
    for cause, count in causes.most_common():
        console.status("cause", f"{count} x {cause}", tone="warn")
    if console.json:
        console.emit_json(
            {
                "built": len(results) - len(failed),
                "operators": [
                    {
                        "folder": result.folder,
                        "artifact": result.artifact.folder if result.artifact else None,
                        "cause": result.cause or None,
                        "notes": result.notes,
                        "seconds": result.seconds,
                    }
                    for result in results
                ],
            }
        )
    else:
        for result in results:
            if result.artifact is not None:
                console.result(str(result.artifact.folder))
    return not failed


def _report(console: Console, result: OperatorBuild) -> None:
    where = f"{result.folder.name} ({result.seconds:.1f} s)"
    if result.artifact is None:
        console.status("failed", f"{where}: {result.cause}", tone="bad")
        return
    console.status("built", where)
    for note in result.notes:
        console.warn(note)
