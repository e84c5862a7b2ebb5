"""Files of cases: what each field does, and what a wrong one says."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import numpy as np
import pytest

from opkit.errors import UsageError
from opkit.schema import OpSpec, parse
from opkit.testing import Case, load_cases, make_inputs, project_cases, save_case
from opkit.toolchain import Project


def read(tmp_path: Path, text: str, *specs: OpSpec) -> tuple[Case, ...]:
    path = tmp_path / "cases.yaml"
    path.write_text(textwrap.dedent(text), encoding="utf-8")
    return load_cases(path, specs)


def test_a_shape_alone_makes_a_case_of_every_variant(tmp_path: Path, scale: OpSpec) -> None:
    cases = read(tmp_path, "cases: [{shape: [2, 3]}]", scale)
    assert [case.name for case in cases] == [
        f"scale-{dtype}-2x3-normal" for dtype in ("float16", "float32", "bfloat16")
    ]
    assert cases[0].attrs == (("factor", 2.0),)


def test_every_field_is_read(tmp_path: Path, norm: OpSpec) -> None:
    (case,) = read(
        tmp_path,
        """
        cases:
          - name: one row
            op: Norm
            dtype: fp32
            shape: [1, 4]
            shapes: {gamma: [4]}
            distribution: {x: uniform}
            range: {x: [-1, 1e-5]}
            values: {gamma: [1, 2, 3, 4]}
            seed: 7
            standard: mixed
            golden: other.py:reference
            expect: failure
        """,
        norm,
    )
    assert (case.name, case.shapes, case.seed) == ("one row", ((1, 4), (4,)), 7)
    assert (case.standard, case.expects_failure) == ("mixed", True)
    assert case.golden == f"{tmp_path / 'other.py'}:reference"
    x, gamma = make_inputs(case)
    assert x is not None and gamma is not None
    assert x.min() >= -1 and x.max() <= 1e-5
    np.testing.assert_array_equal(gamma, [1, 2, 3, 4])


def test_lists_of_shapes_and_dtypes_multiply(tmp_path: Path, scale: OpSpec) -> None:
    cases = read(
        tmp_path, "cases: [{name: a, dtype: [float16, float32], shape: [[1], [2]]}]", scale
    )
    assert len(cases) == 4
    assert cases[3].name == "a-scale-float32-2-normal"


def test_json_is_read_the_same(tmp_path: Path, scale: OpSpec) -> None:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps({"cases": [{"shape": [5], "attrs": {"factor": 3}}]}))
    assert load_cases(path, [scale])[0].attrs == (("factor", 3.0),)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("cases: [{shape: [1], dtpe: fp16}]", 'cases[0]: there is no field "dtpe"'),
        ("cases: [{shape: [1], dtpe: fp16}]", 'did you mean "dtype"?'),
        ("cases: [{dtype: fp16}]", "cases[0]: shape is missing"),
        ("cases: [{shape: [1, -2]}]", "shape has the size -2"),
        ("cases: [{shape: [1], dtype: flaot16}]", 'did you mean "float16"?'),
        ("cases: [{shape: [1], dtype: int8}]", "no variant whose first tensor is int8"),
        ("cases: [{shape: [1], distribution: unifrom}]", 'did you mean "uniform"?'),
        ("cases: [{shape: [1], range: [2, 1]}]", "the first is the larger one"),
        ("cases: [{shape: [1], attrs: {factr: 1}}]", 'did you mean "factor"?'),
        ("cases: [{shape: [1], attrs: {factor: much}}]", "'much' is not a number"),
        ("cases: [{shape: [1], standard: ecosytem}]", 'did you mean "ecosystem"?'),
        ("cases: [{shape: [1], expect: maybe}]", "expected success or failure"),
        ("cases: [{shape: [1], op: scal}]", 'there is no operator "scal"'),
        ("cases: [{shape: [1], shapes: {x: null}}]", "x is required"),
        ("cases: 3", "expected a list"),
        ("cases: [", "not YAML or JSON"),
    ],
)
def test_a_wrong_entry_says_where_and_what(
    tmp_path: Path, scale: OpSpec, text: str, says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, text, scale)
    assert says in str(caught.value)
    assert "cases.yaml" in str(caught.value) or "standard" in text


def test_a_saved_case_reads_back_with_the_same_inputs(tmp_path: Path, scale: OpSpec) -> None:
    (case,) = read(
        tmp_path,
        "cases: [{name: a, dtype: fp16, shape: [3], values: {x: [1, -.inf, .nan]}}]",
        scale,
    )
    path = tmp_path / "tests" / "cases.yaml"
    save_case(path, case)
    save_case(path, case)
    (again,) = load_cases(path, [scale])
    assert again.name == case.name
    np.testing.assert_array_equal(make_inputs(again)[0], make_inputs(case)[0])  # type: ignore[arg-type]


def test_several_values_of_an_attribute_make_a_case_of_each(tmp_path: Path, scale: OpSpec) -> None:
    cases = read(
        tmp_path,
        "cases: [{name: a, dtype: float32, shape: [4], attrs: {factor: [1, 2.5]}}, {shape: [4]}]",
        scale,
    )
    assert [case.name for case in cases[:2]] == ["a-factor=1.0", "a-factor=2.5"]
    assert [dict(case.attrs)["factor"] for case in cases[:3]] == [1.0, 2.5, 2.0]


def test_a_list_attribute_takes_a_list_of_lists(tmp_path: Path) -> None:
    (spec,) = parse(
        json.dumps(
            {
                "op": "ListCustom",
                "input_desc": [{"name": "x", "type": "float16"}],
                "output_desc": [{"name": "y", "type": "float16"}],
                "attr": [{"name": "axes", "type": "list_int"}],
            }
        ),
        file=Path("list.json"),
    )
    one = read(tmp_path, "cases: [{name: a, shape: [4], attrs: {axes: [0, 2]}}]", spec)
    assert [dict(case.attrs)["axes"] for case in one] == [(0, 2)]
    two = read(tmp_path, "cases: [{name: a, shape: [4], attrs: {axes: [[0], [0, 2]]}}]", spec)
    assert [dict(case.attrs)["axes"] for case in two] == [(0,), (0, 2)]
    assert [case.name for case in two] == ["a-axes=(0,)", "a-axes=(0,2)"]


def test_a_file_may_replace_the_generated_cases(tmp_path: Path, scale: OpSpec) -> None:
    (tmp_path / "tests").mkdir()
    path = tmp_path / "tests" / "cases.yaml"
    project = Project(root=tmp_path, name="scale", operators=(scale,))
    path.write_text("cases: [{name: mine, dtype: float32, shape: [4]}]\n")
    assert len(project_cases(project, golden=None)) > 1
    path.write_text("generated: false\n" + path.read_text())
    assert [case.name for case in project_cases(project, golden=None)] == ["mine"]
    path.write_text("generated: maybe\ncases: []\n")
    with pytest.raises(UsageError, match="expected true or false"):
        project_cases(project, golden=None)
