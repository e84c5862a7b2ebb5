"""How a product's result is cut into blocks, and which cores take which."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from opkit.chips import Chip
from opkit.errors import UsageError

from ..launch_numbers import divide_up

__all__ = [
    "BEST",
    "BLOCK_CYCLES",
    "BLOCK_FIELDS",
    "BURST_CYCLES",
    "CHUNK_BYTES",
    "MOST_MORE_READ",
    "MOST_SIDE",
    "STEP_BYTES",
    "CubeRates",
    "Cut",
    "ProductShape",
    "block_values",
    "chosen_cut",
    "cut_product",
    "largest_side",
]

_SIDE = 16
CHUNK_BYTES = 512
"""Along K, of what a copy to L1 brings: rows of 512 bytes copy fastest."""
STEP_BYTES = 128
"""Along K, of what one Mmad multiplies of the longest blocks."""
MOST_SIDE = 256
"""Rows of a block at most, or columns: two steps of so many fill L0A, or L0B."""
BLOCK_CYCLES = 300
"""About what a block costs beside its products: filling and draining the pipes."""
BURST_CYCLES = 3.4
"""What the shortest row of a copy takes."""
MOST_MORE_READ = 1.05
"""Bands that read so many times the least count as equal."""
BEST = 12
"""Cuts of the cheapest estimates whose cores are then looked at one by one."""

BLOCK_FIELDS = (
    ("batchLeft", "int64_t", "elements from one left matrix to the next; 0: one for all"),
    ("batchRight", "int64_t", ""),
    ("m", "int64_t", ""),
    ("n", "int64_t", ""),
    ("k", "int64_t", ""),
    ("blocks", "int64_t", "of all batches"),
    ("blocksM", "int64_t", "down the rows of a batch"),
    ("blocksN", "int64_t", "across its columns"),
    ("band", "int64_t", "blocks across that cores work on at the same time"),
    ("rowsEach", "int64_t", "rows of every block"),
    ("rowsMore", "int64_t", "the first blocks have 16 more"),
    ("columnsEach", "int64_t", "columns of every block"),
    ("columnsMore", "int64_t", "the first blocks have 16 more"),
)
"""Name, C++ type and note of each member that describes a product's blocks."""


@dataclass(frozen=True)
class ProductShape:
    """The sizes of one launch: numbers, or terms of a host's C++."""

    batches: Any
    m: Any
    n: Any
    k: Any
    left_is_shared: bool
    """One left matrix for all batches."""
    right_is_shared: bool


@dataclass(frozen=True)
class Cut:
    """Blocks of a product: in each direction the first ones have 16 rows or columns more, so that
    all are about as large."""

    shape: ProductShape
    down: Any
    """Blocks down the rows of a batch: a number, or a term of a host's C++, as all here."""
    across: Any
    band: Any
    cores: Any

    @property
    def blocks(self) -> int:
        """The blocks of all batches."""
        return int(self.shape.batches * self.down * self.across)

    @property
    def most_rows(self) -> Any:
        """Rows of the largest block, a multiple of 16."""
        return largest_side(self.shape.m, self.down)

    @property
    def most_columns(self) -> Any:
        """Columns of the largest block, a multiple of 16."""
        return largest_side(self.shape.n, self.across)

    def block(self, index: int) -> tuple[int, int, int, int, int]:
        """Return a block's batch, first row, first column, rows and columns."""
        batch, rest = divmod(index, self.down * self.across)
        band, rest = divmod(rest, self.down * self.band)
        wide = min(self.band, self.across - band * self.band)
        i, j = divmod(rest, wide)
        j += band * self.band
        row, column = _begin(self.shape.m, self.down, i), _begin(self.shape.n, self.across, j)
        row_end = min(self.shape.m, _begin(self.shape.m, self.down, i + 1))
        column_end = min(self.shape.n, _begin(self.shape.n, self.across, j + 1))
        return batch, row, column, row_end - row, column_end - column

    def blocks_of(self, core: int) -> range:
        """Return the blocks of one core: all cores work side by side in a band."""
        return range(core, self.blocks, self.cores)

    def values(self) -> tuple[Any, ...]:
        """Return the numbers of `BLOCK_FIELDS`."""
        return block_values(self.shape, self.down, self.across, self.band)

    def __str__(self) -> str:
        lines = [
            f"{self.shape.m} x {self.shape.n} of {self.shape.batches} batches in {self.down} x"
            f" {self.across} blocks of {self.most_rows} x {self.most_columns} at most",
            "core | blocks",
        ]
        for core in range(self.cores):
            lines.append(f"{core:4} | {','.join(map(str, self.blocks_of(core)))}")
        return "\n".join(lines)


