"""Variables that each core has for itself, on a thread that runs several."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.emulator import _emulator

KERNEL = """
struct Own {
  int32_t index;
  int32_t calls = 7;
};
__BLOCK_LOCAL__ __inline__ Own own;

extern "C" __global__ __aicore__ void kernel(GM_ADDR y) {
  GlobalTensor<int32_t> out;
  out.SetGlobalBuffer((__gm__ int32_t*)y);
  own.index = GetBlockIdx();
  own.calls = 0;
  for (int round = 0; round < 3; ++round) {
    SyncAll();
    ++own.calls;
  }
  out.SetValue(GetBlockIdx(), own.index * 10 + own.calls);
}
"""


@pytest.mark.parametrize("threads", [1, 3])
def test_a_waiting_core_finds_its_variables_as_it_left_them(compile_kernel, threads) -> None:
    # The name did not compile. Cores that wait for one another take turns on a thread.
    kernel = compile_kernel(KERNEL)
    before = _emulator.configuration()
    y = np.zeros(8, np.int32)
    _emulator.configure(**{**before, "threads": threads})
    try:
        kernel(y, block_dim=8)
    finally:
        _emulator.configure(**before)
    np.testing.assert_array_equal(y, np.arange(8) * 10 + 3)
