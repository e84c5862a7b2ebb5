"""A Dask cluster of this machine: the same results, with a worker killed in the middle."""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from opkit.executor import Lost, Work, folder_of

distributed = pytest.importorskip("distributed")

pytestmark = pytest.mark.slow

MakeWork = Callable[..., Work]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    before = os.environ.get("XDG_CACHE_HOME")
    os.environ["XDG_CACHE_HOME"] = str(tmp_path_factory.mktemp("cache"))
    # Workers are started with the paths that this process has.
    sys.path.insert(0, str(Path(__file__).parent))
    options = {"host": "127.0.0.1", "dashboard_address": None, "processes": True}
    try:
        with distributed.LocalCluster(n_workers=2, threads_per_worker=1, **options) as made:
            yield made
    finally:
        sys.path.remove(str(Path(__file__).parent))
        os.environ.pop("XDG_CACHE_HOME")
        if before is not None:
            os.environ["XDG_CACHE_HOME"] = before


def test_a_cluster_gives_what_one_process_gives_with_a_worker_killed(
    cluster: Any, make_work: MakeWork, tmp_path: Path
) -> None:
    from opkit.executor.dask_cluster import DaskExecutor

    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "text").write_text("it travelled")
    work = make_work(seconds=20.0, folders={"data": folder_of(tmp_path / "data")})
    cases = [("square", number) for number in range(400)]
    cases[10] = ("read", 10)
    cases[200] = ("crash once", 200)
    cases[300] = ("crash", 300)
    executor = DaskExecutor(cluster.scheduler_address, patience_seconds=20)
    assert executor.workers == 2
    with distributed.Client(cluster.scheduler_address, set_as_default=False) as client:
        victims = list(client.run(os.getpid).values())
    seen = {}
    with executor.open(work) as crew:
        for index, result in crew.stream(cases):
            assert index not in seen
            seen[index] = result
            if len(seen) == 5:
                threading.Thread(target=os.kill, args=(victims[0], signal.SIGKILL)).start()
    wanted: dict[int, object] = {number: number * number for number in range(400)}
    wanted |= {10: "it travelled", 300: Lost("signal 11")}
    assert seen == wanted


def test_what_a_case_raises_on_a_cluster_is_raised_here(cluster: Any, make_work: MakeWork) -> None:
    from opkit.errors import OpkitError
    from opkit.executor.dask_cluster import DaskExecutor

    crew = DaskExecutor(cluster.scheduler_address).open(make_work())
    with crew, pytest.raises(OpkitError, match="ValueError: case 3"):
        crew.run([("raise", 3)])
