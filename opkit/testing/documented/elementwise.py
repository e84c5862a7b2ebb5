"""What element-wise operators compute that no function of torch's computes by their name.

Shapes: one shape, or shapes that broadcast. Sources: the documents of each operator, formula and
parameters.
"""

from __future__ import annotations

import math

from opkit.testing.documented.table import (
    Array,
    Arrays,
    Number,
    Tensor,
    Tensors,
    Whole,
    documented,
    torch,
)

SELU_SCALE = 1.0507009873554805
SELU_SCALED_ALPHA = 1.7580993408473766


@documented("accumulate_n", "add_n")
def sum_of_tensors(x: Arrays) -> Array:
    """x[0] + x[1] + ..."""
    return sum(x)


@documented("acos_grad")
def acos_grad(dy: Tensor, x: Tensor) -> Tensor:
    """-dy / sqrt(1 - x^2)."""
    return -dy * torch.rsqrt(1 - x**2)


@documented("acosh_grad")
def acosh_grad(dy: Tensor, y: Tensor) -> Tensor:
    """dy / sinh(y)."""
    return dy / torch.sinh(y)


@documented("add_mat_mat_elements", "add_mat_mat_elements_plus")
def add_mat_mat_elements(c: Array, a: Array, b: Array, beta: Number, alpha: Number) -> Array:
    """c * beta + alpha * a * b."""
    return c * beta + alpha * a * b


@documented("addcdiv")
def addcdiv(x: Array, x1: Array, x2: Array, value: Array) -> Array:
    """x + value * x1 / x2."""
    return x + value * x1 / x2


@documented("addcmul")
def addcmul(x: Array, x1: Array, x2: Array, value: Array) -> Array:
    """x + value * x1 * x2."""
    return x + value * x1 * x2


@documented("adds")
def adds(x: Array, *, value: float) -> Array:
    """x + value."""
    return x + value


@documented("amp_update_scale")
def amp_update_scale(
    scale: Tensor,
    tracker: Tensor,
    found_inf: Tensor,
    *,
    backoff_factor: float,
    growth_factor: float,
    growth_interval: int,
) -> tuple[Tensor, Tensor]:
    """The scale of a loss, backed off after an infinity and grown after enough steps without one.

    Each input has one element. Gives the scale, and the count of steps.
    """
    grows = tracker + 1 == growth_interval and torch.isfinite(scale * growth_factor)
    if found_inf != 0:
        return scale * backoff_factor, tracker * 0
    return (scale * growth_factor, tracker * 0) if grows else (scale, tracker + 1)


@documented("asin_grad")
def asin_grad(dy: Tensor, x: Tensor) -> Tensor:
    """dy / sqrt(1 - x^2)."""
    return dy * torch.rsqrt(1 - x**2)


@documented("asinh_grad")
def asinh_grad(dy: Tensor, y: Tensor) -> Tensor:
    """dy / cosh(y)."""
    return dy / torch.cosh(y)


@documented("assign_add", "bias_add")
def plain_sum(x: Array, other: Array) -> Array:
    """x + other."""
    return x + other


@documented("assign_sub")
def assign_sub(x: Array, other: Array) -> Array:
    """x - other."""
    return x - other


@documented("axpy")
def axpy(x1: Array, x2: Array, alpha: Array) -> Array:
    """x1 + alpha * x2."""
    return x1 + alpha * x2


@documented("axpy")
def axpy_by_attribute(x1: Array, x2: Array, *, alpha: Array) -> Array:
    """x1 + alpha * x2, alpha an attribute."""
    return x1 + alpha * x2


@documented("axpy")
def axpy_of_first(x: Array, y: Array, *, a: Array) -> Array:
    """a * x + y."""
    return a * x + y


# Whole numbers are what is left of a fraction's point.
@documented("cast")
def cast(x: Tensor, *, dst_type: int) -> Tensor:
    """x as a float, as whether it is not 0, or without its fraction.

    `dst_type` is a number of ge::DataType: 0, 1, 11 and 27 are floats, 12 is bool.
    """
    if dst_type in (0, 1, 11, 27):
        return torch.clone(x).double()
    return x != 0 if dst_type == 12 else x.long()


