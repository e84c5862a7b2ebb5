"""Rows of the operators that are made of simpler ones, with what they are made of.

Fractions and polynomials are our own least-squares fits of relative error, below 3e-8 over the
range that they
are used in, so that what float32 rounds outweighs them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opkit.errors import UsageError

from ..ir import (
    HALVES,
    GraphError,
    Operator,
    Settings,
    Tensor,
    Value,
    as_bool,
    as_float,
    as_promoted,
    broadcast,
    is_floating,
    normal_axes,
    reduced,
)
from .whole_numbers import divide_whole

__all__ = ["ROWS", "erf_reference"]

_TANH = (
    (
        1.0,
        0.13374492526054382,
        0.0034878298174589872,
        2.0481460524024442e-05,
        1.3177843705136638e-08,
    ),
    (1.0, 0.4670780599117279, 0.025847462937235832, 0.00032729492522776127, 7.704189783908078e-07),
)
_TANH_END = 9.1
"""Where tanh is 1 in float32."""
_SHORT_TANH = ((1.0, 0.10501048, 0.00074806), (1.0, 0.43834381, 0.01359949))
"""The same for results of 16 bits, off by 5.3e-5 of itself up to where it ends. Its series begins
with x - x**3 / 3, as that of tanh does: kernels may take it from x before anything is rounded."""
_SHORT_TANH_END = 4.6
"""Where tanh is 1 in float16: what it is there is 1.7e-4 less than 1."""
_ERF = (
    (
        *(1.1283791065216064, 0.19077500700950623, 0.05278908833861351, 0.003779218066483736),
        *(0.0002847977739293128, 2.042014784819912e-06),
    ),
    (
        *(1.0, 0.502402663230896, 0.11425384879112244, 0.014996661804616451),
        *(0.0011651137610897422, 3.800396007136442e-05),
    ),
)
_ERF_END = 3.93
_NORMAL_TAIL = (
    *(-0.6931471824645996, -0.7978845238685608, -0.3183109760284424, -0.03632936254143715),
    *(0.004764253739267588, 6.716325879096985e-05, -0.0002450888277962804, 7.690677011851221e-05),
    *(-1.458706447010627e-05, 1.8657742657524068e-06, -1.5791547980370524e-07),
    *(8.016593611159806e-09, -1.8500381782082798e-10),
)
"""The logarithm of a standard normal distribution's tail beyond a size: the tail is off by
1e-7 of itself below 1, where float32 has rounded the exponent by 2e-6 where it is no less than
1e-8, and smaller than that behind."""
_NORMAL_TAIL_END = 20.0
"""Where that logarithm is below any of float32, and no infinity yet."""
_SHORT_TAILS: Mapping[str, tuple[float, Sequence[float]]] = {
    "float16": (
        5.8,
        (
            *(-0.69318318, -0.79736495, -0.31944799, -0.035708148),
            *(0.0050710673, -0.00043746599, 1.6794308e-05),
        ),
    ),
    "bfloat16": (
        _NORMAL_TAIL_END,
        (
            *(-0.69370806, -0.79205054, -0.32806474, -0.030652443),
            *(0.0037502649, -0.00028614321, 1.2111618e-05, -2.158049e-07),
        ),
    ),
}
"""The same for results of 16 bits, with where it ends: off by 3.6e-5 up to where a result is none
of float16, and by 5.6e-4 up to there in bfloat16, an eighth of what rounding to it is off by."""
_SIN = (
    1.0,
    -0.16666656732559204,
    0.008333025500178337,
    -0.00019807434000540525,
    2.6019292818091344e-06,
)
_SIN_END = float(1 << 17)
"""From where on sin and cos would be off by more than 1e-5."""
_ATAN = (
    (1.0, 1.1290637254714966, 0.28615790605545044, 0.008896326646208763),
    (1.0, 1.4623968601226807, 0.5736262202262878, 0.05045965313911438),
)
_ERFC = (
    *(-1.265528678894043, 1.0004253387451172, 0.36991122364997864, 0.1208425760269165),
    *(-0.2704245448112488, 0.46453672647476196, -1.394571304321289, 1.710579514503479),
    *(-0.9283403754234314, 0.1925698220729828),
)
# pi in three parts, the first two short enough that whole multiples up to 2**15 of them are exact
# in float32.
_PI_PARTS = (3.140625, 0.0009670257568359375, 6.2771141529083252e-07)


def _horner(x: Value, coefficients: Sequence[float]) -> Value:
    total = x * coefficients[-1] + coefficients[-2]
    for coefficient in reversed(coefficients[:-2]):
        total = total * x + coefficient
    return total


def _fraction(x: Value, parts: tuple[Sequence[float], Sequence[float]]) -> Value:
    square = x * x
    return x * _horner(square, parts[0]) / _horner(square, parts[1])


def _clip(x: Value, low: float, high: float) -> Value:
    return x.apply("maximum", low).apply("minimum", high)


def _tanh(x: Value) -> Value:
    # Not beyond 1 by what a quotient rounds: 1 - tanh**2 would be below 0.
    end, parts = (_SHORT_TANH_END, _SHORT_TANH) if x.dtype in HALVES else (_TANH_END, _TANH)
    return _clip(_fraction(_clip(x, -end, end), parts), -1.0, 1.0)


def _erf(x: Value) -> Value:
    return _fraction(_clip(x, -_ERF_END, _ERF_END), _ERF)


def _erfc(x: Value) -> Value:
    size = x.apply("abs")
    t = 1.0 / (1.0 + size * 0.5)
    tail = t * (_horner(t, _ERFC) - size * size).apply("exp")
    return x.apply("less", 0.0).apply("where", 2.0 - tail, tail)


def _sigmoid(x: Value) -> Value:
    return 1.0 / (1.0 + (-x).apply("exp"))


def _silu(x: Value) -> Value:
    return x / (1.0 + (-x).apply("exp"))


def _gelu(x: Value, approximate: str) -> Value:
    if approximate == "tanh":
        # 0.5 * (1 + tanh(u)) is sigmoid(2 u).
        scale = math.sqrt(8.0 / math.pi)
        square = x * x
        return x / (1.0 + (x * (square * (-scale * 0.044715) - scale)).apply("exp"))
    # x less a tail above 0, and x times a tail below, where 1 + erf would cancel.
    end, tail = _SHORT_TAILS.get(x.dtype, (_NORMAL_TAIL_END, _NORMAL_TAIL))
    size = x.apply("abs").apply("minimum", end)
    return x.apply("maximum", 0.0) - size * _horner(size, tail).apply("exp")


def _gelu_gradient(g: Value, x: Value, _: Value, approximate: str) -> Sequence[Value]:
    if approximate == "tanh":
        scale = math.sqrt(8.0 / math.pi)
        square = x * x
        twice = x * (square * (scale * 0.044715) + scale)
        share, rest = twice.apply("sigmoid"), (-twice).apply("sigmoid")
        slope = x * (square * (scale * 3 * 0.044715) + scale)
        # Far out the slope overflows, of a share that is 0.
        bend = x.apply("abs").apply("less", 20.0).apply("where", share * rest * slope, 0.0)
        return (g * (share + bend),)
    return (g * (x.apply("ndtr") + x * _normal_density(x)),)


def _ndtr(x: Value) -> Value:
    size = x.apply("abs").apply("minimum", _NORMAL_TAIL_END)
    tail = _horner(size, _NORMAL_TAIL).apply("exp")
    return x.apply("less", 0.0).apply("where", tail, 1.0 - tail)


def _normal_density(x: Value) -> Value:
    return (x * x * -0.5).apply("exp") * math.sqrt(0.5 / math.pi)


def _sine(x: Value, shift: float) -> Value:
    """Return sin(x + pi * shift), of which the nearest multiple of pi is taken off."""
    turns = (x * (1.0 / math.pi) + shift).apply("round") - shift
    rest = x
    for part in _PI_PARTS:
        rest = rest - turns * part
    value = rest * _horner(rest * rest, _SIN)
    # Every half turn changes the sign: n - 2 * floor(n / 2) is 0 or 1.
    whole = turns + shift
    odd = whole - (whole * 0.5).apply("floor") * 2.0
    value = value * (1.0 - odd * 2.0)
    if x.dtype == "float16":
        return value
    # Multiples of the parts of pi are rounded further out, and what remains is any number.
    return x.apply("abs").apply("less", _SIN_END).apply("where", value, math.nan)


def _sin(x: Value) -> Value:
    return _sine(x, 0.0)


def _cos(x: Value) -> Value:
    return _sine(x, 0.5)


def _atan(x: Value) -> Value:
    size = x.apply("abs")
    is_large = size.apply("greater", 1.0)
    small = size.apply("minimum", 1.0) / size.apply("maximum", 1.0)
    value = _fraction(small, _ATAN)
    value = is_large.apply("where", math.pi / 2 - value, value)
    return x.apply("less", 0.0).apply("where", -value, value)


def _atan2(y: Value, x: Value) -> Value:
    up, across = y.apply("abs"), x.apply("abs")
    steep = up.apply("greater", across)
    low, high = up.apply("minimum", across), up.apply("maximum", across)
    # Equal numbers, infinite and the smallest ones too, have no quotient that says so.
    share = low / high.apply("equal", 0.0).apply("where", 1.0, high)
    is_diagonal = low.apply("equal", high).apply("logical_and", high.apply("greater", 0.0))
    value = _fraction(is_diagonal.apply("where", 1.0, share), _ATAN)
    value = steep.apply("where", math.pi / 2 - value, value)
    value = x.apply("signbit").apply("where", math.pi - value, value)
    return y.apply("signbit").apply("where", -value, value)


def _asin(x: Value) -> Value:
    return (x / ((1.0 - x) * (1.0 + x)).apply("sqrt")).apply("atan")


def _acos(x: Value) -> Value:
    # Of the half angle, which loses no digits next to 1.
    return ((1.0 - x) / (1.0 + x)).apply("sqrt").apply("atan") * 2.0


def _is_signed(x: Value) -> Value:
    if not is_floating(x.dtype):
        return x.apply("less", 0)
    # Also of -0, whose reciprocal is -infinity; that of -infinity is -0.
    return x.apply("less", 0.0).apply("logical_or", (1.0 / x).apply("less", 0.0))


def _pow(base: Value, exponent: Value) -> Value:
    number = _constant_of(exponent)
    if number is not None:
        return _power(base, number)
    if not _are_fractions(base, exponent):
        raise GraphError(
            "whole numbers to the power of a tensor of whole numbers have no kernel",
            location=base.builder.location,
            help='cast one of them to "float32"',
        )
    size = base.apply("abs")
    value = (exponent * size.apply("log")).apply("exp")
    half = exponent * 0.5
    odd = half.apply("floor").apply("not_equal", half)
    whole = exponent.apply("floor").apply("equal", exponent)
    negative = odd.apply("where", -value, value)
    negative = whole.apply("where", negative, value * float("nan"))
    value = base.apply("less", 0.0).apply("where", negative, value)
    return exponent.apply("equal", 0.0).apply("where", 1.0, value)


def _power(base: Value, number: float) -> Value:
    if number == int(number) and abs(number) <= 64:
        return _whole_power(base, int(number))
    if number == 0.5:
        return base.apply("sqrt")
    if number == -0.5:
        return 1.0 / base.apply("sqrt")
    if number * 2 == int(number * 2) and 0 < number <= 8:
        return _whole_power(base, int(number)) * base.apply("sqrt")
    return (base.apply("log") * number).apply("exp")


def _whole_power(base: Value, number: int) -> Value:
    if number == 0:
        return base.builder.constant(1, base.dtype).apply("broadcast_to", shape=base.shape)
    if number < 0:
        return 1.0 / _whole_power(base, -number)
    result: Value | None = None
    square = base
    while number:
        if number & 1:
            result = square if result is None else result * square
        number >>= 1
        if number:
            square = square * square
    assert result is not None
    return result


def _constant_of(value: Value) -> float | None:
    node = next((n for n in value.builder.nodes if n.output.name == value.tensor.name), None)
    if node is None or node.operator != "constant":
        return None
    return node.settings.number("value")


def _sign(x: Value) -> Value:
    if x.dtype.startswith("uint"):
        return x.apply("minimum", 1)
    if not is_floating(x.dtype):
        return _clip(x, -1, 1)
    # Scaling twice lifts even the smallest subnormal above 1; -0 ends as 0, NaN stays.
    once = _clip(x * 1e38, -1.0, 1.0)
    return _clip(once * 1e38, -1.0, 1.0) + 0.0


def _grad_clamp(grad: Value, x: Value, y: Value, low: float, high: float) -> Sequence[Value | None]:
    # As torch's: the bounds themselves are inside.
    for name, bound in (("greater_equal", low), ("less_equal", high)):
        if math.isfinite(bound):
            grad = x.apply(name, bound).apply("where", grad, 0.0)
    return (grad,)


def _mean(x: Value, axis: Any, keepdims: bool) -> Value:
    axes = normal_axes(axis, x.ndim)
    from ..ir import product

    count = product(x.shape[at] for at in axes)
    # The mean of no elements is no number: 0 x inf.
    inverse: Any = 1.0 / count if isinstance(count, int) and count else math.inf
    inverse = inverse if isinstance(count, int) else 1.0 / x.builder.extent(count)
    if not is_floating(x.dtype):
        x = x.astype("float32")
    return _without(x.sum(axis=axis, keepdims=True) * inverse, axes, keepdims)


def _without(value: Value, axes: Sequence[int], keepdims: bool) -> Value:
    """Return a reduction's value without the axes of extent 1 that it keeps: last of all, so that
    what follows the sum shares its kernel."""
    if keepdims:
        return value
    return value.reshape(*(e for at, e in enumerate(value.shape) if at not in axes))


def _var(x: Value, axis: Any, keepdims: bool, correction: int) -> Value:
    from ..ir import product

    centred = x - x.mean(axis=axis, keepdims=True)
    count = product(x.shape[at] for at in normal_axes(axis, x.ndim))
    if isinstance(count, int):
        inverse: Value | float = 1.0 / (count - correction) if count != correction else math.nan
    else:
        inverse = 1.0 / (x.builder.extent(count) - float(correction))
    total = (centred * centred).sum(axis=axis, keepdims=True) * inverse
    return _without(total, normal_axes(axis, x.ndim), keepdims)


def _softmax(x: Value, axis: int) -> Value:
    e = (x - x.max(axis=axis, keepdims=True)).apply("exp")
    return e * (1.0 / e.sum(axis=axis, keepdims=True))


def _log_softmax(x: Value, axis: int) -> Value:
    shifted = x - x.max(axis=axis, keepdims=True)
    return shifted - shifted.apply("exp").sum(axis=axis, keepdims=True).apply("log")


def _logsumexp(x: Value, axis: Any, keepdims: bool) -> Value:
    # Infinity less infinity is no number: an infinite peak is taken off as 0.
    peak = x.max(axis=axis, keepdims=True)
    total = (x - peak).apply("exp").sum(axis=axis, keepdims=True).apply("log") + peak
    return _without(total, normal_axes(axis, x.ndim), keepdims)


def _layer_norm(x: Value, weight: Value, bias: Value, epsilon: float) -> Value:
    centred = x - x.mean(axis=-1, keepdims=True)
    variance = (centred * centred).mean(axis=-1, keepdims=True)
    return centred * (1.0 / (variance + epsilon).apply("sqrt")) * weight + bias


def _rms_norm(x: Value, weight: Value, epsilon: float) -> Value:
    mean = (x * x).mean(axis=-1, keepdims=True)
    return x * (1.0 / (mean + epsilon).apply("sqrt")) * weight


def _floor_divide(a: Value, b: Value) -> Value:
    if _are_fractions(a, b):
        return (a / b).apply("floor")
    dtype = as_promoted((a.tensor, b.tensor), {})
    # The least number of a type by -1 is none of it, and wraps.
    return divide_whole(a, b, _constant_of(b))[0].astype(dtype)


def _mod(a: Value, b: Value) -> Value:
    if _are_fractions(a, b):
        return a - (a / b).apply("floor") * b
    return divide_whole(a, b, _constant_of(b))[1]


def _fmod(a: Value, b: Value) -> Value:
    if _are_fractions(a, b):
        return a - (a / b).apply("trunc") * b
    rest = divide_whole(a, b, _constant_of(b))[1]
    # The remainder has the divisor's sign now, and is to have the number's.
    turns = a.apply("less", 0).apply("not_equal", b.apply("less", 0))
    turns = turns.apply("logical_and", rest.apply("not_equal", 0))
    return turns.apply("where", rest - b.astype(rest.dtype), rest)


def _are_fractions(a: Value, b: Value) -> bool:
    return is_floating(a.dtype) or is_floating(b.dtype)


def _xor(a: Value, b: Value) -> Value:
    if a.dtype == "bool":
        return a.apply("logical_or", b).apply(
            "logical_and", a.apply("logical_and", b).apply("logical_not")
        )
    both = a.apply("bitwise_and", b)
    return a.apply("bitwise_or", b).apply("bitwise_and", both.apply("bitwise_not"))


def erf_reference(x: Any) -> Any:
    """Return erf in float64, from the C library's."""
    return np.asarray(np.frompyfunc(math.erf, 1, 1)(np.asarray(x, np.float64)), np.float64)


