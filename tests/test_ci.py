"""What continuous integration runs is what the README tells users to run."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Says what it was called with, and makes environments of the same.
_STAND_IN = """#!/bin/sh
echo "$(basename "$(dirname "$(dirname "$0")")") $(basename "$0") $*" >>"$CALLS"
if [ "$1 $2" = "-m venv" ]; then
  mkdir -p "$3/bin"
  for name in clang-format mypy opkit pip pytest python ruff; do cp "$0" "$3/bin/$name"; done
  echo "PATH=$3/bin:\\$PATH" >"$3/bin/activate"
fi
"""


@pytest.fixture
def calls(tmp_path: Path) -> list[str]:
    """Return which programs `.ci/run` calls, in order, each after the name of its environment."""
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    shutil.copytree(ROOT / ".ci", checkout / ".ci")
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, checkout)
    programs = tmp_path / "machine" / "bin"
    programs.mkdir(parents=True)
    (programs / "python3").write_text(_STAND_IN)
    (programs / "python3").chmod(0o755)
    log = tmp_path / "calls.txt"
    subprocess.run(["git", "init", "--quiet", checkout], check=True)
    subprocess.run(
        [checkout / ".ci" / "run"],
        env={**os.environ, "CALLS": str(log), "PATH": f"{programs}:{os.environ['PATH']}"},
        check=True,
        capture_output=True,
        text=True,
    )
    return log.read_text().splitlines()


def test_ci_runs_both_commands_of_the_readme_before_torch_is_there(calls: list[str]) -> None:
    # torch was there first, and 33 tests failed for everybody who typed the second command.
    stranger = [call.removeprefix("venv ") for call in calls if call.startswith("venv ")]
    assert stranger[:5] == [
        *("pip install .", "opkit demo"),
        *("pip install .[test]", "pytest "),
        "pip install torch==2.13.0",
    ]


def test_with_torch_only_what_needs_it_runs_again(calls: list[str]) -> None:
    (first, *others) = [call for call in calls if call.startswith("venv pytest")]
    assert first == "venv pytest "
    assert [call.split(" -m ")[1] for call in others] == [
        "torch and not slow",
        "slow --dist worksteal",
    ]


class _Test:
    def __init__(self, seconds: int) -> None:
        self.seconds = seconds

    def iter_markers(self, name: str) -> list[pytest.Mark]:
        return [pytest.mark.slow(seconds=self.seconds).mark] if self.seconds else []


@pytest.mark.parametrize(
    ("workers", "ordered"),
    [
        (1, [150, 90, 60, 0, 0, 0, 0]),
        # Stretches of three and four, as xdist cuts seven.
        (2, [150, 60, 0, 90, 0, 0, 0]),
        (9, [150, 90, 60, 0, 0, 0, 0]),
    ],
)
def test_what_takes_long_begins_the_stretch_of_a_worker(
    workers: int, ordered: list[int], pytestconfig: pytest.Config
) -> None:
    conftest = pytestconfig.pluginmanager.get_plugin(str(ROOT / "tests" / "conftest.py"))
    assert conftest is not None
    tests = [_Test(seconds) for seconds in (0, 60, 0, 150, 0, 90, 0)]
    assert [test.seconds for test in conftest.longest_first(tests, workers)] == ordered
