"""The pytest plugin, in a pytest of its own with a Python function in the kernel's place."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path
from types import SimpleNamespace

import pytest

PROTOTYPE = """
{"op": "Twice",
 "input_desc": [{"name": "x", "type": ["float16", "float32"], "format": ["ND", "ND"]}],
 "output_desc": [{"name": "y", "type": ["float16", "float32"], "format": ["ND", "ND"]}]}
"""
CONFTEST = """
import opkit.testing.pytest_plugin as plugin

class Library:
    def run(self, op_type, inputs, attrs, *, dtypes):
        return [{factor} * inputs[0]]

plugin._library = lambda root: Library()
"""
TEST = """
import pytest
from opkit import runtime

@pytest.mark.opkit_cases(select="2x3x17")
def test_twice(opkit_case):
    assert runtime.configuration().poison
    opkit_case.check()

def test_the_stream_is_the_same_in_every_run(opkit_rng):
    print("drew", opkit_rng.integers(1 << 60))
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "twice").mkdir()
    (tmp_path / "tests").mkdir()
    (tmp_path / "twice.json").write_text(PROTOTYPE)
    (tmp_path / "twice" / "golden.py").write_text("def twice(x):\n    return 2 * x\n")
    (tmp_path / "pyproject.toml").write_text(
        '[project]\nname = "twice"\n[tool.opkit]\noperators = ["twice.json"]\n'
    )
    (tmp_path / "tests" / "test_twice.py").write_text(TEST)
    return tmp_path


def run(project: Path, *arguments: str, factor: int = 2) -> subprocess.CompletedProcess[str]:
    (project / "tests" / "conftest.py").write_text(CONFTEST.format(factor=factor))
    installed = any(
        entry.value == "opkit.testing.pytest_plugin" for entry in entry_points(group="pytest11")
    )
    plugin = [] if installed else ["-p", "opkit.testing.pytest_plugin"]
    command = [sys.executable, "-m", "pytest", "--strict-markers", *plugin, *arguments]
    paths = os.pathsep.join(path for path in sys.path if path)
    return subprocess.run(
        command,
        cwd=project,
        env={**os.environ, "PYTHONPATH": paths, "PYTEST_ADDOPTS": ""},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_project_s_cases_become_parameters(project: Path) -> None:
    done = run(project, "-v", "-k", "test_twice")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "test_twice[twice-float16-2x3x17-normal] PASSED" in done.stdout
    assert "test_twice[twice-float32-2x3x17-normal] PASSED" in done.stdout


def test_a_tiling_key_that_no_case_takes_gets_a_case(
    project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # `opkit test` had one, the plugin's cases left the kernel's branch for long rows untested.
    from opkit.testing import Untaken, load_golden, make_case, project_cases, pytest_plugin
    from opkit.toolchain import load_project

    (project / "op_kernel").mkdir()
    (project / "op_kernel" / "twice.cpp").write_text("if (TILING_KEY_IS(1)) {}")
    loaded = load_project(project)
    golden = load_golden(loaded.package_dir / "golden.py")
    cases = project_cases(loaded, golden=golden)
    more = make_case(loaded.operators[0], (97, 20011))
    untaken = Untaken("Twice", ("float16", "float16"), (7,), (0, 1))
    artifact = SimpleNamespace(folder=project, chip=SimpleNamespace(name="Ascend910B2"))
    monkeypatch.setattr(pytest_plugin, "_artifact", lambda root: artifact)
    monkeypatch.setattr(
        "opkit.testing.with_every_branch",
        lambda folder, chip, specs, cases, rules, **options: ((*cases, more), (untaken,)),
    )
    with pytest.warns(pytest.PytestCollectionWarning, match="no case takes the tiling key 7"):
        found = pytest_plugin._with_every_branch(loaded, cases, golden, None, 0)
    assert found == (*cases, more)


def test_a_wrong_result_fails_with_figures_and_worst_element(project: Path) -> None:
    done = run(project, "-k", "float32", factor=3)
    assert done.returncode == 1
    assert "MARE 0.5 (< 0.00122)" in done.stdout
    assert "worst at [" in done.stdout


def test_the_stream_depends_on_the_seed_alone(project: Path) -> None:
    def drawn(*options: str) -> str:
        done = run(project, "-s", "-k", "stream", *options)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout.partition("drew ")[2].split()[0]

    assert drawn() == drawn() != drawn("--opkit-seed", "1")


def test_the_plugin_loads_nothing_heavy() -> None:
    code = (
        "import sys, opkit.testing.pytest_plugin;"
        "print([m for m in ('numpy', 'torch', 'sympy', 'opkit.emulator._emulator')"
        " if m in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
