"""Cores that wait for one another by order, by group, or by polling global memory."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

ORDERED = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR y, GM_ADDR workspace) {
  GlobalTensor<int32_t> out, words;
  out.SetGlobalBuffer((__gm__ int32_t*)y, 64);
  words.SetGlobalBuffer((__gm__ int32_t*)workspace, 64);
  LocalTensor<int32_t> scratch(TPosition::VECCALC, 0, 128);
  InitDetermineComputeWorkspace(words, scratch);
  for (int round = 0; round < 3; ++round) {
    WaitPreBlock(words, scratch);
    int32_t next = out.GetValue(0);
    out.SetValue(1 + next, GetBlockIdx());
    out.SetValue(0, next + 1);
    %s
  }
}
"""


@pytest.mark.parametrize("threads", [1, 3])
def test_blocks_take_turns_in_the_order_of_their_index(compile_kernel, threads) -> None:
    from opkit.emulator import _emulator

    _emulator.configure(**{**_emulator.configuration(), "threads": threads})
    y, workspace = np.zeros(64, np.int32), np.zeros(64, np.int32)
    run = compile_kernel(ORDERED % "NotifyNextBlock(words, scratch);")
    run(y, workspace, block_dim=5)
    np.testing.assert_array_equal(y[:16], [15, *([0, 1, 2, 3, 4] * 3)])


def test_a_turn_that_is_never_passed_on_is_a_deadlock(compile_kernel) -> None:
    with pytest.raises(KernelFault, match="WaitPreBlock") as caught:
        compile_kernel(ORDERED % "")(np.zeros(64, np.int32), np.zeros(64, np.int32), block_dim=3)
    assert caught.value.category == "Deadlock"


GROUPS = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR y, GM_ADDR workspace) {
  GlobalTensor<int32_t> out;
  out.SetGlobalBuffer((__gm__ int32_t*)y, 16);
  auto* aligned = (GM_ADDR)(((uint64_t)workspace + 511) / 512 * 512);
  GroupBarrier<PipeMode::MTE3_MODE> barrier(aligned, 2, 3);
  ASSERT(barrier.GetWorkspaceLen() == 1536);
  int64_t id = GetBlockIdx();
  for (int round = 1; round < 3; ++round) {
    if (id >= 3) { out.SetValue(id, round); barrier.Arrive(id - 3); }
    if (id < 3) { barrier.Wait(id); out.SetValue(id, out.GetValue(3) + out.GetValue(4)); }
  }
}
"""


def test_a_group_waits_for_all_of_the_other(compile_kernel) -> None:
    y = np.zeros(16, np.int32)
    compile_kernel(GROUPS)(y, np.zeros(4096, np.uint8), block_dim=5)
    assert (y[:3] >= 2 * 2).all()


POLL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  auto* words = (__gm__ int32_t*)x;
  if (GetBlockIdx() == 0) {
    %s
    WriteGmByPassDCache<int32_t>((__gm__ int32_t*)y, 2 * ReadGmByPassDCache(words + 1));
    return;
  }
  WriteGmByPassDCache<int32_t>(words + 1, 7);
  DataSyncBarrier<MemDsbT::DDR>();
  WriteGmByPassDCache<int32_t>(words, 6);
}
"""

LOOPS = {
    "past_the_cache": "while (ReadGmByPassDCache(words) != 6) {}",
    "through_the_cache": """
      GlobalTensor<int32_t> flag;
      flag.SetGlobalBuffer(words, 2);
      while (flag.GetValue(0) != 6) DataCacheCleanAndInvalid<int32_t, CacheLine::SINGLE_CACHE_LINE, DcciDst::CACHELINE_OUT>(flag);
    """,
}


@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize("loop", LOOPS)
def test_polling_global_memory_lets_the_other_core_run(compile_kernel, loop, threads) -> None:
    from opkit.emulator import _emulator

    _emulator.configure(**{**_emulator.configuration(), "threads": threads})
    x, y = np.zeros(8, np.int32), np.zeros(8, np.int32)
    compile_kernel(POLL % LOOPS[loop])(x, y, block_dim=2)
    assert y[0] == 14
