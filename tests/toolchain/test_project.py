"""What is a project, and what its pyproject.toml may say."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from opkit.errors import SpecError, UsageError
from opkit.toolchain import load_project


@pytest.fixture
def root(tmp_path: Path, make_project: Callable[[Path], None]) -> Path:
    make_project(tmp_path / "twice")
    return tmp_path / "twice"


def settings(root: Path, text: str) -> None:
    (root / "pyproject.toml").write_text(text)


def test_a_project_has_its_name_package_and_operators(root: Path) -> None:
    project = load_project(root)
    assert (project.root, project.name, project.package) == (root, "twice-op", "twice_op")
    assert [spec.op for spec in project.operators] == ["Twice"]
    assert project.kernel_source(project.operators[0]) == root / "op_kernel" / "twice.cpp"


def test_a_folder_inside_a_project_finds_it(root: Path) -> None:
    assert load_project(root / "op_kernel").root == root


def test_the_working_directory_is_the_default(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root / "op_host")
    assert load_project().root == root


def test_a_folder_that_is_no_project_says_how_to_get_one(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not in an operator project") as caught:
        load_project(tmp_path)
    assert "opkit gen" in str(caught.value)


def test_a_missing_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"there is no .*nowhere"):
        load_project(tmp_path / "nowhere")


def test_a_pyproject_of_another_tool_is_passed_over(root: Path) -> None:
    inner = root / "inner"
    inner.mkdir()
    settings(inner, "[tool.black]\n")
    assert load_project(inner).root == root


@pytest.mark.parametrize("value", ["[]", '"twice.json"', "[1]", '[""]'])
def test_operators_must_be_a_list_of_files(root: Path, value: str) -> None:
    settings(root, f"[tool.opkit]\noperators = {value}\n")
    with pytest.raises(UsageError, match="expected a list of JSON files"):
        load_project(root)


def test_a_prototype_that_is_not_there_is_named(root: Path) -> None:
    settings(root, '[tool.opkit]\noperators = ["once.json"]\n')
    with pytest.raises(UsageError, match=r"names once\.json, which is not in"):
        load_project(root)


def test_broken_toml_is_a_usage_error_with_the_line(root: Path) -> None:
    settings(root, "[tool.opkit\n")
    with pytest.raises(UsageError, match=r"not TOML.*line 1"):
        load_project(root)


def test_a_wrong_prototype_is_a_spec_error(root: Path) -> None:
    (root / "twice.json").write_text('[{"op": "Twice"')
    with pytest.raises(SpecError, match=r"twice\.json"):
        load_project(root)


def test_two_operators_of_one_name_are_refused(root: Path) -> None:
    (root / "again.json").write_text((root / "twice.json").read_text())
    settings(root, '[tool.opkit]\noperators = ["twice.json", "again.json"]\n')
    with pytest.raises(UsageError, match="both define a kernel named twice"):
        load_project(root)


def test_a_project_without_a_name_takes_its_folders(root: Path) -> None:
    settings(root, '[tool.opkit]\noperators = ["twice.json"]\n')
    assert load_project(root).name == "twice"
