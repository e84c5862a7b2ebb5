"""What operators compute that put, add or take elements at indices.

Sources: the documents of each operator, formula and parameters.
"""

from __future__ import annotations

import math

from opkit.testing.documented.table import Number, Numbers, Tensor, Tensors, documented, torch


@documented("apply_top_k_top_p_with_sorted")
def apply_top_k_top_p_with_sorted(
    values: Tensor, indices: Tensor, p: Tensor | None, k: Tensor | None, other: Tensor | None
) -> Tensor | None:
    """Values at their indices; -inf for all but the k largest whose chances sum up to p.

    From the smallest on, what is not among the k largest is out, then what the sum of chances up
    to it is at most 1 - p; the largest stays.

    Args:
        values: (rows, columns), each row from the smallest on.
        indices: where each belongs in its row.
        p, k: (rows,).
    """
    if p is None or k is None or other is not None:
        return None
    columns = values.shape[1]
    least = torch.gather(values, 1, columns - k.unsqueeze(1))
    kept = torch.where(values < least, -math.inf, values)
    chances = torch.cumsum(torch.softmax(kept, -1), -1)
    is_out = (chances <= 1 - p.unsqueeze(1)) & (torch.arange(columns) < columns - 1)
    return kept.new_zeros(values.shape).scatter(1, indices, torch.where(is_out, -math.inf, kept))


@documented("bincount")
def bincount(x: Tensor, size: Number, weights: Tensor | None) -> Tensor:
    """How often each whole number below size occurs, or the sum of its weights."""
    return torch.bincount(x.long(), weights, size)


@documented("chunk_cat")
def chunk_cat(x: Tensors, *, dim: int, num_chunks: int) -> Tensor:
    """Equal parts of an axis of each tensor, filled up with 0, joined behind that axis."""
    return torch._chunk_cat(x, dim, num_chunks)


@documented("expand_into_jagged_permute")
def expand_into_jagged_permute(
    permute: Tensor, input_offsets: Tensor, output_offsets: Tensor, *, output_size: int
) -> Tensor | None:
    """The indices that elements of segments come from once the segments have a new order."""
    if output_size != output_offsets[-1]:
        return None
    sizes = torch.diff(output_offsets)
    return torch.cat(
        [
            torch.arange(size) + input_offsets[segment]
            for segment, size in zip(permute, sizes, strict=True)
        ]
    )


@documented("feeds_repeat")
def feeds_repeat(feeds: Tensor, times: Tensor, *, output_feeds_size: int) -> Tensor:
    """Each row as often as is said, and rows of 0 up to a number of rows."""
    rows = torch.repeat_interleave(feeds, times.long(), 0)
    rest = rows.new_zeros(output_feeds_size - rows.shape[0], *rows.shape[1:])
    return torch.cat([rows, rest])


@documented("inplace_scatter_add")
def inplace_scatter_add(var: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """var, rows of updates added at indices."""
    return torch.index_add(var, 0, indices, updates)


# Which of several that are equal the indices name is open.
@documented("radix_top_k")
def radix_top_k(
    x: Tensor, k: Number, *, dim: int, largest: bool, sorted: bool, indices_dtype: int
) -> tuple[Tensor, Tensor | None] | None:
    """The k largest or smallest in order along an axis, and their indices where none are equal.

    Args:
        indices_dtype: a number of ge::DataType, 3 or 9.
    """
    if not sorted or indices_dtype not in (3, 9):
        return None
    top = torch.topk(x, k, dim, largest, sorted)
    is_known = (torch.diff(torch.sort(x, dim).values, dim=dim) != 0).all()
    return top.values, top.indices if is_known else None


@documented("strided_slice_assign")
def strided_slice_assign(
    var: Tensor,
    value: Tensor,
    begin: Numbers,
    end: Numbers,
    strides: Numbers,
    axes: Tensor | None,
) -> Tensor | None:
    """var with var[begin:end:strides] of every axis replaced."""
    if axes is not None:
        return None
    result = torch.clone(var)
    result[tuple(map(slice, begin, end, strides))].copy_(value)
    return result


@documented("scatter_nd_update")
def scatter_nd_update(var: Tensor, indices: Tensor, updates: Tensor) -> Tensor:
    """var with updates where the last axis of indices says: a number for each of its first axes."""
    return torch.index_put(var, tuple(indices.unbind(-1)), updates)


@documented("scatter_elements")
def scatter_elements(
    var: Tensor,
    indices: Tensor,
    updates: Tensor,
    *,
    axis: int,
    reduction: str,
    include_self: bool,
) -> Tensor:
    """var with updates at indices of an axis, put there (none), added (add) or multiplied (mul)."""
    if reduction == "none":
        return torch.scatter(var, axis, indices, updates)
    how = {"add": "sum", "mul": "prod"}[reduction]
    return var.scatter_reduce(axis, indices, updates, how, include_self=include_self)
