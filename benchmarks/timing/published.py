"""Published A2 measurements, and the streams that reproduce their configurations.

Figures: public Ascend C samples, READMEs of add_high_performance, data_copy, bank_conflict_ub,
bank_conflict_nd2nz, matmul_basic_api_high_performance, matmul_high_performance and
quant_group_matmul_high_performance.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from streams import (
    INT8,
    Instr,
    add_tiles,
    fill_l2,
    matmul,
    nd_to_nz,
    products_back_to_back,
    products_one_by_one,
    read_matrix,
    read_shared,
    repeated_add,
)

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
    before: Callable[[int], Iterator[Instr]] | None = None
    """What fills L2 first; its own time does not count."""

    def load(self) -> Model:
        """Return the row's instructions, read once."""
        if self.before is None:
            return Model(self, self._read(self.stream))
        before = self.before

        def both(core: int) -> Iterator[Instr]:
            yield from before(core)
            yield from self.stream(core)

        return Model(self, self._read(both), self._read(before))

    def _read(self, stream: Callable[[int], Iterator[Instr]]) -> Any:
        import opkit.emulator._emulator as emulator

        return emulator.InstructionStreams([stream(core) for core in range(self.cores)], self.kind)


@dataclass(frozen=True)
class Model:
    """A published row with its instructions."""

    row: Published
    streams: Any
    before: Any = None
    """What fills L2 first, alone."""

    def predict(self, numbers: Mapping[str, float]) -> dict[str, float]:
        """Return the model's microseconds for each quantity that was measured.

        Args:
            numbers: stand in for the chip's own, by key.
        """
        times, launch_us = _times(self.streams, self.row.measured, numbers)
        if self.before is not None:
            spent, _ = _times(self.before, self.row.measured, numbers)
            times = {quantity: times[quantity] - spent[quantity] for quantity in times}
        times = {quantity: time * self.row.part for quantity, time in times.items()}
        if "task" in times:
            times["task"] += launch_us
        return times


def _times(
    streams: Any, quantities: Iterable[str], numbers: Mapping[str, float]
) -> tuple[dict[str, float], float]:
    """Return microseconds, the task's without its launch, and what the launch takes."""
    text = streams.time("Ascend910B2", 0, CLOCK_MHZ, numbers=list(numbers.items()))
    record = json.loads(text)
    result = {}
    for quantity in quantities:
        if quantity == "task":
            result[quantity] = record["task_us"] - record["launch_us"]
            continue
        cycles = [core["busy_cycles"][quantity] for core in record["cores"]]
        result[quantity] = sum(cycles) / len(cycles) / CLOCK_MHZ
    return result, record["launch_us"]


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


MATMUL_ROWS = 512
"""Rows of A that the model multiplies, of 8192."""

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
    Published(
        "M0112",
        "Matmul 8192 cubed fp16, 24 cores, two buffers, unit flags",
        24,
        {"task": 4121.16, "M": 3081.664, "MTE1": 2538.348, "MTE2": 3552.248},
        lambda core: matmul(core, size=8192, rows=MATMUL_ROWS),
        half=1,
        part=8192 // MATMUL_ROWS,
        kind="aic",
        before=lambda core: fill_l2(core, cores=24, size=8192, rows=MATMUL_ROWS),
    ),
    Published(
        "M0120",
        "products of 64 x 64 x 64 fp16, one at a time, of a 8192 cubed",
        1,
        {"M": 141699.459},
        lambda core: products_one_by_one(1024, 64, 64, 64),
        half=0,
        part=128**3 // 1024,
        kind="aic",
    ),
    Published(
        "M0123",
        "products of 128 x 256 x 64 fp16, one at a time, of a 8192 cubed on 24 cores",
        1,
        {"M": 3394.884},
        lambda core: products_one_by_one(8192 // 24, 128, 256, 64),
        half=1,
        part=32,
        kind="aic",
    ),
    Published(
        "M0200",
        "products of 128 x 256 x 128 int8, back to back, of 8192 x 8192 x 1024 on 24 cores",
        1,
        {"M": 192.02},
        lambda core: products_back_to_back(64 * 32 * 8 // 24, 128, 256, 128, INT8),
        half=0,
        kind="aic",
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
