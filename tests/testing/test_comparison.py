"""Comparing an array with its golden: verdicts, special values, the worst element, memory."""

from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from opkit.dtypes import find_dtype
from opkit.errors import PrecisionError, UsageError
from opkit.testing import Comparison, compare, to_bfloat16
from opkit.testing.numbers import comparison as comparison_module
from opkit.testing.numbers.arrays import narrow
from opkit.testing.numbers.comparison import Comparer

NAN, INF = float("nan"), float("inf")


def compare_lists(actual: list[float], golden: list[float], dtype: str = "float16") -> Comparison:
    return compare(np.array(actual, dtype=dtype), np.array(golden, dtype=np.float64))


def figures(result: Comparison) -> dict[str, float]:
    return {figure.name: figure.value for figure in result.figures}


def test_equal_arrays_pass_with_no_worst_element() -> None:
    result = compare_lists([1, 2, 3], [1, 2, 3])
    assert result.passed
    assert figures(result) == {"MERE": 0, "MARE": 0}
    assert result.worst is None


def test_the_figures_are_the_documents_formulas() -> None:
    actual, golden = [1.5, -4.0, 0.0], [1.0, -5.0, 0.0]
    result = compare_lists(actual, golden, "float32")
    errors = [0.5 / (1 + 1e-7), 1 / (5 + 1e-7), 0.0]
    assert figures(result)["MERE"] == pytest.approx(sum(errors) / 3, rel=1e-12)
    assert figures(result)["MARE"] == pytest.approx(max(errors), rel=1e-12)
    assert not result.passed


@pytest.mark.parametrize(("dtype", "threshold"), [("float16", 2**-10), ("float32", 2**-13)])
def test_the_largest_error_must_stay_below_ten_thresholds(dtype: str, threshold: float) -> None:
    golden = np.ones(100000)
    for factor, passes in ((9.9, True), (10.1, False)):
        actual = np.ones(100000)
        golden[7] = 1 / (1 + factor * threshold)
        assert compare(actual.astype(dtype), golden).passed is passes


@pytest.mark.parametrize(("factor", "passes"), [(0.99, True), (1.01, False)])
def test_the_mean_error_must_stay_below_the_threshold(factor: float, passes: bool) -> None:
    golden = np.full(1000, 1 / (1 + factor * 2**-13))
    assert compare(np.ones(1000, dtype=np.float32), golden).passed is passes


@pytest.mark.parametrize(
    ("actual", "golden", "passes"),
    [
        ([NAN, 1], [NAN, 1], True),
        ([NAN, 1], [1, 1], False),
        ([1, 1], [NAN, 1], False),
        ([INF, 1], [INF, 1], True),
        ([INF, 1], [-INF, 1], False),
        ([INF, 1], [1, 1], False),
        ([65504, 1], [INF, 1], False),
        ([NAN, 1], [INF, 1], False),
        ([NAN, INF, -INF], [NAN, INF, -INF], True),
    ],
)
def test_nan_and_infinity_must_stand_where_golden_has_them(
    actual: list[float], golden: list[float], passes: bool
) -> None:
    result = compare_lists(actual, golden)
    assert result.passed is passes
    if not passes:
        assert result.worst is not None
        assert result.worst.index == (0,)
        assert result.nan_mismatches + result.inf_mismatches == 1


def test_a_golden_beyond_the_dtype_is_infinite_there() -> None:
    assert compare_lists([INF, -INF], [1e5, -1e5]).passed
    assert not compare_lists([65504], [1e5]).passed
    assert compare_lists([1e5], [1e5], "float32").passed


@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_a_correctly_rounded_result_passes_at_every_magnitude(dtype: str) -> None:
    row = find_dtype(dtype)
    assert row is not None
    golden = np.random.default_rng(0).standard_normal(100000)
    golden *= 2.0 ** np.random.default_rng(1).uniform(-40, 10, golden.shape)
    result = compare(narrow(golden, row), golden, dtype=dtype)
    assert result.passed, str(result)


def test_two_steps_off_among_subnormal_numbers_is_an_error() -> None:
    step = 2.0**-24
    assert compare_lists([4 * step], [3 * step + step / 4]).passed
    assert not compare_lists([5 * step], [3 * step]).passed


def test_a_bfloat16_is_compared_through_its_carrier() -> None:
    golden = np.array([0.1, 100.0, NAN, 4e38])
    result = compare(to_bfloat16(golden), golden, dtype="bfloat16")
    assert result.passed
    assert result.dtype == "bfloat16"
    wrong = to_bfloat16(golden * 1.1)
    assert not compare(wrong, golden, dtype="bfloat16").passed


def test_whole_numbers_must_be_equal_even_beyond_float64() -> None:
    golden = np.array([2**62, 5], dtype=np.int64)
    assert compare(golden.copy(), golden).passed
    result = compare(golden + np.array([1, 0]), golden)
    assert not result.passed
    assert result.standard == "exact"
    assert result.worst is not None
    assert result.worst.actual == 2**62 + 1


