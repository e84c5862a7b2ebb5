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
    *("cosh", "cyl_bessel_i0", "div_rn", "erf", "erfc", "erfinv", "exp", "exp2", "expm1"),
    *("fabs", "abs", "fast_dividef", "fast_expf", "finitef", "floor", "fma", "gamma", "hypot"),
    *("isfinited", "isinf", "isnan", "lgamma", "log", "log10", "log1p", "log2", "nearbyint"),
    *("nextafter", "pow", "relu", "rint", "round", "rsqrt", "signbit", "sin", "sinh", "sqrt"),
    *("tan", "tanh", "tgamma", "trunc"),
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


@triton.jit  # type: ignore[untyped-decorator]
def _next(x, y, kind: tl.constexpr, least: tl.constexpr):  # type: ignore[no-untyped-def]
    """The next float, by whole numbers of its width and the bits of the least below zero."""
    bits = x.to(kind, bitcast=True)
    away = (x < y) == (x > 0)
    step = tl.where(away, bits + 1, bits - 1).to(kind).to(x.dtype, bitcast=True)
    first = tl.where(y > 0, 1, least).to(kind).to(x.dtype, bitcast=True)
    moved = tl.where(x == 0, first, step)
    moved = tl.where(x == y, y, moved)
    return tl.where(isnan(x) | isnan(y), x + y, moved)


@triton.jit
def nextafter(x, y):  # type: ignore[no-untyped-def]
    """The next float of the first's type towards the second."""
    is_half: tl.constexpr = x.dtype.primitive_bitwidth == 16
    kind: tl.constexpr = tl.int16 if is_half else tl.int32
    least: tl.constexpr = -32767 if is_half else -2147483647
    return _next(x, y, kind, least)


@triton.jit
def erfinv(x):  # type: ignore[no-untyped-def]
    """What erf gives x for: two steps of Newton from a closed form."""
    wide = x.to(tl.float32)
    size = tl.abs(wide)
    rest = 1 - size
    # erf(y) is near sqrt(1 - exp(-y * y * (4 / pi + a * y * y) / (1 + a * y * y))), solved for y.
    log = tl.log(tl.where(rest > 0, rest * (1 + size), 1.0))
    half = 4.3307467508 + log * 0.5
    root = tl.sqrt(tl.maximum(tl.sqrt(half * half - log * 6.8027210884) - half, 0.0))
    for _ in tl.static_range(3):
        error = tl.where(size < 0.5, size - tl.erf(root), erfc(root) - rest)
        root = root + error * 0.8862269254527580 * tl.exp(root * root)
    root = tl.where(size == 1, float("inf"), root)
    root = tl.where(size > 1, float("nan"), root)
    return copysign(root, wide).to(x.dtype)


@triton.jit
def _log_gamma(x):  # type: ignore[no-untyped-def]
    """log(gamma(x)) of x > 0: Stirling's series from 8 on, nearer by gamma(x + 1) = x gamma(x)."""
    product = x
    for step in tl.static_range(1, 8):
        product = product * (x + step)
    far = tl.where(x < 8, x + 8, x)
    part = 1 / far
    square = part * part
    series = part * (0.0833333333333 + square * (-0.00277777777778 + square * 0.000793650793651))
    log = (far - 0.5) * tl.log(far) - far + 0.918938533204673 + series
    return tl.where(x < 8, log - tl.log(tl.where(x < 8, product, 1.0)), log)


@triton.jit
def _sine_of_turns(x):  # type: ignore[no-untyped-def]
    """sin(pi * x), exactly 0 of whole numbers."""
    whole = tl.floor(x + 0.5)
    sine = tl.sin((x - whole) * 3.14159265358979)
    return tl.where(whole - 2 * tl.floor(whole * 0.5) == 1, -sine, sine)


@triton.jit
def lgamma(x):  # type: ignore[no-untyped-def]
    """The logarithm of gamma's magnitude; its error is some 1e-6, near its zeros too."""
    wide = x.to(tl.float32)
    log = _log_gamma(tl.where(wide > 0, wide, 1 - wide))
    sine = tl.abs(_sine_of_turns(wide))
    below = tl.log(3.14159265358979 / tl.where(sine == 0, 1.0, sine)) - log
    result = tl.where(wide > 0, log, tl.where(sine == 0, float("inf"), below))
    return tl.where(isinf(wide), float("inf"), result).to(x.dtype)


@triton.jit
def gamma(x):  # type: ignore[no-untyped-def]
    """The gamma function; no number of whole numbers below zero."""
    wide = x.to(tl.float32)
    size = tl.exp(_log_gamma(tl.where(wide > 0, wide, 1 - wide)))
    sine = _sine_of_turns(wide)
    below = 3.14159265358979 / (tl.where(sine == 0, 1.0, sine) * size)
    none = tl.where(wide == 0, copysign(float("inf") + 0 * wide, wide), float("nan"))
    result = tl.where(wide > 0, size, tl.where(sine == 0, none, below))
    return tl.where(wide == float("inf"), wide, result).to(x.dtype)


tgamma = gamma


@triton.jit
def cyl_bessel_i0(x):  # type: ignore[no-untyped-def]
    """The modified Bessel function of order 0: its series, from 12 on its expansion."""
    size = tl.abs(x.to(tl.float32))
    quarter = size * size * 0.25
    near = 1.0 + 0 * size
    for step in tl.static_range(24):
        near = 1 + near * quarter / ((24 - step) * (24 - step))
    eighth = 0.125 / tl.where(size < 12, 12.0, size)
    far = 1.0 + 0 * size
    for step in tl.static_range(8):
        far = 1 + far * eighth * ((15 - 2 * step) * (15 - 2 * step)) / (8 - step)
    # The root of exp twice: exp itself overflows before the function does.
    root = tl.exp(size * 0.5)
    far = root * (far / tl.sqrt(6.28318530717959 * tl.where(size < 12, 12.0, size))) * root
    far = tl.where(size == float("inf"), size, far)
    return tl.where(size < 12, near, far).to(x.dtype)


def _power(base: Any, exponent: Any, _semantic: Any = None) -> Any:
    """Powers of floats."""
    base, exponent = _semantic.to_tensor(base), _semantic.to_tensor(exponent)
    kind = base.type.scalar
    if not kind.is_floating():
        raise ValueError(f"libdevice.pow takes floats, not {kind}")
    base, exponent = _semantic.broadcast_impl_value(
        base, _semantic.cast(exponent, _of(exponent, kind))
    )
    symbols = {(each, each): ("pow", each) for each in _FLOATS}
    return core.extern_elementwise(
        "opkit", "", [base, exponent], symbols, is_pure=True, _semantic=_semantic
    )


_power.__name__ = "pow"
pow = core.builtin(_power)


def _of(value: Any, kind: Any) -> Any:
    return value.type.with_element_ty(kind) if value.type.is_block() else kind


def __getattr__(name: str) -> Any:
    raise AttributeError(f"libdevice.{name}: opkit has no such function of elements")
