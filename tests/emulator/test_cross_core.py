"""Cores that wait for one another: barriers, flags between sub-cores, and the deadlocks of their misuse."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.emulator import _emulator
from opkit.errors import KernelFault

REVERSE = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<int32_t> in, out;
  in.SetGlobalBuffer((__gm__ int32_t*)x);
  out.SetGlobalBuffer((__gm__ int32_t*)y);
  const int64_t mine = GetBlockIdx(), count = GetBlockNum();
  for (int round = 0; round < 3; ++round) {
    in.SetValue(mine, in.GetValue(mine) + 1);
    SyncAll();
    out.SetValue(mine, out.GetValue(mine) + in.GetValue(count - 1 - mine));
    SyncAll();
  }
}
"""

CHAIN = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR flags, GM_ADDR y) {
  GlobalTensor<int32_t> workspace, out;
  workspace.SetGlobalBuffer((__gm__ int32_t*)flags);
  out.SetGlobalBuffer((__gm__ int32_t*)y);
  LocalTensor<int32_t> local(TPosition::VECIN, 0, 8);
  const int64_t mine = GetBlockIdx();
  if (mine > 0) IBWait(workspace, local, mine - 1, 0);
  out.SetValue(0, out.GetValue(0) * 2 + (mine & 1));
  IBSet(workspace, local, mine, 0);
}
"""

PING_PONG = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR y) {
  GlobalTensor<int32_t> out;
  out.SetGlobalBuffer((__gm__ int32_t*)y);
  for (int round = 0; round < 4; ++round) {
    if ASCEND_IS_AIC {
      out.SetValue(8 * GetBlockIdx(), round + 1);
      CrossCoreSetFlag<2, PIPE_FIX>(3);
      WaitEvent(4);
    } else {
      CrossCoreWaitFlag(3);
      const int64_t group = GetBlockIdx() / GetSubBlockNum();
      const int64_t slot = 8 * group + 1 + GetSubBlockIdx();
      out.SetValue(slot, out.GetValue(slot) * 10 + out.GetValue(8 * group));
      NotifyEvent<PIPE_MTE3>(4);
    }
  }
}
"""

# Each core counts up its own number, then reads those of the cores that its flag stands for.
TOGETHER = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR numbers, GM_ADDR sums) {
  if (%(leaves)s) return;
  GlobalTensor<int32_t> in, out;
  in.SetGlobalBuffer((__gm__ int32_t*)numbers);
  out.SetGlobalBuffer((__gm__ int32_t*)sums);
  const int mine = GetBlockIdx();
  const int first = %(mode)d == 1 ? mine / GetSubBlockNum() * GetSubBlockNum() : 0;
  const int last = %(mode)d == 1 ? first + GetSubBlockNum() : GetBlockNum() * (g_coreType == AIV ? GetSubBlockNum() : 1);
  for (int round = 0; round < 3; ++round) {
    in.SetValue(mine, in.GetValue(mine) + mine + 1);
    CrossCoreSetFlag<%(mode)d, PIPE_MTE3>(9);
    CrossCoreWaitFlag(9);
    int sum = 0;
    for (int i = first; i < last; ++i) sum += in.GetValue(i);
    out.SetValue(mine, out.GetValue(mine) * 1000 + sum);
    CrossCoreSetFlag<%(mode)d, PIPE_MTE3>(10);
    CrossCoreWaitFlag(10);
  }
}
"""

UNFINISHED = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR y) {
  (void)y;
  if (GetBlockIdx() == 2) return;
  SyncAll();
}
"""


@pytest.fixture(params=[1, 2, 3])
def threads(request: pytest.FixtureRequest) -> int:
    _emulator.configure(**{**_emulator.configuration(), "threads": request.param})
    return request.param


def test_a_barrier_shows_every_block_what_all_others_wrote(compile_kernel, threads) -> None:
    x = np.arange(20, dtype=np.int32)
    y = np.zeros(20, dtype=np.int32)
    compile_kernel(REVERSE)(x, y, block_dim=20)
    start = np.arange(20)[::-1]
    np.testing.assert_array_equal(y, (start + 1) + (start + 2) + (start + 3))


def test_blocks_run_in_the_order_that_their_flags_give(compile_kernel, threads) -> None:
    flags, y = np.zeros(8 * 17, dtype=np.int32), np.zeros(1, dtype=np.int32)
    compile_kernel(CHAIN)(flags, y, block_dim=16)
    assert y[0] == 0b0101010101010101


