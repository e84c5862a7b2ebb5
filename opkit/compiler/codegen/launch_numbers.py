"""Numbers that are known at a kernel's launch: Python's, or terms of the C++ that computes them.

How a kernel is split over cores and tiles is worked out by functions of numbers. Called with whole
numbers they give a launch; called with `Term`s they give the text of a host's tiling function. What
decides is therefore written with `least`, `most`, `choose` and `both` in place of Python's `min`,
`max`, `if` and `and`.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from ..ir import Dimension

__all__ = [
    "Host",
    "Number",
    "Term",
    "both",
    "choose",
    "divide_up",
    "extent_term",
    "extent_text",
    "least",
    "most",
    "named",
    "whole_quotient",
    "whole_root",
]

_ATOM, _PRODUCT, _SUM, _COMPARISON, _LOOSE = 4, 3, 2, 1, 0


@dataclass
class Host:
    """The statements of a C++ function under construction."""

    lines: list[str] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    known: dict[str, Term] = field(default_factory=dict)
    """The variable that holds an expression already."""

    def name(self, wanted: str, term: Term) -> Term:
        """Return a variable that holds a term."""
        if term.binding == _ATOM and not term.is_call:
            return term
        if term.text not in self.known:
            name, count = wanted, 1
            while name in self.names:
                name, count = f"{wanted}{count}", count + 1
            self.names.add(name)
            self.lines.append(f"const {term.cpp_type} {name} = {term.text};")
            self.known[term.text] = Term(self, name, is_whole=term.is_whole)
        return self.known[term.text]


@dataclass(frozen=True, eq=False)
class Term:
    """An expression of a host's C++: an `int64_t`, or a `double`."""

    host: Host
    text: str
    binding: int = _ATOM
    is_whole: bool = True
    is_call: bool = False

    if TYPE_CHECKING:

        def __bool__(self) -> bool: ...
        def __int__(self) -> int: ...

    else:

        def __bool__(self) -> bool:
            raise TypeError(f"{self.text} is known at launch only: use choose()")

    @property
    def cpp_type(self) -> str:
        """The type of a variable that holds it."""
        return "int64_t" if self.is_whole else "double"

    def at(self, binding: int) -> str:
        """Return its text as an operand of what binds so tightly."""
        return self.text if self.binding >= binding else f"({self.text})"

    def __add__(self, other: Number) -> Number:
        return self if _is(other, 0) else _binary("+", self, other, _SUM)

    def __radd__(self, other: Number) -> Number:
        return self if _is(other, 0) else _binary("+", other, self, _SUM)

    def __sub__(self, other: Number) -> Number:
        return self if _is(other, 0) else _binary("-", self, other, _SUM)

    def __rsub__(self, other: Number) -> Number:
        return _binary("-", other, self, _SUM)

    def __mul__(self, other: Number) -> Number:
        return _times(self, other)

    def __rmul__(self, other: Number) -> Number:
        return _times(other, self)

    def __floordiv__(self, other: Number) -> Number:
        return self if _is(other, 1) else _binary("/", self, other, _PRODUCT)

    def __rfloordiv__(self, other: Number) -> Number:
        return _binary("/", other, self, _PRODUCT)

    def __mod__(self, other: Number) -> Number:
        return 0 if _is(other, 1) else _binary("%", self, other, _PRODUCT)

    def __rmod__(self, other: Number) -> Number:
        return _binary("%", other, self, _PRODUCT)

    def __truediv__(self, other: Number) -> Number:
        return _quotient(self, other)

    def __rtruediv__(self, other: Number) -> Number:
        return _quotient(other, self)

    def __neg__(self) -> Number:
        return Term(self.host, f"-{self.at(_ATOM)}", _PRODUCT, self.is_whole)

    def __lt__(self, other: Number) -> Any:
        return _binary("<", self, other, _COMPARISON)

    def __le__(self, other: Number) -> Any:
        return _binary("<=", self, other, _COMPARISON)

    def __gt__(self, other: Number) -> Any:
        return _binary(">", self, other, _COMPARISON)

    def __ge__(self, other: Number) -> Any:
        return _binary(">=", self, other, _COMPARISON)


Number: TypeAlias = "int | float | Term"


def least(*values: Number) -> Any:
    """Return the smallest."""
    return _extreme("std::min", min, values)


def most(*values: Number) -> Any:
    """Return the largest."""
    return _extreme("std::max", max, values)


def choose(condition: Any, yes: Number, no: Number) -> Any:
    """Return one of two numbers. Both are computed: neither may divide by zero."""
    if not isinstance(condition, Term):
        return yes if condition else no
    whole_numbers = all(not isinstance(v, float) and _is_whole(v) for v in (yes, no))
    text = f"{condition.text} ? {_text(yes, _SUM)} : {_text(no, _SUM)}"
    return Term(condition.host, text, _LOOSE, whole_numbers)


def both(left: Any, right: Any) -> Any:
    """Return whether two conditions hold."""
    if not isinstance(left, Term):
        return right if left else False
    if not isinstance(right, Term):
        return left if right else False
    return Term(left.host, f"{left.at(_COMPARISON)} && {right.at(_COMPARISON)}", _LOOSE)


def whole_quotient(value: Number, by: Number) -> Any:
    """Return the quotient of positive numbers without its fraction."""
    if not isinstance(value, Term) and not isinstance(by, Term):
        return int(value / by)
    if _is_whole(value) and _is_whole(by):
        return value // by
    quotient = _quotient(value, by)
    return Term(quotient.host, f"static_cast<int64_t>({quotient.text})", is_call=True)


