"""Built-in functions on addresses that compare, find extremes, gather and convert, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

COMPARE = {
    "lt": np.less,
    "gt": np.greater,
    "eq": np.equal,
    "le": np.less_equal,
    "ge": np.greater_equal,
    "ne": np.not_equal,
}
HEAD = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR a, GM_ADDR b, GM_ADDR y) {
  __ubuf__ T *x0 = (__ubuf__ T*)0, *x1 = (__ubuf__ T*)4096;
  __ubuf__ uint8_t* out = (__ubuf__ uint8_t*)8192;
  copy_gm_to_ubuf(x0, a, 0, 1, 32, 0, 0);
  copy_gm_to_ubuf(x1, b, 0, 1, 32, 0, 0);
  set_mask_norm();
  set_vector_mask(0, ~0ull);
  vector_dup((__ubuf__ uint32_t*)out, 0u, 4, 1, 1, 8, 8);
  pipe_barrier(PIPE_ALL);
"""
TAIL = """
  pipe_barrier(PIPE_ALL);
  copy_ubuf_to_gm(y, out, 0, 1, 32, 0, 0);
}
"""


def launch(compile_kernel, body: str, a: np.ndarray, b: np.ndarray, ctype: str) -> np.ndarray:
    """Return the 1024 bytes that the body leaves behind `out`, of 1024 bytes of each input."""
    y = np.zeros(1024, np.uint8)
    compile_kernel(f"#define T {ctype}\n{HEAD}{body}{TAIL}")(a, b, y)
    return y


def numbers(dtype: type, seed: int = 7, spread: int = 5) -> tuple[np.ndarray, np.ndarray]:
    generator = np.random.default_rng(seed)
    count = 1024 // np.dtype(dtype).itemsize
    return tuple(generator.integers(-spread, spread, count).astype(dtype) for _ in range(2))


@pytest.mark.parametrize(("dtype", "ctype"), [(np.float16, "half"), (np.float32, "float")])
def test_a_comparison_into_memory_looks_at_no_mask_in_either_mode(
    compile_kernel, dtype, ctype
) -> None:
    a, b = numbers(dtype)
    calls = "set_vector_mask(0, 3);"
    for i, (name, mode) in enumerate(zip(COMPARE, ["norm", "count"] * 3, strict=True)):
        calls += f"set_mask_{mode}();"
        calls += f"vcmpv_{name}(out + {128 * i}, x0, x1, 4, 1, 1, 1, 8, 8, 8);"
    y = launch(compile_kernel, calls, a, b, ctype)
    for i, function in enumerate(COMPARE.values()):
        bits = np.packbits(function(a, b), bitorder="little")
        np.testing.assert_array_equal(y[128 * i :][: bits.size], bits)


def test_a_comparison_leaves_the_mask_register_as_it_was(compile_kernel) -> None:
    a, b = numbers(np.float32)
    y = launch(
        compile_kernel,
        """
        set_mask_norm();
        set_vector_mask(0, 5);
        vcmpv_eq(out + 512, x0, x1, 2, 1, 1, 1, 8, 8, 8);
        vcmpvs_gt(out + 768, x0, 1.0f, 2, 1, 1, 8, 8);
        vadds((float*)out, x0, 1.0f, 1, 1, 1, 8, 8);
        """,
        a,
        b,
        "float",
    )
    np.testing.assert_array_equal(y[:12].view(np.float32)[[0, 2]], a[[0, 2]] + 1)
    np.testing.assert_array_equal(y[4:8], 0)
    np.testing.assert_array_equal(y[12:256], 0)


@pytest.mark.parametrize(("dtype", "ctype"), [(np.float16, "half"), (np.float32, "float")])
def test_a_comparison_with_a_scalar_gives_a_bit_for_each_element(
    compile_kernel, dtype, ctype
) -> None:
    a, b = numbers(dtype)
    calls = "".join(
        f"vcmpvs_{name}(out + {128 * i}, x0, (T)1, 4, 1, 1, 8, 8);"
        for i, name in enumerate(COMPARE)
    )
    y = launch(compile_kernel, calls, a, b, ctype)
    for i, function in enumerate(COMPARE.values()):
        bits = np.packbits(function(a, dtype(1)), bitorder="little")
        np.testing.assert_array_equal(y[128 * i :][: bits.size], bits)


