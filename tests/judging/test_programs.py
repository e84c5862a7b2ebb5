"""Candidates that are no projects, compiled and launched: what the whole way calls each."""

from __future__ import annotations

import importlib
import json
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

from opkit.errors import UsageError
from opkit.judging import Judgement, Limits, Question, judge, judgement_object, sandbox_fault

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"


@pytest.fixture(scope="module")
def programs() -> Iterator[ModuleType]:
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(BENCHMARKS))
        yield importlib.import_module("judge_programs")


def judged(folder: Path, candidate: Path) -> Judgement:
    task = folder / "cheat.json"
    tensors = {
        "input_desc": [{"name": "x", "type": ["float32"]}],
        "output_desc": [{"name": "y", "type": ["float32"], "formula": "x*2 + 1"}],
    }
    task.write_text(json.dumps([{"op": "Cheat", **tensors}]))
    question = Question(
        task,
        expression="float32-255-normal or float32-2x3x17-normal",
        limits=Limits(seconds=120.0),
        sandboxed=not sandbox_fault(),
    )
    return judge(candidate, question)


@pytest.mark.slow
@pytest.mark.parametrize("name", ["one launch.asc", "PyPTO.py", "Triton.py"])
def test_an_honest_candidate_of_each_kind_is_accepted(
    programs: ModuleType, tmp_path: Path, name: str
) -> None:
    if name == "Triton.py":
        pytest.importorskip("triton")
    path = tmp_path / f"candidate{Path(name).suffix}"
    path.write_text(programs.HONEST[name])
    first, second = (judgement_object(judged(tmp_path, path)) for _ in range(2))
    assert first["verdict"] == "accepted"
    assert first["kind"] == ("direct-launch" if path.suffix == ".asc" else "program")
    assert first["time"]["time_us"] > 0  # type: ignore[index]
    assert json.dumps(first) == json.dumps(second)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "ids"),
    [
        ("launch: the host computes behind it", {"WRONG"}),
        ("launch: exec by parts", {"FOREIGN-KERNEL"}),
        ("launch: raw pointers over a copy", {"MEM-RAW"}),
        ("launch: a thread", {"FOREIGN-HOST"}),
        ("launch: changes its input", {"INPUT-WRITTEN"}),
        ("launch: another parameter", {"INTERFACE"}),
        ("PyPTO: NumPy computes", {"HOST-COMPUTED"}),
        ("PyPTO: fork", {"SYSTEM-CALL"}),
        ("PyPTO: another formula", {"WRONG"}),
        ("Triton: a forged kernel", {"MEM-RAW"}),
        ("Triton: changes its input", {"INPUT-WRITTEN"}),
    ],
)
def test_a_cheat_is_named(programs: ModuleType, tmp_path: Path, name: str, ids: set[str]) -> None:
    if name.startswith("Triton"):
        pytest.importorskip("triton")
    text = programs.BAD[name]
    path = tmp_path / ("candidate.asc" if name.startswith("launch") else "candidate.py")
    path.write_text(text)
    judgement = judged(tmp_path, path)
    assert judgement.verdict == "refused"
    assert {each.id for each in judgement.findings} == ids


def test_a_wheel_of_another_compiler_is_no_candidate(programs: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="another compiler"):
        judged(tmp_path, programs.wheel(tmp_path, None))
