"""How functions that the vector unit lacks are computed in float32 from those that it has.

One function each: a value to the formula that gives it, in exp, log, sqrt, abs, arithmetic and
choice. `u` is taken as one value, which is computed once. Errors are of the largest in float32 with
correctly rounded instructions, measured by tests/scaffold/formula/test_lowerings.py.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from opkit.algebra import (
    ONE,
    Node,
    add,
    call,
    coefficient_of,
    divide,
    negate,
    number,
    power,
    product,
    subtract,
)

__all__ = ["LOWERINGS", "opaque"]

# Below this |u|, tanh(u) comes from its continued fraction: there 1 - 2/(exp(2u) + 1) cancels.
_TANH_SMALL = Fraction(1, 2)
# tanh(softplus(u)) is 1 in float32 long before, and exp(20)**2 does not overflow.
_MISH_LIMIT = 20


def opaque(node: Node) -> Node:
    """Return a value that no folding takes apart, so that it is computed once."""
    return node if not node.args or node.kind == "opaque" else Node("opaque", (node,))


def _magnitude(u: Node) -> Node:
    """Return |u|, the same for -u: what is computed of it is then shared between the two."""
    inner = u.args[0] if u.kind == "opaque" else u
    return call("abs", opaque(negate(inner)) if coefficient_of(inner)[0] < 0 else u)


def _poly(q: Node, *coefficients: int | Fraction) -> Node:
    """Return c[0] + c[1]*q + c[2]*q**2 + ... by Horner's scheme."""
    value = number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        value = add(opaque(product(value, q)), number(coefficient))
    return value


def _tanh_fraction(u: Node) -> tuple[Node, Node]:
    """Return numerator/u and denominator of tanh's continued fraction, u/(1 + u^2/(3 + u^2/(5 +
    u^2/(7 + u^2/9))))."""
    q = opaque(power(u, 2))
    return _poly(q, 945, 105, 1), _poly(q, 945, 420, 15)


def _tanh_large(u: Node) -> Node:
    # For large |u| exp saturates to 0 or infinity, and both give the right limit.
    return subtract(ONE, divide(number(2), add(call("exp", product(number(2), u)), ONE)))


def _tanh(u: Node) -> Node:
    numerator, denominator = _tanh_fraction(u)
    small = divide(product(u, opaque(numerator)), opaque(denominator))
    return call("where", _within(u, _TANH_SMALL), small, _tanh_large(u))


def _tanhshrink(u: Node) -> Node:
    # u - tanh(u) of the same fraction, its leading terms cancelled by hand.
    q = opaque(power(u, 2))
    fraction = divide(product(u, q, opaque(_poly(q, 315, 14))), opaque(_poly(q, 945, 420, 15)))
    large = subtract(u, opaque(_tanh_large(u)))
    return call("where", _within(u, Fraction(11, 20)), fraction, large)


def _sigmoid(u: Node) -> Node:
    return power(add(ONE, call("exp", negate(u))), -1)


def _log_one_plus(z: Node, *, may_exceed_one: bool = True) -> Node:
    """log(1 + z) = log(w) + (z - (w - 1)) with w the rounded 1 + z: what rounding lost is added.

    Zero for -0, as log(1 + z) has it.
    """
    w = opaque(add(z, ONE))
    lost = subtract(z, opaque(subtract(w, ONE)))
    if may_exceed_one:
        # Above 1 the loss counts for less than the rounding of log(w).
        bounded = opaque(call("minimum", z, ONE))
        lost = subtract(bounded, opaque(subtract(opaque(add(bounded, ONE)), ONE)))
    return add(call("log", w), opaque(lost))


def _log1p(z: Node) -> Node:
    return call("where", call("==", z, number(0)), z, _log_one_plus(z))


def _softplus(u: Node) -> Node:
    z = opaque(call("exp", negate(_magnitude(u))))
    logarithm = _log_one_plus(z, may_exceed_one=False)
    return add(call("maximum", u, number(0)), opaque(logarithm))


def _log_sigmoid(u: Node) -> Node:
    # minimum(u, 0) - log(1 + z): 0 and not -0 where nothing is left of z, as log(1) has it.
    z = opaque(call("exp", negate(_magnitude(u))))
    logarithm = _log_one_plus(z, may_exceed_one=False)
    return subtract(call("minimum", u, number(0)), opaque(logarithm))


