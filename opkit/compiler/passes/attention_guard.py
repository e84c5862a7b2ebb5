"""Conditions that programs put on the largest score of a row of attention."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ..ir import Graph
from ..ops import OPERATORS

__all__ = ["finds_infinities"]

_FINITE = (-65504.0, -1.0e4, -1.0, -6.0e-8, 0.0, 6.0e-8, 1.0, 1.0e4, 65504.0)


def finds_infinities(graph: Graph, condition: str, scores: str) -> bool:
    """Return whether a condition is true for the rows whose largest score is minus infinity, and
    for no row with a finite one.

    It is worked out for numbers of each size: programs ask for infinity in many ways.

    Args:
        condition: a tensor of truths, one a row.
        scores: those of which it asks the largest.
    """
    tried = np.array([*_FINITE, -math.inf])
    truths = _value(graph, condition, scores, tried)
    if truths is None or truths.shape != tried.shape:
        return False
    return bool(truths[-1]) and not truths[:-1].any()


def _value(graph: Graph, name: str, scores: str, tried: Any) -> Any:
    """Return a tensor for some numbers as the largest scores; None where it is not made of them,
    element by element."""
    node = graph.producers.get(name)
    if node is None:
        return None
    if node.operator == "constant":
        return np.asarray(node.settings["value"])
    shape = node.output.shape
    if node.operator == "max" and node.inputs[0] == scores:
        last = len(graph.tensors[scores].shape) - 1
        axis: Any = node.settings["axis"]
        return tried if axis in (-1, last, (-1,), (last,)) else None
    if node.operator == "reshape":
        before = graph.tensors[node.inputs[0]].shape
        is_same = before == shape or before == shape[:-1]
        return _value(graph, node.inputs[0], scores, tried) if is_same else None
    if OPERATORS[node.operator].kind != "elementwise":
        return None
    given = [_value(graph, each, scores, tried) for each in node.inputs]
    if any(each is None for each in given):
        return None
    with np.errstate(all="ignore"):
        return np.asarray(OPERATORS[node.operator].reference(*given, **dict(node.settings)))
