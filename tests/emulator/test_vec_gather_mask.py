"""GatherMask and Gatherb against NumPy written from their pages, and the faults of their misuse."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR p, GM_ADDR z, GM_ADDR n) {
  using T = %(type)s;
  using U = %(unsigned)s;
  GlobalTensor<T> source, out;
  GlobalTensor<U> bits;
  GlobalTensor<uint64_t> number;
  source.SetGlobalBuffer((__gm__ T*)x, 1024);
  bits.SetGlobalBuffer((__gm__ U*)p, 64);
  out.SetGlobalBuffer((__gm__ T*)z, 1024);
  number.SetGlobalBuffer((__gm__ uint64_t*)n, 4);
  LocalTensor<T> a(TPosition::VECIN, 0, 1024), c(TPosition::VECOUT, 8192, 1024);
  LocalTensor<U> pattern(TPosition::VECIN, 4096, 64);
  LocalTensor<uint64_t> count(TPosition::VECCALC, 16384, 4);
  LocalTensor<uint32_t> offset = pattern.template ReinterpretCast<uint32_t>();
  uint64_t kept = 0;
  DataCopy(a, source, 1024);
  DataCopy(pattern, bits, 64);
  Duplicate(c.template ReinterpretCast<uint32_t>(), (uint32_t)0, 1024 * sizeof(T) / 4);
  PipeBarrier<PIPE_ALL>();
  %(body)s
  PipeBarrier<PIPE_ALL>();
  count.SetValue(0, kept);
  DataCopy(out, c, 1024);
  DataCopy(number, count, 4);
}
"""
TYPES = {
    "half": np.float16,
    "float": np.float32,
    "int16_t": np.int16,
    "uint16_t": np.uint16,
    "int32_t": np.int32,
    "uint32_t": np.uint32,
}


def run(compile_kernel, body: str, kind: str, pattern: np.ndarray | None = None):
    """Return the source, the destination and the number of elements picked."""
    dtype = np.dtype(TYPES[kind])
    kernel = compile_kernel(
        KERNEL % {"type": kind, "unsigned": f"uint{8 * dtype.itemsize}_t", "body": body}
    )
    x = np.arange(1024).astype(dtype)
    z = np.zeros(1024, dtype=dtype)
    n = np.zeros(4, dtype=np.uint64)
    bits = np.zeros(256, dtype=np.uint8)
    if pattern is not None:
        bits[: pattern.nbytes] = pattern.view(np.uint8)
    kernel(x, bits, z, n)
    return x, z, int(n[0])


def expected_picks(pattern: int, index: np.ndarray) -> np.ndarray:
    """The built-in patterns as the page of GatherMask lists them."""
    if pattern == 7:
        return np.ones(index.size, dtype=bool)
    if pattern <= 2:
        return index % 2 == pattern - 1
    return index % 4 == pattern - 3


@pytest.mark.sampled(3)
@pytest.mark.parametrize("kind", sorted(TYPES))
@pytest.mark.parametrize("pattern", range(1, 8))
def test_each_built_in_pattern_picks_its_elements(compile_kernel, kind: str, pattern: int) -> None:
    body = "GatherMask(c, a, (uint8_t)pattern.GetValue(0), false, 0, {1, 3, 8, 0}, kept);"
    x, z, count = run(compile_kernel, body, kind, np.array([pattern, 0], dtype=np.uint32))
    lanes = 256 // x.itemsize
    source = x[: 3 * lanes]
    picked = source[expected_picks(pattern, np.arange(3 * lanes))]
    assert count == picked.size
    np.testing.assert_array_equal(z[:count], picked)
    assert not z[count:].any()


@pytest.mark.parametrize("kind", ["half", "float"])
def test_the_users_pattern_is_read_anew_where_its_repeat_stride_says(
    compile_kernel, kind: str
) -> None:
    rng = np.random.default_rng(3)
    pattern = rng.integers(0, 256, 256, dtype=np.uint8)
    body = "GatherMask(c, a, pattern, false, 0, {1, 2, 8, 1}, kept);"
    x, z, count = run(compile_kernel, body, kind, pattern)
    lanes = 256 // x.itemsize
    picked = np.concatenate(
        [
            x[r * lanes : (r + 1) * lanes][
                np.unpackbits(pattern[r * 32 :], bitorder="little")[:lanes].astype(bool)
            ]
            for r in range(2)
        ]
    )
    assert count == picked.size
    np.testing.assert_array_equal(z[:count], picked)


