"""assert_close, as a generated project's tests use it."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import PrecisionError
from opkit.testing import assert_close, assert_outputs, to_bfloat16


def test_a_good_result_passes_silently() -> None:
    assert_close(np.array([1, 2], dtype=np.float16), np.array([1.0, 2.0]))
    assert_close(to_bfloat16(np.array([0.3])), np.array([0.3]), dtype="bfloat16")


def test_a_bad_result_is_an_assertion_that_shows_figures_and_the_worst_element() -> None:
    with pytest.raises(PrecisionError) as caught:
        assert_close(np.array([[1, 3]], dtype=np.float16), np.array([[1.0, 2.0]]))
    assert isinstance(caught.value, AssertionError)
    text = str(caught.value)
    assert "misses the ecosystem standard for float16" in text
    assert "MARE 0.5 (< 0.00977)" in text
    assert "worst at [0, 1]: got 3.0, golden 2.0" in text


def test_an_output_that_is_a_list_is_judged_array_by_array() -> None:
    def doubled(xs: list[np.ndarray]) -> list[np.ndarray]:
        return [2 * x for x in xs]

    xs = [np.arange(3, dtype=np.float32), np.ones((2, 2), np.float32)]
    dtypes = ["float32", "float32"]
    assert_outputs([2 * x for x in xs], doubled, [xs], dtypes=dtypes)
    with pytest.raises(PrecisionError, match="output 1"):
        assert_outputs([2 * xs[0], 3 * xs[1]], doubled, [xs], dtypes=dtypes)
