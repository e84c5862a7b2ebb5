"""Tensors cut into tiles, tiles given to cores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from .launch_numbers import divide_up, least, most, named

__all__ = ["Split", "share", "split"]


@dataclass(frozen=True)
class Split:
    """How `extent` elements (or rows) are cut, and which core takes which tiles."""

    extent: int
    tile: int
    """Elements of every tile; the last one may have fewer."""
    tiles: int
    cores: int
    """Cores that have a tile at all."""

    def tiles_of(self, core: int) -> range:
        """Return the tiles of one core, neighbours: the first cores take one more where it does
        not come out even."""
        return share(self.tiles, self.cores, core)

    def __str__(self) -> str:
        lines = [
            f"{self.extent} elements in {self.tiles} tiles of {self.tile}",
            "core | tiles",
        ]
        for core in range(self.cores):
            tiles = self.tiles_of(core)
            numbers = ",".join(map(str, tiles)) if len(tiles) <= 8 else f"{tiles[0]}..{tiles[-1]}"
            lines.append(f"{core:4} | {numbers}")
        return "\n".join(lines)


def share(count: int, cores: int, core: int) -> range:
    """Return one core's neighbouring share of `count` things."""
    each, extra = divmod(count, cores)
    first = core * each + min(core, extra)
    return range(first, first + each + (core < extra))


def split(extent: Any, *, cores: Any, width: Any, buffers: int = 2, unit: int = 1) -> Split:
    """Return an even split: every core has the same number of tiles, but for what does not come
    out even.

    Args:
        extent: elements, one at least.
        cores: how many there are.
        width: elements that a core holds at once, over all buffers.
        buffers: tiles that a core holds at once: two let it copy one while it computes another.
        unit: what a tile's length is a multiple of, unless one tile is all there is.

    Extent, cores and width may be terms of a host's C++; the split's numbers are then too.
    """
    largest = named("largestTile", most(unit, width // buffers // unit * unit))
    each = named("perCore", divide_up(extent, cores))
    rounds = named("rounds", most(1, divide_up(each, largest)))
    tile = named("evenTile", least(largest, divide_up(divide_up(each, rounds), unit) * unit))
    tiles = divide_up(extent, tile)
    return Split(extent, tile, tiles, least(cores, tiles))
