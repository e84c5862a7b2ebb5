"""Published A2 measurements, and the streams that reproduce their configurations.

Figures: public Ascend C samples, READMEs of add_high_performance, data_copy, bank_conflict_ub,
bank_conflict_nd2nz, matmul_basic_api_high_performance, matmul_high_performance and
quant_group_matmul_high_performance; rows that begin with `guide` are from the programming guide's
cases of Matmul optimization: MDL, constant tilings, pure cube mode, MTE2 preload, K order. Those of
UnitFlag, NBuffer33 and multi-core split of K are left out: they took 14 to 37 us where the others
of the same or more work took 8 to 11, so something beside the kernel is in them.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import streams
from products import KNOWN, MDL, NORM, NORM_TURNED, PRELOAD, REORDERED, Product
from streams import (
    Instr,
    add_tiles,
    fill_l2,
    matmul,
    nd_to_nz,
    read_matrix,
    read_shared,
    repeated_add,
)
from traces import Traces

SIZE = 8192
CLOCK_MHZ = 1850.0
"""The published A2 runs' clock: it makes their vector times whole cycles."""


class Launch(Protocol):
    """What runs on the emulator once, and is timed as often as asked."""

    def recorded(self, traces: Traces) -> Any:
        """Return the launch; from `traces` where it has run before."""


@dataclass(frozen=True)
class Published:
    """One published measurement."""

    row: str
    what: str
    cores: int
    measured: Mapping[str, float]
    """Microseconds: `task`, the slowest `core`, or the busy time of a pipe, mean of the cores."""
    stream: Callable[[int], Iterator[Instr]] | Launch
    family: str
    """The public sample, document or operator that it is of: its rows are left out together."""
    source: str = "asc-devkit"
    """Who published it."""
    clock_mhz: float = CLOCK_MHZ
    is_fitted: bool = True
    """Whether the constants follow it; what is left out of every fit only tells."""
    part: float = 1
    """The stream is this fraction of the published work; busy times are multiplied by it."""
    kind: str = "aiv"
    is_warm: bool = False
    """L2 holds what the launch reads: the part of a longer run that comes again."""
    before: Callable[[int], Iterator[Instr]] | Launch | None = None
    """What fills L2 first, or the same work cut shorter; its own time does not count."""

    @property
    def kernel_class(self) -> str:
        """`vector`, `cube`, `matmul` (a Matmul object), or `mixed`."""
        if isinstance(self.stream, Product):
            return "matmul" if self.stream.mode == "Cube" else "mixed"
        return "vector" if self.kind == "aiv" else "cube"

    def load(self, traces: Traces) -> Model:
        """Return the row's instructions, read once."""
        stream, before = self.stream, self.before
        if not callable(stream):
            assert not callable(before)
            return Model(self, stream.recorded(traces), before and before.recorded(traces))
        assert before is None or callable(before)
        if before is None:
            return Model(self, self._read(stream, self.row, traces))

        def both(core: int) -> Iterator[Instr]:
            yield from before(core)
            yield from stream(core)

        of_before = self._read(before, f"{self.row}, before", traces)
        return Model(self, self._read(both, self.row, traces), of_before)

    def _read(self, stream: Callable[[int], Iterator[Instr]], what: str, traces: Traces) -> Any:
        import opkit.emulator._emulator as emulator

        def record() -> Any:
            return emulator.KeptLaunch.of([stream(core) for core in range(self.cores)], self.kind)

        return traces.launch(what, record, [Path(__file__), Path(streams.__file__)])


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
        numbers = {**numbers, "timing.l2.has_inputs": float(self.row.is_warm)}
        times, launch_us = _times(self.streams, self.row, numbers)
        if self.before is not None:
            spent, _ = _times(self.before, self.row, numbers)
            times = {quantity: times[quantity] - spent[quantity] for quantity in times}
        times = {quantity: time * self.row.part for quantity, time in times.items()}
        if "task" in times:
            times["task"] += launch_us
        return times


