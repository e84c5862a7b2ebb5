"""Functions of whole numbers and of their bits and bytes, exact, made of the compiler's rows."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkit.compiler import GraphError

from .enumerations import dtype_name
from .location import here
from .traced import Traced, new_value

__all__ = ["FUNCTIONS"]

_BITS = {"int8": 8, "uint8": 8, "int16": 16, "uint16": 16, "int32": 32}
_STEPS = {8: 8, 16: 14, 32: 28}
"""Steps of Euclid's algorithm with the nearest quotient, by bits: each step leaves half at most;
two more pass while float32 does not hold the quotients of int32 exactly."""


def _bits(function: str, *operands: Any) -> int:
    """Return how many bits the numbers of some operands have.

    Raises:
        GraphError: they are of no whole numbers that opkit computes with, or of several types.
    """
    dtypes = {each.dtype for each in operands if isinstance(each, Traced)}
    if len(dtypes) != 1 or not dtypes <= _BITS.keys():
        given = ", ".join(sorted(dtypes))
        raise GraphError(
            f"{function} takes tensors of one of {', '.join(_BITS)}, not {given}",
            location=here(),
            help="cast them",
        )
    return _BITS[dtypes.pop()]


def _wide(x: Any) -> Any:
    return x.apply("cast", dtype="int32") if isinstance(x, Traced) else int(x)


def _narrow(x: Traced, dtype: str) -> Traced:
    """Return an int32 as it wraps in another type."""
    with x.builder.at(here()):
        return Traced(x.builder, x.value.astype(dtype), shape=x.shape)


def _where(condition: Traced, yes: Any, no: Any) -> Traced:
    return new_value(condition.builder, "where", condition, yes, no)


def _is_set(x: Traced, bit: int) -> Traced:
    return x.apply("bitwise_and", 1 << bit).apply("not_equal", 0)


def _common(x: Any, y: Any) -> Traced:
    """Whole numbers that Euclid's algorithm takes to their greatest common divisor."""
    bits = _bits("gcd", x, y)
    first = x if isinstance(x, Traced) else y
    a, b = _wide(x), _wide(y)
    # Both in the shape of the result, as numbers change places.
    a, b = new_value(first.builder, "add", a, b * 0), new_value(first.builder, "add", b, a * 0)
    for _ in range(_STEPS[bits]):
        is_done = b.apply("equal", 0)
        divisor = _where(is_done, 1, b)
        quotient = a.apply("cast", dtype="float32") / divisor.apply("cast", dtype="float32")
        rest = a - quotient.apply("round").apply("cast", dtype="int32") * b
        a, b = _where(is_done, a, b), _where(is_done, 0, rest)
    return _narrow(a.apply("abs"), first.dtype)


def _count(function: str, x: Any, places: Any) -> tuple[Any, Any, str, int]:
    """Return a shift's operands in 32 bits, the result's type and its bits."""
    bits = _bits(function, x, places)
    if not isinstance(places, Traced) and not 0 <= int(places) < bits:
        raise GraphError(f"{function} by {places} of {bits} bits", location=here())
    first = x if isinstance(x, Traced) else places
    return _wide(x), _wide(places), first.dtype, bits


def _shifted_left(x: Any, places: Any) -> Traced:
    wide, by, dtype, bits = _count("bitwise_left_shift", x, places)
    if not isinstance(by, Traced):
        return _narrow(wide * _signed(1 << by), dtype)
    for bit in range(bits.bit_length() - 1):
        wide = new_value(by.builder, "mul", wide, _where(_is_set(by, bit), 1 << (1 << bit), 1))
    is_out = _is_no_count(by, bits)
    return _narrow(_where(is_out, 0, wide), dtype)


def _is_no_count(by: Traced, bits: int) -> Traced:
    """Return where a shift's count is negative or beyond the type's bits, as torch takes it."""
    return by.apply("greater_equal", bits).apply("logical_or", by.apply("less", 0))


