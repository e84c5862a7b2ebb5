"""Figures of `--executor`: what the engine costs, what lost workers cost, what a large sweep takes.

python benchmarks/scale.py              # all: some minutes
python benchmarks/scale.py --no-dask    # without a cluster of this machine
"""

from __future__ import annotations

import argparse
import json
import os
import pickle
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from table import print_figure, print_head

from opkit.executor import Crew, HereExecutor, LocalExecutor, Work

Case = tuple[str, int]


def begin(setup: str, folders: Mapping[str, Path]) -> Callable[[Case], dict[str, float]]:
    """Return what runs a case: a known amount of work, an end of the worker, or a stop of it."""

    def run(case: Case) -> dict[str, float]:
        kind, number = case
        marker = Path(setup) / f"{kind}-{number}"
        if kind in ("killed", "hung") and not marker.exists():
            marker.touch()
            os.kill(os.getpid(), signal.SIGKILL if kind == "killed" else signal.SIGSTOP)
        if kind == "sleep":
            time.sleep(0.001)
        return {"case": number, "error": (number * 7919) % 1000 / 1000}

    return run


def main(arguments: Sequence[str] | None = None) -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--no-dask", action="store_true")
    given = parser.parse_args(arguments)
    # Workers import this file by its name.
    sys.path.insert(0, str(Path(__file__).parent))
    import scale

    print_head()
    with tempfile.TemporaryDirectory(prefix="opkit-scale-") as name:
        _engine(scale.begin, name)
        _losses("4 processes", scale.begin, Path(name) / "local", lambda work: _local(work))
        if not given.no_dask:
            _cluster(scale.begin, Path(name))


def _engine(start: Callable[..., Any], folder: str) -> None:
    """What 10,000 cases of 1 ms cost beside the same in a loop."""
    work = Work(start, folder)
    ratios = []
    cases = [("sleep", number) for number in range(1000)]
    with LocalExecutor(1).open(work) as crew:
        crew.run([("nothing", 0)])
        # In turns, a tenth at a time: the machine is as busy with the one as with the other.
        for _ in range(10):
            ratios.append(_seconds(lambda: crew.run(cases)) / _seconds(_alone))
    spent = [_processor_seconds(work, count) for count in (1, 10_001)]
    cost_us = 1e6 * (spent[1] - spent[0]) / 10_000
    print_figure(
        "cost of the engine, 10,000 cases of 1 ms, one process",
        f"{cost_us / 10:.1f} % in processor time, {cost_us:.0f} us a case;"
        f" {100 * (statistics.median(ratios) - 1):.1f} % in time beside a loop",
        "<= 5 %",
    )


def _processor_seconds(work: Work, count: int) -> float:
    """Return what both sides take for cases that do nothing, their starts included."""
    before = os.times()
    with LocalExecutor(1).open(work) as crew:
        crew.run([("nothing", number) for number in range(count)])
    after = os.times()
    return sum(after[:4]) - sum(before[:4])


def _alone() -> None:
    for _ in range(1000):
        time.sleep(0.001)


def _seconds(work: Callable[[], object]) -> float:
    begin_s = time.monotonic()
    work()
    return time.monotonic() - begin_s


def _cases() -> list[Case]:
    cases: list[Case] = [("sleep", number) for number in range(2000)]
    cases[700] = ("killed", 700)
    cases[1300] = ("hung", 1300)
    return cases


def _losses(
    name: str,
    start: Callable[..., Any],
    folder: Path,
    open_crew: Callable[[Work], Crew],
    middle: Callable[[], None] = lambda: None,
) -> None:
    plain = folder / "plain"
    plain.mkdir(parents=True)
    for number in ("killed-700", "hung-1300"):
        (plain / number).touch()
    with HereExecutor().open(Work(start, str(plain))) as crew:
        wanted = json.dumps(crew.run(_cases()))
    seen: list[int] = []
    results: dict[int, Any] = {}
    begin_s = time.monotonic()
    with open_crew(Work(start, str(folder), seconds=5.0)) as crew:
        for index, result in crew.stream(_cases()):
            seen.append(index)
            results[index] = result
            if len(seen) == 300:
                middle()
    seconds = time.monotonic() - begin_s
    same = json.dumps([results[index] for index in sorted(results)]) == wanted
    print_figure(
        f"{name}, one killed and one hung in the middle of 2,000 cases",
        f"{'the same bytes' if same else 'OTHER BYTES'} as one process,"
        f" {2000 - len(set(seen))} lost, {len(seen) - len(set(seen))} twice, {seconds:.1f} s",
        "the same, none, none",
    )


def _local(work: Work) -> Crew:
    return LocalExecutor(4).open(work)


def _cluster(start: Callable[..., Any], folder: Path) -> None:
    from distributed import Client, LocalCluster

    os.environ["XDG_CACHE_HOME"] = str(folder / "cache")
    options = {"host": "127.0.0.1", "dashboard_address": None, "processes": True}
    with LocalCluster(n_workers=4, threads_per_worker=1, **options) as cluster:
        address = cluster.scheduler_address
        with Client(address, set_as_default=False) as client:
            workers = list(client.run(os.getpid).values())

        def trouble() -> None:
            # Dask's own workers this time, not the processes in which cases run.
            os.kill(workers[0], signal.SIGKILL)
            os.kill(workers[1], signal.SIGSTOP)

        def open_crew(work: Work) -> Crew:
            from opkit.executor.dask_cluster import DaskExecutor

            return DaskExecutor(address, patience_seconds=10.0).open(work)

        try:
            _losses("Dask, 4 workers, two more lost", start, folder / "dask", open_crew, trouble)
        finally:
            os.kill(workers[1], signal.SIGKILL)
        result = {"case": 1, "error": 0.5}
        chunk = [(number, ("sleep", number)) for number in range(1000)]
        _scheduler(address, len(pickle.dumps(result)), len(pickle.dumps(chunk)) / 1000)


def _scheduler(address: str, result_bytes: int, case_bytes: float) -> None:
    """What a task costs Dask, from which docs/scale.md plans."""
    from distributed import Client

    with Client(address, set_as_default=False) as client:
        begin_s = time.monotonic()
        client.gather(client.map(abs, range(2000), pure=False))
        per_task = (time.monotonic() - begin_s) / 2000
    print_figure(
        "a task of Dask that does nothing",
        f"{1e3 * per_task:.2f} ms; a case {case_bytes:.0f} bytes, a result {result_bytes} bytes",
        "for docs/scale.md",
    )


if __name__ == "__main__":
    main()
