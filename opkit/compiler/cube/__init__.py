"""Kernels for the cube cores: products of matrices."""

from __future__ import annotations

from .product import ProductShape, product_data, write_product

__all__ = ["ProductShape", "product_data", "write_product"]
