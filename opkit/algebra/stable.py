"""Rewrite a formula into the equal form that keeps its relative accuracy and does not overflow in
float32.

Equal means for every value: where the better form would lose the NaN that an infinity has as
written, or the sign of a zero, it is wrapped. `guard(v, m)` is v + (m - m), NaN where m is
infinite; `plus_zero(v)` is v + 0. With `fast_math` the better form stands alone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from fractions import Fraction

from .evaluate import evaluate
from .nodes import (
    ONE,
    REDUCTIONS,
    ZERO,
    Node,
    add,
    as_power,
    call,
    coefficient_of,
    factors_of,
    negate,
    number,
    power,
    product,
    rebuild,
    terms_of,
)

__all__ = ["stabilise"]

# f(-u) = -f(u), also at zeros: one of them is enough.
_ODD = frozenset({"tanh", "sinh", "asinh", "atanh"})


def stabilise(node: Node, *, fast_math: bool = False) -> Node:
    """Return an equal value without the cancellations and overflows that have a known better form.

    1 + tanh(u) becomes 2*sigmoid(2*u), exp(u) - 1 becomes expm1(u), log(1 + exp(u)) becomes
    softplus(u), and so on.

    Args:
        fast_math: let go of what NaN, infinities and signed zeros would be.
    """
    return _Rewriter(fast_math).rewrite(node)


class _Rewriter:
    def __init__(self, fast_math: bool) -> None:
        self.fast_math = fast_math
        self.known: dict[Node, Node] = {}

    def rewrite(self, node: Node) -> Node:
        if not node.args:
            return node
        if node not in self.known:
            rebuilt = rebuild(node, tuple(self.rewrite(argument) for argument in node.args))
            self.known[node] = self.improve(rebuilt)
        return self.known[node]

    def improve(self, node: Node) -> Node:
        if node.kind == "sum":
            return self.sum(node)
        if node.kind == "product":
            return self.product(node)
        if node.kind == "power":
            return self.power(node)
        if node.kind == "log":
            return self.log(node)
        if node.kind in _ODD and coefficient_of(node.args[0])[0] < 0:
            return negate(self.improve(call(node.kind, negate(node.args[0]))))
        if node.kind == "tanh" and node.args[0].kind == "softplus":
            return call("tanh_softplus", *node.args[0].args)
        if node.kind == "log1p" and node.args[0].kind == "exp":
            return call("softplus", *node.args[0].args)
        return node

    def plus_zero(self, node: Node) -> Node:
        return node if self.fast_math else Node("plus_zero", (node,))

    def guard(self, node: Node, infinite: Node) -> Node:
        return node if self.fast_math else Node("guard", (node, infinite))

    # Sums

    def sum(self, node: Node) -> Node:
        for better in (self.with_number, self.mirrored, self.shrunk, self.log_of_cosh):
            found = better(node)
            if found is not None:
                return found
        return node

    def with_number(self, node: Node) -> Node | None:
        """Match `c + k*f` for the functions whose distance from 1 or -1 has a form of its own."""
        constant = next((t.fraction for t in node.args if t.is_number), None)
        if not constant:
            return None
        for index, term in enumerate(node.args):
            coefficient, factor = coefficient_of(term)
            replacement = self.from_one(constant, coefficient, factor)
            if replacement is not None:
                rest = [t for i, t in enumerate(node.args) if i != index and not t.is_number]
                return add(replacement, *rest)
        return None

    def from_one(self, constant: Fraction, coefficient: Fraction, factor: Node) -> Node | None:
        """Return an accurate form of `constant + coefficient*factor`, where there is one."""
        same, opposite = coefficient == constant, coefficient == -constant
        found: Node | None = None
        if factor.kind == "tanh" and (same or opposite):
            u = factor.args[0] if same else negate(factor.args[0])
            found = product(number(2 * constant), call("sigmoid", product(number(2), u)))
        elif factor.kind == "erf" and (same or opposite):
            u = negate(factor.args[0]) if same else factor.args[0]
            found = product(number(constant), call("erfc", u))
        elif factor.kind == "sigmoid" and opposite:
            found = product(number(constant), call("sigmoid", negate(factor.args[0])))
        elif factor.kind == "sigmoid" and coefficient == -2 * constant:
            half = product(number(Fraction(1, 2)), factor.args[0])
            return self.plus_zero(product(number(-constant), self.improve(call("tanh", half))))
        elif factor.kind == "exp" and opposite:
            return self.plus_zero(product(number(coefficient), call("expm1", factor.args[0])))
        elif factor.kind == "sqrt" and opposite and _beside_one(factor.args[0]) is not None:
            root = product(number(coefficient), self.root_beside_one(factor))
            return self.plus_zero(root)
        elif opposite and as_power(factor)[1] == 2 and as_power(factor)[0].kind == "tanh":
            twice = product(number(2), as_power(factor)[0].args[0])
            pair = (call("sigmoid", twice), call("sigmoid", negate(twice)))
            found = product(number(4 * constant), *pair)
        elif coefficient == -4 * constant:
            # 1 - 4*sigmoid(u)*sigmoid(-u), which cancels near zero, is tanh(u/2)**2.
            u_or_none = _mirrored_pair(factors_of(factor))
            if u_or_none is not None:
                half = product(number(Fraction(1, 2)), u_or_none)
                found = product(number(constant), power(call("tanh", half), 2))
        # Where a negative form vanishes, the difference was 0, not -0.
        return self.plus_zero(found) if found is not None and constant < 0 else found

    def root_beside_one(self, root: Node) -> Node:
        """Return `sqrt(1 + u) - 1` as u/(sqrt(1 + u) + 1) where u is small."""
        u = _beside_one(root.args[0])
        assert u is not None
        small = product(u, power(add(root, ONE), -1))
        return call("where", call("<", u, ONE), small, add(root, number(-1)))

    def mirrored(self, node: Node) -> Node | None:
        """Match differences of a function at u and at -u, which cancel near zero."""
        for i, j, coefficient, u in _differences(node, "log_sigmoid"):
            found = product(number(coefficient), u)
            return add(self.plus_zero(found), *_without(node, i, j))
        for i, j, coefficient, u in _differences(node, "sigmoid"):
            half = product(number(Fraction(1, 2)), u)
            found = product(number(coefficient), call("tanh", half))
            return add(self.plus_zero(found), *_without(node, i, j))
        for i, j, coefficient, u in _differences(node, "exp"):
            found = product(number(2 * coefficient), call("sinh", u))
            return add(self.plus_zero(found), *_without(node, i, j))
        return None

    def shrunk(self, node: Node) -> Node | None:
        """Match `k*u - k*tanh(u)`."""
        for i, term in enumerate(node.args):
            coefficient, factor = coefficient_of(term)
            if factor.kind != "tanh":
                continue
            whole = product(number(-coefficient), factor.args[0])
            for j, other in enumerate(node.args):
                if other == whole:
                    found = product(number(-coefficient), call("tanhshrink", factor.args[0]))
                    return add(self.plus_zero(found), *_without(node, i, j))
        return None

    def log_of_cosh(self, node: Node) -> Node | None:
        """Match `u + softplus(-2*u) - log(2)`."""
        for i, tail in enumerate(node.args):
            if tail.kind != "softplus":
                continue
            u = product(number(Fraction(-1, 2)), tail.args[0])
            for j, other in enumerate(node.args):
                if other != u:
                    continue
                rest = _without(node, i, j)
                if len(rest) == 1 and rest[0].is_constant:
                    value = evaluate(rest[0])
                    if math.isclose(value, -math.log(2), rel_tol=1e-9):
                        return self.guard(call("logcosh", u), call("minimum", u, ZERO))
        return None

    # Products

    def product(self, node: Node) -> Node:
        factors = factors_of(node)
        for i, first in enumerate(factors):
            for j, second in enumerate(factors):
                found = self.pair(first, second) if i != j else None
                if found is not None:
                    rest = [f for k, f in enumerate(factors) if k not in (i, j)]
                    joined = product(found, *rest)
                    return self.product(joined) if joined.kind == "product" else joined
        return node

    def pair(self, first: Node, second: Node) -> Node | None:
        """Return an accurate form of a product of two factors, where there is one."""
        if first.kind == "exp" and second == call("sigmoid", negate(first.args[0])):
            # exp(u) overflows where sigmoid(-u) underflows; their product is sigmoid(u).
            u = first.args[0]
            return self.guard(call("sigmoid", u), call("maximum", u, ZERO))
        odd = first.args[0] if first.kind == "plus_zero" else first
        coefficient, function = coefficient_of(odd)
        if function.kind == "expm1" and second == call("sigmoid", negate(function.args[0])):
            # (exp(u) - 1)/(exp(u) + 1)
            u = function.args[0]
            tanh = self.improve(call("tanh", product(number(Fraction(1, 2)), u)))
            return self.guard(product(number(coefficient), tanh), call("maximum", u, ZERO))
        if function.kind == "sinh" and second.kind == "power" and second.args[1].fraction == -1:
            u = function.args[0]
            scale = _scale_of_cosh(second.args[0], u)
            if scale:
                tanh = product(number(coefficient / scale), call("tanh", u))
                return self.guard(tanh, u)
        return None

    # Logarithms

    def log(self, node: Node) -> Node:
        (argument,) = node.args
        if argument.kind == "exp":
            return self.plus_zero(argument.args[0])
        if argument.kind == "sigmoid":
            return call("log_sigmoid", argument.args[0])
        for better in (self.log_cosh, self.log_ratio, self.log_root, self.log_near_one):
            found = better(argument)
            if found is not None:
                return found
        return node

    def log_cosh(self, argument: Node) -> Node | None:
        """Match `log(cosh(u))` and `log((exp(u) + exp(-u))/2)`."""
        outer, inner = coefficient_of(argument)
        if inner.kind == "cosh":
            u, scale = inner.args[0], outer
        else:
            found = next((_exponent(t) for t in terms_of(inner) if _exponent(t)), None)
            if found is None:
                return None
            u, scale = found, outer * _scale_of_cosh(inner, found)
        if scale <= 0:
            return None
        logcosh = call("logcosh", u)
        return logcosh if scale == 1 else add(logcosh, call("log", number(scale)))

    def log_ratio(self, argument: Node) -> Node | None:
        """Match `log((1 + u)/(1 - u))`."""
        factors = factors_of(argument)
        if len(factors) != 2:
            return None
        for top, bottom in (factors, factors[::-1]):
            base, exponent = as_power(bottom)
            u = _beside_one(top)
            if exponent == -1 and u is not None and _beside_one(base) == negate(u):
                return self.plus_zero(product(number(2), call("atanh", u)))
        return None

    def log_root(self, argument: Node) -> Node | None:
        """Match `log(u + sqrt(u**2 + 1))`."""
        terms = terms_of(argument)
        if len(terms) != 2:
            return None
        for u, root in (terms, terms[::-1]):
            if root.kind == "sqrt" and _beside_one(root.args[0]) == power(u, 2):
                return self.guard(call("asinh", u), call("minimum", u, ZERO))
        return None

    def log_near_one(self, argument: Node) -> Node | None:
        """Match `log(1 + u)`."""
        u = _beside_one(argument)
        if u is None or u.space == "uniform":
            return None
        return call("softplus", *u.args) if u.kind == "exp" else call("log_one_plus", u)

    # Powers

    def power(self, node: Node) -> Node:
        base, exponent = node.args[0], node.args[1].fraction
        if exponent.denominator == 1 and base.kind == "exp":
            return call("exp", product(number(exponent), base.args[0]))
        u = _beside_one(base)
        if u is not None and u.kind == "exp" and exponent.denominator == 1 and exponent < 0:
            return power(call("sigmoid", negate(u.args[0])), -exponent)
        # x**0.5 and x**-0.5 are square roots, as they are in torch.
        if exponent.denominator == 1 or abs(exponent) == Fraction(1, 2) or self.fast_math:
            return node
        if _never_negative(base):
            return node
        # Roots and logarithms of minus infinity are NaN; its broken powers are infinite or 0.
        infinite = call("<", base, number(-_LARGEST))
        found = call("where", infinite, call("abs", base), power(base, abs(exponent)))
        return found if exponent > 0 else power(found, -1)


_LARGEST = (2**24 - 1) * 2**104
"""Float32's largest number."""


