"""The summary's words."""

from __future__ import annotations

from typing import Any

from opkit.profiling import summary_text
from opkit.profiling.timeline import read_timeline


def test_it_names_the_chip_and_says_that_it_is_a_model(record: dict[str, Any]) -> None:
    head = summary_text(read_timeline(record)).splitlines()[0]
    assert head == ("gelu_custom: 3.00 us on Ascend910B2 at 1000 MHz (a model, not a measurement)")


def test_each_busy_pipe_has_a_bar_as_long_as_its_share(record: dict[str, Any]) -> None:
    lines = summary_text(read_timeline(record)).splitlines()
    (vector,) = [line for line in lines if line.startswith("  V ")]
    assert vector.count("█") == round(0.375 * 30)
    assert "37.5 %" in vector
    assert not any(line.startswith("  FIX") for line in lines)


def test_the_hottest_line_comes_with_its_bank_conflicts(record: dict[str, Any]) -> None:
    text = summary_text(read_timeline(record))
    hottest = text[text.index("hottest lines") :].splitlines()[1]
    assert "gelu.cpp:20" in hottest
    assert "50 % of it bank conflicts" in hottest


def test_unbalanced_cores_are_pointed_out(record: dict[str, Any]) -> None:
    assert "balance 75 %; slowest is block 0, 2.00 us" in summary_text(read_timeline(record))


def test_a_cut_timeline_is_admitted(record: dict[str, Any]) -> None:
    assert "2 more are in the totals only" in summary_text(read_timeline(record))


def test_a_launch_bound_launch_still_names_its_busiest_pipe(record: dict[str, Any]) -> None:
    text = summary_text(read_timeline({**record, "launch_us": 9.7}))
    assert "bound by launch, the cores by V" in text
