"""Choosing cases by name: an expression as pytest's -k takes it."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from opkit.errors import UsageError
from opkit.testing.cases import Case

__all__ = ["select_cases"]


def select_cases(cases: Iterable[Case], expression: str) -> tuple[Case, ...]:
    """Return the cases whose name an expression matches, as pytest's -k does.

    Args:
        expression: parts of a name joined by `and`, `or`, `not` and parentheses, such as
            `float16 and not 1000003`.
    Raises:
        UsageError: the expression cannot be read.
    """
    matches = _parse_expression(expression)
    return tuple(case for case in cases if matches(case.name))


Matcher = Callable[[str], bool]


def _parse_expression(expression: str) -> Matcher:
    tokens = expression.replace("(", " ( ").replace(")", " ) ").split()

    def fail() -> UsageError:
        return UsageError(
            f'-k "{expression}" cannot be read',
            help="join parts of case names by and, or, not and parentheses",
        )

    def take_or() -> Matcher:
        left = take_and()
        while tokens and tokens[0] == "or":
            tokens.pop(0)
            left = _either(left, take_and())
        return left

    def take_and() -> Matcher:
        left = take_not()
        while tokens and tokens[0] == "and":
            tokens.pop(0)
            left = _both(left, take_not())
        return left

    def take_not() -> Matcher:
        if not tokens:
            raise fail()
        token = tokens.pop(0)
        if token == "not":
            inner = take_not()
            return lambda name: not inner(name)
        if token == "(":
            inner = take_or()
            if not tokens or tokens.pop(0) != ")":
                raise fail()
            return inner
        if token in ("and", "or", ")"):
            raise fail()
        return lambda name: token.lower() in name.lower()

    matcher = take_or()
    if tokens:
        raise fail()
    return matcher


def _either(left: Matcher, right: Matcher) -> Matcher:
    return lambda name: left(name) or right(name)


def _both(left: Matcher, right: Matcher) -> Matcher:
    return lambda name: left(name) and right(name)
