"""Recognise a polynomial in one value, so that it can be lowered by Horner's scheme."""

from __future__ import annotations

from dataclasses import dataclass

from .evaluate import evaluate
from .nodes import ZERO, Node, as_power, factors_of, product, terms_of

__all__ = ["Polynomial", "match_polynomial"]


@dataclass(frozen=True)
class Polynomial:
    """base**lowest * (c[0] + c[1]*q + c[2]*q**2 + ...) with q = base**stride."""

    base: Node
    coefficients: tuple[Node, ...]
    """Known when the kernel is generated."""
    stride: int
    lowest: int


def match_polynomial(node: Node) -> Polynomial | None:
    """Return a sum, or a number times a sum, as a polynomial with two or more terms, one of degree
    2 or more; else None.

    None too where Horner's scheme would not give what the sum gives at an infinity: x**2 - x is NaN
    there, x*(x - 1) is not.
    """
    factor, total = _constant_part(node)
    if total.kind != "sum":
        return None
    powers: dict[int, Node] = {}
    base: Node | None = None
    for term in terms_of(total):
        coefficient, rest = _constant_part(term)
        degree = 0
        if not term.is_constant:
            own, exponent = as_power(rest)
            if own.kind in ("product", "sum") or exponent.denominator != 1 or exponent < 0:
                return None
            if base is not None and own != base:
                return None
            base, degree = own, int(exponent)
        else:
            coefficient = term
        if degree in powers:
            return None
        powers[degree] = product(coefficient, factor)
    if base is None or base.space == "uniform" or max(powers) < 2 or len(powers) < 2:
        return None
    variable = {degree: evaluate(c) for degree, c in powers.items() if degree}
    one_sign = len({c > 0 for c in variable.values()}) == 1 and 0 not in variable.values()
    if not one_sign or len({degree % 2 for degree in variable}) > 1:
        return None
    lowest = min(powers)
    even = all((degree - lowest) % 2 == 0 for degree in powers)
    stride = 2 if even else 1
    count = (max(powers) - lowest) // stride + 1
    coefficients = tuple(powers.get(lowest + k * stride, ZERO) for k in range(count))
    return Polynomial(base, coefficients, stride, lowest)


def _constant_part(node: Node) -> tuple[Node, Node]:
    """Return the factors that are known when the kernel is generated, and the others."""
    constants = [factor for factor in factors_of(node) if factor.is_constant]
    others = [factor for factor in factors_of(node) if not factor.is_constant]
    return product(*constants), product(*others)
