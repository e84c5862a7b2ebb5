"""Which kernels wait for which: `reads` holds for each the indices of those it reads from."""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterable, Sequence

__all__ = ["are_between", "in_running_order", "needs"]


def needs(reads: Sequence[set[int]], kernels: Iterable[int], goals: Collection[int]) -> bool:
    """Return whether one of some kernels needs what a goal computes, itself or by others."""
    stack = list(kernels)
    seen = set(stack)
    while stack:
        for index in reads[stack.pop()]:
            if index in goals:
                return True
            if index not in seen:
                seen.add(index)
                stack.append(index)
    return False


def are_between(reads: Sequence[set[int]], left: int, right: int) -> bool:
    """Return whether one of two kernels needs the other through a third."""
    return needs(reads, reads[left] - {right}, {right}) or needs(
        reads, reads[right] - {left}, {left}
    )


def in_running_order(reads: Sequence[set[int]]) -> list[int]:
    """Return the kernels so that each comes after what it waits for, the first possible first."""
    waiting = [len(each) for each in reads]
    readers: list[list[int]] = [[] for _ in reads]
    for index, sources in enumerate(reads):
        for source in sources:
            readers[source].append(index)
    ready = [index for index, count in enumerate(waiting) if count == 0]
    done: list[int] = []
    while ready:
        index = heapq.heappop(ready)
        done.append(index)
        for reader in readers[index]:
            waiting[reader] -= 1
            if waiting[reader] == 0:
                heapq.heappush(ready, reader)
    assert len(done) == len(reads), "kernels wait for each other in a circle"
    return done
