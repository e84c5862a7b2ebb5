"""The functions of the formula language, a row each: how it is built, differentiated, evaluated and
written in other languages.

How a function is computed in float32 is in `lowerings`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

from .nodes import ONE, ZERO, Node, add, call, negate, number, power, product

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
    """Of numbers, in double precision."""
    derivative: Callable[[Node], Node] | None = None
    """Of a function of one argument, without the chain rule; None: `derive` has its own."""
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


def _zero(u: Node) -> Node:
    return ZERO


def _call(name: str) -> Callable[[Node], Node]:
    return lambda u: call(name, u)


def _reciprocal(u: Node) -> Node:
    return power(u, -1)


def _tanh_slope(u: Node) -> Node:
    # Equals 1 - tanh(u)**2 without the cancellation for large |u|.
    twice = product(number(2), u)
    return product(number(4), call("sigmoid", twice), call("sigmoid", negate(twice)))


def _asinh_slope(u: Node) -> Node:
    return power(call("sqrt", add(power(u, 2), ONE)), -1)


def _atanh_slope(u: Node) -> Node:
    return power(product(add(ONE, u), add(ONE, negate(u))), -1)


_TABLE = (
    FunctionRow("exp", 1, "np.exp", "torch.exp", "std::exp", math.exp, _call("exp")),
    FunctionRow("expm1", 1, "np.expm1", "torch.expm1", "std::expm1", math.expm1, _call("exp")),
    FunctionRow("log", 1, "np.log", "torch.log", "std::log", math.log, _reciprocal),
    FunctionRow("ln", 1, "np.log", "torch.log", "std::log", math.log, build=_call("log")),
    FunctionRow(
        "log1p",
        1,
        "np.log1p",
        "torch.log1p",
        "std::log1p",
        math.log1p,
        lambda u: power(add(ONE, u), -1),
    ),
    FunctionRow(
        "sqrt",
        1,
        "np.sqrt",
        "torch.sqrt",
        "std::sqrt",
        math.sqrt,
        lambda u: product(number(Fraction(1, 2)), power(call("sqrt", u), -1)),
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
    FunctionRow("abs", 1, "np.abs", "torch.abs", "std::fabs", abs, _call("sign")),
    FunctionRow("tanh", 1, "np.tanh", "torch.tanh", "std::tanh", math.tanh, _tanh_slope),
    FunctionRow("sinh", 1, "np.sinh", "torch.sinh", "std::sinh", math.sinh, _call("cosh")),
    FunctionRow("cosh", 1, "np.cosh", "torch.cosh", "std::cosh", math.cosh, _call("sinh")),
    FunctionRow("asinh", 1, "np.arcsinh", "torch.asinh", "std::asinh", math.asinh, _asinh_slope),
    FunctionRow("atanh", 1, "np.arctanh", "torch.atanh", "std::atanh", math.atanh, _atanh_slope),
    FunctionRow(
        "sigmoid",
        1,
        "_sigmoid",
        "torch.sigmoid",
        "sigmoid",
        _sigmoid,
        lambda u: product(call("sigmoid", u), call("sigmoid", negate(u))),
    ),
    FunctionRow(
        "softplus",
        1,
        "_softplus",
        "torch.nn.functional.softplus",
        "softplus",
        _softplus,
        _call("sigmoid"),
    ),
    FunctionRow("relu", 1, "_relu", "torch.relu", "relu", lambda u: max(u, 0.0)),
    FunctionRow("square", 1, "np.square", "torch.square", "", abs, build=lambda u: power(u, 2)),
    FunctionRow("reciprocal", 1, "1 / ", "torch.reciprocal", "", abs, build=_reciprocal),
    FunctionRow("sign", 1, "np.sign", "torch.sign", "sign", _sign, _zero),
    FunctionRow("floor", 1, "np.floor", "torch.floor", "std::floor", math.floor, _zero),
    FunctionRow("ceil", 1, "np.ceil", "torch.ceil", "std::ceil", math.ceil, _zero),
    FunctionRow("round", 1, "np.rint", "torch.round", "std::nearbyint", round, _zero),
    FunctionRow("maximum", 2, "np.maximum", "_maximum", "std::fmax", max),
    FunctionRow("minimum", 2, "np.minimum", "_minimum", "std::fmin", min),
    FunctionRow("pow", 2, "_power", "torch.pow", "std::pow", math.pow, build=lambda a, b: a),
    FunctionRow("where", 3, "np.where", "torch.where", "", lambda c, a, b: a if c else b),
)

FUNCTIONS = {row.name: row for row in _TABLE}


# What stands for a cancelling or overflowing form until it is lowered; no formula can name them.
# Names, what they compute, and the derivative in the language's own functions.
def _mish_slope(u: Node) -> Node:
    # tanh(softplus(u)) = n/(n + 2) with n = z*(z + 2) and z = exp(u); one is reached before 20.
    z = call("exp", call("minimum", u, number(20)))
    n = product(z, add(z, number(2)))
    return product(number(4), z, add(z, ONE), power(add(n, number(2)), -2))


INTERNAL = {
    row.name: row
    for row in (
        FunctionRow(
            "log_one_plus",
            1,
            "",
            "",
            "std::log1p",
            math.log1p,
            lambda u: power(add(ONE, u), -1),
        ),
        FunctionRow(
            "tanhshrink",
            1,
            "",
            "",
            "",
            lambda u: u - math.tanh(u),
            lambda u: power(call("tanh", u), 2),
        ),
        FunctionRow(
            "log_sigmoid",
            1,
            "",
            "",
            "",
            lambda u: -_softplus(-u),
            lambda u: call("sigmoid", negate(u)),
        ),
        FunctionRow("erf", 1, "", "", "std::erf", math.erf),
        FunctionRow("erfc", 1, "", "", "std::erfc", math.erfc),
        FunctionRow("logcosh", 1, "", "", "", lambda u: math.log(math.cosh(u)), _call("tanh")),
        FunctionRow("tanh_softplus", 1, "", "", "", lambda u: math.tanh(_softplus(u)), _mish_slope),
    )
}


def row_of(kind: str) -> FunctionRow | None:
    """Return the row of a node's kind; None for what is no function."""
    return FUNCTIONS.get(kind) or INTERNAL.get(kind)
