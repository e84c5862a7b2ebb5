"""Where arrays begin that an operator computes on: as tensors of the device's do."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.dtypes import find_dtype
from opkit.runtime import allocated
from opkit.runtime.allocation import BEGIN_BYTES, zeros
from opkit.testing import Case, make_inputs


@pytest.mark.parametrize("shape", [(), (0,), (1,), (7, 33), (3, 0, 2)])
@pytest.mark.parametrize("dtype", [np.int8, np.float16, np.float64])
def test_zeros_begin_like_tensors_of_the_device(shape: tuple[int, ...], dtype: type) -> None:
    found = zeros(shape, np.dtype(dtype))
    assert found.size == 0 or found.ctypes.data % BEGIN_BYTES == 0
    assert found.shape == shape and found.dtype == dtype and not found.any()
    assert found.flags.c_contiguous and found.flags.writeable


def test_what_begins_elsewhere_is_copied() -> None:
    memory = zeros((64,), np.dtype(np.float32))
    memory[:] = np.arange(64)
    assert allocated(memory) is memory
    moved = allocated(memory[3:])
    assert moved.ctypes.data % BEGIN_BYTES == 0
    np.testing.assert_array_equal(moved, memory[3:])


def test_inputs_of_cases_begin_like_tensors_of_the_device() -> None:
    # A kernel that computes with where its cache lines begin was wrong in some runs.
    half = find_dtype("float16")
    assert half is not None
    case = Case("Add", "add", 0, (half,) * 3, (7, 33), ((7, 33), (1,)), (), 0, "normal")
    assert {x.ctypes.data % BEGIN_BYTES for x in make_inputs(case) if x is not None} == {0}