def _never_negative(node: Node) -> bool:
    """Return whether no element is below 0, by what the value is made of."""
    if node.is_number:
        return node.fraction >= 0
    if node.kind in ("abs", "exp", "sqrt", "softplus", "sigmoid", "relu", "cosh"):
        return True
    if node.kind == "power":
        exponent = node.args[1].fraction
        even = exponent.denominator == 1 and exponent.numerator % 2 == 0
        return even or _never_negative(node.args[0])
    if node.kind == "maximum":
        return any(_never_negative(argument) for argument in node.args)
    if node.kind in ("sum", "product", "minimum", *REDUCTIONS):
        return all(_never_negative(argument) for argument in node.args)
    return False


def _without(node: Node, *left_out: int) -> list[Node]:
    return [term for index, term in enumerate(node.args) if index not in left_out]


def _beside_one(node: Node) -> Node | None:
    """Return u of `1 + u`, None for anything else."""
    if node.kind != "sum" or ONE not in node.args:
        return None
    return add(*(term for term in node.args if term != ONE))


def _differences(node: Node, kind: str) -> Iterator[tuple[int, int, Fraction, Node]]:
    """Give where a sum has `c*f(u)` and `-c*f(-u)`, with c > 0, and u."""
    terms = [(i, *coefficient_of(term)) for i, term in enumerate(node.args)]
    terms = [(i, coefficient, factor) for i, coefficient, factor in terms if factor.kind == kind]
    for i, coefficient, factor in terms:
        for j, other, mirror in terms:
            if 0 < coefficient == -other:
                u = factor.args[0]
                if _are_opposite(u, mirror.args[0]):
                    yield i, j, coefficient, u


