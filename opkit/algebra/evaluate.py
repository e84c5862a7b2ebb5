"""The value of a formula in which everything is a number."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping

from .functions import row_of
from .nodes import Node, walk

__all__ = ["evaluate", "value_of"]

_COMPARE: dict[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
    "==": operator.eq,
    "!=": operator.ne,
}


def evaluate(node: Node, values: Mapping[str, float] | None = None) -> float:
    """Return a value in double precision, infinite or NaN where IEEE 754 says so.

    Args:
        node: numbers, and the attributes in `values`; `columns` is one of them.
    """
    known: dict[Node, float] = {}
    for one in walk(node):
        known[one] = value_of(one, [known[arg] for arg in one.args], values or {})
    return known[node]


def value_of(node: Node, arguments: list[float], values: Mapping[str, float]) -> float:
    """Return a node's value where its arguments' are known."""
    if node.kind == "number":
        return _quotient(node)
    if node.kind == "constant":
        return math.pi if node.name == "pi" else math.e
    if node.kind in ("attr", "columns"):
        return float(values[node.name])
    if node.kind == "sum":
        return math.fsum(arguments) if all(map(math.isfinite, arguments)) else sum(arguments)
    if node.kind == "product":
        return math.prod(arguments)
    if node.kind in ("guard", "plus_zero", "opaque"):
        return arguments[0]
    if node.kind in _COMPARE:
        return float(_COMPARE[node.kind](*arguments))
    function: Callable[..., float] | None
    if node.kind == "power":
        function = operator.pow
    else:
        row = row_of(node.kind)
        function = None if row is None else row.value
    if function is None:
        raise NotImplementedError(f"no value for {node.kind}")
    try:
        result = function(*arguments)
    except OverflowError:
        # cosh is the only one that is large and positive on both sides.
        return math.inf
    except ZeroDivisionError:
        return math.copysign(math.inf, arguments[0]) if arguments else math.inf
    except ValueError:
        return -math.inf if arguments[0] == 0 else math.nan
    # A root of a negative number is complex in Python.
    return math.nan if isinstance(result, complex) else float(result)


def _quotient(node: Node) -> float:
    try:
        return float(node.fraction)
    except OverflowError:
        return math.copysign(math.inf, node.fraction)
