"""References in numbers without limits of range, and what float32 leaves on its way."""

from __future__ import annotations

import math
from types import FunctionType

import numpy as np
import pytest

from opkit.errors import PrecisionError
from opkit.testing import assert_outputs
from opkit.testing.numbers.exact import evaluate_exactly

LARGEST = float(np.finfo(np.float32).max)


def exactly(function: FunctionType, *values: float) -> tuple[float, bool, bool]:
    """Return a reference's value at one element, and whether float32 leaves its range."""
    inputs = [np.array([value]) for value in values]
    found = evaluate_exactly(lambda inputs: (function(*inputs),), inputs, globals())
    assert found is not None
    (output,) = found
    assert output.known[0]
    return float(output.values[0]), bool(output.overflows[0]), bool(output.underflows[0])


def softplus(x):
    return np.log(1 + np.exp(x))


def focal(x):
    probability = 1 / (1 + np.exp(-x))
    return -((1 - probability) ** 2) * np.log(probability)


def hyperbolic(x):
    return np.log(x + np.sqrt(x * x + 1))


def tanh(x):
    return (np.exp(x) - np.exp(-x)) / (np.exp(x) + np.exp(-x))


@pytest.mark.parametrize(
    ("function", "value", "expected"),
    [
        (softplus, 65504.0, 65504.0),
        (softplus, LARGEST, LARGEST),
        (focal, -65504.0, 65504.0),
        (focal, -LARGEST, LARGEST),
        (tanh, 65504.0, 1.0),
        (tanh, -LARGEST, -1.0),
        (hyperbolic, -LARGEST, -math.log(2 * LARGEST)),
        (np.tanh, LARGEST, 1.0),
        (softplus, math.inf, math.inf),
        (lambda x: np.maximum(x, 0) - x, -3.0, 3.0),
        (lambda x: np.where(x > 0, x, 0.5 * x), -4.0, -2.0),
        (lambda x: np.abs(x) ** 1.5, -4.0, 8.0),
        (lambda x: np.sign(x) * np.mean(x, axis=-1, keepdims=True), -4.0, 4.0),
    ],
)
def test_a_formula_has_its_value_where_float64_overflows(function, value, expected) -> None:
    assert exactly(function, value)[0] == pytest.approx(expected, rel=1e-15)


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf, 0.0, 1.0, -2.5, 1e-45, LARGEST])
@pytest.mark.parametrize(
    "function",
    [
        *(np.exp, np.log, np.sqrt, np.abs, np.sign, np.tanh, np.square, np.floor, np.rint),
        *(np.negative, lambda x: np.maximum(x, 1), lambda x: np.minimum(x, 1)),
        *(lambda x: x - x, lambda x: 0 * x),
    ],
)
def test_where_float64_reaches_both_agree(function, value) -> None:
    with np.errstate(all="ignore"):
        expected = float(function(np.array([value]))[0])
    assert exactly(function, value)[0] == pytest.approx(expected, rel=1e-15, nan_ok=True)


def test_float32_overflows_in_sums_and_products_of_the_largest() -> None:
    assert exactly(lambda x, y: 0.5 * (x + y), LARGEST, LARGEST)[1]
    assert exactly(lambda x, y: x * y * 1e-30, LARGEST, 8.0)[1]
    # In another order the small factor comes last.
    assert exactly(lambda x, y: x * 1e-30 * y, LARGEST, 8.0)[1]
    assert exactly(lambda x: np.sqrt(x * x), LARGEST)[1]
    assert not exactly(lambda x: 0.5 * x, LARGEST)[1]
    assert not exactly(lambda x: np.maximum(x, 0), LARGEST)[1]
    assert not exactly(lambda x, y: x + y, LARGEST, 1.0)[1]


def test_an_exponential_that_overflows_is_no_reason() -> None:
    assert not exactly(lambda x: x / (1 + np.exp(-x)), -200.0)[1]
    assert not exactly(lambda x: np.exp(x) / (1 + np.exp(x)), 65504.0)[1]


