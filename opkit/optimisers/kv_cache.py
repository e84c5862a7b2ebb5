"""Keys and values of sequences that grow by a token at a time, in blocks that sequences share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from opkit.errors import UsageError
from opkit.optimisers.native import native

__all__ = ["CacheStatistics", "IncrementalKVCacheManager"]

Halves: TypeAlias = npt.NDArray[np.float16] | npt.NDArray[np.uint16]


@dataclass(frozen=True)
class CacheStatistics:
    """What a cache holds and what it has copied."""

    blocks: int
    free_blocks: int
    cached_blocks: int
    """Without a user, kept for prompts that begin with their tokens."""
    used_blocks: int
    capacity_tokens: int
    new_bytes: int
    """New keys and values, copied into blocks."""
    moved_bytes: int
    """Copied from block to block, where a shared one was written to."""
    growths: int
    """How often memory was added; nothing is copied then."""
    shared_tokens: int
    """Tokens of prompts that were found in blocks which were there."""
    evicted_blocks: int
    """Kept blocks that were given up for others."""


class IncrementalKVCacheManager:
    """The cache of one layer: only new rows are copied, by td::mm's copy engines.

    Arrays are float16, or bfloat16 as uint16. `include/td/kv_cache.h` is the same for C++.
    """

    def __init__(
        self,
        kv_heads: int,
        head_dim: int,
        *,
        dtype: str = "float16",
        block_tokens: int = 16,
        initial_tokens: int = 256,
        max_tokens: int = 0,
    ) -> None:
        """Make an empty cache.

        Args:
            head_dim: a multiple of 16 up to 256.
            dtype: `float16` or `bfloat16`.
            block_tokens: tokens of a block.
            initial_tokens: what there is room for at first; later there is room for twice the
                position that did not fit.
            max_tokens: what there may be room for; 0: as much as the device has.
        Raises:
            UsageError: a setting cannot be; the message names it.
        """
        self._native = native().IncrementalKVCacheManager(
            kv_heads, head_dim, dtype, block_tokens, initial_tokens, max_tokens
        )
        self.kv_heads = kv_heads
        self.head_dim = head_dim
        self.dtype = np.dtype(np.float16 if dtype == "float16" else np.uint16)

    def add_sequence(self, prompt: Sequence[int] = ()) -> int:
        """Return a new sequence, which begins with the whole blocks of `prompt` that are there.

        `length` of it says how many tokens need not be computed.
        """
        return int(self._native.add_sequence(list(prompt)))

    def fork(self, sequence: int) -> int:
        """Return a second sequence with the same tokens; blocks are copied when one is written."""
        return int(self._native.fork(sequence))

    def remove_sequence(self, sequence: int) -> None:
        """Give a sequence's blocks back."""
        self._native.remove_sequence(sequence)

    def update_kv_cache(
        self,
        sequence: int,
        new_k: Halves,
        new_v: Halves,
        position: int,
        *,
        tokens: Sequence[int] | None = None,
    ) -> None:
        """Copy new rows to `position`: behind a sequence's tokens, or over those from there on.

        Args:
            new_k: (count, kv_heads, head_dim); without the first axis for one token.
            new_v: the same shape.
            tokens: their numbers; full blocks of known tokens serve later prompts.
        Raises:
            UsageError: a gap would stay, the shapes are wrong, or there is no room.
        """
        row = self.kv_heads * self.head_dim
        count = new_k.size // row if row else 0
        if new_k.size != count * row or new_k.shape != new_v.shape:
            raise UsageError(
                f"[update_kv_cache] new_k is {new_k.shape} and new_v {new_v.shape},"
                f" expected both to be (count, {self.kv_heads}, {self.head_dim})"
            )
        given = None if tokens is None else list(tokens)
        keys, values = np.ascontiguousarray(new_k), np.ascontiguousarray(new_v)
        self._native.update_kv_cache(sequence, keys, values, position, count, given)

    def attention(
        self, sequences: Sequence[int], q: Halves, *, scale: float | None = None
    ) -> Halves:
        """Return the attention of one new token of each sequence over all of its tokens.

        Args:
            q: (sequences, q_heads, head_dim), q_heads a multiple of kv_heads.
            scale: of the products; 1 / sqrt(head_dim) when None.
        Raises:
            UsageError: the shape is wrong, or a sequence is empty.
        """
        if q.ndim != 3 or q.shape[0] != len(sequences) or q.shape[2] != self.head_dim:
            raise UsageError(
                f"[attention] q is {q.shape}, expected ({len(sequences)}, heads, {self.head_dim})"
            )
        out = np.zeros_like(q)
        factor = self.head_dim**-0.5 if scale is None else scale
        self._native.attention(list(sequences), np.ascontiguousarray(q), out, q.shape[1], factor)
        return out

    def length(self, sequence: int) -> int:
        """Return how many tokens a sequence holds."""
        return int(self._native.length(sequence))

    def block_table(self, sequence: int) -> list[int]:
        """Return the numbers of a sequence's blocks."""
        return list(self._native.block_table(sequence))

    def keys(self, sequence: int) -> Halves:
        """Return a copy of a sequence's keys, (tokens, kv_heads, head_dim)."""
        return self._rows(sequence, False)

    def values(self, sequence: int) -> Halves:
        """Return a copy of a sequence's values, (tokens, kv_heads, head_dim)."""
        return self._rows(sequence, True)

    def _rows(self, sequence: int, is_value: bool) -> Halves:
        rows: Halves = self._native.rows(sequence, is_value).view(self.dtype)
        return rows.reshape((-1, self.kv_heads, self.head_dim))

    @property
    def capacity(self) -> int:
        """How many tokens all blocks hold."""
        return int(self._native.capacity())

    @property
    def statistics(self) -> CacheStatistics:
        """What the cache holds and has copied."""
        return CacheStatistics(**self._native.statistics())

    def audit(self) -> str:
        """Return what is wrong with the books of blocks; empty where nothing is."""
        return str(self._native.audit())
