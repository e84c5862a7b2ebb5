"""examples/gelu_custom: the generated and the tuned kernel, on every half and on real sizes."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import pytest

from opkit import runtime
from opkit.testing import assert_close

if TYPE_CHECKING:
    from tests.examples.conftest import Example

pytestmark = pytest.mark.slow

OPERATORS = ("GELUCustom", "GELUCustomTuned")
CHUNK = 1 << 22


@pytest.fixture(scope="module")
def example(build_example: Callable[[str], Example]) -> Example:
    return build_example("gelu_custom")


def check(example: Example, operator: str, x: np.ndarray) -> None:
    (y,) = example.library.run(operator, [x])
    assert y.shape == x.shape
    # In pieces: the whole reference of the longest input would take gigabytes.
    for first in range(0, x.size, CHUNK):
        piece = slice(first, first + CHUNK)
        (golden,) = example.golden.reference("gelu_custom", [x[piece].astype(np.float64)], attrs={})
        assert_close(y[piece], golden)


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_half_has_its_gelu(example: Example, operator: str) -> None:
    bits = np.arange(1 << 16, dtype=np.uint16)
    x = bits.view(np.float16)
    finite = x[np.isfinite(x)]
    check(example, operator, finite)


@pytest.mark.parametrize("operator", OPERATORS)
@pytest.mark.parametrize("size", [1, 63, 65, 4097, 1_000_003, 1 << 26])
def test_a_long_or_prime_length_is_right(example: Example, operator: str, size: int) -> None:
    random = np.random.default_rng(size)
    x = np.empty(size, dtype=np.float16)
    for first in range(0, size, CHUNK):
        piece = x[first : first + CHUNK]
        piece[:] = random.standard_normal(piece.size, dtype=np.float32) * 3
    check(example, operator, x)


@pytest.mark.parametrize("operator", OPERATORS)
def test_every_lane_target_gives_the_same_bits(example: Example, operator: str) -> None:
    from opkit.emulator import _emulator

    x = np.random.default_rng(0).standard_normal(100_003).astype(np.float16) * 4
    runtime.load_emulator()
    results = set()
    try:
        for target in _emulator.lane_targets():
            _emulator.set_lane_target(target)
            results.add(example.library.run(operator, [x])[0].tobytes())
    finally:
        _emulator.set_lane_target("auto")
    assert len(results) == 1