def check(golden, dtype: str, actual: float, *values: float) -> None:
    """Judge one element of an operator as `opkit test` does."""
    storage = {"float16": np.float16, "float32": np.float32}[dtype]
    # Beside many right ones: a mean says nothing about one element.
    count = 64
    inputs = [np.full(count, value, storage) for value in values]
    dtypes = [dtype] * (len(values) + 1)
    assert_outputs([np.full(count, actual, storage)], golden, inputs, dtypes=dtypes)


def test_what_the_formula_means_is_right_where_the_reference_overflows() -> None:
    check(focal, "float16", 65504.0, -65504.0)
    check(focal, "float16", math.inf, -65504.0)
    with pytest.raises(PrecisionError):
        check(focal, "float16", 32768.0, -65504.0)
    with pytest.raises(PrecisionError):
        check(focal, "float16", math.nan, -65504.0)


def test_nothing_is_asked_where_float32_overflows_on_the_way() -> None:
    check(lambda x, y: 0.5 * (x + y), "float32", math.inf, LARGEST, LARGEST)
    with pytest.raises(PrecisionError):
        check(lambda x, y: 0.5 * (x + y), "float32", math.inf, 1e30, 1e30)


def test_a_missing_guard_against_overflow_still_fails() -> None:
    def silu(x):
        return x / (1 + np.exp(-x))

    for value in (-200.0, -65504.0):
        with pytest.raises(PrecisionError):
            check(silu, "float16", math.nan, value)
    with pytest.raises(PrecisionError):
        check(silu, "float32", math.nan, -LARGEST)


def test_what_cancels_beyond_all_digits_is_lost_and_not_a_logarithm_of_zero() -> None:
    found = evaluate_exactly(
        lambda inputs: (np.log(1 - 1 / (1 + np.exp(-inputs[0]))),),
        [np.array([65504.0, 700.0, 1.0])],
        globals(),
    )
    assert found is not None
    assert found[0].lost.tolist() == [True, False, False]
    assert found[0].values[1] == pytest.approx(-700.0)
    found = evaluate_exactly(
        lambda inputs: (1 - np.tanh(inputs[0]),), [np.array([3e4, 5.0])], globals()
    )
    assert found is not None
    assert found[0].lost.tolist() == [True, False]


def test_a_comparison_that_underflow_decides_may_go_either_way() -> None:
    def chosen(x):
        return np.where(0.1 * x > 0, 3.0, 1.0)

    check(chosen, "float32", 3.0, 1e-45)
    check(chosen, "float32", 1.0, 1e-45)
    with pytest.raises(PrecisionError):
        check(chosen, "float32", 1.0, 1e-30)
    with pytest.raises(PrecisionError):
        check(chosen, "float32", 3.0, 0.0)
    with pytest.raises(PrecisionError):
        check(chosen, "float32", 6.0, 1e-45)


def test_a_tie_that_rounding_makes_may_be_one_and_exact_inputs_make_none() -> None:
    def gradient(x, y):
        return np.where(x + y > x, 1.0, np.where(x + y == x, 0.5, 0.0))

    check(gradient, "float32", 0.5, 1.0, 1e-9)
    check(gradient, "float32", 1.0, 1.0, 1e-9)
    with pytest.raises(PrecisionError):
        check(gradient, "float32", 0.5, 1.0, 1e-3)
    with pytest.raises(PrecisionError):
        check(lambda x, y: np.where(x > y, 1.0, 0.5), "float32", 0.5, 1.0000001, 1.0)


def test_infinity_times_what_rounding_may_make_zero_is_not_judged() -> None:
    def product(x, y, z):
        return z * (x + y + x - y)

    check(product, "float32", math.nan, -6e-8, -65504.0, math.inf)
    with pytest.raises(PrecisionError):
        check(product, "float32", math.nan, -1.0, -65504.0, math.inf)


def test_what_is_left_of_a_product_that_underflows_is_not_asked_for() -> None:
    check(lambda x, y, z: x * y * z, "float32", 0.0, 1e-45, 0.3, 1e38)
    with pytest.raises(PrecisionError):
        check(lambda x, y, z: x * y * z, "float32", 1.0, 1e-45, 0.3, 1e38)
    with pytest.raises(PrecisionError):
        check(lambda x, y, z: x * y * z, "float32", 0.0, 1e-30, 0.3, 1e38)


