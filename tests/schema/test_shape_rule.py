"""The `shape` of an output: what it may say, and what is wrong with the rest."""

from __future__ import annotations

import pytest

from opkit.schema import parse_shape_rule

INPUTS = [("x", "required"), ("y", "required"), ("bias", "optional"), ("parts", "dynamic")]
ATTRS = [("axis", "int"), ("axes", "list_int"), ("keep", "bool"), ("scale", "float")]


def rule(value: object):
    return parse_shape_rule(value, inputs=INPUTS, attrs=ATTRS)


def test_rules_name_inputs_and_options() -> None:
    assert rule("same(x)").tensors == ("x",)
    assert rule("broadcast(x, y)").kind == "broadcast"
    assert rule("reduce(x)").options == {"axis": (-1,), "keepdims": False}
    assert rule("reduce(x, axis=(0, 2), keepdims=true)").options["axis"] == (0, 2)
    assert rule("reduce(x, axis=axes, keepdims=keep)").options == {
        "axis": "axes",
        "keepdims": "keep",
    }
    assert rule("matmul(x, y, transpose_b=True)").options == {
        "transpose_a": False,
        "transpose_b": True,
    }


def test_a_list_says_each_dimension() -> None:
    found = rule(["x[0] * 2", "parts[-1] // axis", 8])
    assert found.kind == "dims"
    assert found.tensors == ("x", "parts")
    assert found.dims == ("x[0] * 2", "parts[-1] // axis", "8")
    assert found.text == ("x[0] * 2", "parts[-1] // axis", 8)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        ("", "not an expression"),
        ("x", "is no rule"),
        ("smae(x)", '"smae" is no rule; use one of same(...)'),
        ("same(z)", '"z" is not an input'),
        ("same(bias)", "is optional"),
        ("same(x, y)", "takes 1 inputs, not 2"),
        ("broadcast()", "one or more"),
        ("matmul(x)", "takes 2 inputs, not 1"),
        ("reduce(x, dim=1)", "no option dim; its options: axis, keepdims"),
        ("reduce(x, axis=scale)", "of type float, not int or list_int"),
        ("reduce(x, axis=9)", "from -8 to 7"),
        ("reduce(x, keepdims=1)", "expected true or false"),
        ("reduce(x, keepdims=__import__('os'))", "neither value nor attribute"),
        (["x[0.5]"], "is no dimension"),
        (["x"], "is no dimension"),
        (["scale"], "is no dimension"),
        (["x[0] ** 2"], "is no dimension"),
    ],
)
def test_what_is_wrong_is_said(value: object, text: str) -> None:
    with pytest.raises(ValueError, match=text.replace("(", r"\(").replace(")", r"\)")):
        rule(value)
