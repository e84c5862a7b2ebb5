"""Tuning an operator of a project: one build, whose sizes come with each launch."""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import opkit
from opkit.chips import Chip, find_chip
from opkit.errors import KernelFault, OpkitError, UsageError
from opkit.executor import (
    NOT_OURS,
    LocalExecutor,
    Lost,
    Plain,
    Work,
    folder_of,
    plain_record,
    plain_value,
    read_record,
    read_value,
)
from opkit.files import write_aside
from opkit.tuning.measurement import Measurement, measure
from opkit.tuning.session import Subject, TuningReport
from opkit.tuning.space import Candidate, Knob, Space
from opkit.tuning.table import (
    SHAPE_VARIABLE,
    VARIABLE,
    Row,
    knob_names,
    read_rows,
    tuner_text,
    with_row,
)

if TYPE_CHECKING:
    from opkit.schema import OpSpec
    from opkit.testing import Case, Launch
    from opkit.toolchain import Artifact, Project

__all__ = ["project_state", "project_subject", "save_project_row"]

_COPY_IGNORES = ("build", "__pycache__", ".git")
_TILES = (0, 1, 2, 3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 32, 48, 64)
_BUFFERS = (0, 1, 2, 3, 4)
_PARTS = (0, 2, 3, 4, 6, 8)
_SHARES_OF_CORES = (1.0, 0.9, 0.8, 0.75, 0.7, 0.6, 0.5, 0.4, 0.3, 0.25, 0.2, 0.1, 0.05)
_NOTES = {
    "tiles": "of the longest share of a core",
    "buffers": "a queue",
    "blocks": "at most",
    "parts": "of a row",
}


@dataclass(frozen=True)
class _Setup:
    """What a worker needs."""

    case: Case
    spec: OpSpec
    specs: tuple[OpSpec, ...]
    """All of the project's: its settings may speak of each."""
    chip: str
    standard: str | None
    package: str
    """The folder of golden.py, in the project."""
    timeout_seconds: float


def project_subject(
    project: Project,
    case: Case,
    *,
    chip: Chip | str,
    build: Callable[[Project, Path], Artifact],
    knobs: tuple[str, ...] = (),
    standard: str | None = None,
    timeout_seconds: float = 60.0,
    into: Path | None = None,
) -> Subject:
    """Return one operator of a project, for one shape and data type, as something to tune.

    Args:
        build: builds a copy of the project into a folder.
        knobs: `tiles=1,2,4` in place of a knob's usual values.
        into: the project's artifact folder, where it is not its own; see `tuner_folder`.
    Raises:
        UsageError: the operator's host code reads no tuning file, or there is no golden.
    """
    from opkit.testing import find_reference, load_golden

    target = find_chip(chip) if isinstance(chip, str) else chip
    spec = next(spec for spec in project.operators if spec.op == case.op)
    names = _knobs_of(project, spec)
    golden = load_golden(project.package_dir / "golden.py")
    if find_reference(case, spec, golden, wants_second=False) is None:
        raise UsageError(
            f"{spec.name} has no formula and golden.py no function {spec.name}: nothing says"
            " whether a candidate's results are right",
            help="give the op a formula, or write the golden",
        )
    space = Space(tuple(_knob(name, target) for name in names)).narrowed(knobs)
    folder = tuner_folder(project, into)
    copy = _tuner_copy(project, spec, names, folder)
    artifact = build(copy, folder / "opkit")
    folders = {
        "artifact": folder_of(artifact.folder),
        "project": folder_of(project.root, left_out=_COPY_IGNORES),
    }
    setup = _Setup(
        case,
        spec,
        project.operators,
        target.name,
        standard,
        str(project.package_dir.relative_to(project.root)),
        timeout_seconds,
    )
    decides = [opkit.__version__, target.name, repr(case), repr(standard), *names]
    # Not the manifest and its times: what runs, and what judges it.
    decides += [_digest(path) for path in sorted(artifact.folder.glob("*.so"))]
    decides += [_digest(project.package_dir / "golden.py")]
    return Subject(
        name=case.name,
        chip=target.name,
        space=space,
        work=Work(
            _begin, setup, folders, seconds=max(120.0, 5 * timeout_seconds), answers=Measurement
        ),
        identity=hashlib.sha256("\n".join(decides).encode()).hexdigest()[:16],
    )


def tuner_folder(project: Project, into: Path | None = None) -> Path:
    """Return where the tuner keeps its build and its states: beside the artifact folder."""
    return Path(f"{into or project.folder / 'build' / 'opkit'}.tune")


def project_state(project: Project, subject: Subject, into: Path | None = None) -> Path:
    """Return the file that keeps what was measured of a subject: another once sources change."""
    name = "".join(c if c.isalnum() or c in "-_." else "_" for c in subject.name)
    return tuner_folder(project, into) / f"{name}-{subject.chip}-{subject.identity}.jsonl"


