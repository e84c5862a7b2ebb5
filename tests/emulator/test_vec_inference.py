"""Instructions that only the inference series has: region proposals and Scatter."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from opkit.errors import KernelFault

KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR p, GM_ADDR z) {
  using T = %(type)s;
  constexpr uint32_t count = 64, item = 8;
  GlobalTensor<T> source, out;
  GlobalTensor<uint32_t> places;
  source.SetGlobalBuffer((__gm__ T*)x, count);
  places.SetGlobalBuffer((__gm__ uint32_t*)p, count);
  out.SetGlobalBuffer((__gm__ T*)z, count * item);
  LocalTensor<T> a(TPosition::VECIN, 0, count), c(TPosition::VECOUT, 4096, count * item);
  LocalTensor<T> work(TPosition::VECCALC, 8192, count * item);
  LocalTensor<uint32_t> offset(TPosition::VECIN, 12288, count);
  DataCopy(a, source, count);
  DataCopy(offset, places, count);
  Duplicate(c, (T)0, count * item);
  Duplicate(work, (T)0, count * item);
  PipeBarrier<PIPE_ALL>();
  %(body)s
  PipeBarrier<PIPE_ALL>();
  DataCopy(out, c, count * item);
}
"""
TYPES = {"half": np.float16, "float": np.float32}


@pytest.fixture(autouse=True)
def inference_chip(default_device: None) -> Iterator[None]:
    """Run every test here on the inference chip."""
    from opkit.emulator import _emulator

    _emulator.configure(**{**_emulator.configuration(), "chip": "Ascend310P3"})
    yield


def run(compile_kernel, body: str, kind: str, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    kernel = compile_kernel(KERNEL % {"type": kind, "body": body}, arch=2002)
    x = np.random.default_rng(8).integers(-20, 20, 64).astype(TYPES[kind])
    z = np.zeros(64 * 8, dtype=TYPES[kind])
    kernel(x, places.astype(np.uint32), z)
    return x, z


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_proposals_are_filled_sorted_merged_and_emptied(compile_kernel, kind: str) -> None:
    body = """ProposalConcat(work, a, 4, 4);
      ProposalConcat(work, a, 4, 5);
      RpSort16(work, work, 4);
      const uint16_t lengths[4] = {16, 16, 16, 16};
      MrgSortSrcList<T> list(work, work[16 * item], work[32 * item], work[48 * item]);
      LocalTensor<T> merged(TPosition::VECCALC, 16384, count * item);
      MrgSort4(merged, list, MrgSort4Info(lengths, false, 15, 1));
      ProposalExtract(c, merged, 4, 4);
      ProposalExtract(c[count], merged, 4, 5);"""
    x, z = run(compile_kernel, body, kind, np.zeros(64))
    np.testing.assert_array_equal(z[:64], np.sort(x)[::-1])
    np.testing.assert_array_equal(z[64:128], np.sort(x)[::-1])


def test_a_place_that_proposals_do_not_have_faults(compile_kernel) -> None:
    with pytest.raises(KernelFault, match="modeNumber 6"):
        run(compile_kernel, "ProposalConcat(work, a, 1, 6);", "half", np.zeros(64))


@pytest.mark.parametrize("kind", sorted(TYPES))
@pytest.mark.parametrize("form", ["64", "(uint64_t)(256 / sizeof(T)), 64 * sizeof(T) / 256, 8"])
def test_scatter_puts_each_element_where_its_offset_says(
    compile_kernel, kind: str, form: str
) -> None:
    size = np.dtype(TYPES[kind]).itemsize
    if kind == "half" and form != "64":
        form = "(uint64_t)64, 1, 8"
    places = np.random.default_rng(9).permutation(64) * size
    x, z = run(compile_kernel, f"Scatter(c, a, offset, {8 * size}, {form});", kind, places)
    expected = np.zeros(512, dtype=TYPES[kind])
    expected[8 + places // size] = x
    np.testing.assert_array_equal(z, expected)


@pytest.mark.parametrize(
    ("places", "fault", "text"),
    [
        (np.arange(64) * 2 + 1, "Misaligned", "element 0 goes to byte 1"),
        (np.arange(64) * 64, "OutOfBounds", "Scatter"),
        (np.arange(64) // 2 * 2, "Unspecified", "go to byte 0"),
    ],
)
def test_wrong_places_fault(compile_kernel, places: np.ndarray, fault: str, text: str) -> None:
    with pytest.raises(KernelFault, match=text) as caught:
        run(compile_kernel, "Scatter(c, a, offset, 0, 64);", "half", places)
    assert caught.value.category == fault


PADDED = {
    (0, 0): lambda block: np.repeat(block[:, :1], block.shape[1], axis=1),
    (0, 1): lambda block: np.repeat(block[:, -1:], block.shape[1], axis=1),
    (1, 0): lambda block: block[:, ::-1],
    (1, 1): lambda block: block[:, ::-1],
    (2, 0): lambda block: np.roll(block[:, ::-1], 1, axis=1) * (np.arange(block.shape[1]) > 0),
    (2, 1): lambda block: (
        np.roll(block[:, ::-1], -1, axis=1) * (np.arange(block.shape[1])[::-1] > 0)
    ),
}


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", sorted(TYPES))
@pytest.mark.parametrize(("mode", "side"), sorted(PADDED))
def test_padding_repeats_or_mirrors_each_block(
    compile_kernel, kind: str, mode: int, side: int
) -> None:
    body = f"""uint64_t bits[2] = {{0x30000001ull, 0}};
      const bool side = {side};
      Muls(work, a, (T)1, 64);  // masks do not keep it from reading whole repeats
      PipeBarrier<PIPE_V>();
      VectorPadding(c, a, {mode}, side, 64);
      VectorPadding(c[64], work, {mode}, side, uint64_t{{5}}, 1, {{1, 1, 8, 8}});
      VectorPadding(c[128], work, {mode}, side, bits, 1, {{1, 1, 8, 8}});
      VectorPadding(c[256], a, {mode}, side, 3);"""
    x, z = run(compile_kernel, body, kind, np.arange(64))
    per_block = 32 // x.itemsize
    filled = PADDED[mode, side](x.reshape(-1, per_block)).reshape(64)
    np.testing.assert_array_equal(z[:64], filled)
    np.testing.assert_array_equal(z[64:128], np.where(np.arange(64) < 5, filled, 0))
    is_chosen = np.isin(np.arange(64), [0, 28, 29])
    np.testing.assert_array_equal(z[128:192], np.where(is_chosen, filled, 0))
    np.testing.assert_array_equal(z[256:320], np.where(np.arange(64) < 3, filled, 0))


def test_an_unknown_padding_mode_faults(compile_kernel) -> None:
    with pytest.raises(KernelFault, match="padMode 3 is over 2"):
        run(compile_kernel, "VectorPadding(c, a, 7, false, 64);", "half", np.arange(64))
