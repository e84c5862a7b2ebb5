"""The value of an expression in which everything is a number."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping

import sympy

from .functions import (
    Ceil,
    Equal,
    Expm1,
    Floor,
    Greater,
    GreaterEqual,
    Less,
    LessEqual,
    Maximum,
    Minimum,
    NotEqual,
    Round,
    Sigmoid,
    Sign,
    Softplus,
    Tanh,
    Where,
)

__all__ = ["evaluate"]

_FUNCTIONS: dict[type[sympy.Basic], Callable[..., float]] = {
    Tanh: math.tanh,
    Sigmoid: lambda u: 1 / (1 + math.exp(-u)) if u > 0 else math.exp(u) / (1 + math.exp(u)),
    Softplus: lambda u: max(u, 0.0) + math.log1p(math.exp(-abs(u))),
    Expm1: math.expm1,
    Sign: lambda u: float((u > 0) - (u < 0)),
    Floor: math.floor,
    Ceil: math.ceil,
    Round: round,
    Maximum: max,
    Minimum: min,
    Less: lambda a, b: float(a < b),
    LessEqual: lambda a, b: float(a <= b),
    Greater: lambda a, b: float(a > b),
    GreaterEqual: lambda a, b: float(a >= b),
    Equal: lambda a, b: float(a == b),
    NotEqual: lambda a, b: float(a != b),
    Where: lambda condition, a, b: a if condition else b,
    sympy.exp: math.exp,
    sympy.log: math.log,
    sympy.Abs: abs,
}


def evaluate(expression: sympy.Expr, values: Mapping[sympy.Symbol, float] | None = None) -> float:
    """Return an expression's value in double precision.

    Args:
        expression: numbers, and the symbols in `values`.
    """
    if expression in (values or {}):
        return float((values or {})[expression])
    own = _FUNCTIONS.get(type(expression))
    if own is None and not expression.args:
        return float(expression)
    arguments = [evaluate(argument, values) for argument in expression.args]
    if own is not None:
        return float(own(*arguments))
    if isinstance(expression, sympy.Add):
        return math.fsum(arguments)
    if isinstance(expression, sympy.Mul):
        return math.prod(arguments)
    if isinstance(expression, sympy.Pow):
        return float(arguments[0] ** arguments[1])
    raise NotImplementedError(f"no value for {type(expression).__name__}")
