"""The C interface: copies, vector functions, conversions and waits, against NumPy."""

from __future__ import annotations

import re

import numpy as np
import pytest

from opkit import emulator
from opkit.errors import KernelFault

TABLE = (emulator.include_dir() / "opkit" / "c_api" / "elementwise.inc").read_text()
INCLUDE = '#include "c_api/asc_simd.h"\n'
HEAD = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR y) {
  asc_init();
  T *x0 = (T*)asc_get_phy_buf_addr(0), *x1 = (T*)asc_get_phy_buf_addr(4096);
  uint8_t* out = (uint8_t*)asc_get_phy_buf_addr(8192);
  asc_copy_gm2ub(x0, a, 1024);
  asc_copy_gm2ub(x1, b, 1, 32, 0, 0);
  asc_sync_notify(PIPE_MTE2, PIPE_V, EVENT_ID0);
  asc_sync_wait(PIPE_MTE2, PIPE_V, EVENT_ID0);
  asc_duplicate_sync((uint32_t*)out, 0, 256);
"""
TAIL = """
  asc_sync_pipe(PIPE_ALL);
  asc_copy_ub2gm_sync(y, out, 1024);
}
"""


def launch(compile_kernel, body: str, a: np.ndarray, b: np.ndarray, ctype: str) -> np.ndarray:
    y = np.zeros(1024, np.uint8)
    compile_kernel(f"{INCLUDE}using T = {ctype};\n{HEAD}{body}{TAIL}")(a, b, y)
    return y


UNARY = {
    "asc_abs": np.abs,
    "asc_exp": np.exp,
    "asc_log": np.log,
    "asc_not": np.invert,
    "asc_rcp": np.reciprocal,
    "asc_relu": lambda x: np.maximum(x, 0),
    "asc_rsqrt": lambda x: 1 / np.sqrt(x),
    "asc_sqrt": np.sqrt,
}
BINARY = {
    "asc_add": np.add,
    "asc_add_relu": lambda a, b: np.maximum(a + b, 0),
    "asc_and": np.bitwise_and,
    "asc_div": np.divide,
    "asc_max": np.maximum,
    "asc_min": np.minimum,
    "asc_mul": np.multiply,
    "asc_mul_add": None,  # the destination is a source
    "asc_mul_add_relu": None,
    "asc_or": np.bitwise_or,
    "asc_sub": np.subtract,
    "asc_sub_relu": lambda a, b: np.maximum(a - b, 0),
}
SCALAR = {
    "asc_add_scalar": np.add,
    "asc_leakyrelu": lambda x, s: np.where(x > 0, x, x * s),
    "asc_max_scalar": np.maximum,
    "asc_min_scalar": np.minimum,
    "asc_mul_scalar": np.multiply,
    "asc_shiftleft": np.left_shift,
    "asc_shiftright": np.right_shift,
    "asc_sub_scalar": np.subtract,
}
INTEGERS = ("asc_not", "asc_and", "asc_or", "asc_shiftleft", "asc_shiftright")


def test_every_row_of_the_table_is_tested() -> None:
    rows = re.findall(r"^C_API_(\w+)\((\w+),", TABLE, re.M)
    for kind, functions in {"UNARY": UNARY, "BINARY": BINARY, "SCALAR": SCALAR}.items():
        named = {name for row, name in rows if row == kind}
        assert named == functions.keys() - {"asc_sub_scalar"}


@pytest.mark.parametrize("is_integer", [False, True])
def test_functions_give_what_numpy_gives_in_each_form(compile_kernel, is_integer: bool) -> None:
    """The first elements, the same with a wait, and repeats with strides."""
    dtype, ctype = (np.int16, "int16_t") if is_integer else (np.float32, "float")
    count = 24
    generator = np.random.default_rng(4)
    a = generator.integers(1, 9, 1024 // dtype().itemsize).astype(dtype)
    b = generator.integers(1, 9, a.size).astype(dtype)
    rows = [
        (name, function, arguments, strides)
        for functions, arguments, strides in (
            (UNARY, "x0", "1, 1, 1, 8, 8"),
            (BINARY, "x0, x1", "1, 1, 1, 1, 8, 8, 8"),
            (SCALAR, "x0, 2", "1, 1, 1, 8, 8"),
        )
        for name, function in functions.items()
        if function is not None and (name in INTEGERS) == is_integer
    ]
    body = "asc_set_mask_norm(); "
    results: list[np.ndarray] = []
    for name, function, arguments, strides in rows:
        other = {"x0": (a,), "x0, x1": (a, b), "x0, 2": (a, dtype(2))}[arguments]
        expected = np.asarray(function(*other), dtype)[:count]
        for call in (
            f"{name}((T*)out, {arguments}, {count});",
            f"{name}_sync((T*)out, {arguments}, {count});",
            f"asc_set_vector_mask(0, {2**count - 1}); {name}((T*)out, {arguments}, {strides});",
        ):
            results.append(expected)
            body += f"""
              asc_duplicate((int32_t*)out, 0, 256);
              asc_sync();
              {call}
              asc_sync_vec();
              asc_copy_ub2gm(y + {1024 * len(results)}, out, 1024);
              asc_sync();
            """
    y = np.zeros((1 + len(results), 1024 // dtype().itemsize), dtype)
    compile_kernel(f"{INCLUDE}using T = {ctype};\n{HEAD}{body}{TAIL}")(a, b, y)
    for i, expected in enumerate(results):
        name = rows[i // 3][0]
        np.testing.assert_allclose(y[1 + i, :count], expected, rtol=3e-7, err_msg=name)
        np.testing.assert_array_equal(y[1 + i, count:], 0, err_msg=name)


def test_products_are_added_to_what_the_second_source_holds(compile_kernel) -> None:
    a, b = (np.arange(256, dtype=np.float32) - 100 * i for i in range(2))
    y = launch(
        compile_kernel,
        """
        asc_duplicate((T*)out, 2, 128);
        asc_sync();
        asc_mul_add((T*)out, x0, x1, 64);
        asc_mul_add_relu((T*)(out + 256), x0, x1, 64);
        """,
        a,
        b,
        "float",
    )
    np.testing.assert_array_equal(y.view(np.float32)[:64], 2 * a[:64] + b[:64])
    np.testing.assert_array_equal(y.view(np.float32)[64:128], np.maximum(2 * a + b, 0)[:64])


def test_a_conversion_rounds_as_its_ending_says(compile_kernel) -> None:
    a = np.tile(np.array([-2.5, -1.5, -0.7, 0.5, 1.5, 2.5, 3.3, 7.0], np.float32), 32)
    functions = {
        "rn": np.rint,
        "rna": lambda x: np.trunc(x + np.copysign(0.5, x)),
        "rd": np.floor,
        "ru": np.ceil,
        "rz": np.trunc,
    }
    body = "".join(
        f"asc_float2int32_{ending}((int32_t*)(out + {128 * i}), x0, 32);"
        for i, ending in enumerate(functions)
    )
    y = launch(compile_kernel, body, a, a, "float").view(np.int32)
    for i, function in enumerate(functions.values()):
        np.testing.assert_array_equal(y[32 * i :][:32], function(a[:32]).astype(np.int32))


def test_a_comparison_goes_to_memory_or_to_the_register_and_selects(compile_kernel) -> None:
    generator = np.random.default_rng(5)
    a, b = (generator.integers(-3, 3, 256).astype(np.float32) for _ in range(2))
    y = launch(
        compile_kernel,
        """
        asc_gt(out, x0, x1, 4, 1, 1, 1, 8, 8, 8);
        asc_le_scalar(out + 64, x0, 1, 4, 1, 1, 8, 8);
        asc_set_mask_norm();
        asc_set_vector_mask(0, ~0ull);
        asc_ne(x0, x1, 1, 1, 1, 1, 8, 8, 8);
        asc_sync();
        asc_get_cmp_mask(out + 128);
        """,
        a,
        b,
        "float",
    )
    for at, values in ((0, a > b), (64, a <= 1), (128, (a != b)[:64])):
        bits = np.packbits(values, bitorder="little")
        np.testing.assert_array_equal(y[at:][: bits.size], bits)


def test_elements_are_gathered_and_extremes_found(compile_kernel) -> None:
    a = np.random.default_rng(6).permutation(256).astype(np.float32)
    offsets = (np.arange(256)[::-1] * 4).astype(np.uint32)
    y = launch(
        compile_kernel,
        """
        asc_gather((T*)out, x0, (uint32_t*)x1, 64);
        asc_set_mask_norm();
        asc_set_vector_mask(0, ~0ull);
        asc_repeat_reduce_max_value_index((T*)(out + 256), x0, 4, 1, 1, 8);
        asc_repeat_reduce_min_only_index((T*)(out + 320), x0, 4, 1, 1, 8);
        """,
        a,
        offsets,
        "float",
    )
    rows = a.reshape(4, 64)
    np.testing.assert_array_equal(y[:256].view(np.float32), a[::-1][:64])
    pairs = y[256:288].reshape(4, 8).copy()
    np.testing.assert_array_equal(pairs.view(np.float32)[:, 0], rows.max(axis=1))
    np.testing.assert_array_equal(pairs.view(np.uint32)[:, 1], rows.argmax(axis=1))
    np.testing.assert_array_equal(y[320:336].view(np.uint32), rows.argmin(axis=1))


def test_copies_of_any_size_take_whole_blocks_of_ub(compile_kernel) -> None:
    a = np.arange(256, dtype=np.float32)
    b = np.zeros(256, np.float32)
    y = launch(
        compile_kernel,
        """
        asc_copy_gm2ub_align_sync((half*)out, (half*)a, 10);
        asc_copy_ub2ub_sync(out + 64, out, 32);
        asc_copy_ub2gm_align_sync((int8_t*)b, (int8_t*)out, 10);
        """,
        a,
        b,
        "float",
    )
    for copied in (y, y[64:], b.view(np.uint8)):
        np.testing.assert_array_equal(copied[:10], a.view(np.uint8)[:10])
    np.testing.assert_array_equal(b.view(np.uint8)[10:], 0)


def test_a_copy_of_no_whole_data_blocks_is_a_fault(compile_kernel) -> None:
    a = np.arange(256, dtype=np.float32)
    with pytest.raises(KernelFault, match="the size of a copy of the C API is no multiple of 32"):
        launch(compile_kernel, "asc_copy_gm2ub(x0, a, 40);", a, a, "float")


ARRAYS = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR y) {
  for (int i = 0; i < 3; ++i) {
    __ubuf__ float x[%d], unused[1];
    __ubuf__ float z[64];
    asc_copy_gm2ub_sync(x, (float*)a + 64 * i, 256);
    asc_add_scalar_sync(z, x, x[0], 64);
    asc_copy_ub2gm_sync((float*)y + 64 * i, z, 256);
  }
}
"""


def test_arrays_lie_apart_in_ub_until_their_scope_ends(compile_kernel) -> None:
    """They lay on the host's stack, where no instruction finds them."""
    a = np.arange(192, dtype=np.float32).reshape(3, 64)
    y = np.zeros_like(a)
    compile_kernel(INCLUDE + ARRAYS % (20 * 1024))(a, y)
    np.testing.assert_array_equal(y, a + a[:, :1])


def test_arrays_that_do_not_fit_into_ub_are_a_fault(compile_kernel) -> None:
    a = np.zeros(192, np.float32)
    with pytest.raises(KernelFault, match="an array of 256 bytes does not fit into UB"):
        compile_kernel(INCLUDE + ARRAYS % (48 * 1024 - 8))(a, np.zeros_like(a))
