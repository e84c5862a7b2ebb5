"""The compiler's built-in functions on addresses: those that the table's instructions stand behind, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

BINARY = {
    "vadd": np.add,
    "vsub": np.subtract,
    "vmul": np.multiply,
    "vmax": np.maximum,
    "vmin": np.minimum,
}
SCALAR = {"vadds": np.add, "vmuls": np.multiply, "vmaxs": np.maximum, "vmins": np.minimum}

KERNEL = """
template <typename T>
__aicore__ inline void run(GM_ADDR a, GM_ADDR b, GM_ADDR y) {
  // Offsets in UB, as kernels with fixed addresses write them.
  __ubuf__ T* x0 = (__ubuf__ T*)0;
  __ubuf__ T* x1 = (__ubuf__ T*)1024;
  __ubuf__ T* out = (__ubuf__ T*)4096;
  copy_gm_to_ubuf(x0, (__gm__ T*)a, 0, 1, 16, 0, 0);
  copy_gm_to_ubuf(x1, (__gm__ T*)b, 0, 1, 16, 0, 0);
  set_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE2, PIPE_V, EVENT_ID0);
  constexpr int lanes = 256 / sizeof(T);
  const T two = (T)2;
  set_mask_norm();
  set_vector_mask(lanes == 128 ? ~0ull : 0, ~0ull);
  %s
  set_mask_count();
  set_vector_mask(0, lanes + 5);
  vector_dup(out, two, 1, 1, 1, 8, 0);
  pipe_barrier(PIPE_V);
  set_mask_norm();
  set_vector_mask(0, 3);
  vadds(out, out, (T)1, 1, 1, 1, 8, 8);
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  copy_ubuf_to_gm((__gm__ T*)y + %d * 512 / sizeof(T), out, 0, 1, 16, 0, 0);
}
extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR y, GM_ADDR type) {
  if (*(__gm__ int32_t*)type == 0) return run<half>(a, b, y);
  if (*(__gm__ int32_t*)type == 1) return run<float>(a, b, y);
  if (*(__gm__ int32_t*)type == 2) return run<int16_t>(a, b, y);
  run<int32_t>(a, b, y);
}
"""
STORE = """
  set_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  wait_flag(PIPE_V, PIPE_MTE3, EVENT_ID0);
  copy_ubuf_to_gm((__gm__ T*)y + %d * 512 / sizeof(T), out, 0, 1, 16, 0, 0);
  set_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
  wait_flag(PIPE_MTE3, PIPE_V, EVENT_ID0);
"""


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.int16, np.int32])
def test_arithmetic_on_addresses_gives_what_numpy_gives(compile_kernel, dtype) -> None:
    calls = [f"{name}(out, x0, x1, 2, 1, 1, 1, 8, 8, 8);" for name in BINARY]
    calls += [f"{name}(out, x0, two, 2, 1, 1, 8, 8);" for name in SCALAR]
    body = "".join(call + STORE % i for i, call in enumerate(calls))
    types = [np.float16, np.float32, np.int16, np.int32]
    generator = np.random.default_rng(2)
    a, b = (generator.integers(-9, 9, 512 // dtype().itemsize).astype(dtype) for _ in range(2))
    y = np.zeros((len(calls) + 1, a.size), dtype)
    compile_kernel(KERNEL % (body, len(calls)))(a, b, y, np.array([types.index(dtype)], np.int32))
    expected = [*(f(a, b) for f in BINARY.values()), *(f(a, dtype(2)) for f in SCALAR.values())]
    np.testing.assert_array_equal(y[:-1], expected)
    # The counter covers more than a repeat, the mask of bits two lanes.
    lanes = a.size // 2
    np.testing.assert_array_equal(y[-1, : lanes + 5], [3, 3, *[2] * (lanes + 3)])
    np.testing.assert_array_equal(y[-1, lanes + 5 :], expected[-1][lanes + 5 :])


SELECT = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR bits, GM_ADDR y) {
  __ubuf__ float *x0 = (__ubuf__ float*)0, *x1 = (__ubuf__ float*)1024, *out = (__ubuf__ float*)2048;
  __ubuf__ uint8_t* chosen = (__ubuf__ uint8_t*)4096;
  __ubuf__ uint32_t* where = (__ubuf__ uint32_t*)5120;
  __ubuf__ float* scalar = (__ubuf__ float*)6144;
  copy_gm_to_ubuf(x0, (__gm__ float*)a, 0, 1, 16, 0, 0);
  copy_gm_to_ubuf(x1, (__gm__ float*)b, 0, 1, 16, 0, 0);
  copy_gm_to_ubuf_align_b8(chosen, (__gm__ uint8_t*)bits, 0, 1, 16, 0, 0, 0, 0);
  pipe_barrier(PIPE_ALL);
  set_mask_count();
  set_vector_mask(0, 8);
  vector_dup(where, (uint32_t)4096, 1, 1, 1, 8, 0);
  vector_dup(scalar, -7.0f, 1, 1, 1, 8, 0);
  pipe_barrier(PIPE_ALL);
  set_vector_mask(0, 128);
  set_cmpmask(scalar);
  vsel(out, x0, chosen, 1, 1, 1, 1, 8, 8, 8, 1);
  pipe_barrier(PIPE_ALL);
  copy_ubuf_to_gm((__gm__ float*)y, out, 0, 1, 16, 0, 0);
  pipe_barrier(PIPE_ALL);
  set_cmpmask(where);
  vsel(out, x0, x1, 1, 1, 1, 1, 8, 8, 8, 2);
  pipe_barrier(PIPE_ALL);
  copy_ubuf_to_gm((__gm__ float*)y + 128, out, 0, 1, 16, 0, 0);
  pipe_barrier(PIPE_ALL);
  set_mask_norm();
  set_vector_mask(0, ~0ull);
  set_cmpmask(chosen);
  vsel(out, x0, x1, 2, 1, 1, 1, 8, 8, 8);
  pipe_barrier(PIPE_ALL);
  copy_ubuf_to_gm((__gm__ float*)y + 256, out, 0, 1, 16, 0, 0);
}
"""


