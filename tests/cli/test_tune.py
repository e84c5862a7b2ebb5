"""`opkit tune` from its command line, on the example."""

from __future__ import annotations

import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
OPKIT = (sys.executable, "-m", "opkit", "tune")
QUICK = (
    "--shape",
    "33000",
    "--knob",
    "tiles=1,2",
    "--knob",
    "blocks=8,16",
)


@pytest.fixture(scope="module")
def gelu(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tune") / "gelu_custom"
    ignore = shutil.ignore_patterns("build", "torch_ext", "numpy_ext")
    shutil.copytree(ROOT / "examples" / "gelu_custom", folder, ignore=ignore)
    return folder


def run(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*OPKIT, *words], cwd=cwd, capture_output=True, text=True, check=False)


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--op", "none"), 'no operator "none"'),
        (("--knob", "tile=1"), 'did you mean "tiles"?'),
        (("--budget", "-1"), "no budget"),
        (("--executor", "ray"), "no executor"),
        (("--shape", "0"), "has no elements"),
        (("--size", "M=1"), "is for PROGRAM.py"),
        (("--constexpr", "a.asc:T=1"), 'behind "--"'),
        (("--", "./none"), "what may change"),
    ],
)
def test_what_cannot_be_tuned_is_told_before_anything_is_built(
    gelu: Path, words: tuple[str, ...], message: str
) -> None:
    done = run(*words, cwd=gelu)
    assert done.returncode == 2, done.stderr
    assert message in done.stderr and "Traceback" not in done.stderr
    assert not (gelu / "build").exists()


def test_a_project_whose_host_code_reads_no_tuning_file_is_told(tmp_path: Path) -> None:
    folder = tmp_path / "gelu_custom"
    shutil.copytree(
        ROOT / "examples" / "gelu_custom", folder, ignore=shutil.ignore_patterns("build")
    )
    done = run("--op", "gelu_custom_tuned", cwd=folder)
    assert done.returncode == 2
    assert "reads no gelu_custom_tuned_tuning.inc" in done.stderr


@pytest.mark.slow
def test_the_best_sizes_are_what_the_operator_runs_with(gelu: Path) -> None:
    document = json.loads(run(*QUICK, "--json", "--executor", "local:1", cwd=gelu).stdout)
    (report,) = document
    assert report["searched"] == "all" and report["ratio"] <= 1
    assert report["best"]["findings"] == []
    assert len(report["trials"]) == report["space"]["size"] == 9
    table = (gelu / "op_host" / "gelu_custom_tuning.inc").read_text()
    assert table.count("TUNED(") == 1 and '"Ascend910B2", ge::DT_FLOAT16, 1, 65536' in table
    profile = (sys.executable, "-m", "opkit", "profile", "--shape", "33000", "--json")
    made = subprocess.run(profile, cwd=gelu, capture_output=True, text=True, check=True)
    assert json.loads(made.stdout)["task_us"] == pytest.approx(report["best"]["task_us"], rel=1e-6)
    # What opkit gen writes leaves the rows alone.
    gen = subprocess.run(
        (sys.executable, "-m", "opkit", "gen"), cwd=gelu, capture_output=True, text=True, check=True
    )
    assert "skip  op_host/gelu_custom_tuning.inc" in gen.stderr
    # From any number of workers, and from what the first run has left, the same report.
    again = run(*QUICK, "--json", "--executor", "local:3", cwd=gelu)
    assert json.loads(again.stdout) == document


@pytest.mark.slow
def test_a_killed_run_goes_on_and_reports_the_same(gelu: Path, tmp_path: Path) -> None:
    words = ("--shape", "300000", "--budget", "60", "--json", "--dry-run", "--executor", "local:1")
    whole = json.loads(run(*words, "--state", str(tmp_path / "whole"), cwd=gelu).stdout)
    state = tmp_path / "state"
    command = [*OPKIT, *words, "--state", str(state)]
    process = subprocess.Popen(command, cwd=gelu, stdout=subprocess.DEVNULL)
    while process.poll() is None and not (state.exists() and state.read_bytes().count(b"\n") > 10):
        time.sleep(0.02)
    process.send_signal(signal.SIGKILL)
    process.wait()
    kept = state.read_bytes().count(b"\n")
    assert kept > 10
    again = run(*words, "--state", str(state), cwd=gelu)
    assert json.loads(again.stdout) == whole
    assert "damaged" not in again.stderr


PROGRAM = """
def product(a: "float16[M, K]", b: "float16[K, 64]"):
    return a @ b
"""


@pytest.mark.slow
def test_a_program_of_the_compiler_runs_with_what_was_tuned(tmp_path: Path) -> None:
    (tmp_path / "product.py").write_text(PROGRAM)
    sizes = ("--size", "M=128", "--size", "K=128")
    knobs = ("--knob", "base_m=64,128", "--knob", "base_n=32", "--knob", "band=1", "--knob")
    done = run("product.py", *sizes, *knobs, "cores=2,4", "--html", "page.html", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "<svg" in (tmp_path / "page.html").read_text()
    document: Any = json.loads((tmp_path / "product.tuning.json").read_text())
    assert document["rows"][0]["sizes"] == {"M": 128, "K": 128}
    verify = (sys.executable, "-m", "opkit", "compile", "product.py", *sizes, "--verify")
    checked: Callable[..., Any] = subprocess.run
    made = checked(verify, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "all stages agree" in made.stdout
    (tmp_path / "product.tuning.json").write_text('{"format": 1, "rows": [{"choices": {"x": 1}}]}')
    broken = checked(verify, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert broken.returncode == 2
    assert "/rows/0/choices/x" in broken.stderr and "Traceback" not in broken.stderr
