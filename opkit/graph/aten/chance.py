"""Rows of the operators that draw random numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opkit.compiler import AtenCall as Call
from opkit.compiler import Refused, Value

__all__ = ["ROWS"]

Row = Callable[..., Any]


def _dropout(c: Call, x: Value, p: float, train: bool | None) -> tuple[Value, Value]:
    """The result, and which elements it keeps, for the backward."""
    if train is False:
        return x, c.full(c.shapes[1], True, "bool")
    if not 0 <= p < 1:
        raise Refused(f"dropping a share of {p} has no kernel")
    kept = c.uniform(x.shape).apply("greater", float(p))
    return kept.apply("where", x * (1.0 / (1.0 - p)), 0.0), kept


def _dropout_backward(c: Call, grad: Value, kept: Value, scale: float) -> Value:
    return kept.apply("where", grad * float(scale), 0.0)


ROWS: Mapping[str, Row] = {
    "aten.native_dropout.default": _dropout,
    "aten.native_dropout_backward.default": _dropout_backward,
}
