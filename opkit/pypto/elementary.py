"""Functions of single elements that the compiler's table has under another name, or that are made
of its rows."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from opkit.compiler import GraphError

from .building import current_builder
from .enumerations import PRECISION, dtype_name
from .location import here
from .traced import Traced, new_value

__all__ = ["FUNCTIONS"]


def _renamed(operator: str) -> Callable[..., Traced]:
    def call(x: Traced, *operands: Any, precision_type: object = None) -> Traced:
        return x.apply(operator, *(each for each in operands if not isinstance(each, PRECISION)))

    call.__name__ = operator
    return call


def _remainder(x: Any, other: Any, precision_type: object = None) -> Traced:
    first = x if isinstance(x, Traced) else other
    return new_value(first.builder, "mod", x, other)


def _cbrt(x: Traced) -> Traced:
    size = x.apply("abs")
    root = (size.apply("log") * (1.0 / 3.0)).apply("exp")
    root = root + (size / (root * root) - root) * (1.0 / 3.0)
    is_usual = size.apply("greater", 0.0).apply("logical_and", size.apply("less", math.inf))
    return is_usual.apply("where", x.apply("sign") * root, x)


def _sign_bit(x: Traced) -> Traced:
    below = x.apply("less", 0)
    if "float" not in x.dtype:
        return below
    # Of the zeros, the one that is below has the reciprocal -inf.
    return below.apply("logical_or", (1.0 / x).apply("less", 0.0))


def _asin(x: Traced) -> Traced:
    return x.apply("atan2", ((1.0 - x) * (1.0 + x)).apply("sqrt"))


def _acos(x: Traced) -> Traced:
    return ((1.0 - x) * (1.0 + x)).apply("sqrt").apply("atan2", x)


def _acosh(x: Traced) -> Traced:
    above = x - 1.0
    return (above + (above * (above + 2.0)).apply("sqrt")).apply("log1p")


def _hypot(x: Traced, other: Traced) -> Traced:
    return (x * x + other * other).apply("sqrt")


def _prelu(x: Traced, weight: Traced) -> Traced:
    wide = weight if x.ndim < 2 else weight.reshape(-1, *(1 for _ in x.shape[2:]))
    return (x < 0.0).apply("where", x * wide, x)


def _is_finite(x: Traced) -> Traced:
    return x.apply("abs").apply("less", math.inf)


def _is_nan(x: Traced) -> Traced:
    return x.apply("not_equal", x)


def _round(x: Traced, decimals: int = 0) -> Traced:
    if decimals == 0:
        return x.apply("round")
    factor = 10.0**decimals
    return (x * factor).apply("round") * (1.0 / factor)


def _arange(*bounds: float) -> Traced:
    start, end, step = (0, *bounds, 1) if len(bounds) == 1 else (*bounds, 1)[:3]
    if step == 0 or (end - start) / step <= 0:
        raise GraphError(f"arange({start}, {end}, {step}) has no elements", location=here())
    is_whole = all(isinstance(each, int) for each in bounds)
    dtype = "int32" if is_whole else "float32"
    count = math.ceil((end - start) / step)
    numbers = new_value(current_builder(), "arange", count=count, dtype=dtype)
    return numbers * step + start


def _pad(x: Traced, pad: Sequence[int], mode: str = "constant", value: float = 0) -> Traced:
    if mode != "constant":
        raise GraphError(f'pad: opkit has no mode="{mode}"', location=here())
    if len(pad) % 2 or len(pad) > 2 * x.ndim:
        raise GraphError(f"pad: {len(pad)} widths for {x.ndim} axes", location=here())
    pairs = [(pad[at], pad[at + 1]) for at in range(0, len(pad), 2)]
    widths = [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]
    return x.apply("pad", widths=tuple(widths), value=value)


def _drawn(operator: str) -> Callable[..., Traced]:
    def call(
        shape: Sequence[int],
        key: Sequence[int],
        counter: Sequence[int],
        alg: Sequence[int] = (1,),
        dtype: object = "float32",
    ) -> Traced:
        if list(alg) not in ([1], [3]):
            raise GraphError(f"{operator}: opkit has no alg={list(alg)}", location=here())
        drawn = new_value(
            current_builder(), operator, int(key[0]), shape=tuple(shape), stream=int(counter[-1])
        )
        if operator == "random_uniform":
            # The generator's numbers are above 0 and up to 1.
            drawn = 1.0 - drawn
        return drawn.apply("cast", dtype=dtype_name(dtype))

    return call


def _beside(scale: Traced, x: Traced, axis: int) -> Traced:
    """Return factors with the axis along which they are the same."""
    if scale.ndim == x.ndim:
        return scale
    at = axis % x.ndim
    return scale.reshape(*scale.shape[:at], 1, *scale.shape[at:])


def _quantize(
    x: Traced, scale: Traced, otype: object, axis: int, zero_points: Traced | None = None
) -> Traced:
    scaled = x * _beside(scale, x, axis)
    if zero_points is not None:
        scaled = scaled + _beside(zero_points, x, axis)
    name = dtype_name(otype)
    low, high = {"int8": (-128, 127), "uint8": (0, 255)}.get(name, (None, None))
    if low is None or high is None:
        raise GraphError(f"quantize: opkit has no {name}", location=here(), help="int8 or uint8")
    whole = scaled.apply("round").apply("clamp", low=float(low), high=float(high))
    return whole.apply("cast", dtype=name)


def _dequantize(
    x: Traced, scale: Traced, otype: object, axis: int, zero_points: Traced | None = None
) -> Traced:
    value = x.apply("cast", dtype=dtype_name(otype))
    if zero_points is not None:
        value = value + _beside(zero_points, x, axis)
    return value * _beside(scale, x, axis)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: _renamed(name) for name in ("atan", "atan2", "tan", "exp2", "log2", "log10", "fmod")},
    **{name: _renamed(name) for name in ("sinh", "cosh", "asinh", "atanh")},
    **{
        name: _renamed(operator)
        for name, operator in {
            **{"eq": "equal", "ne": "not_equal", "lt": "less", "le": "less_equal"},
            **{
                "gt": "greater",
                "greater": "greater",
                "ge": "greater_equal",
                "floor_div": "floor_divide",
            },
            **{name: name for name in ("bitwise_and", "bitwise_or", "bitwise_xor", "bitwise_not")},
        }.items()
    },
    "remainder": _remainder,
    "asin": _asin,
    "acos": _acos,
    "acosh": _acosh,
    "hypot": _hypot,
    "lrelu": lambda x, negative_slope=0.01: x.apply("leaky_relu", slope=float(negative_slope)),
    "prelu": _prelu,
    "isfinite": _is_finite,
    "isnan": _is_nan,
    "round": _round,
    "arange": _arange,
    "pad": _pad,
    "permute": lambda x, perm: x.transpose(*perm),
    "cbrt": _cbrt,
    "signbit": _sign_bit,
    "cumprod": lambda x, dim: x.apply("cumprod", axis=dim),
    "prod": lambda x, dim, keepdim=False: x.apply("prod", axis=dim, keepdims=keepdim),
    "cumsum": lambda x, dim: x.apply("cumsum", axis=dim),
    "expand_exp_dif": lambda x, other: (x - other).apply("exp"),
    "uniform": _drawn("random_uniform"),
    "normal": _drawn("random_normal"),
    "quantize": _quantize,
    "dequantize": _dequantize,
}
