"""What runs inside of sandboxes: a candidate's build, its launches, and a task's golden.

Each function that begins gives up what it does not need before anything of a candidate's, or of a
golden's, is loaded. Results are plain values: whoever reads them trusts no class that they name.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from opkit.errors import BuildError, KernelFault, OpkitError
from opkit.executor import Plain, plain_array, plain_value, read_value
from opkit.judging.lockdown import Limits, give_up

if TYPE_CHECKING:
    from opkit.sanitizer import Finding
    from opkit.schema import OpSpec
    from opkit.testing import Case

__all__ = [
    "BuildSetup",
    "GoldenSetup",
    "LaunchRequest",
    "LaunchSetup",
    "begin_build",
    "begin_golden",
    "begin_launches",
    "checked_finding",
]


@dataclass(frozen=True)
class BuildSetup:
    """How a candidate is built."""

    chip: str
    limits: Limits


def begin_build(
    setup: BuildSetup, folders: Mapping[str, Path]
) -> Callable[[tuple[str, str]], Plain]:
    """Return what builds the operator of a task, by its OpDef and its snake_case name."""
    give_up(setup.limits, processes=True)

    def run(names: tuple[str, str]) -> Plain:
        try:
            return _built(names, setup.chip, folders["candidate"], folders["artifact"])
        # Whatever it is, it goes out as plain values: no other would be read.
        except Exception as error:
            return _error(error, folders["candidate"])

    return run


def _built(names: tuple[str, str], chip: str, source: Path, out: Path) -> Plain:
    from opkit.errors import UsageError
    from opkit.toolchain import build, load_project, project_as_built

    project = load_project(source)
    if project.tree is None:
        chosen = [spec for spec in project.operators if set(names) & {spec.op, spec.name}]
        others = [spec for spec in project.operators if not spec.op.endswith("Grad")]
        if not chosen and len(others) == 1:
            chosen = others
        if not chosen:
            have = ", ".join(spec.op for spec in project.operators)
            raise UsageError(
                f"the candidate has no operator {names[0]}, but {have}",
                help="name its operator as the task does",
            )
        project = replace(project, operators=tuple(chosen[:1]))
    artifact = build(project, chip=chip, out=out)
    operators = project_as_built(artifact).operators
    chosen = [spec for spec in operators if set(names) & {spec.op, spec.name}]
    if not chosen and len(operators) == 1:
        chosen = list(operators)
    if not chosen:
        have = ", ".join(spec.op for spec in operators) or "none"
        raise UsageError(
            f"the candidate registers no operator {names[0]}; it has {have}",
            help="name its operator as the task does",
        )
    spec = chosen[0]
    return {"op": spec.op, "inputs": len(spec.inputs), "outputs": len(spec.outputs)}


@dataclass(frozen=True)
class LaunchSetup:
    """How a candidate is launched."""

    spec: OpSpec
    """The task's."""
    chip: str
    limits: Limits
    op: str = ""
    """The candidate's OpDef."""


@dataclass(frozen=True)
class LaunchRequest:
    """One launch."""

    case: Case
    checked: bool = False
    """Under the checks; else timed, and its outputs are given back."""


def begin_launches(
    setup: LaunchSetup, folders: Mapping[str, Path]
) -> Callable[[LaunchRequest], Plain]:
    """Return what launches a candidate's operator."""
    from opkit import runtime
    from opkit.testing import launch_of

    # As `opkit test` runs: what the kernel never writes is no right zero, instructions are as exact
    # as their pages say, and outputs change by instructions alone.
    runtime.configure(setup.chip, poison=True, threads=1, inaccuracy_seed=1, allow_raw_writes=False)
    give_up(setup.limits, processes=False)
    library: list[Any] = []

    def run(request: LaunchRequest) -> Plain:
        try:
            ready = launch_of(replace(request.case, op=setup.op), setup.spec)
            if not library:
                library.append(runtime.open(folders["artifact"]))
            with runtime.time_limit(setup.limits.seconds):
                if request.checked:
                    return _checked(lambda: ready(library[0]), folders["candidate"])
                return _timed(lambda: ready(library[0]))
        # Whatever it is, it goes out as plain values: no other would be read.
        except Exception as error:
            return _error(error, folders["candidate"])

    return run


