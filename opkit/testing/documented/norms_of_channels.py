"""What group norm and batch norm compute, and their gradients.

Channels are the second axis; a group is some of them, with all elements of these. Sources: the
documents of each operator, formula and parameters.
"""

from __future__ import annotations

from opkit.testing.documented.table import Array, Tensor, documented, torch


def statistics_of_groups(x: Tensor, num_groups: int, eps: float) -> tuple[Tensor, Tensor]:
    """Return mean and rstd of each group, (images, groups)."""
    groups = x.reshape(x.shape[0], num_groups, -1)
    return groups.mean(-1), torch.rsqrt(groups.var(-1, correction=0) + eps)


def group_normed(x: Tensor, gamma: Tensor, beta: Tensor, num_groups: int, eps: float) -> Tensor:
    """Return group norm, with a number a channel of gamma and beta."""
    return torch.nn.functional.group_norm(x, num_groups, gamma, beta, eps)


@documented("group_norm")
def group_norm(
    x: Tensor, *, gamma: Tensor, beta: Tensor, num_groups: int, eps: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Group norm, and mean and rstd of each group."""
    y = group_normed(x, gamma, beta, num_groups, eps)
    return y, *statistics_of_groups(x, num_groups, eps)


@documented("group_norm_silu")
def group_norm_silu(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    *,
    num_groups: int,
    eps: float,
    activate_silu: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """silu(group norm), or group norm, and mean and rstd of each group."""
    y = group_normed(x, gamma, beta, num_groups, eps)
    activated = torch.nn.functional.silu(y) if activate_silu else y
    return activated, *statistics_of_groups(x, num_groups, eps)


@documented("group_norm_swish")
def group_norm_swish(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    *,
    num_groups: int,
    eps: float,
    activate_swish: bool,
    swish_scale: float,
) -> tuple[Tensor, Tensor, Tensor]:
    """y * sigmoid(swish_scale * y) of y = group norm, or y, and mean and rstd of each group."""
    y = group_normed(x, gamma, beta, num_groups, eps)
    activated = y * torch.sigmoid(swish_scale * y) if activate_swish else y
    return activated, *statistics_of_groups(x, num_groups, eps)


@documented("group_norm_grad")
def group_norm_grad(
    dy: Tensor,
    mean: Tensor,
    rstd: Tensor,
    x: Tensor,
    gamma: Tensor,
    *,
    num_groups: int,
    dx_is_require: bool,
    dgamma_is_require: bool,
    dbeta_is_require: bool,
) -> tuple[Tensor, ...] | None:
    """Gradients of group norm by x, gamma and beta, where all are asked for.

    Args:
        mean, rstd: (images, groups).
    """
    if not (dx_is_require and dgamma_is_require and dbeta_is_require):
        return None
    # One number a group and image, in two axes.
    return _group_norm_backward(dy, x, mean[:, :], rstd[:, :], gamma, num_groups)


def _group_norm_backward(
    dy: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, gamma: Tensor, num_groups: int
) -> tuple[Tensor, ...]:
    found: tuple[Tensor, ...] = torch.ops.aten.native_group_norm_backward(
        *(dy, x, mean, rstd, gamma, x.shape[0], x.shape[1], x[0, 0].numel(), num_groups),
        [True, True, True],
    )
    return found


@documented("group_norm_swish_grad")
def group_norm_swish_grad(
    dy: Tensor,
    mean: Tensor,
    rstd: Tensor,
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    *,
    num_groups: int,
    swish_scale: float,
    dgamma_is_require: bool,
    dbeta_is_require: bool,
) -> tuple[Tensor, ...] | None:
    """Gradients of the swish of group norm by x, gamma and beta, where all are asked for."""
    if not (dgamma_is_require and dbeta_is_require):
        return None
    channels = (x.shape[1], *[1] * (x.dim() - 2))
    groups = x.reshape(x.shape[0], num_groups, -1) - mean.reshape(-1, num_groups, 1)
    normed = (groups * rstd.reshape(-1, num_groups, 1)).reshape(x.shape)
    y = swish_scale * (normed * gamma.reshape(channels) + beta.reshape(channels))
    to_y = (y * 0 + 1 + y * torch.sigmoid(-y)) * torch.sigmoid(y) * dy
    means, roots = mean.reshape(-1, num_groups), rstd.reshape(-1, num_groups)
    return _group_norm_backward(to_y, x, means, roots, gamma, num_groups)


@documented("group_normalization_grad")
def group_normalization_grad(
    dy: Tensor, x: Tensor, gamma: Tensor, mean: Tensor, rstd: Tensor
) -> Tensor | None:
    """The gradient of group norm by x, in which the last of three axes is a group.

    Args:
        gamma: of x's shape.
        mean, rstd: of x's shape without its last axis.
    """
    if x.dim() != 3:
        return None
    root = rstd.unsqueeze(-1)
    normed = (x - mean.unsqueeze(-1)) * root
    return (
        root
        * gamma
        * (
            dy
            - torch.mean(dy * gamma, -1, True)
            - normed * torch.mean(dy * gamma * normed, -1, True)
        )
    )


# What is saved is the variance, by the documents of this chip's.
@documented("batch_norm")
def batch_norm(
    x: Tensor,
    weight: Tensor,
    bias: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    *,
    is_training: bool,
    epsilon: float,
    momentum: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor] | None:
    """Batch norm in training, the statistics moved by the batch's, and the batch's own."""
    if not is_training:
        return None
    size = x.shape[1]
    channels = x.transpose(0, 1).reshape(size, -1)
    kept = 1 - momentum
    return (
        torch.nn.functional.batch_norm(
            *(x, None, None, weight.reshape(size), bias.reshape(size), True, 0.0, epsilon)
        ),
        running_mean.reshape(size) * kept + momentum * channels.mean(1),
        running_var.reshape(size) * kept + momentum * channels.var(1),
        channels.mean(1),
        channels.var(1, correction=0),
    )


def _batch_norm_backward(
    dy: Tensor, x: Tensor, weight: Tensor, mean: Tensor, rstd: Tensor, epsilon: float
) -> tuple[Tensor, ...]:
    found: tuple[Tensor, ...] = torch.ops.aten.native_batch_norm_backward(
        dy, x, weight, None, None, mean, rstd, True, epsilon, [True, True, True]
    )
    return found


# What it is given is the variance that batch_norm saves.
@documented("batch_norm_grad")
def batch_norm_grad(
    dy: Tensor,
    x: Tensor,
    weight: Tensor,
    running_mean: Tensor,
    running_var: Tensor,
    save_mean: Tensor,
    save_var: Tensor,
    *,
    is_training: bool,
    version: int,
    epsilon: float,
) -> tuple[Tensor, ...] | None:
    """Gradients of batch norm in training by x, weight and bias; statistics are (channels,)."""
    rows = (weight, running_mean, running_var, save_mean, save_var)
    if not is_training or version != 0 or dy.shape != x.shape:
        return None
    if any(row.shape != x.shape[1:2] for row in rows):
        return None
    rstd = torch.rsqrt(save_var + epsilon)
    return _batch_norm_backward(dy, x, weight, save_mean, rstd, epsilon)


@documented("batch_normalization_grad")
def batch_normalization_grad(
    dy: Tensor,
    x: Tensor,
    weight: Tensor,
    _unread: Tensor,
    save_mean: Tensor,
    save_rstd: Tensor,
    *,
    epsilon: float,
) -> tuple[Tensor, ...]:
    """Gradients of batch norm in training by x, weight and bias."""
    return _batch_norm_backward(dy, x, weight, save_mean, save_rstd, epsilon)


@documented("bn_infer_grad")
def bn_infer_grad(
    dy: Tensor, scale: Tensor, variance: Tensor, *, epsilon: float, format_mode: int
) -> Tensor | None:
    """dy * scale / sqrt(variance + epsilon), by channel of (images, channels, rows, columns)."""
    if format_mode != 0 or dy.dim() != 4:
        return None
    factor = scale * torch.rsqrt(variance + epsilon)
    return dy * factor.reshape(dy.shape[1], 1, 1)


@documented("sync_batch_norm_backward_elemt")
def sync_batch_norm_backward_elemt(
    grad_output: Array,
    x: Array,
    mean: Array,
    invstd: Array,
    weight: Array,
    mean_dy: Array,
    mean_dy_xmu: Array,
) -> Array:
    """((dy - mean_dy) - (x - mean) * invstd^2 * mean_dy_xmu) * invstd * weight, of one shape."""
    return ((grad_output - mean_dy) - (x - mean) * invstd**2 * mean_dy_xmu) * invstd * weight


@documented("sync_batch_norm_backward_reduce")
def sync_batch_norm_backward_reduce(
    sum_dy: Array, sum_dy_dx_pad: Array, mean: Array, invstd: Array
) -> tuple[Array, Array]:
    """sum(dy * (x - mean)) = sum(dy * x) - mean * sum(dy), and that times invstd."""
    found = sum_dy_dx_pad - mean * sum_dy
    return found, found * invstd
