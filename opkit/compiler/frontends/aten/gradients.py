"""Rows of the operators that PyTorch's gradients of functions are made of."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ...ir import Operand, Value
from ...ops import OPERATORS
from .call import AtenCall as Call
from .numbers import real, times

__all__ = ["ROWS"]


def _pulled(name: str) -> Callable[..., Any]:
    """Return the row of an operator whose gradient is the compiler's: of what PyTorch keeps, its
    input or its result, and with the operator's settings behind that."""
    row = OPERATORS[name]
    assert row.gradient is not None
    gradient, parameters = row.gradient, dict(row.parameters)

    def pulled(c: Call, grad: Value, x: Value, *given: Any, **named: Any) -> Any:
        settings = {**parameters, **dict(zip(parameters, given, strict=False)), **named}
        return gradient(grad, x, x, **settings)[0]

    return pulled


def _log_sigmoid(c: Call, grad: Value, x: Value, *kept: Value) -> Value:
    # exp(x) of sigmoid(-x) would be infinite where the slope still is a number.
    z = (-x.apply("abs")).apply("exp")
    return grad * x.apply("greater", 0.0).apply("where", z, 1.0) / (z + 1.0)


def _mish(c: Call, grad: Value, x: Value) -> Value:
    slope: Value = _pulled("tanh_softplus")(c, x, x)
    return grad * (x.apply("tanh_softplus") + slope)


def _silu(c: Call, grad: Value, x: Value) -> Value:
    share = x.apply("sigmoid")
    return grad * (share * (x * (1.0 - share) + 1.0))


def _threshold(c: Call, grad: Value, x: Value, threshold: Operand) -> Value:
    return x.apply("less_equal", real(threshold)).apply("where", 0.0, grad)


def _hardtanh(c: Call, grad: Value, x: Value, low: Operand, high: Operand) -> Value:
    inner = x.apply("greater_equal", real(high)).apply("where", 0.0, grad)
    return x.apply("less_equal", real(low)).apply("where", 0.0, inner)


def _hardswish(c: Call, grad: Value, x: Value) -> Value:
    # Twice x first: next to -1.5 the sum then loses nothing.
    slope = (x * 2.0 + 3.0) / 6.0
    inner = x.apply("greater_equal", 3.0).apply("where", grad, grad * slope)
    return x.apply("less_equal", -3.0).apply("where", 0.0, inner)


def _hardsigmoid(c: Call, grad: Value, x: Value) -> Value:
    is_inner = x.apply("greater", -3.0).apply("logical_and", x.apply("less", 3.0))
    return is_inner.apply("where", grad / 6.0, 0.0)


def _softplus(c: Call, grad: Value, x: Value, beta: Operand, threshold: Operand) -> Value:
    scaled = times(x, beta)
    growth = scaled.apply("minimum", real(threshold)).apply("exp")
    share = grad * growth / (growth + 1.0)
    return scaled.apply("greater", real(threshold)).apply("where", grad, share)


def _elu(
    c: Call,
    grad: Value,
    alpha: Operand,
    scale: Operand,
    input_scale: Operand,
    is_result: Operand,
    x: Value,
) -> Value:
    """`x` is the function's result where `is_result`, else what it was given."""
    factor = real(alpha) * real(scale)
    of_result, of_input = x + factor, times(times(x, input_scale).apply("exp"), factor)
    if isinstance(is_result, Value):
        slope = is_result.apply("where", of_result, of_input)
    else:
        slope = of_result if is_result else of_input
    below = times(grad, input_scale) * slope
    return x.apply("greater", 0.0).apply("where", times(grad, scale), below)


ROWS: Mapping[str, Callable[..., Any]] = {
    f"aten.{name}_backward.default": row
    for name, row in (
        ("gelu", _pulled("gelu")),
        ("log_sigmoid", _log_sigmoid),
        ("mish", _mish),
        ("silu", _silu),
        ("sigmoid", _pulled("sigmoid")),
        ("tanh", _pulled("tanh")),
        ("threshold", _threshold),
        ("leaky_relu", _pulled("leaky_relu")),
        ("hardtanh", _hardtanh),
        ("hardswish", _hardswish),
        ("hardsigmoid", _hardsigmoid),
        ("softplus", _softplus),
        ("elu", _elu),
    )
}
