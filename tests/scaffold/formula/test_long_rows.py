"""Rows that do not fit the unified buffer: they come in parts."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from opkit.scaffold.kernel_files import kernel_files

LAYER = "(x-mean(x,axis=-1))*rsqrt(mean((x-mean(x,axis=-1))**2,axis=-1)+1e-5)*b"
SOFTMAX = "exp(x-max(x,axis=-1))/sum(exp(x-max(x,axis=-1)),axis=-1)"
CROSS = "-sum(b*(x-max(x,axis=-1)-log(sum(exp(x-max(x,axis=-1)),axis=-1))),axis=-1)"


def test_the_kernel_takes_parts_where_a_row_does_not_fit(make_spec):
    # It used to be "rows this long are not supported", from 4040 elements on for a gradient.
    files = kernel_files(make_spec(SOFTMAX))
    assert "tiling.partLength < tiling.columns" in files[PurePosixPath("op_kernel/test_op.cpp")]
    assert "rows this long" not in files[PurePosixPath("op_host/test_op.cpp")]


@pytest.mark.slow
def test_rows_of_forty_thousand_are_right_and_clean(tmp_path: Path) -> None:
    def operator(op: str, formula: str) -> dict[str, object]:
        return {
            "op": op,
            "input_desc": [{"name": n, "type": ["float16", "float32"]} for n in ("x", "b")],
            "output_desc": [{"name": "y", "type": ["float16", "float32"], "formula": formula}],
        }

    prototype = tmp_path / "long.json"
    prototype.write_text(json.dumps([operator("Layer", LAYER), operator("Cross", CROSS)]))
    cases = tmp_path / "cases.json"
    names = ("Layer", "Cross", "LayerGrad", "CrossGrad")
    cases.write_text(json.dumps({"cases": [{"op": op, "shape": [3, 40007]} for op in names]}))

    def opkit(*arguments: str) -> str:
        done = subprocess.run(
            [sys.executable, "-m", "opkit", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    opkit("gen", "-i", "long.json", "-o", "long", "-f", "aclnn")
    opkit("test", "long", "--cases", "cases.json")
    for kernel in ("layer", "cross", "layer_grad", "cross_grad"):
        assert "no findings" in opkit("check", "long", "--op", kernel, "--shape", "2x40007")
