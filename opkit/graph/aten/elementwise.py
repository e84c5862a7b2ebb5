"""Rows of the operators that work element by element."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from opkit.compiler import OPERATORS, Value
from opkit.graph.aten.call import Call, Operand, Refused

__all__ = ["LARGEST_POWER", "ROWS"]

Row = Callable[..., Any]


def _one(name: str, **settings: object) -> Row:
    def row(c: Call, x: Value) -> Value:
        x = _real(c, x)
        return x.apply(name, **settings)

    return row


def _real(c: Call, x: Value) -> Value:
    """Return a tensor in the result's type where that has fractions and its own has none."""
    if "float" in c.dtype and "float" not in x.dtype:
        return x.astype(c.dtype)
    return x


def _two(name: str) -> Row:
    def row(c: Call, a: Operand, b: Operand) -> Value:
        return c.apply(name, c.typed(a), c.typed(b))

    return row


def _scaled(name: str) -> Row:
    def row(c: Call, a: Operand, b: Operand, alpha: float = 1) -> Value:
        b = c.typed(b)
        return c.apply(name, c.typed(a), b if alpha == 1 else b * alpha)

    return row


def _rsub(c: Call, a: Value, b: Operand, alpha: float = 1) -> Value:
    return _scaled("sub")(c, b, a, alpha)  # type: ignore[no-any-return]


def _compare(name: str) -> Row:
    def row(c: Call, a: Value, b: Operand) -> Value:
        return c.apply(name, a, b)

    return row


def _logical(name: str) -> Row:
    def row(c: Call, *operands: Value) -> Value:
        truths = [x if x.dtype == "bool" else x.apply("not_equal", 0) for x in operands]
        return c.apply(name, *truths)

    return row


def _xor(c: Call, a: Value, b: Value) -> Value:
    truths = [x if x.dtype == "bool" else x.apply("not_equal", 0) for x in (a, b)]
    return truths[0].apply("not_equal", truths[1])


def _divide(c: Call, a: Operand, b: Operand, rounding_mode: str | None = None) -> Value:
    if rounding_mode is None:
        return c.apply("div", c.typed(a), c.typed(b))
    a, b = c.typed(a), c.typed(b)
    if "float" not in c.dtype:
        whole = a if rounding_mode == "floor" else c.apply("sub", a, c.apply("fmod", a, b))
        return c.apply("floor_divide", whole, b)
    if rounding_mode == "floor":
        raise Refused(_INEXACT)
    return c.apply("div", a, b).apply("trunc")


_INEXACT = "compiled kernels divide without the remainder's last bits, the device's own with them"


def _remainder(name: str) -> Row:
    def row(c: Call, a: Operand, b: Operand) -> Value:
        if "float" in c.dtype:
            raise Refused(_INEXACT)
        return c.apply(name, c.typed(a), c.typed(b))

    return row


def _power(c: Call, a: Operand, b: Operand) -> Value:
    a = c.typed(a)
    if isinstance(b, int | float) and isinstance(a, Value):
        known: Mapping[float, Callable[[Value], Value]] = {
            1: lambda x: x,
            2: lambda x: x * x,
            3: lambda x: x * x * x,
            4: lambda x: x.apply("square").apply("square"),
            0.5: lambda x: x.apply("sqrt"),
            -0.5: lambda x: x.apply("rsqrt"),
            -1: lambda x: x.apply("reciprocal"),
            -2: lambda x: (x * x).apply("reciprocal"),
        }
        if b in known:
            return known[b](a)
        if 0 < b <= LARGEST_POWER and b * 2 == int(b * 2):
            return c.apply("pow", a, c.typed(b))
    if "float" in c.dtype:
        raise Refused("exp(y * log(x)) loses digits of powers; the device's own kernel does not")
    return c.apply("pow", a, c.typed(b))


def _exp2(c: Call, x: Value) -> Value:
    return _power(c, 2.0, x)


LARGEST_POWER = 8
"""Up to which powers are products, of an error below 4 units in the last place."""


def _where(c: Call, condition: Value, a: Operand, b: Operand) -> Value:
    truth = condition if condition.dtype == "bool" else condition.apply("not_equal", 0)
    return c.apply("where", truth, c.typed(a), c.typed(b))


def _masked(c: Call, x: Value, mask: Value, value: Operand) -> Value:
    return c.apply("where", mask, c.typed(value), x)


def _clamp(c: Call, x: Value, low: Operand | None = None, high: Operand | None = None) -> Value:
    x = c.typed(x)  # type: ignore[assignment]
    if low is not None:
        x = c.apply("maximum", x, c.typed(low))
    return x if high is None else c.apply("minimum", x, c.typed(high))


def _gelu(c: Call, x: Value, approximate: str = "none") -> Value:
    return x.apply("gelu", approximate=approximate)


def _gelu_backward(c: Call, grad: Value, x: Value, approximate: str = "none") -> Value:
    return _slope("gelu", x, approximate=approximate) * grad


def _mish_backward(c: Call, grad: Value, x: Value) -> Value:
    share = x.apply("tanh_softplus")
    return grad * (share + x * _slope("tanh_softplus", x))


def _slope(name: str, x: Value, **settings: object) -> Value:
    """Return the derivative of an operator of the compiler."""
    gradient = OPERATORS[name].gradient
    assert gradient is not None
    (slope,) = gradient(x.builder.constant(1.0, x.dtype), x, x.apply(name, **settings), **settings)
    assert slope is not None
    return slope


def _sign(c: Call, x: Value) -> Value:
    sign = x.apply("sign")
    # As PyTorch's, and not as NumPy's: what is no number has none.
    return x.apply("equal", x).apply("where", sign, 0.0) if "float" in x.dtype else sign


