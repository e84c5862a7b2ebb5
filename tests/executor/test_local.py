"""Processes of this machine: every case once, whatever becomes of the processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from opkit.errors import OperatorError, OpkitError, SetupError
from opkit.executor import NOT_OURS, Executor, HereExecutor, LocalExecutor, Lost, Work

FORGED = (
    *("a pickle that runs something", "a pickle", "no value", "no results", "no pairs"),
    *("no numbers", "another type", "more than a value", "no error of opkit's"),
    "a beginning that failed without a word",
)

MakeWork = Callable[..., Work]


def squares(count: int) -> list[int]:
    return [number * number for number in range(count)]


@pytest.mark.parametrize("workers", [1, 3])
def test_results_come_in_the_order_of_the_cases(make_work: MakeWork, workers: int) -> None:
    with LocalExecutor(workers).open(make_work()) as crew:
        assert crew.run([("square", number) for number in range(200)]) == squares(200)
        # The same processes again.
        assert crew.run([("square", 7)]) == [49]
        assert crew.run([]) == []


def test_this_process_gives_the_same(make_work: MakeWork) -> None:
    with HereExecutor().open(make_work()) as crew:
        assert crew.run([("square", number) for number in range(20)]) == squares(20)


def test_nothing_is_lost_or_counted_twice_with_a_killed_and_a_hung_worker(
    make_work: MakeWork,
) -> None:
    cases = [("square", number) for number in range(300)]
    cases[100] = ("crash once", 100)
    cases[200] = ("stop once", 200)
    seen = []
    with LocalExecutor(2).open(make_work(seconds=1.0)) as crew:
        for index, result in crew.stream(cases):
            seen.append(index)
            assert result == index * index
    assert sorted(seen) == list(range(300))


def test_a_case_that_ends_its_workers_is_given_up_after_three(make_work: MakeWork) -> None:
    cases = [("square", 0), ("crash", 1), ("square", 2)]
    with LocalExecutor(2).open(make_work()) as crew:
        found = crew.run(cases)
    assert found == [0, Lost("signal 11"), 4]
    assert "3 workers ended" in str(found[1])


def test_what_a_case_raises_comes_with_its_traceback(make_work: MakeWork) -> None:
    with LocalExecutor(1).open(make_work()) as crew:
        with pytest.raises(OpkitError, match="ValueError: case 5") as error:
            crew.run([("raise", 5)])
        assert "working_cases.py" in str(error.value)


def test_workers_that_never_begin_are_an_error_and_no_endless_loop(make_work: MakeWork) -> None:
    crew = LocalExecutor(1).open(make_work("begin_badly"))
    with crew, pytest.raises(OperatorError, match="exit code 3 before they run anything"):
        crew.run([("square", 1)])


def test_a_case_that_exits_is_lost_at_once_and_the_others_run(make_work: MakeWork) -> None:
    cases = [("square", 0), ("exit", 0), ("square", 2), ("exit", 7), ("square", 4)]
    with LocalExecutor(1).open(make_work()) as crew:
        found = crew.run(cases)
    assert found == [0, Lost("exit code 0", 1), 4, Lost("exit code 7", 1), 16]
    assert str(found[1]) == "the process that ran it ended by exit code 0 in the middle of it"


# What was no message ended the command, as a bug of opkit's.
def test_a_case_that_writes_to_the_pipe_is_lost_at_once(make_work: MakeWork) -> None:
    cases = [("square", 0), ("write", 0), ("square", 2)]
    with LocalExecutor(1).open(make_work()) as crew:
        found = crew.run(cases)
    assert found == [0, Lost(NOT_OURS, 1), 4]


# Whoever asked waited for the rest of the message, without an end.
def test_a_case_that_writes_a_length_and_no_message_is_lost_at_its_limit(
    make_work: MakeWork,
) -> None:
    with LocalExecutor(1).open(make_work(seconds=0.5)) as crew:
        (found,) = crew.run([("length", 0)])
    assert isinstance(found, Lost)
    assert "limit of 0.5 s" in found.reason


# Without a limit it was waited for without an end, with one until then.
def test_a_case_that_is_stopped_is_lost_at_once(make_work: MakeWork) -> None:
    with LocalExecutor(1).open(make_work()) as crew:
        assert crew.run([("stop", 0), ("square", 2)]) == [Lost("a signal that stops it"), 4]


# Results of over 1 GiB were "writing into opkit's own pipe".
def test_results_that_are_longer_than_a_message_come_in_parts(
    make_work: MakeWork,
) -> None:
    count = (1 << 28) + 3
    with LocalExecutor(1).open(make_work(most_bytes=1 << 29)) as crew:
        found, square = crew.run([("many", count), ("square", 3)])
    assert (len(found), square) == (count, 9)
    with LocalExecutor(1).open(make_work(most_bytes=1 << 28)) as crew:
        (found,) = crew.run([("many", count)])
    assert found == Lost(NOT_OURS, 1)


def test_a_case_that_kills_its_group_does_not_reach_who_asked(make_work: MakeWork) -> None:
    with LocalExecutor(1).open(make_work()) as crew:
        found = crew.run([("kill group", 0), ("square", 3)])
    assert found == [Lost("signal 9"), 9]


_INTERRUPTED = """
import sys
import working_cases
from opkit.executor import LocalExecutor, Work
with LocalExecutor(2).open(Work(working_cases.begin, sys.argv[1])) as crew:
    crew.run([("sleep", 0), ("sleep", 1)])
