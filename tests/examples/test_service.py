"""The example of the service runs, and its canary never gives a wrong answer."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("fastapi")
pytest.importorskip("sqlalchemy")

EXAMPLE = Path(__file__).parents[2] / "examples" / "service"


@pytest.mark.slow
def test_the_canary_is_found_and_rolled_back(tmp_path: Path) -> None:
    command = [sys.executable, str(EXAMPLE / "demo.py"), "--seconds", "6"]
    done = subprocess.run(
        [*command, "--folder", str(tmp_path / "build")], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert re.findall(r"wrong answers: (\d+)", done.stdout) == ["0", "0", "0"]
    assert "of canary: wrong" in done.stdout
    assert re.search(r"canary +20 % +out: wrong: output 0 misses", done.stdout)
    assert "rolled back to revision 1" in done.stdout
    last = done.stdout.rpartition("rolled back to revision 2")[2]
    assert "canary" not in last.splitlines()[1]
