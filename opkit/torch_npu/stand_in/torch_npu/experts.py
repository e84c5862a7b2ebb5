"""Operators of torch_npu about experts, sampling and quantised numbers, made of PyTorch's own.

Source: the documents of torch_npu's custom interfaces, one page a function.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional as F

__all__ = [
    "npu_anti_quant",
    "npu_attention_update",
    "npu_clipped_swiglu",
    "npu_grouped_matmul",
    "npu_moe_compute_expert_tokens",
    "npu_moe_init_routing",
    "npu_quantize",
    "npu_top_k_top_p",
    "npu_transpose_batchmatmul",
]


def npu_moe_compute_expert_tokens(
    sorted_expert_for_source_row: torch.Tensor, num_expert: int
) -> torch.Tensor:
    """Return how many rows the experts up to each one have, of the rows' experts in order."""
    rows = sorted_expert_for_source_row
    experts = torch.arange(num_expert, device=rows.device, dtype=rows.dtype)
    return (rows[None] <= experts[:, None]).sum(-1).to(rows.dtype)


def npu_moe_init_routing(
    x: torch.Tensor, row_idx: torch.Tensor, expert_idx: torch.Tensor, active_num: int
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return rows of x in the order of their experts, where each row went, the experts in order.

    Args:
        x: (N, H).
        row_idx: (N, K), the number of each place, of int32.
        expert_idx: (N, K), the expert of each place, of int32.
        active_num: for how many rows of x results are wanted.
    """
    rows, picked = x.shape[0], expert_idx.shape[-1]
    experts, order = torch.sort(expert_idx.reshape(-1), stable=True)
    source = row_idx.reshape(-1)[order]
    places = torch.empty_like(source)
    places[source.long()] = torch.arange(len(source), device=x.device, dtype=source.dtype)
    taken = source[: min(active_num, rows) * picked].long() % rows
    return x[taken], places, experts


def npu_grouped_matmul(
    x: Sequence[torch.Tensor],
    weight: Sequence[torch.Tensor],
    *,
    bias: Sequence[torch.Tensor] | None = None,
    group_list: Sequence[int] | torch.Tensor | None = None,
    split_item: int = 0,
    group_type: int | None = None,
    group_list_type: int = 0,
    output_dtype: torch.dtype | None = None,
    **others: object,
) -> list[torch.Tensor]:
    """Return the products of groups: each x with its weight, or the rows of one x with each.

    Args:
        x: tensors (M, K), as many as weights, or one whose rows `group_list` divides.
        weight: tensors (K, N), or one of (groups, K, N).
        bias: (N) for each.
        group_list: where the groups end, or with `group_list_type=1` how many rows they have.
        split_item: 2 and 3 join the products to one tensor.
        group_type: -1 and None: each x is a group; 0: rows are grouped.

    Raises:
        NotImplementedError: quantised operands or groups along K are asked for.
    """
    asked = [name for name, value in others.items() if value is not None]
    if asked or group_type == 2:
        what = ", ".join(asked) or "group_type 2"
        raise NotImplementedError(f"opkit's npu_grouped_matmul has no {what}")
    weights = [*weight[0]] if len(weight) == 1 and weight[0].dim() == 3 else [*weight]
    biases = [None] * len(weights) if bias is None else [*bias]
    if len(biases) == 1 and biases[0] is not None and biases[0].dim() == 2:
        biases = [*biases[0]]
    parts = [*x]
    if len(parts) == 1 and group_list is not None:
        ends = group_list.tolist() if isinstance(group_list, torch.Tensor) else [*group_list]
        sizes = [end - begin for begin, end in zip([0, *ends], ends, strict=False)]
        parts = [*torch.split(parts[0], ends if group_list_type == 1 else sizes)]
    products = [
        F.linear(part, factor.t(), added)
        for part, factor, added in zip(parts, weights, biases, strict=True)
    ]
    if output_dtype is not None:
        products = [product.to(output_dtype) for product in products]
    return [torch.cat(products)] if split_item in (2, 3) else products


def npu_transpose_batchmatmul(
    input: torch.Tensor,
    weight: torch.Tensor,
    *,
    bias: torch.Tensor | None = None,
    scale: torch.Tensor | None = None,
    perm_x1: Sequence[int] = (0, 1, 2),
    perm_x2: Sequence[int] = (0, 1, 2),
    perm_y: Sequence[int] = (1, 0, 2),
    batch_split_factor: int = 1,
) -> torch.Tensor:
    """Return the products of matrices of (B, M, K) and (B, K, N), all three permuted.

    Raises:
        NotImplementedError: a bias, a scale or a split result is asked for.
    """
    if bias is not None or scale is not None or batch_split_factor != 1:
        raise NotImplementedError("opkit's npu_transpose_batchmatmul has products alone")
    products = input.permute(*perm_x1) @ weight.permute(*perm_x2)
    return products.permute(*perm_y).contiguous()


def npu_clipped_swiglu(
    x: torch.Tensor,
    *,
    group_index: torch.Tensor | None = None,
    dim: int = -1,
    alpha: float = 1.702,
    limit: float = 7.0,
    bias: float = 1.0,
    interleaved: bool = True,
) -> torch.Tensor:
    """Return a * sigmoid(alpha * a) * (b + bias) of the halves a <= limit, |b| <= limit.

    Args:
        x: the dims before `dim` are rows; with `group_index` those beyond its sum are left alone.
        interleaved: a and b are the elements of even and odd places, else the first and second
            half.
    """
    axis = dim + x.dim() if dim < 0 else dim
    flat = x.flatten(axis).flatten(0, axis - 1) if axis else x.flatten()[None]
    rows = len(flat) if group_index is None else min(int(group_index.sum()), len(flat))
    half = flat.shape[1] // 2
    used = flat[:rows]
    a, b = (used[:, ::2], used[:, 1::2]) if interleaved else (used[:, :half], used[:, half:])
    a, b = a.float().clamp(max=limit), b.float().clamp(-limit, limit)
    sizes = [*x.shape]
    sizes[axis] //= 2
    out = x.new_zeros((len(flat), half))
    out[:rows] = (a * torch.sigmoid(alpha * a) * (b + bias)).to(x.dtype)
    return out.reshape(sizes)


def npu_attention_update(
    lse: Sequence[torch.Tensor], local_out: Sequence[torch.Tensor], update_type: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return attention over all keys from that over parts of them, and its log of sums.

    Args:
        lse: (N) of each part, float32.
        local_out: (N, D) of each part.
        update_type: 1 gives the logs of sums too, else they are empty.
    """
    logs = torch.stack([*lse])
    whole = torch.logsumexp(logs, 0)
    shares = torch.exp(logs - whole)[..., None]
    out = (torch.stack([part.float() for part in local_out]) * shares).sum(0)
    return out.to(local_out[0].dtype), whole if update_type == 1 else whole.new_empty(0)


def npu_top_k_top_p(logits: torch.Tensor, p: torch.Tensor, k: torch.Tensor) -> torch.Tensor:
    """Return logits where what is beyond the k largest, or the share p of them, is -inf.

    Args:
        logits: (B, V).
        p: (B), 0 to 1.
        k: (B), 1 to V, of int32.
    """
    values, places = torch.sort(logits, dim=-1, stable=True)
    least = values.gather(-1, (values.shape[-1] - k.long())[:, None])
    values = values.masked_fill(values < least, float("-inf"))
    sums = torch.cumsum(torch.softmax(values, -1), -1)
    dropped = sums <= 1 - p[:, None]
    dropped[:, -1] = False
    values = values.masked_fill(dropped, float("-inf"))
    return torch.empty_like(logits).scatter_(-1, places, values)


_WHOLE = {torch.quint8: torch.uint8, torch.qint8: torch.int8, torch.qint32: torch.int32}


def npu_quantize(
    input: torch.Tensor,
    scales: torch.Tensor,
    zero_points: torch.Tensor | None,
    dtype: torch.dtype,
    axis: int = 1,
    div_mode: bool = True,
) -> torch.Tensor:
    """Return input / scales + zero_points, or input * scales without `div_mode`, as whole numbers.

    Args:
        scales: (C), one for each place along the axis, or one for all.
        dtype: a type of whole numbers, or of quantised ones such as `torch.qint8`; the result is
            plain whole numbers.

    Raises:
        NotImplementedError: the type is another: four bits are not held here.
    """
    made = _WHOLE.get(dtype, dtype)
    if made not in (torch.int8, torch.uint8, torch.int32):
        raise NotImplementedError(f"opkit's npu_quantize has no {dtype}")

    def spread(values: torch.Tensor) -> torch.Tensor:
        if values.dim() != 1 or len(values) == 1:
            return values.float()
        sizes = [1] * input.dim()
        sizes[axis] = len(values)
        return values.float().reshape(sizes)

    wide = input.float()
    found = wide / spread(scales) if div_mode else wide * spread(scales)
    if zero_points is not None:
        found = found + spread(zero_points)
    limits = torch.iinfo(made)
    if made == torch.int32:
        return torch.round(found).long().clamp(limits.min, limits.max).int()
    return torch.round(found).clamp(limits.min, limits.max).to(made)


def npu_anti_quant(
    x: torch.Tensor,
    scale: torch.Tensor,
    *,
    offset: torch.Tensor | None = None,
    dst_dtype: torch.dtype | None = None,
    src_dtype: torch.dtype | None = None,
) -> torch.Tensor:
    """Return (x + offset) * scale of int8 numbers, in float16 unless `dst_dtype` says another.

    Raises:
        NotImplementedError: eight numbers of four bits lie in each of x.
    """
    if x.dtype != torch.int8:
        raise NotImplementedError(f"opkit's npu_anti_quant has int8 numbers, x has {x.dtype}")
    wide = x.float() if offset is None else x.float() + offset.float()
    return (wide * scale.float()).to(torch.float16 if dst_dtype is None else dst_dtype)
