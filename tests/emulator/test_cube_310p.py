"""The matrix side of Ascend310P, whose one core has cube and vector unit: L0C goes to UB."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from opkit.emulator import _emulator
from opkit.errors import BuildError, KernelFault

KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c) {
  constexpr int kRows = 32, kColumns = 48, kDepth = 64;
  GlobalTensor<half> aGm, bGm;
  GlobalTensor<float> biasGm, cGm;
  aGm.SetGlobalBuffer((__gm__ half*)a);
  bGm.SetGlobalBuffer((__gm__ half*)b);
  biasGm.SetGlobalBuffer((__gm__ float*)bias);
  cGm.SetGlobalBuffer((__gm__ float*)c);
  TPipe pipe;
  TQue<TPosition::A1, 1> a1Queue;
  TQue<TPosition::B1, 1> b1Queue;
  TQue<TPosition::A2, 1> a2Queue;
  TQue<TPosition::B2, 1> b2Queue;
  TQue<TPosition::CO1, 1> co1Queue;
  TQue<TPosition::CO2, 1> co2Queue;
  TBuf<TPosition::VECCALC> biasBuffer;
  pipe.InitBuffer(a1Queue, 1, kRows * kDepth * 2);
  pipe.InitBuffer(b1Queue, 1, kDepth * kColumns * 2);
  pipe.InitBuffer(a2Queue, 1, kRows * kDepth * 2);
  pipe.InitBuffer(b2Queue, 1, kDepth * kColumns * 2);
  pipe.InitBuffer(co1Queue, 1, kRows * kColumns * 4);
  pipe.InitBuffer(co2Queue, 1, kRows * kColumns * 4);
  pipe.InitBuffer(biasBuffer, kColumns * 4);
  LocalTensor<half> a1 = a1Queue.AllocTensor<half>(), b1 = b1Queue.AllocTensor<half>();
  DataCopy(a1, aGm, kRows * kDepth);
  DataCopy(b1, bGm, kDepth * kColumns);
  LocalTensor<float> biasLocal = biasBuffer.Get<float>();
  DataCopy(biasLocal, biasGm, kColumns);
  a1Queue.EnQue(a1);
  b1Queue.EnQue(b1);
  a1 = a1Queue.DeQue<half>();
  b1 = b1Queue.DeQue<half>();
  LocalTensor<half> a2 = a2Queue.AllocTensor<half>(), b2 = b2Queue.AllocTensor<half>();
  LoadData(a2, a1, LoadData2DParams(0, kRows * kDepth / 256, 1, 0, 0, false, 0));
  LoadData(b2, b1, LoadData2DParams(0, kDepth * kColumns / 256, 1, 0, 0, false, 0));
  a2Queue.EnQue(a2);
  b2Queue.EnQue(b2);
  a2 = a2Queue.DeQue<half>();
  b2 = b2Queue.DeQue<half>();
  LocalTensor<float> co1 = co1Queue.AllocTensor<float>();
  SetFlag<HardEvent::MTE2_V>(EVENT_ID0);
  WaitFlag<HardEvent::MTE2_V>(EVENT_ID0);
  for (int column = 0; column < kColumns / 16; ++column) {
    BroadCastVecToMM(co1[column * kRows * 16], biasLocal[column * 16], 1, 1, 0, 0);
    BroadCastVecToMM(co1[column * kRows * 16 + 256], biasLocal[column * 16], 1, 1, 0, 0);
  }
  SetFlag<HardEvent::V_M>(EVENT_ID0);
  WaitFlag<HardEvent::V_M>(EVENT_ID0);
  Mmad(co1, a2, b2, MmadParams(kRows, kColumns, kDepth, 0, false, false));
  co1Queue.EnQue(co1);
  co1 = co1Queue.DeQue<float>();
  LocalTensor<float> co2 = co2Queue.AllocTensor<float>();
  DataCopyEnhancedParams enhanced;
  enhanced.blockMode = BlockMode::BLOCK_MODE_MATRIX;
  DataCopy(co2, co1, DataCopyParams(1, kRows * kColumns / 256, 0, 0), enhanced);
  co2Queue.EnQue(co2);
  co2 = co2Queue.DeQue<float>();
  DataCopy(cGm, co2, Nz2NdParamsFull(1, kRows, kColumns, 1, kRows, kColumns, 1));
  co1Queue.FreeTensor(co1);
  co2Queue.FreeTensor(co2);
  a1Queue.FreeTensor(a1);
  b1Queue.FreeTensor(b1);
  a2Queue.FreeTensor(a2);
  b2Queue.FreeTensor(b2);
}
"""

