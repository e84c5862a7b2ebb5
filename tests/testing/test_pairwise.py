"""Generated cases that cover every pair of choices."""

from __future__ import annotations

import itertools
from pathlib import Path

from opkit.schema import AttrSpec, OpSpec, TensorSpec
from opkit.testing import pairwise_cases
from opkit.testing.cases.pairwise import cover_pairs


def test_every_pair_is_in_a_row_and_rows_are_few() -> None:
    choices = [[0, 1, 2], ["a", "b", "c", "d"], [True, False], [5, 6, 7]]
    rows = cover_pairs(choices)
    for one, other in itertools.combinations(range(4), 2):
        covered = {(row[one], row[other]) for row in rows}
        assert covered == set(itertools.product(choices[one], choices[other]))
    assert 12 <= len(rows) <= 20
    assert rows == cover_pairs(choices)


def test_the_cases_pair_variants_shapes_values_attributes_and_presence(scale: OpSpec) -> None:
    bias = TensorSpec("bias", "optional", scale.inputs[0].dtypes, ("ND",) * 3)
    spec = OpSpec(
        op="Scale",
        name="scale",
        inputs=(*scale.inputs, bias),
        outputs=scale.outputs,
        attrs=(AttrSpec("factor", "float", required=False, default=2.0),),
        source=Path("scale.json"),
    )
    cases = pairwise_cases(spec)
    assert {case.shapes[1] is None for case in cases} == {True, False}
    assert {dict(case.attrs)["factor"] for case in cases} == {2.0, 0.0, 1.0, -1.0, 1e-6}
    assert {len(case.shape) for case in cases} == set(range(1, 9))
    pairs = {(case.variant, case.distribution) for case in cases}
    assert len(pairs) == 3 * len({case.distribution for case in cases})
    assert len({case.name for case in cases}) == len(cases)
    assert any("factor=0.0" in case.name and "no_bias" in case.name for case in cases)


def test_row_operators_get_rows(norm: OpSpec) -> None:
    cases = pairwise_cases(norm, shape_rule=lambda shape: {"gamma": shape[-1:]})
    assert all(case.shapes[1] == case.shape[-1:] for case in cases)
