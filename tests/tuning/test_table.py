"""The tuning file of a project: rows are replaced, all else stays."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.errors import UsageError
from opkit.tuning.table import Row, knob_names, read_rows, with_row

KNOBS = ("tiles", "buffers", "blocks")
TEXT = """// A comment of the user's.
TUNED("Ascend910B2", ge::DT_FLOAT16, 1, 1048576, 3, 2, 24)  // 14.75 -> 12.65 us
TUNED("Ascend910B1", ge::DT_FLOAT16, 1, 1048576, 4, 2, 20)
"""
KEY = ("Ascend910B2", "ge::DT_FLOAT16", (1, 1048576))


def test_a_row_takes_the_place_of_the_one_for_the_same_shapes_and_no_other() -> None:
    new = Row(*KEY, (5, 3, 12), "faster")
    changed = with_row(TEXT, new, KEY)
    assert "// A comment of the user's." in changed
    assert '"Ascend910B1", ge::DT_FLOAT16, 1, 1048576, 4, 2, 20' in changed
    assert changed.count("Ascend910B2") == 1 and str(new) in changed
    assert "Ascend910B2" not in with_row(TEXT, None, KEY)


def test_what_is_written_is_what_is_read(tmp_path: Path) -> None:
    (tmp_path / "x.inc").write_text(TEXT)
    rows = read_rows(tmp_path / "x.inc", KNOBS)
    assert [row.chip for row in rows] == ["Ascend910B2", "Ascend910B1"]
    assert rows[0].key == KEY and rows[0].values == (3, 2, 24)


@pytest.mark.parametrize("line", ["TUNED(1)", 'TUNED("A", ge::DT_FLOAT, 1, 2, 3)', "int x;"])
def test_a_damaged_line_is_told(tmp_path: Path, line: str) -> None:
    (tmp_path / "x.inc").write_text(TEXT + line + "\n")
    with pytest.raises(UsageError, match=r"x\.inc:4: is no row"):
        read_rows(tmp_path / "x.inc", KNOBS)


def test_the_knobs_are_what_the_host_source_takes() -> None:
    macro = "#define TUNED(CHIP, TYPE, ROWS, COLUMNS, TILES, UNROLL) \\\n  if (...) {}\n"
    assert knob_names(macro + '#include "gelu_tuning.inc"', "gelu") == ("tiles", "unroll")
    assert knob_names(macro, "gelu") is None
    assert knob_names("int x;", "gelu") is None
