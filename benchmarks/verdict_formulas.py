"""The formulas of verdict.py: what people compute, and random ones."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

__all__ = ["KNOWN", "UNSTABLE", "Formula", "random_formula"]


@dataclass(frozen=True)
class Formula:
    """One formula and the names of its inputs."""

    text: str
    inputs: tuple[str, ...]

    def prototype(self, op: str, dtypes: Sequence[str]) -> dict[str, object]:
        """Return its prototype JSON."""

        def tensor(name: str, **more: object) -> dict[str, object]:
            formats = ["ND"] * len(dtypes)
            return {
                "name": name,
                "param_type": "required",
                "format": formats,
                "type": list(dtypes),
                **more,
            }

        return {
            "op": op,
            "input_desc": [tensor(name) for name in self.inputs],
            "output_desc": [tensor("result", formula=self.text)],
        }


def _known(text: str) -> Formula:
    names = [name for name in ("x", "y", "z", "w") if name in _words(text)]
    return Formula(text, tuple(names))


def _words(text: str) -> set[str]:
    return set("".join(c if c.isalnum() or c == "_" else " " for c in text).split())


KNOWN = tuple(
    _known(text)
    for text in (
        # Arithmetic.
        "x + y", "x - y", "x*y", "x/(abs(y) + 1)", "x + pi", "x - 0.1", "2.5*x - 1.7", "x*x",
        "x**3", "x*y + z", "x + 0.3*(y - x)", "x*y - z*w", "x*x - y*y", "(x - y)**2", "-x",
        "x*x - 2*x + 1", "x**3 - 0.3*x + 0.1", "1/(1 + x*x)", "sqrt(x*x + y*y)", "abs(x - y)",
        "maximum(x, y)", "minimum(x, y)", "where(x > y, x, y)", "x + y + z + w",
        "x**4 - 3*x**2 + 0.7", "(x + y)*(x - y)", "0.5*(x + y)", "x - y/3", "(x - 0.5)*(y + 0.25)",
        # Activations.
        "maximum(x, 0)", "where(x > 0, x, 0.01*x)", "minimum(maximum(x, 0), 6)",
        "minimum(maximum(x, -1), 1)", "minimum(maximum(x/6 + 0.5, 0), 1)",
        "x*minimum(maximum(x/6 + 0.5, 0), 1)", "1/(1 + exp(-x))", "x/(1 + exp(-x))", "tanh(x)",
        "0.5*x*(1 + tanh(0.7978845608*(x + 0.044715*x**3)))", "x*sigmoid(1.702*x)",
        "x*tanh(log(1 + exp(x)))", "log(1 + exp(x))", "log(1 + exp(-x))", "x/(1 + abs(x))",
        "where(x > 0, x, exp(x) - 1)", "where(x > 0, x, 1.5*(exp(x) - 1))",
        "1.0507*where(x > 0, x, 1.67326*(exp(x) - 1))", "x - tanh(x)",
        "where(x > 1, x, 0)", "where(abs(x) > 0.5, x, 0)",
        "where(x > 0.5, x - 0.5, where(x < -0.5, x + 0.5, 0))",
        "x*sigmoid(x)*y", "maximum(x, 0)*y", "sigmoid(x)*y", "tanh(x)*sigmoid(y)", "exp(-x*x)",
        "1 - tanh(x)**2", "sigmoid(x)*(1 - sigmoid(x))", "exp(x) - 1", "log(1 + abs(x))",
        "log(x*x + 0.1)", "sqrt(abs(x) + 0.01)", "1/sqrt(x*x + 0.5)", "exp(x)*y", "exp(x - y)",
        "(exp(x) - exp(-x))/2", "(exp(x) + exp(-x))/2", "(exp(x) - exp(-x))/(exp(x) + exp(-x))",
        "log((exp(x) + exp(-x))/2)", "log(x + sqrt(x*x + 1))", "2*sigmoid(x) - 1", "x*exp(-x)",
        "abs(x)**1.5", "x*abs(x)", "sign(x)*sqrt(abs(x))",
        # Losses, elementwise.
        "(x - y)*(x - y)", "maximum(abs(x - y) - 0.1, 0)",
        "where(abs(x - y) < 1, 0.5*(x - y)**2, abs(x - y) - 0.5)",
        "maximum(x, 0) - x*y + log(1 + exp(-abs(x)))", "log(1 + exp(-x*y))",
        "maximum(1 - x*y, 0)",
        "exp(x) - y*x", "x - y*log(abs(x) + 0.001)", "sqrt((x - y)**2 + 0.0001)",
        # Optimizers and others.
        "x - 0.01*y", "0.9*x + 0.1*y", "0.999*x + 0.001*y*y", "x - 0.001*y/(sqrt(abs(z)) + 0.0001)",
        "x*(1 - 0.01*0.1) - 0.01*y", "x + y*exp(0.5*z)", "0.5*(x*x + exp(y) - y - 1)",
        "-0.5*((x - y)/(abs(z) + 0.5))**2", "x*y + (1 - x)*z", "x + sigmoid(y)*(z - x)",
        "minimum(x*y, minimum(maximum(x, 0.8), 1.2)*y)",
        # Rows.
        "x - mean(x, axis=-1)", "x/sqrt(mean(x*x, axis=-1) + 0.00001)",
        "x/sqrt(mean(x*x, axis=-1) + 0.00001)*y",
        "(x - mean(x, axis=-1))/sqrt(mean((x - mean(x, axis=-1))**2, axis=-1) + 0.00001)",
        "exp(x - max(x, axis=-1))/sum(exp(x - max(x, axis=-1)), axis=-1)",
        "x - max(x, axis=-1) - log(sum(exp(x - max(x, axis=-1)), axis=-1))",
        "sum(x, axis=-1)", "mean(x, axis=-1)", "max(x, axis=-1)", "sum(x*y, axis=-1)",
        "sum((x - y)**2, axis=-1)", "sqrt(sum(x*x, axis=-1) + 0.000001)",
        "x/sqrt(sum(x*x, axis=-1) + 0.000001)", "log(sum(exp(x), axis=-1))",
        "mean((x - mean(x, axis=-1))**2, axis=-1)", "sum(abs(x), axis=-1)",
        "x/(sum(abs(x), axis=-1) + 1)",
        "x*sigmoid(x)/(1 + mean(x*x, axis=-1))", "x + y - mean(x + y, axis=-1)",
        "y*(x - mean(x, axis=-1))/sqrt(mean((x - mean(x, axis=-1))**2, axis=-1) + 0.00001) + z",
        "(x + y)/sqrt(mean((x + y)**2, axis=-1) + 0.00001)", "x/(max(abs(x), axis=-1) + 0.001)",
        "x/(abs(sum(x, axis=-1)) + 1)",
        "sum(x*y, axis=-1)/(sqrt(sum(x*x, axis=-1))*sqrt(sum(y*y, axis=-1)) + 0.0001)",
        # Gated units.
        "x*tanh(y)", "0.5*x*(1 + tanh(0.7978845608*(x + 0.044715*x**3)))*y",
        "x*sigmoid(1.702*x)*y", "x*minimum(maximum(x + 3, 0), 6)/6*y", "log(1 + exp(x))*y",
        # More activations.
        "maximum(x, 0)**2", "maximum(x, 0.2*x)", "where(x > 0, x, y*x)", "x/(1 + exp(-y*x))",
        "where(x > 20, x, log(1 + exp(x)))", "maximum(x, 0) + minimum(0, exp(x) - 1)",
        "where(abs(x) > 0.5, x - 0.5*sign(x), 0)", "log(sigmoid(x))",
        # More losses.
        "-y*log(sigmoid(x)) - (1 - y)*log(1 - sigmoid(x))", "(1 - sigmoid(x))**2*log(1 + exp(-x))",
        "maximum(0, 0.5 - x*y)", "log((exp(x - y) + exp(y - x))/2)", "y*(log(abs(y) + 0.1) - x)",
        "sqrt(1 + (x - y)**2) - 1", "where(abs(x - y) < 0.5, (x - y)**2, abs(x - y) - 0.25)",
        # More optimizers.
        "0.9*x + (1 - 0.9)*y", "x - 0.01*(0.9*y + z)", "x - 0.01*sign(0.9*y + 0.1*z)",
        "x - 0.01*(y/(1 - 0.9))/(sqrt(abs(z)/(1 - 0.999)) + 0.0001)",
        "x - 0.01*y/sqrt(abs(z) + 0.0001)", "sign(x)*maximum(abs(x) - 0.1, 0)",
    )
)  # fmt: skip


def _gelu_tail(x: Any) -> Any:
    return 1 - np.tanh(x) ** 2


# What a formula says, and a float32 evaluation of it that loses the digits a stable one keeps.
UNSTABLE: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("1 - tanh(x)**2", _gelu_tail),
    ("log(1 + x*x)", lambda x: np.log(1 + x * x)),
    ("log(1 + abs(x))", lambda x: np.log(1 + np.abs(x))),
    ("exp(x) - 1", lambda x: np.exp(x) - np.float32(1)),
    ("where(x > 0, x, exp(x) - 1)", lambda x: np.where(x > 0, x, np.exp(x) - np.float32(1))),
    ("x - tanh(x)", lambda x: x - np.tanh(x)),
    ("(exp(x) - exp(-x))/2", lambda x: (np.exp(x) - np.exp(-x)) / 2),
    ("(exp(x) - exp(-x))/(exp(x) + exp(-x))",
     lambda x: (np.exp(x) - np.exp(-x)) / (np.exp(x) + np.exp(-x))),
    ("tanh(x)", lambda x: 1 - 2 / (np.exp(2 * x) + np.float32(1))),
    ("log(x + sqrt(x*x + 1))", lambda x: np.log(x + np.sqrt(x * x + 1))),
    ("log((exp(x) + exp(-x))/2)", lambda x: np.log((np.exp(x) + np.exp(-x)) / 2)),
    ("log(1 + exp(-12 - abs(x)))", lambda x: np.log(1 + np.exp(np.float32(-12) - np.abs(x)))),
    ("2*sigmoid(x) - 1", lambda x: 2 / (1 + np.exp(-x)) - np.float32(1)),
    ("mean((x - mean(x, axis=-1))**2, axis=-1)",
     lambda x: np.maximum(np.mean((x + 100) ** 2, -1) - np.mean(x + 100, -1) ** 2, 0)),
)  # fmt: skip

_UNARY = (
    "exp({})", "tanh({})", "sigmoid({})", "abs({})", "sqrt(abs({}))", "log(abs({}) + 0.5)",
    "maximum({}, 0)", "({})**2", "({})**3", "-({})", "log(1 + exp({}))", "1/(1 + ({})**2)",
    "sign({})", "minimum({}, 1)", "exp(-({})**2)", "sqrt(({})**2 + 1)",
)  # fmt: skip
_BINARY = (
    "({} + {})", "({} - {})", "({} - {})", "{}*{}", "{}*{}", "({})/(abs({}) + 0.5)",
    "maximum({}, {})", "minimum({}, {})", "where({} > 0, {}, 0.1)",
)  # fmt: skip
_ROW = ("mean({}, axis=-1)", "max({}, axis=-1)", "sum({}, axis=-1)")
_NUMBERS = ("0.5", "2", "0.1", "1", "3", "1.702", "0.044715", "pi", "0.25", "1.5", "0.7")


def random_formula(stream: np.random.Generator) -> Formula:
    """Return a formula of one to three inputs, three to nine operations deep and wide."""
    names = ("x", "y", "z")[: int(stream.integers(1, 4))]
    by_row = stream.random() < 0.2

    def term(depth: int, plain: bool = False) -> str:
        if depth == 0 or stream.random() < 0.15:
            return str(stream.choice(names if stream.random() < 0.8 else _NUMBERS))
        if by_row and not plain and stream.random() < 0.15:
            return str(stream.choice(_ROW)).format(f"({term(depth - 1, True)} + {names[0]})")
        if stream.random() < 0.4:
            return str(stream.choice(_UNARY)).format(term(depth - 1, plain))
        form = str(stream.choice(_BINARY))
        return form.format(term(depth - 1, plain), term(depth - 1, plain))

    text = term(int(stream.integers(2, 5)))
    # Every input is used: an operator with an unused one is another test's matter.
    used = tuple(name for name in names if name in _words(text))
    return Formula(text, used) if used else random_formula(stream)
