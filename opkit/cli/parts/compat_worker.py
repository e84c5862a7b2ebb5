"""What a worker of `opkit compat` does: one scenario of one sample, under the checks if wanted."""

from __future__ import annotations

import os
import shlex
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from opkit.compat import Machine, Outcome, Sample, Task
    from opkit.executor import Work
    from opkit.sanitizer import Finding

__all__ = ["Tried", "compat_work"]

_NOT_SENT = (".git", "build", "__pycache__")


@dataclass(frozen=True)
class Tried:
    """What became of a task."""

    outcome: Outcome | None
    """None where it is no scenario after all."""
    findings: tuple[Finding, ...] | None
    """None where nothing was checked."""
    commands: tuple[str, ...]
    """What was run, as a shell would take it."""


@dataclass(frozen=True)
class _Setup:
    root: Path
    """Where the samples lie on the machine that asks."""
    defines: tuple[str, ...]
    seconds: float
    check: bool


def compat_work(
    samples: Sequence[Sample], *, defines: Sequence[str], seconds: float, check: bool
) -> Work:
    """Return what tries a `Task` of some samples and says `Tried`.

    Args:
        defines: NAME=VALUE, for every CMake.
        seconds: the limit of each step of a task.
        check: run programs under the checks of `opkit check`.
    """
    from opkit.executor import Work, folder_of

    root = Path(os.path.commonpath([sample.folder.resolve() for sample in samples]))
    setup = _Setup(root, tuple(defines), seconds, check)
    return Work(_begin, setup, {"samples": folder_of(root, left_out=_NOT_SENT)})


def _begin(setup: _Setup, folders: Mapping[str, Path]) -> Callable[[Task], Tried]:
    # Here and not where the work is asked for: paths are this machine's.
    machine = _machine(setup)

    def run(task: Task) -> Tried:
        with tempfile.TemporaryDirectory(prefix="opkit-compat-") as scratch:
            place = Path(scratch).resolve()
            return _try(_moved(task, setup.root, folders["samples"]), setup, machine, place)

    return run


def _machine(setup: _Setup) -> Machine:
    from opkit.cli.parts.cmake import cmake_arguments
    from opkit.compat import Machine
    from opkit.toolchain import OPKIT_COMMAND, find_home, home_variables
    from opkit.torch_npu import offering_variables

    defines = [f"-D{define}" for define in setup.defines]
    # Debug information, for the lines of findings in host code.
    debug = ["-DCMAKE_ASC_FLAGS=-g"] if setup.check else []
    return Machine(
        (*cmake_arguments(), *defines, *debug),
        (*OPKIT_COMMAND, "cc"),
        {**home_variables(find_home(), os.environ), **offering_variables(os.environ)},
    )


def _moved(task: Task, root: Path, here: Path) -> Task:
    """Return a task with its sample where it lies on this machine."""
    if here == root:
        return task
    sample = task.sample
    folder = here / sample.folder.resolve().relative_to(root)
    sources = tuple(folder / path.relative_to(sample.folder) for path in sample.sources)
    return replace(task, sample=replace(sample, folder=folder, sources=sources))


def _try(task: Task, setup: _Setup, machine: Machine, place: Path) -> Tried:
    from opkit.compat import try_task
    from opkit.runtime import program_variables
    from opkit.sanitizer import TOOLS, findings_in, program_options

    reports = place / "reports"
    if setup.check:
        reports.mkdir()
        variables = program_variables(program_options(TOOLS, reports))
        machine = replace(machine, environment={**machine.environment, **variables})
    commands: list[str] = []
    outcome = try_task(
        task,
        place / "0",
        machine=machine,
        seconds=setup.seconds,
        show=lambda argv: commands.append(shlex.join(argv)),
    )
    found = findings_in(reports, TOOLS) if setup.check else None
    return Tried(outcome, found.findings if found is not None else None, tuple(commands))