@pytest.mark.parametrize(("dtype", "ctype"), [(np.float16, "half"), (np.float32, "float")])
def test_a_comparison_to_the_register_keeps_the_bits_that_the_mask_leaves_out(
    compile_kernel, dtype, ctype
) -> None:
    """It cleared the whole register first."""
    a, b = numbers(dtype)
    lanes = 256 // a.itemsize
    high = "0xf0f0f0f0f0f0f0f0ull" if lanes == 128 else "0"
    y = launch(
        compile_kernel,
        f"""
        set_cmpmask(x1);
        set_mask_norm();
        set_vector_mask({high}, 0x123456789abcdef0ull);
        vcmp_lt(x0, x1, 7, 1, 1, 1, 8, 8, 8);
        pipe_barrier(PIPE_ALL);
        GetCmpMask(LocalTensor<uint8_t>(TPosition::VECCALC, 8192, 1024));
        """,
        a,
        b,
        ctype,
    )
    mask = np.array([0x123456789ABCDEF0, 0xF0F0F0F0F0F0F0F0 if lanes == 128 else 0], np.uint64)
    takes = np.unpackbits(mask.view(np.uint8), bitorder="little").astype(bool)
    kept = np.unpackbits(b.view(np.uint8)[:16], bitorder="little")
    less = np.resize((a < b)[:lanes], 128)
    bits = np.where(takes, less, kept)
    np.testing.assert_array_equal(np.unpackbits(y[:16], bitorder="little"), bits)


ORDERS = ["VALUE_INDEX", "INDEX_VALUE", "ONLY_VALUE", "ONLY_INDEX"]


@pytest.mark.parametrize(("name", "function"), [("vcmax", np.argmax), ("vcmin", np.argmin)])
@pytest.mark.parametrize(("dtype", "ctype"), [(np.float16, "half"), (np.float32, "float")])
def test_extremes_of_repeats_come_in_the_order_asked_for(
    compile_kernel, name, function, dtype, ctype
) -> None:
    a, b = numbers(dtype, spread=100)
    lanes, active, repeats = 256 // a.itemsize, 40, 4
    calls = "set_mask_norm(); set_vector_mask(0, 0xffffffffffull);"
    for i, order in enumerate(ORDERS):
        calls += f"{name}((T*)(out + {256 * i}), x0, {repeats}, 2, 1, 8, Order_t::{order});"
    y = launch(compile_kernel, calls, a, b, ctype)
    rows = a.reshape(repeats, lanes)[:, :active]
    index = function(rows, axis=1)
    value = rows[np.arange(repeats), index]
    kind = np.uint16 if dtype is np.float16 else np.uint32
    areas = y.reshape(4, 256)

    def results(i: int, width: int) -> np.ndarray:
        """Every second group of `width` bytes: the destination's stride is two results."""
        return areas[i].reshape(-1, width)[: 2 * repeats : 2]

    pairs = results(0, 2 * a.itemsize).copy()
    np.testing.assert_array_equal(pairs.view(dtype)[:, 0], value)
    np.testing.assert_array_equal(pairs.view(kind)[:, 1], index)
    pairs = results(1, 2 * a.itemsize).copy()
    np.testing.assert_array_equal(pairs.view(kind)[:, 0], index)
    np.testing.assert_array_equal(pairs.view(dtype)[:, 1], value)
    np.testing.assert_array_equal(results(2, a.itemsize).copy().view(dtype)[:, 0], value)
    np.testing.assert_array_equal(results(3, 4).copy().view(np.uint32)[:, 0], index)


GATHER = """
  __ubuf__ uint32_t* offsets = (__ubuf__ uint32_t*)x1;
  const uint32_t base = %s;
  set_mask_norm();
  set_vector_mask(%s);
  vgather((__ubuf__ U*)out, offsets, base, 9, 2);
"""


