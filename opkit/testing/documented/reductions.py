"""What operators compute that sum, count, compare or sort along axes.

Sources: the documents of each operator, formula and parameters.
"""

from __future__ import annotations

import math

from opkit.testing.documented.table import Number, Tensor, documented, torch


@documented("arg_max_with_value")
def arg_max_with_value(x: Tensor, *, dimension: int, keep_dims: bool) -> tuple[Tensor, Tensor]:
    """The index of the largest element along an axis, and the element."""
    values, indices = torch.max(x, dimension, keep_dims)
    return indices, values


@documented("arg_min_with_value")
def arg_min_with_value(x: Tensor, *, dimension: int, keep_dims: bool) -> tuple[Tensor, Tensor]:
    """The index of the smallest element along an axis, and the element."""
    values, indices = torch.min(x, dimension, keep_dims)
    return indices, values


@documented("cdist_grad")
def cdist_grad(dy: Tensor, x1: Tensor, x2: Tensor, cdist: Tensor, *, p: float) -> Tensor | None:
    """The sum over others of dy * (x1 - x2) * |x1 - x2|^(p - 2) / cdist^(p - 1).

    The aclnn function spreads what it is given; here there is a value for each pair and element.

    Args:
        dy, x1, x2, cdist: (..., rows, others, size).
    """
    if dy.dim() < 3 or not dy.shape == x1.shape == x2.shape == cdist.shape:
        return None
    apart = x1 - x2
    if p == math.inf:
        return (dy * torch.sign(apart) * (apart.abs() == cdist)).sum(-2)
    slope = torch.sign(apart) * torch.where(apart == 0, 0, apart.abs() ** (p - 1))
    return (dy * torch.where(cdist == 0, 0, slope / cdist ** (p - 1))).sum(-2)


@documented("exp_segsum_grad")
def exp_segsum_grad(grad: Tensor, y: Tensor) -> Tensor | None:
    """The gradient of segsum: sums of grad * y over what each element was summed into.

    Args:
        grad, y: (..., n, n).
    """
    if grad.shape[-1] != grad.shape[-2]:
        return None
    below = torch.tril(grad * y, -1)
    return below.flip(-2).cumsum(-2).flip(-2).tril(-1).sum(-1)


@documented("grouped_bias_add_grad")
def grouped_bias_add_grad(dy: Tensor, *, group_idx_type: int) -> Tensor | None:
    """Sums of dy over the second of three axes."""
    return torch.sum(dy, 1) if dy.dim() == 3 and group_idx_type == 0 else None


@documented("histogram")
def histogram(x: Tensor, low: Number, high: Number, *, bins: int) -> Tensor:
    """How many elements lie in each of equal parts of low to high."""
    return torch.histc(x.double(), bins, low, high)


@documented("log_sum_exp")
def log_sum_exp(x: Tensor, *, dim: list[int], keep_dim: bool) -> Tensor:
    """The logarithm of the sum of exp along axes; along all of them where none is named."""
    return torch.logsumexp(x, tuple(dim) or tuple(range(x.dim())), keep_dim)


@documented("pdist_grad")
def pdist_grad(dy: Tensor, x: Tensor, pdist: Tensor, *, p: float) -> Tensor | None:
    """The gradient of the distances between each two rows, in order.

    Args:
        dy, pdist: (pairs,).
        x: (rows, columns).
    """
    if x.dim() != 2 or not dy.shape == pdist.shape == (math.comb(x.shape[0], 2),):
        return None
    rows, others = torch.triu_indices(x.shape[0], x.shape[0], 1)
    apart = x[rows] - x[others]
    if p == 0:
        return torch.zeros_like(x)
    if p == math.inf:
        slope = torch.sign(apart) * (apart.abs() == pdist.unsqueeze(-1))
    else:
        powers = torch.where(apart == 0, 0, apart.abs() ** (p - 1))
        slope = torch.sign(apart) * powers / pdist.unsqueeze(-1) ** (p - 1)
    slope = torch.where(pdist.unsqueeze(-1) == 0, 0, slope) * dy.unsqueeze(-1)
    return torch.zeros_like(x).index_add(0, rows, slope).index_add(0, others, -slope)


@documented("segsum")
def segsum(x: Tensor) -> Tensor:
    """exp of the sums x[j + 1] + ... + x[i] at [i, j], 0 where j is above i; n gives n x n."""
    size = x.shape[-1]
    below = torch.tril(x.unsqueeze(-1).expand(*x.shape, size), -1)
    outside = torch.full((size, size), -math.inf).triu(1)
    return torch.exp(torch.cumsum(below, -2) + outside)


# Where two are equal, which of them comes first is open.
@documented("sort_with_index")
def sort_with_index(
    x: Tensor, index: Tensor, *, axis: int, descending: bool, stable: bool
) -> tuple[Tensor, Tensor | None]:
    """x in order along an axis, and the index of each, None where two are equal."""
    values, order = torch.sort(x, dim=axis, descending=descending, stable=True)
    is_known = stable or (torch.diff(values, dim=axis) != 0).all()
    return values, torch.gather(index, axis, order) if is_known else None
