"""`opkit judge`: candidates, whoever wrote them, against a task."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

import click

from opkit.cli.console import Console, common_options
from opkit.cli.options import (
    FiniteRange,
    chip_option,
    chosen_executor,
    executor_option,
    expression_option,
    jobs_option,
    seed_option,
)
from opkit.errors import OpkitError, UsageError
from opkit.files import read_lines

if TYPE_CHECKING:
    from opkit.executor import Executor
    from opkit.judging import Judgement, Question

__all__ = ["command"]


@click.command("judge", short_help="Judge candidates that nobody trusts against a task.")
@click.argument("candidates", nargs=-1, type=click.Path(path_type=Path), metavar="CANDIDATE...")
@click.option(
    "--task",
    required=True,
    type=click.Path(path_type=Path),
    metavar="TASK",
    help="A prototype JSON with formulas, a project, a folder with a prototype and golden.py, or"
    " one with proto.yaml, golden.py and cases.yaml.",
)
@click.option("--op", metavar="NAME", help="The task's operator; its first by default.")
@expression_option("cases", "float16 and not 1000003")
@click.option(
    "--elements",
    type=click.IntRange(min=1),
    default=1 << 20,
    show_default=True,
    metavar="N",
    help="Leave out cases of which a tensor has more elements.",
)
@click.option(
    "--base",
    type=FiniteRange(0, min_open=True),
    metavar="US",
    help="A time of the largest case that is known to be reached, in microseconds: there is a score"
    " then. The public benchmark's tasks have their own.",
)
@click.option(
    "--standard", metavar="NAME", help="The precision standard; the task's own by default."
)
@seed_option()
@click.option(
    "--batch",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    metavar="FILE",
    help="Also the candidates of this file, one a line.",
)
@jobs_option("Candidates")
@executor_option("Candidates")
@click.option(
    "--memory",
    type=click.IntRange(min=256, max=1 << 24),
    default=4096,
    show_default=True,
    metavar="MIB",
    help="Memory that a process of a candidate or golden may use.",
)
@click.option(
    "--timeout",
    type=FiniteRange(0, min_open=True),
    default=60.0,
    show_default=True,
    metavar="SECONDS",
    help="Time of a build, and of each launch.",
)
@click.option(
    "--no-sandbox",
    is_flag=True,
    help="Run without bubblewrap: only code that you trust.",
)
@click.option("--seconds", is_flag=True, help="Put the time that judging took into the result.")
@chip_option("judge on")
@common_options
def command(
    *,
    candidates: tuple[Path, ...],
    task: Path,
    op: str | None,
    expression: str | None,
    elements: int,
    base: float | None,
    standard: str | None,
    seed: int,
    batch: Path | None,
    jobs: int | None,
    executor: str | None,
    memory: int,
    timeout: float,
    no_sandbox: bool,
    seconds: bool,
    chip: str,
    console: Console,
) -> None:
    """Judge candidates that nobody trusts against a task.

    A CANDIDATE is the folder of an operator project, sources that launch their kernels, a program
    of Triton or PyPTO, or a wheel; docs/judge.md says what each exposes. It is built, launched on
    the task's cases, compared with the task's golden, timed by the model of the chip and checked.
    Candidate and golden run in sandboxes of their own, without network and other files, and the
    verdict is counted outside of both. Exits 1 unless every candidate is right and nothing speaks
    against it.

    Example: opkit judge gelu_custom --task gelu_custom.json --json
    """
    from opkit.judging import Limits, Question

    named = [*candidates, *_listed(batch)]
    if not named:
        raise UsageError("no candidate is named", help="give folders or files, or --batch FILE")
    question = Question(
        task=task,
        op=op,
        chip=chip,
        seed=seed,
        standard=standard,
        expression=expression,
        most_elements=elements,
        base_us=base,
        limits=Limits(memory, timeout),
        sandboxed=not no_sandbox,
    )
    if len(named) == 1 and batch is None and executor is None:
        code = _judge_one(named[0], question, seconds, console)
    else:
        code = _judge_many(named, question, chosen_executor(executor, jobs), seconds, console)
    if code:
        raise click.exceptions.Exit(code)


def _listed(batch: Path | None) -> list[Path]:
    """Return the folders that a file names, relative to where it lies."""
    if batch is None:
        return []
    lines = [line.strip() for line in read_lines(batch)]
    return [batch.parent / line for line in lines if line and line[0] != "#"]


def _judge_one(path: Path, question: Question, seconds: bool, console: Console) -> int:
    from opkit.judging import judge, judgement_object, judgement_text

    begin = time.perf_counter()
    judgement = judge(path, question)
    console.status(
        "judged", f"{path.name or path.absolute().name} in {time.perf_counter() - begin:.1f} s"
    )
    if console.json:
        console.emit_json(judgement_object(judgement, with_seconds=seconds))
    else:
        console.result(judgement_text(judgement))
    return 0 if judgement.is_accepted else 1


def _judge_many(
    paths: list[Path], question: Question, executor: Executor, seconds: bool, console: Console
) -> int:
    """Print each judgement; return the exit code, the worst error's where one has none."""
    from opkit.judging import judge_all, judgement_object, judgement_text

    names = _names(paths)
    found: dict[int, Judgement | OpkitError] = {}
    with console.progress("judge", len(paths)) as bar:
        for index, result in judge_all(paths, question, executor):
            found[index] = result
            bar.advance(names[index])
    documents, codes = [], []
    for index, name in sorted(enumerate(names), key=lambda pair: pair[1]):
        result = found[index]
        if isinstance(result, OpkitError):
            codes.append(result.exit_code)
            documents.append({"candidate": name, "accepted": False, "error": result.message})
            text = f"{name}: no judgement: {result}"
        else:
            document = judgement_object(result, with_seconds=seconds)
            documents.append({"candidate": name, **document})
            text = f"{name}: {judgement_text(result)}"
        if not console.json:
            console.result(text)
    if console.json:
        console.emit_json(documents)
    accepted = sum(bool(document["accepted"]) for document in documents)
    console.status("judged", f"{len(paths)} candidates, {accepted} accepted")
    return max(codes, default=0 if accepted == len(paths) else 1)


def _names(paths: list[Path]) -> list[str]:
    """Return a name for each candidate: its folder's, or what was written where two share it."""
    count = Counter(path.name for path in paths)
    return [path.name if count[path.name] == 1 and path.name else str(path) for path in paths]
