from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opkit.dtypes import find_dtype
from opkit.errors import OperatorError, PrecisionError
from opkit.testing import assert_outputs
from opkit.testing.cases.golden import load_golden
from opkit.testing.numbers.condition import Evaluation, _change, allowance, cancellation

GOLDEN = """
import numpy as np

def _wide(value):
    return np.asarray(value).astype(np.float64)

def polynomial(x):
    x = _wide(x)
    return x*x*x - 0.3*x + 0.1

def double_root(x):
    x = _wide(x)
    return x*x - 2*x + 1

def tanh_slope(x):
    x = _wide(x)
    return 1 - np.tanh(x)**2

def logarithm(x):
    return np.log(1 + _wide(x))

def total(x):
    return np.sum(_wide(x), axis=-1)

def softmax_slope(g, x):
    g, x = _wide(g), _wide(x)
    e = np.exp(x - np.max(x, axis=-1, keepdims=True))
    y = e/np.sum(e, axis=-1, keepdims=True)
    return y*(g - np.sum(g*y, axis=-1, keepdims=True))

def largest_slope(g, x):
    g, x = _wide(g), _wide(x)
    y = 0.7 + x + x
    return np.where(y == np.max(y, axis=-1, keepdims=True), g, 0.0)

def beside_a_sign(x, y):
    return np.exp(_wide(x)) - np.sign(_wide(y))

def smaller_less_one(x, y):
    return np.minimum(np.exp(_wide(x)), _wide(y)) - 1

def less_one(x):
    return np.exp(_wide(x)) - 1

def smaller_slope(g, x, y):
    g, t, m = _wide(g), np.tanh(_wide(x)), np.sign(_wide(y))
    return np.where(t < m, g, np.where(m == t, 0.5*g, 0.0))

def tenths(x):
    return np.floor(10*_wide(x))

def floor_of(x):
    return np.floor(_wide(x))

def silu_slope(x):
    s = 1/(1 + np.exp(-_wide(x)))
    return s*(1 + x*(1 - s))
"""


@pytest.fixture(scope="module")
def golden(tmp_path_factory: pytest.TempPathFactory) -> object:
    path = tmp_path_factory.mktemp("golden") / "golden.py"
    path.write_text(GOLDEN)
    found = load_golden(path)
    assert found is not None
    return found.module


def passes(function: object, actual: np.ndarray, *inputs: np.ndarray, **options: str) -> bool:
    try:
        assert_outputs(
            actual,
            function,  # type: ignore[arg-type]
            list(inputs),
            dtypes=["float32"] * (len(inputs) + 1),
            **options,
        )
    except PrecisionError:
        return False
    return True


def normal(*shape: int) -> np.ndarray:
    return np.random.default_rng(5).standard_normal(shape).astype(np.float32)


def silu_slope_in_single(x: np.ndarray) -> np.ndarray:
    s = np.float32(1) / (np.float32(1) + np.exp(-x))
    return s * (np.float32(1) + x * (np.float32(1) - s))


def test_a_gradient_that_cancels_passes_and_fails_by_the_vendors_own_rule(golden: object) -> None:
    x = (np.float32(-1.278464) + np.linspace(-1e-3, 1e-3, 4001)).astype(np.float32)
    actual = silu_slope_in_single(x)
    assert passes(golden.silu_slope, actual, x)
    assert not passes(golden.silu_slope, actual, x, standard="ecosystem")


@pytest.mark.parametrize("name", ["silu_slope", "polynomial", "double_root"])
def test_what_is_wrong_fails_where_it_cancels_too(golden: object, name: str) -> None:
    x = normal(20_000)
    right = getattr(golden, name)(x).astype(np.float32)
    assert passes(getattr(golden, name), right, x)
    stream = np.random.default_rng(1)
    for wrong in (
        right * (1 + 2e-4 * stream.choice([-1, 1], right.shape)).astype(np.float32),
        np.where(np.abs(right) <= np.sort(np.abs(right))[50], right + np.float32(1e-4), right),
        np.concatenate([right[:-8], right[:8]]),
    ):
        assert not passes(getattr(golden, name), wrong.astype(np.float32), x)


def test_a_polynomial_at_its_root_passes_with_rounded_constants(golden: object) -> None:
    root = np.float32(np.roots([1, 0, -0.3, 0.1]).real.min())
    x = (root + np.linspace(-1e-5, 1e-5, 1001)).astype(np.float32)
    assert passes(golden.polynomial, x * x * x - np.float32(0.3) * x + np.float32(0.1), x)