@pytest.mark.parametrize(("mode", "vector_cores"), [("Mix11", 1), ("Mix12", 2)])
def test_cube_and_vector_cores_of_a_block_take_turns(
    compile_kernel, threads, mode, vector_cores
) -> None:
    y = np.zeros(8 * 5, dtype=np.int32)
    compile_kernel(PING_PONG, mode)(y, block_dim=5)
    for block in y.reshape(5, 8):
        np.testing.assert_array_equal(block[1 : 1 + vector_cores], [1234] * vector_cores)
        assert not block[1 + vector_cores :].any()


@pytest.mark.parametrize(
    ("mode", "kernel_mode", "kind", "groups"),
    [
        (0, "Mix12", "AIV", [range(6)]),
        (0, "Mix12", "AIC", [range(3)]),
        (0, "Mix11", "AIV", [range(3)]),
        (1, "Mix12", "AIV", [range(2), range(2, 4), range(4, 6)]),
        (1, "Mix11", "AIV", [range(1), range(1, 2), range(2, 3)]),
    ],
)
def test_a_flag_stands_for_all_cores_of_a_kind_or_the_vector_cores_of_a_block(
    compile_kernel, threads, mode, kernel_mode, kind, groups
) -> None:
    text = TOGETHER % {"leaves": f"g_coreType != {kind}", "mode": mode}
    numbers, sums = np.zeros(6, np.int32), np.zeros(6, np.int32)
    compile_kernel(text, kernel_mode)(numbers, sums, block_dim=3)
    expected = np.zeros(6, np.int32)
    for group in groups:
        total = sum(index + 1 for index in group)
        for index in group:
            expected[index] = total * 1_000_000 + 2 * total * 1000 + 3 * total
    np.testing.assert_array_equal(sums, expected)


def test_a_barrier_that_a_block_misses_is_a_deadlock_that_names_who_waits(
    compile_kernel, threads
) -> None:
    with pytest.raises(
        KernelFault, match=r"(?s)aiv of blocks 0-1, 3 for SyncAll at .*1 of 4 cores"
    ) as caught:
        compile_kernel(UNFINISHED)(np.zeros(1, dtype=np.int32), block_dim=4)
    assert caught.value.category == "Deadlock"
    assert caught.value.block == 0


def test_a_fault_wins_over_the_waits_that_it_leaves_behind(compile_kernel, threads) -> None:
    body = """
    extern "C" __global__ __aicore__ void kernel(GM_ADDR y) {
      (void)y;
      if (GetBlockIdx() == 3) ASSERT(GetBlockIdx() != 3);
      SyncAll();
    }
    """
    for _ in range(5):
        with pytest.raises(KernelFault, match="assertion failed") as caught:
            compile_kernel(body)(np.zeros(1, dtype=np.int32), block_dim=6)
        assert caught.value.block == 3


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("CrossCoreSetFlag<0, PIPE_V>(16);", "flag id 16 is not one of 0 to 15"),
        ("CrossCoreSetFlag<2, PIPE_V>(1);", "this kernel's blocks have one"),
        ("for (int i = 0; i < 16; ++i) CrossCoreSetFlag<0, PIPE_V>(1);", "16 times without a wait"),
        ("CrossCoreWaitFlag(5);", "for CrossCoreWaitFlag 5 at"),
        ("CrossCoreSetFlag<0, PIPE_V>(256);", "flag ids are 0 to 15"),
        ("CrossCoreSetFlag<0, PIPE_S>(1);", "pipe S cannot set a flag"),
        ("CrossCoreSetFlag<0, PIPE_ALL>(1);", "pipe ALL cannot set a flag"),
        ("CrossCoreSetFlag<4, PIPE_V>(1);", "CrossCoreSetFlag: mode 4"),
    ],
)
def test_a_flag_used_outside_its_rules_faults(compile_kernel, call, text) -> None:
    body = f'extern "C" __global__ __aicore__ void kernel(GM_ADDR y) {{ (void)y; {call} }}'
    with pytest.raises(KernelFault, match=text):
        compile_kernel(body)(np.zeros(1, dtype=np.int32))


def test_the_vector_cores_flag_is_not_the_cube_cores(compile_kernel) -> None:
    body = """
    extern "C" __global__ __aicore__ void kernel(GM_ADDR y) {
      (void)y;
      CrossCoreSetFlag<1, PIPE_MTE3>(1);
      CrossCoreWaitFlag(1);
    }
    """
    with pytest.raises(KernelFault, match="mode 1 orders the vector cores"):
        compile_kernel(body, mode="Mix12")(np.zeros(1, dtype=np.int32))


