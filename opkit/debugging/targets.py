"""What is debugged: a case of a project, a program, a script. Each is run once and recorded."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opkit import runtime
from opkit.debugging.recording import (
    LIMIT_BYTES,
    Recording,
    load_recording,
    recording,
)
from opkit.debugging.session import Session
from opkit.debugging.why import Reason
from opkit.dtypes import DType
from opkit.errors import KernelFault, UsageError
from opkit.sanitizer import TOOLS, Check, Finding, findings_in, located_findings, program_options
from opkit.schema import OpSpec
from opkit.testing import (
    Case,
    Golden,
    Standard,
    compare,
    explain_case,
    find_reference,
    is_float,
    launch_of,
    output_tensors,
    widen,
)

__all__ = ["Target", "debug_case", "debug_program", "debug_script"]


@dataclass(frozen=True)
class Target:
    """A recorded launch with what is known beside it."""

    title: str
    session: Session
    launches: tuple[str, ...]
    """All recorded launches, in words, where there were several."""
    precision: Callable[[], Reason | None] | None = None
    """Which step's rounding is too coarse, where a reference can tell."""
    exit_code: int = 0
    """Exit code of a program or script."""


def debug_case(
    case: Case,
    spec: OpSpec,
    library: runtime.Library,
    *,
    golden: Golden | None,
    standard: Standard,
    root: Path,
    check: bool = True,
    limit_bytes: int = LIMIT_BYTES,
) -> Target:
    """Run one case of a project, recorded and checked.

    Args:
        root: the project's folder, which its sources are told relative to.
    Raises:
        UsageError: the operator launches nothing, or refuses the case.
    """
    launch_case = launch_of(case, spec)
    inputs = launch_case.inputs
    outputs: list[NDArray[Any]] = []
    watch = Check(TOOLS) if check else None
    with tempfile.TemporaryDirectory(prefix="opkit-debug-") as folder, ExitStack() as stack:
        recorder = stack.enter_context(
            recording(limit_bytes=limit_bytes, spill_folder=Path(folder))
        )
        try:
            with ExitStack() as checked:
                if watch is not None:
                    checked.enter_context(watch)
                outputs = launch_case(library)
        except KernelFault as fault:
            if fault.category == "Interrupted":
                raise
    for launch in recorder.launches:
        launch.locate(root)
    session = _session_of(recorder.launches, case.name)
    session.findings = located_findings(watch.findings if watch is not None else (), root)
    for name, value, dtype in zip(case.input_names, inputs, case.dtypes, strict=False):
        if isinstance(value, np.ndarray):
            session.names.tell(name, dtype, value.shape)
    reference = find_reference(case, spec, golden, wants_second=False)
    tensors = output_tensors(case, spec)
    wants = reference.whole(inputs)[0] if reference is not None else ()
    for number, (name, dtype) in enumerate(tensors):
        shape = outputs[number].shape if outputs else wants[number].shape if wants else ()
        if shape or outputs:
            session.names.tell(name, dtype, shape)
        if not wants or not session.recording.step_count:
            continue
        actual = outputs[number] if outputs else _final(session, name, dtype, shape)
        if actual is not None and actual.shape == wants[number].shape:
            session.goldens[name] = np.asarray(wants[number]).reshape(-1)
            session.wrong[name], worst = _wrong(actual, wants[number], dtype, standard)
            if worst is not None:
                session.worst[name] = worst

    def precision() -> Reason | None:
        return _precision(session, reference, library, standard)

    asks = precision if reference is not None and outputs else None
    return Target(case.name, session, _told(recorder.launches), asks)


def debug_program(
    program: Path,
    arguments: Sequence[str],
    *,
    chip: str | None = None,
    launch: int = 0,
    kernel: str = "",
    limit_bytes: int = LIMIT_BYTES,
) -> Target:
    """Run a program that `opkit cc` has linked, recorded and checked.

    Raises:
        UsageError: there is no such program, or it has launched nothing that was to be recorded.
    """
    found = runtime.find_program(program)
    with tempfile.TemporaryDirectory(prefix="opkit-debug-") as name:
        options: dict[str, str | int | None] = {
            "chip": chip,
            "threads": 1,
            "poison": 1,
            "record_report": name,
            "record_launch": launch,
            "record_kernel": kernel or None,
            "record_bytes": limit_bytes,
            **program_options(TOOLS, Path(name)),
        }
        code = runtime.run_program(found, arguments, options)
        files = sorted(Path(name).glob("*.recording"), key=_launch_number)
        launches = tuple(load_recording(path) for path in files)
        checked = findings_in(Path(name), TOOLS)
    session = _session_of(launches, str(program), code)
    session.findings = _of_kernel(session, checked.findings if checked is not None else ())
    return Target(str(program), session, _told(launches), exit_code=code)


