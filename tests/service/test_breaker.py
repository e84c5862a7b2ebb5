"""The circuit breaker, by a clock of its own."""

from __future__ import annotations

import pytest

from opkit.service.serving.breaker import Breaker, BreakerEvent, BreakerState
from opkit.service.settings import BreakerSettings


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def make() -> tuple[Breaker, Clock, list[BreakerEvent]]:
    clock, events = Clock(), list[BreakerEvent]()
    settings = BreakerSettings(failures=3, window=5, open_seconds=10, longest_seconds=35, trials=2)
    return Breaker(settings, changed=events.append, clock=clock), clock, events


def test_it_opens_at_the_third_failure_of_the_window() -> None:
    breaker, _, events = make()
    for _ in range(2):
        breaker.fail("error", "a fault")
    assert breaker.is_closed
    breaker.fail("error", "a fault")
    assert breaker.state is BreakerState.OPEN
    assert breaker.reason == "error: a fault"
    assert [event.after for event in events] == [BreakerState.OPEN]


def test_failures_that_are_long_ago_do_not_count() -> None:
    breaker, _, _ = make()
    for _ in range(10):
        breaker.fail("error", "")
        for _ in range(4):
            breaker.succeed()
    assert breaker.is_closed


@pytest.mark.parametrize("kind", ["wrong", "crash", "hang", "memory"])
def test_one_wrong_answer_or_lost_process_opens_it(kind: str) -> None:
    breaker, _, _ = make()
    breaker.fail(kind, "once")
    assert not breaker.is_closed


def test_a_version_that_fails_soon_after_it_came_back_stays_out_longer() -> None:
    breaker, clock, _ = make()
    waits = []
    for pause in (0, 5, 5, 1000):
        clock.now += pause
        breaker.fail("crash", "SIGSEGV")
        waits.append(breaker.seconds_left)
        clock.now += breaker.seconds_left
        assert breaker.state is BreakerState.TRIAL
        breaker.try_succeed()
        breaker.try_succeed()
        assert breaker.is_closed
    assert waits == [10, 20, 35, 10]


def test_right_trials_in_a_row_close_it() -> None:
    breaker, clock, _ = make()
    breaker.fail("wrong", "missed")
    assert breaker.state is BreakerState.OPEN
    assert breaker.seconds_left == 10
    breaker.try_succeed()
    clock.now = 10
    assert breaker.state is BreakerState.TRIAL
    breaker.try_succeed()
    assert not breaker.is_closed
    breaker.try_succeed()
    assert breaker.is_closed
    assert breaker.reason == ""


def test_a_failed_trial_doubles_the_time_out_up_to_the_longest() -> None:
    breaker, clock, _ = make()
    breaker.fail("wrong", "missed")
    waits = []
    for _ in range(3):
        clock.now += breaker.seconds_left
        assert breaker.state is BreakerState.TRIAL
        breaker.try_fail("hang", "again")
        waits.append(breaker.seconds_left)
    assert waits == [20, 35, 35]
    assert breaker.times_opened == 4


def test_what_ends_late_does_not_count_once_it_is_open() -> None:
    breaker, _, events = make()
    breaker.fail("wrong", "first")
    breaker.fail("wrong", "second")
    assert breaker.reason == "wrong: first"
    assert len(events) == 1
