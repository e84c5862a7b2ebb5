"""What candidates expose: a function whose parameters mean something by their names."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from opkit.dtypes import find_dtype
from opkit.errors import UsageError
from opkit.judging.entry import MARK_INTERFACE, call_program, find_entry
from opkit.schema import AttrSpec, OpSpec, TensorSpec

FLOAT = find_dtype("float32")
assert FLOAT is not None


def tensor(name: str) -> TensorSpec:
    assert FLOAT is not None
    return TensorSpec(name=name, param_type="required", dtypes=(FLOAT,), formats=("ND",))


SPEC = OpSpec(
    op="Scale",
    name="scale",
    inputs=(tensor("x"),),
    outputs=(tensor("y"),),
    attrs=(
        AttrSpec("alpha", "float", False, 1.0),
        AttrSpec("axes", "list_int", False, (0,)),
    ),
    source=Path("scale.json"),
)


def entry_of(parameters: str, head: str = 'extern "C" void scale') -> Any:
    return find_entry({"a.asc": f"{head}({parameters}) {{ }}"}, SPEC)


def test_parameters_are_read_by_name_and_type() -> None:
    entry = entry_of(
        "GM_ADDR x, __gm__ uint8_t* y, const int64_t* x_shape, int64_t x_elements, int x_rank,"
        " std::uint32_t x_dtype, float alpha, const int64_t* axes, unsigned long long axes_count,"
        " uint8_t* workspace, aclrtStream stream"
    )
    assert [(each.name, each.kind) for each in entry.parameters] == [
        ("x", "pointer"),
        ("y", "pointer"),
        ("x_shape", "pointer"),
        ("x_elements", "c_int64"),
        ("x_rank", "c_int32"),
        ("x_dtype", "c_uint32"),
        ("alpha", "c_float"),
        ("axes", "pointer"),
        ("axes_count", "c_uint64"),
        ("workspace", "pointer"),
        ("stream", "pointer"),
    ]


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ("uint8_t* x, uint8_t* z", '"z" of scale is none that Scale has'),
        ("uint8_t* x, uint8_t* y_elements", '"y_elements" of scale is to be a number'),
        ("uint8_t x", '"x" of scale is to be a pointer'),
        ("uint8_t** x", '"x" of scale is to be a pointer'),
        ("Other alpha", '"alpha" of scale is to be a number'),
    ],
)
def test_what_means_nothing_is_named_with_what_would(parameters: str, said: str) -> None:
    with pytest.raises(UsageError, match=said) as caught:
        entry_of(parameters)
    assert caught.value.message.startswith(MARK_INTERFACE)
    assert "x, y, alpha, axes, stream, workspace" in str(caught.value.help)


@pytest.mark.parametrize(
    "head", ['extern "C" void other', 'extern "C" __global__ __aicore__ void scale', "call();scale"]
)
def test_neither_kernels_nor_calls_are_entries(head: str) -> None:
    with pytest.raises(UsageError, match=r"no source defines extern \"C\" void scale"):
        entry_of("uint8_t* x", head)


def test_a_program_gets_what_its_parameters_name() -> None:
    values = {"x": 1, "y": 2, "alpha": 3.0, "axes": [0]}
    assert call_program(lambda alpha, x: (alpha, x), SPEC, values) == (3.0, 1)
    assert call_program(lambda x, y: (x, y), SPEC, values) == (1, 2)
    assert call_program(lambda x, beta=7: (x, beta), SPEC, values) == (1, 7)
    # Who takes all gets no memory for results: it gives its own.
    assert call_program(lambda **all: all, SPEC, values) == {"x": 1, "alpha": 3.0, "axes": [0]}
    with pytest.raises(UsageError, match='"z" of scale is none that Scale has: x, y, alpha'):
        call_program(lambda x, z: x, SPEC, values)
