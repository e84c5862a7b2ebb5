"""What candidates are judged by: an operator, its golden, its cases, and times to compare with.

FOLDER with proto.yaml, golden.py, cases.yaml     a task of the public benchmark (torch)
FOLDER of a project of opkit's                    its prototypes, its golden.py, its cases
FOLDER with a prototype JSON and golden.py        the same without a project; cases.yaml beside
FILE.json                                         a prototype with formulas
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from opkit.chips import DEFAULT_CHIP
from opkit.errors import UsageError
from opkit.judging.benchmark import is_benchmark, read_benchmark
from opkit.judging.golden import golden_apart, golden_of_text
from opkit.judging.lockdown import Limits
from opkit.scaffold import golden_module
from opkit.schema import OpSpec, load
from opkit.selection import select_by_name
from opkit.testing import (
    Case,
    Golden,
    Standard,
    chosen_operators,
    default_cases,
    is_expression,
    load_cases,
    operator_standards,
    project_cases,
    shape_rules,
    standard_for,
)
from opkit.toolchain import Project, load_project

__all__ = ["Question", "Task", "open_task"]


@dataclass(frozen=True)
class Task:
    """One operator, ready to judge candidates."""

    name: str
    spec: OpSpec
    golden: Golden
    cases: tuple[Case, ...]
    standard: Standard
    base_us: Mapping[str, float] = field(default_factory=dict)
    """By the case's name: a time that is known to be reached."""
    bound_us: Mapping[str, float] = field(default_factory=dict)
    """By the case's name: a time that cannot be passed, where the task says one."""
    left_out: tuple[tuple[str, str], ...] = ()
    """Cases that are not judged, and why."""
    is_benchmark: bool = False


@dataclass(frozen=True)
class _Said:
    """What the files of a task say, before its golden runs."""

    name: str
    project: Project
    spec: OpSpec
    golden: Path | None
    """A file of somebody's; None where the formulas say all."""
    text: str = ""
    """What opkit writes of the formulas."""
    cases: Path | None = None


@dataclass(frozen=True)
class Question:
    """What is asked of candidates."""

    task: Path
    """A file or folder of the kinds above."""
    op: str | None = None
    """Which operator of a project; the first by default."""
    chip: str = DEFAULT_CHIP
    """What candidates are built and timed for."""
    seed: int = 0
    """Seed of the inputs' values, together with the candidate's content."""
    standard: str | None = None
    """The precision standard; the task's own by default."""
    expression: str | None = None
    """Only cases whose names match, as pytest's -k has it."""
    most_elements: int = 1 << 20
    """Cases with larger tensors are left out."""
    base_us: float | None = None
    """The time that the largest case is to be compared with, where the task knows none."""
    limits: Limits = field(default_factory=Limits)
    sandboxed: bool = True
    """Whether goldens and candidates run without network and files outside."""


@contextlib.contextmanager
def open_task(question: Question) -> Iterator[Task]:
    """Yield a task; a golden that is somebody's file runs in a process of its own meanwhile.

    Raises:
        UsageError: there is no such task, or it is wrong.
        SetupError: its golden needs torch, which is not installed.
    """
    path, seed, standard = question.task, question.seed, question.standard
    limits, sandboxed = question.limits, question.sandboxed
    if not path.exists():
        raise UsageError(f"--task {path}: there is no such file or folder")
    if path.is_dir() and is_benchmark(path):
        found = read_benchmark(path, seed=seed)
        rule = standard_for(standard or "cann_bench", found.name)
        with golden_apart(
            path / "golden.py", uses_torch=True, limits=limits, sandboxed=sandboxed
        ) as golden:
            task = Task(
                *(found.name, found.spec, golden, found.cases, rule),
                base_us=found.base_us,
                bound_us=found.bound_us,
                left_out=found.left_out,
                is_benchmark=True,
            )
            yield _chosen(task, question)
        return
    said = _read(path, question.op)
    with contextlib.ExitStack() as stack:
        if said.golden is not None:
            golden = stack.enter_context(
                golden_apart(said.golden, uses_torch=False, limits=limits, sandboxed=sandboxed)
            )
        else:
            golden = golden_of_text(said.text, said.spec.source)
        if not golden.has(said.spec.name):
            raise UsageError(f"{golden.path}: there is no function {said.spec.name}")
        project, spec = said.project, said.spec
        if said.cases is not None:
            rules = shape_rules((spec,), golden)
            cases = load_cases(said.cases, (spec,), seed=seed, shape_rules=rules)
        elif said.golden is None:
            cases = default_cases(spec, seed=seed, shape_rule=golden.shape_rule(spec))
        else:
            cases = project_cases(project, golden=golden, op=spec.name, seed=seed)
        rule = operator_standards(project.root, (spec,), standard=standard)[spec.name]
        yield _chosen(Task(said.name, spec, golden, cases, rule), question)