def test_what_is_left_of_a_sum_by_its_own_rounding_is_zero() -> None:
    found = evaluate_exactly(
        lambda inputs: (inputs[0] * ((inputs[0] - inputs[0].mean()).sum() / 3),),
        [np.random.default_rng(1).normal(size=7)],
        globals(),
    )
    assert found is not None
    assert not found[0].values.any()
    assert not found[0].overflows.any()
    assert not found[0].underflows.any()


def test_what_is_divided_by_what_rounding_may_make_zero_may_be_no_number() -> None:
    def slope(x, z):
        return np.sign(1 - (x + z)) / np.sqrt(np.abs(1 - (x + z)))

    check(slope, "float32", math.nan, -6e-8, 1.0)
    with pytest.raises(PrecisionError):
        check(slope, "float32", math.nan, -6e-3, 1.0)


def test_underflow_makes_no_number_only_where_something_is_divided_by_it() -> None:
    # NaN for infinity passed wherever a product on the way underflowed, as in RMSNorm's gradient.
    with pytest.raises(PrecisionError, match="NaN in the wrong place"):
        check(lambda x, y: x + y * y * 1e-30, "float32", math.nan, math.inf, 1e-10)
    check(lambda x, y: x / (y * y), "float32", math.nan, 0.0, 1e-30)
    with pytest.raises(PrecisionError, match="NaN in the wrong place"):
        check(lambda x, y: x / (y * y), "float32", math.nan, 0.0, 1e-3)


def test_what_underflow_chooses_has_roundings_of_its_own() -> None:
    def chosen(x, y):
        return np.where(y * y > 0, x * x, 0.1) + np.abs(x)

    x = np.float32(-0.03331749141216278)
    check(chosen, "float32", float(np.float32(0.1) + np.abs(x)), float(x), 1.17549e-38)
    with pytest.raises(PrecisionError):
        check(chosen, "float32", 0.13333, float(x), 1.17549e-38)


def test_a_nan_chosen_by_underflow_may_be_what_is_chosen_instead() -> None:
    def chosen(g, x):
        return g * np.where(0.1 * x > 0, 0.5 * x / (x * x * 1e-30 + 1) ** 2, 0.0)

    with pytest.raises(PrecisionError):
        check(chosen, "float32", 0.0, math.nan, 1e-45)

    def left_out(g, x):
        return np.where(0.1 * x > 0, g * x / (1 + g * g) ** 2, 0.0)

    check(left_out, "float32", 0.0, math.nan, 1e-45)
    check(left_out, "float32", math.nan, math.nan, 1e-45)
    with pytest.raises(PrecisionError):
        check(left_out, "float32", 0.0, math.nan, 1.0)


def root_mean_square(x):
    return x / np.sqrt(np.mean(x * x, axis=-1, keepdims=True) + 1e-5)


@pytest.mark.parametrize("wrong", [0.0, 1.0, math.inf])
def test_the_nan_of_a_row_that_overflows_too_is_asked_for(wrong) -> None:
    # Zeros passed: the row overflows in float32, so that no element of it was judged.
    rows = np.ones((2, 32), np.float32)
    rows[0, 3], rows[0, 7] = math.nan, LARGEST
    right = root_mean_square(rows.astype(np.float64)).astype(np.float32)
    assert np.isnan(right[0]).all()
    dtypes = ["float32"] * 2
    assert_outputs([right], root_mean_square, [rows], dtypes=dtypes)
    with pytest.raises(PrecisionError, match="NaN in the wrong place"):
        assert_outputs(
            [np.where(np.isnan(right), np.float32(wrong), right)],
            root_mean_square,
            [rows],
            dtypes=dtypes,
        )


def test_a_nan_that_is_not_chosen_asks_for_nothing() -> None:
    def poisoned(function, value: float) -> bool:
        inputs = [np.array([value])]
        found = evaluate_exactly(lambda inputs: (function(*inputs),), inputs, globals())
        assert found is not None
        return bool(found[0].poisoned[0])

    assert poisoned(lambda x: 0 * x + 1, math.nan)
    assert poisoned(lambda x: np.exp(np.maximum(x, 0)), math.nan)
    assert not poisoned(lambda x: np.where(x > 0, x, 1.0), math.nan)
    assert not poisoned(lambda x: (x > 0) * 1.0, math.nan)
    assert not poisoned(lambda x: x - x, math.inf)


