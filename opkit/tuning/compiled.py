"""Tuning what `opkit compile` emits: tiles, buffers, cores, schedules, fusion, products' blocks."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

import opkit
from opkit.chips import Chip, find_chip
from opkit.compiler import (
    Choices,
    ChoicesRow,
    Graph,
    bucket_of,
    compile_stages,
    random_arrays,
    read_choices,
)
from opkit.compiler import compile as compile_program
from opkit.errors import KernelFault, OpkitError, cannot_write
from opkit.executor import Work
from opkit.files import write_aside
from opkit.tuning.measurement import Measurement, measure
from opkit.tuning.session import Subject, TuningReport
from opkit.tuning.space import Candidate, Knob, Space

__all__ = ["compiled_subject", "save_choices"]

_SECONDS = 300.0
_FORMAT = 1


@dataclass(frozen=True)
class _Setup:
    graph: Graph
    sizes: Mapping[str, int]
    chip: str
    knobs: tuple[str, ...]


def compiled_subject(
    graph: Graph, sizes: Mapping[str, int], *, chip: Chip | str, knobs: tuple[str, ...] = ()
) -> Subject:
    """Return a traced program for named sizes as something to tune.

    Args:
        knobs: `tiles=1,2,4` in place of a knob's usual values.
    Raises:
        UsageError: there is no such knob.
    """
    target = find_chip(chip) if isinstance(chip, str) else chip
    space = Space(_knobs(graph, target)).narrowed(knobs)
    names = tuple(knob.name for knob in space.knobs)
    shown = "x".join(f"{name}={size}" for name, size in sorted(sizes.items()))
    types = "_".join(dict.fromkeys(tensor.dtype for tensor in graph.inputs))
    decides = [opkit.__version__, target.name, shown, str(graph), *names]
    decides += list(compile_stages(graph, target).texts.values())
    return Subject(
        name="-".join(part for part in (graph.name, types, shown) if part),
        chip=target.name,
        space=space,
        work=Work(_begin, _Setup(graph, dict(sizes), target.name, names), seconds=_SECONDS),
        identity=hashlib.sha256("\n".join(decides).encode()).hexdigest()[:16],
    )


def save_choices(path: Path, graph: Graph, sizes: Mapping[str, int], report: TuningReport) -> Path:
    """Write the best choices to a program's tuning file, and return it; other rows stay.

    Raises:
        UsageError: the file is damaged.
        SetupError: the disk is full.
    """
    start, best = report.start, report.best
    rows = read_choices(path) if path.exists() else ()
    dtypes = tuple(tensor.dtype for tensor in graph.inputs)
    kept = [row for row in rows if not row.fits(graph.name, report.chip, dtypes, sizes)]
    if best.candidate != start.candidate:
        note = f"{start.measurement.task_us:.2f} -> {best.measurement.task_us:.2f} us by the model"
        names = tuple(knob.name for knob in report.space.knobs)
        buckets = {name: bucket_of(size) for name, size in sizes.items()}
        choices = _choices(names, best.candidate)
        kept.append(ChoicesRow(graph.name, report.chip, dtypes, buckets, choices, note))
    document = {"format": _FORMAT, "rows": [row.to_json() for row in kept]}
    try:
        write_aside(path, (json.dumps(document, indent=2) + "\n").encode())
    except OSError as err:
        raise cannot_write(path, err) from err
    return path


def _knobs(graph: Graph, chip: Chip) -> tuple[Knob, ...]:
    stages = compile_stages(graph, chip)
    kinds = {group.kind for group in stages.fused.groups}
    found: list[Knob] = []
    if "vector" in kinds:
        found.append(Knob("tiles", (0, 1, 2, 3, 4, 5, 6, 8, 10, 12, 16), 0))
        found.append(Knob("buffers", (0, 1, 2, 3, 4), 0))
        if any(len(kernels) > 1 for kernels in stages.kernels.values()):
            found.append(Knob("schedule", ("", "rows", "parts"), ""))
        if any(len(group.nodes) > 1 for group in stages.fused.groups if group.kind == "vector"):
            found.append(Knob("fusion", ("", "none"), ""))
    if "matmul" in kinds:
        blocks = (0, 16, 32, 48, 64, 80, 96, 112, 128, 160, 192, 224, 256)
        found += [Knob("base_m", blocks, 0), Knob("base_n", blocks, 0)]
        if any(kernel.uses_object for kernel in stages.products.values()):
            found.append(Knob("depth", (0, 1, 2, 3, 4, 6, 8), 0))
        else:
            found.append(Knob("band", (0, 1, 2, 3, 4, 5, 6, 8, 10), 0))
    limit = chip.count("cores.aic" if kinds == {"matmul"} else "cores.aiv")
    shares = (round(limit * share) for share in (1, 0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.25, 0.1))
    found.append(Knob("cores", (0, *dict.fromkeys(max(1, share) for share in shares)), 0))
    return tuple(found)


def _choices(names: tuple[str, ...], candidate: Candidate) -> Choices:
    return Choices(**dict(zip(names, candidate, strict=True)))  # type: ignore[arg-type]


def _begin(setup: _Setup, folders: Mapping[str, Path]) -> Callable[[Any], Measurement]:
    from opkit import runtime

    runtime.configure(setup.chip, poison=True, threads=1, allow_raw_writes=False)
    arrays = random_arrays(setup.graph, setup.sizes)
    judged: dict[bytes, str] = {}

    def run(case: tuple[str, Candidate]) -> Measurement:
        kind, candidate = case
        choices = _choices(setup.knobs, candidate)
        try:
            program = compile_program(setup.graph, chip=setup.chip, choices=choices)
            with runtime.time_limit(60.0):
                if kind == "check":
                    return _checked(program, arrays)
                return _timed(program, arrays, judged)
        except OpkitError as error:
            if error.exit_code == OpkitError.exit_code:
                raise
            return Measurement(0.0, wrong=str(error).splitlines()[0])

    return run


def _timed(program: Any, arrays: list[Any], judged: dict[bytes, str]) -> Measurement:
    from opkit.compiler import verify
    from opkit.profiling import Profile

    with Profile(event_limit=0) as session:
        outputs = program(*arrays)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    key = hashlib.blake2b(b"".join(np.asarray(array).tobytes() for array in outputs)).digest()
    if key not in judged:
        # The same bits were verified before: they are not verified again.
        different = verify(program, arrays)
        judged[key] = "" if different is None else str(different)
    return measure(session.timelines, wrong=judged[key])


def _checked(program: Any, arrays: list[Any]) -> Measurement:
    from opkit.sanitizer import Check

    session = Check()
    try:
        with session:
            program(*arrays)
    except KernelFault as fault:
        return Measurement(0.0, findings=(fault.id,))
    gaps = [gap.message for gap in session.gaps]
    found = dict.fromkeys(finding.id for finding in session.findings)
    return Measurement(0.0, wrong=gaps[0] if gaps else "", findings=tuple(found))
