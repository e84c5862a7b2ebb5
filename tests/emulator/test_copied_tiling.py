"""Parts of tiling data that a kernel copies to its stack."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from opkit.errors import KernelFault

KERNEL = """
#include "kernel_operator.h"
struct Loops {
  uint32_t count;
  uint32_t step;
};
struct Whole {
  Loops outer;
  Loops inner;
  int64_t sizes[3];
};
extern "C" __global__ __aicore__ void kernel(GM_ADDR y, GM_ADDR tiling) {
  GET_TILING_DATA_PTR_WITH_STRUCT(Whole, data, tiling);
  COPY_TILING_WITH_STRUCT(Loops, data->outer, outer);
  COPY_TILING_WITH_STRUCT(Loops, &data->inner, inner);
  COPY_TILING_WITH_STRUCT(Whole, tiling, whole);
  COPY_TILING_WITH_ARRAY(int64_t, 3, data->sizes, sizes);
  __gm__ int64_t* found = (__gm__ int64_t*)y;
  found[0] = outer->step;
  found[1] = inner->count;
  found[2] = whole->inner.step;
  found[3] = (*sizes)[2];
}
"""


def test_structs_are_copied_from_members_pointers_and_the_argument(
    compile_kernel: Callable[..., Callable[..., object]],
) -> None:
    # Only a struct itself was taken: what the macro's text calls a pointer did not compile.
    kernel = compile_kernel(KERNEL)
    tiling = np.array([1, 2, 3, 4, 5, 0, 6, 0, 7, 0], np.uint32)
    y = np.zeros(4, np.int64)
    kernel(y, tiling)
    assert y.tolist() == [2, 3, 4, 7]
    with pytest.raises(KernelFault, match="the tiling function wrote 36 bytes"):
        kernel(y, tiling[:9].copy())
