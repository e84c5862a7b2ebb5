"""What kinds of float32 an operation may give: all that NumPy gives is among them."""

from __future__ import annotations

import itertools
import operator

import numpy as np
import pytest

from opkit.testing.numbers.float_kinds import (
    Kinds,
    absolute,
    chosen_by,
    compared,
    divided,
    larger_of,
    multiplied,
    negated,
    of_function,
    of_sign,
    smaller_of,
    summed,
)

VALUES = np.array(
    [np.nan, -np.inf, -3e38, -2.5, -1.0, -0.25, 0.0, 0.25, 1.0, 2.5, 3e38, np.inf], np.float32
)


def kind(value: float) -> Kinds:
    """Return what a number is."""
    if np.isnan(value):
        return Kinds.NAN
    return of_sign(float(np.sign(value)), infinite=bool(np.isinf(value)))


# Sums and products overflow by their sizes, which the caller tells apart: these values do not.
MODERATE = VALUES[np.abs(VALUES) != np.float32(3e38)]


@pytest.mark.parametrize(
    ("function", "kinds"),
    [
        (np.add, summed),
        (np.multiply, multiplied),
        (np.divide, divided),
        (np.maximum, larger_of),
        (np.minimum, smaller_of),
    ],
)
def test_every_result_of_two_numbers_is_among_the_kinds(function, kinds) -> None:
    with np.errstate(all="ignore"):
        for a, b in itertools.product(MODERATE, MODERATE):
            assert kind(function(a, b)) & kinds(kind(a), kind(b)), (a, b)


@pytest.mark.parametrize(
    "name",
    [
        *("exp", "exp2", "log", "log2", "sqrt", "cosh", "sinh", "tanh", "sign", "arcsinh"),
        *("floor", "ceil", "rint"),
    ],
)
def test_every_result_of_a_function_is_among_the_kinds(name) -> None:
    with np.errstate(all="ignore"):
        for value in VALUES:
            assert kind(getattr(np, name)(value)) & of_function(name, kind(value)), value


def test_powers_roots_and_signs_are_among_the_kinds() -> None:
    with np.errstate(all="ignore"):
        for value in VALUES[~np.isneginf(VALUES)]:
            assert kind(value ** np.float32(1.5)) & of_function("power", kind(value)), value
            assert kind(value ** np.float32(-1.5)) & of_function("root", kind(value)), value
            assert kind(-value) == negated(kind(value))
            assert kind(abs(value)) == absolute(kind(value))


@pytest.mark.parametrize(
    "compare", [operator.lt, operator.le, operator.gt, operator.ge, operator.eq, operator.ne]
)
def test_every_truth_is_among_the_kinds(compare) -> None:
    for a, b in itertools.product(VALUES, VALUES):
        assert kind(float(compare(a, b))) & compared(compare, kind(a), kind(b)), (a, b)


def test_only_what_may_be_is_told() -> None:
    finite = Kinds.NEGATIVE | Kinds.ZERO | Kinds.POSITIVE
    assert summed(Kinds.INFINITY, finite) == Kinds.INFINITY
    assert summed(Kinds.INFINITY, Kinds.MINUS_INFINITY) == Kinds.NAN
    assert multiplied(Kinds.INFINITY, Kinds.POSITIVE) == Kinds.INFINITY
    assert divided(finite, Kinds.INFINITY) == Kinds.ZERO
    assert larger_of(Kinds.INFINITY, finite) == Kinds.INFINITY
    assert compared(operator.lt, Kinds.MINUS_INFINITY, finite) == Kinds.POSITIVE
    assert chosen_by(Kinds.ZERO, Kinds.NAN, finite) == finite
    assert chosen_by(Kinds(0), Kinds.NAN, finite) == Kinds(0)
