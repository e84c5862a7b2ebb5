"""Parts of tiles by the names that the chip's own Triton has for them."""

from __future__ import annotations

import numpy as np
import pytest

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

from opkit.errors import KernelFault  # noqa: E402
from opkit.triton import SlowKernel, TritonError, extension, launch  # noqa: E402

pytestmark = pytest.mark.filterwarnings(f"ignore::{SlowKernel.__module__}.SlowKernel")


@triton.jit
def parts_kernel(x, part, whole, one, row, M: tl.constexpr, N: tl.constexpr):
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tile = tl.load(x + at)
    extension.compile_hint(tile, "a hint", 3)
    cut = extension.extract_slice(tile, (row, 1), (2, 3), (1, 2))
    tl.store(part + tl.arange(0, 2)[:, None] * 3 + tl.arange(0, 3)[None, :], cut)
    for step in range(2):
        tile = tl.insert_slice(tile, -cut, [2 * step, 3], [2, 3], [1, 1])
    tl.store(whole + at, tile)
    tl.store(one, extension.get_element(tile, (row, row + 1)))


@pytest.mark.parametrize("dtype", ["float32", pytest.param("int16", marks=pytest.mark.slow)])
def test_parts_lie_at_offsets_that_the_launch_says(dtype: str) -> None:
    x = np.arange(5 * 9).reshape(5, 9).astype(dtype)
    part, whole, one = np.zeros((2, 3), dtype), np.zeros((5, 9), dtype), np.zeros(1, dtype)
    launch(parts_kernel, (1,), x, part, whole, one, 2, M=5, N=9)
    np.testing.assert_array_equal(part, x[2:4, 1:6:2])
    expected = x.copy()
    expected[0:2, 3:6] = expected[2:4, 3:6] = -part
    np.testing.assert_array_equal(whole, expected)
    assert one[0] == expected[2, 3]


def test_an_offset_outside_of_a_tile_is_a_fault() -> None:
    x = np.zeros((5, 9), np.float32)
    with pytest.raises(KernelFault, match="extract_slice: an offset lies outside of the tile"):
        launch(parts_kernel, (1,), x, x[:2, :3].copy(), x.copy(), x[0, :1].copy(), 4, M=5, N=9)


@triton.jit
def large_part_kernel(x):
    tile = tl.load(x + tl.arange(0, 8))
    tl.store(x, extension.extract_slice(tile, [0], [5], [2]))


@triton.jit
def unknown_kernel(x):
    extension.sync_block_all("all", 3)


@pytest.mark.parametrize(
    ("kernel", "message"),
    [
        (large_part_kernel, "5 elements, 2 apart, do not lie within the 8 of dimension 0"),
        (unknown_kernel, "extension.sync_block_all: no public document says"),
    ],
)
def test_what_no_part_is_is_named(kernel: object, message: str) -> None:
    with pytest.raises(TritonError, match=message):
        launch(kernel, (1,), np.zeros(8, np.float32))
