"""LoadData of fractals and LoadDataWithTranspose: every byte that they put into L0A, L0B and L1, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from opkit.errors import KernelFault

# Any bytes of L0A are read by taking them for int8_t and multiplying by the identity in L0B, and the other way round.
KERNEL = """
constexpr int kFractals = 24;

template <typename T, typename Load>
inline void load(GM_ADDR source, GM_ADDR identity, GM_ADDR out, __gm__ int32_t* p, Load&& fill) {
  const bool isLeft = p[0] == 0;
  GlobalTensor<int8_t> sourceGm, identityGm;
  GlobalTensor<int32_t> outGm;
  sourceGm.SetGlobalBuffer((__gm__ int8_t*)source, kFractals * 512);
  identityGm.SetGlobalBuffer((__gm__ int8_t*)identity, 1024);
  outGm.SetGlobalBuffer((__gm__ int32_t*)out, kFractals * 512);
  LocalTensor<int8_t> bytes1(TPosition::A1, 0, kFractals * 512), identity1(TPosition::A1, 65536, 1024);
  LocalTensor<int8_t> a2(TPosition::A2, 0, kFractals * 512), b2(TPosition::B2, 0, kFractals * 512);
  LocalTensor<half> cleared(isLeft ? TPosition::A2 : TPosition::B2, 0, kFractals * 256);
  LocalTensor<int32_t> co(TPosition::CO1, 0, 512);
  DataCopy(bytes1, sourceGm, kFractals * 512);
  DataCopy(identity1, identityGm, 1024);
  Fill(cleared, InitConstValueParams<half>(1, kFractals, 0, half(0)));
  PipeBarrier<PIPE_ALL>();
  fill();
  const auto& other = isLeft ? b2 : a2;
  LoadData(other, identity1, LoadData2DParams(0, 2, 1, 0, 0, false, 0));
  PipeBarrier<PIPE_ALL>();
  for (int i = 0; i < kFractals; ++i) {
    if (isLeft) {  // 16 rows of 32 bytes
      Mmad(co, a2[i * 512], b2, MmadParams(16, 32, 32, 0, false, true));
      PipeBarrier<PIPE_ALL>();
      Fixpipe(outGm[i * 512], co, FixpipeParamsV220(32, 16, 16, 32, false));
    } else {  // 16 columns of 32 bytes
      Mmad(co, a2, b2[i * 512], MmadParams(32, 16, 32, 0, false, true));
      PipeBarrier<PIPE_ALL>();
      Fixpipe(outGm[i * 512], co, FixpipeParamsV220(16, 32, 32, 16, false));
    }
    PipeBarrier<PIPE_ALL>();
  }
}

template <typename T>
inline void run(GM_ADDR source, GM_ADDR identity, GM_ADDR out, __gm__ int32_t* p) {
  load<T>(source, identity, out, p, [&] {
    const int size = kFractals * 512 / sizeof(T) * (std::is_same_v<T, int4b_t> ? 2 : 1);
    LocalTensor<T> from(TPosition::A1, 0, size), to(p[0] == 0 ? TPosition::A2 : TPosition::B2, 0, size);
    if (p[1] == 0) return LoadData(to, from, LoadData2DParams(p[2], p[3], p[4], 0, p[5], p[8] != 0, p[7]));
    LoadDataWithTranspose(to, from, LoadData2dTransposeParams(p[2], p[3], p[4], p[5], p[6], p[7]));
  });
}

