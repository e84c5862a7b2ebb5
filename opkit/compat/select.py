"""Choosing samples by expressions over their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Protocol, TypeVar

from opkit.errors import UsageError

__all__ = ["select_samples"]


class _Named(Protocol):
    @property
    def name(self) -> str: ...


_Any = TypeVar("_Any", bound=_Named)


def select_samples(samples: Sequence[_Any], expression: str) -> tuple[_Any, ...]:
    """Return the samples, or tests, whose names an expression takes.

    It is of words, and, or, not and brackets.

    Raises:
        UsageError: the expression cannot be read.
    """
    test = _Expression(expression)
    return tuple(sample for sample in samples if test.takes(sample.name))


class _Expression:
    def __init__(self, text: str) -> None:
        self._text = text
        self._tokens = re.findall(r"\(|\)|[^\s()]+", text)

    def takes(self, name: str) -> bool:
        self._name, self._at = name.lower(), 0
        result = self._either()
        if self._at != len(self._tokens):
            raise self._unreadable()
        return result

    def _either(self) -> bool:
        result = self._both()
        while self._next("or"):
            result = self._both() or result
        return result

    def _both(self) -> bool:
        result = self._one()
        while self._next("and"):
            result = self._one() and result
        return result

    def _one(self) -> bool:
        if self._next("not"):
            return not self._one()
        if self._next("("):
            result = self._either()
            if not self._next(")"):
                raise self._unreadable()
            return result
        if self._at == len(self._tokens) or self._tokens[self._at] in (")", "and", "or"):
            raise self._unreadable()
        self._at += 1
        return self._tokens[self._at - 1].lower() in self._name

    def _next(self, word: str) -> bool:
        if self._at < len(self._tokens) and self._tokens[self._at] == word:
            self._at += 1
            return True
        return False

    def _unreadable(self) -> UsageError:
        return UsageError(
            f'-k "{self._text}" cannot be read',
            help='write words with and, or, not and brackets, such as "reduce and not sum"',
        )