def _mirrored_pair(factors: Sequence[Node]) -> Node | None:
    """Return u of `sigmoid(u)*sigmoid(-u)`."""
    if len(factors) != 2 or any(factor.kind != "sigmoid" for factor in factors):
        return None
    u = factors[0].args[0]
    return u if _are_opposite(u, factors[1].args[0]) else None


def _are_opposite(u: Node, other: Node) -> bool:
    """Whether one is minus the other; y - x is minus x - y."""
    if other == negate(u):
        return True
    return u.kind == "sum" and other == add(*(negate(term) for term in u.args))


def _exponent(term: Node) -> Node | None:
    factor = coefficient_of(term)[1]
    return factor.args[0] if factor.kind == "exp" else None


def _scale_of_cosh(node: Node, u: Node) -> Fraction:
    """Return c of `c*cosh(u)`, also written with exponentials; 0 for anything else."""
    scale, inner = coefficient_of(node)
    if inner == call("cosh", u):
        return scale
    terms = terms_of(inner)
    parts = [coefficient_of(term) for term in terms]
    exponents = [factor.args[0] for _, factor in parts if factor.kind == "exp"]
    if len(parts) != 2 or len(exponents) != 2 or parts[0][0] != parts[1][0]:
        return Fraction(0)
    one, other = exponents
    is_cosh = _are_opposite(one, other) and (u in (one, other) or _are_opposite(one, u))
    return 2 * scale * parts[0][0] if is_cosh else Fraction(0)
