"""The functions of the formula language as sympy classes, and one row for each name a formula may
use.

sympy's own tanh, Max and Piecewise rewrite and differentiate into forms that lose relative accuracy
in float32 (1 - tanh(u)**2 for instance), so the language has its own, whose derivatives stay
accurate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import sympy

__all__ = [
    "COLUMNS",
    "COMPARISONS",
    "EVENTS",
    "FUNCTIONS",
    "REDUCTIONS",
    "Ceil",
    "Comparison",
    "Equal",
    "Expm1",
    "Floor",
    "FormulaFunction",
    "Greater",
    "GreaterEqual",
    "Less",
    "LessEqual",
    "Maximum",
    "Minimum",
    "NotEqual",
    "Reduction",
    "Round",
    "RowInput",
    "RowMax",
    "RowMean",
    "RowMin",
    "RowSum",
    "Sigmoid",
    "Sign",
    "Softplus",
    "Tanh",
    "Where",
    "is_constant",
]


EVENTS = 8
"""Events between two pipes, one for each buffer of a kernel's queues: at most so many
inputs or outputs.
Source: Ascend C API, AllocEventID: event ids 0 to 7."""

COLUMNS = sympy.Symbol("columns", positive=True)
"""The length of the last axis, `columns` in a formula; known when the kernel runs."""


class FormulaFunction(sympy.Function):  # type: ignore[misc]
    """A function of the language; real for real arguments."""

    is_real = True


class Tanh(FormulaFunction):
    """tanh(u)."""

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        (u,) = self.args
        # Equals 1 - tanh(u)**2 without the cancellation for large |u|.
        return 4 * Sigmoid(2 * u) * Sigmoid(-2 * u)


class Sigmoid(FormulaFunction):
    """1 / (1 + exp(-u))."""

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        (u,) = self.args
        return Sigmoid(u) * Sigmoid(-u)


class Softplus(FormulaFunction):
    """log(1 + exp(u))."""

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        return Sigmoid(self.args[0])


class Expm1(FormulaFunction):
    """exp(u) - 1."""

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        return sympy.exp(self.args[0])


class Sign(FormulaFunction):
    """-1, 0 or 1; its derivative is taken as 0 everywhere."""

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        return sympy.Integer(0)


class Floor(Sign):
    """The largest integer not above u."""


class Ceil(Sign):
    """The smallest integer not below u."""


class Round(Sign):
    """The nearest integer, halves to even."""


class Maximum(FormulaFunction):
    """The larger of two values; at a tie the derivative goes to the first."""

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        a, b = self.args
        first = GreaterEqual(a, b)
        return Where(first, 1, 0) if argindex == 1 else Where(first, 0, 1)


class Minimum(FormulaFunction):
    """The smaller of two values; at a tie the derivative goes to the first."""

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        a, b = self.args
        first = LessEqual(a, b)
        return Where(first, 1, 0) if argindex == 1 else Where(first, 0, 1)


class Comparison(FormulaFunction):
    """A condition; only the first argument of `where`."""

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        return sympy.Integer(0)


class Less(Comparison):
    """a < b."""


class LessEqual(Comparison):
    """a <= b."""


class Greater(Comparison):
    """a > b."""


class GreaterEqual(Comparison):
    """a >= b."""


class Equal(Comparison):
    """a == b."""


class NotEqual(Comparison):
    """a != b."""


class Where(FormulaFunction):
    """`a` where the condition holds, `b` elsewhere."""

    @classmethod
    def eval(cls, condition: sympy.Expr, a: sympy.Expr, b: sympy.Expr) -> sympy.Expr | None:
        return a if a == b else None

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        condition = self.args[0]
        if argindex == 1:
            return sympy.Integer(0)
        return Where(condition, 1, 0) if argindex == 2 else Where(condition, 0, 1)

    def _eval_derivative(self, symbol: sympy.Symbol) -> sympy.Expr:
        # One select of two derivatives, instead of a sum of products with 0 and 1: those would turn
        # an infinite derivative of the branch not taken into NaN.
        condition, a, b = self.args
        return Where(condition, a.diff(symbol), b.diff(symbol))


class Reduction(FormulaFunction):
    """A reduction over the last axis; its value is one per row and broadcasts back over the row."""


class RowSum(Reduction):
    """sum(u, axis=-1)."""


class RowMean(Reduction):
    """mean(u, axis=-1)."""


class RowMax(Reduction):
    """max(u, axis=-1)."""


class RowMin(Reduction):
    """min(u, axis=-1)."""


class RowInput(FormulaFunction):
    """row(input): an input that has one value per row."""


@dataclass(frozen=True)
class FunctionRow:
    """One function name of the language."""

    name: str
    arity: int
    build: Callable[..., sympy.Expr]
    integer: bool = False
    """Whether int32 and int16 operands have it too."""


_TABLE = (
    FunctionRow("exp", 1, sympy.exp),
    FunctionRow("expm1", 1, Expm1),
    FunctionRow("log", 1, sympy.log),
    FunctionRow("ln", 1, sympy.log),
    FunctionRow("sqrt", 1, sympy.sqrt),
    FunctionRow("rsqrt", 1, lambda u: 1 / sympy.sqrt(u)),
    FunctionRow("abs", 1, sympy.Abs),
    FunctionRow("tanh", 1, Tanh),
    FunctionRow("sigmoid", 1, Sigmoid),
    FunctionRow("softplus", 1, Softplus),
    FunctionRow("relu", 1, lambda u: Maximum(u, 0), integer=True),
    FunctionRow("square", 1, lambda u: u**2, integer=True),
    FunctionRow("reciprocal", 1, lambda u: 1 / u),
    FunctionRow("sign", 1, Sign, integer=True),
    FunctionRow("floor", 1, Floor),
    FunctionRow("ceil", 1, Ceil),
    FunctionRow("round", 1, Round),
    FunctionRow("maximum", 2, Maximum, integer=True),
    FunctionRow("minimum", 2, Minimum, integer=True),
    FunctionRow("pow", 2, lambda a, b: a**b, integer=True),
    FunctionRow("where", 3, Where),
)

FUNCTIONS = {row.name: row for row in _TABLE}
REDUCTIONS = {"sum": RowSum, "mean": RowMean, "max": RowMax, "min": RowMin}
COMPARISONS = {
    "Lt": Less,
    "LtE": LessEqual,
    "Gt": Greater,
    "GtE": GreaterEqual,
    "Eq": Equal,
    "NotEq": NotEqual,
}


def is_constant(expression: sympy.Basic) -> bool:
    """Return whether a value is known when the kernel is generated."""
    return not expression.free_symbols
