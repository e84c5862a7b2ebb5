"""Numbers of a call, which are values of the program where they come with each call."""

from __future__ import annotations

from ...ir import Operand, Value

__all__ = ["is_number", "real", "times"]


def is_number(operand: Operand, number: float) -> bool:
    """Return whether an operand is a certain number, known now."""
    return not isinstance(operand, Value) and operand == number


def real(operand: Operand) -> Value | float:
    """Return a number as a fraction, which does not take the type of whole numbers beside it."""
    return operand if isinstance(operand, Value) else float(operand)


def times(x: Value, factor: Operand) -> Value:
    """Return a tensor times a number."""
    return x if is_number(factor, 1) else x * real(factor)