def grown(x):
    return x**3 / (np.abs(np.minimum(x, 2)) + 0.5) / (np.abs(np.maximum(x + x, 0)) + 0.5)


def falling(y):
    return np.minimum(np.sqrt(np.abs(np.maximum(y, y))) - np.abs(y * y), 1)


def test_an_overflow_excuses_infinity_and_no_nan_that_nothing_makes_of_it() -> None:
    for function, value in ((grown, -LARGEST), (falling, LARGEST), (np.square, LARGEST)):
        check(function, "float32", math.copysign(math.inf, function(np.float64(value))), value)
        with pytest.raises(PrecisionError, match="NaN in the wrong place"):
            check(function, "float32", math.nan, value)


@pytest.mark.parametrize(
    ("function", "values"),
    [
        # Infinity less infinity, in this order of terms or another.
        (lambda x, y: x * x - y * y, (LARGEST, LARGEST)),
        (lambda x, y: (x - y) + (x - y), (LARGEST, LARGEST)),
        # By infinity, times zero, and what is divided by infinity times infinity.
        (lambda x, y: x * x / (y * y), (LARGEST, 1e30)),
        (lambda x, y: y * (x * x), (LARGEST, 0.0)),
        (lambda x, y: 1 / (x * x) * (y * y), (1e30, 1e25)),
        # Two terms first, and what is taken from them: a right kernel's order.
        (lambda x, y: y + ((x - y * y) - x), (LARGEST, LARGEST)),
        # The root and the logarithm of minus infinity, which the sum is in float32.
        (lambda x, y: np.sqrt(y - x * x * 1e-30 * 1e-30), (1e25, 1.0)),
        (
            lambda x, y: np.log(np.maximum(2.0, y - x * x * 1e-30 * 1e-30) - x * x * 1e-50),
            (1e25, 3),
        ),
    ],
)
def test_what_makes_nan_of_an_overflow_excuses_it(function, values) -> None:
    check(function, "float32", math.nan, *values)


def test_sums_whose_terms_never_overflow_together_are_no_reason_for_nan() -> None:
    # The largest less a quarter of it stays below the largest.
    for function in (lambda x: (x - 0.25 * x) * 0.0, lambda x: (x - x) * 0.0):
        with pytest.raises(PrecisionError, match="NaN in the wrong place"):
            check(function, "float32", math.nan, LARGEST)


def test_an_exponential_that_overflows_times_what_underflow_makes_zero_is_not_judged() -> None:
    # A right kernel failed: 0 times infinity in float32, minus infinity in real numbers.
    def slope(g, y, x):
        return g * y * np.exp(x)

    check(slope, "float32", math.nan, -9.1e-41, 1.17e-38, LARGEST)
    with pytest.raises(PrecisionError):
        check(slope, "float32", math.nan, -1.0, 1.0, LARGEST)


def test_a_choice_that_overflow_decides_may_be_either() -> None:
    def chosen(x, y):
        return np.where(x * x * 1e-30 < y, 2.0, np.sqrt(-x))

    check(chosen, "float32", math.nan, 1e25, 1e25)
    with pytest.raises(PrecisionError, match="NaN in the wrong place"):
        check(chosen, "float32", math.nan, 1e10, 1e25)


def test_a_nan_that_overflow_may_leave_out_is_not_asked_for() -> None:
    # A right kernel failed: its condition was infinity less infinity, and it chose the other side.
    def slope(g, x, y):
        return np.where(np.exp(x) - np.log(x - y) > 0, g / 2, 0.0)

    check(slope, "float32", 0.0, math.nan, LARGEST, -LARGEST)
    check(slope, "float32", math.nan, math.nan, LARGEST, -LARGEST)
    with pytest.raises(PrecisionError, match="NaN in the wrong place"):
        check(slope, "float32", 0.0, math.nan, 1.0, -1.0)
