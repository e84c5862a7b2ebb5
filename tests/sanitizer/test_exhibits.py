"""The museum's larger rooms: bugs of one class that look different, each beside its mended twin.

Files in `museum/` hold functions with one template parameter, kMended, and a line before each:

    // CLASS[, cube or mixed or N blocks]: what is wrong

The bug must show this class alone, at a line that ends in "// here" where one does; the twin must
show nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

from opkit.sanitizer import CLASSES, Finding

ROOMS = sorted((Path(__file__).parent / "museum").glob("*.cpp"))
HEADER = re.compile(
    r"^// (?P<id>[A-Z-]+)(?:, (?P<cores>cube|mixed|(?P<blocks>\d+) blocks))?: (?P<text>.+)\n"
    r"template <bool kMended>\ninline void (?P<name>\w+)\(",
    re.MULTILINE,
)
MODES = {"cube": "Cube", "mixed": "Mix12"}


@dataclass(frozen=True)
class Exhibit:
    """One bug and its twin."""

    room: Path
    name: str
    id: str
    mode: str
    block_dim: int
    lines: tuple[int, ...]
    """Where the finding may point; empty: anywhere."""


def exhibits_of(room: Path) -> list[Exhibit]:
    text = room.read_text()
    found = list(HEADER.finditer(text))
    ends = [match.start() for match in found[1:]] + [len(text)]
    exhibits = []
    for match, end in zip(found, ends, strict=True):
        first = text.count("\n", 0, match.start()) + 1
        body = text[match.start() : end].split("\n")
        lines = tuple(first + i for i, line in enumerate(body) if line.endswith("// here"))
        mode = MODES.get(match["cores"] or "", "Vector")
        blocks = int(match["blocks"] or 1)
        exhibits.append(Exhibit(room, match["name"], match["id"], mode, blocks, lines))
    assert len(exhibits) == text.count("template <bool kMended>")
    return exhibits


EXHIBITS = [exhibit for room in ROOMS for exhibit in exhibits_of(room)]
Look = Callable[[Exhibit, bool], tuple[Finding, ...]]


@pytest.fixture(scope="module")
def look(
    tmp_path_factory: pytest.TempPathFactory, check_library: Callable[..., tuple[Finding, ...]]
) -> Look:
    """Return a function that launches a bug or its twin; each room is compiled once."""
    folder = tmp_path_factory.mktemp("rooms")

    def source_of(room: Path) -> Path:
        source = folder / room.name
        exhibits = exhibits_of(room)
        kernels = "".join(
            f"void {item.name}_{kind}(GM_ADDR x, GM_ADDR y) {{ {item.name}<{value}>(x, y); }}\n"
            for item in exhibits
            for kind, value in (("bug", "false"), ("twin", "true"))
        )
        rows = "".join(
            f'    opkit::kernel_entry<&{item.name}_{kind}>("{item.name}_{kind}", '
            f"opkit::KernelMode::{item.mode}),\n"
            for item in exhibits
            for kind in ("bug", "twin")
        )
        table = (
            f"const opkit::KernelEntry entries[] = {{\n{rows}}};\n}}\n"
            "OPKIT_EXPORT_KERNELS(entries)\n"
        )
        prelude = f'#include "{room.parent / "prelude.h"}"\n#line 1 "{room}"\n'
        source.write_text(prelude + room.read_text() + "namespace {\n" + kernels + table)
        return source

    def check(exhibit: Exhibit, is_mended: bool) -> tuple[Finding, ...]:
        arrays = [np.zeros(128, np.float32) for _ in range(2)]
        kernel = f"{exhibit.name}_{'twin' if is_mended else 'bug'}"
        source = folder / exhibit.room.name
        return check_library(
            source if source.exists() else source_of(exhibit.room),
            kernel,
            arrays,
            block_dim=exhibit.block_dim,
        )

    return check


@pytest.mark.sampled(2)
@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda item: f"{item.id}-{item.name}")
def test_a_bug_shows_its_class_alone_and_where(exhibit: Exhibit, look: Look) -> None:
    findings = look(exhibit, False)
    assert {finding.id for finding in findings} == {exhibit.id}
    for finding in findings:
        assert finding.location is not None
        assert finding.location.file == exhibit.room
        assert not exhibit.lines or finding.location.line in exhibit.lines


@pytest.mark.parametrize("exhibit", EXHIBITS, ids=lambda item: f"{item.id}-{item.name}")
def test_its_twin_shows_nothing(exhibit: Exhibit, look: Look) -> None:
    assert look(exhibit, True) == ()


def test_every_exhibit_has_a_class() -> None:
    assert {exhibit.id for exhibit in EXHIBITS} <= {row.id for row in CLASSES}
    assert len({exhibit.name for exhibit in EXHIBITS}) == len(EXHIBITS)
