"""`opkit check` of scaffolds: what is not written yet is found, and where."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import pytest

from opkit.cli.app import group
from opkit.cli.console import run_guarded

Capture = pytest.CaptureFixture[str]

PROTOTYPE = [
    {
        "op": "RowBlank",
        "input_desc": [{"name": "x", "type": "float16"}, {"name": "gamma", "type": "float16"}],
        "output_desc": [
            {"name": "y", "type": "float16", "shape": "same(x)"},
            {"name": "m", "type": "float32", "shape": "reduce(x, axis=-1)"},
        ],
    }
]


def run(*arguments: str | Path) -> int:
    return run_guarded(group, [str(argument) for argument in arguments])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A scaffold whose Compute is not written yet."""
    prototype = tmp_path / "row_blank.json"
    prototype.write_text(json.dumps(PROTOTYPE))
    project = tmp_path / "row_blank"
    assert run("gen", "-q", "-i", prototype, "-o", project, "-f", "aclnn") == 0
    return project


@pytest.mark.slow
def test_a_gap_is_found(project: Path, capsys: Capture) -> None:
    text = (project / "op_kernel" / "row_blank.cpp").read_text()
    for part in ("TQue<QuePosition::VECIN", "InitBuffer(xQueue", "CopyIn(", "NOT WRITTEN YET"):
        assert part in text
    assert "rowsPerTile" in (project / "op_host" / "row_blank.cpp").read_text()

    capsys.readouterr()
    assert run("check", project, "--shape", "3x40", "--json") == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {entry["id"] for entry in found} == {"INIT-COPY-OUT"}


@pytest.mark.slow
def test_a_kernel_that_writes_nothing_is_found(project: Path) -> None:
    kernel = project / "op_kernel" / "row_blank.cpp"
    text = kernel.read_text()
    without = re.sub(r"DataCopyPad\(target, local, copy\);", "", text)
    assert without != text
    kernel.write_text(without)
    done = subprocess.run(
        [sys.executable, "-m", "opkit", "check", str(project), "--shape", "3x40", "--json"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1
    found = json.loads(done.stdout)["findings"]
    assert [entry["id"] for entry in found] == ["INIT-OUTPUT"]
    assert found[0]["message"] == (
        "output never written: all of the 120 elements of y, all of the 3 elements of m"
    )
    assert found[0]["location"]["file"] == "op_kernel/row_blank.cpp"
