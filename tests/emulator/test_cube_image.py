"""LoadData of images, Fill and LoadDataWithSparse: what they put into L0A and L0B, against NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
import pytest

from opkit.errors import KernelFault

# What lies in L0A or L0B is looked at by multiplying it with an identity in the other.
KERNEL = """
template <typename T, typename C, bool is_left>
inline void load(GM_ADDR image, GM_ADDR identity, GM_ADDR c, __gm__ int32_t* p) {
  GlobalTensor<T> imageGm, identityGm;
  GlobalTensor<C> cGm;
  imageGm.SetGlobalBuffer((__gm__ T*)image);
  identityGm.SetGlobalBuffer((__gm__ T*)identity);
  cGm.SetGlobalBuffer((__gm__ C*)c);
  const int m = p[0], n = p[1], k = p[2], imageSize = p[3], identitySize = p[4];
  LocalTensor<T> image1(TPosition::A1, 0, imageSize), identity1(TPosition::B1, 256 * 1024, identitySize);
  LocalTensor<T> a2(TPosition::A2, 0, 32 * 1024 / sizeof(T)), b2(TPosition::B2, 0, 32 * 1024 / sizeof(T));
  LocalTensor<C> co(TPosition::CO1, 0, 16 * 1024);
  DataCopy(image1, imageGm, imageSize);
  DataCopy(identity1, identityGm, identitySize);
  PipeBarrier<PIPE_ALL>();
  LoadData(is_left ? b2 : a2, identity1, LoadData2DParams(0, identitySize * sizeof(T) / 512, 1, 0, 0, false, 0));
  uint8_t pads[4];
  for (int i = 0; i < 4; ++i) pads[i] = p[5 + i];
  SetLoadDataRepeat({(uint16_t)p[26], (uint8_t)p[27], (uint8_t)p[28]});
  SetLoadDataBoundary(p[29]);
  const LocalTensor<T>& target = is_left ? a2 : b2;
  if (p[30] == 0) {
    LoadData3DParamsV2<T> params(pads, p[9], p[10], p[11], p[12], p[13], p[14], p[15], p[16], p[17], p[18], p[19],
                                 p[20], p[21], p[22] != 0, false, static_cast<T>(p[23]));
    LoadData(target, image1, params);
  } else {
    LoadData3DParamsV2Pro params;
    params.channelSize = p[11];
    params.enTranspose = p[22] != 0;
    params.extConfig = (uint64_t)p[15] << 48 | (uint64_t)p[14] << 32 | (uint64_t)p[13] << 16 | (uint64_t)p[12];
    params.filterConfig = (uint64_t)p[21] << 40 | (uint64_t)p[20] << 32 | (uint64_t)p[19] << 24 |
                          (uint64_t)p[18] << 16 | (uint64_t)p[17] << 8 | (uint64_t)p[16];
    SetFmatrix(p[9], p[10], pads, FmatrixMode::FMATRIX_LEFT);
    SetLoadDataPaddingValue(static_cast<T>(p[23]));
    LoadData(target, image1, params);
  }
  PipeBarrier<PIPE_ALL>();
  MmadParams product(m, n, k, 0, false, true);
  product.kDirectionAlign = p[24] != 0;
  Mmad(co, a2, b2, product);
  PipeBarrier<PIPE_ALL>();
  Fixpipe(cGm, co, FixpipeParamsV220(n, m, (m + 15) / 16 * 16, n, false));
  PipeBarrier<PIPE_ALL>();
}

