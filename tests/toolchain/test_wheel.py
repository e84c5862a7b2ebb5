"""Wheels of a project, made by a build backend of a few lines."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from opkit.errors import BuildError, SetupError
from opkit.toolchain import Project, build_wheel, load_project
from opkit.toolchain.projects import wheel

BACKEND = """\
import zipfile
from pathlib import Path
NAME = "twice_op-1.0-py3-none-any.whl"
INFO = "twice_op-1.0.dist-info"
def build_wheel(wheel_directory, config_settings=None, metadata_directory=None):
    with zipfile.ZipFile(Path(wheel_directory) / NAME, "w") as archive:
        archive.writestr("twice_op.py", "")
        metadata = "Metadata-Version: 2.1\\nName: twice-op\\nVersion: 1.0\\n"
        archive.writestr(f"{INFO}/METADATA", metadata)
        archive.writestr(f"{INFO}/WHEEL", "Wheel-Version: 1.0\\nTag: py3-none-any\\n")
        archive.writestr(f"{INFO}/RECORD", "")
    return NAME
"""


@pytest.fixture
def project(tmp_path: Path, make_project: Callable[[Path], None]) -> Project:
    if importlib.util.find_spec("pip") is None:
        pytest.skip("no pip")
    root = tmp_path / "twice op"
    make_project(root)
    (root / "backend.py").write_text(BACKEND)
    with (root / "pyproject.toml").open("a") as file:
        file.write('[build-system]\nrequires = []\nbuild-backend = "backend"\n')
        file.write('backend-path = ["."]\n')
    text = (root / "pyproject.toml").read_text()
    (root / "pyproject.toml").write_text(text.replace("[tool", 'version = "1.0"\n[tool'))
    return load_project(root)


def test_the_wheel_lands_in_dist_and_replaces_the_last_one(project: Project) -> None:
    commands: list[list[str]] = []
    first = build_wheel(project, verbose=commands.append)
    assert first == project.root / "dist" / "twice_op-1.0-py3-none-any.whl"
    assert first.is_file()
    assert build_wheel(project) == first
    assert [path.name for path in first.parent.iterdir()] == [first.name]
    assert "--no-build-isolation" in commands[0]


def test_a_failing_backend_is_a_build_error_with_its_last_words(project: Project) -> None:
    (project.root / "backend.py").write_text("raise RuntimeError('no such luck')\n")
    with pytest.raises(BuildError, match="no such luck") as caught:
        build_wheel(project)
    assert "no such luck" in caught.value.log


def test_without_pip_the_error_says_how_to_get_it(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(wheel.importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SetupError, match="pip is not installed") as caught:
        build_wheel(project)
    assert "ensurepip" in str(caught.value)