"""


def test_an_interrupted_run_lets_its_cases_end_what_they_have_begun(tmp_path: Path) -> None:
    here = str(Path(__file__).parent)
    process = subprocess.Popen(
        [sys.executable, "-c", _INTERRUPTED, str(tmp_path)],
        env={**os.environ, "PYTHONPATH": here},
        stderr=subprocess.PIPE,
    )
    while not (tmp_path / "sleep-0").exists() and process.poll() is None:
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    _, error = process.communicate(timeout=60)
    assert b"KeyboardInterrupt" in error
    assert (tmp_path / "left cleanly").exists()


# What a kernel's process had started went on when the command was over.
@pytest.mark.parametrize("executor", [LocalExecutor(1), HereExecutor()])
def test_what_runs_cases_is_closed_in_the_end(
    make_work: MakeWork, tmp_path: Path, executor: Executor
) -> None:
    with executor.open(make_work("begin_closing")) as crew:
        assert crew.run([("square", 3)]) == [3]
        assert not (tmp_path / "closed").exists()
    assert (tmp_path / "closed").exists()


def test_a_caged_worker_gives_plain_values_alone(make_work: MakeWork) -> None:
    # Reading a pickle of classes runs what it names: a worker that nobody trusts could send one.
    with LocalExecutor(1, cage=lambda argv: argv).open(make_work("begin_classes")) as crew:
        assert crew.run(["plain"]) == [{"numbers": [1, 2.5], "bytes": b"\0"}]
        with pytest.raises(OpkitError, match="PosixPath goes to no other process"):
            crew.run(["class"])


# Whoever asked read each of these as a pickle: it ran what the pickle named, or ended as a bug of
# opkit's, and a result of another type went on as if it were one.
@pytest.mark.parametrize("forged", FORGED)
def test_what_a_case_forges_is_no_result(make_work: MakeWork, tmp_path: Path, forged: str) -> None:
    work = make_work("begin_forging", answers=int, seconds=20.0)
    with LocalExecutor(1).open(work) as crew:
        assert crew.run(["seven..", forged, "two"]) == [7, Lost(NOT_OURS, 1), 3]
    assert not (tmp_path / "ran").exists()


def test_a_result_of_another_type_than_declared_is_none(make_work: MakeWork) -> None:
    with LocalExecutor(1).open(make_work("begin_forging", answers=int)) as crew:
        assert crew.run(["another type of its own", "two"]) == [Lost(NOT_OURS, 1), 3]


def test_an_error_of_a_case_and_of_the_beginning_come_from_workers_with_declared_answers(
    make_work: MakeWork,
) -> None:
    with LocalExecutor(1).open(make_work(answers=int)) as crew:
        assert crew.run([("square", 3)]) == [9]
        with pytest.raises(OpkitError, match="ValueError: case 5"):
            crew.run([("raise", 5)])
    crew = LocalExecutor(1).open(make_work("begin_failing", answers=int))
    with crew, pytest.raises(SetupError, match="no such library\n  help: make it"):
        crew.run([("square", 3)])