def save_project_row(project: Project, case: Case, report: TuningReport) -> Path:
    """Write the best sizes where the operator's TilingFunc reads them, and return the file.

    The row of the same chip, data type and bucket is replaced, all else stays. Where the start is
    the best, that row goes.

    Raises:
        UsageError: the file is damaged.
    """
    spec = next(spec for spec in project.operators if spec.op == case.op)
    path = _table_path(project, spec)
    read_rows(path, [knob.name for knob in report.space.knobs])
    facts = dict(report.best.measurement.facts)
    bucket = (facts["rows"], facts["columns"])
    key = (report.chip, f"ge::{case.dtypes[0].ge}", bucket)
    start, best = report.start.measurement, report.best.measurement
    row = None
    if report.best.candidate != report.start.candidate:
        note = f"{start.task_us:.2f} -> {best.task_us:.2f} us by the model"
        values = tuple(int(value) for value in report.best.candidate)
        row = Row(*key, values, note)
    text = path.read_text(encoding="utf-8")
    changed = with_row(text, row, key)
    if changed != text:
        try:
            write_aside(path, changed.encode())
        except OSError as err:
            from opkit.errors import cannot_write

            raise cannot_write(path, err) from err
    return path


def _host_source(project: Project, spec: OpSpec) -> Path:
    """Return the source that reads an operator's tuning file; the usual one where none does."""
    for path in project.sources("op_host"):
        if knob_names(path.read_text(encoding="utf-8", errors="replace"), spec.name):
            return path
    return project.folder / "op_host" / f"{spec.name}.cpp"


def _table_path(project: Project, spec: OpSpec) -> Path:
    return _host_source(project, spec).parent / f"{spec.name}_tuning.inc"


def _knobs_of(project: Project, spec: OpSpec) -> tuple[str, ...]:
    source = _host_source(project, spec)
    names = None
    if source.is_file() and _table_path(project, spec).is_file():
        names = knob_names(source.read_text(encoding="utf-8", errors="replace"), spec.name)
    if not names:
        brings = '"opkit gen" in the project brings what reads it; by hand: docs/tuning.md'
        raise UsageError(
            f"{source}: reads no {spec.name}_tuning.inc, so there is nothing to tune in it",
            help=brings if project.tree is None else "write what reads one: docs/tuning.md",
        )
    return names


def _knob(name: str, chip: Chip) -> Knob:
    cores = chip.count("cores.aiv")
    shares = (round(cores * share) for share in _SHARES_OF_CORES)
    values = {
        "tiles": _TILES,
        "buffers": _BUFFERS,
        "parts": _PARTS,
        "blocks": (0, *dict.fromkeys(max(1, share) for share in shares)),
    }
    # A name of the user's own has no values but those that --knob gives.
    return Knob(name, values.get(name, (0,)), 0, _NOTES.get(name, ""))


def _tuner_copy(project: Project, spec: OpSpec, names: tuple[str, ...], folder: Path) -> Project:
    """Return a copy of the project whose TilingFunc takes the sizes that come with a launch."""
    from opkit.toolchain import load_project

    root = folder / "source" / project.root.resolve().name
    shutil.rmtree(root, ignore_errors=True)
    shutil.copytree(project.root, root, ignore=shutil.ignore_patterns(*_COPY_IGNORES))
    copy = load_project(root / project.folder.relative_to(project.root))
    _table_path(copy, spec).write_text(tuner_text(names), encoding="utf-8")
    return copy


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else ""


def _begin(setup: _Setup, folders: Mapping[str, Path]) -> _Judge:
    """Start the process of the kernels, and return what judges in this one what comes of them."""
    return _Judge(setup, folders)


