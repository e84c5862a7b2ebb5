"""The values of a formula along one row, in double precision."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from opkit.algebra import Node, evaluate, value_of, walk

__all__ = ["row_values"]


def row_values(node: Node, values: Mapping[str, Sequence[float]]) -> list[float]:
    """Return a value at every element of a row; one per row is repeated.

    Args:
        values: of each input and attribute, all of one length.
    """
    columns = len(next(iter(values.values())))
    known: dict[Node, list[float]] = {}
    for one in walk(node):
        arguments = [known[arg] for arg in one.args]
        known[one] = _row(one, arguments, values, columns)
    return known[node]


def _row(
    node: Node, arguments: list[list[float]], values: Mapping[str, Sequence[float]], columns: int
) -> list[float]:
    if node.kind in ("input", "attr"):
        return list(values[node.name])
    if node.kind == "columns":
        return [float(columns)] * columns
    if node.kind == "row":
        # One value for the row: the first of those given.
        return [arguments[0][0]] * columns
    if node.kind == "row_sum":
        return [math.fsum(arguments[0])] * columns
    if node.kind == "row_mean":
        return [math.fsum(arguments[0]) / columns] * columns
    if node.kind in ("row_max", "row_min"):
        extreme = max if node.kind == "row_max" else min
        return [extreme(arguments[0])] * columns
    if not arguments:
        return [evaluate(node)] * columns
    return [value_of(node, [argument[i] for argument in arguments], {}) for i in range(columns)]
