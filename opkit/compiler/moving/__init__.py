"""Kernels that move elements and compute nothing: transposes, slices, joins, pads, lookups."""

from __future__ import annotations

from .counting import count_data, write_count
from .lookup import lookup_data, write_lookup
from .pieces import Piece, pieces_of
from .text import copy_data, write_copy

__all__ = [
    "Piece",
    "copy_data",
    "count_data",
    "lookup_data",
    "pieces_of",
    "write_copy",
    "write_count",
    "write_lookup",
]
