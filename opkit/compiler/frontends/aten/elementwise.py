"""Rows of the operators that work element by element.

A number of the operator's may be a value too: the device's formulas take it with each call.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

from ...ir import Operand, Value
from . import gamma, gradients
from .call import AtenCall as Call
from .call import Refused
from .numbers import is_number, real, times

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
    def row(c: Call, a: Operand, b: Operand, alpha: Operand = 1) -> Value:
        b = c.typed(b)
        return c.apply(name, c.typed(a), b if is_number(alpha, 1) else b * alpha)

    return row


def _rsub(c: Call, a: Value, b: Operand, alpha: Operand = 1) -> Value:
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
        return _floor_quotient(c, a, b)
    return c.apply("div", a, b).apply("trunc")


def _floor_divide(c: Call, a: Operand, b: Operand) -> Value:
    return _divide(c, a, b, "floor")


def _floor_quotient(c: Call, a: Operand, b: Operand) -> Value:
    """Return the quotient of fractions rounded down: of what is left without the remainder, which
    is a whole number but for rounding."""
    rest = _exact_remainder(c, a, b)
    quotient = c.apply("div", c.apply("sub", a, rest), b)
    quotient = _is_turned(c, rest, b).apply("where", quotient - 1.0, quotient)
    below = quotient.apply("floor")
    is_next = (quotient - below).apply("greater", 0.5)
    below = is_next.apply("where", below + 1.0, below)
    whole = c.apply("div", a, b)
    below = below.apply("equal", 0.0).apply("where", whole * 0.0, below)  # a zero of its sign
    return c.apply("equal", b, 0.0).apply("where", whole, below)


def _exact_remainder(c: Call, a: Operand, b: Operand) -> Value:
    if "fmod" not in c.exact:
        raise Refused(_INEXACT)
    return c.apply("fmod", a, b)


_INEXACT = "compiled kernels divide without the remainder's last bits, the device's own with them"


def _is_turned(c: Call, rest: Value, divisor: Operand) -> Value:
    """Whether a remainder has the sign that the divisor has not."""
    other = c.apply("less", divisor, 0.0).apply("not_equal", rest.apply("less", 0.0))
    return rest.apply("not_equal", 0.0).apply("logical_and", other)


def _fmod(c: Call, a: Operand, b: Operand) -> Value:
    a, b = c.typed(a), c.typed(b)
    return _exact_remainder(c, a, b) if "float" in c.dtype else c.apply("fmod", a, b)


def _remainder(c: Call, a: Operand, b: Operand) -> Value:
    a, b = c.typed(a), c.typed(b)
    if "float" not in c.dtype:
        return c.apply("mod", a, b)
    rest = _exact_remainder(c, a, b)
    return _is_turned(c, rest, b).apply("where", c.apply("add", rest, b), rest)


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
    if "float" not in c.dtype:
        return c.apply("pow", a, c.typed(b))
    if "pow" not in c.exact:
        raise Refused(_LOST)
    return _any_power(c, a, c.typed(b))


_LOST = "exp(y * log(x)) loses digits of powers; the device's own kernel does not"


def _any_power(c: Call, base: Operand, exponent: Operand) -> Value:
    """Return a power of any base, made of powers of sizes that are neither 0 nor infinite."""
    size = c.apply("abs", base)
    is_none = size.apply("equal", 0.0)
    is_infinite = size.apply("equal", math.inf)
    is_whole = c.apply("trunc", exponent).apply("equal", exponent)
    half = c.apply("mul", exponent, 0.5)
    is_even = half.apply("trunc").apply("equal", half)
    is_small = is_none.apply("not_equal", c.apply("less", exponent, 0.0))
    end = is_small.apply("where", 0.0, math.inf)
    power = c.apply("pow", size, exponent)
    value = is_none.apply("logical_or", is_infinite).apply("where", end, power)
    odd = is_even.apply("where", value, is_whole.apply("where", -value, value))
    value = c.apply("signbit", base).apply("where", odd, value)
    is_lost = c.apply("less", base, 0.0).apply("logical_and", size.apply("not_equal", math.inf))
    is_lost = is_lost.apply("logical_and", is_whole.apply("logical_not"))
    value = is_lost.apply("where", math.nan, value)
    value = c.apply("where", c.apply("equal", exponent, exponent), value, exponent)
    value = c.apply("where", c.apply("equal", base, base), value, base)
    value = c.apply("where", c.apply("equal", base, 1.0), 1.0, value)
    return c.apply("where", c.apply("equal", exponent, 0.0), 1.0, value)


def _exp2(c: Call, x: Value) -> Value:
    if "pow" not in c.exact:
        raise Refused(_LOST)
    return c.apply("pow", 2.0, x)


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


def _sign(c: Call, x: Value) -> Value:
    sign = x.apply("sign")
    # As PyTorch's, and not as NumPy's: what is no number has none, nor has a zero.
    if "float" not in x.dtype:
        return sign
    has_one = x.apply("less", 0.0).apply("logical_or", x.apply("greater", 0.0))
    return has_one.apply("where", sign, 0.0)


def _elu(
    c: Call, x: Value, alpha: Operand = 1.0, scale: Operand = 1.0, input_scale: Operand = 1.0
) -> Value:
    below = times(times(x, input_scale).apply("expm1"), real(alpha) * real(scale))
    return x.apply("greater", 0.0).apply("where", times(x, scale), below)


def _softplus(c: Call, x: Value, beta: Operand = 1, threshold: Operand = 20) -> Value:
    scaled = times(x, beta)
    smooth = scaled.apply("softplus")
    smooth = smooth if is_number(beta, 1) else smooth / real(beta)
    return scaled.apply("greater", real(threshold)).apply("where", x, smooth)


def _leaky_relu(c: Call, x: Value, slope: Operand = 0.01) -> Value:
    return x.apply("greater", 0.0).apply("where", x, x * real(slope))


def _cast(c: Call, x: Value, *_: Any, **__: Any) -> Value:
    if c.dtype == "bool" and x.dtype != "bool":
        return x.apply("not_equal", 0)
    return x.astype(c.dtype)


def _threshold(c: Call, x: Value, threshold: Operand, value: Operand) -> Value:
    return x.apply("less_equal", real(threshold)).apply("where", real(value), x)


def _not_a_number(c: Call, x: Value) -> Value:
    return x.apply("not_equal", x)


def _infinite(c: Call, x: Value) -> Value:
    # Of whole numbers none is: infinity alone is a number that times 0 is none.
    return x.apply("equal", x).apply("logical_and", (x * 0.0).apply("not_equal", 0.0))


def _infinite_above(c: Call, x: Value) -> Value:
    return x.apply("greater", 0.0).apply("logical_and", _infinite(c, x))


def _infinite_below(c: Call, x: Value) -> Value:
    return x.apply("less", 0.0).apply("logical_and", _infinite(c, x))


def _hardtanh(c: Call, x: Value, low: Operand = -1.0, high: Operand = 1.0) -> Value:
    return _clamp(c, x, real(low), real(high))


def _addcmul(c: Call, x: Value, a: Value, b: Value, value: Operand = 1) -> Value:
    return x + times(a * b, value)


def _addcdiv(c: Call, x: Value, a: Value, b: Value, value: Operand = 1) -> Value:
    return x + times(a / b, value)


def _other_where_none(name: str) -> Row:
    """Return one of two numbers; where one is NaN, the other."""

    def row(c: Call, a: Operand, b: Operand) -> Value:
        a, b = c.typed(a), c.typed(b)
        value = c.apply(name, a, b)
        if "float" not in value.dtype:
            return value
        value = c.apply("where", c.apply("equal", b, b), value, a)
        return c.apply("where", c.apply("equal", a, a), value, b)

    return row


def _angle(c: Call, x: Value) -> Value:
    x = _real(c, x)
    half_turn = x.apply("less", 0.0).apply("where", math.pi, 0.0)
    return x.apply("equal", x).apply("where", half_turn, x)


def _hypot(c: Call, a: Value, b: Value) -> Value:
    a, b = (c.apply("abs", c.typed(each)) for each in (a, b))
    low, high = a.apply("minimum", b), a.apply("maximum", b)
    share = low / high
    size = high * (share * share + 1.0).apply("sqrt")
    # Nothing is divided by 0, and infinity is infinite beside what is no number, too.
    size = high.apply("equal", 0.0).apply("where", high, size)
    is_infinite = a.apply("equal", math.inf).apply("logical_or", b.apply("equal", math.inf))
    return is_infinite.apply("where", math.inf, size)


def _exponential(c: Call, x: Value) -> Value:
    return x.apply("exp")


def _power_of_two(c: Call, x: Value) -> Value:
    return c.apply("pow", 2.0, x) if "pow" in c.exact else x.apply("exp2")


def _logaddexp(power: Callable[[Call, Value], Value], unit: float) -> Row:
    """Row of the logarithm of a sum of powers; `unit` is log(2) to their base."""

    def row(c: Call, a: Value, b: Value) -> Value:
        a, b = c.typed(a), c.typed(b)  # type: ignore[assignment]
        rest = power(c, -(a - b).apply("abs")).apply("log_one_plus")
        more = times(rest, unit / math.log(2.0))
        # Equal infinities have no difference.
        return a.apply("equal", b).apply("where", a + unit, a.apply("maximum", b) + more)

    return row


def _xlogy(c: Call, x: Operand, y: Operand) -> Value:
    x, y = c.typed(x), c.typed(y)
    value = c.apply("mul", x, c.apply("log", y))
    value = c.apply("where", c.apply("equal", x, 0.0), 0.0, value)
    return c.apply("where", c.apply("equal", y, y), value, y)


def _entropy(c: Call, x: Value) -> Value:
    x = _real(c, x)
    beside = x.apply("equal", 0.0).apply("where", 0.0, -math.inf)
    value = x.apply("greater", 0.0).apply("where", -x * x.apply("log"), beside)
    return x.apply("equal", x).apply("where", value, x)


def _sinc(c: Call, x: Value) -> Value:
    turned = _real(c, x) * math.pi
    return x.apply("equal", 0.0).apply("where", 1.0, turned.apply("sin") / turned)


def _heaviside(c: Call, x: Value, values: Value) -> Value:
    return x.apply("equal", 0).apply("where", values, x.apply("greater", 0).astype(values.dtype))


def _copysign(c: Call, x: Value, sign: Operand) -> Value:
    size = c.apply("abs", c.typed(x))
    return c.apply("signbit", sign).apply("where", -size, size)


def _frac(c: Call, x: Value) -> Value:
    return x - x.apply("trunc")


def _lerp(c: Call, start: Value, end: Value, weight: Operand) -> Value:
    way = end - start
    near = start + c.apply("mul", way, weight)
    far = end - c.apply("mul", way, c.apply("sub", 1.0, weight))
    return c.apply("abs", weight).apply("less", 0.5).apply("where", near, far)


_ONE = {
    **{name: name for name in ("abs", "neg", "exp", "log", "sqrt", "rsqrt", "reciprocal")},
    **{name: name for name in ("sigmoid", "tanh", "erf", "erfc", "sin", "cos", "tan", "atan")},
    **{name: name for name in ("asin", "acos", "sinh", "cosh", "asinh", "acosh", "atanh")},
    **{name: name for name in ("floor", "ceil", "round", "trunc", "relu", "silu")},
    **{name: name for name in ("log1p", "expm1", "log2", "log10", "log_sigmoid", "hardswish")},
    **{name: name for name in ("hardsigmoid", "mish", "square", "bitwise_not", "signbit")},
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
    **{f"aten.fmod.{kind}": _fmod for kind in _SCALARS},
    **{f"aten.remainder.{kind}": _remainder for kind in _SCALARS},
    **{f"aten.floor_divide.{kind}": _floor_divide for kind in ("default", "Scalar")},
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
    "aten.leaky_relu.default": _leaky_relu,
    "aten._prelu_kernel.default": _leaky_relu,
    "aten.gelu.default": _gelu,
    "aten.sign.default": _sign,
    "aten.sgn.default": _sign,
    "aten.elu.default": _elu,
    "aten.softplus.default": _softplus,
    "aten.threshold.default": _threshold,
    "aten.addcmul.default": _addcmul,
    "aten.addcdiv.default": _addcdiv,
    "aten.isnan.default": _not_a_number,
    "aten.isinf.default": _infinite,
    "aten.isposinf.default": _infinite_above,
    "aten.isneginf.default": _infinite_below,
    "aten.fmax.default": _other_where_none("maximum"),
    "aten.fmin.default": _other_where_none("minimum"),
    "aten.angle.default": _angle,
    "aten.conj_physical.default": lambda c, x: x,
    "aten.hypot.default": _hypot,
    "aten.logaddexp.default": _logaddexp(_exponential, math.log(2.0)),
    "aten.logaddexp2.default": _logaddexp(_power_of_two, 1.0),
    "aten.xlogy.Tensor": _xlogy,
    "aten.special_entr.default": _entropy,
    "aten.sinc.default": _sinc,
    "aten.heaviside.default": _heaviside,
    **{f"aten.copysign.{kind}": _copysign for kind in _SCALARS},
    "aten.frac.default": _frac,
    **{f"aten.lerp.{kind}": _lerp for kind in _SCALARS},
    **gamma.ROWS,
    **gradients.ROWS,
    "aten._to_copy.default": _cast,
    "prims.convert_element_type.default": _cast,
}