class _Judge:
    """Measures or checks candidates; no kernel runs in its process, so none reaches the verdict."""

    def __init__(self, setup: _Setup, folders: Mapping[str, Path]) -> None:
        from opkit.testing import (
            case_standard,
            hidden_files,
            launch_of,
            load_golden,
            operator_standards,
        )

        project = folders["project"]
        self._setup = setup
        self._golden = load_golden(project / setup.package / "golden.py")
        standards = operator_standards(project, setup.specs, standard=setup.standard)
        self._rule = case_standard(setup.case, standards[setup.spec.name])
        self._launch = launch_of(setup.case, setup.spec)
        self._judged: dict[bytes, str] = {}
        launches = _Launches(self._launch, setup.chip, setup.timeout_seconds)
        work = Work(
            *(_begin_launches, launches, {"artifact": folder_of(folders["artifact"])}),
            seconds=max(60.0, 3 * setup.timeout_seconds),
            answers=Plain,
            hidden=hidden_files(project, project / setup.package, (setup.case,)),
            most_bytes=1 << 36,
        )
        self._crew = LocalExecutor(1).open(work)

    def __call__(self, asked: tuple[str, Candidate]) -> Measurement:
        (answer,) = self._crew.run([asked])
        if isinstance(answer, Lost):
            return Measurement(0.0, wrong=str(answer), findings=(answer.reason,))
        try:
            found: Measurement = read_record(Measurement, answer["found"])
            outputs = read_value(answer["outputs"])
        except (KeyError, TypeError, ValueError):
            lost = Lost(NOT_OURS, 1)
            return Measurement(0.0, wrong=str(lost), findings=(lost.reason,))
        if found.wrong or outputs is None:
            return found
        return replace(found, wrong=self._verdict(outputs))

    def _verdict(self, outputs: list[Any]) -> str:
        """Return why outputs are wrong; bits that were judged before are not judged again."""
        from opkit.testing import find_reference, judge

        shapes = repr([(array.dtype.str, array.shape) for array in outputs]).encode()
        bits = b"".join(array.tobytes() for array in outputs)
        key = hashlib.blake2b(shapes + bits).digest()
        if key not in self._judged:
            rule, setup = self._rule, self._setup
            second = rule.needs_second
            reference = find_reference(setup.case, setup.spec, self._golden, wants_second=second)
            assert reference is not None
            results = judge(reference, self._launch.inputs, outputs, rule)
            wrong = [result for result in results if not result.comparison.passed]
            self._judged[key] = f"{wrong[0].name} misses the standard {rule.name}" if wrong else ""
        return self._judged[key]

    def close(self) -> None:
        """End the process of the kernels."""
        self._crew.close()


@dataclass(frozen=True)
class _Launches:
    """What the process of the kernels needs."""

    launch: Launch
    chip: str
    timeout_seconds: float


def _begin_launches(
    setup: _Launches, folders: Mapping[str, Path]
) -> Callable[[tuple[str, Candidate]], Plain]:
    """Open the artifact in this process, and return what launches a candidate."""
    from opkit import runtime

    runtime.configure(setup.chip, poison=True, threads=1, allow_raw_writes=False)
    launch = _Launch(setup.launch, folders["artifact"])

    def run(asked: tuple[str, Candidate]) -> Plain:
        kind, candidate = asked
        outputs = None
        with runtime.time_limit(setup.timeout_seconds, counts_host=True):
            if kind == "check":
                found = launch.checked(candidate)
            else:
                found, outputs = launch.timed(candidate)
        return {"found": plain_record(found), "outputs": plain_value(outputs)}

    return run


class _Launch:
    """The operator, ready to be launched with any sizes."""

    def __init__(self, launch: Launch, artifact: Path) -> None:
        from opkit import runtime

        self._launch = launch
        self._library = runtime.open(artifact)

    def timed(self, candidate: Candidate) -> tuple[Measurement, list[Any] | None]:
        """Return the candidate's modelled time and its results; None where that is a verdict."""
        from opkit.profiling import Profile

        try:
            with Profile(event_limit=0) as session:
                outputs = self._run(candidate)
        except OpkitError as error:
            if error.exit_code == OpkitError.exit_code:
                raise
            return Measurement(0.0, wrong=str(error).splitlines()[0]), None
        bucket = _asked_bucket()
        if bucket is None:
            raise UsageError(
                f"{self._launch.case.op}: TilingFunc does not ask its tuning file",
                help="call FindTuned in it, as a generated one does: docs/tuning.md",
            )
        changed = self._library.changed_inputs()
        wrong = "" if session.timelines else "it launched no kernel"
        if changed:
            wrong = f"the kernel writes to its input {changed[0]}"
        facts = (("rows", bucket[0]), ("columns", bucket[1]))
        return measure(session.timelines, wrong=wrong, facts=facts), list(outputs)

    def checked(self, candidate: Candidate) -> Measurement:
        """Return what the checks find in the candidate."""
        from opkit.sanitizer import Check

        session = Check()
        try:
            with session:
                self._run(candidate)
        except KernelFault as fault:
            return Measurement(0.0, findings=(fault.id,))
        found = dict.fromkeys(finding.id for finding in session.findings)
        gaps = [gap.message for gap in session.gaps]
        return Measurement(0.0, wrong=gaps[0] if gaps else "", findings=tuple(found))

    def _run(self, candidate: Candidate) -> list[Any]:
        os.environ[VARIABLE] = ",".join(map(str, candidate))
        os.environ.pop(SHAPE_VARIABLE, None)
        return self._launch(self._library)


def _asked_bucket() -> tuple[int, int] | None:
    """Return the bucket that TilingFunc reported; os.environ does not see what C++ sets."""
    getenv = ctypes.CDLL(None).getenv
    getenv.restype = ctypes.c_char_p
    text = getenv(SHAPE_VARIABLE.encode())
    if not text:
        return None
    rows, columns = text.decode().split(",")
    return int(rows), int(columns)
