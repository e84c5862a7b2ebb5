"""msOpST's JSON: its fields, its products of lists, its functions."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit.errors import OperatorError, UsageError
from opkit.schema import OpSpec
from opkit.testing import Case, Verdict, load_cases, make_inputs, run_cases


def tensor(**fields: Any) -> dict[str, Any]:
    usual = {"format": ["ND"], "type": ["float16"], "shape": [4, 5]}
    values = {"data_distribute": ["uniform"], "value_range": [[-1.0, 1.0]]}
    return {"name": "x", **usual, **values, **fields}


def document(**fields: Any) -> list[dict[str, Any]]:
    case = {"case_name": "Test_Scale_001", "op": "Scale"}
    tensors = {"input_desc": [tensor()], "output_desc": [tensor(name="y")]}
    return [{**case, **tensors, **fields}]


def read(tmp_path: Path, content: Any, *specs: OpSpec) -> tuple[Case, ...]:
    path = tmp_path / "Scale_case.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return load_cases(path, specs)


def test_a_case_as_create_writes_it(tmp_path: Path, scale: OpSpec) -> None:
    extra = {"ori_format": ["ND"], "ori_shape": [4, 5], "is_const": False}
    (case,) = read(tmp_path, document(input_desc=[tensor(**extra)]), scale)
    assert (case.name, case.shape, case.dtypes[0].name) == ("Test_Scale_001", (4, 5), "float16")
    (x,) = make_inputs(case)
    assert x is not None
    assert x.dtype == np.float16 and np.abs(x).max() <= 1


def test_lists_multiply_to_sub_cases(tmp_path: Path, scale: OpSpec) -> None:
    many = {
        "type": ["float16", "float"],
        "shape": [[3], [4, 5], [6]],
        "data_distribute": ["uniform", "normal"],
        "value_range": [[0, 1], [-5, 5]],
    }
    content = document(
        input_desc=[tensor(**many)], output_desc=[tensor(name="y", type=["float16", "float"])]
    )
    cases = read(tmp_path, content, scale)
    assert len(cases) == 2 * 3 * 2 * 2
    assert cases[0].name == "Test_Scale_001_001"
    assert len({case.name for case in cases}) == len(cases)
    assert {case.shape for case in cases} == {(3,), (4, 5), (6,)}


def test_unknown_sizes_take_typical_shape_or_a_size_in_range(tmp_path: Path, scale: OpSpec) -> None:
    typical = document(input_desc=[tensor(shape=[-1, 5], typical_shape=[7, 5])])
    assert read(tmp_path, typical, scale)[0].shape == (7, 5)
    ranged = document(input_desc=[tensor(shape=[-1, 5], shape_range=[[2, 3]])])
    assert read(tmp_path, ranged, scale)[0].shape in {(2, 5), (3, 5)}


def test_values_come_as_a_list_or_a_bin_file(tmp_path: Path, scale: OpSpec) -> None:
    np.arange(3, dtype=np.float16).tofile(tmp_path / "x.bin")
    for value in ([0, 1, 2], "x.bin"):
        (case,) = read(tmp_path, document(input_desc=[tensor(shape=[3], value=value)]), scale)
        np.testing.assert_array_equal(make_inputs(case)[0], [0, 1, 2])  # type: ignore[arg-type]


def test_attributes_are_taken_by_name(tmp_path: Path, scale: OpSpec) -> None:
    attr = [{"name": "factor", "type": "float", "value": 3.5}]
    assert read(tmp_path, document(attr=attr), scale)[0].attrs == (("factor", 3.5),)


def test_the_fuzz_function_fills_fields_in_the_same_every_time(
    tmp_path: Path, scale: OpSpec
) -> None:
    (tmp_path / "fuzz.py").write_text(
        "import random\nimport numpy as np\n"
        "def make():\n"
        "    n = random.randint(1, 50)\n"
        "    return {'input_desc': {'x': {'value': np.random.rand(n), 'shape': [n]}}}\n"
    )
    content = document(
        input_desc=[tensor(shape=["fuzz"], value=["fuzz"])],
        fuzz_impl="fuzz.py:make",
        fuzz_case_num=5,
    )
    cases = read(tmp_path, content, scale)
    assert len(cases) == 5 and len({case.shape for case in cases}) > 1
    assert cases == read(tmp_path, content, scale)
    (tmp_path / "fuzz.py").write_text("def make(): return 1 / 0\n")
    with pytest.raises(OperatorError, match="ZeroDivisionError"):
        read(tmp_path, content, scale)


def test_expected_failure_threshold_and_expectation_function(
    tmp_path: Path, scale: OpSpec, make_project: Any, fake_library: Any
) -> None:
    (tmp_path / "expect.py").write_text(
        "def expect(x, y, factor):\n"
        "    assert x['shape'] == [4, 5] and y['dtype'] == 'float16'\n"
        "    return [x['value'] * factor]\n"
    )
    content = document(calc_expect_func_file="expect.py:expect", error_threshold=[0.001, 0.0])
    project = make_project(scale)

    def verdict(kernel: Any, more: dict[str, Any] | None = None) -> Verdict:
        cases = read(tmp_path, [{**content[0], **(more or {})}], scale)
        report = run_cases(project, cases, library=fake_library(kernel), golden=None)
        assert report.results[0].outputs or more, report.results[0].message
        return report.results[0].verdict

    assert verdict(lambda x: [2 * x]) is Verdict.PASS
    assert verdict(lambda x: [(2.01 * x).astype(np.float16)]) is Verdict.FAIL

    def refusing(x: Any) -> Any:
        raise UsageError("refused")

    assert verdict(refusing, {"expect": "failed"}) is Verdict.PASS
    assert verdict(lambda x: [2 * x], {"expect": "failed"}) is Verdict.FAIL


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"expct": "failed"}, 'did you mean "expect"?'),
        ({"st_mode": "ms_python_train"}, "needs MindSpore"),
        ({"error_threshold": [0.1]}, "error_threshold is [0.1]"),
        ({"input_desc": []}, "input_desc has 0 tensors, Scale has 1"),
        ({"input_desc": [tensor(type=["int8"])]}, "no variant for the types int8"),
        ({"input_desc": [tensor(data_distribute=["unifrm"])]}, 'did you mean "uniform"?'),
        ({"fuzz_impl": "f.py:g", "fuzz_case_num": 2001}, "expected 1 to 2000"),
    ],
)
def test_a_wrong_field_says_where_and_what(
    tmp_path: Path, scale: OpSpec, fields: dict[str, Any], says: str
) -> None:
    with pytest.raises(UsageError) as caught:
        read(tmp_path, document(**fields), scale)
    assert says in str(caught.value)
