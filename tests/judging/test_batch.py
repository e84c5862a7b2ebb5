"""Several candidates: what is said of each, wherever they are judged."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from opkit.cli import group
from opkit.cli.console import run_guarded
from opkit.errors import OpkitError, SetupError
from opkit.executor import Executor, open_executor
from opkit.judging import Judgement, Question, batch, judge_all

from .conftest import PROTOTYPE


def _judgement(candidate: Path, task: Any, question: Question) -> Judgement:
    if (candidate / "machine").exists():
        raise SetupError("no compiler")
    return Judgement("judged", "Judged", "Ascend910B2", "ecosystem", False, (), (), 0)


@pytest.fixture
def folders(tmp_path: Path, task: Path, monkeypatch: pytest.MonkeyPatch) -> list[Path]:
    monkeypatch.setattr(batch, "judge_candidate", _judgement)
    monkeypatch.setattr(batch, "require_sandbox", lambda: None)
    for name, file in (("a", "kernel.cpp"), ("b", "machine"), ("c", "kernel.cpp")):
        (tmp_path / name).mkdir()
        (tmp_path / name / file).write_text(name)
    return [tmp_path / name for name in "abc"]


def test_an_error_over_one_candidate_leaves_the_others(folders: list[Path], task: Path) -> None:
    # It ended the whole batch.
    executor: Executor = open_executor("here")
    found = dict(judge_all(folders, Question(task, sandboxed=False), executor))
    assert isinstance(found[1], OpkitError)
    assert [isinstance(found[index], Judgement) for index in range(3)] == [True, False, True]


def test_a_file_lists_folders_and_the_worst_error_is_the_exit_code(
    folders: list[Path], task: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    listed = tmp_path / "candidates.txt"
    listed.write_text("# candidates\na\n\nb\nc\n")
    words = ["judge", "--batch", str(listed), "--task", str(task), "--executor", "here", "--json"]
    assert run_guarded(group, words) == 3
    documents = json.loads(capsys.readouterr().out)
    assert [each["candidate"] for each in documents] == ["a", "b", "c"]
    assert documents[1]["error"] == "no compiler"
    assert PROTOTYPE["op"] == documents[0]["operator"]
    listed.write_text("a\nc\n")
    assert run_guarded(group, words) == 1


@pytest.mark.slow
@pytest.mark.parametrize("executor", ["local:2", "dask"])
def test_workers_of_every_kind_build_what_travels(
    executor: str, task: Path, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    # A candidate that does not compile, so that no kernel is: its error comes from the worker.
    folder = tmp_path / "broken"
    (folder / "op_kernel").mkdir(parents=True)
    (folder / "op_kernel" / "judged.cpp").write_text("this is no C++;")
    if executor == "dask":
        distributed = pytest.importorskip("distributed", reason="needs opkit[dask]")
        cluster = distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, processes=True, dashboard_address=None
        )
        request.addfinalizer(cluster.close)
        executor = f"dask:{cluster.scheduler_address}"
    question = Question(task, expression="17", sandboxed=False)
    ((index, judgement),) = judge_all([folder], question, open_executor(executor))
    assert index == 0
    assert isinstance(judgement, Judgement)
    assert [each.id for each in judgement.findings] == ["BUILD"]
