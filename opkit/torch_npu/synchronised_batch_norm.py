"""The steps of batch norm over several processes, which PyTorch has kernels for on other devices.

`torch.nn.SyncBatchNorm` calls them: statistics of a process, those of all from these, the result,
and the same for the gradient. They are made of operators that run on the device, in float32.
"""

from __future__ import annotations

from typing import Any

import torch

__all__ = ["register_steps"]

_libraries: list[Any] = []  # dropping one takes back what it has registered


def register_steps() -> None:
    """Register the steps for the device; once a process."""
    if _libraries:
        return
    make: Any = torch.library.Library
    library = make("aten", "IMPL")
    for name, function in (
        ("batch_norm_stats", _statistics),
        ("batch_norm_elemt", _normalised),
        ("batch_norm_elemt.out", _normalised_into),
        ("batch_norm_gather_stats_with_counts", _gathered_with_counts),
        ("batch_norm_gather_stats", _gathered),
        ("batch_norm_backward_reduce", _backward_sums),
        ("batch_norm_backward_elemt", _backward),
    ):
        library.impl(name, function, "PrivateUse1")
    _libraries.append(library)


def _others(x: torch.Tensor) -> list[int]:
    """Return the dims that are not the channels'."""
    return [0, *range(2, x.dim())]


def _wide(values: torch.Tensor, like: torch.Tensor) -> torch.Tensor:
    """Return one value a channel as float32 in the shape that goes with a tensor."""
    return values.float().reshape([1, -1, *[1] * (like.dim() - 2)])


def _statistics(x: torch.Tensor, eps: float) -> tuple[torch.Tensor, torch.Tensor]:
    wide = x.float()
    mean = wide.mean(_others(x))
    variance = (wide - _wide(mean, x)).square().mean(_others(x))
    return mean, torch.rsqrt(variance + eps)


def _normalised(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    eps: float,
) -> torch.Tensor:
    out = (x.float() - _wide(mean, x)) * _wide(invstd, x)
    if weight is not None:
        out = out * _wide(weight, x)
    if bias is not None:
        out = out + _wide(bias, x)
    return out.to(x.dtype)


def _normalised_into(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    bias: torch.Tensor | None,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    eps: float,
    *,
    out: torch.Tensor,
) -> torch.Tensor:
    found = _normalised(x, weight, bias, mean, invstd, eps)
    return out.resize_(found.shape).copy_(found)


def _gathered(
    x: torch.Tensor,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    momentum: float,
    eps: float,
    count: int,
) -> tuple[torch.Tensor, torch.Tensor]:
    counts = torch.full([mean.shape[0]], float(count), device=mean.device)
    return _gathered_with_counts(x, mean, invstd, running_mean, running_var, momentum, eps, counts)


def _gathered_with_counts(
    x: torch.Tensor,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    running_mean: torch.Tensor | None,
    running_var: torch.Tensor | None,
    momentum: float,
    eps: float,
    counts: torch.Tensor,
) -> tuple[torch.Tensor, torch.Tensor]:
    """Join the statistics of processes: a row each of `mean` and `invstd`, and a count."""
    share = counts.float().reshape(-1, 1)
    total = share.sum()
    means = mean.float()
    joined = (means * share).sum(0) / total
    variances = 1 / invstd.float().square() - eps
    squares = ((variances + (means - joined).square()) * share).sum(0)
    if running_mean is not None:
        running_mean.lerp_(joined.to(running_mean.dtype), momentum)
    if running_var is not None:
        unbiased = squares / (total - 1)
        running_var.lerp_(unbiased.to(running_var.dtype), momentum)
    return joined, torch.rsqrt(squares / total + eps)


def _backward_sums(
    grad: torch.Tensor,
    x: torch.Tensor,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    weight: torch.Tensor | None,
    for_input: bool,
    for_weight: bool,
    for_bias: bool,
) -> tuple[torch.Tensor | None, ...]:
    """Return the sums of grad, and of grad times the centred input, then the two gradients."""
    wide = grad.float()
    total = wide.sum(_others(x))
    centred = (wide * (x.float() - _wide(mean, x))).sum(_others(x))
    kept = x.dtype if weight is None else weight.dtype
    return (
        total if for_input else None,
        centred if for_input else None,
        (centred * invstd.float()).to(kept) if for_weight else None,
        total.to(kept) if for_bias else None,
    )


def _backward(
    grad: torch.Tensor,
    x: torch.Tensor,
    mean: torch.Tensor,
    invstd: torch.Tensor,
    weight: torch.Tensor | None,
    grad_sum: torch.Tensor,
    grad_centred_sum: torch.Tensor,
    counts: torch.Tensor,
) -> torch.Tensor:
    total = counts.sum().float()
    scale = invstd.float().square()
    slope = _wide(grad_centred_sum.float() / total * scale, x)
    centred = x.float() - _wide(mean, x)
    out = grad.float() - _wide(grad_sum.float() / total, x) - centred * slope
    out = out * _wide(invstd, x)
    if weight is not None:
        out = out * _wide(weight, x)
    return out.to(x.dtype)
