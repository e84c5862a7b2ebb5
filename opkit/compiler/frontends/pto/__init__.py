"""Tile programs in the names of the PTO instruction set: built, printed, executed by NumPy and on
the emulated chip through the compiler.

    p = pto.Program("scaled")
    x, y = p.input("x", (64, 64), "float32"), p.output("y", (64, 64), "float32")
    with p.for_loop(4) as i:
        tile = p.load(x, (16 * i, 0), (16, 64))
        p.store(y, p.muls(tile, 2.0), (16 * i, 0))
    print(p)
    p.compile()(array)

Names and meanings: PTO-ISA's executable specification of tile operations (BSD-3).
"""

from __future__ import annotations

from .from_graph import tile_program
from .instructions import INSTRUCTIONS, Instruction
from .parts import Condition, Index, Memory, Tile
from .program import Program

__all__ = [
    "INSTRUCTIONS",
    "Condition",
    "Index",
    "Instruction",
    "Memory",
    "Program",
    "Tile",
    "tile_program",
]
