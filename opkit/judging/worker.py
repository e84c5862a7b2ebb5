"""What runs inside of sandboxes: a candidate's build, its launches, and a task's golden.

Each function that begins gives up what it does not need before anything of a candidate's, or of a
golden's, is loaded. Results are plain values: whoever reads them trusts no class that they name.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from opkit.errors import BuildError, KernelFault, OpkitError, UsageError
from opkit.executor import Plain, plain_array, plain_value, read_value
from opkit.judging.entry import MARK_INTERFACE
from opkit.judging.kinds import Kind, wheel_artifact
from opkit.judging.lockdown import Limits, give_up
from opkit.judging.recording import KernelText, Recording, replay

if TYPE_CHECKING:
    from opkit.sanitizer import Finding
    from opkit.schema import OpSpec
    from opkit.testing import Case

__all__ = [
    "BuildSetup",
    "GoldenSetup",
    "LaunchRequest",
    "LaunchSetup",
    "OutputShapes",
    "RecordRequest",
    "RecordSetup",
    "begin_build",
    "begin_golden",
    "begin_launches",
    "begin_recording",
    "checked_finding",
]


@dataclass(frozen=True)
class BuildSetup:
    """How a candidate is built."""

    spec: OpSpec
    """The task's."""
    chip: str
    limits: Limits
    kind: Kind
    kernels: tuple[KernelText, ...] = ()
    """Kernels that a program's recording has."""


def begin_build(setup: BuildSetup, folders: Mapping[str, Path]) -> Callable[[None], Plain]:
    """Return what builds a candidate for the operator of a task."""
    give_up(setup.limits, processes=True)

    def run(_: None) -> Plain:
        try:
            return _built(setup, folders["candidate"], folders["artifact"])
        # Whatever it is, it goes out as plain values: no other would be read.
        except Exception as error:
            return _error(error, folders["candidate"])

    return run


def _built(setup: BuildSetup, source: Path, out: Path) -> Plain:
    spec = setup.spec
    names = (spec.op, spec.name)
    if setup.kind == "project":
        return _built_project(names, setup.chip, source, out)
    if setup.kind == "wheel":
        return _found_in_wheel(names, source, out)
    if setup.kind == "program":
        _compile_kernels(setup.kernels, setup.chip, out)
    else:
        from opkit.judging.direct import build_direct

        build_direct(spec, setup.chip, source, out)
    return {"op": spec.op, "inputs": len(spec.inputs), "outputs": len(spec.outputs)}


def _compile_kernels(kernels: Sequence[KernelText], chip: str, out: Path) -> None:
    """Compile what a program has launched, each kernel into a library named by its text."""
    import shutil

    from opkit.toolchain import compile_kernel
    from opkit.triton import DEVICE_FUNCTIONS

    out.mkdir(exist_ok=True)
    for kernel in kernels:
        image = compile_kernel(
            kernel.source,
            chip,
            kernels=[kernel.name],
            mode=kernel.mode,
            name=f"{kernel.name}.cpp",
            include_dirs=[DEVICE_FUNCTIONS] if kernel.uses_library else [],
            is_generated=kernel.is_generated,
            # What all share is only read here.
            cache_dir=out.parent / "cache",
        )
        shutil.copyfile(image.library, out / f"{kernel.key}.so")


def _found_in_wheel(names: tuple[str, str], source: Path, out: Path) -> Plain:
    """Take the operators that a wheel carries, as they were compiled, without its bindings."""
    import shutil

    files = [str(path.relative_to(source)) for path in source.rglob("*.json")]
    inside = source / wheel_artifact(files)
    out.mkdir(exist_ok=True)
    for path in sorted(inside.iterdir()):
        if path.is_file() and not path.name.startswith("_"):
            shutil.copyfile(path, out / path.name)
    rows = json.loads((out / "manifest.json").read_bytes())["operators"]
    chosen = [row for row in rows if set(names) & {row["op"], row["kernel"]}]
    if not chosen and len(rows) == 1:
        chosen = rows
    if not chosen:
        have = ", ".join(str(row["op"]) for row in rows) or "none"
        raise UsageError(f"{MARK_INTERFACE}the wheel has no operator {names[0]}; it has {have}")
    (row, *_) = chosen
    return {"op": row["op"], "inputs": len(row["inputs"]), "outputs": len(row["outputs"])}


def _built_project(names: tuple[str, str], chip: str, source: Path, out: Path) -> Plain:
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


OutputShapes: TypeAlias = tuple[tuple[tuple[int, ...], str], ...]
"""Shape and data type of each output, by the golden."""


@dataclass(frozen=True)
class RecordSetup:
    """How a program is recorded."""

    spec: OpSpec
    """The task's."""
    chip: str
    limits: Limits
    uses_torch: bool


@dataclass(frozen=True)
class RecordRequest:
    """One call of a program, with the inputs of a case's seed."""

    case: Case
    outputs: OutputShapes


def begin_recording(
    setup: RecordSetup, folders: Mapping[str, Path]
) -> Callable[[RecordRequest], Plain]:
    """Return what calls a program and writes down what it launches."""
    from opkit import runtime
    from opkit.judging.recorder import Program

    runtime.configure(setup.chip)
    program = Program(folders["candidate"], setup.spec, uses_torch=setup.uses_torch)
    # As for goldens: torch asks for things that it can do without.
    give_up(setup.limits, processes=False, fatal=not setup.uses_torch)

    def run(request: RecordRequest) -> Plain:
        try:
            recording, kernels = program.record(request.case, request.outputs)
            return {
                "recording": plain_value(recording.as_plain()),
                "kernels": [asdict(kernel) for kernel in kernels.values()],
            }
        # Whatever it raises is its own failure, SystemExit too.
        except (Exception, SystemExit) as error:
            return _raised(error, folders["candidate"])

    return run


