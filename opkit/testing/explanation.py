"""Why a case fails: the same instructions once more in single and in double precision.

The emulator computes every float instruction a second time in a wider type, beside the run and
without changing it. Where the wider results are right, the precision is too low; where they are as
wrong, the algorithm is. Of the worst element the instructions that led to it are told with their
values, and the first whose error exceeds its share of what the standard allows.

Decisions are the run's own: comparisons, masks, integers, roundings to whole numbers. So are the
constants, as the kernel has them in their type.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opkit import runtime
from opkit.dtypes import DType
from opkit.errors import UsageError
from opkit.testing.cases import Case, is_unsaid, make_inputs, output_tensors
from opkit.testing.launching import Library, is_prototype
from opkit.testing.numbers import (
    Array,
    Comparison,
    Input,
    Standard,
    compare,
    is_float,
    narrow,
    tensors_of,
    widen,
)
from opkit.testing.references import Reference

__all__ = [
    "MOST_ELEMENTS",
    "Explanation",
    "Step",
    "WideRuns",
    "explain_case",
    "explanation_text",
]

MOST_ELEMENTS = 4 << 20
"""Elements of all tensors at the most: a wider run takes some hundred bytes for each."""
_TOLD_STEPS = 24


@dataclass(frozen=True)
class Step:
    """One instruction's result on the way to the worst element."""

    instruction: int
    """Its number on its core."""
    op: str
    file: str
    line: int
    operands: tuple[float, ...]
    scalar: float | None
    actual: float
    wide: float
    """The result in double precision."""
    source: str
    """What it read from global memory, such as `x[12]`; empty for anything but a copy."""

    @property
    def error(self) -> float:
        """How far the result is from its wider form, relative to that."""
        if self.actual == self.wide or (np.isnan(self.actual) and np.isnan(self.wide)):
            return 0.0
        error = abs(self.actual - self.wide) / (abs(self.wide) + 1e-7)
        return float("inf") if np.isnan(error) else float(error)


@dataclass(frozen=True)
class Explanation:
    """Why one output fails."""

    output: str
    single: Comparison
    """The same instructions in single precision, against the golden."""
    double: Comparison
    """And in double precision."""
    verdict: str
    """`precision`, `algorithm`, `unwritten` or `unknown`."""
    unwritten: int
    """Elements that no copy to global memory wrote."""
    index: tuple[int, ...]
    """The worst element."""
    actual: float
    golden: float
    wide: float
    block: int
    """The core that wrote it; -1: none."""
    tile: int
    """How many copies to global memory that core had made before."""
    steps: tuple[Step, ...]
    """What led to it, in program order."""
    culprit: Step | None
    """The first step whose error exceeds its share of what the standard allows."""
    share: float
    """That share."""
    unfollowed: tuple[str, ...]
    """Instructions whose results count as exact, because their wider form is not known."""


def explain_case(
    reference: Reference, library: Library, standard: Standard
) -> tuple[Explanation, ...]:
    """Return why each float output of a failing case fails; none where all of them pass.

    Raises:
        UsageError: the case is too large.
    """
    case = reference.case
    inputs = make_inputs(case)
    elements = sum(array.size for array in tensors_of(inputs))
    if elements > MOST_ELEMENTS:
        raise UsageError(
            f"{case.name}: {elements} elements are too many to explain, at the most"
            f" {MOST_ELEMENTS}: choose a smaller case"
        )
    goldens, _ = reference.whole(inputs)
    tensors = output_tensors(case, reference.spec)
    dtypes = [dtype for _, dtype in tensors]
    is_told = not is_prototype(reference.spec) and len(goldens) == len(tensors)
    shapes = [None if is_unsaid(one) else one.shape for one in goldens] if is_told else None
    runs = WideRuns(case, library, inputs, dtypes, shapes)
    single, double = runs.wide_run(False), runs.wide_run(True)
    found = []
    for number, (name, dtype) in enumerate(tensors):
        if not is_float(dtype) or double.outputs[number].shape != goldens[number].shape:
            continue

        def judged(values: Array, dtype_name: str = dtype.name, number: int = number) -> Comparison:
            return compare(
                values,
                goldens[number],
                dtype=dtype_name,
                standard=standard,
                second=goldens[number] if standard.needs_second else None,
            )

        actual = judged(double.outputs[number])
        if actual.passed or actual.worst is None:
            continue
        found.append(
            _explain_output(
                name,
                runs,
                number,
                (single, double),
                actual,
                (
                    judged(narrow(single.wide[number], dtype)),
                    judged(narrow(double.wide[number], dtype)),
                ),
                standard.element_limit(dtype),
            )
        )
    return tuple(found)


