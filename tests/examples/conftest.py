"""The committed example projects, built once for all their tests."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from opkit import runtime
from opkit.testing import Golden, load_golden
from opkit.toolchain import Project, build, load_project

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@dataclass(frozen=True)
class Example:
    """A built copy of an example project."""

    project: Project
    library: runtime.Library
    golden: Golden


@pytest.fixture(scope="session")
def build_example(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Example]:
    """Return a function that builds a copy of an example and opens it."""
    built: dict[str, Example] = {}

    def example(name: str) -> Example:
        if name not in built:
            copy = tmp_path_factory.mktemp("examples") / name
            shutil.copytree(EXAMPLES / name, copy, ignore=shutil.ignore_patterns("build"))
            project = load_project(copy)
            golden = load_golden(project.package_dir / "golden.py")
            assert golden is not None
            built[name] = Example(project, runtime.open(build(project, jobs=1).folder), golden)
        return built[name]

    return example
