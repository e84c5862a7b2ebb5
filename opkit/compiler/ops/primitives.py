"""Rows of the operators that kernels compute by themselves, element by element or along an axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from ..ir import (
    HALVES,
    REQUIRED,
    Operator,
    Settings,
    Tensor,
    Value,
    as_bool,
    as_first,
    as_float,
    as_promoted,
    as_sum,
    broadcast,
    is_floating,
    reduced,
    rounded_to,
    scalar_shape,
)

__all__ = ["ROWS"]


def _int_of(tensors: Sequence[Tensor], settings: Settings) -> str:
    return as_promoted(tensors, settings)


def _branches(tensors: Sequence[Tensor], settings: Settings) -> str:
    return as_promoted(tensors[1:], settings)


def _cast_dtype(_: Sequence[Tensor], settings: Settings) -> str:
    from opkit.dtypes import find_dtype
    from opkit.errors import UsageError

    row = find_dtype(settings.text("dtype"))
    if row is None:
        raise UsageError(f'there is no data type "{settings["dtype"]}"')
    return row.name


def _cast(x: Any, dtype: str) -> Any:
    # The reference computes in float64, which stands for float32: what a narrower type does not
    # hold is rounded to it.
    x = np.asanyarray(x)
    if dtype == "bool":
        return x != 0
    if is_floating(dtype):
        if dtype == "float32" and x.dtype.kind in "iu" and x.dtype.itemsize >= 4:
            x = x.astype(np.float32)
        return rounded_to(x, dtype) if dtype in HALVES else x.astype(np.float64)
    if x.dtype.kind in "iub":
        return x.astype(dtype)
    limits = np.iinfo(dtype)
    return np.clip(np.trunc(x), limits.min, limits.max).astype(dtype)


def _divide(a: Any, b: Any) -> Any:
    with np.errstate(all="ignore"):
        return np.true_divide(a, b)


def _quiet(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(*arguments: Any) -> Any:
        with np.errstate(all="ignore"):
            return function(*arguments)

    return call


def _reduce(function: Callable[..., Any]) -> Callable[..., Any]:
    def call(x: Any, axis: Any, keepdims: bool) -> Any:
        return function(x, axis=axis, keepdims=keepdims)

    return call


def _row(
    name: str, vector: str, reference: Callable[..., Any], arity: int, **more: Any
) -> Operator:
    more.setdefault("aten", name)
    more.setdefault("pto", name)
    return Operator(
        name,
        arity,
        "elementwise",
        broadcast,
        more.pop("dtype", as_promoted),
        reference,
        vector=vector,
        **more,
    )


# Gradients: grad, operands and result to the operands' gradients, before any is summed over the
# axes along which it was broadcast.
def _grad_add(grad: Value, a: Value, b: Value, y: Value) -> Sequence[Value | None]:
    return grad, grad


def _grad_sub(grad: Value, a: Value, b: Value, y: Value) -> Sequence[Value | None]:
    return grad, -grad


def _grad_mul(grad: Value, a: Value, b: Value, y: Value) -> Sequence[Value | None]:
    return grad * b, grad * a


def _grad_div(grad: Value, a: Value, b: Value, y: Value) -> Sequence[Value | None]:
    return grad / b, -(grad * a) / (b * b)


def _grad_extreme(name: str) -> Callable[..., Sequence[Value | None]]:
    def gradient(grad: Value, a: Value, b: Value, y: Value) -> Sequence[Value | None]:
        # Equal values have half each; one that is no number is not compared.
        tie = a.apply("equal", b).apply("where", grad * 0.5, 0.0)
        return a.apply(name, b).apply("where", grad, tie), b.apply(name, a).apply(
            "where", grad, tie
        )

    return gradient


def _grad_where(grad: Value, c: Value, a: Value, b: Value, y: Value) -> Sequence[Value | None]:
    return None, c.apply("where", grad, 0.0), c.apply("where", 0.0, grad)


def _none(count: int) -> Callable[..., Sequence[Value | None]]:
    return lambda *_, **__: (None,) * count


def _grad_sum(grad: Value, x: Value, y: Value, **_: Any) -> Sequence[Value | None]:
    return (grad,)


def _grad_peak(grad: Value, x: Value, y: Value, **_: Any) -> Sequence[Value | None]:
    # Elements that tie share it.
    hit = x.apply("equal", y)
    count = hit.apply("where", 1.0, 0.0).sum(axis=_["axis"], keepdims=True)
    return (hit.apply("where", grad / count, 0.0),)


def _compare(name: str, mode: str, reference: Callable[..., Any], aten: str) -> Operator:
    return _row(
        name,
        f"Compare:{mode}",
        reference,
        2,
        dtype=as_bool,
        aten=aten,
        gradient=_none(2),
        pto="cmp",
    )


def _round(name: str, mode: str, reference: Callable[..., Any]) -> Operator:
    return _row(name, f"Round:{mode}", reference, 1, dtype=as_float, gradient=_none(1))


def _fold(name: str, vector: str, reference: Callable[..., Any], pto: str, **more: Any) -> Operator:
    return Operator(
        name,
        1,
        "reduction",
        reduced,
        more.pop("dtype", as_sum),
        _reduce(reference),
        vector=vector,
        pto=pto,
        parameters={"axis": None, "keepdims": False},
        **more,
    )


def _source(name: str, parameter: str, reference: Callable[..., Any]) -> Operator:
    return Operator(
        name, 0, "source", scalar_shape, as_float, reference, parameters={parameter: REQUIRED}
    )


ROWS = (
    # single numbers
    _source("constant", "value", lambda value: np.asarray(value)),
    _source("attribute", "name", lambda name: np.asarray(name)),
    _source("extent", "extent", lambda extent: np.asarray(extent)),
    # arithmetic
    _row("add", "Add", np.add, 2, gradient=_grad_add),
    _row("sub", "Sub", np.subtract, 2, gradient=_grad_sub),
    _row("mul", "Mul", np.multiply, 2, gradient=_grad_mul),
    _row("div", "Div", _divide, 2, dtype=as_float, gradient=_grad_div),
    _row("maximum", "Max", np.maximum, 2, gradient=_grad_extreme("greater"), pto="max"),
    _row("minimum", "Min", np.minimum, 2, gradient=_grad_extreme("less"), pto="min"),
    _row("neg", "Neg", np.negative, 1, gradient=lambda g, x, y: (-g,)),
    _row("abs", "Abs", np.abs, 1, gradient=lambda g, x, y: (g * x.apply("sign"),)),
    _row("exp", "Exp", _quiet(np.exp), 1, dtype=as_float, gradient=lambda g, x, y: (g * y,)),
    _row("log", "Ln", _quiet(np.log), 1, dtype=as_float, gradient=lambda g, x, y: (g / x,)),
    _row(
        "sqrt", "Sqrt", _quiet(np.sqrt), 1, dtype=as_float, gradient=lambda g, x, y: (g * 0.5 / y,)
    ),
    _round("floor", "CAST_FLOOR", np.floor),
    _round("ceil", "CAST_CEIL", np.ceil),
    _round("round", "CAST_RINT", np.rint),
    _round("trunc", "CAST_TRUNC", np.trunc),
    # comparisons, truth and bits
    _compare("less", "LT", np.less, "lt"),
    _compare("less_equal", "LE", np.less_equal, "le"),
    _compare("greater", "GT", np.greater, "gt"),
    _compare("greater_equal", "GE", np.greater_equal, "ge"),
    _compare("equal", "EQ", np.equal, "eq"),
    _compare("not_equal", "NE", np.not_equal, "ne"),
    _row("logical_and", "MaskAnd", np.logical_and, 2, dtype=as_bool, gradient=_none(2), pto="and"),
    _row("logical_or", "MaskOr", np.logical_or, 2, dtype=as_bool, gradient=_none(2), pto="or"),
    _row("logical_not", "MaskNot", np.logical_not, 1, dtype=as_bool, gradient=_none(1), pto="not"),
    _row("bitwise_and", "And", np.bitwise_and, 2, dtype=_int_of, gradient=_none(2), pto="and"),
    _row("bitwise_or", "Or", np.bitwise_or, 2, dtype=_int_of, gradient=_none(2), pto="or"),
    _row("bitwise_not", "Not", np.invert, 1, dtype=_int_of, gradient=_none(1), pto="not"),
    _row("where", "Select", np.where, 3, dtype=_branches, gradient=_grad_where, pto="sel"),
    Operator(
        "cast",
        1,
        "elementwise",
        broadcast,
        _cast_dtype,
        _cast,
        vector="Cast",
        gradient=lambda g, x, y, dtype: (g if is_floating(x.dtype) else None,),
        pto="cvt",
        aten="_to_copy",
        parameters={"dtype": REQUIRED},
    ),
    # along axes
    _fold("sum", "Fold:Sum", np.sum, "rowsum", aten="sum", gradient=_grad_sum),
    _fold("max", "Fold:Max", np.max, "rowmax", aten="amax", dtype=as_first, gradient=_grad_peak),
    _fold("min", "Fold:Min", np.min, "rowmin", aten="amin", dtype=as_first, gradient=_grad_peak),
)
