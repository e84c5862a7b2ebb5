"""Reductions and divisions of whole numbers by instructions that reduce and divide fractions only,
with every bit right."""

from __future__ import annotations

from ..ir import GraphError, Value, product

__all__ = ["divide_whole", "reduce_whole"]

_LONGEST = (1 << 24) // 255
"""Elements whose bytes add up to what float32 holds exactly."""


def reduce_whole(operator: str, x: Value, axes: tuple[int, ...]) -> Value:
    """Return a sum, a maximum or a minimum of whole numbers along neighbouring axes, which keep
    their rank."""
    length = product(x.shape[axis] for axis in axes)
    is_long = isinstance(length, int) and length > 1 << 24
    if x.dtype == "bool" and not (operator == "sum" and is_long):
        return x.astype("float32").apply(operator, axis=axes, keepdims=True).astype("int32")
    if operator == "sum":
        total = _sum(x.astype("int32"), axes)
        return total if x.dtype == "bool" else total.astype(x.dtype)
    if x.dtype == "int32":
        return _extreme(operator, x, axes)
    return x.astype("float32").apply(operator, axis=axes, keepdims=True).astype(x.dtype)


def _sum(x: Value, axes: tuple[int, ...]) -> Value:
    """Return an int32 sum, which wraps, byte by byte: float32 adds up bytes exactly."""
    length = product(x.shape[axis] for axis in axes)
    if not isinstance(length, int):
        return x.apply("whole_sum", axis=axes)
    if length > _LONGEST:
        return _sum_of_parts(x, axes)
    total: Value | None = None
    for place in range(4):
        mask = 0xFF << 8 * place
        # The highest byte carries the sign.
        mask -= (1 << 32) if place == 3 else 0
        byte = x.apply("bitwise_and", mask).astype("float32") * float(2.0 ** (-8 * place))
        part = byte.sum(axis=axes, keepdims=True).astype("int32") * (1 << 8 * place)
        total = part if total is None else total + part
    assert total is not None
    return total


def _sum_of_parts(x: Value, axes: tuple[int, ...]) -> Value:
    """Return a sum of more elements than whose bytes float32 adds up: sums wrap, so that those of
    parts may be added."""
    *others, axis = axes
    extent = x.shape[axis]
    assert isinstance(extent, int)
    if extent <= _LONGEST:
        inner = _sum(x, (axis,))
    else:
        part = next((at for at in range(_LONGEST, _LONGEST // 64, -1) if extent % at == 0), 1 << 15)
        parts = -(-extent // part)
        if parts * part > extent:
            widths = tuple((0, parts * part - extent if at == axis else 0) for at in range(x.ndim))
            x = x.apply("pad", widths=widths, value=0)
        before, after = x.shape[:axis], x.shape[axis + 1 :]
        inner = _sum(x.reshape(*before, parts, part, *after), (axis + 1,))
        inner = _sum(inner.reshape(*before, parts, *after), (axis,))
    return _sum(inner, tuple(others)) if others else inner


def divide_whole(a: Value, b: Value, number: float | None) -> tuple[Value, Value]:
    """Return the quotient of whole numbers, rounded down, and what remains, which has the divisor's
    sign: int32, or int64 where one of them is. By 0 both are 0, as in NumPy.

    A quotient of fractions, a little too small on purpose, takes off all but some thousand times
    the divisor without leaving the type; a second one takes off the rest, or once too much.

    Args:
        number: the divisor, where it is known.

    Raises:
        GraphError: it is known to be 0.
    """
    is_long = "int64" in (a.dtype, b.dtype)
    wide, real, digits = ("int64", "float64", 50) if is_long else ("int32", "float32", 21)
    if number == 0:
        raise GraphError("whole numbers do not divide by 0", location=a.builder.location)
    x, y = a.astype(wide), b.astype(wide)
    divisor = y.astype(real)
    first = (x.astype(real) / divisor * (1 - 2.0**-digits)).astype(wide)
    rest = x - first * y
    second = (rest.astype(real) / divisor + 2.0**-9).apply("floor").astype(wide)
    rest = rest - second * y
    quotient = first + second
    if number is None:
        beyond = rest.apply("less", 0).apply("not_equal", y.apply("less", 0))
        beyond = beyond.apply("logical_and", rest.apply("not_equal", 0))
    else:
        beyond = rest.apply("less" if number > 0 else "greater", 0)
    quotient = beyond.apply("where", quotient - 1, quotient)
    rest = beyond.apply("where", rest + y, rest)
    if number is None:
        is_zero = y.apply("equal", 0)
        quotient, rest = (is_zero.apply("where", 0, each) for each in (quotient, rest))
    return quotient, rest


def _extreme(operator: str, x: Value, axes: tuple[int, ...]) -> Value:
    """Return the largest or smallest int32: its upper half first, then the lower one among those
    that share it. Float32 holds each half exactly."""
    upper = x.apply("bitwise_and", -65536).astype("float32")
    peak = upper.apply(operator, axis=axes, keepdims=True)
    lower = x.apply("bitwise_and", 65535).astype("float32")
    worst = -1.0 if operator == "max" else 65536.0
    among = upper.apply("equal", peak).apply("where", lower, worst)
    rest = among.apply(operator, axis=axes, keepdims=True)
    return peak.astype("int32") + rest.astype("int32")
