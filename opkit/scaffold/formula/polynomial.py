"""Recognise a polynomial in one value, so that it can be lowered by Horner's scheme."""

from __future__ import annotations

from dataclasses import dataclass

import sympy

__all__ = ["Polynomial", "match_polynomial"]


@dataclass(frozen=True)
class Polynomial:
    """generator**lowest * (c[0] + c[1]*q + c[2]*q**2 + ...) with q = generator**stride."""

    generator: sympy.Expr
    coefficients: tuple[sympy.Expr, ...]
    stride: int
    lowest: int


def match_polynomial(expression: sympy.Expr) -> Polynomial | None:
    """Return a sum, or a number times a sum, as a polynomial with two or more terms of numbers;
    else None."""
    factor, total = expression.as_independent(*expression.free_symbols, as_Add=False)
    if not isinstance(total, sympy.Add) or factor.free_symbols:
        return None
    powers: dict[int, sympy.Expr] = {}
    generator: sympy.Expr | None = None
    for term in total.args:
        coefficient, rest = term.as_independent(*expression.free_symbols, as_Add=False)
        base, exponent = rest.as_base_exp()
        if rest == 1:
            base, exponent = generator, sympy.Integer(0)
        elif not (exponent.is_Integer and exponent > 0) or base == sympy.E:
            base, exponent = rest, sympy.Integer(1)
        if rest != 1 and isinstance(base, sympy.Mul | sympy.Add):
            return None
        if generator is not None and base is not None and base != generator:
            return None
        generator = base if base is not None else generator
        power = int(exponent)
        powers[power] = powers.get(power, sympy.Integer(0)) + coefficient * factor
    if generator is None or max(powers) < 2 or len(powers) < 2:
        return None
    lowest = min(powers)
    even = all((power - lowest) % 2 == 0 for power in powers)
    stride = 2 if even else 1
    count = (max(powers) - lowest) // stride + 1
    coefficients = tuple(powers.get(lowest + k * stride, sympy.Integer(0)) for k in range(count))
    return Polynomial(generator, coefficients, stride, lowest)