extern "C" __global__ __aicore__ void kernel(GM_ADDR image, GM_ADDR identity, GM_ADDR c, GM_ADDR parameters) {
  __gm__ int32_t* p = (__gm__ int32_t*)parameters;
  switch (p[25]) {
    case 0: return load<half, float, true>(image, identity, c, p);
    case 1: return load<half, float, false>(image, identity, c, p);
    case 2: return load<float, float, true>(image, identity, c, p);
    case 3: return load<float, float, false>(image, identity, c, p);
    case 4: return load<int8_t, int32_t, true>(image, identity, c, p);
    default: return load<int8_t, int32_t, false>(image, identity, c, p);
  }
}
"""

DTYPES = {"half": np.float16, "float": np.float32, "int8_t": np.int8}


@dataclass(frozen=True)
class Load:
    """One LoadData of an image of random integers, and where its result goes."""

    dtype: str = "half"
    height: int = 6
    width: int = 7
    channels: int = 32
    padding: tuple[int, int, int, int] = (0, 0, 0, 0)
    pad_value: int = 0
    filter: tuple[int, int] = (1, 1)
    """Height, width."""
    stride: tuple[int, int] = (1, 1)
    dilation: tuple[int, int] = (1, 1)
    rows: int = 0
    """0: all."""
    columns: int = 0
    first_row: int = 0
    first_column: int = 0
    repeat: tuple[int, int, int] = (0, 1, 0)
    """Stride, times, mode."""
    is_transposed: bool = False
    is_left: bool = True
    boundary: int = 0
    is_packed: bool = False

    @property
    def c0(self) -> int:
        return 32 // DTYPES[self.dtype]().itemsize


def image_of(load: Load) -> np.ndarray:
    """Return the image, (h, w, channels)."""
    shape = (load.height, load.width, load.channels)
    return np.random.default_rng(1).integers(-9, 10, shape).astype(DTYPES[load.dtype])


def memory_of(load: Load, image: np.ndarray) -> np.ndarray:
    """Return the image as NC1HWC0; the last channels lie as close together as there are."""
    planes = [
        image[:, :, first : first + load.c0].ravel() for first in range(0, load.channels, load.c0)
    ]
    flat = np.concatenate(planes)
    block = 32 // flat.itemsize
    return np.pad(flat, (0, -len(flat) % block))


def unrolled(load: Load, image: np.ndarray) -> np.ndarray:
    """Return a row for each place of the filter: c1, filter row, filter column, c0."""
    left, right, top, bottom = load.padding
    padded = np.pad(image, ((top, bottom), (left, right), (0, 0)), constant_values=load.pad_value)
    (fh, fw), (sh, sw), (dh, dw) = load.filter, load.stride, load.dilation
    rows = []
    for y in range(0, padded.shape[0] - (fh - 1) * dh, sh):
        for x in range(0, padded.shape[1] - (fw - 1) * dw, sw):
            window = padded[y : y + (fh - 1) * dh + 1 : dh, x : x + (fw - 1) * dw + 1 : dw]
            parts = [
                window[:, :, first : first + load.c0].ravel()
                for first in range(0, load.channels, load.c0)
            ]
            rows.append(np.concatenate(parts))
    return np.stack(rows)


@pytest.fixture(scope="module")
def run(compile_kernel: Callable[..., object]) -> Callable[[Load], tuple[np.ndarray, np.ndarray]]:
    """Return what a load leaves in L0A or L0B as a matrix, and what NumPy expects there."""
    kernel = compile_kernel(KERNEL, mode="Cube")

    def run_load(load: Load) -> tuple[np.ndarray, np.ndarray]:
        image = image_of(load)
        whole = unrolled(load, image)
        rows = load.rows or len(whole) - load.first_row
        columns = load.columns or whole.shape[1] - load.first_column
        stride, times, mode = load.repeat
        step = stride * (16 if mode == 0 else load.c0)
        pieces = []
        for repeat in range(times):
            row = load.first_row + (repeat * step if mode == 0 else 0)
            column = load.first_column + (repeat * step if mode == 1 else 0)
            pieces.append(whole[row : row + rows, column : column + columns])
        expected = np.concatenate(pieces, axis=mode)
        if load.is_transposed and load.is_left:
            expected = expected.T
        m, n = expected.shape
        is_aligned = load.dtype == "float" and load.is_transposed and load.is_left
        size = n if load.is_left else m
        identity = (right_identity if load.is_left else left_identity)(size, load.dtype)
        memory = memory_of(load, image)
        numbers = [m, n, size, len(memory), len(identity), *load.padding]
        numbers += [load.height, load.width, load.channels, columns, rows]
        numbers += [load.first_column, load.first_row, load.stride[1], load.stride[0]]
        numbers += [load.filter[1], load.filter[0], load.dilation[1], load.dilation[0]]
        kind = 2 * list(DTYPES).index(load.dtype) + (not load.is_left)
        numbers += [load.is_transposed, load.pad_value, is_aligned, kind]
        numbers += [stride, times, mode, load.boundary, load.is_packed]
        out = np.zeros((m, n), np.int32 if load.dtype == "int8_t" else np.float32)
        kernel(memory, identity, out, np.array(numbers, np.int32))
        return out, expected.astype(out.dtype)

    return run_load


def right_identity(size: int, dtype: str) -> np.ndarray:
    """Return an identity of size x size as Mmad reads it from L0B."""
    width = 32 // DTYPES[dtype]().itemsize
    whole = np.zeros((-(-size // width) * width, -(-size // 16) * 16), DTYPES[dtype])
    np.fill_diagonal(whole, 1)
    fractals = whole.reshape(len(whole) // width, width, whole.shape[1] // 16, 16)
    return np.ascontiguousarray(fractals.transpose(0, 2, 3, 1)).ravel()


def left_identity(size: int, dtype: str) -> np.ndarray:
    """Return an identity of size x size as Mmad reads it from L0A."""
    width = 32 // DTYPES[dtype]().itemsize
    whole = np.zeros((-(-size // 16) * 16, -(-size // width) * width), DTYPES[dtype])
    np.fill_diagonal(whole, 1)
    fractals = whole.reshape(len(whole) // 16, 16, whole.shape[1] // width, width)
    return np.ascontiguousarray(fractals.transpose(0, 2, 1, 3)).ravel()


CONVOLUTION = Load(padding=(1, 2, 1, 0), pad_value=3, filter=(3, 2), channels=16)
LOADS = [
    Load(),
    Load(dtype="float", channels=24),
    Load(dtype="int8_t", channels=64),
    CONVOLUTION,
    replace(CONVOLUTION, stride=(2, 1), dilation=(1, 2)),
    replace(CONVOLUTION, dtype="float", dilation=(2, 1)),
    replace(CONVOLUTION, dtype="int8_t", channels=32, filter=(2, 2)),
    replace(CONVOLUTION, channels=20),
    replace(CONVOLUTION, dtype="float", channels=4),
    replace(CONVOLUTION, dtype="int8_t", channels=8),
    replace(CONVOLUTION, rows=32, columns=48, first_row=5, first_column=16),
    replace(CONVOLUTION, is_packed=True),
    Load(height=1, width=64, channels=48, rows=16, repeat=(2, 2, 0)),
    Load(height=1, width=32, channels=96, columns=16, repeat=(2, 3, 1)),
    Load(height=1, width=40, channels=48, is_transposed=True),
    Load(dtype="float", height=1, width=48, channels=24, is_transposed=True),
    Load(height=1, width=48, channels=40, is_left=False),
    Load(dtype="float", height=1, width=32, channels=24, is_left=False),
    Load(height=1, width=64, channels=32, rows=16, repeat=(2, 2, 0), is_left=False),
]


@pytest.mark.parametrize("load", LOADS, ids=str)
def test_an_image_is_unrolled_to_the_rows_under_its_filter(
    run: Callable[[Load], tuple[np.ndarray, np.ndarray]], load: Load
) -> None:
    got, expected = run(load)
    np.testing.assert_array_equal(got, expected)


def test_addresses_behind_the_boundary_begin_again(
    run: Callable[[Load], tuple[np.ndarray, np.ndarray]],
) -> None:
    load = Load(height=1, width=64, channels=16, boundary=1024)
    got, expected = run(load)
    np.testing.assert_array_equal(got, np.tile(expected[:32], (2, 1)))


def test_int8_is_not_transposed(run: Callable[[Load], tuple[np.ndarray, np.ndarray]]) -> None:
    with pytest.raises(KernelFault, match="are not transposed"):
        run(Load(dtype="int8_t", channels=32, is_transposed=True))


FILL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR out, GM_ADDR product) {
  GlobalTensor<half> outGm;
  GlobalTensor<float> productGm;
  outGm.SetGlobalBuffer((__gm__ half*)out);
  productGm.SetGlobalBuffer((__gm__ float*)product);
  LocalTensor<half> l1(TPosition::A1, 0, 256), a2(TPosition::A2, 0, 512), b2(TPosition::B2, 0, 256);
  LocalTensor<float> co(TPosition::CO1, 0, 512);
  Fill(l1, InitConstValueParams<half>(1, 16, 0, half(-1)));
  Fill(l1, {3, 2, 1, 7});
  Fill(a2, InitConstValueParams<half>(1, 1, 0, half(2)));
  InitConstValue(a2[256], InitConstValueParams<half>(1, 1, 0, half(3)));
  Fill(b2, {1, 1, 0, half(0.5)});
  PipeBarrier<PIPE_ALL>();
  DataCopy(outGm, l1, 256);
  Mmad(co, a2, b2, MmadParams(32, 16, 16, 0, false, true));
  PipeBarrier<PIPE_ALL>();
  Fixpipe(productGm, co, FixpipeParamsV220(16, 32, 32, 16, false));
  PipeBarrier<PIPE_ALL>();
}
"""


