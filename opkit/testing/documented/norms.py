"""What layer norm and RMS norm compute, alone, after a sum or modulated, and their gradients.

A normalised axis is the last one, or as many of the last ones as gamma has. `mean`, `rstd` have
1 for each of these; where an operator is given them, they have one number a row in any shape.
Sources: the documents of each operator, formula and parameters.
"""

from __future__ import annotations

from opkit.testing.documented.table import Array, Numbers, Tensor, documented, torch


def axes_of(gamma: Tensor) -> tuple[int, ...]:
    """Return the axes that a tensor of weights is for: as many of the last ones as it has."""
    return tuple(range(-gamma.dim(), 0))


def root_of_mean_square(x: Tensor, gamma: Tensor, epsilon: float) -> Tensor:
    """Return 1 / sqrt(mean(x^2) + epsilon) along gamma's axes."""
    return torch.rsqrt(x.square().mean(axes_of(gamma), True) + epsilon)


def rms_normed(x: Tensor, gamma: Tensor, epsilon: float) -> Tensor:
    """Return x / sqrt(mean(x^2) + epsilon) * gamma."""
    return torch.nn.functional.rms_norm(x, gamma.shape, gamma, epsilon)


def by_row(statistic: Tensor, x: Tensor) -> Tensor:
    """Return one number a row, in whatever shape that has, as it is multiplied by rows of x."""
    return statistic.reshape(*x.shape[:-1], 1)


def by_matrix(rows: Tensor, x: Tensor) -> Tensor:
    """Return a row for each of the axes before the last two, as it is multiplied by x."""
    return rows.reshape(*x.shape[:-2], 1, x.shape[-1])


def summed(x: Tensor, dy: Tensor) -> Tensor:
    """Return sums of all rows."""
    return torch.sum(x.reshape(-1, dy.shape[-1]), 0)


@documented("rms_norm")
def rms_norm(x: Tensor, gamma: Tensor, *, epsilon: float) -> tuple[Tensor, Tensor]:
    """x * rstd * gamma, and rstd = 1 / sqrt(mean(x^2) + epsilon)."""
    return rms_normed(x, gamma, epsilon), root_of_mean_square(x, gamma, epsilon)


@documented("gemma_rms_norm")
def gemma_rms_norm(x: Tensor, gamma: Tensor, *, epsilon: float) -> tuple[Tensor, Tensor]:
    """x * rstd * (1 + gamma), and rstd = 1 / sqrt(mean(x^2) + epsilon)."""
    normed = torch.nn.functional.rms_norm(x, gamma.shape, 1 + gamma, epsilon)
    return normed, root_of_mean_square(x, gamma, epsilon)