_KIND_OF = {"V": "aiv", "MTE3": "aiv", "M": "aic", "MTE1": "aic", "FIX": "aic"}
"""Which cores have a pipe that does work; those of the others are the row's own."""


def _times(
    streams: Any, row: Published, numbers: Mapping[str, float]
) -> tuple[dict[str, float], float]:
    """Return microseconds, the task's without its launch, and what the launch takes."""
    text = streams.time("Ascend910B2", 0, row.clock_mhz, numbers=list(numbers.items()))
    record = json.loads(text)
    result = {}
    for quantity in row.measured:
        if quantity == "task":
            result[quantity] = record["task_us"] - record["launch_us"]
            continue
        if quantity == "core":
            cycles = [core["end_cycle"] - core["start_cycle"] for core in record["cores"]]
            result[quantity] = max(cycles) / row.clock_mhz
            continue
        kind = _KIND_OF.get(quantity, row.kind)
        cores = [core for core in record["cores"] if core["kind"] == kind]
        cycles = [core["busy_cycles"][quantity] for core in cores]
        result[quantity] = sum(cycles) / len(cycles) / row.clock_mhz
    return result, record["launch_us"]


def _add(
    cores: int, tile: int, buffers: int, *, part: int = 1, scalar: bool = False
) -> Callable[[int], Iterator[Instr]]:
    def stream(core: int) -> Iterator[Instr]:
        return add_tiles(
            core,
            cores=cores,
            rows=SIZE // part,
            columns=SIZE,
            tile=tile,
            buffers=buffers,
            scalar=scalar,
        )

    return stream


