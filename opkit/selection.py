"""Choosing things by name: expressions as pytest's -k takes them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol, TypeVar

from opkit.errors import UsageError

__all__ = ["select_by_name"]


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Item = TypeVar("_Item", bound=_Named)
_Matcher = Callable[[str], bool]


def select_by_name(items: Iterable[_Item], expression: str) -> tuple[_Item, ...]:
    """Return the cases, samples or tests whose name an expression matches, as pytest's -k does.

    Args:
        items: things with a `name`; case does not matter.
        expression: parts of a name joined by `and`, `or`, `not` and parentheses, such as
            `float16 and not 1000003`.
    Raises:
        UsageError: the expression cannot be read.
    """
    matches = _parsed(expression)
    return tuple(item for item in items if matches(item.name.lower()))


def _parsed(expression: str) -> _Matcher:
    tokens = expression.replace("(", " ( ").replace(")", " ) ").split()

    def unreadable() -> UsageError:
        return UsageError(
            f'-k "{expression}" cannot be read',
            help="join parts of names by and, or, not and parentheses:"
            ' "float16 and not (edge or 1000003)"',
        )

    def either() -> _Matcher:
        left = both()
        while tokens and tokens[0] == "or":
            tokens.pop(0)
            left = _either(left, both())
        return left

    def both() -> _Matcher:
        left = one()
        while tokens and tokens[0] == "and":
            tokens.pop(0)
            left = _both(left, one())
        return left

    def one() -> _Matcher:
        if not tokens:
            raise unreadable()
        token = tokens.pop(0)
        if token == "not":
            inner = one()
            return lambda name: not inner(name)
        if token == "(":
            inner = either()
            if not tokens or tokens.pop(0) != ")":
                raise unreadable()
            return inner
        if token in ("and", "or", ")"):
            raise unreadable()
        return lambda name: token.lower() in name

    matcher = either()
    if tokens:
        raise unreadable()
    return matcher


def _either(left: _Matcher, right: _Matcher) -> _Matcher:
    return lambda name: left(name) or right(name)


def _both(left: _Matcher, right: _Matcher) -> _Matcher:
    return lambda name: left(name) and right(name)
