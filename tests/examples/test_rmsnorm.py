"""examples/rmsnorm: the hand-written kernel, on rows of 4096 and on awkward ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from opkit.errors import UsageError
from opkit.testing import assert_close, bfloat16_to_float32, to_bfloat16

if TYPE_CHECKING:
    from tests.examples.conftest import Example

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def example(build_example: Callable[[str], Example]) -> Example:
    return build_example("rmsnorm")


def make(random: np.random.Generator, shape: tuple[int, ...], dtype: str) -> np.ndarray:
    values = random.standard_normal(shape, dtype=np.float32)
    return to_bfloat16(values) if dtype == "bfloat16" else values.astype(dtype)


def wide(values: np.ndarray, dtype: str) -> np.ndarray:
    known = bfloat16_to_float32(values) if dtype == "bfloat16" else values
    return known.astype(np.float64)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32"])
@pytest.mark.parametrize("shape", [(2048, 4096), (1, 4096), (3, 4099), (97, 8), (2, 3, 17), (5, 1)])
def test_rows_are_normalised(example: Example, shape: tuple[int, ...], dtype: str) -> None:
    random = np.random.default_rng(0)
    x, gamma = make(random, shape, dtype), make(random, shape[-1:], dtype)
    (y,) = example.library.run("Rmsnorm", [x, gamma], {"epsilon": 1e-5}, dtypes=[dtype, dtype])
    inputs = [wide(x, dtype), wide(gamma, dtype)]
    (golden,) = example.golden.reference("rmsnorm", inputs, attrs={"epsilon": 1e-5})
    assert_close(y, golden, dtype=dtype)


def test_gamma_may_have_a_row_of_its_own_for_each_row(example: Example) -> None:
    random = np.random.default_rng(1)
    x, gamma = make(random, (9, 100), "float16"), make(random, (9, 100), "float16")
    (y,) = example.library.run("Rmsnorm", [x, gamma])
    inputs = [wide(x, "float16"), wide(gamma, "float16")]
    (golden,) = example.golden.reference("rmsnorm", inputs, attrs={"epsilon": 1e-6})
    assert_close(y, golden)


def test_a_row_that_does_not_fit_is_refused_by_name(example: Example) -> None:
    x = np.ones((2, 65536), dtype=np.float16)
    with pytest.raises(UsageError, match=r"a row of 65536 elements needs .* bytes"):
        example.library.run("Rmsnorm", [x, x[0]])
