"""The compiler's operators of one value as functions of the device's formulas (csrc/program.h).

The eager device and `torch.compile` then compute the same: each function's steps are traced from
its row in `opkit.compiler`, when the device's library is built.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkit.compiler import Graph, Node

__all__ = ["functions_text"]

_FUNCTIONS: Mapping[str, tuple[str, Mapping[str, object]]] = {
    **{name: (name, {}) for name in ("log1p", "expm1", "softplus", "log_sigmoid", "mish")},
    **{name: (name, {}) for name in ("tanh_softplus", "sinh", "asinh", "atanh", "silu")},
    "log_one_plus": ("log_one_plus", {}),
    "gelu": ("gelu", {"approximate": "none"}),
    "gelu_tanh": ("gelu", {"approximate": "tanh"}),
    "ndtr": ("ndtr", {}),
}
"""A formula's function to the compiler's operator, with its settings."""
_SLOPES = ("tanh_softplus", "gelu", "gelu_tanh")
"""Functions whose derivative is one too, behind "d_"."""
_STEPS: Mapping[str, str] = {
    **{name: f"({{0}} {sign} {{1}})" for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*"))},
    **{name: f"({{0}} {sign} {{1}})" for name, sign in (("div", "/"), ("equal", "=="))},
    **{name: f"({{0}} {sign} {{1}})" for name, sign in (("less", "<"), ("less_equal", "<="))},
    **{name: f"({{0}} {sign} {{1}})" for name, sign in (("greater", ">"), ("greater_equal", ">="))},
    "not_equal": "({0} != {1})",
    "maximum": "max({0}, {1})",
    "minimum": "min({0}, {1})",
    "neg": "(-{0})",
    "log": "ln({0})",
    "where": "select({0}, {1}, {2})",
    "logical_and": "and({0}, {1})",
    "logical_or": "or({0}, {1})",
    "logical_not": "not({0})",
    **{name: f"{name}({{0}})" for name in ("abs", "exp", "sqrt", "floor", "ceil", "trunc")},
}
"""The compiler's primitives as the device's formulas write them."""


def functions_text() -> str:
    """Return the functions as rows FUNCTION(name, formula of x), for functions.inc."""
    lines = [_row(name, _traced(*row)) for name, row in _FUNCTIONS.items()]
    lines += [_row(f"d_{name}", _slope(*_FUNCTIONS[name])) for name in _SLOPES]
    return "".join(lines)


def _row(name: str, graph: Graph) -> str:
    return f'FUNCTION("{name}", "{_formula(graph)}")\n'


def _traced(operator: str, settings: Mapping[str, object]) -> Graph:
    from opkit.compiler import GraphBuilder, expand

    builder = GraphBuilder()
    builder.output("y", builder.input("x", (1,)).apply(operator, **settings))
    return expand(builder.graph())


def _slope(operator: str, settings: Mapping[str, object]) -> Graph:
    from opkit.compiler import OPERATORS, GraphBuilder, expand

    builder = GraphBuilder()
    x = builder.input("x", (1,))
    row = OPERATORS[operator]
    assert row.gradient is not None
    one = builder.constant(1.0)
    (slope,) = row.gradient(one, x, x.apply(operator, **settings), **settings)
    assert slope is not None
    builder.output("y", slope)
    return expand(builder.graph())


def _formula(graph: Graph) -> str:
    """Return a graph of one input and one output as assignments and a last expression."""
    names = {graph.inputs[0].name: "x"}
    parts = []
    for number, node in enumerate(graph.nodes):
        operands = [names[name] for name in node.inputs]
        is_one = node.operator == "mul" and operands[0] == "1.0"
        text = operands[1] if is_one else _expression(node, operands)
        if is_one or node.operator in ("constant", "cast"):
            names[node.output.name] = text
            continue
        names[node.output.name] = f"t{number}"
        parts.append(f"t{number} = {text}; ")
    return "".join(parts) + names[graph.outputs[0][1]]


def _expression(node: Node, operands: list[str]) -> str:
    if node.operator == "constant":
        value = float(node.settings["value"])  # type: ignore[arg-type]
        return f"({value!r})" if value < 0 else repr(value)
    if node.operator == "cast":
        return operands[0]
    return _STEPS[node.operator].format(*operands)