def _np_erfc(x: Any) -> Any:
    return np.asarray(np.frompyfunc(math.erfc, 1, 1)(np.asarray(x, float)), float)


def _np_pow(a: Any, b: Any) -> Any:
    a, b = np.asanyarray(a), np.asanyarray(b)
    is_whole = a.dtype.kind in "iu" and b.dtype.kind in "iu" and bool(np.all(b >= 0))
    return np.power(a if is_whole else a.astype(float), b)


def _np_sigmoid(x: Any) -> Any:
    with np.errstate(over="ignore"):
        return 1 / (1 + np.exp(-np.asanyarray(x, np.float64)))


def _np_softmax(x: Any, axis: int) -> Any:
    e = np.exp(x - np.max(x, axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _np_gelu(x: Any, approximate: str) -> Any:
    # Forms that lose no digits below zero, where 1 + tanh and 1 + erf cancel.
    x = np.asanyarray(x, np.float64)
    if approximate == "tanh":
        return x * _np_sigmoid(2 * math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))
    return 0.5 * x * _np_erfc(x * -math.sqrt(0.5))


def _np_logsumexp(x: Any, axis: Any, keepdims: bool) -> Any:
    peak = np.max(x, axis=axis, keepdims=True)
    total = np.log(np.sum(np.exp(x - peak), axis=axis, keepdims=True)) + peak
    return total if keepdims else np.squeeze(total, axis=axis if axis is not None else None)


def _np_norm(x: Any, weight: Any, bias: Any, epsilon: float) -> Any:
    centred = x - x.mean(-1, keepdims=True)
    return centred / np.sqrt((centred**2).mean(-1, keepdims=True) + epsilon) * weight + bias


def _np_rms(x: Any, weight: Any, epsilon: float) -> Any:
    return x / np.sqrt((x**2).mean(-1, keepdims=True) + epsilon) * weight


def _row(
    name: str, arity: int, expand: Callable[..., Value], reference: Callable[..., Any], **more: Any
) -> Operator:
    def quiet(*arguments: Any, **settings: Any) -> Any:
        with np.errstate(all="ignore"):
            return reference(*arguments, **settings)

    more.setdefault("aten", name)
    return Operator(
        name,
        arity,
        more.pop("kind", "elementwise"),
        more.pop("shape", broadcast),
        more.pop("dtype", as_float),
        quiet,
        expand=expand,
        **more,
    )


def _as_divided(tensors: Sequence[Tensor], settings: Settings) -> str:
    dtype = as_promoted(tensors, settings)
    if dtype == "bool":
        raise UsageError("truth values do not divide", help='cast them to "int32"')
    return dtype


def _bool_or_int(tensors: Sequence[Tensor], settings: Settings) -> str:
    return as_promoted(tensors, settings)


def _first_shape(tensors: Sequence[Tensor], _: Settings) -> Any:
    return tensors[0].shape


_AXES = {"axis": None, "keepdims": False}
_ERF_SLOPE = 2 / math.sqrt(math.pi)

ROWS = (
    _row(
        "relu",
        1,
        lambda x: x.apply("maximum", 0),
        lambda x: np.maximum(x, 0),
        dtype=as_promoted,
        gradient=lambda g, x, y: (x.apply("greater", 0.0).apply("where", g, 0.0),),
        pto="relu",
    ),
    _row("square", 1, lambda x: x * x, np.square, dtype=as_promoted),
    _row("reciprocal", 1, lambda x: 1.0 / x, lambda x: 1 / np.asanyarray(x, float), pto="recip"),
    _row("rsqrt", 1, lambda x: 1.0 / x.apply("sqrt"), lambda x: 1 / np.sqrt(x), pto="rsqrt"),
    _row("sigmoid", 1, _sigmoid, _np_sigmoid, gradient=lambda g, x, y: (g * y * (1.0 - y),)),
    _row(
        *("tanh", 1, _tanh, np.tanh),
        gradient=lambda g, x, y: (g * (1.0 - y * y),),
        allowances=dict.fromkeys(HALVES, 1.8e-4),
    ),
    _row(
        *("erf", 1, _erf, erf_reference),
        gradient=lambda g, x, y: (g * (-(x * x)).apply("exp") * _ERF_SLOPE,),
    ),
    _row(
        "erfc",
        1,
        _erfc,
        _np_erfc,
        gradient=lambda g, x, y: (g * (-(x * x)).apply("exp") * -_ERF_SLOPE,),
    ),
    _row(
        *("ndtr", 1, _ndtr, lambda x: 0.5 * _np_erfc(x * -math.sqrt(0.5))),
        gradient=lambda g, x, y: (g * _normal_density(x),),
        aten="special_ndtr",
    ),
    _row("silu", 1, _silu, lambda x: x * _np_sigmoid(x)),
    _row(
        *("gelu", 1, _gelu, _np_gelu),
        gradient=_gelu_gradient,
        allowances={"float16": 4e-5, "bfloat16": 6e-4},
        parameters={"approximate": "none"},
    ),
    _row("log2", 1, lambda x: x.apply("log") * (1 / math.log(2)), np.log2),
    _row("log10", 1, lambda x: x.apply("log") * (1 / math.log(10)), np.log10),
    _row("exp2", 1, lambda x: (x * math.log(2)).apply("exp"), np.exp2),
    _row("sin", 1, _sin, np.sin, gradient=lambda g, x, y: (g * x.apply("cos"),)),
    _row("cos", 1, _cos, np.cos, gradient=lambda g, x, y: (-(g * x.apply("sin")),)),
    _row("tan", 1, lambda x: x.apply("sin") / x.apply("cos"), np.tan),
    _row("atan", 1, _atan, np.arctan, gradient=lambda g, x, y: (g / (x * x + 1.0),)),
    _row(
        "asin",
        1,
        _asin,
        np.arcsin,
        gradient=lambda g, x, y: (g / ((1.0 - x) * (1.0 + x)).apply("sqrt"),),
    ),
    _row(
        "acos",
        1,
        _acos,
        np.arccos,
        gradient=lambda g, x, y: (-g / ((1.0 - x) * (1.0 + x)).apply("sqrt"),),
    ),
    _row("atan2", 2, _atan2, np.arctan2),
    _row(
        *("signbit", 1, _is_signed, lambda x: np.signbit(np.asarray(x, np.float64))),
        dtype=as_bool,
        gradient=lambda g, x, y: (None,),
    ),
    _row(
        "pow",
        2,
        _pow,
        _np_pow,
        dtype=as_promoted,
        aten="pow",
    ),
    _row("sign", 1, _sign, np.sign, dtype=as_promoted, gradient=lambda g, x, y: (None,)),
    _row("mod", 2, _mod, np.mod, dtype=_as_divided, aten="remainder"),
    _row("fmod", 2, _fmod, np.fmod, dtype=_as_divided),
    _row("floor_divide", 2, _floor_divide, np.floor_divide, dtype=_as_divided),
    _row(
        *("bitwise_xor", 2, _xor, np.bitwise_xor),
        dtype=_bool_or_int,
        pto="xor",
        gradient=lambda g, a, b, y: (None, None),
    ),
    _row(
        *(
            "clamp",
            1,
            lambda x, low, high: _clip(x, low, high),
            lambda x, low, high: np.clip(x, low, high),
        ),
        dtype=as_promoted,
        gradient=_grad_clamp,
        parameters={"low": -math.inf, "high": math.inf},
    ),
    _row(
        "leaky_relu",
        1,
        lambda x, slope: x.apply("maximum", 0.0) + x.apply("minimum", 0.0) * slope,
        lambda x, slope: np.where(x > 0, x, slope * x),
        gradient=lambda g, x, y, slope: (x.apply("greater", 0.0).apply("where", g, g * slope),),
        parameters={"slope": 0.01},
        pto="lrelu",
    ),
    _row(
        "elu",
        1,
        lambda x, alpha: x.apply("greater", 0.0).apply("where", x, x.apply("expm1") * alpha),
        lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(x)),
        parameters={"alpha": 1.0},
    ),
    _row(
        "hardswish",
        1,
        # Not six times x, which may be infinite.
        lambda x: x * (_clip(x + 3.0, 0.0, 6.0) / 6.0),
        lambda x: x * np.clip(x + 3, 0, 6) / 6,
    ),
    _row(
        "hardsigmoid",
        1,
        # The sum first, which rounds nothing next to -3.
        lambda x: _clip(x + 3.0, 0.0, 6.0) / 6.0,
        lambda x: np.clip(x / 6 + 0.5, 0, 1),
    ),
    # along axes
    _row(
        *("mean", 1, _mean, lambda x, axis, keepdims: np.mean(x, axis=axis, keepdims=keepdims)),
        kind="reduction",
        shape=reduced,
        parameters=_AXES,
    ),
    _row(
        "var",
        1,
        _var,
        lambda x, axis, keepdims, correction: np.var(
            x, axis=axis, keepdims=keepdims, ddof=correction
        ),
        kind="reduction",
        shape=reduced,
        parameters={**_AXES, "correction": 0},
    ),
    _row(
        *("logsumexp", 1, _logsumexp, _np_logsumexp),
        kind="reduction",
        shape=reduced,
        gradient=lambda g, x, y, **_: (g * (x - y).apply("exp"),),
        parameters=_AXES,
    ),
    _row(
        *("softmax", 1, _softmax, _np_softmax),
        aten="_softmax",
        gradient=lambda g, x, y, axis: (y * (g - (g * y).sum(axis=axis, keepdims=True)),),
        parameters={"axis": -1},
    ),
    _row(
        *("log_softmax", 1, _log_softmax, lambda x, axis: np.log(_np_softmax(x, axis))),
        aten="_log_softmax",
        gradient=lambda g, x, y, axis: (g - y.apply("exp") * g.sum(axis=axis, keepdims=True),),
        parameters={"axis": -1},
    ),
    _row(
        *("layer_norm", 3, _layer_norm, _np_norm),
        shape=_first_shape,
        aten="native_layer_norm",
        parameters={"epsilon": 1e-5},
    ),
    _row("rms_norm", 2, _rms_norm, _np_rms, shape=_first_shape, parameters={"epsilon": 1e-6}),
)