def test_a_whole_number_result_meets_a_float64_golden_exactly() -> None:
    actual = np.array([3, -4], dtype=np.int32)
    assert compare(actual, np.array([3.0, -4.0])).passed
    assert not compare(actual, np.array([3.2, -4.0])).passed
    assert not compare(np.array([True]), np.array([0.0])).passed


@pytest.mark.parametrize(
    ("actual", "golden", "passes"),
    [
        (3, 2.7, True),
        (2, 2.7, False),
        (3, 2.49999, True),  # within 2^-13 of the tie
        (3, 2.49, False),
        (2, 2.5, True),
        (3, 2.5, True),
        (4, 2.5, False),
        (127, 300.25, True),
        (126, 300.25, False),
        (-128, -128.75, True),
        (0, NAN, False),
    ],
)
def test_a_golden_with_a_fraction_is_rounded_to_a_whole_number(
    actual: int, golden: float, passes: bool
) -> None:
    # Such a golden equalled no whole number, so that quantising operators had no reference.
    result = _rounded([actual, 1], [golden, 1.25], "int8")
    assert result.passed is passes
    assert result.standard == "rounded"


def test_neighbours_of_large_whole_numbers_are_the_nearest_two() -> None:
    for actual, passes in ((29999, False), (30000, True), (30001, True), (30002, False)):
        assert _rounded([actual], [30000.5], "int16").passed is passes


def test_eight_bits_are_rounded_by_way_of_a_half() -> None:
    # -32.4845 lies nearest to the half -32.5, of which a kernel makes either neighbour.
    assert _rounded([-33, 1], [-32.4845, 1.25], "int8").passed
    assert not _rounded([-33, 1], [-32.4845, 1.25], "int16").passed
    assert not _rounded([-33, 1], [-32.47, 1.25], "int8").passed


def test_a_golden_of_whole_numbers_is_compared_exactly_where_others_are_rounded() -> None:
    assert _rounded([3, -4], [3.0, -4.0], "int8").standard == "exact"
    assert not _rounded([3, -4], [3.0, -5.0], "int8").passed


def _rounded(actual: list[int], golden: list[float], name: str) -> Comparison:
    dtype = find_dtype(name)
    assert dtype is not None
    comparer = Comparer((len(actual),), dtype, rounds=True)
    comparer.add(np.array(actual, name), np.array(golden))
    return comparer.finish()


def test_the_worst_element_has_its_index_in_the_arrays_shape() -> None:
    golden = np.ones((3, 4, 5))
    actual = golden.astype(np.float32)
    actual[2, 1, 3] = 2
    actual[0, 0, 0] = 1.5
    worst = compare(actual, golden).worst
    assert worst is not None
    assert (worst.index, worst.actual, worst.golden) == ((2, 1, 3), 2.0, 1.0)


def test_a_difference_in_a_later_chunk_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(comparison_module, "CHUNK", 8)
    golden = np.ones(100)
    actual = golden.astype(np.float32)
    actual[13], golden[13] = NAN, NAN
    actual[42] = 3
    result = compare(actual, golden)
    assert result.worst is not None
    assert result.worst.index == (42,)
    assert figures(result)["MERE"] == pytest.approx(2 / 99)
    actual[77] = NAN
    worst = compare(actual, golden).worst
    assert worst is not None and worst.index == (77,)


def test_an_empty_array_passes() -> None:
    result = compare(np.zeros((0, 3), dtype=np.float16), np.zeros((0, 3)))
    assert result.passed
    assert result.elements == 0


def test_another_shape_is_the_operators_error() -> None:
    with pytest.raises(PrecisionError, match=r"shape \(2,\), the golden has \(3,\)"):
        compare(np.zeros(2, dtype=np.float16), np.zeros(3))


def test_an_array_that_cannot_store_the_dtype_is_refused() -> None:
    with pytest.raises(UsageError, match="array of float32 does not store float16"):
        compare(np.zeros(2, dtype=np.float32), np.zeros(2), dtype="float16")


def test_the_close_standard_bounds_the_share_outside() -> None:
    golden = np.ones(10000)
    actual = golden.astype(np.float32)
    actual[0] = 1.005
    assert compare(actual, golden, standard="close").passed
    actual[1] = 1.005
    assert not compare(actual, golden, standard="close").passed


def test_the_text_names_figures_limits_and_misplaced_values() -> None:
    text = str(compare_lists([NAN, 1, INF], [1, 1, 1]))
    assert "MERE 0 (< 0.000977)" in text
    assert "1 NaN in the wrong place" in text
    assert "1 infinities in the wrong place" in text


def test_memory_stays_bounded_for_large_arrays() -> None:
    count = 8 << 20
    golden = np.ones(count)
    actual = np.ones(count, dtype=np.float16)
    tracemalloc.start()
    assert compare(actual, golden).passed
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # The step is fixed, so eight times as many elements cost the same temporaries.
    assert peak < 96 << 20


def test_float64_is_compared_exactly_as_it_is_only_moved() -> None:
    assert compare_lists([1, NAN, -INF, 1e300], [1, NAN, -INF, 1e300], "float64").passed
    assert not compare_lists([1 + 2**-52], [1], "float64").passed
    assert not compare_lists([1.0], [NAN], "float64").passed
