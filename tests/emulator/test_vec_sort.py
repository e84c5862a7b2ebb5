"""The sort family against NumPy's stable sort: pairs on A2, and the faults of misuse."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import KernelFault

KERNEL = """
extern "C" __global__ __aicore__ void kernel(GM_ADDR x, GM_ADDR i, GM_ADDR z, GM_ADDR n) {
  using T = %(type)s;
  constexpr uint32_t count = %(count)s, pair = 8 / sizeof(T);
  GlobalTensor<T> scores, out;
  GlobalTensor<uint32_t> indices, number;
  scores.SetGlobalBuffer((__gm__ T*)x, count);
  indices.SetGlobalBuffer((__gm__ uint32_t*)i, count);
  out.SetGlobalBuffer((__gm__ T*)z, count * pair);
  number.SetGlobalBuffer((__gm__ uint32_t*)n, 8);
  LocalTensor<T> a(TPosition::VECIN, 0, count), c(TPosition::VECOUT, 16384, count * pair);
  LocalTensor<uint32_t> b(TPosition::VECIN, 8192, count), taken(TPosition::VECCALC, 73728, 8);
  LocalTensor<T> work(TPosition::VECCALC, 32768, count * pair);
  LocalTensor<T> more(TPosition::VECCALC, 49152, count * pair);
  LocalTensor<T> values(TPosition::VECOUT, 65536, count);
  LocalTensor<uint32_t> places(TPosition::VECOUT, 69632, count);
  uint32_t sorted[4] = {0, 0, 0, 0};
  DataCopy(a, scores, count);
  DataCopy(b, indices, count);
  PipeBarrier<PIPE_ALL>();
  %(body)s
  PipeBarrier<PIPE_ALL>();
  for (int queue = 0; queue < 4; ++queue) taken.SetValue(queue, sorted[queue]);
  DataCopy(out, c, count * pair);
  DataCopy(number, taken, 8);
}
"""
TYPES = {"half": np.float16, "float": np.float32}


def run(compile_kernel, body: str, kind: str, x: np.ndarray) -> tuple[np.ndarray, ...]:
    """Return scores and indices of the destination's pairs, and what `sorted` holds."""
    body = f"// {kind}\n{body}"
    kernel = compile_kernel(KERNEL % {"type": kind, "count": x.size, "body": body})
    indices = np.arange(1000, 1000 + x.size, dtype=np.uint32)
    z = np.zeros(x.size * 8, dtype=np.uint8)
    n = np.zeros(8, dtype=np.uint32)
    kernel(x.astype(TYPES[kind]), indices, z, n)
    pairs = z.reshape(-1, 8)
    scores = pairs[:, : x.astype(TYPES[kind]).itemsize].copy().view(TYPES[kind]).ravel()
    return scores, pairs[:, 4:].copy().view(np.uint32).ravel(), n[:4]


def numbers(count: int) -> np.ndarray:
    """Few distinct values, so that many scores are equal, and both infinities."""
    x = np.random.default_rng(count).integers(-20, 20, count).astype(np.float32)
    x[3], x[7] = np.inf, -np.inf
    return x


def order_of(x: np.ndarray, group: int) -> np.ndarray:
    """Descending, stable, inside groups."""
    groups = [
        start + np.argsort(-x[start : start + group], kind="stable")
        for start in range(0, x.size, group)
    ]
    return np.concatenate(groups)


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_sort32_sorts_each_32_pairs_and_keeps_the_order_of_equals(compile_kernel, kind) -> None:
    x = numbers(128)
    scores, indices, _ = run(compile_kernel, "Sort32(c, a, b, 4);", kind, x)
    order = order_of(x, 32)
    np.testing.assert_array_equal(scores, x[order].astype(TYPES[kind]))
    np.testing.assert_array_equal(indices, 1000 + order)


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_mrgsort_merges_with_repeats(compile_kernel, kind) -> None:
    body = """Sort32(work, a, b, 8);
      MrgSort4Info info;
      for (int q = 0; q < 4; ++q) info.elementLengths[q] = 32;
      info.validBit = 15;
      info.repeatTimes = 2;
      MrgSortSrcList<T> list(work, work[32 * pair], work[64 * pair], work[96 * pair]);
      MrgSort(c, list, info);"""
    x = numbers(256)
    scores, indices, _ = run(compile_kernel, body, kind, x)
    order = order_of(x, 128)
    np.testing.assert_array_equal(scores, x[order].astype(TYPES[kind]))
    np.testing.assert_array_equal(indices, 1000 + order)


@pytest.mark.parametrize("queues", [2, 3])
def test_mrgsort_merges_fewer_queues_of_different_lengths(compile_kernel, queues: int) -> None:
    body = f"""Duplicate(c, (T)0, count * pair);
      Sort32(work, a, b, {queues});
      const uint16_t lengths[4] = {{32, 16, 32, 32}};
      MrgSortSrcList<T> list(work, work[32 * pair], work[64 * pair], work[0]);
      MrgSort(c, list, MrgSort4Info(lengths, false, {2**queues - 1}, 1));"""
    x = numbers(32 * queues)
    scores, indices, _ = run(compile_kernel, body, "float", x)
    order = order_of(x, 32)
    order = np.delete(order, np.arange(48, 64))
    order = order[np.argsort(-x[order], kind="stable")]
    np.testing.assert_array_equal(scores[: order.size], x[order])
    np.testing.assert_array_equal(indices[: order.size], 1000 + order)
    assert not scores[order.size :].any()


