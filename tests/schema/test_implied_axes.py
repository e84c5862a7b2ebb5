"""Formulas without a `shape` for their inputs that are formulas over axes all the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from opkit.schema import OpSpec, dump, parse


def prototype(formula: str, dtype: str = "float16", **more: object) -> OpSpec:
    entry = {
        "op": "Implied",
        "input_desc": [{"name": name, "type": dtype, **more} for name in ("x", "w")],
        "output_desc": [{"name": "y", "type": dtype, "formula": formula}],
        "attr": [{"name": "p", "type": "float", "param_type": "optional", "default_value": 2.0}],
    }
    return parse(json.dumps(entry), file=Path("implied.json"))[0]


@pytest.mark.parametrize(
    "formula",
    [
        *("erf(x) + w", "x % w", "x // 2 + w", "x**p*w", "x**w", "gelu(x)*w", "max(erf(x), w)"),
        *("x if x > w else 0*w", "where(x > 0 and not w > 0, x, w)", "cast(x, 'int32')*w"),
        "clamp(x, low=-1.0, high=2.0)*w",
        *("sum(erf(x)) + w", "mean((x - w)**2)", "x + dropout(w, 3, 0.1)"),
    ],
)
def test_what_is_computed_element_by_element_has_any_axes(formula: str) -> None:
    assert [tensor.axes for tensor in prototype(formula).inputs] == [("...",)] * 2


def test_shifts_and_exclusive_bits_of_whole_numbers_have_any_axes() -> None:
    tensors = prototype("(x >> 1) ^ (w << 2)", "int32").inputs
    assert [tensor.axes for tensor in tensors] == [("...",)] * 2


@pytest.mark.parametrize(
    "formula",
    [
        *(
            "softmax(x)*w",
            "erf(x - mean(x, axis=-1))*w",
            "silu(x)/columns*w",
            "cumsum(x, axis=-1)*w",
        ),
        *("softmax(x, axis=-1)*w", "silu(chunk(x, 2, axis=-1)[0]) * chunk(w, 2, axis=-1)[1]"),
    ],
)
def test_what_goes_along_rows_has_a_last_axis(formula: str) -> None:
    assert [tensor.axes for tensor in prototype(formula).inputs] == [("...", "columns")] * 2


# Bytes beside floats used to be refused: "no kernel for data types".
def test_bytes_beside_floats_have_axes() -> None:
    entry = {
        "op": "Quantise",
        "input_desc": [{"name": "x", "type": ["float16", "float32"]}],
        "output_desc": [
            {"name": "q", "type": "int8", "formula": "round(x / (max(abs(x), axis=-1) / 127))"},
            {"name": "scale", "type": "float32", "formula": "max(abs(x), axis=-1) / 127"},
        ],
    }
    (spec,) = parse(json.dumps(entry), file=Path("quantise.json"))
    assert spec.inputs[0].axes == ("...", "columns")


def test_whole_numbers_have_bits() -> None:
    assert prototype("x & 3 | w", "int32").is_program
    assert not prototype("x & 3 | w", "float16").is_program


@pytest.mark.parametrize(
    "formula",
    [
        # what other formulas say, or refuse with what to write instead
        *("x*sigmoid(w)", "x**3 + w", "x^2 + w", "x > w", "tahn(x) + w", "where(x > w, x, w)"),
        # more axes than the last, and what names none
        *("erf(sum(x, axis=0))*w", "erf(x)[0] + w", "erf(x.T) + w", "chunk(x, 2, axis=0)[0]*w"),
        *("softmax(x, axis=0)*w", "cumsum(x)*w", "erf(row(x))*w", "like(erf(x), w)", "erf(x) @ w"),
        "tahn(erf(x)) + w",
    ],
)
def test_other_formulas_are_left_as_they_are(formula: str) -> None:
    assert not prototype(formula).is_program


def test_lists_and_optional_inputs_have_no_axes() -> None:
    assert not prototype("erf(x) + w", param_type="optional").is_program
    assert not prototype("erf(x) + w", param_type="dynamic").is_program
    assert not prototype("erf(x) + mean(w)", param_type="dynamic").is_program


def test_implied_axes_are_written_down_and_read_back() -> None:
    spec = prototype("erf(x)*w")
    (again,) = parse(dump(spec), file=spec.source)
    assert again.inputs == spec.inputs


def test_an_input_may_be_called_what_the_last_axis_is() -> None:
    entry = {
        "op": "Implied",
        "input_desc": [{"name": "columns", "type": "float32"}],
        "output_desc": [{"name": "y", "type": "float32", "formula": "softmax(columns)"}],
    }
    (spec,) = parse(json.dumps(entry), file=Path("implied.json"))
    assert spec.inputs[0].axes == ("...", "columns_")
