"""Reductions of whole numbers by instructions that reduce fractions only, with every bit right."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .dimensions import product
from .graph import GraphError

if TYPE_CHECKING:
    from .builder import Value

__all__ = ["reduce_whole"]

_LONGEST = (1 << 24) // 255
"""Elements whose bytes add up to what float32 holds exactly."""


def reduce_whole(operator: str, x: Value, axes: tuple[int, ...]) -> Value:
    """Return a sum, a maximum or a minimum of whole numbers along axes, which keep their rank.

    Raises:
        GraphError: a sum runs over more elements than it is exact for.
    """
    if x.dtype == "bool":
        # A count of truths stays below 2**24.
        return x.astype("float32").apply(operator, axis=axes, keepdims=True).astype("int32")
    if operator == "sum":
        return _wrapped(_sum(x.astype("int32"), axes), x.dtype)
    if x.dtype == "int32":
        return _extreme(operator, x, axes)
    return x.astype("float32").apply(operator, axis=axes, keepdims=True).astype(x.dtype)


def _sum(x: Value, axes: tuple[int, ...]) -> Value:
    """Return an int32 sum, which wraps, byte by byte: float32 adds up bytes exactly."""
    length = product(x.shape[axis] for axis in axes)
    if not isinstance(length, int) or length > _LONGEST:
        raise GraphError(
            f"a sum of whole numbers over {length} elements is not exact:"
            f" at most {_LONGEST}, a number known when the program is compiled",
            location=x.builder.location,
            help="sum in parts, or cast to float32 first; exact up to 2**24",
        )
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


def _wrapped(total: Value, dtype: str) -> Value:
    """Return an int32 in a narrower type, as it wraps there."""
    if dtype == "int32":
        return total
    bits = {"int8": 8, "uint8": 8, "int16": 16}[dtype]
    half = 1 << (bits - 1) if dtype.startswith("int") else 0
    low = (total + half).apply("bitwise_and", (1 << bits) - 1) - half
    return low.astype(dtype)


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