FIXPIPE = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR c) {
  GlobalTensor<float> cGm;
  cGm.SetGlobalBuffer((__gm__ float*)c);
  LocalTensor<float> co(TPosition::CO1, 0, 256);
  Fixpipe(cGm, co, FixpipeParamsV220(16, 16, 16, 16, false));
}
"""


@pytest.fixture(autouse=True)
def chip() -> None:
    _emulator.configure(**{**_emulator.configuration(), "chip": "Ascend310P3"})


def test_a_product_leaves_through_ub(compile_kernel: Callable[..., object]) -> None:
    m, n, k = 32, 48, 64
    generator = np.random.default_rng(5)
    a = generator.integers(-8, 9, (m, k)).astype(np.float16)
    b = generator.integers(-8, 9, (k, n)).astype(np.float16)
    bias = generator.integers(-99, 99, n).astype(np.float32)
    a_memory = np.ascontiguousarray(a.reshape(m // 16, 16, k // 16, 16).transpose(0, 2, 1, 3))
    b_memory = np.ascontiguousarray(b.reshape(k // 16, 16, n // 16, 16).transpose(0, 2, 3, 1))
    c = np.zeros((m, n), np.float32)
    compile_kernel(KERNEL, arch=2002)(a_memory, b_memory, bias, c)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32) + bias)


def test_the_chip_has_no_fixpipe(compile_kernel: Callable[..., object]) -> None:
    with pytest.raises(KernelFault, match="Fixpipe does not exist on Ascend310P3"):
        compile_kernel(FIXPIPE, arch=2002)(np.zeros((16, 16), np.float32))


NARROWED = """
template <typename T>
__aicore__ inline void narrowed(LocalTensor<half> dst, LocalTensor<int32_t> src) {
  DataCopy(dst, src, DataCopyParams(1, 1, 0, 0),
           DataCopyEnhancedParams{BlockMode::BLOCK_MODE_MATRIX, DeqScale::VDEQ16});
}
extern "C" __global__ __aicore__ void kernel(GM_ADDR c) {
  LocalTensor<int32_t> co(TPosition::CO1, 0, 256);
  LocalTensor<half> dst(TPosition::CO2, 0, 256);
  narrowed<half>(dst, co);
}
"""


def test_a_copy_that_changes_the_type_is_refused_by_name(
    compile_kernel: Callable[..., object],
) -> None:
    # Templates that have it for this chip did not compile, though nobody calls them on others.
    with pytest.raises(KernelFault, match="opkit has none that changes the type"):
        compile_kernel(NARROWED, arch=2002)(np.zeros(1, np.float32))


PARAMETERS = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR numbers) {
  __gm__ int32_t* p = (__gm__ int32_t*)numbers;
  LocalTensor<half> a2(TPosition::A2, 0, 256), b2(TPosition::B2, 0, 256);
  LocalTensor<float> co(TPosition::CO1, 0, 256), bias(TPosition::C2, 1024, 256);
  LocalTensor<half> half_result(TPosition::CO1, 0, 256);
  LocalTensor<float> staged(TPosition::C1, 0, 16);
  MmadParams params(16, 16, 16, 0, false, true);
  if (p[0] == 0) params.unitFlag = 3;
  if (p[0] == 1) params.kDirectionAlign = true;
  if (p[0] == 2) params.cmatrixInitVal = false, params.cmatrixSource = true;
  if (p[0] == 3) return Mmad(co, a2, b2, bias, params);
  if (p[0] == 4) return Mmad(half_result, a2, b2, params);
  if (p[0] == 5) {  // C1 lies in UB, C2 in L0C
    Duplicate(staged, 1.0f, 16);
    return BroadCastVecToMM(bias, staged, 1, 1, 0, 0);
  }
  Mmad(co, a2, b2, params);
}
"""


@pytest.fixture(scope="module")
def with_parameters(compile_kernel: Callable[..., object]) -> Callable[..., object]:
    return compile_kernel(PARAMETERS, arch=2002)


@pytest.mark.parametrize(
    ("case", "text"),
    [
        (0, "Ascend310P3 has no unitFlag"),
        (1, "Ascend310P3 has no kDirectionAlign"),
        (2, "Ascend310P3 has no bias table"),
        (3, "this chip has no form with a bias"),
        (4, "Mmad from half to half"),
    ],
)
def test_the_chip_says_what_a_product_cannot_ask_of_it(
    with_parameters: Callable[..., object], case: int, text: str
) -> None:
    with pytest.raises(KernelFault, match=text):
        with_parameters(np.array([case], np.int32))


def test_positions_lie_in_this_chips_memories(with_parameters: Callable[..., object]) -> None:
    with_parameters(np.array([5], np.int32))


V1 = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR) {
  LocalTensor<half> a1(TPosition::A1, 0, 256), a2(TPosition::A2, 0, 256);
  LoadData3DParamsV1<half> params;
  params.c1Index = 1;
  LoadData(a2, a1, params);
}
"""


def test_the_first_form_of_image_loads_is_refused_by_its_name(
    compile_kernel: Callable[..., object],
) -> None:
    with pytest.raises(BuildError) as refused:
        compile_kernel(V1, arch=2002)
    assert "LoadData with LoadData3DParamsV1: opkit lacks it" in str(refused.value.diagnostics)