def _signed(number: int) -> int:
    return number - (1 << 32) if number >= 1 << 31 else number


def _moved_down(x: Traced, by: int) -> Traced:
    """Return an int32 over a power of two, rounded down: by halves, which float32 holds."""
    low = x.apply("bitwise_and", 0xFFFF)
    high = x - low
    if by >= 16:
        return _floor(high, by)
    return _floor(high, 16) * (1 << (16 - by)) + _floor(low, by)


def _floor(x: Traced, by: int) -> Traced:
    part = x.apply("cast", dtype="float32") * 2.0**-by
    return part.apply("floor").apply("cast", dtype="int32")


def _shifted_right(x: Any, places: Any) -> Traced:
    wide, by, dtype, _ = _count("bitwise_right_shift", x, places)
    if not isinstance(by, Traced):
        return _narrow(_moved_down(wide, by), dtype)
    if not isinstance(wide, Traced):
        wide = by * 0 + wide
    # Numbers that are no count leave the sign.
    by = _where(_is_no_count(by, 32), 31, by)
    for bit in range(5):
        wide = _where(_is_set(by, bit), _moved_down(wide, 1 << bit), wide)
    return _narrow(wide, dtype)


def _bytes_of(x: Traced) -> Traced:
    """All bytes of whole numbers in one row, the lowest of each first."""
    count = _bits("pack", x) // 8
    wide = _wide(x).reshape(x.size, 1)
    parts = [_moved_down(wide, 8 * at).apply("bitwise_and", 255) for at in range(count)]
    row = new_value(x.builder, "concat", *parts, axis=1) if count > 1 else parts[0]
    return _narrow(row.reshape(x.size * count), "uint8")


def _of_bytes(x: Traced, dtype: object) -> Traced:
    name = dtype_name(dtype)
    bits = _BITS.get(name)
    if bits is None or x.dtype != "uint8" or x.ndim != 1 or x.shape[0] % (bits // 8):
        raise GraphError(
            f"unpack: opkit makes no {name} of {x.dtype}{list(x.shape)}",
            location=here(),
            help=f"one row of uint8, as many as make up whole {', '.join(_BITS)}",
        )
    count = bits // 8
    rows = _wide(x).reshape(x.shape[0] // count, count)
    total = rows[:, 0]
    for at in range(1, count):
        total = total + rows[:, at] * (1 << 8 * at)
    return _narrow(total, name)


# Of how many neighbours which one is taken, by pattern.
_PATTERNS = {1: (2, 0), 2: (2, 1), 3: (4, 0), 4: (4, 1), 5: (4, 2), 6: (4, 3), 7: (1, 0)}


def _gathered(x: Traced, pattern_mode: int) -> Traced:
    if pattern_mode not in _PATTERNS:
        raise GraphError(f"gathermask: pattern_mode={pattern_mode} is not 1 to 7", location=here())
    step, first = _PATTERNS[pattern_mode]
    if x.shape[-1] % step:
        raise GraphError(
            f"gathermask: {x.shape[-1]} elements a row are no multiple of {step}", location=here()
        )
    if step == 1:
        return x
    last = x.ndim - 1
    return x.apply("slice", axis=last, start=first, stop=int(x.shape[-1]), step=step)


def _of_another_chip(name: str) -> Callable[..., Any]:
    def call(*_: Any, **__: Any) -> Any:
        raise GraphError(
            f"{name} works on 8 and 4 bit fractions with shared exponents, which the documents have"
            " for the Ascend 950 only, and opkit for no chip",
            location=here(),
        )

    call.__name__ = name
    return call


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "gcd": _common,
    "bitwise_left_shift": _shifted_left,
    "bitwise_right_shift": _shifted_right,
    "pack": _bytes_of,
    "unpack": _of_bytes,
    "gathermask": _gathered,
    **{name: _of_another_chip(name) for name in ("scaled_mm", "quant_mx")},
}
