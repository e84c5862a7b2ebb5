"""What --constexpr and --field name in a source."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.errors import UsageError
from opkit.tuning import program_subject, read_source_knob
from opkit.tuning.program import _change

SOURCE = """#define DEPTH 2  // buffers
constexpr uint32_t TILE = 512;
static constexpr int BLOCKS{8};
void set(Tiling* tiling) {
    tiling->share = TOTAL / BLOCKS;
    tiling->set_base(128);
    if (tiling->share == 4) {}
}
"""


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "add.asc").write_text(SOURCE)
    return tmp_path


@pytest.mark.parametrize(
    ("text", "is_field", "start"),
    [
        ("add.asc:TILE=1,2", False, "512"),
        ("BLOCKS=1,2", False, "8"),
        ("DEPTH=1,2", False, "2"),
        ("share=1,2", True, "TOTAL / BLOCKS"),
        ("add.asc:base=1,2", True, "128"),
    ],
)
def test_a_name_is_found_and_its_value_replaced(
    root: Path, text: str, is_field: bool, start: str
) -> None:
    knob = read_source_knob(text, root, is_field=is_field)
    assert knob.start == start
    assert knob.knob.values == (start, *(value for value in ("1", "2") if value != start))
    _change(root / knob.file, knob, "77")
    assert read_source_knob(text, root, is_field=is_field).start == "77"
    before, after = SOURCE.splitlines(), (root / "add.asc").read_text().splitlines()
    assert sum(a != b for a, b in zip(before, after, strict=True)) == 1


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("TILES=1", "no constexpr or #define named TILES"),
        ("add.asc:TILE", "cannot be read"),
        ("add.asc:TILE=1,,2", "cannot be read"),
        ("none.asc:TILE=1", "is no file"),
    ],
)
def test_a_name_that_is_not_there_is_told(root: Path, text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        read_source_knob(text, root, is_field=False)


def test_a_name_that_is_set_twice_is_told(root: Path) -> None:
    (root / "other.asc").write_text(SOURCE)
    with pytest.raises(UsageError, match=r"set in 2 places: add\.asc, other\.asc"):
        read_source_knob("TILE=1", root, is_field=False)


def test_what_cannot_be_built_or_changed_is_told(root: Path) -> None:
    options = {"root": root, "build": None, "verify": None, "chip": "Ascend910B2"}
    knob = read_source_knob("TILE=1", root, is_field=False)
    with pytest.raises(UsageError, match="what may change"):
        program_subject(["./add"], [], **options)  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="lies outside"):
        program_subject(["/bin/true"], [knob], **options)  # type: ignore[arg-type]
    subject = program_subject(["./add", "8"], [knob], **options)  # type: ignore[arg-type]
    assert subject.space.start == ("512",) and subject.name == "./add 8"
