"""A sum with the factors that its terms share outside."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

from .nodes import (
    Node,
    add,
    as_power,
    coefficient_of,
    factors_of,
    negate,
    number,
    power,
    product,
    terms_of,
)

__all__ = ["collect"]

_Factor = tuple[Node, int]


def collect(terms: Sequence[Node]) -> Node:
    """Return the sum of terms: what most of them share is taken out of those, and so on inside.

    g*s + g*x*s*t becomes g*s*(1 + x*t).
    """
    if len(terms) == 1:
        return terms[0]
    terms = _opened(terms)
    powers = [_powers(term) for term in terms]
    shared: dict[_Factor, int] = {}
    for one in powers:
        for factor in one:
            shared[factor] = shared.get(factor, 0) + 1
    most = max(shared.values(), default=0)
    if most < 2:
        return add(*terms)
    # The first written of the most shared, so that the text does not depend on hashes.
    chosen = next(factor for one in powers for factor in one if shared[factor] == most)
    group = [term for term, one in zip(terms, powers, strict=True) if chosen in one]
    rest = [term for term, one in zip(terms, powers, strict=True) if chosen not in one]
    base, sign = chosen
    step = min(abs(_powers(term)[chosen]) for term in group)
    taken = power(base, sign * step)
    inner = collect([_divided(term, chosen, step) for term in group])
    if coefficient_of(inner)[0] == 0:
        # Left for its infinities and NaN only: the others are added up as they were alone.
        return add(*rest, product(taken, inner))
    return add(product(taken, inner), *rest)


def _opened(terms: Sequence[Node]) -> list[Node]:
    """Return the terms, and of each sum that is taken off its own terms where one of them cancels
    another term: a - (a + b) is rounded at a + b otherwise, and its 0 is noise."""
    found: list[Node] = []
    for number_of, term in enumerate(terms):
        coefficient, rest = coefficient_of(term)
        if coefficient != -1 or rest.kind != "sum":
            found.append(term)
            continue
        others = {
            one
            for index, other in enumerate(terms)
            if index != number_of
            for one in terms_of(other)
            if not one.is_number
        }
        if others & set(rest.args):
            found += [negate(one) for one in rest.args]
        else:
            found.append(term)
    return found


def _powers(term: Node) -> dict[_Factor, int]:
    """Return the factors of a term that are no numbers: base and sign of the exponent, and it."""
    found: dict[_Factor, int] = {}
    for factor in factors_of(coefficient_of(term)[1]):
        if factor.is_number:
            continue
        base, exponent = as_power(factor)
        if exponent.denominator != 1:
            base, exponent = factor, Fraction(1)
        key = (base, 1 if exponent > 0 else -1)
        found[key] = found.get(key, 0) + int(exponent)
    return found


def _divided(term: Node, chosen: _Factor, step: int) -> Node:
    coefficient, _ = coefficient_of(term)
    left = [number(coefficient)]
    for (base, sign), exponent in _powers(term).items():
        taken = sign * step if (base, sign) == chosen else 0
        left.append(power(base, exponent - taken))
    return product(*left)
