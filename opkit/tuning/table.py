"""The tuning file of a generated project: rows of `op_host/<operator>_tuning.inc`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from opkit.errors import UsageError

__all__ = ["Row", "knob_names", "read_rows", "tuner_text", "with_row"]

VARIABLE = "OPKIT_TUNING"
"""What tells the tuner's own build which sizes to take, joined by commas."""
SHAPE_VARIABLE = "OPKIT_TUNING_SHAPE"
"""Where that build says which bucket of shapes it was asked for."""

_MACRO = re.compile(r"^[ \t]*#define[ \t]+TUNED\(([^)]*)\)", re.MULTILINE)
_ROW = re.compile(
    r'^\s*TUNED\(\s*"([^"]*)"\s*,\s*(ge::\w+)\s*((?:,\s*\d+\s*)+)\)\s*(?://\s*(.*))?$'
)
_KEYS = 4
"""Number of the macro's parameters that are keys: chip, data type, rows, columns."""


@dataclass(frozen=True)
class Row:
    """The sizes for one chip, data type and bucket of shapes."""

    chip: str
    type: str
    """Data type of the first input, in C++: `ge::DT_FLOAT16`."""
    bucket: tuple[int, int]
    """Rows and columns up to these powers of two."""
    values: tuple[int, ...]
    note: str = ""

    @property
    def key(self) -> tuple[str, str, tuple[int, int]]:
        """What a file has one row for."""
        return (self.chip, self.type, self.bucket)

    def __str__(self) -> str:
        numbers = ", ".join(map(str, (*self.bucket, *self.values)))
        note = f"  // {self.note}" if self.note else ""
        return f'TUNED("{self.chip}", {self.type}, {numbers}){note}'


def knob_names(host_source: str, operator: str) -> tuple[str, ...] | None:
    """Return what a row of an operator's host source gives; None where it reads no tuning file."""
    macro = _MACRO.search(host_source)
    if macro is None or f'#include "{operator}_tuning.inc"' not in host_source:
        return None
    names = [name.strip().lower() for name in macro.group(1).split(",")]
    return tuple(names[_KEYS:])


def read_rows(path: Path, knobs: Sequence[str]) -> tuple[Row, ...]:
    """Return the rows of a tuning file.

    Raises:
        UsageError: a line is neither a row nor a comment.
    """
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not line.strip() or line.lstrip().startswith("//"):
            continue
        match = _ROW.match(line)
        numbers = [int(n) for n in re.findall(r"\d+", match.group(3))] if match else []
        if match is None or len(numbers) != 2 + len(knobs):
            shape = ", ".join(("CHIP", "TYPE", "ROWS", "COLUMNS", *(k.upper() for k in knobs)))
            raise UsageError(
                f"{path}:{number}: is no row of a tuning file: {line.strip()}",
                help=f"write TUNED({shape}), or delete the line",
            )
        found.append(
            Row(
                match.group(1),
                match.group(2),
                (numbers[0], numbers[1]),
                tuple(numbers[2:]),
                match.group(4) or "",
            )
        )
    return tuple(found)


def with_row(text: str, row: Row | None, key: tuple[str, str, tuple[int, int]]) -> str:
    """Return a tuning file's text with one row in place of what it had for `key`; None: without.

    Comments and other rows stay as they are.
    """
    lines = []
    for line in text.splitlines():
        match = _ROW.match(line)
        numbers = re.findall(r"\d+", match.group(3)) if match else []
        if match and (match.group(1), match.group(2), tuple(map(int, numbers[:2]))) == key:
            continue
        lines.append(line)
    if row is not None:
        lines.append(str(row))
    return "\n".join(lines) + "\n"


def tuner_text(knobs: Sequence[str]) -> str:
    """Return the tuning file of the tuner's own build: the sizes come with each launch.

    Without them, TilingFunc takes its own.
    """
    reads = [f"    tuned.{knobs[0]} = std::strtoll(sizes, &end, 10);"]
    reads += [f"    tuned.{name} = std::strtoll(end + 1, &end, 10);" for name in knobs[1:]]
    return "\n".join(
        (
            '// Written by "opkit tune" for a build of its own.',
            "setenv(",
            f'    "{SHAPE_VARIABLE}",',
            '    (std::to_string(Bucket(rows)) + "," + std::to_string(Bucket(columns))).c_str(),',
            "    1);",
            f'if (const char* sizes = std::getenv("{VARIABLE}")) {{',
            "    char* end = nullptr;",
            *reads,
            "}",
            "",
        )
    )
