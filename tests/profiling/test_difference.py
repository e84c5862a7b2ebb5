"""Two reports compared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opkit.errors import UsageError
from opkit.profiling import compare_reports, read_report


def report(**fields: Any) -> dict[str, Any]:
    line = {"file": "a.cpp", "line": 7, "instruction": "Add", "cycles": 1800.0}
    return {
        **{"kernel": "add", "chip": "Ascend910B2", "clock_mhz": 1800.0, "task_us": 10.0},
        **{"pipes": [{"name": "V", "mean_us": 4.0}], "lines": [line], "gm_read_bytes": 64},
        **fields,
    }


def test_a_task_within_the_limit_is_not_slower() -> None:
    found = compare_reports(report(), report(task_us=10.2), limit_percent=2)
    assert not found.is_slower
    assert found.task.percent == pytest.approx(2)


def test_a_task_beyond_the_limit_is_slower() -> None:
    assert compare_reports(report(), report(task_us=10.3), limit_percent=2).is_slower


def test_pipes_of_either_report_are_compared() -> None:
    pipes = [{"name": "MTE2", "mean_us": 1.0}, {"name": "V", "mean_us": 2.0}]
    found = compare_reports(report(), report(pipes=pipes)).pipes
    assert [(item.name, item.before, item.after) for item in found] == [
        ("V", 4.0, 2.0),
        ("MTE2", 0.0, 1.0),
    ]
    assert (found[0].percent, found[1].percent) == (-50, None)


def test_pipes_of_cube_and_vector_cores_are_compared_apart() -> None:
    # Both have an MTE2: the second overwrote the first.
    pipes = [{"name": "aiv MTE2", "mean_us": 1.0}, {"name": "aic MTE2", "mean_us": 2.0}]
    found = compare_reports(report(pipes=pipes), report(pipes=pipes)).pipes
    assert [(item.name, item.after) for item in found] == [("aic MTE2", 2.0), ("aiv MTE2", 1.0)]


def test_lines_that_did_not_change_are_left_out() -> None:
    lines = [
        *report()["lines"],
        {"file": "a.cpp", "line": 9, "instruction": "Exp", "cycles": 900.0},
    ]
    (change,) = compare_reports(report(), report(lines=lines)).lines
    assert (change.name, change.before, change.after) == ("a.cpp:9 Exp", 0.0, 0.5)


def test_lines_are_matched_by_their_text_and_not_by_their_number() -> None:
    def run(lines: list[str], add_at: int, cycles: float, wait: float) -> dict[str, Any]:
        line = {"file": "/somewhere/k.cpp", "line": add_at, "instruction": "Add"}
        cost = {"cycles": cycles, "wait_cycles": wait}
        return report(
            lines=[{**line, **cost}], sources={"/somewhere/k.cpp": lines}, clock_mhz=100.0
        )

    before = run(["one", "Add(a);", "three", "gone"], 2, 400.0, 50.0)
    after = run(["one", "new", "Add(a);", "three"], 3, 300.0, 0.0)
    sources = compare_reports(before, after).sources
    assert [(s.text, s.before_line, s.after_line) for s in sources] == [
        ("one", 1, 1),
        ("new", None, 2),
        ("Add(a);", 2, 3),
        ("three", 3, 4),
        ("gone", 4, None),
    ]
    add = sources[2]
    assert (add.before_us, add.after_us) == (4.0, 3.0)
    assert (add.before_wait_us, add.after_wait_us) == (0.5, 0.0)


def test_reports_without_source_have_no_lines_to_match() -> None:
    assert compare_reports(report(), report()).sources == ()


def test_times_of_two_chips_do_not_compare() -> None:
    with pytest.raises(UsageError, match="different chips"):
        compare_reports(report(), report(chip="Ascend910B3"))


@pytest.mark.parametrize(
    ("text", "message"), [("{", "not JSON"), ("[]", "not a report"), ("{}", "not a report")]
)
def test_a_file_that_is_no_report_is_refused(tmp_path: Path, text: str, message: str) -> None:
    path = tmp_path / "a.json"
    path.write_text(text)
    with pytest.raises(UsageError, match=message):
        read_report(path)


def test_a_report_is_read_as_it_was_written(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    path.write_text(json.dumps(report()))
    assert read_report(path) == report()


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.json: cannot be read"):
        read_report(tmp_path / "none.json")
