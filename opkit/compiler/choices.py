"""What the compiler chooses for a program, and what may be said instead: by hand or by a file."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any

from opkit.errors import UsageError

__all__ = ["OWN_CHOICES", "Choices", "ChoicesRow", "bucket_of", "read_choices"]

FORMAT = 1


@dataclass(frozen=True)
class Choices:
    """Sizes and variants of a program's kernels; 0 and "" leave them to the compiler."""

    buffers: int = 0
    """Buffers of each queue of a vector kernel."""
    tiles: int = 0
    """Into which the longest share of a core is cut, at least."""
    cores: int = 0
    """At most."""
    schedule: str = ""
    """Schedule of a kernel that has the choice: `rows` or `parts`."""
    fusion: str = ""
    """`none`: each vector operator is a kernel of its own."""
    base_m: int = 0
    """Rows of a product's block."""
    base_n: int = 0
    """Columns of a product's block."""
    band: int = 0
    """Blocks across that cores work on at the same time."""
    depth: int = 0
    """Base blocks of K that one copy brings to L1, for products of a Matmul object."""
    fast_math: bool = False
    """Leave out roundings to 16 bits that the program states: casts to such a type and back, and
    products of such a type that a cast widens."""


OWN_CHOICES = Choices()
"""All left to the compiler."""


@dataclass(frozen=True)
class ChoicesRow:
    """The choices for a chip, data types and named sizes up to powers of two."""

    program: str
    chip: str
    dtypes: tuple[str, ...]
    """Data types of the inputs."""
    sizes: Mapping[str, int]
    """The bucket of each named dimension."""
    choices: Choices
    note: str = ""

    def fits(
        self, program: str, chip: str, dtypes: Sequence[str], sizes: Mapping[str, int]
    ) -> bool:
        """Return whether this row is for a launch."""
        buckets = {name: bucket_of(size) for name, size in sizes.items()}
        return (self.program, self.chip, self.dtypes, dict(self.sizes)) == (
            program,
            chip,
            tuple(dtypes),
            buckets,
        )

    def to_json(self) -> dict[str, Any]:
        """Return it as what the file holds; choices left to the compiler are not said."""
        said = {name: value for name, value in asdict(self.choices).items() if value}
        return {
            "program": self.program,
            "chip": self.chip,
            "dtypes": list(self.dtypes),
            "sizes": dict(self.sizes),
            "choices": said,
            "note": self.note,
        }


def bucket_of(size: int) -> int:
    """Return the smallest power of two that is not below a size."""
    return 1 << max(0, size - 1).bit_length()


def read_choices(path: Path) -> tuple[ChoicesRow, ...]:
    """Return the rows of a tuning file that `opkit tune PROGRAM.py` has written.

    Raises:
        UsageError: the file is damaged, or says a choice that there is not.
    """
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if document["format"] != FORMAT:
            raise UsageError(f"{path}: is of format {document['format']}, expected {FORMAT}")
        rows = document["rows"]
    except OSError as err:
        raise UsageError(f"{path}: cannot be read: {err.strerror}") from err
    except (ValueError, KeyError, TypeError) as err:
        raise UsageError(
            f"{path}: is no tuning file: {err!r}", help="delete it, and tune again"
        ) from err
    known = {field.name: type(field.default) for field in fields(Choices)}
    found = []
    for at, row in enumerate(rows):
        place = f"{path}: /rows/{at}"
        try:
            choices = row["choices"]
            for name, value in choices.items():
                if name not in known or not isinstance(value, known[name]):
                    raise UsageError(
                        f"{place}/choices/{name}: {value!r} is no choice",
                        help="there are " + ", ".join(known),
                    )
            found.append(
                ChoicesRow(
                    str(row["program"]),
                    str(row["chip"]),
                    tuple(map(str, row["dtypes"])),
                    {str(name): int(size) for name, size in row["sizes"].items()},
                    Choices(**choices),
                    str(row.get("note", "")),
                )
            )
        except (KeyError, TypeError, ValueError, AttributeError) as err:
            raise UsageError(
                f"{place}: is no row of a tuning file: {err!r}", help="delete it, and tune again"
            ) from err
    return tuple(found)
