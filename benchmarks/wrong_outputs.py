"""Deliberately wrong outputs against every precision standard.

`python benchmarks/wrong_outputs.py` prints the table of docs/precision.md: the verdict of each
standard on a float16 result, `fail` where it rejects the output.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opkit.dtypes import DType, find_dtype
from opkit.testing import STANDARDS, Comparison, compare
from opkit.testing.numbers.arrays import Array, narrow, widen

__all__ = ["ONLY_IN_THE_LAST_PLACE", "WRONG", "judge", "table"]

ELEMENTS = 48 * 2048
TILE = 2048
BLOCK = 16
ONLY_IN_THE_LAST_PLACE = ("off by one ulp", "off by ten ulp")


def _golden() -> Array:
    """Ordinary values, with a NaN and an infinity among them."""
    values = np.random.default_rng(0).standard_normal(ELEMENTS)
    values[1000], values[3000] = np.nan, np.inf
    return values


def _moved_nan(right: Array) -> Array:
    wrong = right.copy()
    wrong[[1000, 1001]] = wrong[[1001, 1000]]
    return wrong


def _missing_tile(right: Array) -> Array:
    wrong = right.copy()
    wrong[-TILE:] = 0
    return wrong


def _swapped_block(right: Array) -> Array:
    wrong = right.copy()
    one, other = slice(0, BLOCK), slice(TILE, TILE + BLOCK)
    wrong[one], wrong[other] = right[other], right[one]
    return wrong


# From the correctly rounded result, wide, to a wrong one.
WRONG: Mapping[str, Callable[[Array], Array]] = {
    "all NaN": lambda right: np.full_like(right, np.nan),
    "all infinite": lambda right: np.full_like(right, np.inf),
    "all zero": np.zeros_like,
    "last tile missing": _missing_tile,
    "1e-4 against 9e-3": lambda right: np.full_like(right, 9e-3),
    "NaN moved by one": _moved_nan,
    "one block swapped": _swapped_block,
    "off by one ulp": lambda right: right,
    "off by ten ulp": lambda right: right,
}
_STEPS = {"off by one ulp": 1, "off by ten ulp": 10}


def judge(wrong: str, dtype_name: str, standard: str) -> Comparison:
    """Return what a standard says of a wrong output, or of the right one under the name `right`.

    The second reference is the golden, rounded to the type after one more rounding error: what a
    careful implementation of the same precision gives.
    """
    dtype = find_dtype(dtype_name)
    assert dtype is not None
    golden = np.full(ELEMENTS, 1e-4) if wrong.startswith("1e-4") else _golden()
    right = widen(narrow(golden, dtype), dtype)
    second = widen(narrow(golden * (1 + _half_ulp(dtype)), dtype), dtype)
    actual = narrow(WRONG[wrong](right) if wrong in WRONG else right, dtype)
    if wrong in _STEPS:
        bits: Any = actual.view(np.uint32 if dtype.size_bytes == 4 else np.uint16)
        bits[np.isfinite(right)] += bits.dtype.type(_STEPS[wrong])
    return compare(actual, golden, dtype=dtype, standard=standard, second=second)


def _half_ulp(dtype: DType) -> float:
    return 2.0 ** -{"float16": 11, "bfloat16": 8, "float32": 24}[dtype.name]


def table(dtype: str = "float16") -> str:
    """Return the verdicts as a Markdown table."""
    # "conditioned" has ecosystem's figures; what it forgives beside them verdict.py measures.
    left_out = ("conditioned", "exact", "quant")
    names = [name for name in STANDARDS if name not in left_out]
    lines = ["| output | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for wrong in ("right", *WRONG):
        verdicts = ["pass" if judge(wrong, dtype, name).passed else "fail" for name in names]
        lines.append(f"| {wrong} | " + " | ".join(verdicts) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    print(table())
