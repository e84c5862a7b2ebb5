"""Rows of the operators of one value that are made of exponentials and logarithms.

Near the point where a difference of exponentials would cancel, a short series takes their place.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir import Operator, Value, as_float, broadcast

__all__ = ["ROWS"]

_ONE_IS_REACHED = 20.0
"""Where tanh(log(1 + exp(x))) is 1 in float32, and the square of exp(x) far from too large."""

_LOG_2_BEGIN = 355.0 / 512.0

_EXPM1 = (
    *(1.0, 0.5000000596046448, 0.166666641831398, 0.04166536033153534),
    *(0.008333578705787659, 0.0013996176421642303, 0.0001984980917768553),
)
"""Our own least-squares fit of (exp(x) - 1)/x below 1/2, of relative error 1.5e-8."""


def _series(x: Value, coefficients: Sequence[float]) -> Value:
    """Return c[0] + c[1]*x + c[2]*x**2 + ... by Horner's scheme."""
    total = x * coefficients[-1] + coefficients[-2]
    for coefficient in reversed(coefficients[:-2]):
        total = total * x + coefficient
    return total


def _within(x: Value, limit: float) -> Value:
    return x.apply("abs").apply("less", limit)


def _log_one_plus(z: Value, *, may_exceed_one: bool = True) -> Value:
    """Return log(1 + z) as log(w) + (z - (w - 1)), with w the rounded 1 + z: what rounding lost is
    added. 0 for -0."""
    above = z + 1.0
    near = z
    again = above
    if may_exceed_one:
        # Above 1 the loss counts for less than the rounding of log(w).
        near = z.apply("minimum", 1.0)
        again = near + 1.0
    return above.apply("log") + (near - (again - 1.0))


def _log1p(x: Value) -> Value:
    return x.apply("equal", 0.0).apply("where", x, _log_one_plus(x))


def _expm1(x: Value) -> Value:
    near = _series(x, _EXPM1) * x
    return _within(x, 0.5).apply("where", near, x.apply("exp") - 1.0)


def _softplus(x: Value) -> Value:
    z = (-x.apply("abs")).apply("exp")
    return x.apply("maximum", 0.0) + _log_one_plus(z, may_exceed_one=False)


def _log_sigmoid(x: Value) -> Value:
    z = (-x.apply("abs")).apply("exp")
    return x.apply("minimum", 0.0) - _log_one_plus(z, may_exceed_one=False)


def _mish_parts(x: Value) -> tuple[Value, Value]:
    # tanh(log(1 + e)) is n / (n + 2) with n = e * (e + 2).
    e = x.apply("minimum", _ONE_IS_REACHED).apply("exp")
    n = e * (e + 2.0)
    return n, n + 2.0


def _tanh_softplus(x: Value) -> Value:
    top, bottom = _mish_parts(x)
    return top / bottom


def _mish(x: Value) -> Value:
    top, bottom = _mish_parts(x)
    return x * (top / bottom)


def _tanh_softplus_slope(x: Value) -> Value:
    e = x.apply("minimum", _ONE_IS_REACHED).apply("exp")
    bottom = e * (e + 2.0) + 2.0
    slope = e * (e + 1.0) * 4.0 / (bottom * bottom)
    # Not the little that is left at 20: times a large x it would count.
    return x.apply("greater", _ONE_IS_REACHED).apply("where", 0.0, slope)


def _tanhshrink(x: Value) -> Value:
    # Of tanh's continued fraction, x/(1 + x^2/(3 + x^2/(5 + x^2/(7 + x^2/9)))), with the leading
    # terms cancelled by hand.
    q = x * x
    near = x * q * _series(q, (315.0, 14.0)) / _series(q, (945.0, 420.0, 15.0))
    # Far from 0 the exponential saturates to 0 or infinity, and both give the right limit.
    tanh = 1.0 - 2.0 / ((x * 2.0).apply("exp") + 1.0)
    return _within(x, 0.55).apply("where", near, x - tanh)


def _sinh_near(x: Value) -> Value:
    return x * _series(x * x, [1.0 / math.factorial(k) for k in (1, 3, 5, 7, 9)])


def _half_exps(x: Value) -> tuple[Value, Value, float]:
    """Return exp(x) and exp(-x) up to a factor, and this factor, with which they are halves: no
    infinity where only twice the value is one."""
    if x.dtype == "float16":
        # Its results end long before.
        return x.apply("exp"), (-x).apply("exp"), 0.5
    # The first 9 bits of log(2) are taken off without rounding, the rest is a factor.
    up, down = (x - _LOG_2_BEGIN).apply("exp"), (-x - _LOG_2_BEGIN).apply("exp")
    return up, down, math.exp(_LOG_2_BEGIN - math.log(2.0))


def _sinh(x: Value) -> Value:
    up, down, factor = _half_exps(x)
    far = (up - down) * factor
    return _within(x, 1.0).apply("where", _sinh_near(x), far)


