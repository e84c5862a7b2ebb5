"""Which launches of a plan become one: those that follow one another and run on vector cores."""

from __future__ import annotations

from collections.abc import Collection, Sequence

from opkit.compiler import MOST_CLASSES

__all__ = ["in_joining_order", "joined_runs", "products_side_by_side"]

_MOST_PARTS = 32
"""Kernels that one launch runs at most."""

Stages = list[list[int]]


_LOOKED_AT = 32
"""Launches among which one comes before others: of those far behind the results would lie in memory
for long."""


def in_joining_order(
    operands: Sequence[Collection[str]],
    written: Sequence[Collection[str]],
    kinds: Sequence[str | None],
) -> list[int]:
    """Return launches in an order in which more of those that may be joined follow one another.

    Args:
        operands: the buffers of each launch, by name.
        written: those of them that it writes.
        kinds: None for launches of their own, as `joined_runs` takes them.
    """
    waits: list[set[int]] = []
    for at, names in enumerate(operands):
        mine, own = set(names), set(written[at])
        before = range(at)
        waits.append({i for i in before if mine & set(written[i]) or own & set(operands[i])})
    order: list[int] = []
    left = list(range(len(operands)))
    while left:
        seen = left[:_LOOKED_AT]
        ready = [at for at in seen if waits[at].isdisjoint(seen)]
        chosen = [at for at in ready if kinds[at] is not None] or ready
        order += chosen
        left = [at for at in left if at not in set(chosen)]
    return order


def joined_runs(
    operands: Sequence[Collection[str]],
    written: Sequence[Collection[str]],
    kinds: Sequence[str | None],
) -> list[Stages]:
    """Return launches as the stages of each, which hold the numbers of what is to be run.

    A stage's kernels wait for those of all stages before: for what one of these wrote, or still
    reads where it is written anew. Those that only read the same do not wait for each other.

    Args:
        operands: the buffers of each kernel, by name.
        written: those of them that it writes.
        kinds: what kernels with the same text have in common; None for those that are launches of
            their own.
    """
    runs: list[Stages] = []
    reads: dict[str, int] = {}
    writes: dict[str, int] = {}
    known: set[str] = set()
    count = 0
    for at, (names, kind) in enumerate(zip(operands, kinds, strict=True)):
        is_full = count == _MOST_PARTS or (kind not in known and len(known) == MOST_CLASSES)
        if kind is None or not known or is_full:
            runs.append([[at]])
            reads, writes, known, count = {}, {}, set() if kind is None else {kind}, 1
            stage = 0
        else:
            waits = [writes[name] for name in names if name in writes]
            waits += [reads[name] for name in written[at] if name in reads]
            stage = max(waits, default=-1) + 1
            if stage == len(runs[-1]):
                runs[-1].append([])
            runs[-1][stage].append(at)
            known.add(kind)
            count += 1
        for name in names:
            last = writes if name in written[at] else reads
            last[name] = max(stage, last.get(name, 0))
    return runs


def products_side_by_side(
    runs: Sequence[Stages],
    operands: Sequence[Collection[str]],
    written: Sequence[Collection[str]],
    cores: Sequence[int],
    available: int,
) -> list[Stages]:
    """Return runs in which products on cube cores that follow one another are one stage, where they
    do not wait for each other and each has cores of its own.

    Args:
        operands: the buffers of each launch, by name.
        written: those of them that it writes.
        cores: of each launch that is such a product; 0 for others.
        available: cube cores of the chip.
    """
    found: list[Stages] = []
    for run in runs:
        (first, *_), *_ = run
        if not cores[first] or not found or not cores[found[-1][0][0]]:
            found.append(run)
            continue
        (before,) = found[-1]
        mine, own = set(operands[first]), set(written[first])
        waits = any(mine & set(written[at]) or own & set(operands[at]) for at in before)
        is_full = sum(cores[at] for at in (*before, first)) > available
        if waits or is_full or len(before) == _MOST_PARTS:
            found.append(run)
        else:
            found[-1] = [[*before, first]]
    return found
