"""TransDataTo5HD and Transpose against NumPy, and the faults of their misuse."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR z) {
  using T = %(type)s;
  constexpr uint32_t length = 16384 / sizeof(T), width = 32 / sizeof(T);
  GlobalTensor<T> source, out;
  source.SetGlobalBuffer((__gm__ T*)x, length);
  out.SetGlobalBuffer((__gm__ T*)z, length);
  LocalTensor<T> a(TPosition::VECIN, 0, length), c(TPosition::VECOUT, 16384, length);
  LocalTensor<uint8_t> work(TPosition::VECCALC, 32768, 16384);
  DataCopy(a, source, length);
  DataCopy(c, source, length);
  PipeBarrier<PIPE_ALL>();
  %(body)s
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, c, length);
}
"""
TYPES = {
    "int8_t": np.int8,
    "uint8_t": np.uint8,
    "half": np.float16,
    "int16_t": np.int16,
    "uint16_t": np.uint16,
    "float": np.float32,
    "int32_t": np.int32,
    "uint32_t": np.uint32,
}
# The three ways to say where the blocks lie.
LISTS = {
    "tensors": """LocalTensor<T> to[16], from[16];
        for (int i = 0; i < 16; ++i) { to[i] = c[i * %(dst)s]; from[i] = a[i * %(src)s]; }
        TransDataTo5HD<T>(to, from, params);""",
    "addresses": """uint64_t to[16], from[16];
        for (int i = 0; i < 16; ++i) {
          to[i] = (uint64_t)c[i * %(dst)s].GetPhyAddr();
          from[i] = (uint64_t)a[i * %(src)s].GetPhyAddr();
        }
        TransDataTo5HD<T>(to, from, params);""",
    "tensors of addresses": """
        LocalTensor<uint64_t> to(TPosition::VECCALC, 65536, 16);
        LocalTensor<uint64_t> from(TPosition::VECCALC, 66560, 16);
        for (int i = 0; i < 16; ++i) {
          to.SetValue(i, (uint64_t)c[i * %(dst)s].GetPhyAddr());
          from.SetValue(i, (uint64_t)a[i * %(src)s].GetPhyAddr());
        }
        TransDataTo5HD<T>(to, from, params);""",
}


def run(compile_kernel, body: str, kind: str) -> tuple[np.ndarray, np.ndarray]:
    kernel = compile_kernel(KERNEL % {"type": kind, "body": body})
    dtype = np.dtype(TYPES[kind])
    x = np.random.default_rng(5).integers(0, 100, 16384 // dtype.itemsize).astype(dtype)
    z = np.zeros_like(x)
    kernel(x, z)
    return x, z


def trans_data(
    dst: str, src: str, repeat: int, dst_repeat: int, src_repeat: int, form: str = "addresses"
) -> str:
    params = f"TransDataTo5HDParams params(false, false, {repeat}, {dst_repeat}, {src_repeat});"
    return params + LISTS[form] % {"dst": dst, "src": src}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("form", sorted(LISTS))
@pytest.mark.parametrize("kind", [kind for kind in TYPES if "8" not in kind])
def test_sixteen_blocks_are_transposed(compile_kernel, kind: str, form: str) -> None:
    x, z = run(compile_kernel, trans_data("width", "width", 1, 0, 0, form), kind)
    width = 32 // x.itemsize
    np.testing.assert_array_equal(
        z[: 16 * width].reshape(width, 16), x[: 16 * width].reshape(16, width).T
    )
    np.testing.assert_array_equal(z[16 * width :], x[16 * width :])


@pytest.mark.parametrize("high", [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_bytes_come_from_and_go_to_the_half_of_a_block_that_is_said(
    compile_kernel, high: tuple[int, int]
) -> None:
    dst_high, src_high = high
    body = f"TransDataTo5HDParams params({dst_high}, {src_high}, 1, 0, 0);" + LISTS["tensors"] % {
        "dst": "width",
        "src": "width",
    }
    x, z = run(compile_kernel, body, "int8_t")
    blocks = x[:512].reshape(16, 2, 16)
    expected = blocks.copy()
    expected[:, dst_high] = blocks[:, src_high].T
    np.testing.assert_array_equal(z[:512].reshape(16, 2, 16), expected)


def test_repeats_turn_nchw_into_nc1hwc0(compile_kernel) -> None:
    x, z = run(compile_kernel, trans_data("16", "256", 16, 16, 1), "half")
    planes = x[: 16 * 256].reshape(16, 256)
    np.testing.assert_array_equal(z[: 16 * 256].reshape(256, 16), planes.T)


def test_the_strides_already_apply_to_a_single_repeat(compile_kernel) -> None:
    x, z = run(compile_kernel, trans_data("width", "width", 1, 16, 32), "half")
    np.testing.assert_array_equal(z[256:512].reshape(16, 16), x[512:768].reshape(16, 16).T)
    np.testing.assert_array_equal(z[:256], x[:256])


@pytest.mark.parametrize("target", ["c", "a"])
def test_a_square_matrix_is_transposed_also_in_place(compile_kernel, target: str) -> None:
    body = f"Transpose({target}, a);"
    if target == "a":
        body += "PipeBarrier<PIPE_ALL>(); DataCopy(c, a, 256);"
    x, z = run(compile_kernel, body, "uint16_t")
    np.testing.assert_array_equal(z[:256].reshape(16, 16), x[:256].reshape(16, 16).T)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", sorted(TYPES))
@pytest.mark.parametrize("layout", ["NCHW2NHWC", "NHWC2NCHW"])
def test_channels_move_between_the_last_place_and_the_second(
    compile_kernel, kind: str, layout: str
) -> None:
    body = f"Transpose(c, a, work, {{3, 5, 4, 8, TransposeType::TRANSPOSE_{layout}}});"
    x, z = run(compile_kernel, body, kind)
    size = 3 * 5 * 4 * 8
    if layout == "NCHW2NHWC":
        expected = x[:size].reshape(3, 5, 4, 8).transpose(0, 2, 3, 1)
    else:
        expected = x[:size].reshape(3, 4, 8, 5).transpose(0, 3, 1, 2)
    np.testing.assert_array_equal(z[:size], expected.ravel())


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("body", "fault", "text"),
    [
        (
            "Transpose(c, a, work, {1, 2, 2, 3, TransposeType::TRANSPOSE_NCHW2NHWC});",
            "Misaligned",
            "hSize . wSize is 12 bytes",
        ),
        (
            "Transpose(c, a, work, {1, 2, 4, 8, TransposeType::TRANSPOSE_NZ2ND_0213});",
            "IllegalOperand",
            "TransposeType 1",
        ),
        (
            "Transpose(a, a, work, {1, 2, 4, 8, TransposeType::TRANSPOSE_NCHW2NHWC});",
            "IllegalOperand",
            "overlaps",
        ),
        (
            "Transpose(c, a, work[15872], {1, 2, 4, 8, TransposeType::TRANSPOSE_NCHW2NHWC});",
            "OutOfBounds",
            "Transpose",
        ),
        (trans_data("width + 1", "width", 1, 0, 0), "Misaligned", "dst 0 starts"),
        (trans_data("width", "width", 200, 0, 255), "OutOfBounds", "TransDataTo5HD"),
    ],
)
def test_misuse_faults(compile_kernel, body: str, fault: str, text: str) -> None:
    with pytest.raises(KernelFault, match=text) as caught:
        run(compile_kernel, body, "half")
    assert caught.value.category == fault
