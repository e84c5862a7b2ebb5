"""Tensors of int4b_t: their addresses, and Cast between them and half."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

COUNT = 256

KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR y, GM_ADDR z) {
  GlobalTensor<half> in, back;
  GlobalTensor<int4b_t> out;
  in.SetGlobalBuffer((__gm__ half*)x, 256);
  out.SetGlobalBuffer((__gm__ int4b_t*)y, 256);
  back.SetGlobalBuffer((__gm__ half*)z, 256);
  LocalTensor<half> a(TPosition::VECIN, 0, 256), b(TPosition::VECOUT, 4096, 256);
  LocalTensor<int8_t> bytes(TPosition::VECOUT, 8192, 128);
  LocalTensor<int4b_t> c = bytes.ReinterpretCast<int4b_t>();
  DataCopy(a, in, 256);
  Duplicate(bytes.ReinterpretCast<int16_t>(), (int16_t)0, 64);
  Duplicate(b, (half)0, 256);
  PipeBarrier<PIPE_ALL>();
  %s
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, c, 256);
  DataCopy(back, b, 256);
}
"""


def run(compile_kernel, body: str, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the int4b_t elements as int8, and the halves made of them."""
    packed, halves = np.zeros(COUNT // 2, np.int8), np.zeros(COUNT, np.float16)
    compile_kernel(KERNEL % body)(x, packed, halves)
    pairs = np.stack([packed << 4 >> 4, packed >> 4], axis=1)
    return pairs.reshape(COUNT), halves


def values() -> np.ndarray:
    x = np.random.default_rng(5).uniform(-10, 10, COUNT).astype(np.float16)
    x[:6] = [0.5, 1.5, -2.5, 7.5, -8.5, 100]
    return x


@pytest.mark.parametrize(
    ("mode", "rounding"),
    [("NONE", np.rint), ("FLOOR", np.floor), ("CEIL", np.ceil), ("TRUNC", np.trunc)],
)
def test_halves_round_into_four_bits_and_come_back(compile_kernel, mode: str, rounding) -> None:
    body = f"Cast(c, a, RoundMode::CAST_{mode}, 256); Cast(b, c, RoundMode::CAST_NONE, 256);"
    x = values()
    packed, halves = run(compile_kernel, body, x)
    expected = np.clip(rounding(x), -8, 7)
    np.testing.assert_array_equal(packed, expected)
    np.testing.assert_array_equal(halves, expected)


def test_masks_and_strides_count_elements_and_blocks(compile_kernel) -> None:
    body = """
      uint64_t pairs[2] = {0xcull, 0};
      Cast<int4b_t, half>(c, a, RoundMode::CAST_RINT, 64, 1, {1, 1, 2, 8});
      Cast<int4b_t, half>(c[128], a[128], RoundMode::CAST_RINT, pairs, 1, {1, 1, 2, 8});
      Cast<half, int4b_t>(b, c, RoundMode::CAST_NONE, 128, 2, {1, 1, 8, 2});
    """
    x = values()
    packed, halves = run(compile_kernel, body, x)
    expected = np.zeros(COUNT)
    expected[:64] = np.clip(np.rint(x[:64]), -8, 7)
    expected[130:132] = np.clip(np.rint(x[130:132]), -8, 7)
    np.testing.assert_array_equal(packed, expected)
    np.testing.assert_array_equal(halves, expected)


@pytest.mark.parametrize(
    ("body", "text"),
    [
        ("Cast(c, a, RoundMode::CAST_NONE, 255);", "an odd number of int4b_t ends inside a byte"),
        (
            "uint64_t mask[2] = {6, 0};"
            "Cast<int4b_t, half>(c, a, RoundMode::CAST_NONE, mask, 1, {1, 1, 2, 8});",
            "the mask divides two int4b_t that share a byte",
        ),
        ("Cast(c[64], a, RoundMode::CAST_NONE, 256);", "writes bytes 32..160 of a buffer that has"),
        ("Cast(b, c, RoundMode::CAST_RINT, 256);", "int4b_t does not take this type or RoundMode"),
    ],
)
def test_what_does_not_fit_into_bytes_faults(compile_kernel, body: str, text: str) -> None:
    with pytest.raises(KernelFault, match=text):
        run(compile_kernel, body, values())