@dataclass(frozen=True)
class _WideRun:
    outputs: list[Array]
    """What the kernel wrote."""
    wide: list[Array]
    """In the wider type; the actual values where no wider one is known."""
    cores: list[Array]
    stores: list[Array]
    unfollowed: tuple[str, ...]


class WideRuns:
    """Launches of one case with the wider run beside them."""

    def __init__(
        self,
        case: Case,
        library: Library,
        inputs: Sequence[Input],
        dtypes: Sequence[DType],
        shapes: Sequence[tuple[int, ...] | None] | None = None,
    ) -> None:
        """Take a case, and the shapes of its outputs where the operator does not infer them."""
        self.case = case
        self.library = library
        self.inputs = inputs
        self.dtypes = dtypes
        self.shapes = shapes

    @contextmanager
    def launched(self, is_double: bool, core: int = -1) -> Iterator[list[Array]]:
        import opkit.emulator._emulator as emulator

        before = runtime.configuration()
        # The wider run is one host thread's: its memory has no locks.
        runtime.configure(threads=1)
        emulator.begin_wide(is_double=is_double, traced_core=core)
        try:
            names = [dtype.name for dtype in self.case.dtypes[: len(self.inputs)]]
            yield self.library.run(
                self.case.op,
                self.inputs,
                dict(self.case.attrs),
                dtypes=names,
                out_shape=self.shapes,
                out_dtype=[dtype.name for dtype in self.dtypes] if self.shapes else None,
            )
        finally:
            emulator.end_wide()
            runtime.configure(threads=before.threads)

    def wide_run(self, is_double: bool) -> _WideRun:
        import opkit.emulator._emulator as emulator

        run = _WideRun([], [], [], [], ())
        with self.launched(is_double) as outputs:
            for output, dtype in zip(outputs, self.dtypes, strict=True):
                wide, cores, stores = (
                    np.asarray(part).reshape(output.shape) for part in emulator.wide_values(output)
                )
                if is_float(dtype):
                    wide = np.where(cores < 0, widen(output, dtype), wide)
                run.outputs.append(output)
                run.wide.append(wide)
                run.cores.append(cores)
                run.stores.append(stores)
            lines = tuple(
                f"{one['op']} at {one['file']}:{one['line']}" for one in emulator.wide_unfollowed()
            )
        return _WideRun(run.outputs, run.wide, run.cores, run.stores, lines)

    def trace(self, output: int, element: int, core: int) -> tuple[Step, ...]:
        import opkit.emulator._emulator as emulator

        with self.launched(True, core) as outputs:
            records = emulator.wide_trace(outputs[output], element)
        return tuple(
            Step(
                instruction=record["instruction"],
                op=record["op"],
                file=record["file"],
                line=record["line"],
                operands=tuple(record["operands"]),
                scalar=record["scalar"],
                actual=record["actual"],
                wide=record["wide"],
                source=self._tensor_at(record["gm_address"]),
            )
            for record in records
        )

    def _tensor_at(self, address: int) -> str:
        names = self.case.input_names or tuple(f"input {n}" for n in range(len(self.inputs)))
        for name, value in zip(names, self.inputs, strict=True):
            for array in tensors_of([value]):
                offset = address - array.ctypes.data
                if 0 <= offset < array.nbytes:
                    index = np.unravel_index(offset // array.itemsize, array.shape)
                    return f"{name}[{', '.join(str(int(n)) for n in index)}]"
        return "global memory" if address else ""


def _explain_output(
    name: str,
    runs: WideRuns,
    number: int,
    wide: tuple[_WideRun, _WideRun],
    actual: Comparison,
    judged: tuple[Comparison, Comparison],
    limit: float,
) -> Explanation:
    _, double = wide
    worst = actual.worst
    assert worst is not None
    cores = double.cores[number]
    unwritten = int((cores < 0).sum())
    core = int(cores[worst.index])
    element = int(np.ravel_multi_index(worst.index, cores.shape)) if cores.shape else 0
    steps = runs.trace(number, element, core) if core >= 0 else ()
    computing = [step for step in steps if not step.source]
    culprit, share = None, 0.0
    for place, step in enumerate(computing, start=1):
        share = limit * place / len(computing)
        if step.error > share:
            culprit = step
            break
    if core < 0:
        verdict = "unwritten"
    elif judged[1].passed:
        verdict = "precision"
    elif double.unfollowed:
        verdict = "unknown"
    else:
        verdict = "algorithm"
    return Explanation(
        output=name,
        single=judged[0],
        double=judged[1],
        verdict=verdict,
        unwritten=unwritten,
        index=worst.index,
        actual=float(worst.actual),
        golden=float(worst.golden),
        wide=float(double.wide[number][worst.index]),
        block=core,
        tile=int(double.stores[number][worst.index]),
        steps=steps,
        culprit=culprit,
        share=share,
        unfollowed=double.unfollowed,
    )


def explanation_text(explanation: Explanation, root: Path | None = None) -> str:
    """Return an explanation in words; files below `root` are named relative to it."""
    e = explanation
    place = ", ".join(map(str, e.index))
    lines = [f"  why {e.output} fails: {_verdict_text(e)}"]
    if e.unwritten and e.verdict != "unwritten":
        lines.append(f"    {e.unwritten} elements were not written by a copy that is followed")
    where = f"core {e.block}, after {e.tile} copies to global memory" if e.block >= 0 else "no core"
    lines.append(
        f"    worst at [{place}], written by {where}: got {e.actual!r}, golden {e.golden!r},"
        f" in double precision {e.wide!r}"
    )
    if e.steps:
        lines.append("    how it came about:")
        told = e.steps[-_TOLD_STEPS:]
        if len(told) < len(e.steps):
            lines.append(f"      {len(e.steps) - len(told)} instructions before these")
        lines += [f"      {_step_text(step, root)}" for step in told]
    if e.culprit is not None:
        lines.append(
            f"    the error first exceeds its share at instruction {e.culprit.instruction},"
            f" {e.culprit.op} at {_place(e.culprit, root)}: {e.culprit.error:.3g},"
            f" its share is {e.share:.3g}"
        )
    elif e.steps and e.verdict == "algorithm":
        lines.append("    no instruction's rounding explains it: each is as good as its precision")
    if e.unfollowed:
        lines.append(f"    counted as exact: {', '.join(sorted(set(e.unfollowed))[:4])}")
    return "\n".join(lines)


def _verdict_text(e: Explanation) -> str:
    if e.verdict == "unwritten":
        return f"nothing wrote {e.unwritten} of its elements, the worst one among them"
    if e.verdict == "precision":
        enough = "single" if e.single.passed else "double, not single,"
        return (
            f"the precision is too low. The same instructions in {enough} precision meet the"
            f" standard: {e.single if e.single.passed else e.double}"
        )
    text = f"the same instructions in double precision miss the standard as well: {e.double}"
    if e.verdict == "unknown":
        return f"{text}; some of them could not be followed, so this proves nothing"
    return f"the algorithm is wrong, or a constant of it. {text[0].upper()}{text[1:]}"


def _step_text(step: Step, root: Path | None) -> str:
    place = f"{step.instruction:>6}  {step.op:<14} {_place(step, root)}"
    if step.source:
        return f"{place}  {step.source} = {step.actual:.9g}"
    operands = [f"{value:.9g}" for value in step.operands]
    if step.scalar is not None:
        operands.append(f"{step.scalar:.9g}")
    return (
        f"{place}  ({', '.join(operands)}) -> {step.actual:.9g}, in double {step.wide:.9g}"
        f" (error {step.error:.2g})"
    )


def _place(step: Step, root: Path | None) -> str:
    path = Path(step.file)
    if root is not None and path.is_relative_to(root):
        path = path.relative_to(root)
    return f"{path}:{step.line}"