def test_fill_writes_blocks_and_leaves_gaps(compile_kernel: Callable[..., object]) -> None:
    out, product = np.zeros((16, 16), np.float16), np.zeros((32, 16), np.float32)
    compile_kernel(FILL, mode="Cube")(out, product)
    filled = [0, 1, 3, 4, 6, 7]
    assert (out[filled] == 7).all()
    assert (np.delete(out, filled, axis=0) == -1).all()
    assert (product[:16] == 16).all()
    assert (product[16:] == 24).all()


SPARSE = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR index, GM_ADDR c, GM_ADDR sizes) {
  __gm__ int32_t* s = (__gm__ int32_t*)sizes;
  const int m = s[0], n = s[1], k = s[2];
  GlobalTensor<int8_t> aGm, bGm;
  GlobalTensor<uint8_t> indexGm;
  GlobalTensor<int32_t> cGm;
  aGm.SetGlobalBuffer((__gm__ int8_t*)a);
  bGm.SetGlobalBuffer((__gm__ int8_t*)b);
  indexGm.SetGlobalBuffer((__gm__ uint8_t*)index);
  cGm.SetGlobalBuffer((__gm__ int32_t*)c);
  LocalTensor<int8_t> a1(TPosition::A1, 0, m * k), b1(TPosition::B1, m * k, n * k / 2);
  LocalTensor<uint8_t> index1(TPosition::B1, m * k + n * k / 2, n * k / 8);
  LocalTensor<int8_t> a2(TPosition::A2, 0, m * k), b2(TPosition::B2, 512, n * k / 2);
  LocalTensor<int32_t> co(TPosition::CO1, 0, m * n);
  DataCopy(a1, aGm, m * k);
  DataCopy(b1, bGm, n * k / 2);
  DataCopy(index1, indexGm, n * k / 8);
  PipeBarrier<PIPE_ALL>();
  LoadData(a2, a1, LoadData2DParams(0, m * k / 512, 1, 0, 0, false, 0));
  LoadDataWithSparse(b2, b1, index1, LoadData2DParams(0, n * k / 1024, 0, 0, 0, false, 0));
  PipeBarrier<PIPE_ALL>();
  MmadWithSparse(co, a2, b2, MmadParams(m, n, k, 0, false, true));
  PipeBarrier<PIPE_ALL>();
  Fixpipe(cGm, co, FixpipeParamsV220(n, m, m, n, false));
  PipeBarrier<PIPE_ALL>();
}
"""


def test_a_sparse_product_picks_the_elements_that_its_indices_name(
    compile_kernel: Callable[..., object],
) -> None:
    m, n, k = 32, 48, 128
    generator = np.random.default_rng(7)
    a = generator.integers(-128, 128, (m, k), dtype=np.int8)
    weights = np.zeros((k, n), np.int8)
    dense = np.zeros((k // 2, n), np.int8)
    index = np.zeros((k // 2, n), np.uint8)
    for column in range(n):
        for group in range(k // 4):
            first, second = sorted(generator.choice(4, 2, replace=False))
            values = generator.integers(-128, 128, 2, dtype=np.int8)
            weights[[4 * group + first, 4 * group + second], column] = values
            dense[2 * group : 2 * group + 2, column] = values
            index[2 * group : 2 * group + 2, column] = first, second - 1
    packed = index.reshape(k // 8, 4, n)
    packed = packed[:, 0] | packed[:, 1] << 2 | packed[:, 2] << 4 | packed[:, 3] << 6
    a_memory = a.reshape(m // 16, 16, k // 32, 32).transpose(0, 2, 1, 3)
    b_memory = dense.reshape(k // 64, 32, n // 16, 16).transpose(0, 2, 3, 1)
    index_memory = packed.reshape(k // 64, 8, n // 16, 16).transpose(0, 2, 3, 1)
    c = np.zeros((m, n), np.int32)
    compile_kernel(SPARSE, mode="Cube")(
        *(np.ascontiguousarray(memory) for memory in (a_memory, b_memory, index_memory)),
        c,
        np.array([m, n, k], np.int32),
    )
    np.testing.assert_array_equal(c, a.astype(np.int32) @ weights.astype(np.int32))
