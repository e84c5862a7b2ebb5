"""Graphs on zeros, extremes, infinities and NaN, judged as `opkit test --edge-values` does."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from opkit.scaffold import formula
from opkit.schema import OpSpec, parse
from opkit.testing import (
    EDGES,
    default_cases,
    find_reference,
    is_float,
    judge,
    load_golden,
    make_inputs,
    narrow,
    standard_for,
    widen_input,
    works_by_row,
)

from .compiled import compiled, computed

TYPES = ["float16", "float32", "bfloat16"]


def operator(text: str, folder: Path) -> tuple[OpSpec, object]:
    """Return the operator of a formula in x and y, and its reference."""
    names = [name for name in ("x", "y") if name in text.replace("exp", "").replace("max", "")]
    tensors = [{"name": name, "type": TYPES, "format": ["ND"] * 3} for name in (*names, "z")]
    tensors[-1]["formula"] = text
    prototype = {"op": "Edge", "input_desc": tensors[:-1], "output_desc": tensors[-1:]}
    (spec,) = parse(json.dumps([prototype]), file=folder / "edge.json")
    golden = folder / "golden.py"
    golden.write_text(formula.golden_source(spec) or "")
    return spec, load_golden(golden)


@pytest.mark.parametrize(
    "text",
    [
        *("x**1.5", "x**-1.5", "x**0.25", "x**-0.5", "abs(x)**1.5", "0.5*(x + y)"),
        *("log(1 + exp(x))", "log(1 - sigmoid(x))", "sqrt(x*x + y*y)"),
        *(
            pytest.param(text, marks=pytest.mark.slow)
            for text in (
                "-((1 - sigmoid(x))**2)*log(sigmoid(x))",
                "-((1 - 1/(1 + exp(-x)))**2)*y*log(1/(1 + exp(-x)))",
                "log(1 + exp(-x*y))",
                "(exp(x) - exp(-x))/(exp(x) + exp(-x))",
                "x/sqrt(mean(x*x, axis=-1) + 0.00001)",
                "exp(x - max(x, axis=-1))/sum(exp(x - max(x, axis=-1)), axis=-1)",
            )
        ),
    ],
)
def test_a_right_result_passes_at_the_edges(text: str, tmp_path: Path) -> None:
    spec, golden = operator(text, tmp_path)
    rule = standard_for("conditioned", spec.name)
    cases = [case for case in default_cases(spec, edge_values=True) if case.distribution in EDGES]
    assert len(cases) == (2 if works_by_row(spec) else 1) * len(TYPES)
    for case in cases:
        inputs = make_inputs(case)
        single = {
            tensor.name: widen_input(value, dtype).astype(np.float32)
            for tensor, value, dtype in zip(spec.inputs, inputs, case.dtypes, strict=False)
        }
        found = computed(compiled(text, **single), single)
        dtype = case.dtypes[-1]
        assert is_float(dtype)
        actual = [narrow(np.array(np.broadcast_to(found, case.shape), np.float64), dtype)]
        reference = find_reference(case, spec, golden, wants_second=False)  # type: ignore[arg-type]
        assert reference is not None
        for output in judge(reference, inputs, actual, rule):
            assert output.comparison.passed, f"{case.name}: {output.comparison}"
            # NaN where there is a value is never among what is not judged of half numbers.
            wrong = [np.full_like(actual[0], 7 if dtype.name != "bfloat16" else 0x40E0)]
        assert not all(o.comparison.passed for o in judge(reference, inputs, wrong, rule))
