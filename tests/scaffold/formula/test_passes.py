"""Rows that do not fit the unified buffer: how a plan is cut into passes, and what they compute."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path, PurePosixPath

import pytest

from opkit.scaffold.formula import backward, kernel_files, parse
from opkit.scaffold.formula.lowering import lower_long
from opkit.scaffold.formula.plan import Value

RMS = "x*rsqrt(mean(x**2, axis=-1)+1e-6)*b"
LAYER = "(x-mean(x,axis=-1))*rsqrt(mean((x-mean(x,axis=-1))**2,axis=-1)+1e-5)*b"
SOFTMAX = "exp(x-max(x,axis=-1))/sum(exp(x-max(x,axis=-1)),axis=-1)"
CROSS = "-sum(b*(x-max(x,axis=-1)-log(sum(exp(x-max(x,axis=-1)),axis=-1))),axis=-1)"


@pytest.mark.parametrize(
    ("formula", "passes"),
    [(RMS, 2), (LAYER, 3), (SOFTMAX, 3), (CROSS, 3), ("x/columns", 1), ("sum(x,axis=-1)", 1)],
)
def test_a_row_is_passed_once_for_every_reduction_that_waits_for_another(
    make_spec, formula, passes
):
    spec = make_spec(formula, inputs=("x", "b"))
    plan = lower_long(parse(spec))
    assert len(plan.passes) == passes
    assert any(one.writes for one in plan.passes) != parse(spec).outputs[0].per_row


@pytest.mark.parametrize("formula", [RMS, LAYER, SOFTMAX, CROSS])
def test_nothing_is_read_that_its_pass_or_the_row_does_not_have(make_spec, formula):
    spec = make_spec(formula, inputs=("x",) if formula == SOFTMAX else ("x", "b"))
    for one in (spec, backward(spec)):
        assert one is not None
        plan = lower_long(parse(one))
        lasting: set[int] = set()
        groups = [(plan.first, ())] + [(p.steps, p.then) for p in plan.passes]
        for inside, then in groups:
            here: set[int] = set()
            for step in (*inside, *then):
                for source in step.sources:
                    if isinstance(source, Value):
                        assert source.number in here | lasting
                        assert source.space == "scalar" or source.register >= 0
                here.add(step.target.number)
                if step.target.space in ("row", "scalar"):
                    lasting.add(step.target.number)


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
