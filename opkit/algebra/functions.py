"""The functions of the formula language, a row each: how it is built, evaluated and written
in other languages.

How a kernel computes a function, and its gradient, are the compiler's.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from .nodes import Node, call, power

__all__ = [
    "COMPARISON_SIGNS",
    "FUNCTIONS",
    "INTERNAL",
    "REDUCTION_NAMES",
    "FunctionRow",
    "row_of",
]


COMPARISON_SIGNS = {"Lt": "<", "LtE": "<=", "Gt": ">", "GtE": ">=", "Eq": "==", "NotEq": "!="}
"""Python's name of each comparison, and its sign."""

REDUCTION_NAMES = {"sum": "row_sum", "mean": "row_mean", "max": "row_max", "min": "row_min"}
"""What a reduction is called in a formula, and its kind."""


@dataclass(frozen=True)
class FunctionRow:
    """One function name of the language."""

    name: str
    arity: int
    numpy: str
    """A call over float64 arrays."""
    torch: str
    cpp: str
    value: Callable[..., float]
    """The function's value for numbers in double precision."""
    build: Callable[..., Node] | None = None
    """What it stands for; None: a node of its own."""

    def __call__(self, *arguments: Node) -> Node:
        """Return the function of some values."""
        return self.build(*arguments) if self.build else call(self.name, *arguments)


def _sigmoid(u: float) -> float:
    return 1 / (1 + math.exp(-u)) if u > 0 else math.exp(u) / (1 + math.exp(u))


def _softplus(u: float) -> float:
    return max(u, 0.0) + math.log1p(math.exp(-abs(u)))


def _sign(u: float) -> float:
    return u if math.isnan(u) else float((u > 0) - (u < 0))


def _log(u: Node) -> Node:
    return call("log", u)


def _reciprocal(u: Node) -> Node:
    return power(u, -1)


_TABLE = (
    FunctionRow("exp", 1, "np.exp", "torch.exp", "std::exp", math.exp),
    FunctionRow("expm1", 1, "np.expm1", "torch.expm1", "std::expm1", math.expm1),
    FunctionRow("log", 1, "np.log", "torch.log", "std::log", math.log),
    FunctionRow(
        "ln", 1, "np.log", "torch.log", "std::log", math.log, build=lambda u: call("log", u)
    ),
    FunctionRow(
        "log1p",
        1,
        "np.log1p",
        "torch.log1p",
        "std::log1p",
        math.log1p,
    ),
    FunctionRow(
        "sqrt",
        1,
        "np.sqrt",
        "torch.sqrt",
        "std::sqrt",
        math.sqrt,
    ),
    FunctionRow(
        "rsqrt",
        1,
        "1 / np.sqrt",
        "torch.rsqrt",
        "1.0 / std::sqrt",
        lambda u: 1 / math.sqrt(u),
        build=lambda u: power(call("sqrt", u), -1),
    ),
    FunctionRow("abs", 1, "np.abs", "torch.abs", "std::fabs", abs),
    FunctionRow("tanh", 1, "np.tanh", "torch.tanh", "std::tanh", math.tanh),
    FunctionRow("sinh", 1, "np.sinh", "torch.sinh", "std::sinh", math.sinh),
    FunctionRow("cosh", 1, "np.cosh", "torch.cosh", "std::cosh", math.cosh),
    FunctionRow("asinh", 1, "np.arcsinh", "torch.asinh", "std::asinh", math.asinh),
    FunctionRow("atanh", 1, "np.arctanh", "torch.atanh", "std::atanh", math.atanh),
    FunctionRow(
        "sigmoid",
        1,
        "_sigmoid",
        "torch.sigmoid",
        "sigmoid",
        _sigmoid,
    ),
    FunctionRow(
        "softplus",
        1,
        "_softplus",
        "torch.nn.functional.softplus",
        "softplus",
        _softplus,
    ),
    FunctionRow("relu", 1, "_relu", "torch.relu", "relu", lambda u: max(u, 0.0)),
    FunctionRow("square", 1, "np.square", "torch.square", "", abs, build=lambda u: power(u, 2)),
    FunctionRow("reciprocal", 1, "1 / ", "torch.reciprocal", "", abs, build=_reciprocal),
    FunctionRow("sign", 1, "np.sign", "torch.sign", "sign", _sign),
    FunctionRow("floor", 1, "np.floor", "torch.floor", "std::floor", math.floor),
    FunctionRow("ceil", 1, "np.ceil", "torch.ceil", "std::ceil", math.ceil),
    FunctionRow("round", 1, "np.rint", "torch.round", "std::nearbyint", round),
    FunctionRow("maximum", 2, "np.maximum", "_maximum", "std::fmax", max),
    FunctionRow("minimum", 2, "np.minimum", "_minimum", "std::fmin", min),
    FunctionRow("pow", 2, "_power", "torch.pow", "std::pow", math.pow, build=lambda a, b: a),
    FunctionRow("where", 3, "np.where", "torch.where", "", lambda c, a, b: a if c else b),
)

FUNCTIONS = {row.name: row for row in _TABLE}


# What stands for a cancelling or overflowing form until it is lowered; no formula can name them.
INTERNAL = {
    row.name: row
    for row in (
        FunctionRow("log_one_plus", 1, "", "", "std::log1p", math.log1p),
        FunctionRow("tanhshrink", 1, "", "", "", lambda u: u - math.tanh(u)),
        FunctionRow("log_sigmoid", 1, "", "", "", lambda u: -_softplus(-u)),
        FunctionRow("erf", 1, "", "", "std::erf", math.erf),
        FunctionRow("erfc", 1, "", "", "std::erfc", math.erfc),
        FunctionRow("logcosh", 1, "", "", "", lambda u: math.log(math.cosh(u))),
        FunctionRow("tanh_softplus", 1, "", "", "", lambda u: math.tanh(_softplus(u))),
    )
}


def row_of(kind: str) -> FunctionRow | None:
    """Return the row of a node's kind; None for what is no function."""
    return FUNCTIONS.get(kind) or INTERNAL.get(kind)
