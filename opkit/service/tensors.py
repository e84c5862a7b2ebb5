"""Tensors in requests and answers: the Open Inference Protocol (v2), JSON and its binary extension.

Source: KServe, Open Inference Protocol, "Inference" and Triton's "Binary Tensor Data Extension".
Numbers that JSON lacks go as the strings "NaN", "Infinity" and "-Infinity", both ways; 16-bit
floats go as numbers, which the protocol leaves open.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from opkit.bfloat16 import bfloat16_to_float32, to_bfloat16
from opkit.dtypes import find_dtype
from opkit.errors import UsageError
from opkit.service.interface import Interface
from opkit.service.settings import validation_text
from opkit.service.workers import Inputs, Tensor

__all__ = [
    "DATATYPES",
    "HEADER_LENGTH",
    "InferRequest",
    "InferTensor",
    "ReadRequest",
    "encode_tensors",
    "read_request",
    "storage_of",
    "write_answer",
]

HEADER_LENGTH = "inference-header-content-length"
DATATYPES = {
    "BOOL": "bool",
    "UINT8": "uint8",
    "UINT16": "uint16",
    "UINT32": "uint32",
    "UINT64": "uint64",
    "INT8": "int8",
    "INT16": "int16",
    "INT32": "int32",
    "INT64": "int64",
    "FP16": "float16",
    "FP32": "float32",
    "FP64": "float64",
    "BF16": "bfloat16",
}
"""The protocol's names of data types, and opkit's."""
_PROTOCOL_NAMES = {ours: theirs for theirs, ours in DATATYPES.items()}
_WORDS = {"NaN": math.nan, "Infinity": math.inf, "-Infinity": -math.inf}
_LONGEST_SHAPE = 16


class _Message(BaseModel):
    model_config = ConfigDict(extra="ignore", frozen=True)


class InferTensor(_Message):
    """One tensor of a request."""

    name: str = Field(max_length=256)
    shape: list[int] = Field(max_length=_LONGEST_SHAPE)
    datatype: str = Field(max_length=16)
    parameters: dict[str, Any] = Field(default_factory=dict)
    data: list[Any] | None = None
    """Numbers in row-major order, flat or nested; without it the tensor is in the binary part."""


class RequestedOutput(_Message):
    """One output that a request asks for."""

    name: str = Field(max_length=256)
    parameters: dict[str, Any] = Field(default_factory=dict)


class InferRequest(_Message):
    """A request for inference; `parameters` are the operator's attributes by name."""

    id: str | None = Field(default=None, max_length=256)
    parameters: dict[str, Any] = Field(default_factory=dict, max_length=256)
    inputs: list[InferTensor] = Field(max_length=256)
    outputs: list[RequestedOutput] = Field(default_factory=list, max_length=256)


@dataclass(frozen=True)
class ReadRequest:
    """A request as it is worked on."""

    id: str | None
    inputs: Inputs
    attributes: Mapping[str, Any]
    outputs: tuple[tuple[str, bool], ...]
    """The outputs asked for, and whether as binary; none stands for all."""
    binary: bool
    """Whether outputs go as binary that nothing is said of."""


