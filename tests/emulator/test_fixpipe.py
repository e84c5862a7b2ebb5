"""Fixpipe and DataCopy from L0C: every quantisation, ReLU and layout, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from opkit.errors import KernelFault

# C = A * identity, so that C is what the test says; then one way out of L0C.
KERNEL = """
template <typename In, typename Acc, typename Out>
inline void carry(GM_ADDR a, GM_ADDR b, GM_ADDR parameters, GM_ADDR c, __gm__ int32_t* p) {
  constexpr int width = 32 / sizeof(In);
  const int m = p[0], n = p[1], k = p[2], mUp = (m + 15) / 16 * 16, nUp = (n + 15) / 16 * 16;
  GlobalTensor<In> aGm, bGm;
  GlobalTensor<uint64_t> parametersGm;
  GlobalTensor<Out> cGm;
  aGm.SetGlobalBuffer((__gm__ In*)a);
  bGm.SetGlobalBuffer((__gm__ In*)b);
  parametersGm.SetGlobalBuffer((__gm__ uint64_t*)parameters);
  cGm.SetGlobalBuffer((__gm__ Out*)c);
  LocalTensor<In> a1(TPosition::A1, 0, mUp * k), b1(TPosition::B1, 64 * 1024, nUp * k);
  LocalTensor<In> a2(TPosition::A2, 0, mUp * k), b2(TPosition::B2, 0, nUp * k);
  LocalTensor<uint64_t> parameters1(TPosition::C1, 256 * 1024, 64), parameters2(TPosition::C2PIPE2GM, 0, 64);
  LocalTensor<Out> c1(TPosition::C1, 300 * 1024, 8192);
  LocalTensor<Acc> co(TPosition::CO1, 0, mUp * nUp);
  DataCopy(a1, aGm, mUp * k);
  DataCopy(b1, bGm, nUp * k);
  DataCopy(parameters1, parametersGm, 64);
  PipeBarrier<PIPE_ALL>();
  LoadData(a2, a1, LoadData2DParams(0, mUp * k * sizeof(In) / 512, 1, 0, 0, false, 0));
  LoadData(b2, b1, LoadData2DParams(0, nUp * k * sizeof(In) / 512, 1, 0, 0, false, 0));
  DataCopy(parameters2, parameters1, DataCopyParams(1, 4, 0, 0));
  PipeBarrier<PIPE_ALL>();
  MmadParams product(m, n, k, p[9], false, true);
  Mmad(co, a2, b2, product);
  if (p[9] == 0) PipeBarrier<PIPE_ALL>();
  const auto mode = static_cast<QuantMode_t>(p[3]);
  const uint64_t scalar = ((__gm__ uint64_t*)parameters)[0];
  const bool isNd = p[4] != 0, isVector = p[5] != 0;
  SetSaturationFlag<SaturationMode::FLOAT>(p[13] != 0);
  if (p[6] != 0) {  // the older way
    DataCopyCO12DstParams params(n, m, p[7], mUp, mode, p[8], p[11] != 0, isNd);
    params.unitFlag = p[9];
    if (isVector) SetFixPipeConfig(parameters2);
    SetFixpipePreQuantFlag(scalar);
    SetNdParaImpl(1);
    DataCopy(cGm, co, params);
  } else {
    FixpipeParamsV220 params(n, m, mUp, p[7], p[8] != 0, mode, scalar, 1, 0, 0, p[9]);
    params.isChannelSplit = p[11] != 0;
    if (p[14] != 0) {  // configured before
      SetFixPipeConfig(parameters2);
      isNd ? Fixpipe(cGm, co, params) : Fixpipe<Out, Acc, CFG_NZ>(cGm, co, params);
    } else if (p[10] != 0) {  // through L1
      if constexpr (sizeof(Out) < 4) {
        isVector ? Fixpipe<Out, Acc, CFG_NZ>(c1, co, parameters1, params) : Fixpipe<Out, Acc, CFG_NZ>(c1, co, params);
        PipeBarrier<PIPE_ALL>();
        DataCopy(cGm, c1, mUp * nUp);
      }
    } else if (isNd) {
      isVector ? Fixpipe(cGm, co, parameters1, params) : Fixpipe(cGm, co, params);
    } else {
      isVector ? Fixpipe<Out, Acc, CFG_NZ>(cGm, co, parameters1, params) : Fixpipe<Out, Acc, CFG_NZ>(cGm, co, params);
    }
  }
  PipeBarrier<PIPE_ALL>();
}

extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR parameters, GM_ADDR c, GM_ADDR numbers) {
  __gm__ int32_t* p = (__gm__ int32_t*)numbers;
  switch (p[12]) {
    case 0: return carry<float, float, float>(a, b, parameters, c, p);
    case 1: return carry<float, float, half>(a, b, parameters, c, p);
    case 2: return carry<float, float, bfloat16_t>(a, b, parameters, c, p);
    case 3: return carry<float, float, int8_t>(a, b, parameters, c, p);
    case 4: return carry<float, float, uint8_t>(a, b, parameters, c, p);
    case 5: return carry<int8_t, int32_t, int32_t>(a, b, parameters, c, p);
    case 6: return carry<int8_t, int32_t, half>(a, b, parameters, c, p);
    case 7: return carry<int8_t, int32_t, int8_t>(a, b, parameters, c, p);
    default: return carry<int8_t, int32_t, uint8_t>(a, b, parameters, c, p);
  }
}
"""

KINDS = [
    ("f32", np.float32),
    ("f32", np.float16),
    ("f32", np.uint16),
    ("f32", np.int8),
    ("f32", np.uint8),
    ("s32", np.int32),
    ("s32", np.float16),
    ("s32", np.int8),
    ("s32", np.uint8),
]
"""Accumulator and result by kind; np.uint16 stands for the bits of bfloat16."""

M, N = 20, 32


@dataclass(frozen=True)
class Way:
    """One way out of L0C."""

    kind: int
    mode: int = 0
    """QuantMode_t."""
    is_nd: bool = True
    is_vector: bool = False
    is_by_registers: bool = False
    has_relu: bool = False
    unit_flag: int = 0
    is_through_l1: bool = False
    is_split: bool = False
    shift: int = 0
    """N of the parameters; 0: not shifted."""
    offset: int = 0
    scale: float = 0.75
    """Of scalar quantisation."""
    factor: int = 1
    """That C is multiplied by, so that it overflows."""
    saturates: bool = False
    is_configured: bool = False
    """By Fixpipe without a tensor, behind SetFixPipeConfig."""


def parameters_of(way: Way, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return quantisation parameters and the scales that they hold, ten bits of mantissa each."""
    scales = (
        np.linspace(0.25, 1.5, count, dtype=np.float32)
        if way.is_vector
        else np.float32([way.scale])
    )
    scales = np.resize(scales, count)
    bits = scales.view(np.uint32).astype(np.uint64)
    if way.shift > 0:
        bits |= np.uint64(1 << 36 | (way.shift - 1) << 32)
    bits |= np.uint64((way.offset & 0x1FF) << 37)
    if KINDS[way.kind][1] is np.int8:
        bits |= np.uint64(1 << 46)
    return bits, (scales.view(np.uint32) & 0xFFFFE000).view(np.float32)


def expected_of(way: Way, c: np.ndarray) -> np.ndarray:
    """Return the elements of C as they leave, (m, n)."""
    _, result = KINDS[way.kind]
    values = np.maximum(c, 0) if way.has_relu else c
    if way.mode == 0:
        return values.astype(result)
    if result is np.uint16:
        bits = values.astype(np.float32).view(np.uint32)
        return ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype(np.uint16)
    if way.mode == 1:
        with np.errstate(over="ignore"):
            halves = values.astype(np.float16)
        return np.clip(halves, -65504, 65504) if way.saturates else halves
    _, scales = parameters_of(way, c.shape[1])
    if way.shift > 0:
        values = np.clip(values.astype(np.int64) >> way.shift, -32768, 32767)
    scaled = values.astype(np.float32) * scales
    if result is np.float16:
        return np.clip(scaled, -65504, 65504).astype(np.float16)
    rounded = np.rint(np.clip(scaled, -256, 255)).astype(np.int64) + way.offset
    limits = np.iinfo(result)
    return np.clip(rounded, limits.min, limits.max).astype(result)


