"""The public benchmark's task folders."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest

from opkit.errors import UsageError
from opkit.judging import is_benchmark, read_benchmark

_PROTO = """
operator:
  name: Scaled
  attrs:
  - {name: factor, type: float, default: 2.0}
  - {name: sizes, type: 'List[int]', required: true}
  inputs:
  - {name: x, dtype: [float16, float32]}
  - {name: mask, dtype: [bool, uint8], optional: true}
  outputs:
  - {name: y, dtype: [float16, float32]}
  - {name: index, dtype: [int32]}
"""
_CASES = """
cases:
- {case_id: 1, input_shape: [[2, 3], [3]], dtype: [float32, uint8], 
   attrs: {factor: 1.5, sizes: [1]}, value_range: [[-1, 2], [0, 1]]}
- {case_id: 2, input_shape: [[7]], dtype: [float16], attrs: {sizes: [1, 2]},
   value_range: [.nan, .nan]}
- {case_id: 3, input_shape: [[[2], [3]]], dtype: [float16], attrs: {sizes: [1]}}
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "tasks" / "level9" / "scaled"
    folder.mkdir(parents=True)
    (folder / "proto.yaml").write_text(_PROTO)
    (folder / "cases.yaml").write_text(_CASES)
    (folder / "golden.py").write_text("raise RuntimeError('reading a task runs no golden')")
    times = {"level9": {"scaled": {"1": {"baseline_perf_us": 12.5, "t_hw_us": 1.5}}}}
    (tmp_path / "tasks" / "metadata").mkdir()
    (tmp_path / "tasks" / "metadata" / "910b2.json").write_text(json.dumps(times))
    return folder


def test_a_task_is_known_by_its_files(folder: Path, tmp_path: Path) -> None:
    assert is_benchmark(folder)
    assert not is_benchmark(tmp_path)


def test_the_prototype_has_the_combinations_of_the_cases(folder: Path) -> None:
    task = read_benchmark(folder)
    assert (task.name, task.spec.op) == ("scaled", "Scaled")
    assert [tuple(d.name for d in task.spec.variant_dtypes(n)) for n in range(2)] == [
        ("float32", "uint8", "float32", "int32"),
        ("float16", "bool", "float16", "int32"),
    ]
    assert [(attr.name, attr.type, attr.required) for attr in task.spec.attrs] == [
        ("factor", "float", False),
        ("sizes", "list_int", True),
    ]


def test_a_case_has_shapes_attributes_values_and_times(folder: Path) -> None:
    task = read_benchmark(folder, seed=7)
    first, second = task.cases
    assert first.shapes == ((2, 3), (3,))
    assert first.attrs == (("factor", 1.5), ("sizes", (1,)))
    assert first.sources[0] is not None
    assert (first.sources[0].low, first.sources[0].high, first.seed) == (-1, 2, 7)
    assert (task.base_us, task.bound_us) == ({"scaled-1": 12.5}, {"scaled-1": 1.5})
    # An input that a case leaves out is an optional one; an attribute has its default.
    assert second.shapes == ((7,), None)
    assert dict(second.attrs)["factor"] == 2.0
    assert second.sources[0] is not None
    assert second.sources[0].values is not None
    assert math.isnan(second.sources[0].values[0])


def test_a_list_of_tensors_of_several_shapes_is_left_out_by_name(folder: Path) -> None:
    ((name, reason),) = read_benchmark(folder).left_out
    assert name == "scaled-3"
    assert "list" in reason


@pytest.mark.parametrize(
    ("written", "kind"),
    [("int64", "int"), ("int64_t", "int"), ("ListInt", "list_int"), ("'bool[]'", "list_bool")],
)
def test_attribute_types_of_every_spelling_are_read(folder: Path, written: str, kind: str) -> None:
    # Ten of the thirty-two open tasks were refused by these and the next test's.
    (folder / "proto.yaml").write_text(_PROTO.replace("'List[int]'", written))
    assert read_benchmark(folder).spec.attrs[1].type == kind


def test_an_absent_input_has_no_data_type_and_a_list_has_a_list_of_them(folder: Path) -> None:
    (folder / "cases.yaml").write_text(
        "cases:\n"
        "- {case_id: 1, input_shape: [[[2], [2]], null], dtype: [[float16, float16], null],\n"
        "   attrs: {sizes: [1]}, value_range: [[[-1, 2], [-1, 2]], null]}\n"
        "- {case_id: 2, input_shape: [[[2], [2]]], dtype: [[float16, float32]]}\n"
    )
    task = read_benchmark(folder)
    (case,) = task.cases
    assert case.shapes == ((2,), None)
    assert case.lists == {"x"}
    assert task.spec.inputs[0].param_type == "dynamic"
    assert [dtype.name for dtype in case.dtypes] == ["float16", "bool", "float16", "int32"]
    assert case.sources[0] is not None
    assert (case.sources[0].low, case.sources[1]) == (-1, None)
    assert task.left_out == (("scaled-2", "x is a list of tensors of several data types"),)


def test_an_attribute_chooses_an_outputs_data_type(folder: Path) -> None:
    # The candidate was to give float32, and refused for what the golden gives.
    (folder / "cases.yaml").write_text(
        "cases:\n- {input_shape: [[2]], dtype: [float32], attrs: {sizes: [1], kind: float16}}\n"
    )
    assert read_benchmark(folder).cases[0].dtypes[2].name == "float16"


@pytest.mark.parametrize(
    ("file", "text", "said"),
    [
        ("cases.yaml", "cases: 3", "expected a list"),
        ("cases.yaml", "cases: [{input_shape: [[1]], dtype: [float99]}]", "float99"),
        ("proto.yaml", "operator: [", "cannot be read"),
        ("proto.yaml", _PROTO.replace("List[int]", "Tensor"), "sizes"),
    ],
)
def test_a_wrong_file_is_named(folder: Path, file: str, text: str, said: str) -> None:
    (folder / file).write_text(text)
    with pytest.raises(UsageError, match=said) as caught:
        read_benchmark(folder)
    assert file in str(caught.value)
