"""Names from behind the documented API do what public kernels use them for, like the function that each stands for."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

ADDRESSES = """
template <typename T>
__aicore__ inline void transpose(GM_ADDR x, GM_ADDR y) {
  LocalTensor<T> source(TPosition::VECIN, 0, 256), result(TPosition::VECOUT, 8192, 256);
  __ubuf__ T* from = (__ubuf__ T*)source.GetPhyAddr();
  __ubuf__ T* to = (__ubuf__ T*)result.GetPhyAddr();
  __ubuf__ T *sources[16], *results[16];
  for (int i = 0; i < 16; ++i) {
    sources[i] = from + i * 16;
    results[i] = to + i * 16;
  }
  DataCopyPadExtParams<T> padding{true, 0, 0, 0};
  DataCopyPadGm2UBImpl(from, (__gm__ T*)x, DataCopyExtParams{16, 30, 0, 0, 0}, padding);
  SetFlag<HardEvent::MTE2_V>(0);
  WaitFlag<HardEvent::MTE2_V>(0);
  TransDataTo5HDParams params;
  TransDataTo5HDImpl(results, sources, params);
  SetFlag<HardEvent::V_MTE3>(0);
  WaitFlag<HardEvent::V_MTE3>(0);
  static_assert(ONE_BYTE_BIT_SIZE == 8 && DROPOUT_MODE_BYTE_MISALIGN == 1 && DROPOUT_MODE_BIT_MISALIGN == 4, "");
  const uint16_t sizes[2] = {8, 256};
  uint16_t copied[2];
  copy_data_align64((uint8_t*)copied, (uint8_t*)sizes, sizeof(copied));
  DataCopyUB2GMImpl((__gm__ T*)y, to, {1, copied[0], 0, 0});
  DataCopyPadUB2GMImpl((__gm__ T*)y + 128, to + 128, DataCopyExtParams{1, copied[1], 0, 0, 0});
}
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) { transpose<half>(x, y); }
"""


def test_copies_and_the_transpose_of_addresses_move_what_those_of_tensors_do(
    compile_kernel,
) -> None:
    x = np.arange(16 * 15, dtype=np.float16).reshape(16, 15)
    y = np.zeros((16, 16), np.float16)
    compile_kernel(ADDRESSES)(x, y)
    np.testing.assert_array_equal(y[:15], x.T)
    np.testing.assert_array_equal(y[15], 0)


def test_a_copy_of_addresses_beyond_the_memory_is_a_fault(compile_kernel) -> None:
    beyond = ADDRESSES.replace("DataCopyExtParams{16, 30, 0, 0, 0}", "{16, 30, 0, 700, 0}")
    with pytest.raises(KernelFault, match="DataCopyPad writes"):
        compile_kernel(beyond)(np.zeros(256, np.float16), np.zeros(256, np.float16))


CONSTANT = """
const __gm__ int32_t TABLE[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16};
extern "C" __global__ __aicore__ void kernel(GM_ADDR y) {
  GlobalTensor<int32_t> in, out;
  in.SetGlobalBuffer((__gm__ int32_t*)TABLE, 16);
  out.SetGlobalBuffer((__gm__ int32_t*)y, 16);
  OOMCheckAddrRange(in.GetPhyAddr(), 64);
  LocalTensor<int32_t> local(TPosition::VECIN, 0, 16);
  %s
}
"""


def test_constants_of_a_kernel_lie_in_global_memory(compile_kernel) -> None:
    y = np.zeros(16, np.int32)
    compile_kernel(
        CONSTANT % "DataCopy(local, in, 16); PipeBarrier<PIPE_ALL>();"
        " local.SetValue(0, in.GetValue(15)); PipeBarrier<PIPE_ALL>(); DataCopy(out, local, 16);"
    )(y)
    np.testing.assert_array_equal(y, [16, *range(2, 17)])


def test_writing_to_a_constant_is_a_fault(compile_kernel) -> None:
    run = compile_kernel(CONSTANT % "Duplicate(local, 1, 16); DataCopy(in, local, 16);")
    with pytest.raises(KernelFault, match="DataCopy writes 64 bytes of global memory"):
        run(np.zeros(16, np.int32))


def test_the_bits_of_a_number_are_those_that_memory_would_hold(compile_kernel) -> None:
    run = compile_kernel("""
    extern "C" __global__ __aicore__ void kernel(GM_ADDR y) {
      __gm__ uint64_t* out = (__gm__ uint64_t*)y;
      out[0] = GetScalarBitcodeValue(half(-2));
      out[1] = GetScalarBitcodeValue(-2.0f);
      out[2] = GetScalarBitcodeValue(int16_t(-2));
      SetSyncBaseAddr(out[0]);
      PRELOAD(4);
      out[3] = BRCB_BROADCAST_NUMBER * HALF_FACTOR + EIGHT * SIXTEEN;
      out[4] = SYNC_AIC_FLAG >= 11 && SYNC_AIC_AIV_FLAG <= 14 && SYNC_AIC_FLAG != SYNC_AIC_AIV_FLAG;
    }
    """)
    y = np.zeros(5, np.uint64)
    run(y)
    assert [int(value) for value in y] == [0xC000, 0xC0000000, 0xFFFE, 16 + 8 * 16, 1]


BURSTS = """
template <typename T>
__aicore__ inline void carry(GM_ADDR a, GM_ADDR b, GM_ADDR c, bool isNd) {
  constexpr uint16_t M = 20, N = 32, K = 16;
  GlobalTensor<half> left, right;
  GlobalTensor<T> out;
  left.SetGlobalBuffer((__gm__ half*)a);
  right.SetGlobalBuffer((__gm__ half*)b);
  out.SetGlobalBuffer((__gm__ T*)c);
  LocalTensor<half> a1(TPosition::A1, 0, 32 * K), b1(TPosition::B1, 8192, K * N);
  LocalTensor<half> a2(TPosition::A2, 0, 32 * K), b2(TPosition::B2, 0, K * N);
  LocalTensor<float> co(TPosition::CO1, 0, 32 * N);
  DataCopy(a1, left, 32 * K);
  DataCopy(b1, right, K * N);
  PipeBarrier<PIPE_ALL>();
  const uint8_t padding[4] = {0, 0, 0, 0};
  Load3DSetFMatrixCal(1, 32, padding);
  LoadData3DParamsV2Pro image(K, false, false, false, false, false, uint64_t(32) << 16 | K, 1 | 1 << 8 | 1 << 16 |
                              uint64_t(1) << 24 | uint64_t(1) << 32 | uint64_t(1) << 40);
  LoadDataImpl(a2, a1, image);
  LoadDataImpl(b2, b1, LoadData2DParams(0, 2, 1, 0, 0, true, 0));
  PipeBarrier<PIPE_ALL>();
  MmadParams product;
  product.m = M;
  product.n = N;
  product.k = K;
  MmadImpl(co, a2, b2, product);
  PipeBarrier<PIPE_ALL>();
  FixpipeParams<float> params(N / 16, M * 16 * sizeof(float) / 32, 0, isNd ? N + 4 : 3);
  params.quantParams = {sizeof(T) == 2 ? QuantMode_t::F322F16 : QuantMode_t::NoQuant};
  params.nz2ndParams = {isNd, 1, 0, 0, uint16_t(isNd ? N - 2 : 0)};
  Fixpipe(out, co, params);
  PipeBarrier<PIPE_ALL>();
}
extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR c, GM_ADDR d, GM_ADDR e) {
  carry<half>(a, b, c, true);
  carry<half>(a, b, d, false);
  carry<float>(a, b, e, false);
}
"""


def test_fixpipe_of_bursts_carries_rows_and_columns_of_matrices_that_fill_no_fractal(
    compile_kernel,
) -> None:
    generator = np.random.default_rng(1)
    a = generator.integers(-4, 5, (32, 16)).astype(np.float16)
    b = generator.integers(-4, 5, (16, 32)).astype(np.float16)
    b_fractals = np.ascontiguousarray(b.reshape(16, 2, 16).transpose(1, 0, 2))
    rows = np.full((20, 36), -1, np.float16)
    halves = np.full((2, 23, 16), -1, np.float16)
    singles = np.full((2, 20 * 16 + 24), -1, np.float32)
    compile_kernel(BURSTS, mode="Cube")(a, b_fractals, rows, halves, singles)
    product = a[:20].astype(np.float32) @ b.astype(np.float32)
    np.testing.assert_array_equal(rows[:, :30], product[:, :30])
    assert (rows[:, 30:] == -1).all()
    for column in range(2):
        part = product[:, 16 * column : 16 * column + 16]
        np.testing.assert_array_equal(halves[column, :20], part)
        np.testing.assert_array_equal(singles[column, :320].reshape(20, 16), part)
    # Three data blocks between the columns stay as they were.
    assert (halves[0, 20:] == -1).all()
    assert (singles[0, 320:] == -1).all()


GROUPS = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  GlobalTensor<float> in, out;
  in.SetGlobalBuffer((__gm__ float*)x);
  out.SetGlobalBuffer((__gm__ float*)y);
  LocalTensor<float> source(TPosition::VECIN, 0, 192), result(TPosition::VECOUT, 4096, 48);
  __ubuf__ float* from = (__ubuf__ float*)source.GetPhyAddr();
  __ubuf__ float* to = (__ubuf__ float*)result.GetPhyAddr();
  DataCopy(source, in, 192);
  PipeBarrier<PIPE_ALL>();
  AscendCUtils::SetMaskCount<float>();
  SetVectorMask<float, MaskMode::COUNTER>(0, 192);
  BlockReduceMaxIntrinsicsImpl(to, from, 1, 1, 1, 8);
  BlockReduceSumIntrinsicsImpl(to + 24, from, 1, 1, 1, 8);
  AscendCUtils::SetMaskNorm<float>();
  ResetMask();
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, result, 48);
}
"""


def test_reductions_of_addresses_take_the_mask_that_is_set(compile_kernel) -> None:
    x = np.random.default_rng(1).integers(-99, 99, (24, 8)).astype(np.float32)
    y = np.zeros(48, np.float32)
    compile_kernel(GROUPS)(x, y)
    np.testing.assert_array_equal(y, [*x.max(1), *x.sum(1)])
