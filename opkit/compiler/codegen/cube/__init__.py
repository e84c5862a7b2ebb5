"""Products of matrices on cube cores, alone or with vector cores that finish them."""

from __future__ import annotations

from .blocks import SLOTS, BlockProduct, write_blocks, write_cube_class
from .cutting import (
    BLOCK_FIELDS,
    Cut,
    ProductShape,
    block_values,
    chosen_cut,
    cut_product,
    largest_side,
)
from .entry import Prologue, Work, write_entry
from .epilogue import (
    Epilogue,
    epilogue_of,
    epilogue_values,
    most_slots,
    write_epilogue,
)
from .host_cut import CUT_CPP, cut_call
from .product import product_values, write_object_cube, write_object_product

__all__ = [
    "BLOCK_FIELDS",
    "CUT_CPP",
    "SLOTS",
    "BlockProduct",
    "Cut",
    "Epilogue",
    "ProductShape",
    "Prologue",
    "Work",
    "block_values",
    "chosen_cut",
    "cut_call",
    "cut_product",
    "epilogue_of",
    "epilogue_values",
    "largest_side",
    "most_slots",
    "product_values",
    "write_blocks",
    "write_cube_class",
    "write_entry",
    "write_epilogue",
    "write_object_cube",
    "write_object_product",
]
