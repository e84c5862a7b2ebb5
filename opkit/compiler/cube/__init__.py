"""Products of matrices on cube cores, alone or with vector cores that finish them."""

from __future__ import annotations

from .blocks import SLOTS, BlockProduct, write_blocks, write_cube_class
from .cutting import BLOCK_FIELDS, Cut, ProductShape, chosen_cut, cut_product
from .entry import Prologue, Work, write_entry
from .epilogue import Epilogue, epilogue_data, epilogue_of, write_epilogue
from .product import product_data, write_object_cube, write_object_product

__all__ = [
    "BLOCK_FIELDS",
    "SLOTS",
    "BlockProduct",
    "Cut",
    "Epilogue",
    "ProductShape",
    "Prologue",
    "Work",
    "chosen_cut",
    "cut_product",
    "epilogue_data",
    "epilogue_of",
    "product_data",
    "write_blocks",
    "write_cube_class",
    "write_entry",
    "write_epilogue",
    "write_object_cube",
    "write_object_product",
]