def _raised(error: BaseException, root: Path) -> Plain:
    """Return what a program raised, with its last line of the candidate's."""
    import traceback

    file, line = "", 0
    for frame in traceback.extract_tb(error.__traceback__):
        if Path(frame.filename).is_relative_to(root):
            file, line = str(Path(frame.filename).relative_to(root)), frame.lineno or 0
    kind = "MemoryError" if isinstance(error, MemoryError) else "Raised"
    found: dict[str, Any] = {"error": f"{type(error).__name__}: {error}", "kind": kind}
    if isinstance(error, OpkitError):
        found = _error(error, root)
        # Its own words are what is wrong with it; what opkit lacks is no fault of its own.
        file, line = found["file"] or file, found["line"] or line
    return {
        **found,
        "error": str(found["error"]).replace(f"{root}/", ""),
        "file": file,
        "line": line,
    }


@dataclass(frozen=True)
class LaunchSetup:
    """How a candidate is launched."""

    spec: OpSpec
    """The task's."""
    chip: str
    limits: Limits
    op: str = ""
    """The candidate's OpDef."""
    kind: Kind = "project"


@dataclass(frozen=True)
class LaunchRequest:
    """One launch."""

    case: Case
    checked: bool = False
    """Under the checks; else timed, and its outputs are given back."""
    outputs: OutputShapes = ()
    """Output shapes of a candidate that does not infer them."""
    recording: Recording | None = None
    """Recording of a program."""


def begin_launches(
    setup: LaunchSetup, folders: Mapping[str, Path]
) -> Callable[[LaunchRequest], Plain]:
    """Return what launches a candidate's operator."""
    from opkit import runtime

    # As `opkit test` runs: what the kernel never writes is no right zero, instructions are as exact
    # as their pages say, and outputs change by instructions alone.
    runtime.configure(setup.chip, poison=True, threads=1, inaccuracy_seed=1, allow_raw_writes=False)
    give_up(setup.limits, processes=False)
    makers = {"direct-launch": _direct_launches, "program": _replays}
    ready = makers.get(setup.kind, _operator_calls)(setup, folders)

    def run(request: LaunchRequest) -> Plain:
        try:
            with runtime.time_limit(setup.limits.seconds):
                launch = ready(request)
                if request.checked:
                    return _checked(launch, folders["candidate"])
                return _timed(launch)
        # Whatever it is, it goes out as plain values: no other would be read.
        except Exception as error:
            return _error(error, folders["candidate"])

    return run


Ran: TypeAlias = "tuple[Sequence[np.ndarray[Any, Any]], Sequence[str]]"
"""The outputs of a launch, and the names of the inputs that it has changed."""
Ready: TypeAlias = "Callable[[LaunchRequest], Callable[[], Ran]]"
"""From a request to what launches it and nothing else."""


def _operator_calls(setup: LaunchSetup, folders: Mapping[str, Path]) -> Ready:
    from opkit import runtime
    from opkit.testing import launch_of

    library: list[Any] = []

    def ready(request: LaunchRequest) -> Callable[[], Ran]:
        launch = launch_of(replace(request.case, op=setup.op), setup.spec)
        if not library:
            library.append(runtime.open(folders["artifact"]))

        def run() -> Ran:
            outputs = launch(library[0])
            return outputs, runtime.changed_inputs()

        return run

    return ready


def _direct_launches(setup: LaunchSetup, folders: Mapping[str, Path]) -> Ready:
    from opkit.judging.direct import DirectLibrary

    library: list[DirectLibrary] = []

    def ready(request: LaunchRequest) -> Callable[[], Ran]:
        if not library:
            library.append(DirectLibrary(folders["artifact"], folders["candidate"], setup.spec))
        return library[0].ready(request.case, request.outputs)

    return ready


def _replays(setup: LaunchSetup, folders: Mapping[str, Path]) -> Ready:
    from opkit.chips import find_chip
    from opkit.runtime import Kernel
    from opkit.testing import make_inputs
    from opkit.toolchain import KernelImage

    chip, kernels = find_chip(setup.chip), dict[str, Kernel]()

    def ready(request: LaunchRequest) -> Callable[[], Ran]:
        recording = request.recording
        assert recording is not None
        for step in recording.steps:
            if step.kernel not in kernels:
                library = folders["artifact"] / f"{step.kernel}.so"
                kernels[step.kernel] = Kernel(KernelImage(library, chip, step.kernel))
        given = {
            tensor.name: value if isinstance(value, list) else [] if value is None else [value]
            for tensor, value in zip(setup.spec.inputs, make_inputs(request.case), strict=False)
        }
        memory = {name: [_in_place(one) for one in values] for name, values in given.items()}
        results = {tensor.name for tensor in setup.spec.outputs}

        def run() -> Ran:
            outputs = replay(recording, [one for each in memory.values() for one in each], kernels)
            changed = [
                name
                for name, values in given.items()
                if name not in results
                and any(
                    one.tobytes() != now.tobytes()
                    for one, now in zip(values, memory[name], strict=True)
                )
            ]
            return outputs, changed

        return run

    return ready


def _in_place(array: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return a copy where a tensor of the device's may begin."""
    from opkit.runtime import zeros_of_bytes

    room = zeros_of_bytes(array.nbytes)
    made: np.ndarray[Any, Any] = np.ndarray(array.shape, array.dtype, room.data)
    made[...] = array
    return made


def _timed(launch: Callable[[], Ran]) -> Plain:
    from opkit.profiling import Profile

    with Profile(event_limit=0) as session:
        outputs, changed = launch()
    return {
        "changed_inputs": list(changed),
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
