"""Figures derived from a launch's record."""

from __future__ import annotations

from typing import Any

from opkit.chips import find_chip
from opkit.profiling.shown import read_timeline


def test_lines_come_most_expensive_first_and_events_follow_them(record: dict[str, Any]) -> None:
    timeline = read_timeline(record)
    assert [line.instruction for line in timeline.lines] == ["Add", "DataCopy"]
    assert [timeline.lines[event.line].pipe for event in timeline.events] == ["MTE2", "V"]


def test_utilisation_is_mean_busy_time_over_the_slowest_core(record: dict[str, Any]) -> None:
    busiest = read_timeline(record).pipes()[0]
    assert (busiest.pipe, busiest.utilisation) == ("V", 0.375)
    assert (busiest.mean_us, busiest.max_us) == (0.75, 1.5)


def test_pipes_that_did_nothing_are_left_out(record: dict[str, Any]) -> None:
    assert [time.pipe for time in read_timeline(record).pipes()] == ["V", "MTE2"]


def test_the_busiest_pipe_bounds_the_launch(record: dict[str, Any]) -> None:
    assert read_timeline(record).bound_by == "V"


def test_a_launch_that_outlasts_its_cores_is_bound_by_launching(record: dict[str, Any]) -> None:
    assert read_timeline({**record, "launch_us": 9.7}).bound_by == "launch"


def test_balance_is_mean_over_slowest(record: dict[str, Any]) -> None:
    assert read_timeline(record).balance == 0.75


def test_a_launch_of_nothing_has_figures_too(record: dict[str, Any]) -> None:
    nothing = {**record, "cores": [], "lines": [], "events": [], "total_cycles": 0.0}
    timeline = read_timeline(nothing)
    assert timeline.pipes() == ()
    assert timeline.bound_by == "launch"
    assert timeline.balance == 1.0
    assert timeline.gm_bytes_per_second == 0.0


def test_rows_are_flat_and_carry_microseconds(record: dict[str, Any]) -> None:
    row = read_timeline(record).rows()[0]
    assert (row["instruction"], row["time_us"], row["line"]) == ("Add", 1.5, 20)
    assert not any(isinstance(value, (dict, list, tuple)) for value in row.values())


def test_core_rows_have_a_column_a_pipe(record: dict[str, Any]) -> None:
    first, second = read_timeline(record).core_rows()
    assert (first["v_us"], first["time_us"]) == (1.5, 2.0)
    assert second["mte2_us"] == 1.0
    assert first.keys() == second.keys()


def test_it_is_named_in_one_line(record: dict[str, Any]) -> None:
    assert repr(read_timeline(record)) == "<Timeline gelu_custom: 3 us on Ascend910B2>"


def test_a_chip_without_published_times_has_wider_bands_or_none(record: dict[str, Any]) -> None:
    measured = read_timeline(record).band_percent()
    assert measured is not None
    for chip in ("Ascend910B1", "Ascend910B3", "Ascend910B4", "Ascend910_9391"):
        scaled = read_timeline({**record, "chip": chip}).band_percent()
        assert scaled is not None
        assert scaled > measured
    assert read_timeline({**record, "chip": "Ascend310P3"}).band_percent() is None


def test_cube_cores_and_matmul_objects_have_bands_of_their_own(record: dict[str, Any]) -> None:
    cores = [{**core, "kind": "aic"} for core in record["cores"]]
    cube = read_timeline({**record, "cores": cores})
    assert cube.kernel_class == "cube"
    assert cube.band_percent("FIX") is not None
    library = {**record["lines"][0], "instruction": "LibraryWork", "cycles": 300.0}
    product = read_timeline({**record, "cores": cores, "lines": [*record["lines"], library]})
    assert product.kernel_class == "matmul"
    assert product.guessed_share == 0.1
    assert read_timeline({**record, "cores": [*cores, record["cores"][0]]}).kernel_class == "mixed"


def _mixed(record: dict[str, Any]) -> dict[str, Any]:
    """Return a block whose cube core copies nearly all the time, and whose vector core waits."""
    cube, vector = record["cores"]
    idle = dict.fromkeys(cube["busy_cycles"], 0.0)
    cube = {**cube, "kind": "aic", "busy_cycles": {**idle, "MTE2": 1900.0, "M": 1000.0}}
    vector = {**vector, "block": 0, "busy_cycles": {**idle, "S": 1500.0, "MTE2": 10.0}}
    return {**record, "cores": [cube, {**vector, "wait_cycles": {**idle, "S": 1450.0}}]}


def test_pipes_of_cube_and_vector_cores_are_apart(record: dict[str, Any]) -> None:
    # MTE2 was the mean over both kinds and M over cube cores alone: M bounded what MTE2 did.
    timeline = read_timeline(_mixed(record))
    found = {time.name: round(time.utilisation, 3) for time in timeline.pipes()}
    assert found == {"aic MTE2": 0.95, "aiv S": 0.75, "aic M": 0.5, "aiv MTE2": 0.005}
    assert timeline.bound_by == "aic MTE2"
    assert {kind: time.pipe for kind, time in timeline.bounds.items()} == {
        "aic": "MTE2",
        "aiv": "S",
    }


def test_a_chip_of_one_architecture_guesses_what_the_measured_one_does(
    record: dict[str, Any],
) -> None:
    # "assumed: as on 910B" made nearly every constant of the Ascend910B3 a guess.
    of_b2 = read_timeline(record).guesses
    of_b3 = read_timeline({**record, "chip": "Ascend910B3"}).guesses
    assert of_b2
    assert of_b3 == of_b2
    assert len(read_timeline({**record, "chip": "Ascend310P3"}).guesses) > len(of_b2)
    # And what is no guess says on which chip it was measured, or which document gives it.
    of_chip = find_chip("Ascend910B3").numbers
    assert of_chip["timing.vector.startup_cycles"].source.startswith("vector instruction")
    assert of_chip["timing.mte2.startup_cycles"].source.startswith("as on Ascend910B2: fitted")


def test_a_launch_that_hbm_holds_back_is_bound_by_it(record: dict[str, Any]) -> None:
    assert not read_timeline(record).is_hbm_bound
    assert read_timeline({**record, "lifted_cycles": {"Hbm": 1700.0}}).is_hbm_bound
