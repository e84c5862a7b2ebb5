"""Functions of single elements under the public project's names, held against NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkit import pypto

X = np.linspace(-0.95, 0.95, 64).astype(np.float32).reshape(4, 16)
Y = np.linspace(3, 0.25, 64).astype(np.float32).reshape(4, 16)
I = np.arange(-32, 32, dtype=np.int32).reshape(4, 16)  # noqa: E741


def _together(x: Any, y: Any) -> Any:
    return (
        *(pypto.asin(x), pypto.acos(x), pypto.atanh(x), pypto.asinh(x), pypto.sinh(x)),
        *(pypto.cosh(x), pypto.acosh(y + 1), pypto.atan2(x, y), pypto.hypot(x, y)),
        *(pypto.lrelu(x), pypto.remainder(x, 0.5), pypto.fmod(x, y), pypto.log10(y)),
        *(pypto.expand_exp_dif(x, y), pypto.round(x, decimals=1)),
    )


def _in_numpy(x: Any, y: Any) -> Any:
    return (
        *(np.arcsin(x), np.arccos(x), np.arctanh(x), np.arcsinh(x), np.sinh(x)),
        *(np.cosh(x), np.arccosh(y + 1), np.arctan2(x, y), np.hypot(x, y)),
        *(np.where(x > 0, x, 0.01 * x), np.mod(x, 0.5), np.fmod(x, y), np.log10(y)),
        *(np.exp(x - y), np.round(X, 1)),
    )


@pytest.mark.slow
def test_functions_give_what_numpy_gives() -> None:
    program = pypto.jit(_together)
    for actual, expected in zip(
        program(X, Y), _in_numpy(X.astype("f8"), Y.astype("f8")), strict=True
    ):
        np.testing.assert_allclose(actual, expected, rtol=3e-6, atol=1e-6)


@pytest.mark.slow
def test_comparisons_and_bits() -> None:
    @pypto.jit
    def program(x, y, i):
        return pypto.ge(x, y), pypto.bitwise_and(i, 6), pypto.bitwise_left_shift(i, 3)

    greater, bits, shifted = program(X, Y, I)
    np.testing.assert_array_equal(greater, X >= Y)
    np.testing.assert_array_equal(bits, I & 6)
    np.testing.assert_array_equal(shifted, I << 3)


@pytest.mark.slow
def test_roots_signs_and_products() -> None:
    odd = np.array([[-27, 0.0, -0.0, 1e-30, 3e38, np.inf, -np.inf, np.nan]], np.float32)

    @pypto.jit
    def program(x, y, odd, i):
        return (
            *(pypto.cbrt(odd), pypto.signbit(odd), pypto.signbit(i)),
            *(pypto.prod(y, 1), pypto.prod(i, 0, True), pypto.cumprod(y, -1)),
        )

    roots, signs, below, whole, of_numbers, running = program(X, Y, odd, I)
    np.testing.assert_allclose(roots, np.cbrt(odd), rtol=1e-6)
    np.testing.assert_array_equal(signs, np.signbit(odd) & ~np.isnan(odd))
    np.testing.assert_array_equal(below, I < 0)
    np.testing.assert_allclose(whole, Y.astype("f8").prod(1), rtol=1e-5)
    np.testing.assert_array_equal(of_numbers, I.prod(0, keepdims=True, dtype=np.int32))
    np.testing.assert_allclose(running, np.cumprod(Y.astype("f8"), -1), rtol=1e-5)


@pytest.mark.slow
def test_what_is_no_number_is_found() -> None:
    x = np.array([[1, np.nan, np.inf, -np.inf]], np.float32)
    nan, finite = pypto.jit(lambda x: (pypto.isnan(x), pypto.isfinite(x)))(x)
    np.testing.assert_array_equal(nan, np.isnan(x))
    np.testing.assert_array_equal(finite, np.isfinite(x))


@pytest.mark.slow
def test_numbers_count_and_borders_are_filled() -> None:
    @pypto.jit
    def program(x):
        part = pypto.view(x, (4, 8), (2, 12), valid_shape=(2, 4))
        return (
            pypto.arange(1.0, 4.0, 0.5) + x[0, 0],
            pypto.pad(x, (0, 2, 0, 1), value=-1.0),
            pypto.fillpad(part, "constant", "-inf"),
        )

    numbers, padded, filled = program(X)
    np.testing.assert_allclose(numbers, np.arange(1.0, 4.0, 0.5) + X[0, 0], rtol=1e-6)
    np.testing.assert_array_equal(padded, np.pad(X, ((0, 1), (0, 2)), constant_values=-1))
    expected = np.pad(X[2:4, 12:], ((0, 2), (0, 4)), constant_values=-np.inf)
    np.testing.assert_array_equal(filled, expected)


@pytest.mark.slow
def test_random_numbers_are_those_of_the_key() -> None:
    @pypto.jit
    def program(x):
        return pypto.uniform([4, 16], [7], [0, 1], [1], pypto.DT_FP32) + x

    zeros = np.zeros_like(X)
    first, second = program(zeros), program(zeros)
    assert first.min() >= 0 and first.max() < 1 and first.std() > 0.2
    np.testing.assert_array_equal(first, second)


@pytest.mark.slow
def test_products_take_bias_activation_and_a_scale() -> None:
    @pypto.jit
    def program(a, b, bias):
        further = {"bias_tensor": bias, "relu_type": pypto.ReLuType.RELU}
        return pypto.matmul(a, b, pypto.DT_FP32, b_trans=True, extend_params=further)

    bias = np.linspace(-1, 1, 4).astype(np.float32)[None]
    expected = np.maximum(X.astype("f8") @ Y.T + bias, 0)
    np.testing.assert_allclose(program(X, Y, bias), expected, rtol=1e-5, atol=1e-5)


@pytest.mark.slow
def test_numbers_are_quantised_along_rows() -> None:
    scale = np.array([100, 50, 10, 1], np.float32)
    whole = pypto.jit(lambda x, s: pypto.quantize(x, s, pypto.DT_INT8, -1))(X, scale)
    np.testing.assert_array_equal(whole, np.round(X * scale[:, None]).astype(np.int8))


@pytest.mark.torch
def test_bfloat16_comes_back_as_it_went_in() -> None:
    import torch

    x = torch.linspace(-2, 2, 32, dtype=torch.bfloat16).reshape(2, 16)
    result = pypto.jit(lambda x: x * 2.0 + 1.0)(x)
    assert result.dtype == torch.bfloat16
    torch.testing.assert_close(result, x * 2 + 1)
