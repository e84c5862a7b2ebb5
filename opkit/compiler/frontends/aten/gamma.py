"""Rows of the functions of one value that are made of fits and series: gamma's logarithm, its
derivatives, and the inverse of the error function.

The coefficients of fits are our own, by interpolation at Chebyshev's points with mpmath.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ...ir import Operand, Value
from .call import AtenCall as Call
from .call import Refused
from .numbers import is_number

__all__ = ["ROWS"]

_LOG_GAMMA_NEAR_1 = (
    *(-0.48018547892570496, 0.7335425019264221, -0.3158060610294342, 0.18866169452667236),
    *(-0.1281716674566269, 0.0931253582239151, -0.07030617445707321, 0.05284956470131874),
    *(-0.04163810983300209, 0.04474789649248123, -0.03631415218114853),
)
"""log(gamma(x))/(x - 1) of x - 1.125 for x from 0.75 to 1.5, of relative error 1.8e-8."""
_LOG_GAMMA_NEAR_2 = (
    *(0.49948686361312866, 0.2922384440898895, -0.05429540574550629, 0.014688166789710522),
    *(-0.004662562161684036, 0.0016164274420589209, -0.0005907983868382871),
    *(0.00021740728698205203, -8.429839363088831e-05, 4.4632623030338436e-05),
    *(-1.79925136762904e-05,),
)
"""log(gamma(x))/(x - 2) of x - 2.25 for x from 1.5 to 3, of relative error 1.8e-8."""
_STIRLING = (1 / 12, -1 / 360, 1 / 1260, -1 / 1680)
_FOUR = 4.0
"""Where Stirling's series of so many terms begins to hold, to 2e-9."""
_DIGAMMA = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132)
_TRIGAMMA = (1 / 6, -1 / 30, 1 / 42, -1 / 30, 5 / 66, -691 / 2730)
_ERFINV_NEAR = (
    *(1.5014094114303589, 0.24664027988910675, -0.004177392926067114, -0.0012527264188975096),
    *(0.00021834939252585173, -4.972419901605463e-06, -3.4639851946849376e-06),
    *(4.681313612309168e-07, 2.333596782477798e-08, -8.931926309685423e-09),
)
"""erfinv(x)/x of w - 2.5 for w = -log(1 - x * x) up to 5, of relative error 6e-8."""
_ERFINV_FAR = (
    *(3.0015268325805664, 1.0042970180511475, 0.0064057777635753155, -0.0046923719346523285),
    *(0.0032670022919774055, -0.0022089476697146893, 0.001223259256221354),
    *(-0.00034779138513840735, -0.00013684459554497153, 0.00011153858213219792),
)
"""The same of sqrt(w) - 3.16803398874989 from there to the last float below 1, of 3e-8."""
_RISES = 4
"""Where the series of gamma's derivatives hold: fewer terms of a sum are less to round."""


def _series(x: Value, coefficients: Sequence[float]) -> Value:
    """Return c[0] + c[1]*x + c[2]*x**2 + ... by Horner's scheme."""
    total = x * coefficients[-1] + coefficients[-2]
    for coefficient in reversed(coefficients[:-2]):
        total = total * x + coefficient
    return total


def _float(c: Call, x: Value) -> Value:
    return x if "float" in x.dtype else x.astype(c.dtype)


def _row(function: Callable[[Value], Value]) -> Callable[..., Any]:
    return lambda c, x: function(_float(c, x))


def _turn(x: Value) -> Value:
    """Return pi times what x is beside the nearest whole number."""
    return (x - x.apply("round")) * math.pi


