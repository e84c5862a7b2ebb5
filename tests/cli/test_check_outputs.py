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


def test_a_gap_and_a_kernel_that_writes_nothing_are_found(tmp_path: Path, capsys: Capture) -> None:
    prototype = tmp_path / "row_blank.json"
    prototype.write_text(json.dumps(PROTOTYPE))
    project = tmp_path / "row_blank"
    assert run("gen", "-q", "-i", prototype, "-o", project, "-f", "aclnn") == 0
    kernel = project / "op_kernel" / "row_blank.cpp"
    text = kernel.read_text()
    for part in ("TQue<QuePosition::VECIN", "InitBuffer(xQueue", "CopyIn(", "NOT WRITTEN YET"):
        assert part in text
    assert "rowsPerTile" in (project / "op_host" / "row_blank.cpp").read_text()

    capsys.readouterr()
    assert run("check", project, "--shape", "3x40", "--json") == 1
    found = json.loads(capsys.readouterr().out)["findings"]
    assert {entry["id"] for entry in found} == {"INIT-COPY-OUT"}

    # The same without its copies out: it writes nothing at all.
    kernel.write_text(re.sub(r"DataCopyPad\(target, local, copy\);", "", text))
    done = subprocess.run(  # a process of its own: this one has loaded the kernel
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
