"""A task of formulas, and candidates whose launches Python answers: no kernel is compiled."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit.executor import Lost, plain_array
from opkit.judging import Judgement, Question, judge, run
from opkit.judging.candidate import Built
from opkit.judging.worker import LaunchRequest
from opkit.testing import make_inputs

PROTOTYPE = {
    "op": "Judged",
    "input_desc": [{"name": "x", "type": ["float32"]}],
    "output_desc": [{"name": "y", "type": ["float32"], "formula": "x*2 + 1"}],
}
Answer = Callable[[LaunchRequest, int], Any]
"""From a request and its number to what the candidate's process sends."""


def sent(*outputs: Any, written_bytes: int | None = None, launches: int = 1) -> dict[str, Any]:
    """Return what a candidate's process sends of a launch."""
    size = sum(output.nbytes for output in outputs)
    launch = {
        "kernel": "judged",
        "time_us": 5.0,
        "band_percent": 20.0,
        "written_bytes": size if written_bytes is None else written_bytes,
    }
    return {
        "outputs": [plain_array(output) for output in outputs],
        "launches": [launch] * launches,
    }


def right(request: LaunchRequest) -> Any:
    """Return the right output of a case."""
    return (make_inputs(request.case)[0] * 2 + 1).astype(np.float32)  # type: ignore[operator, union-attr]


def honest(request: LaunchRequest, number: int) -> Any:
    """Answer as a right kernel."""
    return {"findings": [], "gaps": []} if request.checked else sent(right(request))


@pytest.fixture
def task(tmp_path: Path) -> Path:
    path = tmp_path / "judged.json"
    path.write_text(json.dumps([PROTOTYPE]))
    return path


@pytest.fixture
def judged(
    task: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Callable[[Answer], Judgement]:
    """Return what judges a candidate whose process answers as it is told."""

    def judge_answers(answer: Answer, **asked: Any) -> Judgement:
        class Crew:
            def __init__(self) -> None:
                self.count = 0

            def run(self, requests: Sequence[LaunchRequest]) -> list[Any]:
                (request,) = requests
                self.count += 1
                return [answer(request, self.count)]

            def __enter__(self) -> Crew:
                return self

            def __exit__(self, *error: object) -> None:
                pass

        class Executor:
            def __init__(self, workers: int, *, cage: object = None) -> None:
                pass

            def open(self, work: object) -> Crew:
                return Crew()

        artifact = tmp_path / "artifact"
        artifact.mkdir(exist_ok=True)
        built = Built(tmp_path / "sources", artifact, "digest", "Judged", {}, 1, 1)
        monkeypatch.setattr(run, "LocalExecutor", Executor)
        monkeypatch.setattr(run, "built_candidate", lambda *a, **k: built)
        asked.setdefault("expression", "17 or 2x3 or 2049 or 255")
        return judge(tmp_path, Question(task, sandboxed=False, **asked))

    return judge_answers


def lost(reason: str) -> Lost:
    """Return what the executor gives of a process that has ended."""
    return Lost(reason, 1)
