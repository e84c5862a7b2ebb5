"""Steps are carried out inside the scratch copy, with a limit."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from opkit.compat.processes import Running
from opkit.compat.recipe import Step, steps_of
from opkit.compat.steps import Workplace


@pytest.fixture
def work(tmp_path: Path) -> Workplace:
    root = tmp_path / "copy"
    root.mkdir()
    return Workplace(
        root=root,
        running=Running(),
        seconds=20.0,
        cmake_arguments=("-DX=1",),
        environment={},
        show=lambda argv: None,
    )


def test_folders_variables_and_python_work_as_in_a_shell(work: Workplace) -> None:
    (work.root / "show.py").write_text("import sys, os; print(sys.argv[1], os.getcwd())")
    lines = ["N=7", "mkdir -p build/deep", "cd build/deep", "python3 ../../show.py -n=$N"]
    *_, last = [work.do(step) for step in steps_of(lines)]
    assert last.output.split() == ["-n=7", str(work.root / "build" / "deep")]


def test_a_pattern_stands_for_the_files_it_matches(work: Workplace) -> None:
    program = work.root / "made_1.run"
    program.write_text("#!/bin/sh\necho made\n")
    program.chmod(0o755)
    assert work.do(Step("run", ("./made_*.run",))).output == "made\n"


@pytest.mark.parametrize("words", [("..",), ("../../else",), ("/tmp",)])
@pytest.mark.parametrize("kind", ["folder", "enter", "remove"])
def test_nothing_leads_out_of_the_copy(work: Workplace, kind: str, words: tuple[str, ...]) -> None:
    assert "leads out" in work.do(Step(kind, words)).failed_to_start


def test_a_step_ends_at_its_limit_with_its_children(work: Workplace) -> None:
    child = "import os, signal; print(os.getpid(), flush=True); signal.pause()"
    parent = f"import subprocess, sys; subprocess.run([sys.executable, '-c', {child!r}])"
    ran = work.running.call(
        [sys.executable, "-c", parent], cwd=work.root, env=os.environ, seconds=1.5
    )
    # The child held the pipe: reading came to its end because the child had come to its own.
    assert ran.timed_out
    assert ran.output.strip().isdigit()


def test_a_missing_program_is_told(work: Workplace) -> None:
    assert "no_such_program" in work.do(Step("run", ("./no_such_program",))).failed_to_start


def test_a_stopped_run_starts_nothing(work: Workplace) -> None:
    work.running.stop()
    assert work.do(Step("run", ("true",))).failed_to_start == "the run was stopped"