def read_request(body: bytes, header_length: int | None, interface: Interface) -> ReadRequest:
    """Return a request's tensors in the order of the operator's inputs.

    Args:
        header_length: of the JSON part; the rest of the body is binary. None for JSON alone.
    Raises:
        UsageError: it is no such request, or does not fit the operator.
    """
    if header_length is not None and not 0 <= header_length <= len(body):
        raise UsageError(f"{HEADER_LENGTH} is {header_length}, and the body has {len(body)} bytes")
    header, binary = (body, b"") if header_length is None else _split(body, header_length)
    try:
        request = InferRequest.model_validate_json(header)
    except ValidationError as err:
        raise UsageError(f"the request is none for inference: {validation_text(err)}") from err
    at = 0
    tensors: list[tuple[str, Tensor]] = []
    for item in request.inputs:
        size = item.parameters.get("binary_data_size")
        if item.data is None:
            if type(size) is not int or not 0 <= size <= len(binary) - at:
                raise UsageError(
                    f"{item.name!r:.80}: no data, and binary_data_size is {size!r:.40} where"
                    f" {len(binary) - at} bytes are left"
                )
            tensors.append((item.name, _from_binary(item, binary[at : at + size])))
            at += size
        else:
            tensors.append((item.name, _from_json(item)))
    if at != len(binary):
        raise UsageError(f"{len(binary) - at} bytes of the body belong to no input")
    attributes = dict(request.parameters)
    default = attributes.pop("binary_data_output", False)
    known = {parameter.name for parameter in interface.outputs}
    for output in request.outputs:
        if output.name not in known:
            raise UsageError(f"there is no output {output.name!r:.80}")
    outputs = tuple(
        (output.name, output.parameters.get("binary_data", default) is True)
        for output in request.outputs
    )
    inputs = _in_order(tensors, interface)
    return ReadRequest(request.id, inputs, attributes, outputs, default is True)


def write_answer(
    model: str,
    version: str,
    outputs: Sequence[Tensor],
    interface: Interface,
    request: ReadRequest,
    parameters: Mapping[str, Any],
) -> tuple[bytes, int | None]:
    """Return the body of an answer, and the length of its JSON part where there is a binary one."""
    names = [parameter.name for parameter in interface.outputs]
    while len(names) < len(outputs):
        # More tensors than outputs: the last output is a list.
        names.append(names[-1])
    wanted = dict(request.outputs)
    chosen = [
        (name, tensor, wanted.get(name, request.binary))
        for name, tensor in zip(names, outputs, strict=False)
        if not wanted or name in wanted
    ]
    described, chunks = encode_tensors(chosen)
    answer: dict[str, Any] = {"model_name": model, "model_version": version}
    if request.id is not None:
        answer["id"] = request.id
    answer |= {"parameters": dict(parameters), "outputs": described}
    text = json.dumps(answer, separators=(",", ":"), allow_nan=False).encode()
    return (text + b"".join(chunks), len(text)) if chunks else (text, None)


def encode_tensors(
    tensors: Sequence[tuple[str, Tensor, bool]],
) -> tuple[list[dict[str, Any]], list[bytes]]:
    """Return what JSON says of named tensors, and the bytes of those that go as binary."""
    described: list[dict[str, Any]] = []
    chunks: list[bytes] = []
    for name, (array, dtype), binary in tensors:
        item: dict[str, Any] = {
            "name": name,
            "shape": list(array.shape),
            "datatype": _PROTOCOL_NAMES[dtype],
        }
        if binary:
            chunks.append(array.tobytes())
            item["parameters"] = {"binary_data_size": array.nbytes}
        else:
            item["data"] = _json_numbers(array, dtype)
        described.append(item)
    return described, chunks


def storage_of(dtype: str) -> np.dtype[Any]:
    """Return how NumPy stores a data type of opkit's."""
    row = find_dtype(dtype)
    assert row is not None and row.numpy is not None
    return np.dtype(row.numpy)


def _split(body: bytes, at: int) -> tuple[bytes, bytes]:
    return body[:at], body[at:]


def _in_order(tensors: Sequence[tuple[str, Tensor]], interface: Interface) -> Inputs:
    by_name: dict[str, list[Tensor]] = {}
    for name, tensor in tensors:
        by_name.setdefault(name, []).append(tensor)
    found: list[Tensor | list[Tensor] | None] = []
    for parameter in interface.inputs:
        given = by_name.pop(parameter.name, [])
        if parameter.kind == "dynamic":
            found.append(given)
        elif len(given) > 1:
            raise UsageError(f"input {parameter.name} is given {len(given)} times")
        elif not given and parameter.kind == "required":
            raise UsageError(
                f"input {parameter.name} is missing",
                help="inputs are " + ", ".join(item.name for item in interface.inputs),
            )
        else:
            found.append(given[0] if given else None)
    if by_name:
        raise UsageError(
            f"there is no input {next(iter(by_name))!r:.80}",
            help="inputs are " + ", ".join(item.name for item in interface.inputs),
        )
    return found