def laid_out(way: Way, values: np.ndarray) -> np.ndarray:
    """Return the elements as they lie in memory, rows of NZ columns padded to 32."""
    if way.is_nd:
        return values.ravel()
    width = 8 if way.is_split else 32 if values.itemsize == 1 else 16
    columns = np.zeros((values.shape[1] // width, 32, width), values.dtype)
    columns[:, : len(values)] = values.reshape(len(values), -1, width).transpose(1, 0, 2)
    return columns.ravel()


@pytest.fixture(scope="module")
def run(compile_kernel: Callable[..., object]) -> Callable[[Way], tuple[np.ndarray, np.ndarray]]:
    """Return the memory that a way leaves and what NumPy expects there."""
    kernel = compile_kernel(KERNEL, mode="Cube")

    def carry(way: Way) -> tuple[np.ndarray, np.ndarray]:
        accumulator, result = KINDS[way.kind]
        generator = np.random.default_rng(way.kind)
        dtype = np.float32 if accumulator == "f32" else np.int8
        width = 32 // np.dtype(dtype).itemsize
        k = 32
        a = np.zeros((32, k), dtype)
        a[:M] = (
            generator.uniform(-300, 300, (M, k))
            if accumulator == "f32"
            else generator.integers(-128, 128, (M, k))
        )
        b = np.zeros((k, N), dtype)
        np.fill_diagonal(b, way.factor if accumulator == "f32" else 5)
        c = a[:M].astype(np.float32 if accumulator == "f32" else np.int32) @ b.astype(
            np.float32 if accumulator == "f32" else np.int32
        )
        a_memory = a.reshape(2, 16, k // width, width).transpose(0, 2, 1, 3)
        b_memory = b.reshape(k // width, width, N // 16, 16).transpose(0, 2, 3, 1)
        wanted = laid_out(way, expected_of(way, c))
        size = wanted.itemsize
        stride = (
            N if way.is_nd else 32 * (8 if way.is_split else 16 if size > 1 else 32) * size // 32
        )
        memory = np.zeros(max(len(wanted), 32 * N), result)
        bits = np.resize(parameters_of(way, N)[0], 64)
        numbers = [M, N, k, way.mode, way.is_nd, way.is_vector, way.is_by_registers, stride]
        numbers += [way.has_relu, way.unit_flag, way.is_through_l1, way.is_split, way.kind]
        numbers += [way.saturates, way.is_configured]
        kernel(
            np.ascontiguousarray(a_memory),
            np.ascontiguousarray(b_memory),
            bits,
            memory,
            np.array(numbers, np.int32),
        )
        return memory[: len(wanted)], wanted

    return carry


WAYS = [
    *(
        Way(kind, is_nd=is_nd, has_relu=relu)
        for kind in (0, 5)
        for is_nd in (0, 1)
        for relu in (0, 1)
    ),
    Way(0, is_nd=False, is_split=True),
    *(Way(kind, mode, has_relu=relu) for kind, mode in ((1, 1), (2, 2)) for relu in (0, 1)),
    *(Way(1, 1, is_nd=False, is_through_l1=l1) for l1 in (0, 1)),
    *(
        Way(
            kind, mode + vector, is_vector=vector, has_relu=relu, offset=offset, is_by_registers=old
        )
        for kind, mode in ((3, 5), (4, 5), (7, 7), (8, 7))
        for vector, relu, offset, old in ((0, 0, 0, 0), (1, 0, 3, 1), (0, 1, -7, 1), (1, 1, 0, 0))
    ),
    *(
        Way(6, 3 + vector, is_vector=vector, is_by_registers=old)
        for vector in (0, 1)
        for old in (0, 1)
    ),
    *(Way(7, 7, shift=shift) for shift in (1, 3)),
    *(Way(kind, mode, is_nd=False, is_through_l1=True) for kind, mode in ((3, 5), (7, 7), (6, 3))),
    Way(3, 6, is_nd=False, is_through_l1=True, is_vector=True),
    Way(6, 4, is_vector=True, is_configured=True),
    *(Way(7, 8, is_nd=nd, is_vector=True, is_configured=True) for nd in (False, True)),
    Way(7, 7, is_configured=True),
    Way(0, unit_flag=3),
    *(Way(1, 1, factor=400, saturates=saturates) for saturates in (False, True)),
]


@pytest.mark.parametrize("way", WAYS, ids=str)
def test_a_result_leaves_l0c_as_asked(
    run: Callable[[Way], tuple[np.ndarray, np.ndarray]], way: Way
) -> None:
    got, wanted = run(way)
    if way.is_through_l1:
        # Rows that only pad lie in L1 as whoever was there before has left them.
        is_written = laid_out(way, np.ones((M, N), wanted.dtype)).astype(bool)
        got, wanted = got[is_written], wanted[is_written]
    np.testing.assert_array_equal(got, wanted)


@pytest.mark.parametrize(
    ("way", "text"),
    [
        (Way(1, 5), "quantPre 5 does not turn"),
        (Way(0, unit_flag=2), "no Mmad with unitFlag 3 has filled"),
        (Way(0, unit_flag=1), "unitFlag 1 is not 0, 2 or 3"),
        (Way(3, 5, scale=np.inf), "quantisation parameter 0x40007f800000 multiplies by inf"),
        (Way(6, 3, scale=1e-39), "multiplies by 9.9[0-9e-]*"),
    ],
)
def test_a_way_that_the_chip_does_not_have_faults(
    run: Callable[[Way], tuple[np.ndarray, np.ndarray]], way: Way, text: str
) -> None:
    with pytest.raises(KernelFault, match=text):
        run(way)


def test_a_few_rows_carried_out_empty_their_fractal(compile_kernel) -> None:
    """A product of 16 rows follows one of which 2 were needed, as public kernels of groups do."""
    kernel = compile_kernel("""
    extern "C" __global__ __cube__ void kernel(GM_ADDR a, GM_ADDR c) {
      GlobalTensor<half> aGm;
      GlobalTensor<float> cGm;
      aGm.SetGlobalBuffer((__gm__ half*)a);
      cGm.SetGlobalBuffer((__gm__ float*)c);
      LocalTensor<half> a1(TPosition::A1, 0, 256), a2(TPosition::A2, 0, 256), b2(TPosition::B2, 0, 256);
      LocalTensor<float> co(TPosition::CO1, 0, 256);
      DataCopy(a1, aGm, 256);
      PipeBarrier<PIPE_ALL>();
      LoadData(a2, a1, LoadData2DParams(0, 1, 1, 0, 0, false, 0));
      LoadData(b2, a1, LoadData2DParams(0, 1, 1, 0, 0, false, 0));
      PipeBarrier<PIPE_ALL>();
      for (int rows = 2; rows <= 16; rows += 14) {
        MmadParams product(16, 16, 16, 3, false, true);
        Mmad(co, a2, b2, product);
        Fixpipe(cGm, co, FixpipeParamsV220(16, rows, 16, 16, false, NoQuant, 0, 1, 0, 0, 3));
        PipeBarrier<PIPE_ALL>();
      }
    }
    """)
    a = np.eye(16, dtype=np.float16)
    c = np.zeros((16, 16), np.float32)
    kernel(a, c)
    np.testing.assert_array_equal(c, np.eye(16))
