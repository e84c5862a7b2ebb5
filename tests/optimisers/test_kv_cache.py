"""The cache of keys and values: what it holds, what it copies, and attention over it."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import UsageError
from opkit.optimisers import IncrementalKVCacheManager, random_mix
from opkit.sanitizer import Check

HEADS, WIDTH = 2, 32
ROW = HEADS * WIDTH * 2


def rows(count: int, seed: int = 0, heads: int = HEADS, width: int = WIDTH) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, heads, width)).astype(np.float16)


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Attention of one token in float64; q is (heads, width)."""
    group = q.shape[0] // k.shape[1]
    out = np.zeros(q.shape)
    for head in range(q.shape[0]):
        keys = k[:, head // group].astype(np.float64)
        scores = keys @ q[head].astype(np.float64) / np.sqrt(q.shape[1])
        weights = np.exp(scores - scores.max())
        out[head] = weights / weights.sum() @ v[:, head // group].astype(np.float64)
    return out


def test_a_step_copies_its_own_rows_only() -> None:
    cache = IncrementalKVCacheManager(HEADS, WIDTH)
    k, v = rows(40), rows(40, 1)
    sequence = cache.add_sequence()
    cache.update_kv_cache(sequence, k[:39], v[:39], 0)
    before = cache.statistics.new_bytes
    cache.update_kv_cache(sequence, k[39], v[39], 39)
    assert cache.statistics.new_bytes - before == 2 * ROW
    assert cache.statistics.moved_bytes == 0
    assert np.array_equal(cache.keys(sequence), k)
    assert np.array_equal(cache.values(sequence), v)


def test_capacity_grows_to_twice_the_position_and_moves_nothing() -> None:
    cache = IncrementalKVCacheManager(HEADS, WIDTH, block_tokens=16, initial_tokens=16)
    sequence = cache.add_sequence()
    k = rows(17)
    cache.update_kv_cache(sequence, k[:16], k[:16], 0)
    assert cache.capacity == 16
    cache.update_kv_cache(sequence, k[16:], k[16:], 16)
    assert cache.capacity == 32
    assert cache.statistics.growths == 1
    assert cache.statistics.moved_bytes == 0
    assert np.array_equal(cache.keys(sequence), k)


def test_prompts_share_full_blocks_of_equal_tokens() -> None:
    cache = IncrementalKVCacheManager(HEADS, WIDTH, block_tokens=4)
    k = rows(10)
    prompt = list(range(10))
    first = cache.add_sequence(prompt)
    assert cache.length(first) == 0
    cache.update_kv_cache(first, k, k, 0, tokens=prompt)
    second = cache.add_sequence([*range(8), 99, 98])
    assert cache.length(second) == 8
    assert cache.block_table(second) == cache.block_table(first)[:2]
    cache.update_kv_cache(second, k[:2], k[:2], 8, tokens=[99, 98])
    assert np.array_equal(cache.keys(second), np.concatenate([k[:8], k[:2]]))
    assert np.array_equal(cache.keys(first), k)
    # Another beginning shares nothing, whatever follows.
    assert cache.length(cache.add_sequence([1, *range(1, 10)])) == 0


def test_a_fork_copies_the_block_that_it_writes_to() -> None:
    cache = IncrementalKVCacheManager(HEADS, WIDTH, block_tokens=4)
    k = rows(8)
    first = cache.add_sequence()
    cache.update_kv_cache(first, k[:6], k[:6], 0)
    second = cache.fork(first)
    assert cache.statistics.used_blocks == 2
    cache.update_kv_cache(second, k[7], k[7], 6)
    assert cache.statistics.moved_bytes == 2 * 2 * ROW
    assert cache.block_table(first)[0] == cache.block_table(second)[0]
    assert np.array_equal(cache.keys(first), k[:6])
    assert np.array_equal(cache.keys(second), np.concatenate([k[:6], k[7:]]))


def test_a_block_that_is_written_over_is_shared_no_more() -> None:
    # The second user's block once stayed known by the tokens of the first, who had left it.
    cache = IncrementalKVCacheManager(HEADS, WIDTH, block_tokens=4)
    k = rows(8)
    first = cache.add_sequence()
    cache.update_kv_cache(first, k[:4], k[:4], 0, tokens=[1, 2, 3, 4])
    second = cache.add_sequence([1, 2, 3, 4, 5])
    cache.update_kv_cache(second, k[:0], k[:0], 2, tokens=[])
    cache.remove_sequence(first)
    cache.update_kv_cache(second, k[7], k[7], 2, tokens=[9])
    assert cache.length(cache.add_sequence([1, 2, 3, 4, 5])) == 0
    assert np.array_equal(cache.keys(second), np.concatenate([k[:2], k[7:]]))


def test_the_longest_unused_block_makes_room() -> None:
    cache = IncrementalKVCacheManager(
        HEADS, WIDTH, block_tokens=4, max_tokens=12, initial_tokens=12
    )
    k = rows(12)
    for start in (0, 10, 20):
        sequence = cache.add_sequence()
        tokens = list(range(start, start + 4))
        cache.update_kv_cache(sequence, k[:4], k[:4], 0, tokens=tokens)
        cache.remove_sequence(sequence)
    assert cache.statistics.cached_blocks == 3
    cache.update_kv_cache(cache.add_sequence(), k[:4], k[:4], 0)
    assert cache.statistics.evicted_blocks == 1
    assert cache.length(cache.add_sequence([0, 1, 2, 3, 4])) == 0
    assert cache.length(cache.add_sequence([10, 11, 12, 13, 4])) == 4


def test_a_full_cache_says_what_would_help() -> None:
    cache = IncrementalKVCacheManager(HEADS, WIDTH, block_tokens=4, max_tokens=8, initial_tokens=4)
    k = rows(9)
    sequence = cache.add_sequence()
    with pytest.raises(UsageError, match=r"3 blocks are wanted, and 2 of 2 .*max_tokens"):
        cache.update_kv_cache(sequence, k, k, 0)
    cache.update_kv_cache(sequence, k[:8], k[:8], 0)
    assert cache.audit() == ""


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"head_dim": 20}, "head_dim is 20, expected a multiple of 16 up to 256"),
        ({"kv_heads": 0}, "kv_heads is 0"),
        ({"block_tokens": 0}, "block_tokens is 0"),
        ({"dtype": "float32"}, '"float32": keys and values are float16 or bfloat16'),
    ],
)
def test_settings_that_cannot_be_are_named(settings: dict[str, object], message: str) -> None:
    given = {"kv_heads": 2, "head_dim": 32, **settings}
    with pytest.raises(UsageError, match=message):
        IncrementalKVCacheManager(**given)  # type: ignore[arg-type]