def _timed(launch: Callable[[], Sequence[np.ndarray[Any, Any]]]) -> Plain:
    from opkit import runtime
    from opkit.profiling import Profile

    with Profile(event_limit=0) as session:
        outputs = launch()
    return {
        "changed_inputs": runtime.changed_inputs(),
        "outputs": [plain_array(output) for output in outputs],
        "launches": [
            {
                "kernel": timeline.kernel,
                "time_us": timeline.task_us,
                "band_percent": timeline.band_percent(),
                "written_bytes": timeline.gm_write_bytes,
            }
            for timeline in session.timelines
        ],
    }


def _checked(launch: Callable[[], object], root: Path) -> Plain:
    from opkit.sanitizer import Check

    # Nothing times what the host computes between instructions.
    session = Check(raw=True)
    try:
        with session:
            launch()
    except KernelFault:
        # It is among the findings.
        pass
    return {
        "findings": [json.dumps(checked_finding(each, root)) for each in session.findings],
        "gaps": [f"{gap.category}: {gap.message}" for gap in session.gaps],
    }


def checked_finding(finding: Finding, root: Path) -> dict[str, object]:
    """Return a finding as a JSON object, its file named as the candidate's sources have it."""
    from opkit.sanitizer import finding_object

    if finding.location is not None:
        # Kernels are compiled in their project's folder, which is not where this process works.
        at = replace(finding.location, file=root / finding.location.file)
        finding = replace(finding, location=at)
    return finding_object(finding, root)


@dataclass(frozen=True)
class GoldenSetup:
    """A golden's file and how its functions take their tensors."""

    file: str
    uses_torch: bool
    limits: Limits


def begin_golden(
    setup: GoldenSetup, folders: Mapping[str, Path]
) -> Callable[[tuple[str, Plain, Plain] | None], Plain]:
    """Return what calls functions of a golden; for None it gives their names."""
    from opkit.testing import load_golden, reference_package

    if setup.uses_torch:
        reference_package("torch", wanted_by="a program of torch").set_num_threads(1)
    # Torch asks for things that it can do without: what is refused fails, and does not end it.
    give_up(setup.limits, processes=False, fatal=False)
    loaded: list[Any] = []

    def run(request: tuple[str, Plain, Plain] | None) -> Plain:
        try:
            if not loaded:
                loaded.append(load_golden(folders["golden"] / setup.file))
            module = loaded[0].module
            if request is None:
                names = [
                    name
                    for name, value in vars(module).items()
                    if callable(value) and name[0] != "_"
                ]
                return {"names": names}
            name, arguments, named = request
            function = getattr(module, name)
            given, options = read_value(arguments), read_value(named)
            if setup.uses_torch:
                found = _from_torch(function(*_to_torch(given), **_to_torch(options)))
            else:
                with np.errstate(all="ignore"):
                    found = function(*given, **options)
            return {"value": plain_value(found)}
        # Whatever a golden raises is its own failure.
        except (Exception, SystemExit) as error:
            return {"error": f"{type(error).__name__}: {error}"}

    return run


def _to_torch(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return sys.modules["torch"].from_numpy(np.ascontiguousarray(value))
    if isinstance(value, (list, tuple)):
        return type(value)(_to_torch(each) for each in value)
    if isinstance(value, dict):
        return {name: _to_torch(each) for name, each in value.items()}
    return value


def _from_torch(value: Any) -> Any:
    if hasattr(value, "detach"):
        return value.detach().cpu().contiguous().numpy()
    if isinstance(value, (list, tuple)):
        return [_from_torch(each) for each in value]
    return value


def _error(error: Exception, root: Path) -> Plain:
    """Return an error as plain values, files named relative to the candidate."""
    text = str(error)
    if isinstance(error.__cause__, MemoryError):
        # Its limit of memory is the judge's, and no want of this machine's.
        error = error.__cause__
    file, line = getattr(error, "file", None), getattr(error, "line", None)
    identity = getattr(error, "id", "")
    if isinstance(error, BuildError) and error.diagnostics:
        first = next(
            (each for each in error.diagnostics if each.severity == "error"), error.diagnostics[0]
        )
        file, line = first.file, first.line
        text = "\n".join(
            f"{each.file}:{each.line}: {each.severity}: {each.message}"
            for each in error.diagnostics
        )
    return {
        "error": text.replace(f"{root}/", ""),
        "kind": type(error).__name__,
        "id": identity,
        "category": getattr(error, "category", ""),
        "file": "" if file is None else str(file).replace(f"{root}/", ""),
        "line": line or 0,
        "code": getattr(error, "exit_code", OpkitError.exit_code),
    }
