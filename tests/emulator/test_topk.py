"""TopK of the high-level library against NumPy."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from opkit.errors import KernelFault

INFO = (
    "TopkTiling tiling; const TopKInfo info{static_cast<int32_t>(number(0)), static_cast<int32_t>(number(1)), "
    "static_cast<int32_t>(number(2))}; const int32_t k = number(3); const bool largest = number(4) != 0; "
)
OPERANDS = "(OUT(T, 0), OUT(int32_t, 1), IN(T, 0), IN(int32_t, 1), IN(bool, 2), space, k, tiling, info, largest);"
CALLS = {
    "Normal": INFO + "TopK<T>" + OPERANDS,
    "Given": INFO + "TopK<T, true, true>" + OPERANDS,
    "Small": INFO + "TopK<T, false, false, false, TopKMode::TOPK_NSMALL>" + OPERANDS,
    "SmallGiven": INFO + "TopK<T, true, false, false, TopKMode::TOPK_NSMALL>" + OPERANDS,
}
NAMES = {np.float32: "float", np.float16: "half"}
Calls = Callable[..., list[np.ndarray]]


@pytest.fixture(scope="module", params=["float", "half"])
def dtype(request: pytest.FixtureRequest) -> type:
    return {"float": np.float32, "half": np.float16}[request.param]


@pytest.fixture(scope="module")
def topk(dtype: type, local_calls: Callable[..., Calls]) -> Calls:
    return local_calls(CALLS, f"using T = {NAMES[dtype]};\n")


def chosen(x: np.ndarray, k: int, largest: bool) -> np.ndarray:
    """Where the first k stand; of equal elements the first."""
    keys = -x.astype(np.float64) if largest else x.astype(np.float64)
    return np.argsort(keys, axis=1, kind="stable")[:, :k]


def data(dtype: type, rows: int, inner: int, used: int, largest: bool) -> np.ndarray:
    """Few different values, so that some are equal; padding that is chosen last."""
    x = np.random.default_rng(1).integers(-40, 40, (rows, inner)).astype(dtype)
    x[:, used:] = -np.inf if largest else np.inf
    return x


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(
    ("rows", "inner", "used", "k"), [(3, 32, 32, 1), (5, 96, 90, 37), (2, 1024, 1024, 100)]
)
def test_rows_padded_to_data_blocks(
    topk: Calls, dtype: type, rows: int, inner: int, used: int, k: int, largest: bool
) -> None:
    x = data(dtype, rows, inner, used, largest)
    value_row = -(-k * x.itemsize // 32) * 32 // x.itemsize
    index_row = -(-k // 8) * 8
    out = [np.zeros((rows, value_row), dtype), np.zeros((rows, index_row), np.int32)]
    numbers = [rows, inner, used, k, int(largest)]
    where = chosen(x, k, largest)
    found = topk("Normal", [x], out, numbers, 24 * inner)
    np.testing.assert_array_equal(found[0][:, :k], np.take_along_axis(x, where, axis=1))
    np.testing.assert_array_equal(found[1][:, :k], where)

    index = (np.arange(inner) * 3 + 5).astype(np.int32)
    finish = np.arange(rows) % 2 == 1
    found = topk("Given", [x, index, finish], out, numbers, 24 * inner)
    np.testing.assert_array_equal(found[0][:, :k], np.take_along_axis(x, where, axis=1))
    expected = np.where(finish[:, None], used, index[where])
    np.testing.assert_array_equal(found[1][:, :k], expected)


@pytest.mark.parametrize("largest", [True, False])
@pytest.mark.parametrize(("rows", "used", "k"), [(3, 32, 1), (50, 30, 7), (9, 32, 32)])
def test_rows_of_32_one_behind_the_other(
    topk: Calls, dtype: type, rows: int, used: int, k: int, largest: bool
) -> None:
    x = data(dtype, rows, 32, used, largest)
    out = [np.zeros((rows, k), dtype), np.zeros((rows, k), np.int32)]
    numbers = [rows, 32, used, k, int(largest)]
    where = chosen(x, k, largest)
    index = np.arange(rows * 32, dtype=np.int32).reshape(rows, 32)
    for name, places in (
        ("Small", where),
        ("SmallGiven", np.take_along_axis(index, where, axis=1)),
    ):
        found = topk(name, [x, index], out, numbers, rows * 512 + 64)
        np.testing.assert_array_equal(found[0], np.take_along_axis(x, where, axis=1))
        np.testing.assert_array_equal(found[1], places)


def test_what_the_documents_exclude_is_refused(topk: Calls, dtype: type) -> None:
    x = data(dtype, 2, 64, 64, True)
    out = [np.zeros((2, 64), dtype), np.zeros((2, 64), np.int32)]
    for name, numbers, space, message in (
        ("Normal", [2, 64, 64, 65, 1], 4096, "k not in 1 to n"),
        ("Normal", [2, 64, 64, 4, 1], 1024, "smaller than what a row needs"),
        ("Small", [2, 64, 64, 4, 1], 4096, "inner is 32"),
    ):
        with pytest.raises(KernelFault, match=message):
            topk(name, [x], out, numbers, space)
    if dtype is np.float16:
        with pytest.raises(KernelFault, match="inner of half is more than 2048"):
            topk("Normal", [x], out, [1, 4096, 64, 4, 1], 4096)
