"""A tuning: the best that is verified and clean, never slower than the start, lost by nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from opkit.errors import OperatorError, UsageError
from opkit.executor import HereExecutor
from opkit.tuning import Budget, Subject, TuningReport, report_object, report_text, tune

MakeSubject = Callable[..., Subject]


def bowl(tiles: int, blocks: int) -> float:
    return 10.0 + (tiles - 3) ** 2 + 0.5 * (blocks - 5) ** 2


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., TuningReport]:
    def tune_it(subject: Subject, **options: Any) -> TuningReport:
        options.setdefault("state", tmp_path / "state.jsonl")
        return tune(subject, executor=HereExecutor(), **options)

    return tune_it


def test_a_small_space_is_searched_in_full(make_subject: MakeSubject, run: Any) -> None:
    report = run(make_subject(bowl))
    assert report.best.candidate == (3, 5)
    assert report.searched_all and len(report.trials) == 64
    assert report.ratio == pytest.approx(10.0 / bowl(0, 0))


def test_the_report_says_which_pipe_is_relieved_and_by_how_much(
    make_subject: MakeSubject, run: Any
) -> None:
    report = run(make_subject(bowl))
    assert report.relief is not None and report.relief.pipe == "MTE2"
    assert report.relief.saved_us == pytest.approx((bowl(0, 0) - 10.0) / 2)
    assert "relieves MTE2 by 10.75 us" in report_text(report)


def test_the_fastest_that_is_wrong_or_unclean_does_not_count(
    make_subject: MakeSubject, run: Any
) -> None:
    subject = make_subject(
        bowl,
        wrong=lambda tiles, blocks: (tiles, blocks) == (3, 5),
        unclean=lambda tiles, blocks: tiles == 3 and blocks != 3,
    )
    report = run(subject)
    assert report.best.candidate == (2, 5)
    assert report.best.measurement.findings == ()
    assert [trial.candidate for trial in report.wrong] == [(3, 5)]
    assert report.unclean and all(trial.candidate[0] == 3 for trial in report.unclean)


def test_where_nothing_is_faster_the_start_stays(make_subject: MakeSubject, run: Any) -> None:
    report = run(make_subject(lambda tiles, blocks: 5.0))
    assert report.best.candidate == report.start.candidate == (0, 0)
    assert report.ratio == 1.0 and report.relief is None


def test_a_start_that_is_wrong_or_unclean_is_not_tuned(make_subject: MakeSubject, run: Any) -> None:
    with pytest.raises(OperatorError, match="does not count: misses the standard"):
        run(make_subject(bowl, wrong=lambda tiles, blocks: (tiles, blocks) == (0, 0)))


def test_a_start_with_findings_is_told(make_subject: MakeSubject, run: Any) -> None:
    with pytest.raises(OperatorError, match="not clean: RACE"):
        run(make_subject(bowl, unclean=lambda *candidate: True))


def test_a_run_that_was_ended_goes_on_and_reports_as_if_it_had_not_been(
    make_subject: MakeSubject, tmp_path: Path, run: Any
) -> None:
    whole = run(make_subject(bowl), state=tmp_path / "whole.jsonl")
    state = tmp_path / "state.jsonl"
    lines = (tmp_path / "whole.jsonl").read_bytes().splitlines(keepends=True)
    # Killed in the middle of a line.
    state.write_bytes(b"".join(lines[:31]) + lines[31][:20])
    ran: list[Any] = []
    again = run(make_subject(bowl, ran=ran), state=state)
    assert report_object(again) == report_object(whole)
    assert len(ran) == len(lines) - 31
    ran.clear()
    run(make_subject(bowl, ran=ran), state=state)
    assert ran == []


def test_a_damaged_state_is_told_with_its_line(
    make_subject: MakeSubject, tmp_path: Path, run: Any
) -> None:
    run(make_subject(bowl))
    state = tmp_path / "state.jsonl"
    lines = state.read_bytes().splitlines(keepends=True)
    lines[4] = b"rubbish\n"
    state.write_bytes(b"".join(lines))
    with pytest.raises(UsageError, match=r"state\.jsonl:5: is damaged"):
        run(make_subject(bowl))


def test_another_tunings_state_is_refused(
    make_subject: MakeSubject, tmp_path: Path, run: Any
) -> None:
    run(make_subject(bowl))
    other = make_subject(bowl)
    with pytest.raises(UsageError, match="state of another tuning: scale on Ascend910B2 abc"):
        run(Subject("other", other.chip, other.space, other.work, other.identity))


def test_a_space_without_a_choice_is_told(make_subject: MakeSubject, run: Any) -> None:
    with pytest.raises(UsageError, match="nothing to choose"):
        run(make_subject(bowl, values=1))


def test_optuna_finds_the_best_of_a_large_space_at_a_tenth_of_its_candidates(
    make_subject: MakeSubject, run: Any
) -> None:
    pytest.importorskip("optuna")

    def rough(tiles: int, blocks: int) -> float:
        return 100 + (tiles - 17) ** 2 * 0.1 + abs(blocks - 9) + 3 * ((tiles * blocks) % 3 == 1)

    report = run(make_subject(rough, values=32), budget=Budget(candidates=102))
    assert not report.searched_all and len(report.trials) == 102
    assert report.best.measurement.task_us <= 1.02 * 100
    assert len({trial.candidate for trial in report.trials}) == 102


def test_the_same_seed_asks_for_the_same_candidates(
    make_subject: MakeSubject, tmp_path: Path, run: Any
) -> None:
    pytest.importorskip("optuna")
    budget = Budget(candidates=40)
    one, two = (
        run(make_subject(bowl, values=20), budget=budget, state=tmp_path / name, seed=3)
        for name in ("one", "two")
    )
    assert report_object(one) == report_object(two)
