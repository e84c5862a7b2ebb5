"""Floats of 16 bits: what they hold, what has been rounded to them, and rounding to them.

Kernels compute with float16 and bfloat16 as float32. A cast rounds: to such a type, and from one
what was computed in it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from opkit.bfloat16 import bfloat16_to_float32, to_bfloat16

from .graph import Node

__all__ = ["HALVES", "holds_all", "is_rounded", "rounded_to"]

HALVES = ("float16", "bfloat16")
"""The types of floats that kernels read and write, and compute with as float32."""

# Bits of the fraction with the leading one, the exponent of the smallest step, the largest number.
_FORMATS = {
    "float16": (11, -24, 65504.0),
    "bfloat16": (8, -133, float.fromhex("0x1.fep127")),
}
# Whole numbers of so many bits are exact in each type of floats; a sign is none of them.
_DIGITS = {"float16": 11, "bfloat16": 8, "float32": 24, "float64": 53}
_WHOLE = {
    **{"bool": 1, "int8": 7, "uint8": 8, "int16": 15, "uint16": 16, "int32": 31, "uint32": 32},
    **{"int64": 63, "uint64": 64},
}


def holds_all(dtype: str, source: str) -> bool:
    """Return whether a type of floats holds every value of another type exactly."""
    if source in _WHOLE:
        return _WHOLE[source] <= _DIGITS[dtype]
    # float16 and bfloat16 have digits and exponents that the other lacks.
    return dtype == source or (dtype not in HALVES and _DIGITS[source] <= _DIGITS[dtype])


_CHOOSING = frozenset(
    {
        *("broadcast_to", "concat", "concat_slices", "pad", "reshape", "slice", "take"),
        *("take_along", "transpose", "abs", "maximum", "minimum", "neg", "relu", "where"),
    }
)
"""Operators whose results are elements of their operands, but for signs."""


def is_rounded(name: str, producers: Mapping[str, Node]) -> bool:
    """Return whether a tensor of 16 bits has no more digits than its type: it is an input, the
    result of a cast, or chosen from such."""
    waiting, seen = [name], set()
    while waiting:
        each = waiting.pop()
        node = producers.get(each)
        if node is None or each in seen or "float" not in (dtype := node.output.dtype):
            continue
        seen.add(each)
        if node.operator == "constant":
            number = node.settings["value"]
            if rounded_to(float(number), dtype if dtype in HALVES else "bfloat16") != number:
                return False
        elif dtype not in HALVES or node.operator not in (*_CHOOSING, "cast"):
            return False
        elif node.operator != "cast":
            waiting += node.inputs
    return True


def rounded_to(values: Any, dtype: str) -> Any:
    """Return float64 values rounded to the nearest of float16 or bfloat16, of two the even one.

    Arrays of a class of their own, which trace what becomes of them, see a scaling by powers of
    two around `rint`: the rounding is a decision, as one to whole numbers is.
    """
    values = np.asanyarray(values)
    if type(values) is np.ndarray and values.dtype.kind == "f":
        with np.errstate(over="ignore"):
            if dtype == "float16":
                return values.astype(np.float16).astype(values.dtype)
            return bfloat16_to_float32(to_bfloat16(values)).astype(values.dtype)
    digits, least, largest = _FORMATS[dtype]
    plain = np.asarray(values).astype(np.float64) if values.dtype == object else np.asarray(values)
    with np.errstate(all="ignore"):
        _, exponents = np.frexp(np.where(np.isfinite(plain), plain, 0.0))
        steps = np.maximum(exponents - digits, least)
        if values.dtype == object:
            # Exact numbers have no exponent that NumPy could change.
            return np.rint(values * np.exp2(-steps)) * np.exp2(steps)
        near = np.ldexp(np.rint(np.ldexp(values, -steps)), steps)
        return np.where(np.abs(near) > largest, np.copysign(np.inf, plain), near)
