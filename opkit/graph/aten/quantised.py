"""Rows of fake-quantisation: fractions rounded to the levels that integers of some bits have, and
where that bound them, which the gradient wants to know."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from opkit.compiler import AtenCall as Call
from opkit.compiler import Operand, Refused, Value

__all__ = ["ROWS"]

Row = Callable[..., Any]


def _rounded(
    c: Call, x: Value, scale: Operand, zero: Operand, low: int, high: int
) -> tuple[Value, Value]:
    """Return the nearest levels as fractions, and whether they lie inside of the range."""
    wide = x.astype("float32")
    by = 1.0 / scale if isinstance(scale, Value) else 1.0 / float(scale)
    level = (wide * by + zero).apply("round")
    inside = level.apply("greater_equal", float(low)).apply(
        "logical_and", level.apply("less_equal", float(high))
    )
    kept = level.apply("maximum", float(low)).apply("minimum", float(high))
    return ((kept - zero) * scale).astype(c.dtypes[0]), inside


def _fraction(value: Operand) -> Operand:
    return value.astype("float32") if isinstance(value, Value) else float(value)


def _per_tensor(
    c: Call, x: Value, scale: Operand, zero: Operand, low: int, high: int
) -> tuple[Value, Value]:
    return _rounded(c, x, _fraction(scale), _fraction(zero), low, high)


def _switched(
    c: Call, x: Value, scale: Value, zero: Value, enabled: Value, low: int, high: int
) -> tuple[Value, Value]:
    one = (1,) * x.ndim
    levels, inside = _rounded(
        c,
        x,
        scale.reshape(*one).astype("float32"),
        zero.reshape(*one).astype("float32"),
        low,
        high,
    )
    switch = enabled.reshape(*one).astype("float32").apply("broadcast_to", shape=x.shape)
    is_on = switch.apply("not_equal", 0.0)
    is_off = switch.apply("equal", 0.0)
    return is_on.apply("where", levels, x), inside.apply("logical_or", is_off)


def _per_channel(
    c: Call, x: Value, scale: Value, zero: Value, axis: int, low: int, high: int
) -> tuple[Value, Value]:
    if "float" in zero.dtype:
        raise Refused("zero points that are fractions have no kernel")
    across = [1] * x.ndim
    across[axis % x.ndim] = x.shape[axis]
    scale, zero = (each.reshape(*across).astype("float32") for each in (scale, zero))
    return _rounded(c, x, scale, zero, low, high)


ROWS: Mapping[str, Row] = {
    "aten.fake_quantize_per_tensor_affine_cachemask.default": _per_tensor,
    "aten._fake_quantize_per_tensor_affine_cachemask_tensor_qparams.default": _switched,
    "aten.fake_quantize_per_channel_affine_cachemask.default": _per_channel,
}