def test_a_double_root_passes_though_the_inputs_alone_do_not_explain_it(golden: object) -> None:
    x = (1 + np.linspace(-1e-3, 1e-3, 1001)).astype(np.float32)
    assert passes(golden.double_root, x * x - np.float32(2) * x + np.float32(1), x)


def test_an_unstable_form_of_a_function_fails(golden: object) -> None:
    x = (4 + np.abs(normal(2000))).astype(np.float32)
    assert not passes(golden.tanh_slope, np.float32(1) - np.tanh(x) ** 2, x)
    small = (normal(2000) * 1e-5).astype(np.float32)
    assert not passes(golden.logarithm, np.log(np.float32(1) + small), small)


def test_a_long_sum_passes_whatever_order_it_is_taken_in(golden: object) -> None:
    x = normal(32, 1 << 16)
    # So that every row's sum is nearly 0.
    x[:, -1] -= x.sum(axis=-1, dtype=np.float64).astype(np.float32)
    one_by_one = np.cumsum(x, axis=-1, dtype=np.float32)[:, -1]
    assert passes(golden.total, one_by_one, x)
    assert not passes(golden.total, one_by_one + np.float32(1), x)


def test_a_gradient_that_is_truly_zero_may_be_a_rounding_off(golden: object) -> None:
    g, x = normal(49, 1), normal(49, 1)
    assert passes(golden.softmax_slope, g * np.float32(6e-8), g, x)
    assert not passes(golden.softmax_slope, g * np.float32(1e-4), g, x)


def test_a_step_at_an_exact_input_excuses_nothing(golden: object) -> None:
    x = np.arange(-50, 50, dtype=np.float32)
    assert passes(golden.floor_of, np.floor(x), x)
    assert not passes(golden.floor_of, np.ceil(x) - 1, x)


def test_a_computed_value_may_decide_the_other_way_and_gives_that_result(golden: object) -> None:
    x = (np.arange(1, 200) / 10).astype(np.float32)
    right = np.floor(np.float32(10) * x)
    assert (right != golden.tenths(x)).any()
    assert passes(golden.tenths, right, x)
    assert not passes(golden.tenths, right + np.float32(2), x)


def test_what_a_comparison_chooses_is_not_excused_itself(golden: object) -> None:
    g, x = normal(64, 100), normal(64, 100)
    right = golden.largest_slope(g, x).astype(np.float32)
    assert passes(golden.largest_slope, right, g, x)
    assert not passes(golden.largest_slope, right * np.float32(1.002), g, x)


@pytest.mark.parametrize("columns", [1, 100])
def test_the_largest_of_a_row_is_rounded_as_the_row_is(golden: object, columns: int) -> None:
    g, x = normal(16, columns), normal(16, columns)
    right = golden.largest_slope(g, x).astype(np.float32)
    assert passes(golden.largest_slope, right, g, x)
    assert not passes(golden.largest_slope, np.zeros_like(right), g, x)
    off = np.random.default_rng(1).choice([-2e-4, 2e-4], right.shape)
    marked = np.where(right == 0, 0, right * (1 + off * columns)).astype(np.float32)
    assert not passes(golden.largest_slope, marked, g, x)


def test_a_function_that_cancels_what_values_chose_may_be_a_rounding_off(golden: object) -> None:
    x, y = (normal(500) * 1e-5).astype(np.float32), np.abs(normal(500)) + np.float32(0.1)
    computed = np.exp(x) - np.sign(y)
    assert passes(golden.beside_a_sign, computed, x, y)
    assert not passes(golden.beside_a_sign, computed + np.float32(2e-6), x, y)
    assert passes(golden.smaller_less_one, np.exp(x) - np.float32(1), x, y + 2)
    assert not passes(golden.smaller_less_one, np.exp(x) - np.float32(1 - 2e-6), x, y + 2)
    # What the text itself says may be computed better.
    assert not passes(golden.less_one, np.exp(x) - np.float32(1), x)


def test_roundings_may_make_two_values_equal_and_give_what_is_chosen_then(golden: object) -> None:
    g, x, y = normal(64), np.full(64, 12, np.float32), np.ones(64, np.float32)
    assert np.tanh(np.float32(12)) == 1
    assert passes(golden.smaller_slope, g, g, x, y)
    assert passes(golden.smaller_slope, np.float32(0.5) * g, g, x, y)
    assert not passes(golden.smaller_slope, -g, g, x, y)
    x[:] = 2
    assert not passes(golden.smaller_slope, np.float32(0.5) * g, g, x, y)


