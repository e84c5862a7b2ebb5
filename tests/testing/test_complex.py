"""Complex numbers in cases: drawn, widened for references, judged by their parts."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.dtypes import find_tensor_dtype
from opkit.errors import PrecisionError
from opkit.testing import assert_outputs, compare
from opkit.testing.cases.values import Source, make_values
from opkit.testing.numbers.arrays import narrow, widen


@pytest.mark.parametrize("name", ["complex64", "complex32"])
def test_values_have_two_parts_and_survive_the_way_to_a_reference(name: str) -> None:
    dtype = find_tensor_dtype(name)
    assert dtype is not None
    values = make_values(np.random.default_rng(1), (3, 50), dtype, Source("uniform", -2.0, 2.0))
    assert (values.shape, values.dtype) == ((3, 50), np.dtype(dtype.numpy))
    wide = widen(values, dtype)
    assert wide.dtype == np.complex128
    for part in (wide.real, wide.imag):
        assert 0.5 < part.std() < 2 and np.abs(part).max() <= 2
    np.testing.assert_array_equal(narrow(wide, dtype), values)


def square(x: np.ndarray) -> np.ndarray:
    return x * x


@pytest.mark.parametrize("name", ["complex64", "complex32"])
def test_a_wrong_imaginary_part_is_found_where_it_stands(name: str) -> None:
    dtype = find_tensor_dtype(name)
    assert dtype is not None
    x = make_values(np.random.default_rng(2), (7, 9), dtype, Source())
    right = narrow(square(widen(x, dtype)), dtype)
    assert_outputs(right, square, [x], dtypes=[name, name])
    assert compare(right, square(widen(x, dtype)), dtype=name, standard="conditioned").passed

    parts = right.copy()
    parts.view(np.float16 if name == "complex32" else np.float32).reshape(7, 9, 2)[3, 4, 1] += 1
    with pytest.raises(PrecisionError, match=r"worst at \[3, 4, 1\]"):
        assert_outputs(parts, square, [x], dtypes=[name, name])
    assert not compare(parts, square(widen(x, dtype)), dtype=name, standard="conditioned").passed