def _read(path: Path, op: str | None) -> _Said:
    if path.is_file():
        if path.suffix != ".json":
            raise UsageError(
                f"--task {path}: is no prototype",
                help="give a prototype JSON, a project, or a folder with proto.yaml, golden.py and"
                " cases.yaml",
            )
        return _of_project(Project(path.parent.absolute(), path.stem, tuple(load(path))), op, None)
    if (path / "pyproject.toml").is_file():
        project = load_project(path)
        if project.tree is None:
            golden = project.package_dir / "golden.py"
            return _of_project(project, op, golden if golden.is_file() else None)
    prototypes = sorted(path.glob("*.json"))
    golden = path / "golden.py"
    if len(prototypes) != 1 or not golden.is_file():
        raise UsageError(
            f"--task {path}: is no task",
            help="a task is a prototype JSON, a project of opkit gen, a folder with one prototype"
            " JSON and golden.py, or one with proto.yaml, golden.py and cases.yaml",
        )
    project = Project(path.absolute(), path.name, tuple(load(prototypes[0])))
    said = _of_project(project, op, golden)
    cases = path / "cases.yaml"
    return replace(said, cases=cases if cases.is_file() else None)


def _of_project(project: Project, op: str | None, golden: Path | None) -> _Said:
    spec = chosen_operators(project, op)[0]
    text = golden_module(project.operators) or ""
    if golden is not None and golden.read_text(encoding="utf-8", errors="replace") == text:
        # As opkit writes it: it needs no other process.
        golden = None
        if (project.root / "tests" / "cases.yaml").is_file():
            return _Said(project.name, project, spec, project.package_dir / "golden.py", text)
    if golden is None and not text:
        raise UsageError(
            f"{spec.source}: nothing says what {spec.op} computes",
            help="give its outputs formulas, or put golden.py beside it",
        )
    return _Said(project.name, project, spec, golden, text)


def _chosen(task: Task, question: Question) -> Task:
    """Return a task with the cases that are asked for."""
    cases = task.cases
    if question.expression is not None:
        cases = select_by_name(cases, question.expression)
    left_out = list(task.left_out)
    kept = []
    for case in cases:
        if case.golden and not is_expression(case.golden):
            left_out.append((case.name, f"its golden is {case.golden}: write it into golden.py"))
        elif _elements(case) > question.most_elements:
            left_out.append((case.name, f"it has {_elements(case)} elements"))
        elif not case.expects_failure:
            kept.append(case)
    if not kept:
        raise UsageError(
            f"no case of {task.name} is left to judge",
            help="look at -k and --elements; cases are named like "
            + (task.cases[0].name if task.cases else "nothing: it has none"),
        )
    base = dict(task.base_us)
    if question.base_us is not None:
        base[max(kept, key=_elements).name] = question.base_us
    return replace(task, cases=tuple(kept), base_us=base, left_out=tuple(left_out))


def _elements(case: Case) -> int:
    """Return the elements of the largest input."""
    return max((math.prod(shape) for shape in case.shapes if shape is not None), default=0)
