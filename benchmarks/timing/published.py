"""Published A2 measurements, and the streams that reproduce their configurations.

Figures: public Ascend C samples, READMEs of add_high_performance, data_copy, bank_conflict_ub and
bank_conflict_nd2nz.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streams import Instr, add_tiles, nd_to_nz, read_matrix, read_shared, repeated_add

ELEMENTS = 8192 * 8192
CLOCK_MHZ = 1850.0
"""The published A2 runs' clock: it makes their vector times whole cycles."""


@dataclass(frozen=True)
class Published:
    """One published measurement."""

    row: str
    what: str
    cores: int
    measured: Mapping[str, float]
    """Microseconds: `task`, or the busy time of a pipe, mean of the cores."""
    stream: Callable[[int], Iterator[Instr]]
    half: int
    """The half of the rows that it belongs to, 0 or 1; each family is split between both."""
    part: int = 1
    """The stream is this fraction of the published work; busy times are multiplied by it."""
    kind: str = "aiv"

    def load(self) -> Model:
        """Return the row's instructions, read once."""
        import opkit.emulator._emulator as emulator

        return Model(
            self,
            emulator.InstructionStreams(
                [self.stream(core) for core in range(self.cores)], self.kind
            ),
        )


@dataclass(frozen=True)
class Model:
    """A published row with its instructions."""

    row: Published
    streams: Any

    def predict(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Return the model's microseconds for each quantity that was measured.

        Args:
            numbers: stand in for the chip's own, by key.
        """
        text = self.streams.time("Ascend910B2", 0, CLOCK_MHZ, numbers=list(numbers.items()))
        record = json.loads(text)
        result = {}
        for quantity in self.row.measured:
            if quantity == "task":
                busy = record["task_us"] - record["launch_us"]
                result[quantity] = busy * self.row.part + record["launch_us"]
                continue
            cycles = [core["busy_cycles"][quantity] for core in record["cores"]]
            result[quantity] = sum(cycles) / len(cycles) / CLOCK_MHZ * self.row.part
        return result


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
    tile: tuple[int, int], *, cores: int = 48, rounds: int = 1, part: int = 1, reorder: bool = False
) -> Callable[[int], Iterator[Instr]]:
    def stream(core: int) -> Iterator[Instr]:
        return read_matrix(
            core,
            cores=cores,
            rows=12288,
            columns=12288,
            tile_rows=tile[0],
            tile_columns=tile[1],
            rounds=rounds,
            part=part,
            reorder=reorder,
        )

    return stream


def _shared(staggered: bool) -> Callable[[int], Iterator[Instr]]:
    def stream(core: int) -> Iterator[Instr]:
        return read_shared(
            core,
            cores=48,
            rows=6144,
            columns=512,
            tile_rows=128,
            tile_columns=64,
            staggered=staggered,
        )

    return stream


PUBLISHED = (
    Published(
        "M0177",
        "Add 8192x8192 fp16, scalar loop, 1 core",
        1,
        {"task": 1239689.1, "S": 1233742.5, "MTE2": 5916.3, "MTE3": 2485.5},
        _add(1, 4096, 1, part=1024, scalar=True),
        half=0,
        part=1024,
    ),
    Published(
        "M0178",
        "Add 8192x8192 fp16, 1 core, 4096 a tile",
        1,
        {"task": 6909.6, "V": 761.65, "S": 231.17, "MTE2": 6208.8, "MTE3": 2613.2},
        _add(1, 4096, 1),
        half=0,
    ),
    Published(
        "M0179",
        "Add 8192x8192 fp16, 48 cores, 4096 a tile",
        48,
        {"task": 306.58, "V": 15.885, "S": 8.219, "MTE2": 215.485, "MTE3": 54.33},
        _add(48, 4096, 1),
        half=1,
    ),
    Published(
        "M0181",
        "Add 8192x8192 fp16, 48 cores, 16384 a tile, two buffers",
        48,
        {"task": 264.02, "V": 12.846, "S": 2.796, "MTE2": 250.528, "MTE3": 84.988},
        _add(48, 16384, 2),
        half=0,
    ),
    Published(
        "M0138",
        "ND to NZ by vector copies, 8192x8192 fp16, 8-way write conflict",
        48,
        {"task": 151.42, "V": 47.79, "S": 6.586, "MTE2": 113.856, "MTE3": 76.76},
        lambda core: nd_to_nz(core, size=8192, dst_stride=144),
        half=1,
    ),
    Published(
        "M0448",
        "read 12288x12288 fp16, tiles of 1x64",
        48,
        {"task": 564.84, "MTE2": 548.161},
        _read((1, 64), part=8),
        half=0,
        part=8,
    ),
    Published(
        "M0450",
        "read 12288x12288 fp16, tiles of 64x1024",
        48,
        {"task": 215.82, "MTE2": 202.657},
        _read((64, 1024)),
        half=1,
    ),
    Published(
        "M0455",
        "ND2NZ to L1, 12288x12288 fp16, tiles of 64x256",
        24,
        {"task": 230.24, "MTE2": 214.519},
        _read((64, 256), cores=24, reorder=True),
        half=0,
        kind="aic",
    ),
    Published(
        "M0462",
        "read 12288x12288 fp16 four times, tiles of 64x1024",
        48,
        {"task": 828.06},
        _read((64, 1024), rounds=4),
        half=1,
    ),
    Published(
        "M0470",
        "all cores read 6144x512 fp16 in one order, tiles of 128x64",
        48,
        {"task": 539.42, "MTE2": 474.717},
        _shared(staggered=False),
        half=0,
    ),
    Published(
        "staggered",
        "as M0470, each core from its own rows on",
        48,
        {"task": 329.0},
        _shared(staggered=True),
        half=1,
    ),
    Published(
        "M0478",
        "Add x 1000 in UB, 64 repeats, no bank conflict",
        1,
        {"V": 2390 * 0.02},
        lambda core: repeated_add(1000, 0x10100),
        half=0,
    ),
    Published(
        "M0479",
        "Add x 1000 in UB, 64 repeats, sources in one bank",
        1,
        {"V": 4167 * 0.02},
        lambda core: repeated_add(1000, 0x8000),
        half=1,
    ),
)

ORDERS = (
    ("M0178", "M0177", "vector instructions instead of a scalar loop"),
    ("M0179", "M0178", "48 cores instead of one"),
    ("M0181", "M0179", "longer tiles and a second buffer"),
    ("M0450", "M0448", "longer copies"),
    ("staggered", "M0470", "cores that do not read the same addresses at once"),
    ("M0478", "M0479", "sources in different bank groups"),
)
"""Before and after: the first row is faster than the second, and why."""