def _described(item: InferTensor) -> tuple[str, int]:
    """Return a tensor's data type and how many elements it has."""
    dtype = DATATYPES.get(item.datatype)
    if dtype is None:
        raise UsageError(
            f"{item.name!r:.80}: {item.datatype!r} is no datatype that opkit has",
            help="one of " + ", ".join(DATATYPES),
        )
    if any(size < 0 for size in item.shape):
        raise UsageError(f"{item.name!r:.80}: no shape: {item.shape}")
    return dtype, math.prod(item.shape)


def _from_binary(item: InferTensor, content: bytes) -> Tensor:
    dtype, count = _described(item)
    storage = storage_of(dtype)
    if len(content) != count * storage.itemsize:
        raise UsageError(
            f"{item.name!r:.80}: {item.shape} of {item.datatype} is {count * storage.itemsize}"
            f" bytes, and binary_data_size is {len(content)}"
        )
    array = np.frombuffer(content, storage.newbyteorder("<")).astype(storage, copy=False)
    if dtype == "bool" and array.size and content.translate(None, b"\0\1"):
        raise UsageError(f"{item.name!r:.80}: a BOOL is a byte 0 or 1")
    return array.reshape(item.shape), dtype


def _from_json(item: InferTensor) -> Tensor:
    dtype, count = _described(item)
    flat = _flat(item.data or [], count)
    if flat is None:
        raise UsageError(f"{item.name!r:.80}: data does not have the {count} numbers of its shape")
    storage = storage_of(dtype)
    if dtype == "bool":
        if any(value is not True and value is not False for value in flat):
            raise UsageError(f"{item.name!r:.80}: BOOL data is true and false")
        return np.array(flat, np.bool_).reshape(item.shape), dtype
    if storage.kind in "iu" and dtype != "bfloat16":
        limits = np.iinfo(storage)
        for value in flat:
            if type(value) is not int or not limits.min <= value <= limits.max:
                raise UsageError(f"{item.name!r:.80}: {value!r:.40} is no {item.datatype}")
        return np.array(flat, storage).reshape(item.shape), dtype
    return _float_array(item, flat, dtype).reshape(item.shape), dtype


def _float_array(item: InferTensor, flat: list[Any], dtype: str) -> npt.NDArray[Any]:

    numbers = []
    for value in flat:
        number = _WORDS.get(value) if isinstance(value, str) else value
        if type(number) not in (int, float):
            raise UsageError(f"{item.name!r:.80}: {value!r:.40} is no number")
        numbers.append(number)
    try:
        wide = np.array(numbers, np.float64)
    except OverflowError as err:
        raise UsageError(f"{item.name!r:.80}: a number does not fit a float") from err
    with np.errstate(over="ignore"):
        return to_bfloat16(wide) if dtype == "bfloat16" else wide.astype(storage_of(dtype))


def _flat(data: list[Any], count: int) -> list[Any] | None:
    """Return nested lists as one; None where there are not `count` values."""
    depth = 0
    while data and isinstance(data[0], list):
        depth += 1
        if depth > _LONGEST_SHAPE or not all(isinstance(item, list) for item in data):
            return None
        if sum(len(item) for item in data) > count:
            return None
        data = [value for item in data for value in item]
    return data if len(data) == count else None


def _json_numbers(array: npt.NDArray[Any], dtype: str) -> list[Any]:
    if dtype == "bfloat16":
        array = bfloat16_to_float32(array)
    flat: list[Any] = array.reshape(-1).tolist()
    if array.dtype.kind == "f" and not np.isfinite(array).all():
        words = {math.inf: "Infinity", -math.inf: "-Infinity"}
        return ["NaN" if value != value else words.get(value, value) for value in flat]
    return flat
