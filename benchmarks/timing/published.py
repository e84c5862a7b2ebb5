"""Published A2 measurements that vector cores take part in, and the streams that reproduce them.

Figures: public Ascend C samples, READMEs of add_high_performance, data_copy, bank_conflict_ub and
bank_conflict_nd2nz. The rows of cube cores and of other chips are not here: not modelled yet.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from streams import Instr, add_tiles, nd_to_nz, read_matrix, repeated_add

ELEMENTS = 8192 * 8192
CLOCK_MHZ = 1850.0
"""The published A2 runs' clock: it makes their vector times whole cycles."""


@dataclass(frozen=True)
class Published:
    """One published measurement."""

    row: str
    what: str
    cores: int
    measured: dict[str, float]
    """Microseconds: `task`, or the busy time of a pipe, mean of the cores."""
    stream: Callable[[int], Iterator[Instr]]
    fitted: tuple[str, ...] = ()
    """Quantities that a constant of the chip's file was fitted to."""
    scale: float = 1.0
    """The stream is this fraction of the published work; busy times are divided by it."""


def _add(
    cores: int, tile: int, buffers: int, *, part: int = 1, scalar: bool = False
) -> Callable[[int], Iterator[Instr]]:
    def stream(core: int) -> Iterator[Instr]:
        elements = ELEMENTS // part
        return add_tiles(
            core, cores=cores, elements=elements, tile=tile, buffers=buffers, scalar=scalar
        )

    return stream


def _read(
    rows: int, columns: int, tile: tuple[int, int], rounds: int = 1, shared: bool = False
) -> Callable[[int], Iterator[Instr]]:
    def stream(core: int) -> Iterator[Instr]:
        return read_matrix(
            core,
            cores=48,
            rows=rows,
            columns=columns,
            tile_rows=tile[0],
            tile_columns=tile[1],
            rounds=rounds,
            shared=shared,
        )

    return stream


PUBLISHED = (
    Published(
        "M0177",
        "Add 8192x8192 fp16, scalar loop, 1 core",
        1,
        {"task": 1239689.1, "S": 1233742.5, "MTE2": 5916.3, "MTE3": 2485.5},
        _add(1, 4096, 1, part=1024, scalar=True),
        fitted=("task", "S", "MTE3"),
        scale=1 / 1024,
    ),
    Published(
        "M0178",
        "Add 8192x8192 fp16, 1 core, 4096 a tile",
        1,
        {"task": 6909.6, "V": 761.65, "S": 231.17, "MTE2": 6208.8, "MTE3": 2613.2},
        _add(1, 4096, 1),
        fitted=("V", "S", "MTE2", "MTE3"),
    ),
    Published(
        "M0179",
        "Add 8192x8192 fp16, 48 cores, 4096 a tile",
        48,
        {"task": 306.58, "V": 15.885, "S": 8.219, "MTE2": 215.485, "MTE3": 54.33},
        _add(48, 4096, 1),
        fitted=("V", "MTE3"),
    ),
    Published(
        "M0181",
        "Add 8192x8192 fp16, 48 cores, 16384 a tile, two buffers",
        48,
        {"task": 264.02, "V": 12.846, "S": 2.796, "MTE2": 250.528, "MTE3": 84.988},
        _add(48, 16384, 2),
        fitted=("MTE2",),
    ),
    Published(
        "M0138",
        "ND to NZ by vector copies, 8192x8192 fp16, 8-way write conflict",
        48,
        {"task": 151.42, "V": 47.79, "S": 6.586, "MTE2": 113.856, "MTE3": 76.76},
        lambda core: nd_to_nz(core, cores=48, size=8192, dst_stride=144),
        fitted=("task", "V"),
    ),
    Published(
        "M0448",
        "read 12288x12288 fp16, tiles of 1x64",
        48,
        {"task": 564.84, "MTE2": 548.161},
        _read(12288, 12288, (1, 64)),
        fitted=("task", "MTE2"),
    ),
    Published(
        "M0450",
        "read 12288x12288 fp16, tiles of 64x1024",
        48,
        {"task": 215.82, "MTE2": 202.657},
        _read(12288, 12288, (64, 1024)),
        fitted=("task", "MTE2"),
    ),
    Published(
        "M0462",
        "read 12288x12288 fp16 four times, tiles of 64x1024",
        48,
        {"task": 828.06},
        _read(12288, 12288, (64, 1024), rounds=4),
    ),
    Published(
        "M0470",
        "all cores read 6144x512 fp16 in one order, tiles of 128x64",
        48,
        {"task": 539.42, "MTE2": 474.717},
        _read(6144, 512, (128, 64), shared=True),
    ),
    Published(
        "M0478",
        "Add x 1000 in UB, 64 repeats, no bank conflict",
        1,
        {"V": 2390 * 0.02},
        lambda core: repeated_add(1000, 0x10100),
        fitted=("V",),
    ),
    Published(
        "M0479",
        "Add x 1000 in UB, 64 repeats, sources in one bank",
        1,
        {"V": 4167 * 0.02},
        lambda core: repeated_add(1000, 0x8000),
        fitted=("V",),
    ),
)