def test_wrong_updates_are_refused() -> None:
    cache = IncrementalKVCacheManager(HEADS, WIDTH)
    k = rows(4)
    sequence = cache.add_sequence()
    with pytest.raises(UsageError, match="holds 0 tokens: a gap would stay"):
        cache.update_kv_cache(sequence, k, k, 1)
    with pytest.raises(UsageError, match=r"expected both to be \(count, 2, 32\)"):
        cache.update_kv_cache(sequence, k[:, :1], k, 0)
    with pytest.raises(UsageError, match="there is no sequence 7"):
        cache.update_kv_cache(7, k, k, 0)
    with pytest.raises(UsageError, match="3 tokens for 4 rows"):
        cache.update_kv_cache(sequence, k, k, 0, tokens=[1, 2, 3])
    with pytest.raises(UsageError, match="has no tokens"):
        cache.attention([sequence], rows(1))
    cache.update_kv_cache(sequence, k, k, 0)
    with pytest.raises(UsageError, match="expected a multiple of kv_heads, 2"):
        cache.attention([sequence], rows(1, heads=3))


@pytest.mark.parametrize(
    ("heads", "group", "width"), [(2, 1, 32), (2, 3, 64), (1, 12, 128), (1, 2, 80)]
)
def test_attention_is_that_of_the_whole_cache_to_the_bit(
    heads: int, group: int, width: int
) -> None:
    lengths = (1, 7, 150)
    q = rows(len(lengths), 9, heads * group, width)
    results = []
    expected = np.zeros(q.shape)
    for block in (4, 16, 512):
        cache = IncrementalKVCacheManager(heads, width, block_tokens=block, initial_tokens=block)
        sequences = []
        for i, length in enumerate(lengths):
            k, v = rows(length, i, heads, width), rows(length, i + 50, heads, width)
            sequence = cache.add_sequence()
            # Token by token where blocks are small, at once where one holds everything.
            step = 1 if block == 4 else length
            for at in range(0, length, step):
                cache.update_kv_cache(sequence, k[at : at + step], v[at : at + step], at)
            sequences.append(sequence)
            expected[i] = attention(q[i], k, v)
        with Check(()) as checks:
            results.append(cache.attention(sequences, q))
        assert not checks.findings
    assert np.array_equal(results[0], results[2])
    assert np.array_equal(results[1], results[2])
    assert np.abs(results[0] - expected).max() < 2e-3


def test_a_batch_gives_the_bits_of_its_sequences_alone() -> None:
    cache = IncrementalKVCacheManager(HEADS, WIDTH)
    q = rows(3, 4, 4)
    sequences = []
    for length in (30, 3, 77):
        sequence = cache.add_sequence()
        cache.update_kv_cache(sequence, rows(length, length), rows(length, length + 1), 0)
        sequences.append(sequence)
    together = cache.attention(sequences, q)
    for i, sequence in enumerate(sequences):
        assert np.array_equal(cache.attention([sequence], q[i : i + 1])[0], together[i])


def test_bfloat16_attention() -> None:
    def bfloat16(array: np.ndarray) -> np.ndarray:
        return (array.astype(np.float32).view(np.uint32) >> 16).astype(np.uint16)

    def wide(array: np.ndarray) -> np.ndarray:
        return (array.astype(np.uint32) << 16).view(np.float32)

    cache = IncrementalKVCacheManager(HEADS, WIDTH, dtype="bfloat16")
    k, v, q = bfloat16(rows(70)), bfloat16(rows(70, 1)), bfloat16(rows(1, 2))
    sequence = cache.add_sequence()
    cache.update_kv_cache(sequence, k, v, 0)
    result = wide(cache.attention([sequence], q))[0]
    assert np.abs(result - attention(wide(q)[0], wide(k), wide(v))).max() < 1e-2


def test_random_mixes_of_requests_equal_a_plain_cache() -> None:
    reports = [random_mix(seed) for seed in range(60)]
    assert [report for report in reports if report.wrong] == []
    assert sum(report.shared_tokens for report in reports) > 0
    assert sum(report.moved_bytes for report in reports) > 0
    assert sum(report.evicted_blocks for report in reports) > 0
    assert sum(report.refused for report in reports) > 0
