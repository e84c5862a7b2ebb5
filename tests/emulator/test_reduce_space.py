"""The space that ReduceMax works in, of the documents' formula."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

# The work tensor has one data block.
LARGEST = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<float> in, out;
  in.SetGlobalBuffer((__gm__ float*)x);
  out.SetGlobalBuffer((__gm__ float*)y);
  LocalTensor<float> a(TPosition::VECCALC, 0, 64), work(TPosition::VECCALC, 256, 8);
  LocalTensor<float> found(TPosition::VECCALC, 288, 8);
  DataCopy(a, in, 64);
  PipeBarrier<PIPE_ALL>();
  ReduceMax(found, a, work, %d, true);
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, found, 8);
}
"""


def test_less_than_a_repeat_takes_one_block(compile_kernel) -> None:
    # It was to take the two rounds' space that more elements take.
    x, y = np.arange(64, dtype=np.float32) % 7, np.zeros(8, np.float32)
    compile_kernel(LARGEST % 63)(x, y)
    assert y[0] == 6 and y.view(np.uint32)[1] == 6
    with pytest.raises(
        KernelFault, match=r"ReduceMax writes bytes 0\.\.64 of a buffer that has 32"
    ):
        compile_kernel(LARGEST % 64)(x, y)
