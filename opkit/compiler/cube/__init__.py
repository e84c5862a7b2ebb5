"""Products of matrices on cube cores, alone or with vector cores that finish them."""

from __future__ import annotations

from .blocks import SLOTS, BlockProduct, write_cube_class, write_plain_product
from .cutting import Cut, ProductShape, chosen_cut, cut_product
from .epilogue import Epilogue, epilogue_data, epilogue_of, write_epilogue
from .product import product_data, write_object_cube, write_product

__all__ = [
    "SLOTS",
    "BlockProduct",
    "Cut",
    "Epilogue",
    "ProductShape",
    "chosen_cut",
    "cut_product",
    "epilogue_data",
    "epilogue_of",
    "product_data",
    "write_cube_class",
    "write_epilogue",
    "write_object_cube",
    "write_plain_product",
    "write_product",
]
