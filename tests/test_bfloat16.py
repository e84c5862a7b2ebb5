"""bfloat16 bits against the definition of the format."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from opkit.testing import bfloat16_to_float32, to_bfloat16

FINITE = np.array([b for b in range(1 << 16) if (b & 0x7F80) != 0x7F80], dtype=np.uint16)


def test_every_finite_bfloat16_survives_the_way_there_and_back() -> None:
    assert np.array_equal(to_bfloat16(bfloat16_to_float32(FINITE)), FINITE)


def test_bits_are_the_upper_half_of_float32() -> None:
    values = bfloat16_to_float32(np.array([0x3F80, 0xC000, 0x3E20, 0x7F7F], dtype=np.uint16))
    assert values.tolist() == [1.0, -2.0, 0.15625, 2.0**127 * (2 - 2**-7)]


@pytest.mark.parametrize(
    ("value", "bits"),
    [
        (1 + 2**-8, 0x3F80),
        (1 + 3 * 2**-8, 0x3F82),
        (1 + 2**-8 + 2**-20, 0x3F81),
        (float("inf"), 0x7F80),
        (-float("inf"), 0xFF80),
        (3.4e38, 0x7F80),
        (-0.0, 0x8000),
    ],
)
def test_ties_go_to_even_and_overflow_to_infinity(value: float, bits: int) -> None:
    for dtype in (np.float32, np.float64):
        assert to_bfloat16(np.array([value], dtype=dtype))[0] == bits


def test_a_float64_just_off_a_tie_is_rounded_once() -> None:
    just_above = np.array([1 + 2**-8 + 2**-40, 1 + 2**-8, 1 + 2**-8 - 2**-40])
    assert to_bfloat16(just_above).tolist() == [0x3F81, 0x3F80, 0x3F80]


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
def test_nan_stays_nan(dtype: type) -> None:
    bits = to_bfloat16(np.array([np.nan], dtype=dtype))
    assert np.isnan(bfloat16_to_float32(bits)).all()


@given(st.floats(min_value=-3e38, max_value=3e38, allow_nan=False))
def test_no_other_bfloat16_is_nearer_to_a_float64(value: float) -> None:
    bits = to_bfloat16(np.array([value]))
    chosen = abs(Fraction(float(bfloat16_to_float32(bits)[0])) - Fraction(value))
    for step in (-1, 1):
        neighbour = np.array([(int(bits[0]) + step) & 0xFFFF], dtype=np.uint16)
        other = float(bfloat16_to_float32(neighbour)[0])
        if np.isfinite(other):
            assert chosen <= abs(Fraction(other) - Fraction(value))