def _read(
    tile: tuple[int, int],
    *,
    cores: int = 48,
    rounds: int = 1,
    part: int = 1,
    parts: int = 1,
    reorder: bool = False,
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
            parts=parts,
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

_BASE = (128, 256, 64)
_DEEP = {"stepKa": 4, "stepKb": 4, "depthA1": 8, "depthB1": 8}
_PRELOADED = {"stepKa": 8, "stepKb": 8, "depthA1": 8, "depthB1": 16}


def _quantized(blocks: int, mode: str, slots: int) -> Product:
    """Return 24 rows of `blocks` blocks of 128 x 256, K 1024, handed over to vector cores.

    The published run has 2048 blocks in 86 turns of 24 cores. Blocks side by side come one after
    the other, so cores share rows of A; columns of B come again with the next rows, from L2.
    """
    fields = {"stepKa": 8, "stepKb": 4, "depthA1": 16, "depthB1": 8}
    single = (128, 256 * blocks, 1024)
    rows, base = 24 * 128, (128, 256, 128)
    return Product(rows, 256 * blocks, 1024, base, 24, single, MDL, fields, mode, slots)


PUBLISHED = (
    Published(
        "M0177",
        "Add 8192x8192 fp16, scalar loop, 1 core",
        1,
        {"task": 1239689.1, "S": 1233742.5, "MTE2": 5916.3, "MTE3": 2485.5},
        _add(1, 4096, 1, part=1024, scalar=True),
        family="add",
        part=1024,
    ),
    Published(
        "M0178",
        "Add 8192x8192 fp16, 1 core, 4096 a tile",
        1,
        {"task": 6909.6, "V": 761.65, "S": 231.17, "MTE2": 6208.8, "MTE3": 2613.2},
        _add(1, 4096, 1),
        family="add",
    ),
    Published(
        "M0179",
        "Add 8192x8192 fp16, 48 cores, 4096 a tile",
        48,
        {"task": 306.58, "V": 15.885, "S": 8.219, "MTE2": 215.485, "MTE3": 54.33},
        _add(48, 4096, 1),
        family="add",
    ),
    Published(
        "M0181",
        "Add 8192x8192 fp16, 48 cores, 16384 a tile, two buffers",
        48,
        {"task": 264.02, "V": 12.846, "S": 2.796, "MTE2": 250.528, "MTE3": 84.988},
        _add(48, 16384, 2),
        family="add",
    ),
    Published(
        "M0138",
        "ND to NZ by vector copies, 8192x8192 fp16, 8-way write conflict",
        48,
        {"task": 151.42, "V": 47.79, "S": 6.586, "MTE2": 113.856, "MTE3": 76.76},
        lambda core: nd_to_nz(core, size=8192, dst_stride=144),
        family="nd2nz",
    ),
    Published(
        "M0448",
        "read 12288x12288 fp16, tiles of 1x64",
        48,
        {"task": 564.84, "MTE2": 548.161},
        _read((1, 64), part=8),
        family="data_copy",
        part=8,
    ),
    Published(
        "M0450",
        "read 12288x12288 fp16, tiles of 64x1024",
        48,
        {"task": 215.82, "MTE2": 202.657},
        _read((64, 1024)),
        family="data_copy",
    ),
    Published(
        "M0455",
        "ND2NZ to L1, 12288x12288 fp16, tiles of 64x256",
        24,
        {"task": 230.24, "MTE2": 214.519},
        _read((64, 256), cores=24, reorder=True),
        family="data_copy",
        kind="aic",
    ),
    Published(
        "M0462",
        "read 12288x12288 fp16 four times, tiles of 64x1024",
        48,
        {"task": 828.06},
        _read((64, 1024), rounds=4),
        family="data_copy",
    ),
    Published(
        "M0470",
        "all cores read 6144x512 fp16 in one order, tiles of 128x64",
        48,
        {"task": 539.42, "MTE2": 474.717},
        _shared(staggered=False),
        family="data_copy",
    ),
    Published(
        "M0471",
        "as M0470, each core from its own rows on",
        48,
        {"task": 328.88, "MTE2": 307.38},
        _shared(staggered=True),
        family="data_copy",
    ),
    Published(
        "M0478",
        "Add x 1000 in UB, 64 repeats, no bank conflict",
        1,
        {"V": 2390 * 0.02},
        lambda core: repeated_add(1000, 0x10100),
        family="bank_conflict",
    ),
    Published(
        "M0479",
        "Add x 1000 in UB, 64 repeats, sources in one bank",
        1,
        {"V": 4167 * 0.02},
        lambda core: repeated_add(1000, 0x8000),
        family="bank_conflict",
    ),
    Published(
        "M0112",
        "Matmul 8192 cubed fp16, 24 cores, two buffers, unit flags",
        24,
        {"task": 4121.16, "M": 3081.664, "MTE1": 2538.348, "MTE2": 3552.248, "FIX": 160.405},
        lambda core: matmul(core, size=8192, rows=MATMUL_ROWS),
        family="matmul_basic",
        part=8192 // MATMUL_ROWS,
        kind="aic",
        before=lambda core: fill_l2(core, cores=24, size=8192, rows=MATMUL_ROWS),
    ),
    Published(
        "M0449",
        "read 12288x12288 fp16, tiles of 64x64",
        48,
        {"task": 233.54, "MTE2": 220.772},
        _read((64, 64), part=4),
        family="data_copy",
        part=4,
    ),
    Published(
        "M0463",
        "read 12288x12288 fp16 four times, a quarter of the columns after the other",
        48,
        {"task": 365.74},
        _read((64, 1024), rounds=4, parts=4),
        family="data_copy",
    ),
    Published(
        "M0467",
        "ND2NZ to L1 four times, a quarter of the columns after the other, tiles of 64x1024",
        24,
        {"task": 414.96},
        _read((64, 1024), cores=24, rounds=4, parts=4, reorder=True),
        family="data_copy",
        kind="aic",
    ),
    Published(
        "M0482",
        "Add x 1000 in UB, 64 repeats, results beside a source in one bank",
        1,
        {"V": 3751 * 0.02},
        lambda core: repeated_add(1000, 0x10100, 0x4020),
        family="bank_conflict",
    ),
    Published(
        "M0120",
        "Matmul object 8192 cubed fp16, 1 core, blocks of 64x64x64 one at a time",
        1,
        {"task": 759363.98, "M": 141699.459, "S": 508787.509, "MTE1": 162104.184}
        | {"MTE2": 582515.828, "FIX": 34303.063},
        Product(64, 192, 8192, (64, 64, 64), 1, (64, 192, 8192), NORM_TURNED),
        family="matmul",
        part=128 * 64,
        kind="aic",
        is_warm=True,
        before=Product(64, 64, 8192, (64, 64, 64), 1, (64, 64, 8192), NORM_TURNED),
    ),
    Published(
        "M0121",
        "Matmul object 8192 cubed fp16, 1 core, blocks of 128x256x64 one at a time",
        1,
        {"task": 249467.08, "M": 81477.188, "S": 63608.818, "MTE1": 52003.703}
        | {"MTE2": 195613.432, "FIX": 11313.746},
        Product(128, 768, 8192, _BASE, 1, (128, 768, 8192), NORM_TURNED),
        family="matmul",
        part=64 * 16,
        kind="aic",
        is_warm=True,
        before=Product(128, 256, 8192, _BASE, 1, (128, 256, 8192), NORM_TURNED),
    ),
    Published(
        "M0123",
        "Matmul object 8192 cubed fp16, 24 cores, blocks of 128x256x64 one at a time",
        24,
        {"task": 12283.84, "M": 3394.884, "S": 2656.33, "MTE1": 2166.824, "MTE2": 8616.671},
        Product(1024, 8192, 2048, _BASE, 24, (256, 1536, 2048), NORM_TURNED),
        family="matmul",
        part=16 * 4,
        kind="aic",
        before=Product(512, 8192, 2048, _BASE, 24, (128, 1536, 2048), NORM_TURNED),
    ),
    Published(
        "guide MDL, before",
        "Matmul object 128x30720x1024 fp16, 24 cores, Norm",
        24,
        {"core": 83.68, "MTE2": 75.64},
        Product(128, 30720, 1024, _BASE, 24, (128, 1280, 1024), NORM, _DEEP),
        family="guide MDL",
        kind="aic",
    ),
    Published(
        "guide MDL, after",
        "Matmul object 128x30720x1024 fp16, 24 cores, MDL",
        24,
        {"core": 53.4, "MTE2": 46.24},
        Product(128, 30720, 1024, _BASE, 24, (128, 1280, 1024), MDL, _DEEP),
        family="guide MDL",
        kind="aic",
    ),
    Published(
        "guide tiling, before",
        "Matmul object 128x30720x64 fp16, 24 cores, MDL",
        24,
        {"core": 10.62, "S": 6.32},
        Product(128, 30720, 64, _BASE, 24, (128, 1280, 64), MDL, _DEEP),
        family="guide tiling",
        kind="aic",
    ),
    Published(
        "guide tiling, after",
        "the same with a tiling that the compiler knows",
        24,
        {"core": 7.87, "S": 3.38},
        Product(128, 30720, 64, _BASE, 24, (128, 1280, 64), KNOWN, _DEEP),
        family="guide tiling",
        kind="aic",
    ),
    Published(
        "guide cube, before",
        "Matmul object 128x30720x64 fp16, requests of 48 vector cores",
        24,
        {"core": 17.85, "S": 15.02},
        Product(128, 30720, 64, _BASE, 24, (128, 640, 64), NORM, _DEEP, mode="Mix12"),
        family="guide cube mode",
        kind="aic",
    ),
    Published(
        "guide cube, after",
        "Matmul object 128x30720x64 fp16, 24 cube cores alone",
        24,
        {"core": 11.21, "S": 5.17},
        Product(128, 30720, 64, _BASE, 24, (128, 1280, 64), NORM, _DEEP),
        family="guide cube mode",
        kind="aic",
    ),
    Published(
        "guide preload, before",
        "Matmul object 128x24576x512 fp16, 24 cores, MDL",
        24,
        {"core": 30.88},
        Product(128, 24576, 512, (128, 128, 64), 24, (128, 1024, 512), MDL, _PRELOADED),
        family="guide preload",
        kind="aic",
    ),
    Published(
        "guide preload, after",
        "the same with doMTE2Preload",
        24,
        {"core": 28.5},
        Product(128, 24576, 512, (128, 128, 64), 24, (128, 1024, 512), PRELOAD, _PRELOADED),
        family="guide preload",
        kind="aic",
    ),
    Published(
        "guide K order, before",
        "Matmul object 768x2048x6144 fp16, 24 cores, all along K in one order",
        24,
        {"task": 98.72, "MTE2": 90.0},
        Product(768, 2048, 6144, _BASE, 24, (128, 512, 6144), MDL, _DEEP),
        family="guide K order",
        kind="aic",
    ),
    Published(
        "guide K order, after",
        "the same with enableKdimReorderLoad",
        24,
        {"task": 85.68, "MTE2": 69.87},
        Product(768, 2048, 6144, _BASE, 24, (128, 512, 6144), REORDERED, _DEEP),
        family="guide K order",
        kind="aic",
    ),
    Published(
        "M0200",
        "int8 product, one vector core a block dequantizes, one slot",
        24,
        {"task": 583.512, "M": 192.02, "S": 115.317, "MTE1": 168.645, "MTE2": 141.648}
        | {"FIX": 79.47, "V": 471.71},
        _quantized(12, "Mix11", 1),
        family="quant",
        is_warm=True,
        part=86 / 8,
        kind="aic",
        before=_quantized(4, "Mix11", 1),
    ),
    Published(
        "M0202",
        "int8 product, two vector cores a block dequantize, four slots",
        24,
        {"task": 299.286, "M": 193.576, "S": 196.668, "MTE1": 173.003, "MTE2": 170.193}
        | {"FIX": 167.936, "V": 235.872},
        _quantized(12, "Mix12", 4),
        family="quant",
        is_warm=True,
        part=86 / 8,
        kind="aic",
        before=_quantized(4, "Mix12", 4),
    ),
)

ORDERS = (
    ("M0178", "M0177", "vector instructions instead of a scalar loop", ("element-loop",)),
    ("M0179", "M0178", "48 cores instead of one", ("idle-cores",)),
    (
        "M0181",
        "M0179",
        "longer tiles and a second buffer",
        ("single-buffer", "small-copies", "small-tiles"),
    ),
    ("M0450", "M0448", "longer copies", ("small-copies", "short-bursts", "small-tiles")),
    ("M0471", "M0470", "cores that do not read the same addresses at once", ("same-addresses",)),
    ("M0449", "M0448", "64 bursts a copy instead of one", ("small-copies",)),
    ("M0450", "M0449", "longer bursts", ("short-bursts",)),
    ("M0463", "M0462", "a part that fits L2 at a time", ("l2-reuse-lost",)),
    ("M0121", "M0120", "larger base blocks", ("small-base-blocks",)),
    ("M0123", "M0121", "24 cores instead of one", ("idle-cores",)),
    ("M0202", "M0200", "second vector core, four slots", ("one-vector-core", "shallow-pipeline")),
    (
        "guide MDL, after",
        "guide MDL, before",
        "several base blocks a copy",
        ("short-bursts", "small-copies"),
    ),
    (
        "guide tiling, after",
        "guide tiling, before",
        "a tiling that the compiler knows",
        ("variable-tiling",),
    ),
    ("guide cube, after", "guide cube, before", "no messages to the cube core", ("core-waits",)),
    ("guide preload, after", "guide preload, before", "B preloaded", ()),
    (
        "guide K order, after",
        "guide K order, before",
        "cores begin at different places along K",
        ("same-addresses",),
    ),
    ("M0478", "M0479", "sources in different bank groups", ("bank-conflicts",)),
    ("M0478", "M0482", "results in other banks than sources", ("bank-conflicts",)),
)
"""Before and after: the first row is faster than the second, why, and what advice says so."""
