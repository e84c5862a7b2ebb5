"""The kernel's source with what each line cost beside it."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from opkit.profiling.timeline import Timeline

__all__ = ["SourceFile", "SourceLine", "read_source", "report_sources", "source_files"]

_WHOLE = 400
"""Lines of a file that is shown whole; of longer ones the lines around those that cost anything."""
_AROUND = 12
_LONGEST = 200


@dataclass(frozen=True)
class SourceLine:
    """One line of a file."""

    number: int
    text: str
    cycles: float
    """Pipe time of its instructions, summed over cores; 0 where it has none."""
    wait_cycles: float
    """What held a pipe before them, summed over cores."""
    bytes: int
    count: int
    pipe: str
    """Pipe of its most expensive instruction; empty where it has none."""
    lines: tuple[int, ...]
    """Indices into `Timeline.lines`."""


@dataclass(frozen=True)
class SourceFile:
    """A file that instructions of a launch come from."""

    path: str
    cycles: float
    lines: tuple[SourceLine | None, ...]
    """None stands for lines that are left out."""


def read_source(path: str) -> list[str]:
    """Return the lines of a file; none where it cannot be read any more."""
    try:
        return Path(path).read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return []


def report_sources(timeline: Timeline) -> dict[str, list[str]]:
    """Return the lines of the files that a report holds, so that a later one can be compared.

    Files longer than the page shows whole are left out.
    """
    paths = dict.fromkeys(line.file for line in timeline.lines if line.file)
    found = {path: read_source(path) for path in paths}
    return {path: lines for path, lines in found.items() if 0 < len(lines) <= _WHOLE}


def source_files(timeline: Timeline) -> tuple[SourceFile, ...]:
    """Return the files that can still be read, the most expensive first."""
    by_file: dict[str, dict[int, list[int]]] = {}
    for index, line in enumerate(timeline.lines):
        if line.file:
            by_file.setdefault(line.file, {}).setdefault(line.line, []).append(index)
    files = []
    for path, numbered in by_file.items():
        texts = read_source(path)
        # The file has changed since, where it is shorter than what ran.
        if len(texts) < max(numbered):
            continue
        shown = _shown(len(texts), set(numbered))
        lines: list[SourceLine | None] = []
        for number in sorted(shown):
            if number > 1 and number - 1 not in shown:
                lines.append(None)
            lines.append(_line(timeline, number, texts[number - 1], numbered.get(number, [])))
        if lines and len(texts) not in shown:
            lines.append(None)
        files.append(SourceFile(path, sum(line.cycles for line in lines if line), tuple(lines)))
    return tuple(sorted(files, key=lambda file: -file.cycles))


def _shown(count: int, numbered: set[int]) -> set[int]:
    if count <= _WHOLE:
        return set(range(1, count + 1))
    around = range(-_AROUND, _AROUND + 1)
    return {at + by for at in numbered for by in around if 1 <= at + by <= count}


def _line(timeline: Timeline, number: int, text: str, indices: list[int]) -> SourceLine:
    found = [timeline.lines[index] for index in indices]
    return SourceLine(
        number=number,
        text=text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…",
        cycles=sum(line.cycles for line in found),
        wait_cycles=sum(line.wait_cycles for line in found),
        bytes=sum(line.bytes for line in found),
        count=sum(line.count for line in found),
        # Lines of a timeline are the most expensive first.
        pipe=found[0].pipe if found else "",
        lines=tuple(indices),
    )
