"""`opkit compat build`: which operators of a library build; a survey can be taken up again."""

from __future__ import annotations

import json
import random
import re
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from opkit.cli.console import Console
from opkit.errors import UsageError
from opkit.processes import TooLong, alarm_after
from opkit.selection import select_by_name

__all__ = ["chosen_operators", "report_builds"]

_PLACE = re.compile(r"^[^\s:]+:\d+: ")


def report_builds(
    console: Console,
    folder: Path,
    *,
    chip: str,
    matching: str | None,
    sample: int | None,
    seed: int,
    resume: Path | None,
    jobs: int | None,
    seconds: float | None,
) -> bool:
    """Build the operators below a folder, tell of each, and return whether all were built.

    Operators whose OpDefs do not name the chip's family are left out. Nothing is written into the
    library.

    Args:
        matching: an expression over operators' paths; None: all.
        sample: how many of them, drawn by `seed`; None: all.
        resume: a file of results, a line of JSON each: those in it are not built again.
        seconds: the limit of one operator; None: none.
    Raises:
        UsageError: there is none, or the file is not one of results.
    """
    known = _read(resume)
    rows = []
    for name, operator in chosen_operators(folder, chip, matching, sample, seed).items():
        row = known.get(name)
        if row is None:
            row = _built(name, operator, chip=chip, jobs=jobs, seconds=seconds)
            if resume is not None:
                with resume.open("a", encoding="utf-8") as file:
                    file.write(f"{json.dumps(row)}\n")
        _tell(console, row)
        rows.append(row)
    return _sum_up(console, rows)


def chosen_operators(
    folder: Path, chip: str, matching: str | None, sample: int | None, seed: int
) -> dict[str, Path]:
    """Return the operators below a folder for a chip's family, by name, all or those asked for.

    Args: as `report_builds`.
    Raises:
        UsageError: there is none.
    """
    from opkit.chips import find_chip
    from opkit.toolchain import operators_for

    root = folder.resolve()
    operators = operators_for(root, soc_config=find_chip(chip).soc_config)
    named = {operator.relative_to(root).as_posix(): operator for operator in operators}
    chosen = [_Named(name) for name in named]
    if matching is not None:
        chosen = list(select_by_name(chosen, matching))
    if sample is not None:
        chosen = random.Random(seed).sample(chosen, min(sample, len(chosen)))
    if not chosen:
        raise UsageError(
            f"{folder}: has no operator for {find_chip(chip).soc_config}",
            help="give a library's folder, or one of its categories",
        )
    return {entry.name: named[entry.name] for entry in chosen}


class _Named:
    """An operator's path, for expressions over names."""

    def __init__(self, name: str) -> None:
        self.name = name


def _built(
    name: str, operator: Path, *, chip: str, jobs: int | None, seconds: float | None
) -> dict[str, Any]:
    from opkit.toolchain import build_operators

    with tempfile.TemporaryDirectory(prefix="opkit-compat-build-") as scratch:
        try:
            with alarm_after(seconds):
                (result,) = build_operators((operator,), chip=chip, into=Path(scratch), jobs=jobs)
        except TooLong:
            cause = f"takes more than {seconds:g} s"
            return _row(name, False, cause, (), seconds or 0.0)
        built = result.artifact is not None
        return _row(name, built, result.cause or None, result.notes, result.seconds)


def _row(
    name: str, built: bool, cause: str | None, notes: Sequence[str], seconds: float
) -> dict[str, Any]:
    return {
        "operator": name,
        "built": built,
        "cause": cause,
        "notes": list(notes),
        "seconds": round(seconds, 1),
    }


def _read(resume: Path | None) -> Mapping[str, dict[str, Any]]:
    if resume is None or not resume.exists():
        return {}
    try:
        rows = [json.loads(line) for line in resume.read_text(encoding="utf-8").splitlines()]
        return {row["operator"]: row for row in rows if isinstance(row["built"], bool)}
    except (ValueError, KeyError, TypeError) as err:
        raise UsageError(
            f"{resume}: is no file of results: {err!r}", help="give another, or a new name"
        ) from err


def _tell(console: Console, row: Mapping[str, Any]) -> None:
    where = f"{row['operator']} ({row['seconds']:.1f} s)"
    if row["built"]:
        console.status("built", where)
    else:
        console.status("failed", f"{where}: {row['cause']}", tone="bad")


def _sum_up(console: Console, rows: Sequence[Mapping[str, Any]]) -> bool:
    failed = [row for row in rows if not row["built"]]
    causes = Counter(_PLACE.sub("", str(row["cause"])) for row in failed)
    built = len(rows) - len(failed)
    whole = sum(1 for row in rows if row["built"] and not row["notes"])
    if console.json:
        document = {"operators": len(rows), "built": built, "without_a_note": whole}
        named = [{"cause": cause, "operators": count} for cause, count in causes.most_common()]
        console.emit_json({**document, "causes": named, "by_operator": list(rows)})
    else:
        for cause, count in causes.most_common():
            console.result(f"{count:4} x {cause}")
        console.result(
            f"{built} of {len(rows)} operators build ({built / len(rows):.0%}),"
            f" {whole} of them with nothing left out"
        )
    return not failed
