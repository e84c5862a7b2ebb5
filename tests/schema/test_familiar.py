"""Formulas as people write them who know PyTorch and NumPy."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opkit.errors import SpecError
from opkit.schema import OpSpec, parse
from opkit.schema.familiar import familiar

IMAGE = {"x": ("N", "C", "H", "W"), "w": ("C",), "b": ("C",)}


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("torch.sqrt(np.exp(x))", "sqrt(exp(x))"),
        ("torch.nn.functional.silu(x)", "silu(x)"),
        ("x.mean(-1, keepdim=True)", "mean(x, axis=-1, keepdims=True)"),
        ("(x - y).abs().amax(dim=-1)", "max(abs(x - y), axis=-1)"),
        ("mean(x, (2, 3))", "mean(x, axis=(2, 3))"),
        ("clip(round(x), -128, 127)", "clamp(round(x), -128, 127)"),
        ("cat([x, y], dim=-1)", "concat([x, y], axis=-1)"),
        ("gather(x, 1, places)", "take_along(x, places, axis=1)"),
        ("gather(x, places)", "take_along(x, places, axis=-1)"),
        ("argtopk(x, k)", "topk_places(x, k)"),
        ("F.linear(x, w, b)", "x @ w.T + b"),
        ("x.var(-1, unbiased=False)", "var(x, axis=-1)"),
        ("x.var(-1, unbiased=True)", "var(x, axis=-1, correction=1)"),
        ("std(x, -1)", "sqrt(var(x, axis=-1))"),
        ("sum(x, axis=(H, W))", "sum(x, axis=(-2, -1))"),
    ],
)
def test_other_spellings_are_read(written: str, meant: str) -> None:
    assert familiar(written, IMAGE) == meant


@pytest.mark.parametrize(
    "text",
    [
        *("max(x, 0)", "max(x, -1)", "x * sigmoid(x)", "x  *  2", "np + x", "mean(x,axis=-1)"),
        *("x[:, 0:2] @ w.T", "pow(x, 2)", "sum(x, axis=axis)"),
    ],
)
def test_what_is_said_in_the_languages_words_stays_letter_by_letter(text: str) -> None:
    assert familiar(text, {}) == text


def test_an_input_may_be_called_as_a_module() -> None:
    assert familiar("np.mean(-1)", {"np": ("M", "K")}) == "mean(np, axis=-1)"


def prototype(formula: str | list[str], shapes: dict[str, Any], **more: Any) -> OpSpec:
    types = more.pop("types", {})
    entry = {
        "op": "Written",
        "input_desc": [
            {
                "name": name,
                "type": types.get(name, "float"),
                **({"shape": list(shape)} if shape else {}),
            }
            for name, shape in shapes.items()
        ],
        "output_desc": [{"name": "out", "type": types.get("out", "float"), "formula": formula}],
        **more,
    }
    return parse(json.dumps(entry), file=Path("written.json"))[0]


def test_parts_of_a_chunk_have_names() -> None:
    spec = prototype(["a, b = chunk(x, 2, dim=-1)", "silu(a) * b"], {"x": ("M", "D")})
    assert spec.outputs[0].formula == "silu(chunk(x, 2, axis=-1)[0]) * chunk(x, 2, axis=-1)[1]"


def test_values_and_places_have_names() -> None:
    lines = ["p = softmax(x)", "w, at = p.topk(2)", "w + cast(at, 'float32')"]
    spec = prototype(lines, {"x": ("M", 64)})
    assert spec.outputs[0].formula == (
        "topk(softmax(x), 2) + cast(topk_places(softmax(x), 2), 'float32')"
    )


def test_a_group_norm_is_written_out_where_its_channels_are_known() -> None:
    text = "group_norm(x, 4, w, b)"
    assert familiar(text, IMAGE) == text
    found = familiar(text, {**IMAGE, "x": ("N", 32, "H", "W")})
    assert found.startswith("reshape((reshape(x, (N, 4, -1)) - mean(reshape(x, (N, 4, -1)), axis=")
    assert found.endswith(" * reshape(w, (32, 1, 1)) + reshape(b, (32, 1, 1))")


def test_a_caret_is_a_power_of_fractions_and_stays_with_bits() -> None:
    assert prototype("2 * x^2", {"x": None}).outputs[0].formula == "2 * x**2"
    bits = prototype("x ^ 2", {"x": ("M",)}, types={"x": "int32", "out": "int32"})
    assert bits.outputs[0].formula == "x ^ 2"


def test_a_class_of_each_row_has_no_columns() -> None:
    spec = prototype(
        ["logp = log_softmax(logits, axis=-1)", "-gather(logp, target)"],
        {"logits": None, "target": None},
        types={"target": "int64"},
    )
    assert [tensor.axes for tensor in spec.inputs] == [("...", "columns"), ("...",)]


@pytest.mark.parametrize("line", ["a, b = x", "a, b = exp(x)", "a, b, c = topk(x, 2)"])
def test_what_has_no_parts_gives_nothing_a_name(line: str) -> None:
    with pytest.raises(SpecError, match="gives nothing a name"):
        prototype([line, "a"], {"x": ("M", 64)})


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ("x.reshape(N, 4, C // 4)", "reshape(x, (N, 4, C // 4))"),
        ("x.view(-1).contiguous()", "reshape(x, (-1,))"),
        ("x.permute(0, 2, 1, 3)", "transpose(x, (0, 2, 1, 3))"),
        ("x.transpose(-2, -1)", "swapaxes(x, -2, -1)"),
        ("w.t()", "w.T"),
        ("x.float() + w.half()", "cast(x, dtype='float32') + cast(w, dtype='float16')"),
        ("x.astype(np.int8)", "cast(x, dtype='int8')"),
        ("x.to(torch.bfloat16)", "cast(x, dtype='bfloat16')"),
        ("x.masked_fill(~w, float('-inf'))", "where(~w, -inf, x)"),
        ("x.topk(2).values", "topk(x, 2)"),
        ("torch.max(x, dim=-1).indices", "argmax(x, axis=-1)"),
        ("x.max(dim=-1)[0]", "max(x, axis=-1)"),
        ("math.pi * x / x.shape[-1]", "pi * x / W"),
        ("x.size(1) * w", "C * w"),
        ("x.norm(dim=-1, keepdim=True)", "sqrt(sum(x ** 2, axis=-1, keepdims=True))"),
        ("x.norm(1, dim=-1)", "sum(abs(x), axis=-1, keepdims=False)"),
        ("clamp(x, -w, w)", "minimum(maximum(x, -w), w)"),
        ("x.clamp(min=0)", "clamp(x, low=0)"),
        ("F.embedding(x, w)", "take(w, x, axis=0)"),
        ("F.mse_loss(x, w)", "mean((x - w) ** 2)"),
        ("F.l1_loss(x, w, reduction='none')", "abs(x - w)"),
        ("x.mean(-1, True)", "mean(x, axis=-1, keepdims=True)"),
        ("torch.bmm(x, w)", "x @ w"),
        ("x.index_select(0, w)", "take(x, w, axis=0)"),
        (
            "F.layer_norm(x, x.shape[-1:])",
            "(x - mean(x, axis=-1)) * rsqrt(mean((x - mean(x, axis=-1)) ** 2, axis=-1) + 1e-05)",
        ),
        ("rms_norm(x, w, 1e-5)", "x * rsqrt(mean(x ** 2, axis=-1, keepdims=True) + 1e-05) * w"),
    ],
)
def test_methods_and_losses_are_written_out(written: str, meant: str) -> None:
    assert familiar(written, IMAGE) == meant


def test_an_output_may_be_part_of_another() -> None:
    entry = {
        "op": "Quantised",
        "input_desc": [{"name": "x", "type": "float", "shape": ["M", "K"]}],
        "output_desc": [
            {"name": "back", "type": "float", "formula": "y * scale"},
            {"name": "y", "type": "int8", "formula": "round(x / scale)"},
            {"name": "scale", "type": "float", "formula": "max(abs(x), axis=-1) / 127"},
        ],
    }
    (spec,) = parse(json.dumps(entry), file=Path("quantised.json"))
    scale = "(max(abs(x), axis=-1) / 127)"
    assert [tensor.formula for tensor in spec.outputs] == [
        # What whole numbers hold is what was written; fractions are what was computed.
        f"cast(round(x / {scale}), 'int8') * {scale}",
        f"round(x / {scale})",
        "max(abs(x), axis=-1) / 127",
    ]
    entry["output_desc"][2]["formula"] = "max(y, axis=-1)"  # type: ignore[index]
    with pytest.raises(SpecError, match=r'"\w+" is computed of itself'):
        parse(json.dumps(entry), file=Path("quantised.json"))


def test_comments_of_python_are_left_out() -> None:
    spec = prototype("h = x + 1  # a shift\n# the result\nh * h", {"x": None})
    assert spec.outputs[0].formula == "(x + 1) * (x + 1)"
