"""Many candidates against one task, on any executor."""

from __future__ import annotations

import contextlib
import tempfile
import weakref
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from opkit.errors import OpkitError
from opkit.executor import Executor, Lost, Work, folder_of
from opkit.judging.candidate import candidate_files
from opkit.judging.judgement import Judgement
from opkit.judging.run import judge_candidate
from opkit.judging.sandbox import require_sandbox
from opkit.judging.task import Question, open_task

__all__ = ["judge_all"]


@dataclass(frozen=True)
class _Candidate:
    """A candidate as it travels: what its files hold."""

    files: tuple[tuple[str, bytes], ...]


@dataclass(frozen=True)
class _Failed:
    """A candidate without a judgement; an executor raises bare errors, and ends the others."""

    error: OpkitError


def judge_all(
    candidates: Sequence[Path], question: Question, executor: Executor
) -> Iterator[tuple[int, Judgement | OpkitError]]:
    """Yield each candidate's number and judgement as they come; an error where there is none.

    Each worker opens the task once. A candidate that ends its worker is one error, no more: what
    it is made of runs in sandboxes of the worker's.

    Raises:
        UsageError: a candidate is none, or the task is wrong.
        SetupError: something is missing on this machine.
    """
    if question.sandboxed:
        require_sandbox()
    place = question.task.absolute()
    folder = place if place.is_dir() else place.parent
    work = Work(
        _begin,
        replace(question, task=Path(place.name if place.is_file() else "")),
        {"task": folder_of(folder, left_out=("build", ".git", "__pycache__"))},
    )
    cases = [_Candidate(tuple(candidate_files(path))) for path in candidates]
    with executor.open(work) as crew:
        for index, result in crew.stream(cases):
            if isinstance(result, Lost):
                yield index, OpkitError(f"the judge itself has ended: {result}")
            else:
                yield index, result.error if isinstance(result, _Failed) else result


def _begin(
    question: Question, folders: Mapping[str, Path]
) -> Callable[[_Candidate], Judgement | _Failed]:
    here = replace(question, task=folders["task"] / question.task)
    stack = contextlib.ExitStack()
    task = stack.enter_context(open_task(here))

    def run(candidate: _Candidate) -> Judgement | _Failed:
        with tempfile.TemporaryDirectory(prefix="opkit-judge-") as folder:
            for name, data in candidate.files:
                path = Path(folder, name)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            try:
                return judge_candidate(Path(folder), task, here)
            except OpkitError as error:
                return _Failed(error)

    # The golden's process ends with what runs candidates.
    weakref.finalize(run, stack.close)
    return run