def test_a_core_that_is_far_ahead_waits_for_room_in_the_counter(compile_kernel) -> None:
    body = """
    extern "C" __global__ __aicore__ void kernel(GM_ADDR y) {
      GlobalTensor<int32_t> out;
      out.SetGlobalBuffer((__gm__ int32_t*)y);
      for (int i = 0; i < 40; ++i) {
        if ASCEND_IS_AIC {
          CrossCoreSetFlag<2, PIPE_FIX>(3);
        } else {
          CrossCoreWaitFlag(3);
          out.SetValue(8 * GetSubBlockIdx(), out.GetValue(8 * GetSubBlockIdx()) + 1);
        }
      }
    }
    """
    y = np.zeros(16, dtype=np.int32)
    compile_kernel(body, mode="Mix12")(y)
    assert y[0] == y[8] == 40


MATMUL_LEAKY_RELU = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR workspace, GM_ADDR c) {
  constexpr int kRows = 32, kColumns = 64, kDepth = 32;
  const int block = ASCEND_IS_AIC ? GetBlockIdx() : GetBlockIdx() / GetSubBlockNum();
  GlobalTensor<float> product;
  product.SetGlobalBuffer((__gm__ float*)GetUserWorkspace(workspace) + block * kRows * kColumns, kRows * kColumns);
  if ASCEND_IS_AIC {
    GlobalTensor<half> aGm, bGm;
    aGm.SetGlobalBuffer((__gm__ half*)a + block * kRows * kDepth);
    bGm.SetGlobalBuffer((__gm__ half*)b);
    LocalTensor<half> a1(TPosition::A1, 0, kRows * kDepth), b1(TPosition::B1, 4096, kDepth * kColumns);
    LocalTensor<half> a2(TPosition::A2, 0, kRows * kDepth), b2(TPosition::B2, 0, kDepth * kColumns);
    LocalTensor<float> co(TPosition::CO1, 0, kRows * kColumns);
    DataCopy(a1, aGm, Nd2NzParams(1, kRows, kDepth, 0, kDepth, kRows, 1, 0));
    DataCopy(b1, bGm, Nd2NzParams(1, kDepth, kColumns, 0, kColumns, kDepth, 1, 0));
    SetFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_MTE1>(EVENT_ID0);
    for (int i = 0; i < kRows / 16; ++i) {
      LoadData(a2[i * 16 * kDepth], a1[i * 256], LoadData2DParams(0, kDepth / 16, kRows / 16, 0, 0, false, 0));
    }
    for (int i = 0; i < kDepth / 16; ++i) {
      LoadData(b2[i * 16 * kColumns], b1[i * 256], LoadData2DParams(0, kColumns / 16, kDepth / 16, 0, 0, true, 0));
    }
    SetFlag<HardEvent::MTE1_M>(EVENT_ID0);
    WaitFlag<HardEvent::MTE1_M>(EVENT_ID0);
    Mmad(co, a2, b2, MmadParams(kRows, kColumns, kDepth, 3, false, true));
    Fixpipe(product, co, FixpipeParamsV220(kColumns, kRows, kRows, kColumns, false, NoQuant, 0, 1, 0, 0, 3));
    CrossCoreSetFlag<2, PIPE_FIX>(7);
  }
  if ASCEND_IS_AIV {
    const int mine = kRows / GetSubBlockNum() * kColumns, at = GetSubBlockIdx() * mine;
    GlobalTensor<float> cGm;
    cGm.SetGlobalBuffer((__gm__ float*)c + block * kRows * kColumns);
    LocalTensor<float> tile(TPosition::VECCALC, 0, mine);
    CrossCoreWaitFlag(7);
    DataCopy(tile, product[at], mine);
    SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
    WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
    LeakyRelu(tile, tile, 0.25f, mine);
    SetFlag<HardEvent::V_MTE3>(EVENT_ID0);
    WaitFlag<HardEvent::V_MTE3>(EVENT_ID0);
    DataCopy(cGm[at], tile, mine);
  }
}
"""


ALL_WAIT = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR words) {
  GlobalTensor<int32_t> workspace;
  workspace.SetGlobalBuffer((__gm__ int32_t*)words, 8 * GetBlockNum());
  LocalTensor<int32_t> local(TPosition::VECIN, 0, %(local)s);
  (void)workspace, (void)local;
  %(call)s
}
"""


