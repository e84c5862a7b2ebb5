"""The roofline: ceilings of the chip and the launch's points."""

from __future__ import annotations

from typing import Any

import pytest

from opkit.chips import find_chip
from opkit.profiling import ceilings, roofline_points
from opkit.profiling.shown import read_timeline


def test_the_ceilings_are_those_of_the_whole_chip() -> None:
    rates = {item.name: item for item in ceilings(find_chip("910B2"))}
    # 24 cores x 1.8 GHz x 4096 products, two operations each.
    assert rates["cube float16"].operations_per_second == pytest.approx(353.9e12, rel=1e-3)
    # 48 cores x 1.8 GHz x 128 elements.
    assert rates["vector float16"].operations_per_second == pytest.approx(11.06e12, rel=1e-3)
    assert rates["HBM"].bytes_per_second == pytest.approx(1.6e12, rel=0.1)


def test_a_point_is_operations_over_bytes_and_over_time(record: dict[str, Any]) -> None:
    record["lines"][1]["operations"] = 8192
    (point,) = roofline_points(read_timeline(record))
    assert (point.unit, point.operations_per_byte) == ("vector", 2.0)
    assert point.operations_per_second == pytest.approx(8192 / 2e-6)


def test_a_launch_that_moves_nothing_has_no_point(record: dict[str, Any]) -> None:
    assert roofline_points(read_timeline({**record, "gm_read_bytes": 0})) == ()