def test_the_counter_mode_handles_mask_elements_a_repeat(compile_kernel) -> None:
    pattern = np.full(8, 0x7E7C00A5, dtype=np.uint32)
    body = "GatherMask(c, a, pattern, true, 70, {1, 2, 4, 0}, kept);"
    x, z, count = run(compile_kernel, body, "uint32_t", pattern)
    bits = np.unpackbits(pattern.view(np.uint8), bitorder="little")[:70].astype(bool)
    picked = np.concatenate([x[start : start + 70][bits] for start in (0, 32)])
    assert count == picked.size
    np.testing.assert_array_equal(z[:count], picked)


def test_block_strides_skip_blocks_of_the_source(compile_kernel) -> None:
    body = "GatherMask(c, a, 7, false, 0, {2, 2, 16, 0}, kept);"
    x, z, count = run(compile_kernel, body, "float")
    picked = x[:256].reshape(2, 8, 2, 8)[:, :, 0].ravel()
    assert count == 128
    np.testing.assert_array_equal(z[:128], picked)


def test_gathering_in_place_and_leaving_the_counter_mask_mode(compile_kernel) -> None:
    body = (
        "SetMaskCount(); GatherMask(a, a, 2, false, 0, {1, 4, 8, 0}, kept);"
        "Adds(c, a, (float)0, 64, 2, {1, 1, 8, 8});"
    )
    x, z, count = run(compile_kernel, body, "float")
    assert count == 128
    np.testing.assert_array_equal(z[:128], x[1:256:2])


@pytest.mark.sampled(2)
@pytest.mark.parametrize(
    ("body", "fault", "text"),
    [
        ("GatherMask(c, a, 8, false, 0, {1, 1, 8, 0}, kept);", "IllegalOperand", "pattern 8"),
        ("GatherMask(c, a, 0, false, 0, {1, 1, 8, 0}, kept);", "IllegalOperand", "not one of"),
        ("GatherMask(c, a, 7, true, 0, {1, 1, 8, 0}, kept);", "IllegalOperand", "mask"),
        ("GatherMask(c, a, 7, false, 0, {1, 17, 8, 0}, kept);", "OutOfBounds", "GatherMask"),
        ("GatherMask(c[1023], a, 7, false, 0, {1, 1, 8, 0}, kept);", "Misaligned", "dst"),
        ("GatherMask(c, a, 7, true, 70, {2, 1, 8, 0}, kept);", "Unspecified", "block stride"),
    ],
)
def test_misuse_of_gather_mask_faults(compile_kernel, body: str, fault: str, text: str) -> None:
    with pytest.raises(KernelFault, match=text) as caught:
        run(compile_kernel, body, "float")
    assert caught.value.category == fault


@pytest.mark.parametrize("kind", ["uint16_t", "uint32_t"])
def test_gatherb_gathers_data_blocks(compile_kernel, kind: str) -> None:
    offsets = (np.array([*range(7, -1, -1), *range(16, 24)]) * 32).astype(np.uint32)
    body = "Gatherb(c, a, offset, 2, GatherRepeatParams{2, 16});"
    x, z, _ = run(compile_kernel, body, kind, offsets)
    per_block = 32 // x.itemsize
    blocks = x.reshape(-1, per_block)
    got = z[: 32 * per_block].reshape(16, 2, per_block)
    np.testing.assert_array_equal(got[:, 0], blocks[offsets // 32])
    assert not got[:, 1].any()


def test_gatherb_with_an_offset_inside_a_block_faults(compile_kernel) -> None:
    offsets = np.array([0, 0, 0, 16, 0, 0, 0, 0], dtype=np.uint32)
    with pytest.raises(KernelFault, match="data block 3 is at byte 16"):
        run(compile_kernel, "Gatherb(c, a, offset, 1, {1, 8});", "uint32_t", offsets)