@pytest.mark.sampled(2)
# All of these passed with any number of blocks, though on the chip the last ones never start.
@pytest.mark.parametrize(
    ("call", "mode", "at_once"),
    [
        ("SyncAll();", "Vector", 48),
        ("SyncAll(workspace, local);", "Vector", 48),
        ("SyncAll<false>();", "Mix12", 24),
        ("SyncAll<false>();", "Mix11", 24),
        ("CrossCoreSetFlag<0, PIPE_MTE3>(1); CrossCoreWaitFlag(1);", "Vector", 48),
        (
            "if (GetBlockIdx() > 0) IBWait(workspace, local, GetBlockIdx() - 1, 0); "
            "IBSet(workspace, local, GetBlockIdx(), 0);",
            *("Vector", 48),
        ),
        ("WaitPreBlock(workspace, local); NotifyNextBlock(workspace, local);", "Vector", 48),
    ],
)
def test_blocks_that_wait_for_each_other_must_run_at_the_same_time(
    compile_kernel, call, mode, at_once
) -> None:
    kernel = compile_kernel(ALL_WAIT % {"call": call, "local": "8 * GetBlockNum() + 8"}, mode)
    kernel(np.zeros(8 * at_once, np.int32), block_dim=at_once)
    with pytest.raises(KernelFault, match=f"of which this chip runs {at_once} at a time") as caught:
        kernel(np.zeros(8 * at_once + 8, np.int32), block_dim=at_once + 1)
    assert caught.value.category == "Deadlock"


def test_a_barrier_with_cube_cores_hangs_where_there_are_none(compile_kernel) -> None:
    kernel = compile_kernel(ALL_WAIT % {"call": "SyncAll<false>();", "local": "8"})
    # It used to pass as a barrier of vector cores; the page says that it hangs.
    with pytest.raises(KernelFault, match="this kernel runs on vector cores alone") as caught:
        kernel(np.zeros(16, np.int32), block_dim=2)
    assert caught.value.category == "Deadlock"


SOFT = "SyncAll(workspace, local); SyncAll(workspace, local);"


def test_the_software_barrier_wants_a_workspace_of_zeros(compile_kernel, threads) -> None:
    kernel = compile_kernel(ALL_WAIT % {"call": SOFT, "local": "8 * GetBlockNum()"})
    words = np.zeros(64, np.int32)
    kernel(words, block_dim=8)
    # It used to be looked at by nobody: cores that find old signals do not wait for new ones.
    np.testing.assert_array_equal(words.reshape(8, 8)[:, 0], 1)
    for content in (words, np.eye(1, 64, 63, dtype=np.int32)[0]):
        with pytest.raises(KernelFault, match="must be zeros before the first signal") as caught:
            kernel(content, block_dim=8)
        assert caught.value.category == "IllegalOperand"


@pytest.mark.parametrize(("words", "local"), [(56, "64"), (64, "56")])
def test_the_software_barrier_wants_32_bytes_a_block(compile_kernel, words, local) -> None:
    kernel = compile_kernel(ALL_WAIT % {"call": SOFT, "local": local})
    with pytest.raises(KernelFault, match="SyncAll") as caught:
        kernel(np.zeros(words, np.int32), block_dim=8)
    assert caught.value.category == "OutOfBounds"


@pytest.mark.parametrize(
    ("call", "least"),
    [
        ("IBSet(workspace, local, 0, 0);", 8),
        ("WaitPreBlock(workspace, local); NotifyNextBlock(workspace, local);", 16),
    ],
)
def test_flags_between_blocks_want_room_in_local_memory(compile_kernel, call, least) -> None:
    compile_kernel(ALL_WAIT % {"call": call, "local": f"{least}"})(np.zeros(8, np.int32))
    with pytest.raises(KernelFault) as caught:
        compile_kernel(ALL_WAIT % {"call": call, "local": f"{least - 8}"})(np.zeros(8, np.int32))
    assert caught.value.category == "OutOfBounds"


def test_a_flag_between_blocks_starts_as_zero(compile_kernel) -> None:
    flags = np.zeros(8 * 17, np.int32)
    flags[8] = 1
    with pytest.raises(KernelFault, match="must be zeros before the first signal, and byte 32"):
        compile_kernel(CHAIN)(flags, np.zeros(1, np.int32), block_dim=16)


@pytest.mark.parametrize("mode", ["Mix11", "Mix12"])
def test_vector_cores_take_a_product_through_the_workspace(compile_kernel, threads, mode) -> None:
    generator = np.random.default_rng(3)
    a = generator.integers(-8, 9, (4 * 32, 32)).astype(np.float16)
    b = generator.integers(-8, 9, (32, 64)).astype(np.float16)
    c = np.zeros((4 * 32, 64), np.float32)
    workspace = np.zeros(32 * 1024 * 1024, np.uint8)
    compile_kernel(MATMUL_LEAKY_RELU, mode=mode)(a, b, workspace, c, block_dim=4)
    product = a.astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(c, np.where(product > 0, product, product / 4))
