"""Reductions of rows that are folded by vectors, against NumPy in double precision."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")

from opkit.triton import SlowKernel, launch  # noqa: E402


@triton.jit
def boxes_kernel(x, out, R: tl.constexpr, C: tl.constexpr):
    r, c = tl.arange(0, R), tl.arange(0, C)
    box = tl.load(x + r[:, None] * C + c[None, :])
    tl.store(out + r, tl.sum(box, 1))
    tl.store(out + R + c, tl.sum(box, 0))
    tl.store(out + R + C + r, tl.max(box, 1).to(box.dtype))
    tl.store(out + 2 * R + C + c, tl.min(box, 0).to(box.dtype))


def folded(x: np.ndarray) -> np.ndarray:
    rows, columns = x.shape
    out = np.zeros(2 * (rows + columns), x.dtype)
    with warnings.catch_warnings():
        warnings.simplefilter("error", SlowKernel)
        launch(boxes_kernel, (1,), x, out, rows, columns)
    return out


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", [np.float32, np.float16])
@pytest.mark.parametrize("shape", [(4, 64), (3, 24), (2, 520)])
def test_rows_of_whole_blocks(kind: type, shape: tuple[int, int]) -> None:
    x = np.random.default_rng(1).normal(0, 9, shape).astype(kind)
    wide = x.astype(np.float64)
    expected = np.concatenate([wide.sum(1), wide.sum(0), wide.max(1), wide.min(0)])
    # A sum of halves is rounded once.
    tolerance = {"atol": 1e-3, "rtol": 2.0**-11 if kind is np.float16 else 1e-6}
    np.testing.assert_allclose(folded(x).astype(np.float64), expected, **tolerance)


def test_what_is_no_number_counts_for_nothing_in_extremes() -> None:
    x = np.random.default_rng(2).normal(size=(4, 16)).astype(np.float32)
    x[0, 3], x[1], x[2], x[:, 5] = np.nan, np.nan, -np.inf, np.nan
    x[2, 5] = -np.inf
    found = folded(x)[4 + 16 :]
    np.testing.assert_array_equal(found[:4], [np.nanmax(x[0]), np.nan, -np.inf, np.nanmax(x[3])])
    np.testing.assert_array_equal(found[4:], np.nanmin(x, 0))


@triton.jit
def line_kernel(x, out, C: tl.constexpr):
    line = tl.load(x + tl.arange(0, C))
    tl.store(out, tl.sum(line, 0))
    tl.store(out + 1, tl.max(line, 0))


@pytest.mark.sampled(2)
@pytest.mark.parametrize("count", [7, 9, 37, 513])
def test_a_line_has_any_length(count: int) -> None:
    x = np.random.default_rng(3).normal(size=count).astype(np.float32)
    out = np.zeros(2, np.float32)
    launch(line_kernel, (1,), x, out, count)
    np.testing.assert_allclose(out, [x.sum(dtype=np.float64), x.max()], rtol=1e-5, atol=1e-5)
