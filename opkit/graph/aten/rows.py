"""Rows of the operators that work along axes: reductions, softmax, norms."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opkit.compiler import LARGEST_POWER, Operand, Refused, Value, fixed_size
from opkit.compiler import AtenCall as Call

__all__ = ["ROWS"]

Row = Callable[..., Any]
Axes = "Sequence[int] | int | None"


def _fold(name: str) -> Row:
    def row(c: Call, x: Value, dim: Any = None, keepdim: bool = False, **_: Any) -> Value:
        x = c.typed(x)  # type: ignore[assignment]
        return x.apply(name, axis=_axes(dim), keepdims=bool(keepdim))

    return row


def _axes(dim: Any) -> tuple[int, ...] | int | None:
    if dim is None or isinstance(dim, int):
        return dim
    return tuple(dim) or None


def _whole(name: str) -> Row:
    return lambda c, x, **_: c.typed(x).apply(name)


def _variance(
    c: Call, x: Value, dim: Any = None, *, correction: float | None = None, keepdim: bool = False
) -> Value:
    given = 1 if correction is None else correction
    return x.apply("var", axis=_axes(dim), keepdims=bool(keepdim), correction=given)


def _variance_and_mean(c: Call, x: Value, dim: Any = None, **settings: Any) -> tuple[Value, Value]:
    keep = bool(settings.get("keepdim", False))
    return _variance(c, x, dim, **settings), x.mean(axis=_axes(dim), keepdims=keep)


def _norm(
    c: Call, x: Value, ord: float = 2, dim: Any = None, keepdim: bool = False, **_: Any
) -> Value:
    """Return the norm of some axes, computed in float32 whatever the type: with infinity the
    largest magnitude, with 0 how many elements are not 0."""
    wide = x.astype("float32")
    fold: dict[str, Any] = {"axis": _axes(dim), "keepdims": bool(keepdim)}
    if ord == 2:
        result = (wide * wide).apply("sum", **fold).apply("sqrt")
    elif math.isinf(ord):
        result = wide.apply("abs").apply("max" if ord > 0 else "min", **fold)
    elif ord == 0:
        result = wide.apply("not_equal", 0.0).astype("float32").apply("sum", **fold)
    elif ord == 1:
        result = wide.apply("abs").apply("sum", **fold)
    elif ord == -1:
        result = wide.apply("abs").apply("reciprocal").apply("sum", **fold).apply("reciprocal")
    elif ord > 0 and ord * 2 == int(ord * 2) and ord <= LARGEST_POWER:
        size = wide.apply("abs")
        power = c.apply("pow", size, float(ord)).apply("sum", **fold)
        result = power.apply("sqrt").apply("sqrt") if ord == 4 else _root(power, float(ord))
    else:
        raise Refused(f"norms of the order {ord} lose digits; the device's own kernel does not")
    return c.typed(result)  # type: ignore[return-value]


def _root(power: Value, order: float) -> Value:
    """Return the root of a sum of powers: an estimate by logarithms, and a step of Newton's."""
    is_positive = power.apply("greater", 0.0)
    positive = is_positive.apply("where", power, 1.0)
    first = (positive.apply("log") * (1.0 / order)).apply("exp")
    rest = positive * (first.apply("log") * -order).apply("exp")
    better = first + first * (rest - 1.0) * (1.0 / order)
    return is_positive.apply("where", better, power)


def _softmax(name: str) -> Row:
    def row(c: Call, x: Value, dim: int, half_to_float: bool = False) -> Value:
        return c.typed(x).apply(name, axis=dim % x.ndim)  # type: ignore[union-attr]

    return row


def _layer_norm(
    c: Call,
    x: Value,
    shape: Sequence[int],
    weight: Value | None,
    bias: Value | None,
    epsilon: float,
) -> tuple[Value, Value, Value]:
    axes = tuple(range(x.ndim - len(shape), x.ndim))
    wide = x.astype("float32")
    mean = wide.mean(axis=axes, keepdims=True)
    centred = wide - mean
    rest = ((centred * centred).mean(axis=axes, keepdims=True) + float(epsilon)).apply("rsqrt")
    value = centred * rest
    if weight is not None:
        value = value * weight.astype("float32")
    if bias is not None:
        value = value + bias.astype("float32")
    return value.astype(c.dtype), mean, rest