@documented("clip_by_value")
def clip_by_value(x: Tensor, low: Number, high: Number) -> Tensor:
    """min(max(x, low), high)."""
    return torch.clamp(x, low, high)


@documented("div")
def div_by_mode(x1: Tensor, x2: Tensor, *, mode: int) -> Tensor:
    """x1 / x2, its fraction kept (mode 0), cut off (1) or rounded down (2)."""
    return torch.div(x1, x2, rounding_mode=(None, "trunc", "floor")[mode])


@documented("div")
def div(x1: Tensor, x2: Tensor) -> Tensor:
    """x1 / x2, of whole numbers without its fraction."""
    return torch.div(x1, x2, rounding_mode=None if x1.is_floating_point() else "trunc")


@documented("div_no_nan")
def div_no_nan(x1: Tensor, x2: Tensor) -> Tensor:
    """x1 / x2, and 0 where x2 is 0."""
    return torch.where(x2 == 0, 0.0, x1 / x2)


@documented("elu_grad")
def elu_grad(dy: Tensor, *, activations: Tensor) -> Tensor:
    """dy * (activations + 1 where they are not above 0, else 1)."""
    return dy * torch.where(activations > 0, 1.0, activations + 1.0)


def _scale_of_base(base: float) -> float:
    return math.log(base) if base > 0 else 1.0


@documented("exp")
def exp_of_base(x: Tensor, *, base: float, scale: float, shift: float) -> Tensor:
    """base^(scale * x + shift), of e where the base is not above 0."""
    return torch.exp((scale * x + shift) * _scale_of_base(base))


@documented("foreach_copy")
def foreach_copy(x: Tensors) -> Tensors:
    """Each tensor of x."""
    return [torch.clone(tensor) for tensor in x]


@documented("foreach_pow_scalar_and_tensor", exponents=("exponent",))
def foreach_pow_scalar_and_tensor(base: Number, exponent: Tensors) -> Tensors:
    """base^exponent, of each tensor of exponents."""
    return torch._foreach_pow(base, exponent)  # type: ignore[no-any-return]


@documented("foreach_round_off_number")
def foreach_round_off_number(x: Tensors, mode: Number) -> Tensors | None:
    """Each tensor of x, rounded to the nearest whole numbers (mode 1)."""
    return [torch.round(tensor) for tensor in x] if mode == 1 else None


@documented("fused_mul_add_n")
def fused_mul_add_n(x1: Array, x2: Array, x3: Number) -> Array:
    """x1 * x3 + x2."""
    return x1 * x3 + x2


@documented("gelu")
def gelu(x: Tensor) -> Tensor:
    """0.5 * x * (1 + tanh(sqrt(2 / pi) * (x + 0.044715 * x^3)))."""
    return torch.nn.functional.gelu(x, approximate="tanh")


@documented("gelu_grad")
def gelu_grad(dy: Tensor, x: Tensor) -> Tensor:
    """The gradient of GELU by tanh."""
    return torch.ops.aten.gelu_backward(dy, x, approximate="tanh")


# Unlike torch's, at a bound it is not clipped. What it gave is where what it was given is.
@documented("hardtanh_grad")
def hardtanh_grad(dy: Tensor, x: Tensor, *, max_val: float, min_val: float) -> Tensor:
    """dy where min_val <= x <= max_val, else 0."""
    return torch.where((x > max_val) | (x < min_val), 0.0, dy)


@documented("inv_grad", "reciprocal_grad")
def reciprocal_grad(dy: Array, y: Array) -> Array:
    """-dy * y^2."""
    return -dy * y**2


@documented("log")
def log_of_base(x: Tensor, *, base: float, scale: float, shift: float) -> Tensor:
    """log(scale * x + shift) to the base, to e where that is not above 0."""
    return torch.log(scale * x + shift) / _scale_of_base(base)


@documented("masked_fill")
def masked_fill(x: Tensor, mask: Whole, value: Number) -> Tensor:
    """The value where the mask is set, else x."""
    return torch.where(mask.bool(), value, x)