def whole_root(value: Number) -> Any:
    """Return the square root of a whole number below 2^52, without its fraction."""
    if not isinstance(value, Term):
        return math.isqrt(int(value))
    text = f"static_cast<int64_t>(std::sqrt(static_cast<double>({value.text})))"
    return Term(value.host, text, is_call=True)


def divide_up(value: Number, by: Number) -> Any:
    """Return the smallest whole number that is no less than a quotient."""
    if not isinstance(value, Term) and not isinstance(by, Term):
        return -(-value // by)
    if _is(by, 1):
        return value
    return Term(
        _host_of(value, by), f"DivideUp({_text(value, _LOOSE)}, {_text(by, _LOOSE)})", is_call=True
    )


def named(name: str, value: Number) -> Any:
    """Return a number; in C++ it gets a name, and is computed once."""
    return value.host.name(name, value) if isinstance(value, Term) else value


def extent_term(extent: Dimension, sizes: Mapping[str, Number]) -> Any:
    """Return an extent with its named sizes put in.

    Raises:
        KeyError: a size is not among them.
    """
    if isinstance(extent, int):
        return extent
    return _extent(extent, sizes)


def extent_text(extent: Dimension, names: Mapping[str, str]) -> str:
    """Return an extent as Python text, whose named sizes are written as given.

    Raises:
        KeyError: it is not made by sums, products and whole quotients of such sizes.
    """
    host = Host()
    text = _text(extent_term(extent, {k: Term(host, v) for k, v in names.items()}), _LOOSE)
    if "DivideUp" in text or "std::" in text or "%" in text:
        raise KeyError(str(extent))
    # A quotient of whole numbers, which C++ writes so.
    return text.replace(" / ", " // ")


def _extent(expression: Any, sizes: Mapping[str, Number]) -> Any:
    import sympy

    if expression.is_Integer:
        return int(expression)
    if expression.is_Symbol:
        return sizes[expression.name]
    if expression.is_Add or expression.is_Mul:
        numerator, denominator = sympy.fraction(sympy.together(expression))
        if denominator == 1:
            # A fraction times a sum, as remainders have it, is multiplied out by `together`.
            numerator, denominator = expression.as_numer_denom()
        if denominator != 1:
            return _extent(numerator, sizes) // _extent(denominator, sizes)
        parts = [_extent(each, sizes) for each in expression.args]
        total = parts[0]
        for part in parts[1:]:
            total = total + part if expression.is_Add else total * part
        return total
    if expression.is_Pow and expression.exp.is_Integer and expression.exp > 0:
        base = _extent(expression.base, sizes)
        total = base
        for _ in range(int(expression.exp) - 1):
            total = total * base
        return total
    functions: dict[Any, Callable[..., Any]] = {
        sympy.floor: lambda inner: inner,
        sympy.Max: most,
        sympy.Min: least,
        sympy.Mod: lambda a, b: a % b,
    }
    if expression.func in functions:
        return functions[expression.func](*(_extent(each, sizes) for each in expression.args))
    if expression.func is sympy.ceiling:
        numerator, denominator = sympy.fraction(sympy.together(expression.args[0]))
        return divide_up(_extent(numerator, sizes), _extent(denominator, sizes))
    raise KeyError(str(expression))


def _is(value: Number, number: int) -> bool:
    return not isinstance(value, Term) and value == number


def _is_whole(value: Number) -> bool:
    return value.is_whole if isinstance(value, Term) else isinstance(value, int)


def _text(value: Number, binding: int) -> str:
    if isinstance(value, Term):
        return value.at(binding)
    text = repr(value)
    return f"({text})" if value < 0 and binding > _LOOSE else text


def _host_of(*values: Number) -> Host:
    return next(value.host for value in values if isinstance(value, Term))


def _binary(sign: str, left: Number, right: Number, binding: int) -> Term:
    text = f"{_text(left, binding)} {sign} {_text(right, binding + 1)}"
    is_whole = binding == _COMPARISON or (_is_whole(left) and _is_whole(right))
    return Term(_host_of(left, right), text, binding, is_whole)


def _times(left: Number, right: Number) -> Number:
    if _is(left, 0) or _is(right, 0):
        return 0
    if _is(left, 1) or _is(right, 1):
        return right if _is(left, 1) else left
    return _binary("*", left, right, _PRODUCT)


def _quotient(left: Number, right: Number) -> Term:
    host = _host_of(left, right)
    above = f"static_cast<double>({_text(left, _LOOSE)})" if isinstance(left, Term) else f"{left}.0"
    return Term(host, f"{above} / {_text(right, _ATOM)}", _PRODUCT, is_whole=False)


def _extreme(function: str, python: Callable[..., Any], values: tuple[Number, ...]) -> Any:
    terms = list(dict.fromkeys(v for v in values if isinstance(v, Term)))
    numbers = [v for v in values if not isinstance(v, Term)]
    if not terms:
        return python(numbers)
    given = [*terms, python(numbers)] if numbers else [*terms]
    if len(given) == 1:
        return given[0]
    texts = [_text(value, _LOOSE) for value in given]
    listed = ", ".join(texts) if len(texts) == 2 else "{" + ", ".join(texts) + "}"
    return Term(terms[0].host, f"{function}<int64_t>({listed})", is_call=True)
