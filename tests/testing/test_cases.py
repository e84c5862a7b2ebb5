"""Which cases there are, their values, and how they are chosen."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

from opkit.dtypes import find_dtype
from opkit.errors import UsageError
from opkit.schema import AttrSpec, OpSpec, parse
from opkit.selection import select_by_name
from opkit.testing import (
    bfloat16_to_float32,
    default_cases,
    make_inputs,
    usual_shape,
    works_by_row,
)


def test_every_dtype_meets_one_element_tails_large_multi_dimensional_and_empty(
    scale: OpSpec,
) -> None:
    cases = default_cases(scale)
    for variant in range(scale.variant_count):
        dtype = scale.variant_dtypes(variant)[0]
        shapes = {case.shape for case in cases if case.variant == variant}
        block = 32 // dtype.size_bytes
        assert {(1,), (block - 1,), (block,), (block + 1,)} <= shapes
        sizes = [int(np.prod(shape)) for shape in shapes]
        assert 0 in sizes and max(sizes) >= 1 << 20
        assert any(len(shape) == 3 for shape in shapes)
        assert any(size % 2 == 1 and size > 1000 for size in sizes)


def test_names_are_unique_and_say_operator_dtype_shape_and_distribution(scale: OpSpec) -> None:
    names = [case.name for case in default_cases(scale)]
    assert len(set(names)) == len(names)
    assert "scale-float16-2x3x17-normal" in names
    assert "scale-bfloat16-31x257-uniform" in names


def test_inputs_are_the_same_bits_for_the_same_seed_and_others_for_another(scale: OpSpec) -> None:
    def bits(seed: int) -> list[bytes]:
        return [make_inputs(case)[0].tobytes() for case in default_cases(scale, seed=seed)]

    assert bits(3) == bits(3)
    different = [a != b for a, b in zip(bits(3), bits(4), strict=True) if len(a) > 8]
    assert all(different)


def test_a_case_does_not_depend_on_the_cases_beside_it(scale: OpSpec) -> None:
    cases = default_cases(scale)
    (alone,) = select_by_name(cases, "scale-float32-7919-normal")
    together = {case.name: make_inputs(case)[0] for case in cases}
    assert np.array_equal(make_inputs(alone)[0], together[alone.name])


def test_inputs_have_the_storage_type_and_shape_of_their_case(scale: OpSpec) -> None:
    for case in default_cases(scale):
        (x,) = make_inputs(case)
        assert x.shape == case.shape
        assert x.dtype == case.dtypes[0].numpy


def test_a_shape_rule_gives_other_inputs_their_own_shape(norm: OpSpec) -> None:
    cases = default_cases(norm, shape_rule=lambda shape: {"gamma": shape[-1:]})
    assert cases
    for case in cases:
        x, gamma = make_inputs(case)
        assert gamma.shape == x.shape[-1:]


def test_a_row_operator_gets_rows_of_bounded_length(norm: OpSpec) -> None:
    # What golden.py gives shapes is mostly written by hand, with its rows in the unified buffer.
    cases = default_cases(norm, shape_rule=lambda shape: {"gamma": shape[-1:]})
    lengths = {case.shape[-1] for case in cases}
    assert {1, 4096, 4099} <= lengths
    assert max(lengths) < 10000


def test_a_row_operator_gets_rows_with_one_edge_each(norm: OpSpec, scale: OpSpec) -> None:
    # In rows of many edges all results are NaN, and nothing else of them is ever tested.
    names = [case.distribution for case in default_cases(norm, edge_values=True)]
    assert names.count("edge_rows") == names.count("edge") == norm.variant_count
    names = [case.distribution for case in default_cases(scale, edge_values=True)]
    assert "edge" in names and "edge_rows" not in names


def test_an_input_of_one_value_per_row_lacks_the_last_axis(norm: OpSpec) -> None:
    output = dataclasses.replace(norm.outputs[0], formula="x*row(gamma)")
    for case in default_cases(dataclasses.replace(norm, outputs=(output,))):
        x, gamma = make_inputs(case)
        assert gamma.shape == x.shape[:-1]


def test_a_rule_that_names_no_input_is_refused(norm: OpSpec) -> None:
    with pytest.raises(UsageError, match="'gama'"):
        default_cases(norm, shape_rule=lambda shape: {"gama": shape})


def test_attributes_take_their_default_or_a_plain_value(scale: OpSpec) -> None:
    assert default_cases(scale)[0].attrs == (("factor", 2.0),)
    required = dataclasses.replace(scale, attrs=(AttrSpec("axis", "int", required=True),))
    assert default_cases(required)[0].attrs == (("axis", 1),)
    unknown = dataclasses.replace(scale, attrs=(AttrSpec("t", "data_type", required=True),))
    with pytest.raises(UsageError, match="attribute t is required"):
        default_cases(unknown)


def test_a_dynamic_input_is_a_list_of_tensors(scale: OpSpec) -> None:
    # It used to be refused, and with it every project that has such an operator.
    listed = dataclasses.replace(scale.inputs[0], param_type="dynamic")
    case = default_cases(dataclasses.replace(scale, inputs=(listed,)))[0]
    (given,) = make_inputs(case)
    assert isinstance(given, list)
    assert [array.shape for array in given] == [case.shape, case.shape]
    assert not np.array_equal(given[0], given[1])


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_edge_cases_hold_zeros_extremes_infinities_and_nan(scale: OpSpec, dtype: str) -> None:
    cases = select_by_name(default_cases(scale, edge_values=True), f"scale-{dtype} and edge")
    (case,) = cases
    (x,) = make_inputs(case)
    wide = bfloat16_to_float32(x) if dtype == "bfloat16" else x
    largest = {"float16": 65504, "float32": np.finfo(np.float32).max, "bfloat16": 3.3895314e38}
    assert np.isnan(wide).any()
    assert np.isposinf(wide).any() and np.isneginf(wide).any()
    assert (wide == np.float32(largest[dtype])).any()
    assert ((wide == 0) & np.signbit(wide)).any()
    tiny = wide[(wide != 0) & (np.abs(wide) < 1e-30 if dtype != "float16" else wide < 1e-7)]
    assert tiny.size
    assert not any(case.distribution == "edge" for case in default_cases(scale))


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "int32", "int64", "uint64"])
def test_products_of_two_whole_numbers_fit_eight_bits(scale: OpSpec, name: str) -> None:
    dtype = find_dtype(name)
    assert dtype is not None
    inputs = (dataclasses.replace(scale.inputs[0], dtypes=(dtype,)),)
    outputs = (dataclasses.replace(scale.outputs[0], dtypes=(dtype,)),)
    spec = dataclasses.replace(scale, inputs=inputs, outputs=outputs)
    (case,) = select_by_name(default_cases(spec), "7919")
    (x,) = make_inputs(case)
    assert x.dtype == name
    assert int(np.abs(x.astype(np.int64)).max()) ** 2 < 128
    assert len(np.unique(x)) > 10


@pytest.mark.parametrize(
    ("expression", "chosen"),
    [
        ("float16", {"float16", "bfloat16"}),
        ("float16 and not bfloat16", {"float16"}),
        ("FLOAT32 or bfloat16", {"float32", "bfloat16"}),
        ("not (float32 or bfloat16)", {"float16"}),
        ("nothing", set()),
    ],
)
def test_k_chooses_by_parts_of_the_name(scale: OpSpec, expression: str, chosen: set[str]) -> None:
    cases = select_by_name(default_cases(scale), expression)
    assert {case.dtypes[0].name for case in cases} == chosen


@pytest.mark.parametrize("expression", ["", "and", "a or", "(a", "a)", "not", "a b"])
def test_a_broken_k_is_a_usage_error(scale: OpSpec, expression: str) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        select_by_name(default_cases(scale), expression)


def shaped(shape: object) -> OpSpec:
    entry = {
        "op": "ShapedCustom",
        "input_desc": [{"name": name, "type": "float16"} for name in ("a", "b")],
        "output_desc": [{"name": "y", "type": "float16", "shape": shape}],
        "attr": [
            {"name": "flag", "type": "bool", "param_type": "optional", "default_value": False}
        ],
    }
    return parse(json.dumps(entry), file=Path("shaped.json"))[0]


def test_row_operators_written_by_hand_get_rows() -> None:
    """They were tested on vectors of a million elements, which are one row, and refused them."""
    spec = shaped("reduce(a, axis=-1)")
    assert works_by_row(spec)
    assert usual_shape(spec) == (2048, 4096)
    assert max(case.shape[-1] for case in default_cases(spec)) <= 4099


def test_rows_of_a_formula_are_also_longer_than_any_buffer(norm: OpSpec) -> None:
    # Generated kernels take such rows in parts; no mutant of that code was killed.
    assert max(case.shape[-1] for case in default_cases(norm)) * 4 > 192 * 1024


def test_rules_over_several_axes_get_several_axes() -> None:
    for rule in ("matmul(a, b)", ["a[0]", "b[-1]"], "reduce(a, axis=(0, 2))"):
        assert {len(case.shape) for case in default_cases(shaped(rule))} == {4}
    assert usual_shape(shaped("same(a)")) == (1 << 20,)


def test_an_attribute_that_is_true_or_false_is_tested_both_ways() -> None:
    flags = [dict(case.attrs)["flag"] for case in default_cases(shaped("same(a)"))]
    assert flags.count(True) == 1
    assert flags.count(False) > 1
