"""The summary's words."""

from __future__ import annotations

from typing import Any

from opkit.chips import find_chip
from opkit.profiling import summary_text
from opkit.profiling.shown import read_timeline


def test_it_names_the_chip_and_says_that_it_is_a_model(record: dict[str, Any]) -> None:
    def head(task_us: float) -> str:
        return summary_text(read_timeline({**record, "task_us": task_us})).splitlines()[0]

    chip = find_chip("Ascend910B2")
    short = chip.number("accuracy.vector.short_task_band_percent")
    long = chip.number("accuracy.vector.task_band_percent")
    model = "on Ascend910B2 at 1000 MHz (a model, not a measurement)"
    assert head(3.0) == f"gelu_custom: 3.00 us ± {short:g} % {model}"
    assert head(30.0) == f"gelu_custom: 30.00 us ± {long:g} % {model}"


def test_every_pipe_has_the_band_of_its_own(record: dict[str, Any]) -> None:
    text = summary_text(read_timeline(record))
    band = find_chip("Ascend910B2").number("accuracy.vector.V_band_percent")
    assert f"0.75 us ± {band:g} % busy" in text


def test_a_chip_without_published_times_says_so(record: dict[str, Any]) -> None:
    text = summary_text(read_timeline({**record, "chip": "Ascend310P3"}))
    assert "±" not in text
    assert "so there is no error band" in text
    assert "timing constants of Ascend310P3 are assumed" in text


def test_the_three_largest_gains_are_listed(record: dict[str, Any]) -> None:
    lifted = {"BankConflicts": 1000.0, "CopyStartup": 1900.0}
    text = summary_text(read_timeline({**record, "lifted_cycles": lifted}))
    assert "1. bank-conflicts at gelu.cpp:20: 1.00 us (33 %)" in text
    assert "2. small-copies at gelu.cpp:12: 0.10 us (3 %)" in text


def test_without_gains_there_is_nothing_to_change(record: dict[str, Any]) -> None:
    lifted = {"BankConflicts": 2000.0}
    cores = [{**core, "end_cycle": 2000.0} for core in record["cores"]]
    record |= {"lifted_cycles": lifted, "cores": cores}
    assert "nothing that the model knows" in summary_text(read_timeline(record))


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


def test_a_launch_on_both_kinds_of_core_says_what_bounds_each(record: dict[str, Any]) -> None:
    cube, vector = record["cores"]
    idle = dict.fromkeys(cube["busy_cycles"], 0.0)
    cube = {**cube, "kind": "aic", "busy_cycles": {**idle, "MTE2": 1900.0, "M": 1000.0}}
    vector = {**vector, "block": 0, "busy_cycles": {**idle, "V": 500.0}}
    text = summary_text(read_timeline({**record, "cores": [cube, vector]}))
    assert "bound by MTE2 of the cube cores (V of the vector cores: 25 %)" in text
    assert "  aic MTE2 " in text


def test_one_busy_block_of_a_mixed_launch_is_advised_to_share(record: dict[str, Any]) -> None:
    # Launches on both kinds of core got no advice on idle or uneven cores at all.
    cube, vector = record["cores"]
    idle = dict.fromkeys(cube["busy_cycles"], 0.0)
    spent = {0: 20000.0, **dict.fromkeys(range(1, 24), 2000.0)}
    cores = [
        {**core, "block": block, "kind": kind, "end_cycle": 20000.0, "busy_cycles": busy}
        for block, cycles in spent.items()
        for core, kind, busy in (
            (cube, "aic", {**idle, "MTE2": cycles}),
            (vector, "aiv", {**idle, "S": 20000.0}),
        )
    ]
    for core in cores:
        if core["kind"] == "aiv":
            core["wait_cycles"] = {**idle, "S": 19000.0}
    launch = {**record, "cores": cores, "total_cycles": 20000.0, "task_us": 21.0}
    even = summary_text(read_timeline({**launch, "lifted_cycles": {"Hbm": 20000.0}}))
    assert "1. uneven-cores" in even
    few = {**launch, "cores": cores[:2], "lifted_cycles": {"Hbm": 20000.0}}
    assert "23 of 24 cores have no block" in summary_text(read_timeline(few))
