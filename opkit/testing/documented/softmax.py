"""What operators of softmax compute that are called otherwise than torch's functions.

Sources: the documents of each operator, formula and parameters.
"""

from __future__ import annotations

from opkit.testing.documented.table import Tensor, Whole, documented, torch


@documented("log_softmax")
def log_softmax(x: Tensor, *, axes: list[int]) -> Tensor:
    """x - log(sum(exp(x))) along the first of the axes."""
    return torch.log_softmax(x, axes[0])


@documented("log_softmax_grad")
def log_softmax_grad(dy: Tensor, y: Tensor, *, axis: list[int]) -> Tensor:
    """dy - exp(y) * sum(dy) along the first of the axes."""
    return dy - torch.exp(y) * dy.sum(axis[0], True)


@documented("masked_softmax_with_rel_pos_bias")
def masked_softmax_with_rel_pos_bias(
    x: Tensor,
    mask: Tensor | None,
    bias: Tensor,
    *,
    scale_value: float,
    inner_precision_mode: int,
) -> Tensor | None:
    """softmax(scale_value * x + mask + bias) along the last axis.

    Args:
        x: (images * windows, heads, rows, columns).
        mask: (windows, rows, columns), for the windows of every image.
        bias: (heads, rows, columns).
    """
    if x.dim() != 4 or bias.shape != x.shape[1:] or inner_precision_mode != 0:
        return None
    masks = 0 if mask is None else mask.unsqueeze(1).repeat(x.shape[0] // mask.shape[0], 1, 1, 1)
    return torch.softmax(scale_value * x + masks + bias, -1)


@documented("scaled_masked_softmax_grad")
def scaled_masked_softmax_grad(
    dy: Tensor, y: Tensor, mask: Whole, *, scale: float, fixed_triu_mask: bool
) -> Tensor | None:
    """scale * y * (dy - sum(dy * y)) along the last axis, and 0 where the mask is set."""
    if fixed_triu_mask:
        return None
    return torch.where(mask.bool(), 0.0, scale * y * (dy - torch.sum(dy * y, -1, True)))


@documented("softmax")
def softmax(x: Tensor, *, axes: list[int]) -> Tensor:
    """exp(x) / sum(exp(x)) along the first of the axes."""
    return torch.softmax(x, axes[0])


@documented("softmax_grad")
def softmax_grad_of_axes(dy: Tensor, y: Tensor, *, axes: list[int]) -> Tensor:
    """y * (dy - sum(y * dy)) along the first of the axes."""
    return y * (dy - torch.sum(y * dy, axes[0], True))


@documented("softmax_grad")
def softmax_grad(dy: Tensor, y: Tensor) -> Tensor:
    """y * (dy - sum(y * dy)) along the last axis."""
    return y * (dy - torch.sum(y * dy, -1, True))