def _group_norm(
    c: Call,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    batch: int,
    channels: int,
    area: int,
    groups: int,
    epsilon: float,
) -> tuple[Operand, ...]:
    """Groups are rows; where a channel has one element, one kernel does statistics and the rest."""
    if groups <= 0 or int(channels) % int(groups):
        raise Refused(f"{channels} channels are not {groups} groups of one size")
    each = int(channels) // int(groups)
    # As few axes as tell channels apart: what is given then joins the kernel in its own shape.
    group = () if groups == 1 else (int(groups),)
    inner = (each,) if area == 1 else (each, area)
    wide = x.reshape(batch, *group, *inner).astype("float32")
    axes = tuple(range(1 + len(group), wide.ndim))
    mean = wide.mean(axis=axes, keepdims=True)
    centred = wide - mean
    rest = ((centred * centred).mean(axis=axes, keepdims=True) + float(epsilon)).apply("rsqrt")
    value = centred * rest
    channel = (*group, each) if area == 1 else (*group, each, 1)
    if weight is not None:
        value = value * _seen(weight, channel).astype("float32")
    if bias is not None:
        value = value + _seen(bias, channel).astype("float32")
    result = value.astype(c.dtype).reshape(*c.shape)
    statistics = [found.reshape(batch, groups) for found in (mean, rest)]
    return (result, *(c.typed(s, dtype) for s, dtype in zip(statistics, c.dtypes[1:], strict=True)))


def _seen(value: Value, shape: tuple[int, ...]) -> Value:
    return value if value.shape == shape else value.reshape(*shape)


def _batch_norm(
    c: Call,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value,
    variance: Value,
    momentum: float,
    epsilon: float,
) -> tuple[Value | None, ...]:
    """Batch norm in evaluation; it saves nothing, and its other results are empty."""
    tail = (1,) * (x.ndim - 2)

    def channel(value: Value) -> Value:
        return value.astype("float32").reshape(*value.shape, *tail)

    factor = (channel(variance) + float(epsilon)).apply("rsqrt")
    if weight is not None:
        factor = factor * channel(weight)
    value = (x.astype("float32") - channel(mean)) * factor
    if bias is not None:
        value = value + channel(bias)
    return value.astype(c.dtype), None, None


def _batch_norm_of_batch(
    c: Call,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    mean: Value | None,
    variance: Value | None,
    training: bool,
    momentum: float,
    epsilon: float,
) -> tuple[Value | None, ...]:
    """Batch norm by the batch's own mean and variance, with what becomes of the running ones."""
    if not training:
        raise Refused("batch norm by running values is another operator's")
    axes = (0, *range(2, x.ndim))
    tail = (1,) * (x.ndim - 2)
    wide = x.astype("float32")
    own = wide.mean(axis=axes, keepdims=True)
    centred = wide - own
    spread = (centred * centred).mean(axis=axes, keepdims=True)
    rest = (spread + float(epsilon)).apply("rsqrt")
    value = centred * rest
    if weight is not None:
        value = value * weight.astype("float32").reshape(-1, *tail)
    if bias is not None:
        value = value + bias.astype("float32").reshape(-1, *tail)
    count = math.prod(fixed_size(x.shape[axis]) for axis in axes)
    correction = count / max(1, count - 1)
    found: list[Value | None] = [value.astype(c.dtype), own.reshape(-1), rest.reshape(-1)]
    for running, new in ((mean, own), (variance, spread * correction)):
        if running is None:
            found.append(None)
            continue
        kept = running.astype("float32") * (1.0 - momentum)
        found.append((kept + new.reshape(-1) * float(momentum)).astype(running.dtype))
    return tuple(found)


def _batch_norm_alone(
    c: Call,
    x: Value,
    weight: Value | None,
    bias: Value | None,
    training: bool,
    momentum: float,
    epsilon: float,
) -> tuple[Value | None, ...]:
    """The same without running values."""
    return _batch_norm_of_batch(c, x, weight, bias, None, None, training, momentum, epsilon)[:3]


ROWS: Mapping[str, Row] = {
    "aten.sum.dim_IntList": _fold("sum"),
    "aten.mean.dim": _fold("mean"),
    "aten.prod.dim_int": _fold("prod"),
    "aten.amax.default": _fold("max"),
    "aten.amin.default": _fold("min"),
    "aten.logsumexp.default": _fold("logsumexp"),
    "aten.sum.default": _whole("sum"),
    "aten.mean.default": _whole("mean"),
    "aten.prod.default": _whole("prod"),
    "aten.max.default": _whole("max"),
    "aten.min.default": _whole("min"),
    "aten.var.correction": _variance,
    "aten.var_mean.correction": _variance_and_mean,
    "aten.linalg_vector_norm.default": _norm,
    "aten._softmax.default": _softmax("softmax"),
    "aten._log_softmax.default": _softmax("log_softmax"),
    "aten.native_layer_norm.default": _layer_norm,
    "aten.native_group_norm.default": _group_norm,
    "aten._native_batch_norm_legit_no_training.default": _batch_norm,
    "aten._native_batch_norm_legit_functional.default": _batch_norm_of_batch,
    "aten._native_batch_norm_legit.no_stats": _batch_norm_alone,
}
