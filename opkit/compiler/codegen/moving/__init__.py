"""Kernels that move elements and compute nothing: transposes, slices, joins, pads, lookups."""

from __future__ import annotations

from ...ir import Piece, pieces_of
from .boxes import Box, boxes_of, copy_values
from .counting import count_data, count_values, write_count
from .lookup import lookup_data, lookup_values, write_lookup
from .text import copy_data, write_copy

__all__ = [
    "Box",
    "Piece",
    "boxes_of",
    "copy_data",
    "copy_values",
    "count_data",
    "count_values",
    "lookup_data",
    "lookup_values",
    "pieces_of",
    "write_copy",
    "write_count",
    "write_lookup",
]