def test_the_line_that_cancels_is_told(golden: object, tmp_path: Path) -> None:
    x = np.array([0.25, -1.2784645])
    evaluation = Evaluation(lambda inputs: (golden.silu_slope(*inputs),), (x,), True, vars(golden))
    found = cancellation(evaluation, 0, 1)
    assert found is not None
    assert GOLDEN.splitlines()[found.line - 1].strip() == "return s*(1 + x*(1 - s))"
    assert "cancel to" in str(found) and "golden.py" in str(found)


# -63.5 by float64 is -63 or -64: a right quantiser used to fail.
def test_a_whole_number_may_be_either_neighbour_of_a_tie_and_no_other() -> None:
    def quantised(inputs: list[np.ndarray]) -> tuple[np.ndarray]:
        (x,) = inputs
        return (np.rint(x / (np.abs(x).max(axis=-1, keepdims=True) / 127)).reshape(-1),)

    x = np.array([[2.359375, -1.1796875, 0.5]])
    (allowed,) = allowance(Evaluation(quantised, (x,), False))
    int8 = find_dtype("int8")
    assert int8 is not None
    _, tie, usual = allowed.golden
    assert tie in (-63, -64)

    def excused(*values: float) -> list[bool]:
        return allowed.excused(np.array(values), np.arange(3), int8, 0.0).tolist()

    assert excused(126, -127 - tie, usual - 1) == [False, True, False]
    assert excused(127, -62, usual + 1)[1:] == [False, False]


@pytest.mark.parametrize(("low", "ties"), [(-150.0, True), (-100.0, True), (-80.0, False)])
def test_what_float32_does_not_tell_apart_may_be_in_either_order(low: float, ties: bool) -> None:
    # A router's probabilities underflow: each expert beyond is as likely as any other.
    def places(inputs: list[np.ndarray]) -> tuple[np.ndarray]:
        return (np.argsort(-np.exp(inputs[0]), kind="stable"),)

    x = np.array([0.0, 2 * low, low])
    (allowed,) = allowance(Evaluation(places, (x,), False, {}))
    int32 = find_dtype("int32")
    assert int32 is not None

    def excused(*values: int) -> list[bool]:
        return allowed.excused(np.array(values), np.arange(3), int32, 0.0).tolist()

    assert excused(0, 1, 2) == ([True] * 3 if ties else [False] * 3)
    assert excused(1, 0, 1)[:2] == [False, False]


def test_a_golden_that_is_not_traced_still_has_the_condition_of_its_inputs() -> None:
    def lists(inputs: list[np.ndarray]) -> tuple[np.ndarray]:
        (x,) = inputs
        return (np.array([float(value) + 1000.0 - 1000.0 for value in x]),)

    x = np.array([1.0, 2.0])
    (allowed,) = allowance(Evaluation(lists, (x,), True))
    assert np.allclose(allowed.errors, 8 * 2.0**-24 * x, rtol=1e-3)


@pytest.mark.parametrize("drawn", [0.01, 1.0])
def test_a_golden_that_draws_excuses_nothing(drawn: float) -> None:
    # Its inputs' roundings seemed to move it, so that any result near it passed as cancellation.
    stream = np.random.default_rng(0)

    def draws(inputs: list[np.ndarray]) -> tuple[np.ndarray]:
        return (inputs[0] + drawn * stream.random(3),)

    with pytest.raises(OperatorError, match="other values each time"):
        allowance(Evaluation(draws, (np.array([1.0, 2.0, np.nan]),), True))


def test_sums_of_another_order_are_the_same_golden() -> None:
    calls = []

    def sums(inputs: list[np.ndarray]) -> tuple[np.ndarray]:
        calls.append(1)
        return (inputs[0] * (1 + 1e-7 * len(calls)),)

    assert len(allowance(Evaluation(sums, (np.array([1.0, 0.0, np.inf]),), True))) == 1


def test_attributes_reach_the_reference_in_single_precision() -> None:
    seen = []

    def scale(x: np.ndarray, *, factor: float) -> np.ndarray:
        seen.append(factor)
        return x * factor

    x = normal(8)
    assert_outputs(
        x * np.float32(0.1),
        scale,
        [x],
        dtypes=["float32", "float32"],
        attributes={"factor": 0.1},
    )
    assert set(seen) == {float(np.float32(0.1))}


def test_a_truth_beside_a_number_changes_wholly_or_not_at_all() -> None:
    # It was subtracted, which NumPy refuses.
    base, moved = np.array([True, False, True]), np.array([True, True, True])
    np.testing.assert_array_equal(_change(base, moved), [0.0, 1.0, 0.0])
