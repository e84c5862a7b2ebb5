"""Broadcast of columns and rows against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import BuildError, KernelFault
from opkit.profiling import Profile

TYPES = {
    "int8_t": np.int8,
    "uint8_t": np.uint8,
    "half": np.float16,
    "float": np.float32,
    "int16_t": np.int16,
    "int32_t": np.int32,
    "bfloat16_t": np.uint16,  # its bits
}
SHAPES = "const uint32_t to[2] = {number[0], number[1]}, from[2] = {number[2], number[3]};"
CASES = {
    f"{name} {kind} {dim} {axis} {form}": (
        f"{SHAPES} {name}<{kind}, {dim}, {axis}>(Z({kind}), X({kind}), to, from{space});"
    )
    for kind in TYPES
    for name, dim, axis, form, space in (
        ("Broadcast", 2, 1, "space", ", space"),
        ("BroadCast", 2, 1, "none", ""),
        ("BroadCast", 2, 0, "space", ", space"),
        ("Broadcast", 1, 0, "space", ", space"),
    )
}


@pytest.fixture(scope="module")
def call(compile_cases):
    return compile_cases(CASES)


def values(kind: str, *shape: int) -> np.ndarray:
    rng = np.random.default_rng(3)
    if kind in ("half", "float"):
        return rng.standard_normal(shape).astype(TYPES[kind])
    limits = np.iinfo(TYPES[kind])
    return rng.integers(limits.min, limits.max, shape, TYPES[kind], endpoint=True)


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(
    ("rows", "columns"),
    [(16, 16), (24, 256), (7, 64), (33, 5), (70, 33), (1, 40), (257, 8), (5, 1), (3, 700)],
)
def test_a_column_becomes_a_matrix(call, kind: str, rows: int, columns: int) -> None:
    x = values(kind, rows, 1)
    numbers = (rows, columns, rows, 1)
    z = np.zeros((rows, columns), x.dtype)
    for name, space in (("Broadcast {} 2 1 space", 24576), ("BroadCast {} 2 1 none", 0)):
        actual = call(name.format(kind), z, x, numbers=numbers, space=space)
        np.testing.assert_array_equal(actual, np.broadcast_to(x, z.shape))


def test_few_long_rows_take_one_copy_a_row(call) -> None:
    # They took one for every eight blocks of a row, here 16: a quantised row was timed 37 % too slow.
    x = values("half", 3, 1)
    z = np.zeros((3, 2048 + 48), x.dtype)
    numbers = (*z.shape, *x.shape)
    with Profile() as session:
        actual = call("Broadcast half 2 1 space", z, x, numbers=numbers, space=24576)
    np.testing.assert_array_equal(actual, np.broadcast_to(x, z.shape))
    (timeline,) = session.timelines
    # And one for the three blocks at the end of each.
    assert sum(line.count for line in timeline.lines if line.instruction == "Copy") == 3 + 1


@pytest.mark.parametrize("kind", TYPES)
@pytest.mark.parametrize(("rows", "columns"), [(3, 32), (300, 64), (1, 96), (10, 1024)])
def test_a_row_becomes_a_matrix(call, kind: str, rows: int, columns: int) -> None:
    x = values(kind, 1, columns)
    rows = min(rows, 32768 // x.nbytes)
    z = np.zeros((rows, columns), x.dtype)
    actual = call(f"BroadCast {kind} 2 0 space", z, x, numbers=(rows, columns, 1, columns))
    np.testing.assert_array_equal(actual, np.broadcast_to(x, z.shape))


@pytest.mark.parametrize("kind", TYPES)
def test_one_element_becomes_a_line(call, kind: str) -> None:
    x = values(kind, 1)
    for count in (1, 31, 128, 500):
        z = np.zeros(count, x.dtype)
        actual = call(f"Broadcast {kind} 1 0 space", z, x, numbers=(count, 0, 1, 0))
        np.testing.assert_array_equal(actual, np.repeat(x, count))


def test_wrong_shapes_and_too_little_space_are_faults(call) -> None:
    x, z = values("half", 16, 1), np.zeros((16, 24), np.float16)
    with pytest.raises(KernelFault, match="srcShape is neither dstShape nor 1"):
        call("Broadcast half 2 1 space", z, x, numbers=(16, 24, 15, 1))
    with pytest.raises(KernelFault, match="GetBroadCastMaxMinTmpSize"):
        call("Broadcast half 2 1 space", z, x, numbers=(16, 24, 16, 1), space=512)
    with pytest.raises(KernelFault, match="multiple of 32 bytes"):
        call("BroadCast half 2 0 space", z, values("half", 1, 24), numbers=(16, 24, 1, 24))


@pytest.mark.parametrize(("kind", "arch"), [("uint32_t", 2201), ("int32_t", 2002)])
def test_other_types_are_refused_by_name(compile_kernel, kind: str, arch: int) -> None:
    call = f"void f(LocalTensor<{kind}> x) {{ {SHAPES} Broadcast<{kind}, 2, 1>(x, x, to, from); }}"
    kernel = 'extern "C" __global__ __aicore__ void kernel(GM_ADDR) {}'
    with pytest.raises(BuildError) as refused:
        compile_kernel(
            f"const uint32_t number[4] = {{16, 16, 16, 1}};\n{call}\n{kernel}", arch=arch
        )
    assert "Broadcast: this data type is not supported" in str(refused.value.diagnostics)
