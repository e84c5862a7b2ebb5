"""The texts that name an executor."""

from __future__ import annotations

import pytest

from opkit.errors import SetupError, UsageError
from opkit.executor import open_executor


def test_local_has_as_many_workers_as_it_says() -> None:
    assert open_executor("local:3").workers == 3
    assert open_executor("local").workers >= 1


@pytest.mark.parametrize(
    "text",
    ["", "locals", "local:", "local:0", "local:x", "dask", "dask:", "dask:tcp://host", "ray:x"],
)
def test_what_is_no_executor_is_told(text: str) -> None:
    with pytest.raises(UsageError, match="no executor"):
        open_executor(text)


def test_a_scheduler_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("distributed")
    monkeypatch.setattr("opkit.executor.dask_cluster._CONNECT_SECONDS", 0.5)
    with pytest.raises(SetupError, match="no Dask scheduler answers"):
        open_executor("dask:tcp://127.0.0.1:9")