def debug_script(
    script: Path,
    arguments: Sequence[str],
    *,
    launch: int = 0,
    kernel: str = "",
    limit_bytes: int = LIMIT_BYTES,
) -> Target:
    """Run a Python script in this process, its launches recorded and checked.

    Raises:
        UsageError: it has launched nothing that was to be recorded.
    """
    watch = Check(TOOLS)
    code: int | str | None = 1
    with tempfile.TemporaryDirectory(prefix="opkit-debug-") as folder:
        options = {"launch": launch, "kernel": kernel, "limit_bytes": limit_bytes}
        with recording(**options, spill_folder=Path(folder)) as recorder:  # type: ignore[arg-type]
            try:
                with watch:
                    code = runtime.run_script(script, arguments)
            except KernelFault as fault:
                if fault.category == "Interrupted":
                    raise
    session = _session_of(recorder.launches, str(script))
    session.findings = _of_kernel(session, watch.findings)
    number = code if isinstance(code, int) else int(code is not None)
    return Target(str(script), session, _told(recorder.launches), exit_code=number)


def _of_kernel(session: Session, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    return tuple(f for f in findings if f.kernel in (session.recording.kernel, ""))


def _session_of(launches: Sequence[Recording], title: str, code: int = 0) -> Session:
    if not launches:
        raise UsageError(
            f"{title} has launched no kernel that could be recorded"
            + (f"; it ended with {code}" if code else ""),
            help="--launch counts from 1, --kernel takes a kernel's name",
        )
    # A launch that faulted is what one looks for; otherwise the first.
    return Session(next((r for r in launches if r.fault is not None), launches[0]))


def _told(launches: Sequence[Recording]) -> tuple[str, ...]:
    return tuple(
        f"launch {r.launch}: {r.kernel}, {r.block_dim} blocks, {r.step_count} instructions"
        + (f", {r.fault.category}" if r.fault is not None else "")
        for r in launches
    )


def _launch_number(path: Path) -> tuple[str, int]:
    process, _, number = path.stem.rpartition("-")
    return process, int(number)


def _final(
    session: Session, name: str, dtype: DType, shape: tuple[int, ...]
) -> NDArray[Any] | None:
    """Return an output as a launch that faulted has left it."""
    tensor = session.names.tensors.get(name)
    if tensor is None:
        return None
    raw = session.recording.read(
        session.recording.step_count, "GM", tensor.address, tensor.size_bytes
    )
    return None if raw is None else np.frombuffer(raw, dtype.numpy).reshape(shape)


def _wrong(
    actual: NDArray[Any], golden: NDArray[Any], dtype: DType, standard: Standard
) -> tuple[NDArray[np.bool_], int | None]:
    """Return which elements are off by more than the standard gives one of them, and the worst."""
    wide = widen(actual, dtype).reshape(-1)
    wanted = np.asarray(golden).reshape(-1)
    if not is_float(dtype):
        unequal = np.asarray(wide != wanted)
        return unequal, int(np.argmax(unequal)) if unequal.any() else None
    second = golden if standard.needs_second else None
    judged = compare(actual, golden, dtype=dtype.name, standard=standard, second=second)
    if judged.passed or judged.worst is None:
        return np.zeros(wide.shape, np.bool_), None
    limit = standard.element_limit(dtype)
    with np.errstate(all="ignore"):
        error = np.abs(wide - wanted) / (np.abs(wanted) + 1e-7)
    unlike = np.isnan(wide) != np.isnan(wanted)
    unlike |= np.isinf(wide) != np.isinf(wanted)
    off = np.asarray((error > limit) | unlike)
    # Where something is no number at all, that comes first: the rest may be rounding.
    place = judged.worst.index
    worst = int(np.argmax(unlike)) if unlike.any() else 0
    if not unlike.any():
        worst = int(np.ravel_multi_index(place, golden.shape)) if golden.shape else 0
    off[worst] = True
    return off, worst


def _precision(
    session: Session, reference: Any, library: runtime.Library, standard: Standard
) -> Reason | None:
    """Return the first step whose rounding exceeds its share, by `opkit test --explain`."""
    try:
        found = explain_case(reference, library, standard)
    except UsageError:
        return None
    for explanation in found:
        culprit = explanation.culprit
        if explanation.verdict != "precision" or culprit is None:
            continue
        text = (
            f"{culprit.op} is {culprit.error:.3g} off its value in double precision, more than its"
            f" share of {explanation.share:.3g}"
        )
        steps = np.flatnonzero(session.recording.number_of == culprit.instruction)
        mine = [int(s) for s in steps if session.recording.core_of[s] == explanation.block]
        step = mine[0] if mine else None
        return Reason("precision", Path(culprit.file), culprit.line, step, text)
    return None
