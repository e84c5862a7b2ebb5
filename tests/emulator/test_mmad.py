"""Mmad by itself: types and parameters beyond the plain product, and what it refuses, with where and why."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import pytest

from opkit.emulator import _emulator
from opkit.errors import KernelFault

# A and B lie in memory as the fractals of L0A and L0B; C comes back as rows.
KERNEL = """
template <typename T, typename C>
inline void multiply(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, __gm__ int32_t* p) {
  const int m = p[0], n = p[1], k = p[2], bytes = p[3];
  GlobalTensor<int8_t> aGm, bGm;
  GlobalTensor<C> biasGm, cGm;
  aGm.SetGlobalBuffer((__gm__ int8_t*)a, bytes);
  bGm.SetGlobalBuffer((__gm__ int8_t*)b, bytes);
  biasGm.SetGlobalBuffer((__gm__ C*)bias, 512);
  cGm.SetGlobalBuffer((__gm__ C*)c, 128 * 128);
  const int size = bytes / sizeof(T) * (std::is_same_v<T, int4b_t> ? 2 : 1);
  LocalTensor<int8_t> aBytes(TPosition::A1, 0, bytes), bBytes(TPosition::B1, 65536, bytes);
  LocalTensor<T> a1(TPosition::A1, 0, size), b1(TPosition::B1, 65536, size);
  LocalTensor<T> a2(TPosition::A2, 0, size), b2(TPosition::B2, 0, size);
  LocalTensor<T> left(TPosition::A2, p[6], size), right(TPosition::B2, p[7], size);
  LocalTensor<C> bias1(TPosition::C1, 262144, 512), bias2(TPosition::C2, p[8], 512);
  LocalTensor<C> result(p[9] < 0 ? TPosition::VECCALC : TPosition::CO1, p[9] < 0 ? 0 : p[9], 128 * 128);
  if (p[9] == -2) result = LocalTensor<C>();
  DataCopy(aBytes, aGm, bytes);
  DataCopy(bBytes, bGm, bytes);
  DataCopy(bias1, biasGm, 512);
  PipeBarrier<PIPE_ALL>();
  LoadData(a2, a1, LoadData2DParams(0, bytes / 512, 1, 0, 0, false, 0));
  LoadData(b2, b1, LoadData2DParams(0, bytes / 512, 1, 0, 0, false, 0));
  if (p[8] >= 0) DataCopy(bias2, bias1, DataCopyParams(1, p[10], 0, 0));
  PipeBarrier<PIPE_ALL>();
  MmadParams params(m, n, k, p[4], false, true);
  params.kDirectionAlign = p[5] != 0;
  SetSaturationFlag<SaturationMode::FLOAT>(p[11] != 0);
  if (p[8] >= 0) {
    Mmad(result, left, right, bias2, params);
  } else {
    Mmad(result, left, right, params);
  }
  SetSaturationFlag<SaturationMode::FLOAT>(false);
  PipeBarrier<PIPE_ALL>();
  Fixpipe(cGm, result, FixpipeParamsV220(n, m, (m + 15) / 16 * 16, n, false));
  PipeBarrier<PIPE_ALL>();
}

extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR bias, GM_ADDR c, GM_ADDR numbers) {
  __gm__ int32_t* p = (__gm__ int32_t*)numbers;
  switch (p[12]) {
    case 0: return multiply<int4b_t, int32_t>(a, b, bias, c, p);
    case 1: return multiply<int8_t, int32_t>(a, b, bias, c, p);
    case 2: return multiply<half, float>(a, b, bias, c, p);
    case 3: return multiply<bfloat16_t, float>(a, b, bias, c, p);
    case 4: return multiply<float, float>(a, b, bias, c, p);
    case 5: return multiply<half, int32_t>(a, b, bias, c, p);
    default: return multiply<int16_t, int32_t>(a, b, bias, c, p);
  }
}
"""

TYPES = ("int4b_t", "int8_t", "half", "bfloat16_t", "float", "half to int32_t", "int16_t")
BUFFER_BYTES = 16384
"""Of A and of B; what a product does not use is there all the same."""
SIZE_OF = {"int4b_t": 0.5, "int8_t": 1, "float": 4}


@dataclass(frozen=True)
class Product:
    """One Mmad and where its operands lie, in bytes."""

    dtype: str = "half"
    m: int = 16
    n: int = 16
    k: int = 16
    unit_flag: int = 0
    is_k_aligned: bool = False
    left: int = 0
    right: int = 0
    bias: int = -1
    """-1: none."""
    bias_units: int = 1
    """Of 64 bytes, that are copied to the bias table."""
    result: int = 0
    """-1: in UB; -2: nothing has placed it."""
    saturates: bool = False

    @property
    def width(self) -> int:
        return int(32 / SIZE_OF.get(self.dtype, 2))


def stored(values: np.ndarray, dtype: str) -> np.ndarray:
    """Return the elements as bytes; bfloat16 as its bits, int4b_t two by two."""
    if dtype == "int4b_t":
        return (values[..., ::2] & 15 | (values[..., 1::2] & 15) << 4).astype(np.uint8)
    if dtype == "bfloat16_t":
        return np.ascontiguousarray((values.view(np.uint32) >> 16).astype(np.uint16)).view(np.uint8)
    return np.ascontiguousarray(values).view(np.uint8)


def fractals_of(product: Product, values: np.ndarray, across: int = 0) -> np.ndarray:
    """Return blocks of 16 rows, each of them fractals of 32 bytes a row, one row of blocks after another."""
    width = product.width
    rows, columns = -(-len(values) // 16), max(-(-values.shape[1] // width), across)
    padded = np.zeros((rows * 16, columns * width), values.dtype)
    padded[: len(values), : values.shape[1]] = values
    return padded.reshape(rows, 16, columns, width).transpose(0, 2, 1, 3)


@pytest.fixture(scope="module")
def multiply(compile_kernel: Callable[..., object]) -> Callable[..., np.ndarray]:
    """Return C, (m, n), of A (m, k) and B (n, k)."""
    kernel = compile_kernel(KERNEL, mode="Cube")

    def run(
        product: Product,
        a: np.ndarray | None = None,
        b: np.ndarray | None = None,
        bias: np.ndarray | None = None,
    ) -> np.ndarray:
        memory = [np.zeros(BUFFER_BYTES, np.uint8) for _ in range(2)]
        if a is not None and b is not None:
            across = (
                -(-product.k // 16) * 2 if product.is_k_aligned and product.dtype == "float" else 0
            )
            left = fractals_of(product, a, across)
            right = fractals_of(product, b).transpose(1, 0, 2, 3)
            for bytes_of, values in zip(memory, (left, right), strict=True):
                flat = stored(values, product.dtype).ravel()
                bytes_of[: len(flat)] = flat
        is_float = product.dtype in ("half", "bfloat16_t", "float")
        out = np.zeros(128 * 128, np.float32 if is_float else np.int32)
        given = np.zeros(512, out.dtype)
        if bias is not None:
            given[: len(bias)] = bias
        numbers = [product.m, product.n, product.k, BUFFER_BYTES, product.unit_flag]
        numbers += [product.is_k_aligned, product.left, product.right, product.bias, product.result]
        numbers += [product.bias_units, product.saturates, TYPES.index(product.dtype)]
        kernel(*memory, given, out, np.array(numbers, np.int32))
        return out[: product.m * product.n].reshape(product.m, product.n)

    return run


@pytest.mark.parametrize("target", _emulator.lane_targets())
@pytest.mark.parametrize("size", [(16, 16, 64), (33, 20, 70), (1, 32, 100), (48, 48, 200)])
def test_int4_products_are_exact(
    multiply: Callable[..., np.ndarray], size: tuple[int, int, int], target: str
) -> None:
    m, n, k = size
    generator = np.random.default_rng(m)
    a = generator.integers(-8, 8, (m, k), dtype=np.int8)
    b = generator.integers(-8, 8, (n, k), dtype=np.int8)
    left = a
    if m == 1:  # a vector lies in one run: the rows of its fractals
        left = np.zeros((16, 64), np.int8)
        left.ravel()[:k] = a.ravel()
    _emulator.set_lane_target(target)
    try:
        got = multiply(Product("int4b_t", m, n, k), left, b)
    finally:
        _emulator.set_lane_target("auto")
    np.testing.assert_array_equal(got, a.astype(np.int32) @ b.astype(np.int32).T)


@pytest.mark.parametrize("is_aligned", [False, True])
@pytest.mark.parametrize("dtype", ["float", "half", "int8_t"])
def test_k_direction_align_changes_where_float_rows_lie_and_nothing_else(
    multiply: Callable[..., np.ndarray], dtype: str, is_aligned: bool
) -> None:
    generator = np.random.default_rng(4)
    numpy_type = {"float": np.float32, "half": np.float16, "int8_t": np.int8}[dtype]
    a, b = (generator.integers(-9, 10, (48, 72)).astype(numpy_type) for _ in range(2))
    got = multiply(Product(dtype, 48, 48, 72, is_k_aligned=is_aligned), a, b)
    np.testing.assert_array_equal(got, a.astype(np.int64) @ b.astype(np.int64).T)


def test_an_accumulator_that_nothing_has_placed_is_l0c_from_its_start(
    multiply: Callable[..., np.ndarray],
) -> None:
    # It was taken to lie in UB, and refused.
    a, b = (np.arange(256, dtype=np.float16).reshape(16, 16) % size for size in (7, 5))
    got = multiply(Product(result=-2), a, b)
    np.testing.assert_array_equal(got, a.astype(np.int64) @ b.astype(np.int64).T)


def test_saturating_products_end_at_the_largest_float(multiply: Callable[..., np.ndarray]) -> None:
    a = np.zeros((16, 8), np.float32)
    a[0], a[1], a[2, 0], a[3, :2], a[4, 0] = 3e38, -3e38, np.inf, (np.inf, -np.inf), 2
    b = np.ones((17, 8), np.float32)
    product = Product("float", 16, 17, 8)
    with np.errstate(over="ignore"):
        plain = multiply(product, a, b)
    largest = np.finfo(np.float32).max
    np.testing.assert_array_equal(plain[:5, 0], [np.inf, -np.inf, np.inf, np.nan, 2])
    saturated = multiply(Product("float", 16, 17, 8, saturates=True), a, b)
    expected = np.array([largest, -largest, largest, 0, 2])
    np.testing.assert_array_equal(saturated[:5], np.broadcast_to(expected[:, None], (5, 17)))


@pytest.mark.parametrize(
    ("product", "text"),
    [
        (Product(left=256), "fm address 256 in L0A is not a multiple of 512 bytes"),
        (Product(right=256), "filter address 256 in L0B is not a multiple of 512 bytes"),
        (Product(result=512), "dst address 512 in L0C is not a multiple of 1024 bytes"),
        (Product(result=-1), "dst lies in UB, not in L0C"),
        (Product(bias=32), "dst address 32 in BT is not a multiple of 64 bytes"),
        (Product(bias=0, bias_units=17), "DataCopy touches bytes 0..1088 of BT, which has 1024"),
        (Product(n=272, bias=0), "Mmad touches bytes 0..1088 of BT, which has 1024"),
        (Product(m=512, k=128), "Mmad touches bytes 0..131072 of L0A, which has 65536"),
        (Product(n=512, k=128), "Mmad touches bytes 0..131072 of L0B, which has 65536"),
        (Product(m=256, n=256), "Mmad touches bytes 0..262144 of L0C, which has 131072"),
        (Product(k=4096), "m 16, n 16 or k 4096 is over 4095"),
        (Product(unit_flag=1), "unitFlag 1 is not 0, 2 or 3"),
        (Product("int4b_t", k=64, bias=0), "products of int4b_t take no bias"),
        (Product("half to int32_t"), "Mmad does not multiply F16 by F16 into S32"),
        (Product("int16_t"), "Mmad does not take S16 on Ascend910B2"),
    ],
    ids=str,
)
def test_a_product_that_cannot_be_says_what_is_wrong(
    multiply: Callable[..., np.ndarray], product: Product, text: str
) -> None:
    with pytest.raises(KernelFault, match=text):
        multiply(product)
