"""What a verdict costs: references without limits of range are asked about few elements."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from opkit.errors import PrecisionError
from opkit.schema import OpSpec
from opkit.testing import find_standard, load_golden, make_case, make_inputs
from opkit.testing.judgement import judge
from opkit.testing.references import reference as references_module
from opkit.testing.references.reference import find_reference


def test_a_plainly_wrong_result_is_looked_at_where_it_is_worst_only(
    scale: OpSpec, write_golden: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    golden = load_golden(write_golden("def scale(x, *, factor): return factor * x\n"))
    asked = []
    evaluate = references_module.evaluate_exactly

    def counting(function, inputs, names):
        asked.append(sum(array.size for array in inputs))
        return evaluate(function, inputs, names)

    monkeypatch.setattr(references_module, "evaluate_exactly", counting)
    case = make_case(scale, (3000,))
    reference = find_reference(case, scale, golden, wants_second=False)
    assert reference is not None
    inputs = make_inputs(case)
    wrong = [np.zeros_like(inputs[0])]
    (found,) = judge(reference, inputs, wrong, find_standard("conditioned"))
    assert not found.comparison.passed
    assert asked and max(asked) <= 16


def test_the_only_element_of_an_axis_is_what_a_reduction_gives(scale: OpSpec) -> None:
    case = replace(make_case(scale, (31,)), golden="factor * x.sum()")
    reference = find_reference(case, scale, None, wants_second=False)
    assert reference is not None
    (x,) = make_inputs(case)
    factor = dict(case.attrs)["factor"]
    assert isinstance(x, np.ndarray) and isinstance(factor, float)
    total = np.array([factor * x.sum()], dtype=x.dtype)
    standard = find_standard("conditioned")
    (found,) = judge(reference, [x], [total], standard)
    assert found.comparison.passed
    with pytest.raises(PrecisionError, match=r"shape \(1, 1\), the golden has \(\)"):
        judge(reference, [x], [total.reshape(1, 1)], standard)


def test_an_output_of_another_type_than_the_case_is_told(scale: OpSpec) -> None:
    variant = next(
        index
        for index in range(scale.variant_count)
        if scale.variant_dtypes(index)[-1].name == "bfloat16"
    )
    case = replace(make_case(scale, (31,), variant=variant), golden="factor * x")
    reference = find_reference(case, scale, None, wants_second=False)
    assert reference is not None
    # Numbers of half precision would be read as others of 16 bits, or pass for what was asked for.
    for other in (np.float32, np.float16):
        told = f"is {np.dtype(other)}, the case is one of bfloat16"
        with pytest.raises(PrecisionError, match=told):
            judge(
                *(reference, make_inputs(case), [np.zeros(31, other)]),
                find_standard("conditioned"),
            )
