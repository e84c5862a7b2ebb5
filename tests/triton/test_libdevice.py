"""Functions that Triton programs take from a device's library, against NumPy."""

from __future__ import annotations

import importlib
import math
import sys
from statistics import NormalDist

import numpy as np
import pytest

triton = pytest.importorskip("triton")
tl = pytest.importorskip("triton.language")
libdevice = pytest.importorskip("triton.language.extra.libdevice")

from opkit.triton import TritonError, launch  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore")

COUNT = 20


@triton.jit
def functions_kernel(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(out + at, libdevice.tanh(a))
    tl.store(out + BLOCK + at, libdevice.log1p(b * b))
    tl.store(out + 2 * BLOCK + at, libdevice.expm1(a * 0.001))
    tl.store(out + 3 * BLOCK + at, libdevice.atan2(a, b))
    tl.store(out + 4 * BLOCK + at, libdevice.hypot(a, b))
    tl.store(out + 5 * BLOCK + at, libdevice.copysign(a, b))
    tl.store(out + 6 * BLOCK + at, libdevice.trunc(a * 3) + libdevice.rint(b * 3))
    tl.store(out + 7 * BLOCK + at, libdevice.nextafter(a, b))
    tl.store(out + 8 * BLOCK + at, libdevice.asinh(a) + libdevice.isnan(a))
    tl.store(out + 9 * BLOCK + at, libdevice.sinh(a) + libdevice.cosh(b))
    tl.store(out + 10 * BLOCK + at, libdevice.log10(tl.abs(a)))
    tl.store(out + 11 * BLOCK + at, libdevice.erfc(a))
    tl.store(out + 12 * BLOCK + at, libdevice.atan(a) + libdevice.tan(b))
    tl.store(out + 13 * BLOCK + at, libdevice.signbit(a) + 2 * libdevice.isinf(b))
    tl.store(out + 14 * BLOCK + at, libdevice.erfinv(a * 0.25))
    tl.store(out + 15 * BLOCK + at, libdevice.lgamma(a * 9))
    tl.store(out + 16 * BLOCK + at, libdevice.gamma(a * 3))
    tl.store(out + 17 * BLOCK + at, libdevice.cyl_bessel_i0(a * 9))
    tl.store(out + 18 * BLOCK + at, libdevice.pow(tl.abs(a), b))
    tl.store(out + 19 * BLOCK + at, libdevice.pow(a, 3.0))


@pytest.mark.slow
def test_functions_of_a_devices_library() -> None:
    rng = np.random.default_rng(5)
    block = 48
    x, y = (rng.normal(size=block).astype(np.float32) for _ in range(2))
    x[:3], y[:2] = [0.0, -0.0, 1.0], [-1.0, -1.0]
    # Next to whole numbers below zero the logarithm of gamma has zeros and poles.
    x[3:] = np.where(np.abs(x * 9 - np.rint(x * 9)) < 0.1, x + 0.03, x)[3:]
    x = np.where(np.abs(x * 9 - np.rint(x * 9)) < 0.05, x + 0.01, x).astype(np.float32)
    x[:2] = [0.0, -0.0]
    out = np.zeros((COUNT, block), np.float32)
    launch(functions_kernel, (1,), x, y, out, BLOCK=block)
    a, b = x.astype(np.float64), y.astype(np.float64)
    with np.errstate(divide="ignore"):
        expected = [
            np.tanh(a),
            np.log1p(b * b),
            np.expm1(a * 0.001),
            np.arctan2(a, b),
            np.hypot(a, b),
            np.copysign(a, b),
            np.trunc(x * np.float32(3)) + np.rint(y * np.float32(3)),
            np.nextafter(x, y),
            np.arcsinh(a),
            np.sinh(a) + np.cosh(b),
            np.log10(np.abs(a)),
            np.vectorize(math.erfc)(a),
            np.arctan(a) + np.tan(b),
            np.signbit(x) + 0.0,
            np.vectorize(NormalDist().inv_cdf)(a * 0.125 + 0.5) / math.sqrt(2),
            np.vectorize(lambda v: math.lgamma(v) if v else math.inf)(a * 9),
            np.vectorize(lambda v: math.gamma(v) if v else math.copysign(math.inf, v))(a * 3),
            np.i0(a * 9),
            np.abs(a) ** b,
            a**3,
        ]
    for row, values in zip(out, expected, strict=True):
        np.testing.assert_allclose(row, values, rtol=2e-5, atol=2e-6)


@triton.jit
def halves_kernel(x, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    value = tl.load(x + at)
    tl.store(out + at, tl.exp(value))


def test_functions_of_halves_are_rounded_once() -> None:
    x = np.linspace(-4, 4, 40).astype(np.float16)
    out = np.zeros_like(x)
    launch(halves_kernel, (1,), x, out, BLOCK=40)
    np.testing.assert_array_equal(out, np.exp(x.astype(np.float32)).astype(np.float16))


@triton.jit
def bessel_kernel(x):
    tl.store(x, libdevice.cyl_bessel_i1(tl.load(x)))


def test_a_function_that_is_not_there_is_named() -> None:
    with pytest.raises(TritonError, match="cyl_bessel_i1"):
        launch(bessel_kernel, (1,), np.zeros(1, np.float32))


@triton.jit
def forms_kernel(whole, x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    a, b = tl.load(x + at), tl.load(y + at)
    tl.store(whole + at, tl.ceil(tl.load(whole + at)) + tl.floor(tl.load(whole + at)))
    tl.store(out + at, tl.cdiv(a, b))
    tl.store(out + BLOCK + at, tl.cdiv(a, 3))
    box = tl.load(x + (at[:, None] // 4) + at[None, :] * 0)
    tl.store(out + 2 * BLOCK + at, tl.max(box, 1, propagate_nan=True))
    tl.store(out + 3 * BLOCK + at, tl.min(box, axis=0, propagate_nan=False))


def test_the_chips_own_language_takes_more_types_and_words() -> None:
    block = 16
    whole = np.arange(-8, 8, dtype=np.int32)
    x, y = np.linspace(-9, 9, block, dtype=np.float32), np.linspace(1, 5, block, dtype=np.float32)
    out, given = np.zeros((4, block), np.float32), whole.copy()
    launch(forms_kernel, (1,), given, x, y, out, BLOCK=block)
    np.testing.assert_array_equal(given, 2 * whole)
    np.testing.assert_array_equal(out[0], np.ceil(x / y))
    np.testing.assert_array_equal(out[1], np.ceil(x / np.float32(3)))
    np.testing.assert_array_equal(out[2], x[np.arange(block) // 4])
    np.testing.assert_array_equal(out[3], np.full(block, x[0]))
    x[1] = np.nan
    launch(forms_kernel, (1,), given, x, y, out, BLOCK=block)
    assert np.isnan(out[2, 4:8]).all() and not np.isnan(out[2, 8:]).any()


def test_modules_of_the_chips_triton_are_lent(monkeypatch: pytest.MonkeyPatch) -> None:
    from opkit.triton import activation

    monkeypatch.setenv(activation.VARIABLE, activation.BACKEND)
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    activation.offer()
    with activation.active():
        entry = importlib.import_module("triton.runtime.libentry")
        assert entry.libentry()(forms_kernel) is forms_kernel
        lent = importlib.import_module("triton.language.extra.cann.libdevice")
        assert lent.pow is tl.math.pow
        with pytest.raises(AttributeError, match="no attribute 'unheard'"):
            _ = tl.math.unheard


@triton.jit
def next_kernel(x, y, out, BLOCK: tl.constexpr):
    at = tl.arange(0, BLOCK)
    tl.store(out + at, libdevice.nextafter(tl.load(x + at), tl.load(y + at)))


def test_next_halves_are_their_own_types() -> None:
    x = np.array([0, -0.0, 1, -1, 2, 65504, 5.96e-08, 3, np.nan, 1], np.float16)
    y = np.array([1, -1, 2, 0, 1, np.inf, 0, 3, 1, np.nan], np.float16)
    out = np.zeros_like(x)
    launch(next_kernel, (1,), x, y, out, BLOCK=len(x))
    np.testing.assert_array_equal(out, np.nextafter(x, y))
