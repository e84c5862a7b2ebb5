"""What a step of an optimiser computes: new weights, and what it keeps for the next step.

Tensors have one shape; rates and powers are inputs of one element, or attributes. Sources: the
documents of each operator, formula and parameters.
"""

from __future__ import annotations

import math

import numpy as np

from opkit.testing.documented.table import Array, Arrays, Number, Tensor, documented, torch


def _adam_moments(grad: Tensor, v: Tensor, m: Tensor, *factors: Tensor) -> tuple[Tensor, Tensor]:
    """Return the second and the first moment, each of two factors."""
    m_kept, m_new, v_kept, v_new = factors
    return grad**2 * v_new + v * v_kept, m * m_kept + grad * m_new


@documented("adam_apply_one")
def adam_apply_one(
    grad: Tensor,
    v: Tensor,
    m: Tensor,
    var: Tensor,
    rate: Tensor,
    m_kept: Tensor,
    m_new: Tensor,
    v_kept: Tensor,
    v_new: Tensor,
    epsilon: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The second moment, the first, and var - m / (sqrt(v) + epsilon) * rate."""
    second, first = _adam_moments(grad, v, m, m_kept, m_new, v_kept, v_new)
    return second, first, var - (first / (torch.sqrt(second) + epsilon)) * rate


@documented("adam_apply_one_with_decay", "adam_apply_one_with_decay_assign")
def adam_apply_one_with_decay(
    grad: Tensor,
    v: Tensor,
    m: Tensor,
    var: Tensor,
    rate: Tensor,
    m_kept: Tensor,
    m_new: Tensor,
    v_kept: Tensor,
    v_new: Tensor,
    decay: Tensor,
    epsilon: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """The second moment, the first, and var - (m / (sqrt(v) + epsilon) + var * decay) * rate."""
    second, first = _adam_moments(grad, v, m, m_kept, m_new, v_kept, v_new)
    step = first / (torch.sqrt(second) + epsilon) + var * decay
    return second, first, var - step * rate


@documented("apply_adagrad")
def apply_adagrad(
    var: Tensor, accum: Tensor, rate: Number, grad: Tensor, *, update_slots: bool
) -> tuple[Tensor, Tensor]:
    """var - rate * grad / sqrt(accum + grad^2), and that sum where slots are updated."""
    whole = accum + grad**2 * update_slots
    return var - rate * grad * torch.rsqrt(whole), whole


@documented("apply_adam")
def apply_adam(
    var: Tensor,
    m: Tensor,
    v: Tensor,
    beta1_power: Number,
    beta2_power: Number,
    rate: Number,
    beta1: Number,
    beta2: Number,
    epsilon: Number,
    grad: Tensor,
    *,
    use_nesterov: bool,
) -> tuple[Tensor, Tensor, Tensor]:
    """A step of Adam: var, and the moments m and v."""
    first = m + (1 - beta1) * (grad - m)
    second = v + (1 - beta2) * (grad**2 - v)
    corrected = rate * math.sqrt(1 - beta2_power) / (1 - beta1_power)
    direction = first * beta1 + (1 - beta1) * grad if use_nesterov else first
    return var - corrected * direction / (epsilon + torch.sqrt(second)), first, second


@documented("apply_fused_ema_adam")
def apply_fused_ema_adam(
    grad: Tensor,
    var: Tensor,
    m: Tensor,
    v: Tensor,
    average: Tensor,
    step: Number,
    *,
    lr: float,
    ema_decay: float,
    beta1: float,
    beta2: float,
    eps: float,
    mode: int,
    bias_correction: bool,
    weight_decay: float,
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """A step of Adam (mode 0) or AdamW (1): var, m, v, and the average of var over steps."""
    whole = grad + weight_decay * var * (mode == 0)
    first = beta1 * m + (1 - beta1) * whole
    second = beta2 * v + (1 - beta2) * whole**2
    direction = first / (1 - beta1**step * bias_correction) / (
        torch.sqrt(second / (1 - beta2**step * bias_correction)) + eps
    ) + weight_decay * var * (mode == 1)
    new = var - lr * direction
    return new, first, second, ema_decay * average + (1 - ema_decay) * new


@documented("apply_gradient_descent")
def apply_gradient_descent(var: Array, alpha: Number, delta: Array) -> Array:
    """var - alpha * delta."""
    return var - alpha * delta


@documented("apply_adam_w")
def apply_adam_w(
    var: Tensor,
    m: Tensor,
    v: Tensor,
    beta1_power: Number,
    beta2_power: Number,
    rate: Number,
    weight_decay: Number,
    beta1: Number,
    beta2: Number,
    epsilon: Number,
    grad: Tensor,
    *,
    amsgrad: bool,
    maximize: bool,
) -> tuple[Tensor, Tensor, Tensor] | None:
    """A step of AdamW: var, and the moments m and v."""
    if amsgrad:
        return None
    whole = grad * (-1 if maximize else 1)
    first = m * beta1 + (1 - beta1) * whole
    second = v * beta2 + (1 - beta2) * whole**2
    step = (
        first
        / (1 - beta1_power * beta1)
        / (torch.sqrt(second / (1 - beta2_power * beta2)) + epsilon)
    )
    return var - rate * (step + weight_decay * var), first, second


@documented("apply_ftrl")
def apply_ftrl(
    var: Array,
    accum: Array,
    linear: Array,
    grad: Array,
    rate: Number,
    l1: Number,
    l2: Number,
    power: Number,
) -> Array:
    """A step of FTRL: var, 0 where the linear part is not above l1."""
    whole = accum + grad**2
    moved = linear + grad - (whole**-power - accum**-power) / rate * var
    quadratic = whole**-power / rate + 2 * l2
    return np.where(np.abs(moved) > l1, (np.sign(moved) * l1 - moved) / quadratic, 0.0)


@documented("fused_sgd")
def fused_sgd(
    params: Arrays,
    grads: Arrays,
    momenta: Arrays,
    grad_scale: Number | None,
    *,
    lr: float,
    momentum: float,
    dampening: float,
    weight_decay: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
) -> tuple[Arrays, ...] | None:
    """A step of SGD with momentum: weights, scaled gradients and momenta of all tensors."""
    if nesterov:
        return None
    scale = 1 if grad_scale is None else grad_scale
    steps = []
    for param, unscaled, before in zip(params, grads, momenta, strict=False):
        grad = unscaled / scale
        whole = (-grad if maximize else grad) + weight_decay * param
        kept = whole if is_first_step else momentum * before + (1 - dampening) * whole
        steps.append((param - lr * kept, grad, kept))
    return tuple(list(one) for one in zip(*steps, strict=True))
