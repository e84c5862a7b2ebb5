"""The shapes that a prototype says, in C++ and in Python."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opkit.errors import SpecError
from opkit.scaffold import render
from opkit.schema import OpSpec, dump, parse


def prototype(shape: object, **output: object) -> OpSpec:
    entry: dict[str, Any] = {
        "op": "ShapedCustom",
        "input_desc": [{"name": name, "type": "float16"} for name in ("x", "y")],
        "output_desc": [{"name": "z", "type": "float16", "shape": shape, **output}],
        "attr": [{"name": "axis", "type": "int"}],
    }
    return parse(json.dumps(entry), file=Path("shaped.json"))[0]


@pytest.mark.parametrize(
    ("shape", "cpp", "python"),
    [
        ("same(y)", "*zShape = *yShape;", "lambda t, a: (t[1].shape,)"),
        (
            "broadcast(x, y)",
            "Broadcast({xShape, yShape}, zShape)",
            "_bridge.broadcast_shape(t[0], t[1])",
        ),
        (
            "reduce(x, axis=axis)",
            "Reduce(*xShape, {axisValue}, false, zShape)",
            """_bridge.reduce_shape(t[0], axis=a["axis"], keepdims=False)""",
        ),
        (
            "matmul(x, y, transpose_b=true)",
            "MultiplyShapes(*xShape, *yShape, false, true, zShape)",
            "_bridge.matmul_shape(t[0], t[1], transpose_a=False, transpose_b=True)",
        ),
        (
            ["x[0] + axis", "y[-1] // 2"],
            "gert::Shape({(Dim(*xShape, 0) + axisValue), (Dim(*yShape, -1) / 2)})",
            """((t[0].shape[0] + a["axis"]), (t[1].shape[-1] // 2))""",
        ),
    ],
)
def test_a_rule_becomes_infershape_and_the_fake_kernel(
    shape: object, cpp: str, python: str
) -> None:
    tree = {str(path): text for path, text in render(prototype(shape)).items()}
    assert cpp in tree["op_host/shaped_custom.cpp"]
    assert python in tree["shaped_custom/_torch.py"]


def test_a_rule_is_written_back_as_it_was() -> None:
    for shape in ("reduce(x, axis=-1)", ["x[0]", 8]):
        text = dump(prototype(shape))
        assert json.loads(text)["output_desc"][0]["shape"] == shape


def test_a_shape_beside_a_formula_is_refused() -> None:
    with pytest.raises(SpecError, match="the formula says which shape"):
        prototype("same(x)", formula="x + y")


def test_a_wrong_rule_is_named_by_pointer() -> None:
    with pytest.raises(SpecError, match='"q" is not an input') as caught:
        prototype("same(q)")
    assert caught.value.pointer == "/output_desc/0/shape"


def test_a_list_of_outputs_needs_a_list_of_inputs() -> None:
    with pytest.raises(SpecError, match="no input is"):
        prototype("same(x)", param_type="dynamic")
