"""Random mixes of requests over the paged cache, beside a plain cache that copies everything."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from opkit.errors import UsageError
from opkit.optimisers.kv_cache import IncrementalKVCacheManager

__all__ = ["MixReport", "random_mix"]

_HEADS, _WIDTH = 1, 16
_ROWS = 4096


@dataclass(frozen=True)
class MixReport:
    """What one mix came to."""

    seed: int
    steps: int
    wrong: str
    """The first difference from the plain cache, empty where there is none."""
    shared_tokens: int
    moved_bytes: int
    evicted_blocks: int
    refused: int
    """Updates for which there was no room."""


@dataclass
class _Plain:
    """A sequence of the plain cache: its tokens, and the row of each."""

    tokens: list[int] = field(default_factory=list)
    rows: list[int] = field(default_factory=list)

    def extended(self, tokens: list[int]) -> list[int]:
        """Return the rows of more tokens: each depends on all before it, as keys do."""
        state = self.rows[-1] if self.rows else 1
        rows = []
        for token in tokens:
            state = (state * 48271 + token * 40692 + 7) % 2147483647 % _ROWS
            rows.append(state)
        return rows

    def cut(self, length: int) -> None:
        del self.tokens[length:], self.rows[length:]

    def copy(self) -> _Plain:
        return _Plain(list(self.tokens), list(self.rows))


def random_mix(seed: int, *, steps: int = 50) -> MixReport:
    """Run random requests on both caches and compare what every sequence holds.

    Prompts share beginnings; sequences fork, are cut back, grow and end; some mixes have too little
    memory for all of it.
    """
    mix = _Mix(seed)
    wrong = ""
    for step in range(steps):
        mix.step()
        wrong = mix.difference()
        if wrong:
            wrong = f"step {step}: {wrong}"
            break
    wrong = wrong or mix.end()
    statistics = mix.cache.statistics
    return MixReport(
        seed,
        steps,
        wrong,
        statistics.shared_tokens,
        statistics.moved_bytes,
        statistics.evicted_blocks,
        mix.refused,
    )


class _Mix:
    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        block = int(self.random.choice([1, 2, 4, 8, 16]))
        limit = int(self.random.choice([0, 6, 24])) * block
        self.cache = IncrementalKVCacheManager(
            _HEADS, _WIDTH, block_tokens=block, initial_tokens=4 * block, max_tokens=limit
        )
        self.table = self.random.integers(0, 1 << 15, (2, _ROWS, _HEADS, _WIDTH), np.uint16)
        self.prompts = [self._tokens(3 * block + 3) for _ in range(3)]
        self.plain: dict[int, _Plain] = {}
        self.refused = 0

    def step(self) -> None:
        """Do one random thing."""
        kinds = ["prompt", "grow", "grow", "grow", "cut", "fork", "remove"]
        kind = kinds[self.random.integers(len(kinds))] if self.plain else "prompt"
        if kind == "prompt":
            self._prompt()
            return
        sequence = int(self.random.choice(list(self.plain)))
        plain = self.plain[sequence]
        if kind == "grow":
            count = 1 if self.random.random() < 0.7 else int(self.random.integers(1, 20))
            self._write(sequence, len(plain.tokens), self._tokens(count))
        elif kind == "cut":
            position = int(self.random.integers(0, len(plain.tokens) + 1))
            self._write(sequence, position, self._tokens(int(self.random.integers(0, 4))))
        elif kind == "fork":
            self.plain[self.cache.fork(sequence)] = plain.copy()
        else:
            self.cache.remove_sequence(sequence)
            del self.plain[sequence]

    def difference(self) -> str:
        """Return what is wrong with the books or with one sequence."""
        books = self.cache.audit()
        if books or not self.plain:
            return books
        return self._compare(int(self.random.choice(list(self.plain))))

    def end(self) -> str:
        """Compare and remove every sequence; every block must be free or kept then."""
        for sequence in list(self.plain):
            if found := self._compare(sequence):
                return found
            self.cache.remove_sequence(sequence)
        statistics = self.cache.statistics
        if statistics.used_blocks:
            return f"{statistics.used_blocks} blocks are in use without a sequence"
        return self.cache.audit()

    def _tokens(self, count: int) -> list[int]:
        return [int(token) for token in self.random.integers(0, 5, count)]

    def _prompt(self) -> None:
        base = self.prompts[self.random.integers(len(self.prompts))]
        tokens = base[: int(self.random.integers(1, len(base) + 1))]
        sequence = self.cache.add_sequence(tokens)
        found = self.cache.length(sequence)
        plain = _Plain()
        plain.rows = plain.extended(tokens[:found])
        plain.tokens = tokens[:found]
        self.plain[sequence] = plain
        self._write(sequence, found, tokens[found:])

    def _write(self, sequence: int, position: int, tokens: list[int]) -> None:
        plain = self.plain[sequence]
        plain.cut(position)
        rows = plain.extended(tokens)
        given = self.table[:, rows]
        try:
            self.cache.update_kv_cache(sequence, given[0], given[1], position, tokens=tokens)
        except UsageError:
            self.refused += 1
            return
        plain.tokens += tokens
        plain.rows += rows

    def _compare(self, sequence: int) -> str:
        plain = self.plain[sequence]
        if self.cache.length(sequence) != len(plain.tokens):
            return f"sequence {sequence} has {self.cache.length(sequence)} tokens"
        keys = self.cache.keys(sequence).view(np.uint16)
        values = self.cache.values(sequence).view(np.uint16)
        expected: npt.NDArray[np.uint16] = self.table[:, plain.rows]
        if np.array_equal(keys, expected[0]) and np.array_equal(values, expected[1]):
            return ""
        return f"sequence {sequence} holds other keys or values"
