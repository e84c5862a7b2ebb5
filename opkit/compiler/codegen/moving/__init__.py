"""Kernels that move elements and compute nothing: transposes, slices, joins, pads, lookups."""

from __future__ import annotations

from ...ir import Piece, pieces_of
from .boxes import MOST_OUTER, Box, boxes_of, copy_cores, copy_values
from .counting import count_values, write_count
from .lookup import lookup_values, write_lookup
from .picking import can_pick, pick_values, write_pick
from .placing import PLACED_TYPES, Placing, placing_of, placing_values, write_placing
from .searching import search_values, write_search
from .text import write_copy
from .turning import turn_of, turn_values, write_turn
from .weaving import weave_of, weave_values, write_weave

__all__ = [
    "MOST_OUTER",
    "PLACED_TYPES",
    "Box",
    "Piece",
    "Placing",
    "boxes_of",
    "can_pick",
    "copy_cores",
    "copy_values",
    "count_values",
    "lookup_values",
    "pick_values",
    "pieces_of",
    "placing_of",
    "placing_values",
    "search_values",
    "turn_of",
    "turn_values",
    "weave_of",
    "weave_values",
    "write_copy",
    "write_count",
    "write_lookup",
    "write_pick",
    "write_placing",
    "write_search",
    "write_turn",
    "write_weave",
]
