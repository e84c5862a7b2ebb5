"""The examples' generated files are those that `opkit gen` writes today."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize("name", ["gelu_custom", "rmsnorm"])
def test_gen_has_nothing_newer_for_an_example(name: str, tmp_path: Path) -> None:
    copy = tmp_path / name
    shutil.copytree(EXAMPLES / name, copy, ignore=shutil.ignore_patterns("build"))
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