@documented("add_rms_norm")
def add_rms_norm(
    x1: Tensor, x2: Tensor, gamma: Tensor, *, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """RMS norm of x1 + x2, its rstd, and the sum."""
    x = x1 + x2
    return rms_normed(x, gamma, epsilon), root_of_mean_square(x, gamma, epsilon), x


@documented("add_rms_norm_cast")
def add_rms_norm_cast(
    x1: Tensor, x2: Tensor, gamma: Tensor, *, epsilon: float
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """RMS norm of x1 + x2 in two data types, its rstd, and the sum."""
    normed, rstd, x = add_rms_norm(x1, x2, gamma, epsilon=epsilon)
    return normed, normed, rstd, x


@documented("fused_add_rms_norm")
def fused_add_rms_norm(
    x1: Tensor, x2: Tensor, gamma: Tensor, *, scale: float, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """RMS norm of x1 * scale + x2, its rstd, and the sum."""
    x = x1 * scale + x2
    return rms_normed(x, gamma, epsilon), root_of_mean_square(x, gamma, epsilon), x


@documented("rms_norm_grad")
def rms_norm_grad(dy: Tensor, x: Tensor, rstd: Tensor, gamma: Tensor) -> tuple[Tensor, Tensor]:
    """Gradients of RMS norm along the last axis by x and gamma; rstd has x's shape without it."""
    root = rstd.unsqueeze(-1).expand(dy.shape)
    scaled = dy * gamma.reshape(dy.shape[-1:])
    to_x = root * (scaled - x * root * torch.mean(scaled * x * root, -1, True))
    return to_x, summed(dy * x * root, dy)


@documented("layer_norm")
def layer_norm(
    x: Tensor,
    *,
    normalized_shape: Numbers,
    gamma: Tensor,
    beta: Tensor,
    epsilon: float,
) -> tuple[Tensor, ...]:
    """(x - mean) * rstd * gamma + beta, mean and rstd."""
    found: tuple[Tensor, ...] = torch.native_layer_norm(x, normalized_shape, gamma, beta, epsilon)
    return found


def layer_norm_gradients(
    dy: Tensor, x: Tensor, mean: Tensor, rstd: Tensor, gamma: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Return gradients of layer norm along the last axis, by x, gamma and beta."""
    root, weight = by_row(rstd, dy), gamma.reshape(dy.shape[-1:])
    normed = (x - by_row(mean, dy)) * root
    return (
        root
        * (
            dy * weight
            - torch.mean(dy * weight, -1, True)
            - normed * torch.mean(dy * weight * normed, -1, True)
        ),
        (dy * normed).reshape(-1, dy.shape[-1]).sum(0),
        dy.reshape(-1, dy.shape[-1]).sum(0),
    )


@documented("layer_norm_grad")
def layer_norm_grad(
    dy: Tensor, x: Tensor, rstd: Tensor, mean: Tensor, gamma: Tensor, *, output_mask: list[bool]
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Gradients of layer norm along the last axis, by x, gamma and beta, if all are wanted."""
    return layer_norm_gradients(dy, x, mean, rstd, gamma) if all(output_mask) else None


@documented("layer_normalization_grad")
def layer_normalization_grad(
    dy: Tensor, x: Tensor, gamma: Tensor, mean: Tensor, rstd: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of layer norm along the last axis, by x, gamma and beta."""
    return layer_norm_gradients(dy, x, mean, rstd, gamma)


@documented("add_layer_norm")
def add_layer_norm(
    x1: Tensor,
    x2: Tensor,
    gamma: Tensor,
    beta: Tensor,
    *,
    epsilon: float,
    additional_output: bool,
) -> tuple[Tensor, Tensor, Tensor, Tensor] | None:
    """Layer norm of x1 + x2, its mean and rstd, and the sum, which is asked for."""
    if not additional_output:
        return None
    x, axes = x1 + x2, axes_of(gamma)
    return (
        torch.nn.functional.layer_norm(x, gamma.shape, gamma, beta, epsilon),
        x.mean(axes, True),
        torch.rsqrt(x.var(axes, correction=0, keepdim=True) + epsilon),
        x,
    )


@documented("add_layer_norm_grad")
def add_layer_norm_grad(
    dy: Tensor, x1: Tensor, x2: Tensor, rstd: Tensor, mean: Tensor, gamma: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """Gradients of layer norm of x1 + x2 along the last axis, by the sum, gamma and beta."""
    return layer_norm_gradients(dy, x1 + x2, mean, rstd, gamma)


def plain_layer_normed(x: Tensor, epsilon: float) -> Tensor:
    """Return layer norm along the last axis without weights."""
    return torch.nn.functional.layer_norm(x, x.shape[-1:], eps=epsilon)


@documented("ada_layer_norm")
def ada_layer_norm_with_statistics(
    x: Tensor, scale: Tensor, shift: Tensor, *, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Layer norm of x * (1 + scale) + shift, its mean and rstd; a row of both for each matrix."""
    return (
        ada_layer_norm(x, scale, shift, epsilon=epsilon),
        x.mean(-1, True),
        torch.rsqrt(x.var(-1, correction=0, keepdim=True) + epsilon),
    )


@documented("ada_layer_norm")
def ada_layer_norm(x: Tensor, scale: Tensor, shift: Tensor, *, epsilon: float) -> Tensor:
    """Layer norm of x * (1 + scale) + shift; a row of both for each matrix."""
    return plain_layer_normed(x, epsilon) * (1 + by_matrix(scale, x)) + by_matrix(shift, x)


@documented("ada_layer_norm_grad")
def ada_layer_norm_grad(
    dy: Tensor,
    x: Tensor,
    rstd: Tensor,
    mean: Tensor,
    scale: Tensor,
    gamma: Tensor,
    beta: Tensor,
) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor] | None:
    """Gradients of modulated layer norm with weights, by x, scale, shift, gamma and beta.

    Args:
        rstd, mean: of x's shape, with 1 for its last axis.
        scale: a row for each matrix.
        gamma, beta: (columns,).
    """
    if x.dim() <= 1 or not rstd.shape == mean.shape == (*x.shape[:-1], 1):
        return None
    factor = 1 + by_matrix(scale, x)
    normed = (x - mean) * rstd
    scaled = dy * gamma * factor
    return (
        rstd
        * (scaled - torch.mean(scaled, -1, True) - normed * torch.mean(scaled * normed, -1, True)),
        torch.sum(dy * (normed * gamma + beta), -2).reshape(scale.shape),
        torch.sum(dy, -2).reshape(scale.shape),
        summed(dy * factor * normed, dy),
        summed(dy * factor, dy),
    )


@documented("deep_norm")
def deep_norm(
    x: Tensor, gx: Tensor, beta: Tensor, gamma: Tensor, *, alpha: float, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """Mean and rstd of x * alpha + gx along the last axis, and its layer norm."""
    whole = x * alpha + gx
    return (
        whole.mean(-1, True),
        torch.rsqrt(whole.var(-1, correction=0, keepdim=True) + epsilon),
        torch.nn.functional.layer_norm(whole, x.shape[-1:], gamma, beta, epsilon),
    )


@documented("deep_norm_grad")
def deep_norm_grad(
    dy: Tensor,
    x: Tensor,
    gx: Tensor,
    gamma: Tensor,
    mean: Tensor,
    rstd: Tensor,
    *,
    alpha: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Gradients of deep norm by x, gx, beta and gamma."""
    part, root = x * alpha + gx - by_row(mean, dy), by_row(rstd, dy)
    scaled = dy * gamma.reshape(dy.shape[-1:]) * root
    to_sum = (
        scaled - torch.mean(scaled, -1, True) - part * torch.mean(scaled * part * root**2, -1, True)
    )
    return alpha * to_sum, to_sum, summed(dy, dy), summed(dy * root * part, dy)


@documented("modulate")
def modulate(x: Array, scale: Array, shift: Array) -> Array:
    """x * (1 + scale) + shift, a row of both for each matrix."""
    return x * (1 + by_matrix(scale, x)) + by_matrix(shift, x)


# By the page of its function; the overview beside it adds 1 to the scale.
@documented("modulate_grad")
def modulate_grad(
    dy: Tensor, x: Tensor, scale: Tensor, shift: Tensor
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Gradients of x * scale + shift by all three, of three axes, a row of both for each matrix."""
    fits = dy.shape == x.shape and x.dim() == 3
    if not fits or not scale.shape == shift.shape == x[..., 0, :].shape:
        return None
    return dy * scale.unsqueeze(-2), torch.sum(dy * x, -2), torch.sum(dy, -2)
