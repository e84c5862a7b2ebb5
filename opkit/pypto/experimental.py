"""`pypto.experimental`: rows through a page table, attention by blocks, turned products."""

from __future__ import annotations

from typing import Any

from .enumerations import dtype_name
from .settings import OPERATION_OPTIONS
from .traced import Traced, new_value

__all__ = [
    "gather_in_l1",
    "gather_in_ub",
    "get_operation_options",
    "online_softmax",
    "online_softmax_update",
    "set_operation_options",
    "transposed_batchmatmul",
]

set_operation_options = OPERATION_OPTIONS["set_operation_options"]
get_operation_options = OPERATION_OPTIONS["get_operation_options"]


def gather_in_ub(
    param: Traced, indices: Traced, block_table: Traced, block_size: int, axis: int = -2
) -> Traced:
    """Return the rows of a paged cache (rows, width) that positions (1, k) name: (k, width).

    Position p lies in row p % block_size of the page that block_table (1, pages) has for
    p // block_size.
    """
    places = indices.reshape(-1)
    if places.dtype != "int32":
        places = places.apply("cast", dtype="int32")
    # A quotient of fractions is off by one at most, which what remains tells.
    page = places.apply("floor_divide", block_size).apply("cast", dtype="int32")
    rest = places - page * block_size
    page = page - (rest < 0).apply("cast", dtype="int32")
    page = page + (rest >= block_size).apply("cast", dtype="int32")
    pages = block_table.reshape(-1).apply("take", page, axis=0)
    return param.apply("take", pages * block_size + (places - page * block_size), axis=0)


def gather_in_l1(
    src: Traced,
    indices: Traced,
    block_table: Traced,
    block_size: int,
    size: int,
    is_b_matrix: bool = False,
    is_trans: bool = False,
) -> Traced:
    """Return the first `size` elements of such rows: (k, size).

    `is_b_matrix` and `is_trans` say how a product will read them from L1, and change no element.
    """
    return gather_in_ub(src[:, :size], indices, block_table, block_size)


def online_softmax(scores: Traced, scale: float) -> tuple[Traced, Traced, Traced]:
    """Return what a block of scores (keys, queries) adds to a softmax along the keys.

    Its exponentials in bfloat16 (keys, queries), and each query's largest score and sum
    (1, queries).
    """
    scaled = scores * scale
    largest = scaled.apply("max", axis=0, keepdims=True)
    powers = (scaled - largest).apply("exp")
    return (
        powers.apply("cast", dtype="bfloat16"),
        largest,
        powers.apply("sum", axis=0, keepdims=True),
    )


def online_softmax_update(
    previous_max: Traced,
    previous_sum: Traced,
    previous_output: Traced,
    current_max: Traced,
    current_sum: Traced,
    current_output: Traced,
) -> tuple[Traced, Traced, Traced]:
    """Return maximum (1, queries), sum (1, queries) and output (width, queries) of both blocks."""
    largest = previous_max.apply("maximum", current_max)
    before = (previous_max - largest).apply("exp")
    now = (current_max - largest).apply("exp")
    return (
        largest,
        previous_sum * before + current_sum * now,
        previous_output * before + current_output * now,
    )


def transposed_batchmatmul(tensor_a: Traced, tensor_b: Traced, out_dtype: Any) -> Traced:
    """Return (rows, batches, columns) of the products of (rows, batches, inner) and (batches,
    inner, columns)."""
    product = new_value(tensor_a.builder, "matmul", tensor_a.transpose(1, 0, 2), tensor_b)
    turned = product.transpose(1, 0, 2)
    wanted = dtype_name(out_dtype)
    return turned if turned.dtype == wanted else turned.apply("cast", dtype=wanted)