def test_a_selection_takes_its_bits_from_the_register_from_memory_or_from_an_address(
    compile_kernel,
) -> None:
    generator = np.random.default_rng(3)
    a, b = generator.normal(size=(2, 128)).astype(np.float32)
    bits = generator.integers(0, 256, 16).astype(np.uint8)
    y = np.zeros((3, 128), np.float32)
    compile_kernel(SELECT)(a, b, bits, y)
    chosen = np.unpackbits(bits, bitorder="little").astype(bool)
    np.testing.assert_array_equal(y[0], np.where(chosen, a, np.float32(-7)))
    np.testing.assert_array_equal(y[1], np.where(chosen, a, b))
    # The register holds the bits of one repeat; each repeat uses them anew.
    np.testing.assert_array_equal(y[2], np.where(np.tile(chosen[:64], 2), a, b))


PADDED = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y) {
  __ubuf__ half* rows = (__ubuf__ half*)0;
  set_mov_pad_val(GetScalarBitcodeValue(half(-1)));
  copy_gm_to_ubuf_align_b16(rows, (__gm__ half*)x, 0, 2, 10, 2, 9, 4, 1);
  pipe_barrier(PIPE_ALL);
  copy_ubuf_to_ubuf(rows + 64, rows, 0, 2, 1, 1, 0);
  pipe_barrier(PIPE_ALL);
  copy_ubuf_to_gm_align_b16((__gm__ half*)y, rows + 64, 0, 2, 26, 0, 0, 0, 6);
}
"""


def test_copies_with_padding_count_bytes_in_global_memory_and_blocks_in_ub(compile_kernel) -> None:
    x = np.arange(1, 15, dtype=np.float16)
    y = np.zeros((2, 16), np.float16)
    compile_kernel(PADDED)(x, y)
    first = [-1, -1, 1, 2, 3, 4, 5, *[-1] * 6, 0, 0, 0]
    np.testing.assert_array_equal(y[0], first)
    np.testing.assert_array_equal(y[1], [-1, -1, 8, 9, 10, 11, 12, *[-1] * 6, 0, 0, 0])


def test_a_repeat_stride_that_the_hardware_has_no_bits_for_is_a_fault(compile_kernel) -> None:
    run = compile_kernel("""
    extern "C" __global__ __aicore__ void kernel(GM_ADDR y) {
      __ubuf__ float* out = (__ubuf__ float*)0;
      vector_dup(out, 1.0f, 2, 1, 1, 256, 0);
    }
    """)
    with pytest.raises(
        KernelFault, match="repeat stride of a built-in vector function is over 255"
    ):
        run(np.zeros(1, np.float32))