def _cosh(x: Value) -> Value:
    up, down, factor = _half_exps(x)
    return (up + down) * factor


def _logcosh(x: Value) -> Value:
    # 2*sinh(x/2)**2 is cosh(x) - 1.
    half = _sinh_near(x * 0.5)
    near = _log_one_plus(half * half * 2.0, may_exceed_one=False)
    size = x.apply("abs")
    tail = _log_one_plus((size * -2.0).apply("exp"), may_exceed_one=False)
    return size.apply("less", 1.0).apply("where", near, size - math.log(2.0) + tail)


def _signed(x: Value, size: Value) -> Value:
    return x.apply("less", 0.0).apply("where", -size, size)


def _asinh(x: Value) -> Value:
    a = x.apply("abs")
    square = a * a
    middle = _log_one_plus(a + square / ((square + 1.0).apply("sqrt") + 1.0))
    # Where the square overflows, the 1 beside it counts for nothing.
    far = a.apply("log") + math.log(2.0)
    size = a.apply("less", 2.0**32).apply("where", middle, far)
    near = x * _series(x * x, (1.0, -1 / 6))
    return _within(x, 1 / 64).apply("where", near, _signed(x, size))


def _acosh(x: Value) -> Value:
    above = x - 1.0
    middle = _log_one_plus(above + (above * (x + 1.0)).apply("sqrt"))
    far = x.apply("log") + math.log(2.0)
    value = x.apply("less", 2.0**32).apply("where", middle, far)
    return x.apply("less", 1.0).apply("where", math.nan, value)


def _atanh(x: Value) -> Value:
    a = x.apply("abs")
    size = _log_one_plus(a * 2.0 / (1.0 - a)) * 0.5
    near = x * _series(x * x, (1.0, 1 / 3))
    return _within(x, 1 / 64).apply("where", near, _signed(x, size))


def _np_tanh_softplus(x: Any) -> Any:
    return np.tanh(np.logaddexp(x, 0))


def _np_logcosh(x: Any) -> Any:
    size = np.abs(x)
    return size + np.log1p(np.exp(-2 * size)) - math.log(2)


def _row(
    name: str, expand: Callable[[Value], Value], reference: Callable[..., Any], **more: Any
) -> Operator:
    def quiet(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return reference(*arguments)

    more.setdefault("aten", name)
    return Operator(name, 1, "elementwise", broadcast, as_float, quiet, expand=expand, **more)


ROWS = (
    _row("log1p", _log1p, np.log1p, gradient=lambda g, x, y: (g / (x + 1.0),)),
    _row(
        "log_one_plus",
        _log_one_plus,
        lambda x: np.log1p(x) + 0.0,
        gradient=lambda g, x, y: (g / (x + 1.0),),
        aten="",
    ),
    _row("expm1", _expm1, np.expm1, gradient=lambda g, x, y: (g * x.apply("exp"),)),
    _row(
        "softplus",
        _softplus,
        lambda x: np.logaddexp(x, 0),
        gradient=lambda g, x, y: (g * x.apply("sigmoid"),),
    ),
    _row(
        "log_sigmoid",
        _log_sigmoid,
        lambda x: -np.logaddexp(-x, 0),
        gradient=lambda g, x, y: (g * (-x).apply("sigmoid"),),
        aten="log_sigmoid_forward",
    ),
    _row("mish", _mish, lambda x: x * _np_tanh_softplus(x)),
    _row(
        "tanh_softplus",
        _tanh_softplus,
        _np_tanh_softplus,
        gradient=lambda g, x, y: (g * _tanh_softplus_slope(x),),
        aten="",
    ),
    _row(
        "tanhshrink",
        _tanhshrink,
        lambda x: x - np.tanh(x),
        gradient=lambda g, x, y: (g * x.apply("tanh").apply("square"),),
        aten="",
    ),
    _row("sinh", _sinh, np.sinh, gradient=lambda g, x, y: (g * x.apply("cosh"),)),
    _row("cosh", _cosh, np.cosh, gradient=lambda g, x, y: (g * x.apply("sinh"),)),
    _row(
        "logcosh",
        _logcosh,
        _np_logcosh,
        gradient=lambda g, x, y: (g * x.apply("tanh"),),
        aten="",
    ),
    _row(
        "asinh",
        _asinh,
        np.arcsinh,
        gradient=lambda g, x, y: (g / (x * x + 1.0).apply("sqrt"),),
    ),
    _row(
        "acosh",
        _acosh,
        np.arccosh,
        gradient=lambda g, x, y: (g / ((x + 1.0) * (x - 1.0)).apply("sqrt"),),
    ),
    _row(
        "atanh",
        _atanh,
        np.arctanh,
        gradient=lambda g, x, y: (g / ((x + 1.0) * (1.0 - x)),),
    ),
)
