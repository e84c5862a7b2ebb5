"""What algebra allows and IEEE 754 does not: for operators that say `"fast_math": true`."""

from __future__ import annotations

from fractions import Fraction

from .nodes import (
    ZERO,
    Node,
    add,
    as_power,
    call,
    coefficient_of,
    factors_of,
    number,
    power,
    product,
    rebuild,
    terms_of,
)

__all__ = ["simplify"]


def simplify(node: Node, known: dict[Node, Node] | None = None) -> Node:
    """Return a value with like terms and like factors joined, `x - x` gone, `exp(log(x))` just x.

    It may differ where an argument is NaN, infinite, a zero with a sign, or outside of a function's
    domain: sqrt(x)*sqrt(x) becomes x, also for -4.
    """
    known = {} if known is None else known
    if not node.args:
        return node
    if node not in known:
        known[node] = _join(rebuild(node, tuple(simplify(arg, known) for arg in node.args)))
    return known[node]


def _join(node: Node) -> Node:
    if not node.args:
        return node
    if node.kind == "sum":
        return _sum(node)
    if node.kind in ("product", "power"):
        return _product(node)
    inner = node.args[0]
    inverse = {"exp": "log", "log": "exp"}.get(node.kind)
    if inverse is not None and inner.kind == inverse:
        return inner.args[0]
    return node


def _sum(node: Node) -> Node:
    terms: dict[Node, Fraction] = {}
    for term in terms_of(node):
        coefficient, rest = coefficient_of(term)
        terms[rest] = terms.get(rest, Fraction(0)) + coefficient
    left = [product(number(c), rest) for rest, c in terms.items() if c]
    return add(*left) if left else ZERO


def _product(node: Node) -> Node:
    coefficient = Fraction(1)
    powers: dict[Node, Fraction] = {}
    exponents: list[Node] = []
    for factor in factors_of(node):
        if factor.is_number:
            coefficient *= factor.fraction
            continue
        base, exponent = as_power(factor)
        if base.kind == "exp":
            exponents.append(product(number(exponent), base.args[0]))
            continue
        if base.kind == "sqrt":
            base, exponent = base.args[0], exponent / 2
        powers[base] = powers.get(base, Fraction(0)) + exponent
    if coefficient == 0:
        return ZERO
    if exponents:
        total = _sum(add(*exponents))
        if total != ZERO:
            powers[call("exp", total)] = Fraction(1)
    return product(number(coefficient), *(_root(base, e) for base, e in powers.items() if e))


def _root(base: Node, exponent: Fraction) -> Node:
    if exponent.denominator == 2:
        return power(call("sqrt", base), exponent.numerator)
    return power(base, exponent)
