"""The verdict: what answers of a candidate's process come to."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from opkit.errors import OpkitError, SetupError
from opkit.judging import Judgement, judgement_object, judgement_text
from opkit.judging.candidate import Built
from opkit.judging.run import against_build
from opkit.judging.worker import LaunchRequest

from .conftest import honest, lost, right, sent

Judge = Callable[..., Judgement]


def ids(judgement: Judgement) -> list[str]:
    return sorted({each.id for each in judgement.findings})


def test_a_right_candidate_is_accepted_with_time_and_bound(judged: Judge) -> None:
    judgement = judged(honest)
    assert judgement.is_accepted
    assert judgement.timed is not None
    assert judgement.timed.time_us == 5.0
    # 2049 floats in and 2049 out at 1.6 TB/s would be 0.01 us.
    assert 0.001 < judgement.timed.bound_us < 0.1  # type: ignore[operator]
    assert judgement.score is None
    assert "accepted" in judgement_text(judgement)


def test_a_base_gives_a_score_by_the_formula(judged: Judge) -> None:
    judgement = judged(honest, base_us=5.0)
    # As fast as the base: h is 0.5, and the candidate has what the library has.
    assert judgement.score == pytest.approx(75.0)


def test_the_same_answers_give_the_same_bytes_without_times_and_paths(
    judged: Judge, tmp_path: Path
) -> None:
    first, second = (json.dumps(judgement_object(judged(honest))) for _ in range(2))
    assert first == second
    assert "seconds" not in first
    assert str(tmp_path) not in first


def test_a_wrong_result_is_named_with_its_case(judged: Judge) -> None:
    def answer(request: LaunchRequest, number: int) -> Any:
        return sent(right(request) + 1)

    judgement = judged(answer)
    assert not judgement.is_accepted
    assert judgement.is_compiled
    assert ids(judgement) == ["WRONG"]
    assert judgement.worst is not None
    assert not judgement.worst.is_right
    assert judgement.findings[0].cases


def test_results_that_were_kept_are_named(judged: Judge) -> None:
    kept: dict[str, Any] = {}

    def answer(request: LaunchRequest, number: int) -> Any:
        # Every case once with its own inputs is right; a launch again gives what was kept.
        return sent(kept.setdefault(request.case.name, right(request)))

    assert ids(judged(answer)) == ["CACHED", "WRONG"]


def test_what_only_the_first_launch_computes_is_state(judged: Judge) -> None:
    def answer(request: LaunchRequest, number: int) -> Any:
        return sent(right(request) if number == 1 else np.zeros_like(right(request)))

    assert ids(judged(answer)) == ["STATE", "WRONG"]


def test_right_bytes_that_no_instruction_wrote_are_refused(judged: Judge) -> None:
    judgement = judged(lambda request, number: sent(right(request), written_bytes=4))
    assert ids(judgement) == ["NOT-BY-INSTRUCTIONS"]
    assert judgement.is_right
    assert not judgement.is_accepted


def test_right_results_without_a_launch_are_refused(judged: Judge) -> None:
    assert ids(judged(lambda request, number: sent(right(request), launches=0))) == ["NO-LAUNCH"]


@pytest.mark.parametrize(
    ("reason", "id"),
    [
        ("exit code 0", "ENDED"),
        ("signal 11", "ENDED"),
        ("signal 31", "SYSTEM-CALL"),
        ("the limit of 70 s", "TIME-LIMIT"),
        ("writing into opkit's own pipe", "GARBLED"),
    ],
)
def test_a_process_that_ends_is_named_by_how(judged: Judge, reason: str, id: str) -> None:
    assert ids(judged(lambda request, number: lost(reason))) == [id]


@pytest.mark.parametrize("answer", [7, {"outputs": [1]}, {"outputs": "all"}, {}])
def test_nonsense_from_the_process_is_no_result(judged: Judge, answer: Any) -> None:
    judgement = judged(lambda request, number: answer)
    assert not judgement.is_accepted
    assert judgement.findings


def test_a_wrong_shape_is_named(judged: Judge) -> None:
    assert ids(judged(lambda request, number: sent(right(request)[..., :-1]))) == ["SHAPE"]


def test_a_fault_of_the_kernel_keeps_its_name_and_line(judged: Judge) -> None:
    fault = {
        "error": "it writes through a raw pointer [MEM-RAW]",
        "kind": "KernelFault",
        "category": "RawWrite",
        "id": "MEM-RAW",
        "file": "op_kernel/judged.cpp",
        "line": 12,
    }
    (found,) = judged(lambda request, number: fault).findings
    assert (found.id, found.file, found.line) == ("MEM-RAW", "op_kernel/judged.cpp", 12)


def test_findings_of_the_checks_refuse_a_right_candidate(judged: Judge) -> None:
    race = {"id": "RACE-RAW", "message": "two accesses", "location": None}

    def answer(request: LaunchRequest, number: int) -> Any:
        if request.checked:
            return {"findings": [json.dumps(race)], "gaps": []}
        return honest(request, number)

    judgement = judged(answer)
    assert judgement.is_right
    assert ids(judgement) == ["RACE-RAW"]


def test_a_task_of_large_cases_has_its_smallest_checked(
    judged: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    # None was: a kernel with a race was accepted.
    monkeypatch.setattr("opkit.judging.run._CHECKED_ELEMENTS", 0)
    sizes: dict[bool, set[int]] = {True: set(), False: set()}

    def answer(request: LaunchRequest, number: int) -> Any:
        elements = sum(int(np.prod(shape)) for shape in request.case.shapes)
        sizes[bool(request.checked)].add(elements)
        return honest(request, number)

    assert judged(answer).is_accepted
    assert len(sizes[False]) > 1
    assert sizes[True] == {min(sizes[False])}


def test_no_two_launches_have_the_same_inputs(judged: Judge) -> None:
    # What is written down for one candidate, or kept from an earlier launch, is of other inputs.
    seeds: list[tuple[str, int]] = []

    def answer(request: LaunchRequest, number: int) -> Any:
        if not request.checked:
            seeds.append((request.case.name, request.case.seed))
        return honest(request, number)

    judged(answer)
    assert len(seeds) == len(set(seeds))
    assert len(seeds) > len({name for name, _ in seeds})


def _error(kind: str, code: int, **more: Any) -> dict[str, Any]:
    return {"error": "kernel ABI 9; this opkit has ABI 8", "kind": kind, "code": code, **more}


def test_what_the_machine_lacks_is_no_fault_of_the_candidate(judged: Judge) -> None:
    # It was a finding, REFUSED, and the command ended by 1.
    with pytest.raises(SetupError, match="ABI 8"):
        judged(lambda request, number: _error("SetupError", 3))


@pytest.mark.parametrize(
    "answer",
    [
        _error("KernelFault", 1, category="Unimplemented", id="Unimplemented"),
        _error("AttributeError", 70),
    ],
)
def test_a_launch_that_opkit_cannot_finish_is_not_judged(
    judged: Judge, answer: dict[str, Any]
) -> None:
    # It was a finding against the candidate.
    judgement = judged(lambda request, number: answer)
    assert (judgement.verdict, judgement.findings) == ("not judged", ())
    assert judgement.gaps[0].cases
    assert not judgement.is_right


def test_a_check_that_does_not_come_to_its_end_is_not_judged(judged: Judge) -> None:
    def answer(request: LaunchRequest, number: int) -> Any:
        if request.checked:
            return {"findings": [], "gaps": ["Unspecified: the documents are silent"]}
        return honest(request, number)

    # What the checks could not see was left out, and the candidate accepted.
    judgement = judged(answer, base_us=5.0)
    assert (judgement.verdict, judgement.is_accepted, judgement.score) == (
        "not judged",
        False,
        None,
    )
    assert judgement_object(judgement)["gaps"]
    assert "documents are silent" in judgement_text(judgement)


def test_memory_beyond_the_limit_is_named(judged: Judge) -> None:
    judgement = judged(lambda request, number: _error("MemoryError", 70))
    assert ids(judgement) == ["MEMORY-LIMIT"]


def test_host_code_that_ends_the_build_is_the_candidates_fault(tmp_path: Path) -> None:
    # A host constructor that exits leaves half a description: it was taken for opkit's own error.
    def against(**failure: Any) -> Any:
        built = Built(tmp_path, tmp_path, "0", failure=failure)
        return against_build(built, task=None)  # type: ignore[arg-type]

    (found,) = against(kind="JSONDecodeError", error="Expecting value", code=70)
    assert found.id == "BUILD"
    assert "the build ended by JSONDecodeError: Expecting value" in found.message
    with pytest.raises(OpkitError, match="opkit's own: it has come to an end"):
        against(kind="OpkitError", error="it has come to an end", code=70)
    with pytest.raises(SetupError):
        against(kind="SetupError", error="there is no compiler", code=3)