extern "C" __global__ __aicore__ void kernel(GM_ADDR source, GM_ADDR identity, GM_ADDR out, GM_ADDR numbers) {
  __gm__ int32_t* p = (__gm__ int32_t*)numbers;
  switch (p[9]) {
TYPES
  }
}
"""

BITS = {
    "int4b_t": 4,
    "int8_t": 8,
    "uint8_t": 8,
    "half": 16,
    "bfloat16_t": 16,
    "int16_t": 16,
    "uint16_t": 16,
    "float": 32,
    "int32_t": 32,
    "uint32_t": 32,
}
TRANSPOSED = tuple(name for name in BITS if name not in ("int16_t", "uint16_t"))
FRACTALS = 24
FRACTAL_BYTES = 512
SOURCE = np.random.default_rng(3).integers(0, 256, (FRACTALS, 16, 32), dtype=np.uint8)


@dataclass(frozen=True)
class Load:
    """One call. Distances as the public structures count them."""

    dtype: str
    is_left: bool = False
    turns: bool = False
    """LoadDataWithTranspose."""
    start: int = 0
    repeat: int = 1
    src_stride: int = 1
    dst_gap: int = 0
    fractal_gap: int = 0
    falls: bool = False
    """addrMode."""
    flips: bool = False
    """ifTranspose of LoadData."""

    @property
    def squares(self) -> int:
        """Fractals in what a repeat moves."""
        return {4: 4, 8: 2, 16: 1, 32: 2}[BITS[self.dtype]] if self.turns else 1


def elements_of(fractals: np.ndarray, bits: int) -> np.ndarray:
    """Return rows of 32 bytes as rows of elements, whose values only tell them apart."""
    if bits == 4:
        return np.stack([fractals & 15, fractals >> 4], axis=-1).reshape(*fractals.shape[:-1], 64)
    return fractals.view({8: np.uint8, 16: np.uint16, 32: np.uint32}[bits])


def bytes_of(elements: np.ndarray, bits: int) -> np.ndarray:
    """Return what `elements_of` took apart."""
    if bits == 4:
        return (elements[..., ::2] | elements[..., 1::2] << 4).astype(np.uint8)
    return np.ascontiguousarray(elements).view(np.uint8)


def transposed(fractals: np.ndarray, bits: int) -> np.ndarray:
    """Return the square that fractals of (16, 32) bytes make, transposed and cut up again."""
    parts = elements_of(fractals, bits)
    if bits == 32:  # two fractals of 16 x 8 side by side
        turned = np.concatenate(list(parts), axis=1).T
        return np.stack([bytes_of(turned[:, i : i + 8], bits) for i in (0, 8)])
    turned = np.ascontiguousarray(np.concatenate(list(parts)).T)
    return bytes_of(turned, bits).reshape(-1, 16, 32)


def expected_of(load: Load) -> np.ndarray:
    """Return all fractals of the buffer, (24, 16, 32) bytes."""
    result = np.zeros((FRACTALS, 16, 32), np.uint8)
    for repeat in range(load.repeat):
        square = load.start + repeat * load.src_stride * (-1 if load.falls else 1)
        fractals = SOURCE[square * load.squares : (square + 1) * load.squares]
        if load.turns or load.flips:
            fractals = transposed(fractals, BITS[load.dtype])
        for i, fractal in enumerate(fractals):
            result[repeat * (load.dst_gap + 1) + i * (load.fractal_gap + 1)] = fractal
    return result


@pytest.fixture(scope="module")
def run(compile_kernel: Callable[..., object]) -> Callable[[Load], np.ndarray]:
    """Return all fractals of the buffer that a load leaves, (24, 16, 32) bytes."""
    cases = []
    for index, name in enumerate(BITS):
        body = f"run<{name}>(source, identity, out, p)"
        if name not in TRANSPOSED:
            body = f"if (p[1] == 0) {body.replace('run<', 'plain<')}"
        cases.append(f"    case {index}: {body}; break;")
    plain = KERNEL[KERNEL.index("template <typename T>\ninline void run") :]
    plain = plain[: plain.index("extern")].replace("inline void run", "inline void plain")
    lines = [line for line in plain.splitlines() if "LoadDataWithTranspose" not in line]
    text = KERNEL.replace("TYPES", "\n".join(cases))
    text = text.replace('extern "C"', "\n".join(lines) + '\n\nextern "C"')
    kernel = compile_kernel(text, mode="Cube")

    def load(way: Load) -> np.ndarray:
        unit = np.eye(32, dtype=np.int8).reshape(2, 16, 32)
        out = np.zeros(FRACTALS * FRACTAL_BYTES, np.int32)
        numbers = [not way.is_left, way.turns, way.start, way.repeat, way.src_stride, way.dst_gap]
        numbers += [way.fractal_gap, way.falls, way.flips, list(BITS).index(way.dtype)]
        kernel(SOURCE, unit, out, np.array(numbers, np.int32))
        got = out.astype(np.int8).view(np.uint8)
        if way.is_left:
            return got.reshape(FRACTALS, 16, 32)
        # C holds the bytes of a column below one another.
        return got.reshape(FRACTALS, 32, 16).transpose(0, 2, 1)

    return load


LOADS = [
    *(Load(name, is_left, repeat=3) for name in BITS for is_left in (True, False)),
    Load("half", start=2, repeat=4, src_stride=3, dst_gap=2),
    Load("float", True, start=9, repeat=4, src_stride=2, falls=True),
    Load("int8_t", repeat=3, src_stride=0),
    Load("half", repeat=0),
    *(
        Load(name, is_left, repeat=3, flips=True, dst_gap=1)
        for name in ("half", "bfloat16_t", "int16_t", "uint16_t")
        for is_left in (True, False)
    ),
    *(
        Load(name, is_left, True, **distances)
        for name in TRANSPOSED
        for is_left in (True, False)
        if not (is_left and name == "int4b_t")
        for distances in (
            # The examples of the document: squares one behind another, or their fractals apart.
            {"repeat": 3, "dst_gap": 0 if BITS[name] == 16 else 7 if BITS[name] == 4 else 3},
            {"repeat": 3, "fractal_gap": 0 if BITS[name] == 16 else 2},
            {"start": 1, "repeat": 2, "src_stride": 2, "dst_gap": 5},
            {"start": 3, "repeat": 2, "dst_gap": 3, "falls": True},
        )
    ),
]


@pytest.mark.parametrize("way", LOADS, ids=str)
def test_a_load_leaves_the_bytes_that_the_document_says(
    run: Callable[[Load], np.ndarray], way: Load
) -> None:
    np.testing.assert_array_equal(run(way), expected_of(way))


@pytest.mark.parametrize(
    ("way", "text"),
    [
        (Load("int8_t", flips=True), "ifTranspose takes elements of 16 bits"),
        (Load("int4b_t", True, True), "int4b_t is transposed on the way to L0B only"),
        (Load("half", start=20, repeat=5), "reads bytes 12288..12800 of a buffer that has 12288"),
        (Load("half", repeat=8, dst_gap=20), "touches bytes 75264..75776 of L0B, which has 65536"),
        (Load("half", start=1, repeat=3, falls=True), "LoadData2D reads bytes -512..0 of a buffer"),
    ],
)
def test_a_load_that_cannot_be_faults(
    run: Callable[[Load], np.ndarray], way: Load, text: str
) -> None:
    with pytest.raises(KernelFault, match=text):
        run(way)
