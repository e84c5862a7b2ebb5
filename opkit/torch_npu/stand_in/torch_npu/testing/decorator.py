"""Tests that run once for each of several values of an argument."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import torch

__all__ = ["Dtypes", "Formats", "instantiate_tests"]

Case = TypeVar("Case", bound=type)
Test = Callable[..., Any]


class _Values:
    """Notes the values of one argument at a test."""

    argument: str

    def __init__(self, *values: Any) -> None:
        self._values = values

    def __call__(self, test: Test) -> Test:
        noted = getattr(test, "instantiated_by", {})
        test.instantiated_by = {**noted, self.argument: self._values}  # type: ignore[attr-defined]
        return test


class Dtypes(_Values):
    """Run a test for each data type, given as its argument `dtype`."""

    argument = "dtype"


class Formats(_Values):
    """Run a test for each format, given as its argument `npu_format`."""

    argument = "npu_format"


def instantiate_tests(case: Case) -> Case:
    """Replace tests of a class that note values by one test for each."""
    for name, test in list(vars(case).items()):
        made: list[tuple[str, dict[str, Any]]] = [(name, {})]
        for argument, values in getattr(test, "instantiated_by", {}).items():
            made = [
                (f"{start}_{_short(value)}", {**given, argument: value})
                for start, given in made
                for value in values
            ]
        if len(made) == 1 and not made[0][1]:
            continue
        delattr(case, name)
        for full, given in made:
            setattr(case, full, _with(test, given))
    return case


def _short(value: Any) -> str:
    return str(value).rpartition(".")[2] if isinstance(value, torch.dtype) else str(value)


def _with(test: Test, given: dict[str, Any]) -> Test:
    @functools.wraps(test)
    def call(self: Any) -> Any:
        return test(self, **given)

    del call.__wrapped__  # unittest and pytest read the arguments there
    return call
