"""Functions of elements that Triton programs take from a device's library, by their names there.

Triton finds them under `triton.language.extra.libdevice`, which it maps to a backend's own module.
"""

from __future__ import annotations

from typing import Any

import triton
import triton.language as tl
from triton.language import core

__all__ = [
    *("acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "ceil", "copysign", "cos"),
    *("cosh", "div_rn", "erf", "erfc", "exp", "exp2", "expm1", "fabs", "abs", "fast_dividef"),
    *("fast_expf", "finitef", "floor", "fma", "hypot", "isfinited", "isinf", "isnan", "log"),
    *("log10", "log1p", "log2", "nearbyint", "nextafter", "relu", "rint", "round"),
    *("rsqrt", "signbit", "sin", "sinh", "sqrt", "tan", "tanh", "trunc"),
]

_FLOATS = (core.float32, core.float16, core.bfloat16)


def _unary(name: str) -> Any:
    """Return the builtin that calls the kernel library's function of a name."""
    symbols = {(kind,): (name, kind) for kind in _FLOATS}

    def call(x: Any, _semantic: Any = None) -> Any:
        return core.extern_elementwise("opkit", "", [x], symbols, is_pure=True, _semantic=_semantic)

    call.__name__ = name
    return core.builtin(call)


acos, acosh, asin, asinh, atan, atanh = map(
    _unary, ("acos", "acosh", "asin", "asinh", "atan", "atanh")
)
cosh, sinh, tan, tanh = map(_unary, ("cosh", "sinh", "tan", "tanh"))
erfc, log10 = map(_unary, ("erfc", "log10"))
rint, round, trunc = map(_unary, ("rint", "round", "trunc"))
nearbyint = rint
abs = fabs = tl.abs
ceil, cos, erf, exp, exp2 = tl.ceil, tl.cos, tl.erf, tl.exp, tl.exp2
floor, fma, log, log2 = tl.floor, tl.fma, tl.log, tl.log2
rsqrt, sin, sqrt, div_rn = tl.rsqrt, tl.sin, tl.sqrt, tl.div_rn
fast_expf = tl.exp


@triton.jit
def isnan(x):  # type: ignore[no-untyped-def]
    """Whether elements are no numbers."""
    return x != x


@triton.jit
def isinf(x):  # type: ignore[no-untyped-def]
    """Whether elements are infinite."""
    return (x == float("inf")) | (x == -float("inf"))


@triton.jit
def isfinited(x):  # type: ignore[no-untyped-def]
    """Whether elements are finite numbers."""
    return (x - x) == 0


finitef = isfinited


@triton.jit
def fast_dividef(x, y):  # type: ignore[no-untyped-def]
    """Quotients."""
    return x / y


@triton.jit
def relu(x):  # type: ignore[no-untyped-def]
    """What is greater than zero, zero elsewhere; no number stays none."""
    return tl.where(x <= 0, 0.0, x).to(x.dtype)


@triton.jit
def signbit(x):  # type: ignore[no-untyped-def]
    """Whether the sign is set, also that of zero."""
    return x.to(tl.float32).to(tl.int32, bitcast=True) < 0


@triton.jit
def copysign(x, y):  # type: ignore[no-untyped-def]
    """The first's magnitude with the second's sign."""
    size = tl.abs(x)
    return tl.where(signbit(y), -size, size)


@triton.jit
def log1p(x):  # type: ignore[no-untyped-def]
    """log(1 + x), as exact for small x."""
    wide = x.to(tl.float32)
    sum = wide + 1
    # What 1 + x lost is made up for by the ratio.
    ratio = tl.log(sum) * (wide / tl.where(sum == 1, 1.0, sum - 1))
    ratio = tl.where(sum == float("inf"), sum, ratio)
    return tl.where(sum == 1, wide, ratio).to(x.dtype)


@triton.jit
def expm1(x):  # type: ignore[no-untyped-def]
    """exp(x) - 1, as exact for small x."""
    wide = x.to(tl.float32)
    power = tl.exp(wide)
    less = power - 1
    ratio = less * (wide / tl.where(power == 1, 1.0, tl.log(power)))
    ratio = tl.where((power == 0) | (power == float("inf")), less, ratio)
    return tl.where(power == 1, wide, ratio).to(x.dtype)


@triton.jit
def hypot(x, y):  # type: ignore[no-untyped-def]
    """The length of a vector, without overflow on the way."""
    a, b = tl.abs(x.to(tl.float32)), tl.abs(y.to(tl.float32))
    large, small = tl.maximum(a, b), tl.minimum(a, b)
    ratio = small / tl.where(large == 0, 1.0, large)
    length = large * tl.sqrt(1 + ratio * ratio)
    length = tl.where(large == float("inf"), large, length)
    unknown = (isnan(x) | isnan(y)) & (large != float("inf"))
    return tl.where(unknown, float("nan"), length).to(x.dtype)


@triton.jit
def atan2(y, x):  # type: ignore[no-untyped-def]
    """The angle of a vector, in its quadrant."""
    a, b = y.to(tl.float32), x.to(tl.float32)
    both = isinf(a) & isinf(b)
    ratio = tl.where(both, 1.0, tl.abs(a) / tl.abs(b))
    angle = tl.where((a == 0) & (b == 0), 0.0, atan(ratio))
    angle = tl.where(signbit(b), 3.14159265358979 - angle, angle)
    angle = tl.where(isnan(a) | isnan(b), float("nan"), angle)
    return copysign(angle, a).to(y.dtype)


@triton.jit
def nextafter(x, y):  # type: ignore[no-untyped-def]
    """The next float32 from the first towards the second."""
    bits = x.to(tl.int32, bitcast=True)
    away = (x < y) == (x > 0)
    step = tl.where(away, bits + 1, bits - 1).to(tl.float32, bitcast=True)
    least = tl.where(y > 0, 1, -2147483647).to(tl.int32).to(tl.float32, bitcast=True)
    moved = tl.where(x == 0, least, step)
    moved = tl.where(x == y, y, moved)
    return tl.where(isnan(x) | isnan(y), x + y, moved)


def __getattr__(name: str) -> Any:
    raise AttributeError(f"libdevice.{name}: opkit has no such function of elements")