def _log_gamma(x: Value) -> Value:
    size = x.apply("abs")
    is_small, is_below_4 = size.apply("less", 0.75), size.apply("less", _FOUR)
    is_between = size.apply("greater_equal", 3.0).apply("logical_and", is_below_4)
    is_mirrored = x.apply("less_equal", -0.25)
    # By gamma(x + 1) = x gamma(x) everything below 4 comes to lie between 0.75 and 3.
    near = is_between.apply("where", size - 1.0, size)
    near = is_small.apply("where", is_mirrored.apply("where", size, x) + 1.0, near)
    first = _series(near - 1.125, _LOG_GAMMA_NEAR_1) * (near - 1.0)
    second = _series(near - 2.25, _LOG_GAMMA_NEAR_2) * (near - 2.0)
    fitted = near.apply("less", 1.5).apply("where", first, second)
    log = is_between.apply("where", near, size).apply("log")
    fitted = is_small.apply("where", fitted - log, fitted)
    fitted = is_between.apply("where", fitted + log, fitted)
    part = size.apply("reciprocal")
    rest = part * _series(part * part, _STIRLING) + 0.41893853320467274
    far = (size - 0.5) * (log - 1.0) + rest
    value = is_below_4.apply("where", fitted, far)
    sine = _turn(size).apply("sin").apply("abs")
    mirrored = math.log(math.pi) - (size * sine).apply("log") - value
    mirrored = sine.apply("equal", 0.0).apply("where", math.inf, mirrored)
    value = is_mirrored.apply("where", mirrored, value)
    return size.apply("equal", math.inf).apply("where", math.inf, value)


def _risen(x: Value, least: int, lost: Callable[[Value], Value]) -> tuple[Value, Value]:
    """Return a value of at least `least` that is whole numbers above x >= 0, and the sum of what is
    `lost` on the way."""
    total = x * 0.0
    for _ in range(least):
        is_low = x.apply("less", float(least))
        total = is_low.apply("where", total + lost(x), total)
        x = is_low.apply("where", x + 1.0, x)
    return x, total


def _digamma(x: Value) -> Value:
    is_negative = x.apply("less", 0.0)
    high, lost = _risen(
        is_negative.apply("where", 1.0 - x, x), _RISES, lambda each: each.apply("reciprocal")
    )
    part = high.apply("reciprocal")
    square = part * part
    value = high.apply("log") - part * 0.5 - square * _series(square, _DIGAMMA) - lost
    turn = _turn(x)
    mirrored = value - math.pi / turn.apply("tan")
    mirrored = turn.apply("equal", 0.0).apply("where", math.nan, mirrored)
    value = is_negative.apply("where", mirrored, value)
    # The sum of what is lost is 0 times infinity there.
    return x.apply("equal", math.inf).apply("where", math.inf, value)


def _trigamma(x: Value) -> Value:
    is_negative = x.apply("less", 0.0)
    high, lost = _risen(
        is_negative.apply("where", 1.0 - x, x),
        _RISES,
        lambda each: (each * each).apply("reciprocal"),
    )
    part = high.apply("reciprocal")
    square = part * part
    value = part * (square * _series(square, _TRIGAMMA) + part * 0.5 + 1.0) + lost
    sine = _turn(x).apply("sin")
    mirrored = math.pi**2 / (sine * sine) - value
    value = is_negative.apply("where", mirrored, value)
    return x.apply("equal", math.inf).apply("where", 0.0, value)


def _polygamma(c: Call, order: Operand, x: Value) -> Value:
    if is_number(order, 0):
        return _digamma(_float(c, x))
    if is_number(order, 1):
        return _trigamma(_float(c, x))
    raise Refused("polygamma beyond the order of 1")


def _erfinv(x: Value) -> Value:
    w = -((1.0 - x) * (x + 1.0)).apply("log")
    far = _series(w.apply("sqrt") - 3.16803398874989, _ERFINV_FAR)
    value = w.apply("less", 5.0).apply("where", _series(w - 2.5, _ERFINV_NEAR), far) * x
    return x.apply("abs").apply("equal", 1.0).apply("where", x * math.inf, value)


ROWS: Mapping[str, Callable[..., Any]] = {
    "aten.lgamma.default": _row(_log_gamma),
    "aten.digamma.default": _row(_digamma),
    "aten.polygamma.default": _polygamma,
    "aten.erfinv.default": _row(_erfinv),
}