def _elu(
    c: Call, x: Value, alpha: float = 1.0, scale: float = 1.0, input_scale: float = 1.0
) -> Value:
    scaled = x if input_scale == 1 else x * float(input_scale)
    below = scaled.apply("expm1") * float(alpha)
    value = x.apply("greater", 0.0).apply("where", x, below)
    return value if scale == 1 else value * float(scale)


def _softplus(c: Call, x: Value, beta: float = 1, threshold: float = 20) -> Value:
    scaled = x if beta == 1 else x * float(beta)
    smooth = scaled.apply("softplus")
    smooth = smooth if beta == 1 else smooth * (1.0 / float(beta))
    return scaled.apply("greater", float(threshold)).apply("where", x, smooth)


def _cast(c: Call, x: Value, *_: Any, **__: Any) -> Value:
    if c.dtype == "bool" and x.dtype != "bool":
        return x.apply("not_equal", 0)
    return x.astype(c.dtype)


def _threshold(c: Call, grad: Value, x: Value, threshold: float) -> Value:
    return x.apply("greater", float(threshold)).apply("where", grad, 0.0)


def _not_a_number(c: Call, x: Value) -> Value:
    return x.apply("not_equal", x)


def _infinite(c: Call, x: Value) -> Value:
    return x.apply("abs").apply("equal", math.inf)


def _hardtanh(c: Call, x: Value, low: float = -1.0, high: float = 1.0) -> Value:
    return x.apply("clamp", low=float(low), high=float(high))


def _addcmul(c: Call, x: Value, a: Value, b: Value, value: float = 1) -> Value:
    return x + (a * b if value == 1 else a * b * float(value))


def _addcdiv(c: Call, x: Value, a: Value, b: Value, value: float = 1) -> Value:
    return x + (a / b if value == 1 else a / b * float(value))


_ONE = {
    **{name: name for name in ("abs", "neg", "exp", "log", "sqrt", "rsqrt", "reciprocal")},
    **{name: name for name in ("sigmoid", "tanh", "erf", "erfc", "sin", "cos", "tan", "atan")},
    **{name: name for name in ("floor", "ceil", "round", "trunc", "relu", "silu")},
    **{name: name for name in ("log1p", "expm1", "log2", "log10", "hardswish")},
    **{name: name for name in ("hardsigmoid", "mish", "square", "bitwise_not")},
}
_SCALARS = ("Tensor", "Scalar")

ROWS: Mapping[str, Row] = {
    **{f"aten.{aten}.default": _one(name) for aten, name in _ONE.items()},
    "aten.exp2.default": _exp2,
    "prims.neg.default": _one("neg"),
    "prims.exp.default": _one("exp"),
    **{f"aten.add.{kind}": _scaled("add") for kind in _SCALARS},
    **{f"aten.sub.{kind}": _scaled("sub") for kind in _SCALARS},
    **{f"aten.rsub.{kind}": _rsub for kind in _SCALARS},
    **{f"aten.mul.{kind}": _two("mul") for kind in _SCALARS},
    **{f"aten.div.{kind}": _divide for kind in (*_SCALARS, "Tensor_mode", "Scalar_mode")},
    **{f"aten.pow.{kind}": _power for kind in ("Tensor_Scalar", "Tensor_Tensor", "Scalar")},
    **{f"aten.fmod.{kind}": _remainder("fmod") for kind in _SCALARS},
    **{f"aten.remainder.{kind}": _remainder("mod") for kind in _SCALARS},
    "aten.atan2.default": _two("atan2"),
    "aten.maximum.default": _two("maximum"),
    "aten.minimum.default": _two("minimum"),
    **{
        f"aten.{aten}.{kind}": _compare(name)
        for aten, name in (
            ("eq", "equal"),
            ("ne", "not_equal"),
            ("lt", "less"),
            ("le", "less_equal"),
            ("gt", "greater"),
            ("ge", "greater_equal"),
        )
        for kind in _SCALARS
    },
    "aten.logical_and.default": _logical("logical_and"),
    "aten.logical_or.default": _logical("logical_or"),
    "aten.logical_not.default": _logical("logical_not"),
    "aten.logical_xor.default": _xor,
    **{
        f"aten.bitwise_{name}.{kind}": _two(f"bitwise_{name}")
        for name in ("and", "or", "xor")
        for kind in _SCALARS
    },
    **{f"aten.where.{kind}": _where for kind in ("self", "ScalarOther", "ScalarSelf", "Scalar")},
    **{f"aten.masked_fill.{kind}": _masked for kind in _SCALARS},
    **{f"aten.clamp.{kind}": _clamp for kind in ("default", "Tensor")},
    **{f"aten.clamp_min.{kind}": _clamp for kind in ("default", "Tensor")},
    **{
        f"aten.clamp_max.{kind}": (lambda c, x, high: _clamp(c, x, None, high))
        for kind in ("default", "Tensor")
    },
    "aten.hardtanh.default": _hardtanh,
    "aten.leaky_relu.default": lambda c, x, slope=0.01: x.apply("leaky_relu", slope=float(slope)),
    "aten.gelu.default": _gelu,
    "aten.gelu_backward.default": _gelu_backward,
    "aten.mish_backward.default": _mish_backward,
    "aten.sign.default": _sign,
    "aten.sgn.default": _sign,
    "aten.elu.default": _elu,
    "aten.softplus.default": _softplus,
    "aten.threshold_backward.default": _threshold,
    "aten.addcmul.default": _addcmul,
    "aten.addcdiv.default": _addcdiv,
    "aten.isnan.default": _not_a_number,
    "aten.isinf.default": _infinite,
    "aten._to_copy.default": _cast,
    "prims.convert_element_type.default": _cast,
}
