"""What precision standards measure on each element; float64 in and out, smaller is better.

A function here takes the kernel's results, the golden and the numbers of the data type, and returns
one error an element. A domain takes the same and says which elements a figure is about.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FORMATS", "Measure", "Numbers", "Values", "format_numbers", "ulps"]

Values = NDArray[Any]
Numbers = Mapping[str, float]
Element = Callable[[Values, Values, Numbers], Values]

# Bits of the fraction and the smallest normal number's exponent: facts of the formats.
FORMATS: Mapping[str, tuple[int, int]] = {
    "float16": (10, -14),
    "bfloat16": (7, -126),
    "float32": (23, -126),
    "float64": (52, -1022),
}


def format_numbers(dtype: str) -> dict[str, float]:
    """Return what follows from a floating format alone; empty for a type that is none."""
    if dtype not in FORMATS:
        return {}
    fraction, exponent = FORMATS[dtype]
    highest = 2.0 ** (1 - exponent)
    return {
        "fraction": fraction,
        "exponent": exponent,
        "smallest": 2.0 ** (exponent - fraction),
        "largest": highest * (2.0 - 2.0**-fraction),
    }


@dataclass(frozen=True)
class Measure:
    """One figure of a standard."""

    name: str
    gather: str
    """`mean`, `max`, `rms` or `count` over the finite elements of the domain."""
    element: Element
    limit: Callable[[Numbers], float]
    strict: bool
    """Whether the figure must stay below the limit, rather than at most reach it."""
    domain: Element | None = None
    """Which elements it is about; all when None."""
    is_ratio: bool = False
    """Divided by the same figure of a second reference, of the kernel's own precision."""
    alternative: str = ""
    """One of the figures with the same word here suffices."""


def ulps(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return the distance in units in the last place of the golden's neighbourhood."""
    distance: Values = np.abs(actual - golden) / _ulp(golden, numbers)
    return distance


def rounded(golden: Values, numbers: Numbers) -> Values:
    """Return a finite golden as the type holds it, to nearest even."""
    step = _ulp(golden, numbers)
    # Exact: division by a power of two, and rint rounds to nearest even as the type does.
    result: Values = np.rint(golden / step) * step
    return result


def _ulp(golden: Values, numbers: Numbers) -> Values:
    _, exponents = np.frexp(golden)
    # frexp's fraction is in [0.5, 1): its exponent is one above the format's.
    exponents = np.maximum(exponents - 1, int(numbers["exponent"])) - int(numbers["fraction"])
    step: Values = np.ldexp(1.0, exponents)
    return step


def absolute(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return the absolute error."""
    error: Values = np.abs(actual - golden)
    return error


def absolute_beyond_ulps(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return the absolute error, 0 where it is no more than the `free_ulps` of the numbers."""
    error: Values = np.abs(actual - golden)
    error[error <= numbers["free_ulps"] * _ulp(golden, numbers)] = 0.0
    return error


def relative(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return |a - g| / (|g| + 1e-7)."""
    error: Values = np.abs(actual - golden) / (np.abs(golden) + 1e-7)
    return error


def relative_of_format(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return `relative`, 0 where the difference is below the type's smallest positive number."""
    difference = np.abs(actual - golden)
    error: Values = difference / (np.abs(golden) + 1e-7)
    # Among float16's subnormal numbers even the correctly rounded result has a relative error of
    # many per cent. The document does not speak of them; what the type cannot hold is no error.
    error[difference < numbers["smallest"]] = 0.0
    return error


def outside_tolerance(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return 1 where |a - g| > atol + rtol |g|, else 0."""
    tolerance = numbers["atol"] + numbers["rtol"] * np.abs(golden)
    outside: Values = (np.abs(actual - golden) > tolerance).astype(np.float64)
    return outside


def outside_tolerance_of_rounded(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return `outside_tolerance` of the golden rounded to the type."""
    return outside_tolerance(actual, rounded(golden, numbers), numbers)


def outside_larger(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return 1 where |a - g| > max(atol, rtol max(|a|, |g|)), else 0."""
    larger = np.maximum(np.abs(actual), np.abs(golden))
    tolerance = np.maximum(numbers["atol"], numbers["rtol"] * larger)
    outside: Values = (np.abs(actual - golden) > tolerance).astype(np.float64)
    return outside


def relative_to_larger(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return |a - g| / max(|a|, |g|, atol / rtol)."""
    larger = np.maximum(np.abs(actual), np.abs(golden))
    error: Values = np.abs(actual - golden) / np.maximum(larger, numbers["atol"] / numbers["rtol"])
    return error


def above_ulps(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return 1 where the distance is over the `ulp` of the numbers, else 0."""
    above: Values = (ulps(actual, golden, numbers) > numbers["ulp"]).astype(np.float64)
    return above


def above_ulps_of_rounded(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return `above_ulps` of the golden rounded to the type: steps between two of its numbers."""
    return above_ulps(actual, rounded(golden, numbers), numbers)


def above_step(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return 1 where |a - g| > 1, a quantised value's last bit, else 0."""
    above: Values = (np.abs(actual - golden) > 1.0).astype(np.float64)
    return above


def above_small_error(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return 1 where |a - g| is over the small value domain's error, else 0."""
    above: Values = (np.abs(actual - golden) > numbers["small_error"]).astype(np.float64)
    return above


def gross(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return 1 where |a - g| > cap + |g| / 2: nothing that rounding explains, else 0."""
    allowed = numbers["gross"] + np.abs(golden) / 2
    wrong: Values = (np.abs(actual - golden) > allowed).astype(np.float64)
    return wrong


def differs(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return 1 where the values differ, else 0."""
    different: Values = (actual != golden).astype(np.float64)
    return different


def beyond_rounding(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return how far a whole number is beyond the rounding of its golden, relative to |g| + 1.

    It is 1 at least where the number is neither of the golden's two neighbours; the golden counts
    as the type's limit where it is beyond that.
    """
    within = np.clip(golden, numbers["lowest"], numbers["highest"])
    distance = np.abs(actual - within)
    error = np.maximum(distance - 0.5, 0.0) / (np.abs(within) + 1.0)
    result: Values = np.where(distance < 1.0, error, np.maximum(error, 1.0))
    # No whole number is what NaN rounds to.
    result[np.isnan(distance)] = np.inf
    return result


def differs_from_rounded(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return 1 where the result is not the golden rounded to the type, sign of zero included."""
    right = rounded(golden, numbers)
    different = (actual != right) | (np.signbit(actual) != np.signbit(right))
    result: Values = different.astype(np.float64)
    return result


def everywhere(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Return 1 for every element."""
    ones: Values = np.ones(golden.shape)
    return ones


def in_normal_domain(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Whether the golden is not in the small value domain."""
    inside: Values = np.abs(golden) >= numbers["small"]
    return inside


def in_small_domain(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Whether the golden is in the small value domain."""
    inside: Values = np.abs(golden) < numbers["small"]
    return inside


def in_cancellation_domain(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Whether a result vanished whose golden is small, yet not in the small value domain."""
    size = np.abs(golden)
    vanished = np.abs(actual) < numbers["small"]
    inside: Values = vanished & (size >= numbers["small"]) & (size < numbers["cancellation"])
    return inside


def in_plain_domain(actual: Values, golden: Values, numbers: Numbers) -> Values:
    """Whether an element is in neither the small value nor the cancellation domain."""
    inside: Values = in_normal_domain(actual, golden, numbers) & ~in_cancellation_domain(
        actual, golden, numbers
    )
    return inside
