"""Why a case fails: the same instructions once more in single and in double precision.

The emulator computes every float instruction a second time in a wider type, beside the run and
without changing it. Where the wider results are right, the precision is too low; where they are as
wrong, the algorithm is. Of the worst element the instructions that led to it are told with their
values, and the first whose error exceeds its share of what the standard allows.

Decisions are the run's own: comparisons, masks, integers, roundings to whole numbers. So are the
constants, as the kernel has them in their type.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from opkit.dtypes import DType
from opkit.errors import UsageError
from opkit.schema import AttrValue
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
from opkit.testing.wide_runs import Wide, beside_wide, wide_outputs

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
        if not is_float(dtype) or double.outputs[number].values.shape != goldens[number].shape:
            continue

        def judged(values: Array, dtype_name: str = dtype.name, number: int = number) -> Comparison:
            return compare(
                values,
                goldens[number],
                dtype=dtype_name,
                standard=standard,
                second=goldens[number] if standard.needs_second else None,
            )

        actual = judged(double.outputs[number].values)
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
                    judged(narrow(single.outputs[number].wide, dtype)),
                    judged(narrow(double.outputs[number].wide, dtype)),
                ),
                standard.element_limit(dtype),
            )
        )
    return tuple(found)


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
        # One that gives what was computed before knows who computes.
        self.library: Library = getattr(library, "launcher", library)
        self.inputs = inputs
        self.dtypes = dtypes
        self.shapes = shapes

    def wide_run(self, is_double: bool) -> Wide:
        """Return what a launch computes in single or in double precision.

        Raises:
            OpkitError: as the library's `run`.
        """
        # What runs in another process has its wider run there.
        apart = getattr(self.library, "run_wide", None)
        if apart is not None:
            found: Wide = apart(is_double, *self._given, **self._named)
            return _with_own_values(found, self.dtypes)
        with beside_wide(is_double=is_double):
            outputs = self.library.run(*self._given, **self._named)
            return _with_own_values(wide_outputs(outputs), self.dtypes)

    @property
    def _given(self) -> tuple[str, Sequence[Input], dict[str, AttrValue]]:
        return self.case.op, self.inputs, dict(self.case.attrs)

    @property
    def _named(self) -> dict[str, Any]:
        return {
            "dtypes": [dtype.name for dtype in self.case.dtypes[: len(self.inputs)]],
            "out_shape": self.shapes,
            "out_dtype": [dtype.name for dtype in self.dtypes] if self.shapes else None,
        }

    def trace(self, output: int, element: int, core: int) -> tuple[Step, ...]:
        import opkit.emulator._emulator as emulator

        with beside_wide(is_double=True, core=core):
            outputs = self.library.run(*self._given, **self._named)
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


def _with_own_values(found: Wide, dtypes: Sequence[DType]) -> Wide:
    """Return the outputs with the kernel's own values where no core wrote any."""
    outputs = [
        replace(one, wide=np.where(one.cores < 0, widen(one.values, dtype), one.wide))
        if is_float(dtype)
        else one
        for one, dtype in zip(found.outputs, dtypes, strict=True)
    ]
    return replace(found, outputs=tuple(outputs))


def _explain_output(
    name: str,
    runs: WideRuns,
    number: int,
    wide: tuple[Wide, Wide],
    actual: Comparison,
    judged: tuple[Comparison, Comparison],
    limit: float,
) -> Explanation:
    _, double = wide
    worst = actual.worst
    assert worst is not None
    cores = double.outputs[number].cores
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
        wide=float(double.outputs[number].wide[worst.index]),
        block=core,
        tile=int(double.outputs[number].stores[worst.index]),
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
