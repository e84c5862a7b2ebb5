"""What operators compute that put, add or take elements at places, by their documents' formulas."""

from __future__ import annotations

__all__ = ["INDEXING"]

# From the smallest on, what is not among the k largest is out, then what the sum of chances up to
# it is at most 1 - p; the largest stays.
_TOP_K = "torch.where({0} < torch.gather({0}, 1, {0}.shape[1] - {3}.unsqueeze(1)), -math.inf, {0})"
_TOP_P = (
    "torch.where((torch.cumsum(torch.softmax(kept, -1), -1) <= 1 - {2}.unsqueeze(1))"
    " & (torch.arange({0}.shape[1]) < {0}.shape[1] - 1), -math.inf, kept)"
)

INDEXING: dict[str, tuple[str, ...]] = {
    "apply_top_k_top_p_with_sorted": (
        f"(kept := {_TOP_K}).new_zeros({{0}}.shape).scatter(1, {{1}}, {_TOP_P})"
        " if {2} is not None and {3} is not None and {4} is None else None",
    ),
    "bincount": ("torch.bincount({0}.long(), {2}, {1}.item())",),
    "chunk_cat": ("torch._chunk_cat({0}, dim, num_chunks)",),
    "expand_into_jagged_permute": (
        "torch.cat([torch.arange(size) + {1}[place]"
        " for place, size in zip({0}, torch.diff({2}), strict=True)])"
        " if output_size == {2}[-1] else None",
    ),
    "feeds_repeat": (
        "[rows := torch.repeat_interleave({0}, {1}.long(), 0)] and torch.cat(["
        "rows, rows.new_zeros(output_feeds_size - rows.shape[0], *rows.shape[1:])])",
    ),
    "inplace_scatter_add": ("torch.index_add({0}, 0, {1}, {2})",),
    # Which of several that are equal the indices name is open.
    "radix_top_k": (
        "[top := torch.topk({0}, {1}.item(), dim, largest, sorted)] and (top.values, top.indices"
        " if (torch.diff(torch.sort({0}, dim).values, dim=dim) != 0).all() else None)"
        " if sorted and indices_dtype in (3, 9) else None",
    ),
    "strided_slice_assign": (
        "[result := torch.clone({0}), result[tuple(map(slice, {2}.tolist(), {3}.tolist(),"
        " {4}.tolist()))].copy_({1})] and result if {5} is None else None",
    ),
    "scatter_nd_update": ("torch.index_put({0}, tuple({1}.unbind(-1)), {2})",),
    "scatter_elements": (
        "torch.scatter({0}, axis, {1}, {2}) if reduction == 'none' else"
        " {0}.scatter_reduce(axis, {1}, {2}, {{'add': 'sum', 'mul': 'prod'}}[reduction],"
        " include_self=include_self)",
    ),
}
"""As `opkit.testing.references.operator_formulas.WRITTEN_OUT`, of which these are a part."""
