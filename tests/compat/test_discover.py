"""Which folders are samples, and which of them an expression takes."""

from __future__ import annotations

from pathlib import Path

import pytest

from opkit.compat import find_samples
from opkit.errors import UsageError
from opkit.selection import select_by_name


def test_projects_and_lone_sources_are_samples(samples: Path) -> None:
    found = {sample.name: sample.has_cmake for sample in find_samples(samples)}
    assert found == {
        "doubles": True,
        "lone": False,
        "missing_name": True,
        "out_of_bounds": True,
        "says_nothing": True,
    }


def test_a_folder_that_is_a_sample_has_its_own_name(samples: Path) -> None:
    assert [sample.name for sample in find_samples(samples / "doubles")] == ["doubles"]


def test_a_sample_owns_what_lies_below_it(samples: Path) -> None:
    inner = samples / "doubles" / "inner"
    inner.mkdir()
    (inner / "CMakeLists.txt").write_text("find_package(ASC REQUIRED)")
    assert len(find_samples(samples)) == 5


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ("find_package( ASC REQUIRED)", 1),
        ("project(x LANGUAGES ASC CXX)", 1),
        ("include_directories($ENV{ASCEND_HOME_PATH}/include)", 1),
        ("project(x LANGUAGES CXX)", 0),
        ("# find_package(ASC REQUIRED)\nproject(x)", 0),
    ],
)
def test_a_project_counts_if_it_uses_asc(tmp_path: Path, text: str, count: int) -> None:
    (tmp_path / "CMakeLists.txt").write_text(text)
    assert len(find_samples(tmp_path)) == count


@pytest.mark.parametrize(
    ("expression", "names"),
    [
        ("name", ["missing_name"]),
        ("out or says", ["out_of_bounds", "says_nothing"]),
        ("not (out or says) and not lone", ["doubles", "missing_name"]),
        ("DOUBLES", ["doubles"]),
        ("absent", []),
    ],
)
def test_expressions_choose_samples(samples: Path, expression: str, names: list[str]) -> None:
    found = select_by_name(find_samples(samples), expression)
    assert [sample.name for sample in found] == names


@pytest.mark.parametrize("expression", ["", "and x", "(x", "x)", "not"])
def test_an_unreadable_expression_is_refused(samples: Path, expression: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        select_by_name(find_samples(samples), expression)


def test_what_may_not_be_read_is_tried_and_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "closed").mkdir()
    (tmp_path / "hidden").mkdir()
    (tmp_path / "hidden" / "CMakeLists.txt").write_text("project(x)")
    closed = {tmp_path / "closed", tmp_path / "hidden" / "CMakeLists.txt"}
    # The user that runs the tests may be one who reads everything.
    monkeypatch.setattr("os.access", lambda path, mode: Path(path) not in closed)
    assert [sample.name for sample in find_samples(tmp_path)] == ["closed", "hidden"]
