"""What kinds of float32 an operation may give: not how large, but zero, infinite, or no number.

Overflow turns a finite number into an infinite one, and only some of what follows makes NaN of
that: infinity less infinity, times zero, by infinity, the root of minus infinity. Sets of kinds are
carried through a formula to tell the two apart.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import IntFlag
from functools import cache
from itertools import product

__all__ = [
    "NOTHING",
    "Kinds",
    "absolute",
    "chosen_by",
    "compared",
    "divided",
    "larger_of",
    "multiplied",
    "negated",
    "of_function",
    "of_sign",
    "smaller_of",
    "summed",
]


class Kinds(IntFlag):
    """A set of kinds."""

    NAN = 1
    MINUS_INFINITY = 2
    NEGATIVE = 4
    ZERO = 8
    POSITIVE = 16
    INFINITY = 32


NOTHING = Kinds(0)
_NUMBERS = (
    Kinds.MINUS_INFINITY,
    Kinds.NEGATIVE,
    Kinds.ZERO,
    Kinds.POSITIVE,
    Kinds.INFINITY,
)
_SIGNS = {kind: (place > 2) - (place < 2) for place, kind in enumerate(_NUMBERS)}
_PLACES = {kind: place for place, kind in enumerate(_NUMBERS)}
_FINITE = Kinds.NEGATIVE | Kinds.ZERO | Kinds.POSITIVE
_INFINITE = Kinds.MINUS_INFINITY | Kinds.INFINITY


def of_sign(sign: float, *, infinite: bool) -> Kinds:
    """Return the kind of a sign, 0 being zero."""
    if not sign:
        return Kinds.ZERO
    if infinite:
        return Kinds.INFINITY if sign > 0 else Kinds.MINUS_INFINITY
    return Kinds.POSITIVE if sign > 0 else Kinds.NEGATIVE


def _of_each(operation: Callable[[Kinds], Kinds]) -> Callable[[Kinds], Kinds]:
    """Return an operation on one kind as one on sets of them."""

    @cache
    def on_sets(kinds: Kinds) -> Kinds:
        found = kinds & Kinds.NAN
        for kind in _NUMBERS:
            if kind & kinds:
                found |= operation(kind)
        return found

    return on_sets


def _of_pairs(operation: Callable[[Kinds, Kinds], Kinds]) -> Callable[[Kinds, Kinds], Kinds]:
    """Return an operation on two kinds as one on sets of them, with NaN where either may be."""

    @cache
    def on_sets(a: Kinds, b: Kinds) -> Kinds:
        found = (a | b) & Kinds.NAN if a and b else NOTHING
        for one, other in product(_NUMBERS, _NUMBERS):
            if one & a and other & b:
                found |= operation(one, other)
        return found

    return on_sets


def _sum(a: Kinds, b: Kinds) -> Kinds:
    if a & _INFINITE or b & _INFINITE:
        if a & _INFINITE and b & _INFINITE:
            return a if a == b else Kinds.NAN
        return a if a & _INFINITE else b
    if Kinds.ZERO in (a, b) or a == b:
        return b if a == Kinds.ZERO else a
    return _FINITE


def _multiply(a: Kinds, b: Kinds) -> Kinds:
    infinite = bool((a | b) & _INFINITE)
    if Kinds.ZERO in (a, b):
        return Kinds.NAN if infinite else Kinds.ZERO
    return of_sign(_SIGNS[a] * _SIGNS[b], infinite=infinite)


def _divide(a: Kinds, b: Kinds) -> Kinds:
    if b & _INFINITE:
        return Kinds.NAN if a & _INFINITE else Kinds.ZERO
    if b == Kinds.ZERO:
        # The zero's sign is not known.
        return Kinds.NAN if a == Kinds.ZERO else _INFINITE
    return of_sign(_SIGNS[a] * _SIGNS[b], infinite=bool(a & _INFINITE))


def _largest(a: Kinds, b: Kinds) -> Kinds:
    return max(a, b, key=_PLACES.__getitem__)


def _smallest(a: Kinds, b: Kinds) -> Kinds:
    return min(a, b, key=_PLACES.__getitem__)


negated = _of_each(lambda kind: _NUMBERS[4 - _PLACES[kind]])
absolute = _of_each(lambda kind: _NUMBERS[max(_PLACES[kind], 4 - _PLACES[kind])])
summed = _of_pairs(_sum)
multiplied = _of_pairs(_multiply)
divided = _of_pairs(_divide)
larger_of = _of_pairs(_largest)
smaller_of = _of_pairs(_smallest)


@cache
def compared(compare: Callable[[float, float], bool], a: Kinds, b: Kinds) -> Kinds:
    """Return the kinds of 1 and 0 that a comparison may give."""
    truths = set()
    for one, other in product((Kinds.NAN, *_NUMBERS), repeat=2):
        if not (one & a and other & b):
            continue
        if Kinds.NAN in (one, other):
            truths.add(bool(compare(math.nan, math.nan)))
        elif one == other and one & (Kinds.NEGATIVE | Kinds.POSITIVE):
            truths |= {bool(compare(0, 1)), bool(compare(1, 0)), bool(compare(0, 0))}
        else:
            truths.add(bool(compare(_PLACES[one], _PLACES[other])))
    found = NOTHING
    for truth in truths:
        found |= Kinds.POSITIVE if truth else Kinds.ZERO
    return found


def chosen_by(condition: Kinds, a: Kinds, b: Kinds) -> Kinds:
    """Return what `numpy.where` may give; NaN counts as true."""
    taken = a if condition & ~Kinds.ZERO else NOTHING
    return taken | (b if condition & Kinds.ZERO else NOTHING)


_MINUS, _NEGATIVE, _ZERO, _POSITIVE, _PLUS = _NUMBERS
_BELOW_ONE = _ZERO | _POSITIVE
# What a function makes of each kind, from minus to plus infinity.
_FUNCTIONS = {
    "exp": (_ZERO, _BELOW_ONE, _POSITIVE, _POSITIVE | _PLUS, _PLUS),
    "log": (Kinds.NAN, Kinds.NAN, _MINUS, _FINITE, _PLUS),
    "sqrt": (Kinds.NAN, Kinds.NAN, _ZERO, _POSITIVE, _PLUS),
    "cosh": (_PLUS, _POSITIVE | _PLUS, _POSITIVE, _POSITIVE | _PLUS, _PLUS),
    "sinh": (_MINUS, _MINUS | _NEGATIVE, _ZERO, _POSITIVE | _PLUS, _PLUS),
    "tanh": (_NEGATIVE, _NEGATIVE, _ZERO, _POSITIVE, _POSITIVE),
    "sign": (_NEGATIVE, _NEGATIVE, _ZERO, _POSITIVE, _POSITIVE),
    "arcsinh": _NUMBERS,
    # To a whole number: what is between may become 0.
    "floor": (_MINUS, _NEGATIVE, _ZERO, _BELOW_ONE, _PLUS),
    "ceil": (_MINUS, _NEGATIVE | _ZERO, _ZERO, _POSITIVE, _PLUS),
    "rint": (_MINUS, _NEGATIVE | _ZERO, _ZERO, _BELOW_ONE, _PLUS),
    # A power that is no whole number, above and below 0.
    "power": (Kinds.NAN, Kinds.NAN, _ZERO, _BELOW_ONE | _PLUS, _PLUS),
    "root": (Kinds.NAN, Kinds.NAN, _PLUS, _BELOW_ONE | _PLUS, _ZERO),
}
_FUNCTIONS["exp2"], _FUNCTIONS["log2"] = _FUNCTIONS["exp"], _FUNCTIONS["log"]


@cache
def of_function(name: str, kinds: Kinds) -> Kinds:
    """Return what a function may give for a set of kinds.

    Raises:
        KeyError: there is no such function.
    """
    found = kinds & Kinds.NAN
    for kind, becomes in zip(_NUMBERS, _FUNCTIONS[name], strict=True):
        if kind & kinds:
            found |= becomes
    return found
