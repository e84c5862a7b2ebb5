"""A file that says which findings are known and not to be reported."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path

from opkit.errors import UsageError
from opkit.files import read_lines
from opkit.sanitizer.finding import Finding

__all__ = ["Rule", "Suppressions", "baseline_text", "read_suppressions", "shown_path"]


@dataclass(frozen=True)
class Rule:
    """One line of the file: a class, optionally a file and a line; `*` and `?` match anything."""

    id: str
    file: str
    """Relative to the project; `*` where the line names none."""
    line: int | None


@dataclass(frozen=True)
class Suppressions:
    """All rules of a file."""

    rules: tuple[Rule, ...]

    def match(self, finding: Finding, root: Path) -> bool:
        """Return whether a rule hides a finding; files are compared relative to `root`."""
        location = finding.location
        file = shown_path(location.file, root) if location is not None else ""
        line = location.line if location is not None else None
        return any(
            fnmatchcase(finding.id, rule.id)
            and fnmatchcase(file, rule.file)
            and rule.line in (None, line)
            for rule in self.rules
        )


def read_suppressions(path: Path) -> Suppressions:
    """Return the rules of a file: `CLASS [FILE[:LINE]]` a line, `#` starts a comment.

    Raises:
        UsageError: the file or a line of it cannot be read.
    """
    rules = []
    for number, line in enumerate(read_lines(path), start=1):
        words = line.partition("#")[0].split()
        if not words:
            continue
        if len(words) > 2:
            raise UsageError(
                f"{path}:{number}: {line.strip()!r} is not a rule",
                help='write a class and a place, such as "RACE-WAR op_kernel/add.cpp:40"',
            )
        file, _, place = (words[1] if len(words) == 2 else "*").partition(":")
        if place and not place.isdigit():
            raise UsageError(
                f"{path}:{number}: {place!r} is not a line number",
                help='write a place as FILE:LINE, such as "op_kernel/add.cpp:40"',
            )
        rules.append(Rule(words[0], file, int(place) if place else None))
    return Suppressions(tuple(rules))


def baseline_text(findings: Iterable[Finding], root: Path) -> str:
    """Return a suppressions file that hides exactly these findings."""
    lines = ["# Known findings; opkit check --suppressions reads this file."]
    for finding in findings:
        place = ""
        if finding.location is not None:
            place = f" {shown_path(finding.location.file, root)}:{finding.location.line}"
        lines.append(f"{finding.id}{place}  # {finding.message.splitlines()[0]}")
    return "\n".join(lines) + "\n"


def shown_path(file: Path, root: Path) -> str:
    """Return a file relative to `root` where it lies below it."""
    try:
        return file.resolve().relative_to(root.resolve()).as_posix()
    except ValueError:
        return file.as_posix()
