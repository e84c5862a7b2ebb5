"""The examples' generated files are those that `opkit gen` writes today."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


HAND_WRITTEN = {
    *("README.md", "pyproject.toml", "rmsnorm.json", "rmsnorm/golden.py", "op_host/rmsnorm.cpp"),
    *("op_kernel/rmsnorm.cpp", "op_kernel/rmsnorm_tiling.h"),
    # The sizes that `opkit tune` writes: as gen leaves them, none.
    "op_host/rmsnorm_tuning.inc",
}


def test_gen_leaves_what_was_written_by_hand_and_adds_the_rest(tmp_path: Path) -> None:
    copy = tmp_path / "rmsnorm"
    shutil.copytree(EXAMPLES / "rmsnorm", copy, ignore=shutil.ignore_patterns("build"))
    before = {path: path.read_bytes() for path in copy.rglob("*") if path.is_file()}
    assert {str(path.relative_to(copy)) for path in before} == HAND_WRITTEN
    subprocess.run(
        [sys.executable, "-m", "opkit", "gen", "-q", "-i", "rmsnorm.json", "-o", "."],
        cwd=copy,
        capture_output=True,
        check=False,
    )
    assert {path: path.read_bytes() for path in before} == before
    assert (copy / "numpy_ext" / "rmsnorm_module.cpp").is_file()
    assert (copy / "rmsnorm_grad.json").is_file()


def test_gen_has_nothing_newer_for_the_generated_example(tmp_path: Path) -> None:
    copy = tmp_path / "gelu_custom"
    shutil.copytree(EXAMPLES / "gelu_custom", copy, ignore=shutil.ignore_patterns("build"))
    done = subprocess.run(
        [sys.executable, "-m", "opkit", "gen", "--json"],
        cwd=copy,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    files = json.loads(done.stdout)["files"]
    # `skip`: edited by hand, and the text it was edited from is still what is generated.
    stale = {entry["path"]: entry["action"] for entry in files}
    assert {path: a for path, a in stale.items() if a not in ("identical", "skip")} == {}
