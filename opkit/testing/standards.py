"""Precision standards, one row each: what is measured per element, how it is gathered, the limit.

To add a standard, add a row to `STANDARDS`: its measures and its numbers per data type, with the
document that they are from. Everything that a standard measures is smaller when it is better.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opkit.dtypes import DType
from opkit.errors import UsageError
from opkit.schema import nearest

__all__ = ["EXACT", "STANDARDS", "Measure", "Standard", "find_standard"]

Values = NDArray[Any]
Numbers = Mapping[str, float]


@dataclass(frozen=True)
class Measure:
    """One figure of a standard."""

    name: str
    gather: str
    """`mean` or `max` over the finite elements."""
    element: Callable[[Values, Values, Numbers], Values]
    """(actual, golden, numbers of the dtype) to one error per element; float64 in and out."""
    limit: Callable[[Numbers], float]
    strict: bool
    """Whether the figure must stay below the limit, rather than at most reach it."""


@dataclass(frozen=True)
class Standard:
    """A named set of measures, all of which must hold."""

    name: str
    summary: str
    source: str
    measures: tuple[Measure, ...]
    """The first one decides which element is the worst."""
    numbers: Mapping[str, Numbers]
    """Per data type name; a type that is missing here is compared bit for bit if it is whole."""

    def numbers_for(self, dtype: DType) -> Numbers:
        """Return the numbers of a data type.

        Raises:
            UsageError: the standard's document gives none.
        """
        if dtype.name not in self.numbers:
            raise UsageError(
                f'the precision standard "{self.name}" has no limits for {dtype.name}',
                help="it has them for " + ", ".join(self.numbers),
            )
        return self.numbers[dtype.name]


def _relative_error(actual: Values, golden: Values, numbers: Numbers) -> Values:
    difference = np.abs(actual - golden)
    error: Values = difference / (np.abs(golden) + 1e-7)
    # Among float16's subnormal numbers even the correctly rounded result has a relative error of
    # many per cent. The document does not speak of them; what the type cannot hold is no error.
    error[difference < numbers["smallest"]] = 0.0
    return error


def _outside_tolerance(actual: Values, golden: Values, numbers: Numbers) -> Values:
    tolerance = numbers["atol"] + numbers["rtol"] * np.abs(golden)
    outside: Values = (np.abs(actual - golden) > tolerance).astype(np.float64)
    return outside


def _differs(actual: Values, golden: Values, numbers: Numbers) -> Values:
    different: Values = (actual != golden).astype(np.float64)
    return different


# Whole numbers and booleans, under every standard.
EXACT = Standard(
    "exact",
    "every element equal",
    "whole-number results have one right value",
    #        name         gather  element   limit          strict
    (Measure("different", "mean", _differs, lambda t: 0.0, False),),
    {},
)

_ECOSYSTEM = Standard(
    "ecosystem",
    "mean relative error below T, largest below 10 T",
    "CANN operator precision standard (hicann/opbase, ops_precision_standard/"
    "experimental_standard.md): RE = |a - g| / (|g| + 1e-7); our addition: a difference below the"
    " type's smallest positive number counts as none",
    #        name    gather  element          limit                  strict
    (
        Measure("MERE", "mean", _relative_error, lambda t: t["T"], True),
        Measure("MARE", "max", _relative_error, lambda t: 10 * t["T"], True),
    ),
    {
        # smallest: the type's smallest positive number, a fact of its format.
        "float16": {"T": 2.0**-10, "smallest": 2.0**-24},
        "bfloat16": {"T": 2.0**-7, "smallest": 2.0**-133},
        "float32": {"T": 2.0**-13, "smallest": 2.0**-149},
    },
)

_CLOSE = Standard(
    "close",
    "share of elements outside atol + rtol |g| within bounds",
    "TTK close (hicann/ops-test-kit, docs/Precision_Comparison.md)",
    #        name       gather  element             limit                strict
    (Measure("outside", "mean", _outside_tolerance, lambda t: t["ptol"], False),),
    {
        "float16": {"rtol": 1e-3, "atol": 1e-8, "ptol": 1e-3},
        "bfloat16": {"rtol": 1e-3, "atol": 1e-8, "ptol": 1e-3},
        "float32": {"rtol": 1e-4, "atol": 1e-8, "ptol": 1e-4},
    },
)

STANDARDS: Mapping[str, Standard] = {row.name: row for row in (_ECOSYSTEM, _CLOSE, EXACT)}


def find_standard(name: str) -> Standard:
    """Return the standard called `name`.

    Raises:
        UsageError: there is none; the nearest name is in its help.
    """
    if name in STANDARDS:
        return STANDARDS[name]
    near = nearest(name, STANDARDS)
    known = ", ".join(STANDARDS)
    raise UsageError(
        f'"{name}" is not a precision standard',
        help=f'did you mean "{near}"?' if near else f"one of {known}",
    )
