"""The score's formula."""

from __future__ import annotations

import pytest

from opkit.judging import case_part, speed_share, total_score


@pytest.mark.parametrize(("time_us", "share"), [(10.0, 0.5), (2.0, 1.0), (18.0, 1 / 3), (1.0, 1.0)])
def test_the_base_has_a_half_and_the_bound_one(time_us: float, share: float) -> None:
    assert speed_share(time_us, base_us=10.0, bound_us=2.0) == pytest.approx(share)


def test_a_base_below_the_bound_says_nothing() -> None:
    assert speed_share(5.0, base_us=1.0, bound_us=2.0) is None


def test_the_library_itself_has_75_and_what_is_wrong_its_compile() -> None:
    assert total_score(True, [case_part(True, 0.5)] * 4) == pytest.approx(75.0)
    assert total_score(True, [case_part(False, 1.0)]) == pytest.approx(20.0)
    assert total_score(False, []) == 0.0
