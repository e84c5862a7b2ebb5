"""Values of inputs: distributions, edges, numbers, files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from opkit.dtypes import DType, find_dtype
from opkit.errors import UsageError
from opkit.testing import DISTRIBUTIONS, EDGES, Source
from opkit.testing.cases import values as values_module
from opkit.testing.cases.values import make_values
from opkit.testing.numbers.arrays import widen


def row(name: str) -> DType:
    found = find_dtype(name)
    assert found is not None
    return found


def make(source: Source, dtype: str = "float32", shape: tuple[int, ...] = (4096,)) -> np.ndarray:
    return make_values(np.random.default_rng(0), shape, row(dtype), source)


def test_the_nine_distributions_of_msopst_are_there() -> None:
    nine = "uniform normal beta laplace triangular relu sigmoid softmax tanh"
    assert {*nine.split(), "either", "wide"} == set(DISTRIBUTIONS)


@pytest.mark.parametrize("dtype", ["float32", "float16", "int8"])
def test_one_of_two_numbers_stands_everywhere_and_both_do(dtype: str) -> None:
    assert set(make(Source("either", -1.0, 1.0), dtype).tolist()) == {-1, 1}
    ones = make(Source("either", 0.0, 1.0), dtype)
    assert set(ones.tolist()) == {0, 1} and 1000 < ones.sum(dtype=float) < 3000


@pytest.mark.parametrize("name", [n for n in DISTRIBUTIONS if n not in ("softmax", "either")])
def test_a_range_bounds_every_distribution_and_the_values_differ(name: str) -> None:
    found = make(Source(name, 0.25, 0.75))
    assert len(np.unique(found)) > 1000
    low, high = (0.25, 0.75) if name not in ("sigmoid", "tanh") else (0.2, 0.75)
    assert low <= found.min() and found.max() <= high


def test_softmax_is_positive_and_sums_to_one() -> None:
    found = make(Source("softmax"))
    assert found.min() > 0
    assert found.astype(np.float64).sum() == pytest.approx(1, rel=1e-5)


@pytest.mark.parametrize("name", EDGES)
@pytest.mark.parametrize("dtype", ["float16", "float32", "bfloat16"])
def test_the_edges_of_a_dtype_are_among_the_values(name: str, dtype: str) -> None:
    found = widen(make(Source(name), dtype, shape=(64, 64)), row(dtype))
    smallest = {"float16": 2.0**-24, "float32": 2.0**-149, "bfloat16": 2.0**-133}[dtype]
    holds = {
        "edge": np.isnan(found).any() and (found == smallest).any(),
        "edge_rows": np.isnan(found).any() and (found == smallest).any(),
        "zeros": (np.signbit(found) & (found == 0)).any(),
        "subnormal": (found == smallest).any(),
        "extreme": (found > 3e4).any(),
        "nonfinite": np.isnan(found).any() and np.isinf(found).any(),
        "nonfinite_rows": np.isnan(found).any() and np.isinf(found).any(),
        "ties": (found == 2.5).any(),
        "halves": (found == 2.5).any(),
    }
    assert holds[name]


def test_a_row_holds_one_edge_and_what_rows_share_holds_none() -> None:
    found = make(Source("edge_rows"), shape=(26, 64))
    ordinary = np.isfinite(found) & (np.abs(found) > 1e-30) & (np.abs(found) < 10) & (found != 1)
    assert ((~ordinary).sum(axis=-1) <= 1).all()
    # Thirteen edges, each in two of the rows.
    assert np.isnan(found).sum() == 2 and np.isposinf(found).sum() == 2
    assert np.isfinite(make(Source("edge_rows"), shape=(4096,))).all()
    assert make(Source("edge_rows"), shape=(0, 64)).size == 0


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int64", "uint64"])
def test_whole_numbers_have_edges_and_ranges(dtype: str) -> None:
    limits = np.iinfo(dtype)
    edges = make(Source("edge"), dtype)
    assert edges.min() == limits.min and edges.max() == limits.max
    assert set(make(Source("uniform", 3, 5), dtype).tolist()) == {3, 4, 5}
    assert make(Source("normal", 3, 100), dtype).dtype == dtype


def test_a_long_tensor_is_made_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(values_module, "_CHUNK", 1000)
    parts = make(Source("normal"), shape=(7, 501))
    assert parts.shape == (7, 501)
    assert parts.std() == pytest.approx(1, rel=0.05)
    np.testing.assert_array_equal(parts, make(Source("normal"), shape=(7, 501)))


def test_numbers_are_taken_as_they_are_or_repeated() -> None:
    np.testing.assert_array_equal(make(Source(values=(1, 2.5)), shape=(2,)), [1, 2.5])
    np.testing.assert_array_equal(make(Source(values=(3,)), shape=(2, 2)), [[3, 3], [3, 3]])
    with pytest.raises(UsageError, match="2 values for a shape of 3 elements"):
        make(Source(values=(1, 2)), shape=(3,))


def test_files_hold_elements_or_an_npy_array(tmp_path: Path) -> None:
    expected = np.arange(6, dtype=np.float16)
    expected.tofile(tmp_path / "x.bin")
    np.save(tmp_path / "x.npy", expected.astype(np.float64))
    for name in ("x.bin", "x.npy"):
        found = make(Source(file=tmp_path / name), "float16", (2, 3))
        np.testing.assert_array_equal(found, expected.reshape(2, 3))
    with pytest.raises(UsageError, match="holds 6 values, the input has 7"):
        make(Source(file=tmp_path / "x.bin"), "float16", (7,))
    with pytest.raises(UsageError, match="cannot be read as values"):
        make(Source(file=tmp_path / "none.bin"), "float16", (7,))
