"""Fused operators of torch_npu for layers of language models, made of PyTorch's own.

They compute in float32 and round once. Source: the documents of torch_npu's custom interfaces, one
page a function.
"""

from __future__ import annotations

import torch

__all__ = [
    "batch_norm_reduce",
    "npu_add_rms_norm",
    "npu_dynamic_quant",
    "npu_fused_cross_entropy_loss_with_max_sum",
    "npu_fused_linear_online_max_sum",
    "npu_gelu",
    "npu_gelu_mul",
    "npu_group_norm_silu",
    "npu_interleave_rope",
    "npu_moe_gating_top_k_softmax",
    "npu_rms_norm",
    "npu_softmax_cross_entropy_with_logits",
]


def npu_rms_norm(
    self: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return self / rms(self) * gamma, and 1 / rms in float, over the dims of gamma."""
    dims = tuple(range(-gamma.dim(), 0))
    wide = self.float()
    rstd = torch.rsqrt((wide * wide).mean(dims, keepdim=True) + epsilon)
    return (wide * rstd * gamma.float()).to(self.dtype), rstd


def npu_add_rms_norm(
    x1: torch.Tensor, x2: torch.Tensor, gamma: torch.Tensor, epsilon: float = 1e-6
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return npu_rms_norm of a sum, 1 / rms in float, and the sum."""
    added = x1 + x2
    normalised, rstd = npu_rms_norm(added, gamma, epsilon)
    return normalised, rstd, added


def npu_gelu(input: torch.Tensor, approximate: str = "none") -> torch.Tensor:
    """Return x times the normal distribution's function of x, or its approximation by tanh."""
    return torch.nn.functional.gelu(input, approximate=approximate)


def npu_gelu_mul(input: torch.Tensor, *, approximate: str = "none") -> torch.Tensor:
    """Return gelu(first half) * second half along the last dim."""
    first, second = torch.chunk(input, 2, -1)
    return torch.nn.functional.gelu(first, approximate=approximate) * second


def npu_group_norm_silu(
    input: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    group: int,
    eps: float = 1e-5,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return silu(group norm), and mean and 1 / deviation of each sample and group."""
    batch, channels = input.shape[:2]
    out, mean, rstd = torch.native_group_norm(
        input, weight, bias, batch, channels, input[0, 0].numel(), group, eps
    )
    return torch.nn.functional.silu(out), mean, rstd


def npu_interleave_rope(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
    """Return rotary positions of pairs that lie side by side; the result has halves."""
    pairs = x.reshape(*x.shape[:-1], -1, 2).transpose(-1, -2).flatten(-2)
    first, second = torch.chunk(pairs, 2, -1)
    return pairs * cos + torch.cat([-second, first], -1) * sin


def npu_moe_gating_top_k_softmax(
    x: torch.Tensor, finished: torch.Tensor | None = None, k: int = 1
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the k largest of the softmax, their experts, and the rows that they come from.

    Args:
        finished: rows that take no part: their experts are the number of experts.
    """
    experts = x.shape[-1]
    values, places = torch.topk(torch.softmax(x.float(), -1), k, -1)
    places = places.int()
    if finished is not None:
        places = places.masked_fill(finished.unsqueeze(-1), experts)
    rows = places.numel() // k
    numbers = torch.arange(rows * k, dtype=torch.int32, device=x.device)
    from_rows = numbers.reshape(k, rows).transpose(0, 1).reshape(places.shape)
    return values.to(x.dtype), places, from_rows.contiguous()


def npu_dynamic_quant(
    x: torch.Tensor,
    *,
    smooth_scales: torch.Tensor | None = None,
    group_index: torch.Tensor | None = None,
    dst_type: torch.dtype | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return int8 values, a scale for each row, and those scales.

    Raises:
        NotImplementedError: groups of experts, or another type than int8.
    """
    if group_index is not None or dst_type not in (None, torch.int8):
        raise NotImplementedError("opkit's npu_dynamic_quant has int8 without groups only")
    wide = x.float()
    if smooth_scales is not None:
        wide = wide * smooth_scales.float()
    scale = wide.abs().amax(-1, keepdim=True) / 127
    return torch.round(wide / scale).to(torch.int8), scale.squeeze(-1)


def npu_softmax_cross_entropy_with_logits(
    features: torch.Tensor, labels: torch.Tensor
) -> torch.Tensor:
    """Return minus the sum of labels * log(softmax(features)) of each row."""
    logarithms = torch.log_softmax(features.float(), -1)
    return -(labels.float() * logarithms).sum(-1).to(features.dtype)


def batch_norm_reduce(input: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Return sums and sums of squares of each channel, in float; `eps` takes no part."""
    wide, dims = input.float(), [0, *range(2, input.dim())]
    return wide.sum(dims), wide.square().sum(dims)


def npu_fused_linear_online_max_sum(
    input: torch.Tensor,
    weight: torch.Tensor,
    target: torch.Tensor,
    vocab_start_index: int,
    vocab_end_index: int,
    return_logits: bool = False,
) -> tuple[torch.Tensor, ...]:
    """Return what cross entropy needs of the part of a vocabulary that this process holds.

    Returns:
        maxima and sums of exp of the rows of input @ weight transposed, the targets' logits less
        the maxima, which targets lie outside (a bit each, the first the highest of its byte), the
        targets counted from the part's start, and the logits: empty unless asked for.
    """
    logits = input.float() @ weight.float().t()
    largest = logits.amax(-1)
    rest = logits - largest.unsqueeze(-1)
    is_outside = (target < vocab_start_index) | (target > vocab_end_index)
    places = (target - vocab_start_index).masked_fill(is_outside, 0)
    predicted = rest.gather(-1, places.long().unsqueeze(-1)).squeeze(-1)
    predicted = predicted.masked_fill(is_outside, 0.0)
    bits = torch.nn.functional.pad(is_outside.int(), (0, -len(target) % 8), value=1)
    powers = torch.tensor([128, 64, 32, 16, 8, 4, 2, 1], dtype=torch.int32, device=target.device)
    packed = (bits.reshape(-1, 8) * powers).sum(-1).to(torch.uint8)
    kept = logits.to(input.dtype) if return_logits else torch.empty(0, device=input.device)
    return largest, rest.exp().sum(-1), predicted, packed, places, kept


def npu_fused_cross_entropy_loss_with_max_sum(
    logits_max: torch.Tensor,
    sum_exp_logits: torch.Tensor,
    predicted_logits: torch.Tensor,
    *,
    label_smoothing: float = 0.0,
    input: torch.Tensor | None = None,
    weight: torch.Tensor | None = None,
    vocab_parallel_logits: torch.Tensor | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the loss of each row, and the softmax where the logits are given; else it is empty.

    Raises:
        NotImplementedError: an option that the operator's document keeps for later.
    """
    if label_smoothing or input is not None or weight is not None:
        raise NotImplementedError("label_smoothing is 0, input and weight are None")
    loss = torch.log(sum_exp_logits) - predicted_logits
    if vocab_parallel_logits is None:
        return loss, torch.empty(0, device=loss.device)
    weights = torch.exp(vocab_parallel_logits.float() - logits_max.unsqueeze(-1))
    return loss, weights / sum_exp_logits.unsqueeze(-1)