def block_values(shape: ProductShape, down: Any, across: Any, band: Any) -> tuple[Any, ...]:
    """Return the numbers of `BLOCK_FIELDS` for so many blocks down and across, as numbers of a
    launch or terms of a host's C++."""
    high, wide = divide_up(shape.m, _SIDE), divide_up(shape.n, _SIDE)
    return (
        0 if shape.left_is_shared else shape.m * shape.k,
        0 if shape.right_is_shared else shape.k * shape.n,
        *(shape.m, shape.n, shape.k, shape.batches * down * across, down, across, band),
        *(high // down * _SIDE, high % down, wide // across * _SIDE, wide % across),
    )


def largest_side(extent: Any, parts: Any) -> Any:
    """Return the rows, or columns, of the largest of so many blocks, a multiple of 16."""
    return divide_up(divide_up(extent, _SIDE), parts) * _SIDE


def _most(extent: int, parts: int) -> int:
    return int(largest_side(extent, parts))


def _begin(extent: int, parts: int, index: int) -> int:
    each, more = divmod(-(-extent // _SIDE), parts)
    return (index * each + min(index, more)) * _SIDE


@dataclass(frozen=True)
class CubeRates:
    """What a cube core computes and copies in a cycle, what it takes to begin, and what it holds."""

    limit: int
    """Sums that L0C holds."""
    macs: float
    """Multiplications a cycle."""
    copied: float
    """Bytes a cycle of what L2 has."""
    cold: float
    """Bytes a cycle of what L2 does not have yet."""
    launch: float
    """Cycles that each core adds to a launch."""
    bytes: int
    """Bytes per element of the matrices."""

    @classmethod
    def of(cls, chip: Chip, *, is_int8: bool) -> CubeRates:
        """Return the rates of a chip's cores, for matrices of int8 or of 16 bits."""
        return cls(
            chip.count("memory.l0c_bytes") // 4,
            chip.number(f"timing.cube.macs_per_cycle.{'int8' if is_int8 else 'fp16'}"),
            chip.number("timing.mte2.l2_hit_aic_bytes_per_cycle"),
            chip.number("timing.mte2.aic_bytes_per_cycle"),
            chip.core_launch_us("aic") * chip.number("clock.mhz"),
            1 if is_int8 else 2,
        )


def cut_product(shape: ProductShape, chip: Chip, *, is_int8: bool = False) -> Cut:
    """Return the cut whose launch is done first, by the chip's rates: each core adds to the launch's
    own time, and takes blocks.

    A block's sums lie in L0C, its chunks of both operands twice in L1: that bounds its sides.

    Args:
        is_int8: the matrices hold int8 and both lie along K; otherwise 16 bits.
    """
    return _cut(shape, chip.count("cores.aic"), CubeRates.of(chip, is_int8=is_int8))


def chosen_cut(
    cut: Cut, chip: Chip, *, rows: int = 0, columns: int = 0, band: int = 0, cores: int = 0
) -> Cut:
    """Return a cut with what was chosen in place of its own: the sides of blocks, and the rest.

    Raises:
        UsageError: blocks that large do not fit L0C, or a side of them L0A or L0B.
    """
    if not (rows or columns or band or cores):
        return cut
    shape = cut.shape
    down = -(-shape.m // rows) if rows else cut.down
    across = -(-shape.n // columns) if columns else cut.across
    high, wide = _most(shape.m, down), _most(shape.n, across)
    if high * wide > chip.count("memory.l0c_bytes") // 4 or max(high, wide) > MOST_SIDE:
        raise UsageError(
            f"blocks of {high} x {wide} sums do not fit: L0C has room for"
            f" {chip.count('memory.l0c_bytes') // 4}, a side of at most {MOST_SIDE}",
            help="choose smaller blocks",
        )
    limit = chip.count("cores.aic")
    used = min(cores or limit, limit, shape.batches * down * across)
    return Cut(shape, down, across, min(band, across) or _band(shape, down, across, used), used)


@lru_cache(maxsize=256)
def _cut(shape: ProductShape, cores: int, rates: CubeRates) -> Cut:
    size, macs, copied, launch = rates.bytes, rates.macs, rates.copied, rates.launch
    chunk, step = CHUNK_BYTES // size, STEP_BYTES // size
    inputs = shape.batches * (shape.m + shape.n) * shape.k * size
    first = inputs * (1 / rates.cold - 1 / copied)
    rough: list[tuple[float, int, int, float, int]] = []
    for down in _counts(shape.m):
        rows = _most(shape.m, down)
        for across in _counts(shape.n):
            columns = _most(shape.n, across)
            if rows * columns > rates.limit:
                continue
            area = min(rows, shape.m / down + 4) * min(columns, shape.n / across + 4)
            height, width = min(rows, shape.m / down), min(columns, shape.n / across)
            cube = area * shape.k / macs * (1 + 10 / (rows * columns * step / macs))
            # Rows of a left matrix come 512 bytes at a time, those of a right one as wide as a block,
            # but for int8, where both lie along K.
            right = width * _burst(CHUNK_BYTES, copied)
            if size > 1:
                right = chunk * _burst(size * width, copied)
            moved = (height * _burst(CHUNK_BYTES, copied) + right) * shape.k / chunk * 1.06
            blocks = shape.batches * down * across
            each = max(cube, moved) + 0.3 * min(cube, moved) + BLOCK_CYCLES + first / blocks
            rounds = _rounds(blocks, cores, each, launch)
            used = -(-blocks // rounds)
            rough.append((rounds * each + launch * used, down, across, rounds * each, used))
    rough.sort()
    best: tuple[float, Cut] | None = None
    for _, down, across, estimate, used in rough[:BEST]:
        cut = Cut(shape, down, across, _band(shape, down, across, used), used)
        # The estimate spreads the blocks evenly; what the busiest core really has comes on top.
        busiest = _busiest(cut) * used / (shape.batches * shape.m * shape.n)
        rounds = -(-cut.blocks // used)
        even = cut.blocks / used / rounds
        cost = estimate * max(1.0, busiest * even) + launch * used
        if best is None or cost < best[0]:
            best = (cost, cut)
    assert best is not None
    return best[1]


def _rounds(blocks: int, cores: int, each: float, launch: float) -> int:
    """Return how many blocks a core takes at most, for the shortest launch: about the root of what
    all cores would take to begin over what a block takes."""
    root = int(math.sqrt(blocks * launch / each))
    least = -(-blocks // cores)
    tried = (least, max(least, root), max(least, root + 1))
    return min(tried, key=lambda rounds: rounds * each + launch * -(-blocks // rounds))


def _burst(size: float, rate: float) -> float:
    """Return the cycles of one row of a copy."""
    return max(size / rate, BURST_CYCLES)


def _counts(extent: int) -> Sequence[int]:
    """Return the numbers of blocks worth trying along an axis."""
    fractals = -(-extent // _SIDE)
    sides = range(1, min(fractals, MOST_SIDE // _SIDE) + 1)
    return sorted({-(-fractals // side) for side in sides})


def _band(shape: ProductShape, down: int, across: int, cores: int) -> int:
    """Return how many blocks across share a band: cores that work at the same time read the
    fewest bytes where what they compute is about square."""
    rows, columns = shape.m / down, shape.n / across

    def read(width: int) -> float:
        return float(math.ceil(cores / width) * rows + width * columns)

    widths = [width for width in range(1, min(across, cores) + 1) if cores % width == 0]
    least = min(map(read, widths))
    few = [width for width in widths if read(width) <= least * MOST_MORE_READ]
    # Of those that read about as little the one whose busiest core has least to do.
    return min(
        few, key=lambda width: (_busiest(Cut(shape, down, across, width, cores)), read(width))
    )


def _busiest(cut: Cut) -> int:
    """Return the elements of the core that has most."""
    loads = [0] * cut.cores
    if cut.blocks > 4096:
        return int(cut.most_rows * cut.most_columns * -(-cut.blocks // cut.cores))
    for index in range(cut.blocks):
        _, _, _, rows, columns = cut.block(index)
        loads[index % cut.cores] += rows * columns
    return max(loads)
