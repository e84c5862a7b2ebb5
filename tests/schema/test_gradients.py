"""Operators that name another as their gradient."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opkit import schema
from opkit.errors import SpecError


def tensors(*names):
    return [{"name": name, "type": "float32"} for name in names]


def operator(op, inputs, outputs, **fields):
    return {"op": op, "input_desc": tensors(*inputs), "output_desc": tensors(*outputs), **fields}


def load(*operators):
    return schema.parse(json.dumps(operators), file=Path("ops.json"))


def test_the_gradient_may_take_the_outputs_too():
    forward = operator("Soft", ["x"], ["y"], gradient="SoftBack")
    backward = operator("SoftBack", ["grad_y", "y"], ["grad_x"])
    soft, _ = load(forward, backward)
    assert soft.gradient == "SoftBack"
    assert '"gradient": "SoftBack"' in schema.dump(soft)


def test_false_stands_for_none_and_fast_math_is_kept():
    (soft,) = load(operator("Soft", ["x"], ["y"], gradient=False, fast_math=True))
    assert soft.gradient is False
    assert soft.fast_math
    (again,) = schema.parse(schema.dump(soft), file=Path("again.json"))
    assert (again.gradient, again.fast_math) == (False, True)


@pytest.mark.parametrize(
    ("backward", "words"),
    [
        (operator("Other", ["x"], ["y"]), 'no other operator "SoftBack"'),
        (operator("SoftBack", ["dy", "x"], ["grad_x"]), 'input "dy"'),
        (operator("SoftBack", ["grad_y", "x"], ["dx"]), 'output "dx"'),
        (
            operator("SoftBack", ["grad_y"], ["grad_x"], attr=[{"name": "a", "type": "int"}]),
            'no attribute "a"',
        ),
    ],
)
def test_an_operator_that_cannot_be_the_gradient_is_refused(backward, words):
    with pytest.raises(SpecError) as caught:
        load(operator("Soft", ["x"], ["y"], gradient="SoftBack"), backward)
    assert words in caught.value.message
    assert caught.value.pointer == "/0/gradient"
    assert caught.value.line == 1


def test_a_wrong_formula_of_many_kilobytes_is_shown_at_its_place():
    broken = "x + " * 4000 + "x x" + " + x" * 1000
    entry = operator("Soft", ["x"], ["y"])
    entry["output_desc"][0]["formula"] = broken
    with pytest.raises(SpecError) as caught:
        load(entry)
    assert len(str(caught.value)) < 500
