"""BilinearInterpolation against the steps that its page lists."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR o, GM_ADDR w, GM_ADDR y) {
  GlobalTensor<half> in, weights, out;
  GlobalTensor<uint32_t> offsets;
  in.SetGlobalBuffer((__gm__ half*)x, 512);
  offsets.SetGlobalBuffer((__gm__ uint32_t*)o, 32);
  weights.SetGlobalBuffer((__gm__ half*)w, 32);
  out.SetGlobalBuffer((__gm__ half*)y, 512);
  LocalTensor<half> a(TPosition::VECIN, 0, 512), b(TPosition::VECIN, 2048, 32);
  LocalTensor<uint32_t> places(TPosition::VECIN, 4096, 32);
  LocalTensor<half> c(TPosition::VECOUT, 8192, 512);
  LocalTensor<uint8_t> work(TPosition::VECCALC, 16384, 32768);
  uint64_t all[2] = {~0ull, ~0ull}, some[2] = {0xff00ull, 0x1ull};
  DataCopy(a, in, 512);
  DataCopy(b, weights, 32);
  DataCopy(places, offsets, 32);
  Duplicate(c, (half)0, 512);
  PipeBarrier<PIPE_ALL>();
  BilinearInterpolation(c, a, places, b, %s, work);
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, c, 512);
}
"""


def run(compile_kernel, call: str, offsets: np.ndarray) -> tuple[np.ndarray, ...]:
    rng = np.random.default_rng(2)
    x, w = rng.normal(size=512).astype(np.float16), rng.normal(size=32).astype(np.float16)
    y = np.zeros(512, np.float16)
    compile_kernel(KERNEL % call)(x, offsets.astype(np.uint32), w, y)
    return x, w, y


def expected(x, w, offsets, horizontal: int, vertical: int, per_block: bool) -> np.ndarray:
    """Return the rows; every product and every sum is rounded to half."""
    gathered = x.reshape(32, 16)[offsets // 32].reshape(-1, 8, 16)[: horizontal * vertical]
    factors = w.reshape(-1, 8, 1) if per_block else w[: len(gathered), None, None]
    products = (gathered * factors[: len(gathered)]).reshape(vertical, horizontal, 128)
    rows = products[:, 0]
    for column in range(1, horizontal):
        rows = rows + products[:, column]
    return rows


@pytest.mark.parametrize(
    ("call", "horizontal", "vertical", "per_block"),
    [
        ("uint64_t{128}, 2, false, 1, 128, 2", 2, 2, False),
        ("all, 2, true, 1, 128, 2", 2, 2, True),
        ("uint64_t{128}, 4, true, 1, 128, 1", 4, 1, True),
        ("all, 1, false, 1, 128, 4", 1, 4, False),
    ],
)
def test_blocks_are_gathered_weighted_and_summed(
    compile_kernel, call: str, horizontal: int, vertical: int, per_block: bool
) -> None:
    offsets = np.random.default_rng(3).permutation(32) * 32
    x, w, y = run(compile_kernel, call, offsets)
    rows = expected(x, w, offsets, horizontal, vertical, per_block)
    np.testing.assert_array_equal(y[: rows.size].reshape(rows.shape), rows)
    assert not y[rows.size :].any()


def test_strides_and_masks_say_where_results_go(compile_kernel) -> None:
    offsets = np.arange(32) * 32
    x, w, y = run(compile_kernel, "some, 2, false, 2, 256, 2", offsets)
    rows = expected(x, w, offsets, 2, 2, False)
    lanes = [*range(8, 16), 64]
    place = np.array(
        [row * 256 + lane // 16 * 32 + lane % 16 for row in range(2) for lane in lanes]
    )
    wanted = np.zeros(512, np.float16)
    wanted[place] = rows[:, lanes].reshape(-1)
    np.testing.assert_array_equal(y, wanted)


@pytest.mark.parametrize(
    ("call", "text"),
    [
        ("uint64_t{128}, 0, false, 1, 128, 2", "hRepeat and vRepeat are 1 to 255"),
        ("uint64_t{128}, 2, false, 1, 130, 2", "vROffset is 128 or more"),
    ],
)
def test_parameters_outside_their_ranges_fault(compile_kernel, call: str, text: str) -> None:
    with pytest.raises(KernelFault, match=text):
        run(compile_kernel, call, np.arange(32) * 32)