def test_a_merge_that_stops_says_what_it_took_of_each_queue(compile_kernel) -> None:
    body = """Duplicate(c, (T)0, count * pair);
      Sort32(work, a, b, 4);
      const uint16_t lengths[4] = {32, 32, 32, 32};
      MrgSortSrcList<T> list(work, work[32 * pair], work[64 * pair], work[96 * pair]);
      MrgSort<T, true>(c, list, lengths, sorted, 15, 1);
      uint16_t one, two, three, four;
      GetMrgSortResult(one, two, three, four);
      if (one != sorted[0] || two != sorted[1] || three != sorted[2] || four != sorted[3]) {
        sorted[0] = 99;
      }"""
    x = np.arange(128, dtype=np.float32)
    x[0:32] += 64  # the first queue's middle lies among the third's
    scores, _, taken = run(compile_kernel, body, "float", x)
    merged = np.sort(np.concatenate([x[0:32], x[32:64], x[64:96], x[96:128]]))[::-1]
    assert taken.sum() == 32
    assert list(taken) == [0, 0, 0, 32]
    np.testing.assert_array_equal(scores[:32], merged[:32])
    assert not scores[32:].any()


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", sorted(TYPES))
@pytest.mark.parametrize("queues", [1, 2, 5, 16, 21])
def test_a_full_sort_sorts_all_and_extract_takes_the_pairs_apart(
    compile_kernel, kind, queues
) -> None:
    body = """LocalTensor<T> concat;
      Concat(concat, a, more, count / 16);
      Sort<T, true>(c, concat, b, work, count / 32);
      Extract(values, places, c, count / 32);
      PipeBarrier<PIPE_ALL>();
      LocalTensor<uint32_t> words = c.template ReinterpretCast<uint32_t>();
      for (uint32_t k = 0; k < count; ++k) {
        if (values.GetValue(k) != c.GetValue(k * pair)) sorted[0] += 1;
        if (places.GetValue(k) != words.GetValue(2 * k + 1)) sorted[1] += 1;
      }"""
    x = numbers(32 * queues)
    scores, indices, wrong = run(compile_kernel, body, kind, x)
    order = np.argsort(-x, kind="stable")
    np.testing.assert_array_equal(scores, x[order].astype(TYPES[kind]))
    np.testing.assert_array_equal(indices, 1000 + order)
    assert not wrong.any()


def test_lengths_and_offsets_of_sorted_data_count_elements(compile_kernel) -> None:
    # The length was in bytes: public kernels multiply it by sizeof(T), or index with it.
    body = """sorted[0] = GetSortLen<T>(128); sorted[1] = GetSortOffset<T>(128);
      sorted[2] = GetSortLen<float>(128); sorted[3] = GetSortOffset<float>(128);
      Duplicate(c, (T)0, count * pair);"""
    _, _, n = run(compile_kernel, body, "half", numbers(32))
    assert list(n) == [512, 512, 256, 256]


MERGE = """Sort32(work, a, b, 4);
  const uint16_t lengths[4] = {%(lengths)s};
  MrgSortSrcList<T> list(work[%(first)s], work[32 * pair], work[64 * pair], work[96 * pair]);
  MrgSort(%(dst)s, list, MrgSort4Info(lengths, false, %(valid)s, 1));"""


def merge(lengths: str = "32, 32, 32, 32", first: int = 0, dst: str = "c", valid: int = 15) -> str:
    return MERGE % {"lengths": lengths, "first": first, "dst": dst, "valid": valid}


@pytest.mark.sampled(3)
@pytest.mark.parametrize(
    ("body", "fault", "text"),
    [
        ("Sort32(c, a, b, 5);", "OutOfBounds", "Sort32"),
        ("Sort32(c, a, b, 256);", "IllegalOperand", "256 is over 255"),
        ("Sort32(c[1], a, b, 1);", "Misaligned", "dst"),
        (merge(valid=5), "IllegalOperand", "validBit 5"),
        (merge(lengths="4096, 1, 1, 1"), "IllegalOperand", "4096 elements"),
        (merge(first=1), "Misaligned", "src0"),
        (
            merge(lengths="16, 16, 16, 16", dst="work[32 * pair]"),
            "IllegalOperand",
            "overlaps queue 1",
        ),
        (merge(lengths="200, 0, 0, 0"), "OutOfBounds", "MrgSort"),
        (
            merge() + "uint16_t k; GetMrgSortResult(k, k, k, k);",
            "IllegalOperand",
            "did not set ifExhaustedSuspension",
        ),
    ],
)
def test_misuse_faults(compile_kernel, body: str, fault: str, text: str) -> None:
    with pytest.raises(KernelFault, match=text) as caught:
        run(compile_kernel, body, "float", numbers(128))
    assert caught.value.category == fault


def test_a_score_that_is_not_a_number_has_no_documented_place(compile_kernel) -> None:
    x = numbers(32)
    x[5] = np.nan
    with pytest.raises(KernelFault, match="not a number") as caught:
        run(compile_kernel, "Sort32(c, a, b, 1);", "float", x)
    assert caught.value.category == "Unspecified"