def _expm1(u: Node) -> Node:
    # exp(u) - 1 = 2t/(1 - t) with t = tanh(u/2).
    half = opaque(product(number(Fraction(1, 2)), u))
    numerator, denominator = _tanh_fraction(half)
    top = opaque(product(half, opaque(numerator)))
    small = divide(product(number(2), top), opaque(subtract(opaque(denominator), top)))
    return call("where", _within(u, 2 * _TANH_SMALL), small, subtract(call("exp", u), ONE))


def _sinh_small(u: Node) -> Node:
    q = opaque(power(u, 2))
    series = [Fraction(1, n) for n in (1, 6, 120, 5040, 362880)]
    return product(u, opaque(_poly(q, *series)))


def _halves(u: Node) -> tuple[Node, Node]:
    half = number(Fraction(1, 2))
    return product(half, call("exp", u)), product(half, call("exp", negate(u)))


def _sinh(u: Node) -> Node:
    up, down = _halves(u)
    return call("where", _within(u, Fraction(1)), _sinh_small(u), subtract(up, down))


def _cosh(u: Node) -> Node:
    return add(*_halves(u))


def _logcosh(u: Node) -> Node:
    # 2*sinh(u/2)**2 = cosh(u) - 1.
    sinh = opaque(_sinh_small(opaque(product(number(Fraction(1, 2)), u))))
    excess = opaque(product(number(2), sinh, sinh))
    small = _log_one_plus(excess, may_exceed_one=False)
    magnitude = opaque(_magnitude(u))
    z = opaque(call("exp", product(number(-2), magnitude)))
    tail = opaque(_log_one_plus(z, may_exceed_one=False))
    log2 = call("log", number(2))
    large = add(opaque(subtract(magnitude, log2)), tail)
    return call("where", _within(u, Fraction(1)), small, large)


def _asinh(u: Node) -> Node:
    a = opaque(call("abs", u))
    square = opaque(power(a, 2))
    root = opaque(call("sqrt", add(square, ONE)))
    middle = _log_one_plus(opaque(add(a, opaque(divide(square, opaque(add(root, ONE)))))))
    # Where a**2 overflows, the 1 beside it counts for nothing.
    large = add(call("log", a), call("log", number(2)))
    positive = opaque(call("where", call("<", a, number(2**32)), middle, large))
    small = product(u, opaque(_poly(opaque(power(u, 2)), 1, Fraction(-1, 6))))
    return call("where", _within(u, Fraction(1, 64)), small, _with_sign_of(u, positive))


def _atanh(u: Node) -> Node:
    a = opaque(call("abs", u))
    ratio = opaque(divide(product(number(2), a), opaque(subtract(ONE, a))))
    positive = opaque(product(number(Fraction(1, 2)), opaque(_log_one_plus(ratio))))
    small = product(u, opaque(_poly(opaque(power(u, 2)), 1, Fraction(1, 3))))
    return call("where", _within(u, Fraction(1, 64)), small, _with_sign_of(u, positive))


def _tanh_softplus(u: Node) -> Node:
    z = opaque(call("exp", call("minimum", u, number(_MISH_LIMIT))))
    n = opaque(product(z, opaque(add(z, number(2)))))
    return divide(n, opaque(add(n, number(2))))


def _sign(u: Node) -> Node:
    # Scaling twice lifts even the smallest subnormal above 1; -0 ends as 0.
    large = number(10**38)
    once = opaque(_clamp(opaque(product(large, u))))
    return add(opaque(_clamp(opaque(product(large, once)))), number(0))


def _clamp(u: Node) -> Node:
    return call("maximum", call("minimum", u, ONE), number(-1))


def _within(u: Node, limit: Fraction) -> Node:
    return call("<", call("abs", u), number(limit))


def _with_sign_of(u: Node, magnitude: Node) -> Node:
    return call("where", call("<", u, number(0)), negate(magnitude), magnitude)


LOWERINGS: dict[str, Callable[[Node], Node]] = {
    "tanh": _tanh,
    "tanhshrink": _tanhshrink,
    "sigmoid": _sigmoid,
    "softplus": _softplus,
    "log_one_plus": _log_one_plus,
    "log1p": _log1p,
    "log_sigmoid": _log_sigmoid,
    "expm1": _expm1,
    "sinh": _sinh,
    "cosh": _cosh,
    "logcosh": _logcosh,
    "asinh": _asinh,
    "atanh": _atanh,
    "tanh_softplus": _tanh_softplus,
    "sign": _sign,
}
"""What each function of one value stands for; `u` should be `opaque`."""