@documented("masked_scale")
def masked_scale(x: Array, mask: Array, *, scale: float) -> Array:
    """x * mask * scale."""
    return x * mask * scale


@documented("masked_scale")
def masked_scale_by_value(x: Array, mask: Array, *, value: float) -> Array:
    """x * mask * value."""
    return x * mask * value


@documented("mul_addn")
def mul_addn(x1: Arrays, x2: Arrays) -> Array:
    """x1[0] * x2[0] + x1[1] * x2[1] + ..."""
    return sum(a * b for a, b in zip(x1, x2, strict=False))


@documented("mul_no_nan")
def mul_no_nan(x1: Tensor, x2: Tensor) -> Tensor:
    """x1 * x2, and 0 where x2 is 0."""
    return torch.where(x2 == 0, 0.0, x1 * x2)


@documented("muls")
def muls(x: Array, *, value: float) -> Array:
    """x * value."""
    return x * value


@documented("non_finite_check")
def non_finite_check(x: Tensors) -> Tensor:
    """1 where an element of any tensor is infinite or NaN, else 0; one float."""
    return torch.tensor([float(not all(torch.isfinite(tensor).all() for tensor in x))])


@documented("real")
def real(x: Tensor) -> Tensor:
    """The real part of x."""
    return torch.real(x)


@documented("relu_grad")
def relu_grad(dy: Array, features: Array) -> Array:
    """dy where features are above 0, else 0."""
    return dy * (features > 0)


# The documents of this version say which of two is the gradient.
@documented("relu_grad_v3")
def relu_grad_v3(features: Array, gradients: Array) -> Array:
    """Gradients where features are above 0, else 0."""
    return gradients * (features > 0)


@documented("rsqrt_grad")
def rsqrt_grad(dy: Array, y: Array) -> Array:
    """-0.5 * dy * y^3."""
    return -0.5 * dy * y**3


@documented("select")
def select(condition: Whole, x1: Tensor, x2: Tensor) -> Tensor:
    """x1 where the condition is set, else x2."""
    return torch.where(condition.bool(), x1, x2)


@documented("select")
def select_by_last(x1: Tensor, x2: Tensor, condition: Whole) -> Tensor:
    """x1 where the condition is set, else x2."""
    return torch.where(condition.bool(), x1, x2)


@documented("selu_grad")
def selu_grad(dy: Tensor, *, outputs: Tensor) -> Tensor:
    """dy * (outputs + scale * alpha where they are below 0, else scale), of SELU's two numbers."""
    return dy * torch.where(outputs < 0, outputs + SELU_SCALED_ALPHA, SELU_SCALE)


@documented("sqrt_grad")
def sqrt_grad(dy: Array, y: Array) -> Array:
    """dy * 0.5 / y."""
    return dy * 0.5 / y


@documented("squared_relu")
def squared_relu(x: Tensor) -> Tensor:
    """max(x, 0)^2."""
    return torch.relu(x) ** 2


@documented("swish")
def swish(x: Tensor, *, scale: float) -> Tensor:
    """x * sigmoid(scale * x)."""
    return x * torch.sigmoid(scale * x)


@documented("swish_grad")
def swish_grad_sconf(dy: Tensor, x: Tensor, *, sconf: float) -> Tensor:
    """dy * sigmoid(sconf * x) * (1 + sconf * x * sigmoid(-sconf * x))."""
    return swish_grad(dy, x, scale=sconf)


@documented("swish_grad")
def swish_grad(dy: Tensor, x: Tensor, *, scale: float) -> Tensor:
    """dy * sigmoid(scale * x) * (1 + scale * x * sigmoid(-scale * x))."""
    return dy * torch.sigmoid(scale * x) * (1 + scale * x * torch.sigmoid(-scale * x))


@documented("truncate_div")
def truncate_div(x1: Tensor, x2: Tensor) -> Tensor:
    """x1 / x2 without its fraction."""
    return torch.div(x1, x2, rounding_mode="trunc")
