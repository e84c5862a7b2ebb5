"""Advice on L2, on streams of copies before and after it is followed."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from opkit.profiling import Timeline, advise

Instr = dict[str, Any]
CORES = 48
TILE_BYTES = 131072
OUT = 1 << 44


def copy(pipe: str, address: int, *, past_l2: bool = False) -> Instr:
    gm = {"space": 0, "address": address, "bypasses_l2": past_l2}
    ub = {"space": 1, "address": 0}
    dst, src = (gm, ub) if pipe == "MTE3" else (ub, gm)
    shape = {"burst_bytes": TILE_BYTES, "burst_count": 1}
    return {"op": "DataCopy", "pipe": pipe, "dst": dst, "src": [src], **shape}


def read_twice(core: int, parts: int) -> Iterator[Instr]:
    """Read 288 MiB on all cores together, each part of it twice before the next one."""
    tiles = 48
    for part in range(parts):
        for _ in range(2):
            for tile in range(part * tiles // parts, (part + 1) * tiles // parts):
                yield copy("MTE2", (core << 30) + tile * TILE_BYTES)


def read_and_write(core: int, *, past_l2: bool) -> Iterator[Instr]:
    """Write a tile, and read two that nobody reads again."""
    for tile in range(24):
        yield copy("MTE3", OUT + (core << 30) + tile * TILE_BYTES)
        for i in range(2):
            yield copy("MTE2", (core << 30) + (2 * tile + i) * TILE_BYTES, past_l2=past_l2)


PAIRS: dict[str, tuple[Callable[[int], Iterator[Instr]], Callable[[int], Iterator[Instr]]]] = {
    "split": (lambda core: read_twice(core, 1), lambda core: read_twice(core, 2)),
    "bypass": (
        lambda core: read_and_write(core, past_l2=False),
        lambda core: read_and_write(core, past_l2=True),
    ),
}


@pytest.mark.parametrize("remedy", PAIRS)
def test_following_the_advice_brings_the_gain_that_it_promised(
    time_streams: Callable[..., Timeline], remedy: str
) -> None:
    before, after = (
        time_streams(*(list(stream(core)) for core in range(CORES)), lift_limits=True)
        for stream in PAIRS[remedy]
    )
    given = list(advise(before))
    found = {item.pattern: item for item in given}
    assert "l2-reuse-lost" in list(found)[:3]
    gain = before.task_us - after.task_us
    assert found["l2-reuse-lost"].gain_us == pytest.approx(gain, rel=0.3)
    assert "l2-reuse-lost" not in [item.pattern for item in advise(after)]


def test_lost_writes_alone_are_advised_on(time_streams: Callable[..., Timeline]) -> None:
    streams = []
    for core in range(CORES):
        begin = core << 30
        written = [copy("MTE3", begin + i * TILE_BYTES) for i in range(64)]
        streams.append(written + [copy("MTE2", OUT + begin + i * TILE_BYTES) for i in range(24)])
    timeline = time_streams(*streams, lift_limits=True)
    assert timeline.l2_lost_bytes == 0
    assert timeline.hbm_write_bytes > 0
    assert "l2-reuse-lost" in [item.pattern for item in advise(timeline)]
