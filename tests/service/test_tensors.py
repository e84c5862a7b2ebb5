"""Tensors of the protocol: there and back, and nothing that anybody sends is more than an error."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from opkit.errors import UsageError
from opkit.service.interface import Interface, Parameter
from opkit.service.tensors import DATATYPES, encode_tensors, read_request, storage_of

INTERFACE = Interface(
    "Op", "op", (Parameter("x"), Parameter("w", "optional")), (Parameter("y"),), (), ""
)
VALUES = {
    "float16": [0.5, -2.0, float("nan"), float("inf")],
    "float32": [0.1, -2.0, float("nan"), float("-inf")],
    "float64": [0.1, 1e300, 0.0, -0.0],
    "bool": [True, False, True, False],
}


def sample(dtype: str) -> np.ndarray[Any, Any]:
    if dtype == "bfloat16":
        return np.array([0x3F80, 0x4000, 0x7FC0, 0xFF80], np.uint16)
    limits = np.iinfo(storage_of(dtype)) if dtype not in VALUES else None
    values = VALUES.get(dtype) or [0, 1, limits.min, limits.max]  # type: ignore[union-attr]
    return np.array(values, storage_of(dtype))


@pytest.mark.parametrize("dtype", DATATYPES.values())
@pytest.mark.parametrize("binary", [True, False])
def test_every_data_type_comes_back(dtype: str, binary: bool) -> None:
    array = sample(dtype).reshape(2, 2)
    described, chunks = encode_tensors([("x", (array, dtype), binary)])
    header = json.dumps({"inputs": described}).encode()
    body = header + b"".join(chunks)
    read = read_request(body, len(header) if binary else None, INTERFACE)
    found, name = read.inputs[0]  # type: ignore[misc]
    assert name == dtype
    assert found.tobytes() == array.tobytes()
    assert read.inputs[1] is None


def test_nested_data_is_flat_in_row_major_order() -> None:
    item = {"name": "x", "shape": [2, 2], "datatype": "INT32", "data": [[1, 2], [3, 4]]}
    read = read_request(json.dumps({"inputs": [item]}).encode(), None, INTERFACE)
    assert read.inputs[0][0].tolist() == [[1, 2], [3, 4]]  # type: ignore[index]


def test_lists_of_tensors_are_inputs_of_one_name() -> None:
    interface = Interface("Op", "op", (Parameter("x", "dynamic"),), (Parameter("y"),), (), "")
    items = [{"name": "x", "shape": [1], "datatype": "FP32", "data": [n]} for n in range(3)]
    read = read_request(json.dumps({"inputs": items}).encode(), None, interface)
    assert [array.tolist() for array, _ in read.inputs[0]] == [[0.0], [1.0], [2.0]]  # type: ignore[union-attr]


def json_values() -> st.SearchStrategy[Any]:
    scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8)
    names = st.sampled_from(["name", "shape", "datatype", "data", "parameters", "inputs", "x"])
    return st.recursive(
        scalars, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(names, inner)
    )


TENSOR = st.fixed_dictionaries(
    {
        "name": st.sampled_from(["x", "w", "z"]) | json_values(),
        "shape": st.lists(st.integers(-1, 5) | st.just(1 << 62), max_size=3) | json_values(),
        "datatype": st.sampled_from([*DATATYPES, "FP8", ""]) | json_values(),
    },
    optional={
        "data": st.lists(st.integers(-300, 300) | st.floats() | st.text(max_size=3))
        | json_values(),
        "parameters": st.fixed_dictionaries({"binary_data_size": st.integers(-2, 40)})
        | json_values(),
    },
)
REQUEST = st.fixed_dictionaries(
    {"inputs": st.lists(TENSOR, max_size=3) | json_values()},
    optional={"outputs": json_values(), "parameters": json_values(), "id": json_values()},
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(request=REQUEST, binary=st.binary(max_size=40), length=st.none() | st.integers(0, 500))
def test_whatever_is_sent_is_read_or_refused(
    request: dict[str, Any], binary: bytes, length: int | None
) -> None:
    header = json.dumps(request).encode()
    try:
        read_request(header + binary, len(header) if length is not None else None, INTERFACE)
    except UsageError as error:
        assert error.message


@settings(max_examples=100, deadline=None)
@given(body=st.binary(max_size=200), length=st.none() | st.integers(0, 300))
def test_random_bytes_are_refused(body: bytes, length: int | None) -> None:
    with pytest.raises(UsageError):
        read_request(body, length, INTERFACE)