@pytest.mark.parametrize("base", ["64", "(uint32_t)(uint64_t)local.GetPhyAddr() + 64"])
@pytest.mark.parametrize(("dtype", "mask"), [(np.uint16, "~0ull, ~0ull"), (np.uint32, "0, ~0ull")])
def test_a_gather_adds_bytes_to_bytes_whether_the_address_is_a_number_or_a_pointer(
    compile_kernel, base, dtype, mask
) -> None:
    a = np.random.default_rng(1).integers(0, 60000, 1024 // dtype().itemsize).astype(dtype)
    lanes = 256 // a.itemsize
    offsets = np.random.default_rng(2).integers(0, 100, 2 * lanes).astype(np.uint32) * a.itemsize
    body = "LocalTensor<uint8_t> local(TPosition::VECCALC, 0, 1024);" + GATHER % (base, mask)
    rows = np.resize(offsets, 256)
    y = launch(compile_kernel, body, a, rows, f"uint8_t\n#define U {np.dtype(dtype).name}_t")
    repeats = np.stack([y[:256], y[288:544]]).view(dtype)
    np.testing.assert_array_equal(repeats.ravel(), a[(64 + offsets) // a.itemsize])
    np.testing.assert_array_equal(y[256:288], 0)


def test_a_gather_from_behind_the_memory_is_a_fault(compile_kernel) -> None:
    body = GATHER % ("512 * 1024", "0, 1")
    zeros = np.zeros(256, np.uint32)
    with pytest.raises(KernelFault, match="Gather reads"):
        launch(compile_kernel, body, zeros, zeros, "uint8_t\n#define U uint32_t")


@pytest.mark.parametrize(("dtype", "ctype"), [(np.uint16, "uint16_t"), (np.uint32, "uint32_t")])
def test_a_pattern_picks_elements_and_says_how_many(compile_kernel, dtype, ctype) -> None:
    a = np.arange(1, 1 + 1024 // dtype().itemsize, dtype=dtype)
    pattern = np.random.default_rng(3).integers(0, 256, 1024).astype(np.uint8)
    lanes = 256 // a.itemsize
    count = lanes // 2 + 6
    body = f"""
        LocalTensor<int32_t> counts(TPosition::VECCALC, 8192 + 736, 8);
        set_mask_norm();
        set_vector_mask(0, 1);  // is not looked at
        vreducev2((T*)out, x0, x1, 2, 1, 5, 8, 0);
        counts.SetValue(0, get_rsvd_cnt());
        vreducev2((T*)(out + 256), x0, x1, 2, 1, 0, 8, 1);
        counts.SetValue(1, get_rsvd_cnt());
        set_mask_count();
        set_vector_mask(0, {count});
        vreducev2((T*)(out + 768), x0, x0, 1, 1, 2, 8, 8);
        counts.SetValue(2, get_rsvd_cnt());
        vector_dup((T*)(out + 864), (T)1, 1, 1, 1, 8, 8);  // the counter mode is still on
        """
    y = launch(compile_kernel, body, a, pattern, ctype)
    bits = np.unpackbits(pattern, bitorder="little").astype(bool)
    expected = [
        a[: 2 * lanes][2::4],
        a[: 2 * lanes][np.concatenate([bits[:lanes], bits[256:][:lanes]])],
        a[:count][1::2],
        np.ones(count, dtype),
    ]
    for at, values in zip([0, 256, 768, 864], expected, strict=True):
        np.testing.assert_array_equal(y[at:][: values.nbytes].view(dtype), values)
    np.testing.assert_array_equal(y[736:748].view(np.int32), [v.size for v in expected[:3]])


def test_a_pattern_that_no_page_lists_is_a_fault(compile_kernel) -> None:
    zeros = np.zeros(256, np.uint32)
    with pytest.raises(KernelFault, match="vreducev2: patternMode is one of 0 to 7"):
        launch(
            compile_kernel, "vreducev2((T*)out, x0, x0, 1, 1, 8, 8, 8);", zeros, zeros, "uint32_t"
        )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("rounding", ["r", "a", "f", "c", "z"])
def test_a_conversion_rounds_as_its_last_letter_says(compile_kernel, rounding) -> None:
    a = np.tile(np.array([-2.5, -1.5, -0.7, -0.2, 0.5, 1.5, 2.5, 3.3], np.float32), 32)
    y = launch(
        compile_kernel,
        f"""
        set_mask_count();
        set_vector_mask(0, 200);
        vconv_f322s32{rounding}((int32_t*)out, x0, 1, 1, 1, 8, 8);
        """,
        a,
        a,
        "float",
    )
    functions = {
        "r": np.rint,
        "a": lambda x: np.trunc(x + np.copysign(0.5, x)),
        "f": np.floor,
        "c": np.ceil,
        "z": np.trunc,
    }
    expected = functions[rounding](a).astype(np.int32)
    np.testing.assert_array_equal(y.view(np.int32)[:200], expected[:200])
    np.testing.assert_array_equal(y.view(np.int32)[200:], 0)
