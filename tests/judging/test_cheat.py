"""A cheating kernel, compiled and launched: what the whole way of the judge calls it."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from opkit.judging import Limits, Question, judge, judgement_object, sandbox_fault

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def candidates() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("judge_candidates")


@pytest.mark.slow
def test_a_kernel_that_writes_to_its_input_is_refused_by_name(
    candidates: ModuleType, tmp_path: Path
) -> None:
    # Its results are right, and it was accepted: small tensors are launched as copies, in which
    # alone the change shows.
    folder = candidates.plain_project(tmp_path)
    _, head, body = candidates.cheat("changes its input")
    (folder / "op_kernel" / "cheat.cpp").write_text(candidates.cheat_kernel(head, body))
    question = Question(
        tmp_path / "cheat.json",
        expression="float32-1-normal or float32-2x3x17-normal",
        limits=Limits(seconds=120.0),
        sandboxed=not sandbox_fault(),
    )
    document = judgement_object(judge(folder, question))
    assert document["verdict"] == "refused"
    assert document["right"] is True
    (found,) = document["findings"]  # type: ignore[misc]
    assert found["id"] == "INPUT-WRITTEN"
