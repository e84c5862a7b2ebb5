"""Whether results that miss a standard are right for a kernel that computes in half precision.

Kernels of a prototype compute in float32; what only an OpDef describes may compute in its tensors'
own type. It is right then if the same instructions in single precision meet the standard, and the
results are off by no more than roundings of that type make of it, by
`opkit.testing.numbers.condition`.
What it computes in float32 of such tensors has their roundings on its way. A whole number that it
rounds has one of two neighbours, which no wider run tells apart: the roundings alone count there.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from opkit.dtypes import DType
from opkit.errors import OpkitError
from opkit.testing.cases import output_tensors
from opkit.testing.explanation import MOST_ELEMENTS, WideRuns
from opkit.testing.judgement import OutputResult, judge
from opkit.testing.launching import Library
from opkit.testing.numbers import (
    ROUNDED,
    Allowance,
    Array,
    Input,
    Standard,
    allowance,
    format_numbers,
    is_float,
    narrow,
    widen,
)
from opkit.testing.references import Reference

__all__ = ["is_right_in_halves"]

_HALVES = frozenset({"float16", "bfloat16"})


def _half_step(reference: Reference, dtype: DType) -> float | None:
    """Return half a step of the type that an output is computed in; None where that is no half."""
    case, spec = reference.case, reference.spec
    floats = [one.name for one in case.dtypes[: len(spec.inputs)] if is_float(one)]
    halves = [name for name in floats if name in _HALVES]
    name = dtype.name if dtype.name in _HALVES or not halves else halves[0]
    return 2.0 ** -(format_numbers(name)["fraction"] + 1) if name in _HALVES else None


def is_right_in_halves(
    reference: Reference,
    library: Library,
    standard: Standard,
    inputs: Sequence[Input],
    actual: Sequence[Array],
    outputs: Sequence[OutputResult],
    shapes: Sequence[tuple[int, ...] | None] | None,
) -> bool:
    """Return whether every output that misses the standard is as right as its type allows.

    Args:
        inputs: of the case, as the kernel read them.
        actual: what the kernel wrote.
        outputs: how it was judged.
        shapes: of the outputs, where the operator does not infer them.
    """
    tensors = output_tensors(reference.case, reference.spec)
    missed = [number for number, output in enumerate(outputs) if not output.comparison.passed]
    elements = sum(array.size for array in actual)
    steps = {number: _half_step(reference, tensors[number][1]) for number in missed}
    floats = [number for number in missed if is_float(tensors[number][1])]
    if (floats and elements > MOST_ELEMENTS) or None in steps.values():
        return False
    evaluation = reference.evaluation(inputs)
    for number in missed:
        dtype = tensors[number][1]
        step = steps[number]
        assert step is not None
        allowed = allowance(evaluation, step=step)[number]
        values = widen(actual[number].reshape(-1), dtype)
        if not is_float(dtype):
            if not _are_neighbours(values, allowed, outputs[number]):
                return False
            continue
        relative = standard.numbers_for(dtype)["T"]
        rounded = widen(narrow(allowed.golden, dtype), dtype)
        with np.errstate(invalid="ignore"):
            close = np.abs(values - allowed.golden) <= relative * np.abs(allowed.golden)
        close |= (values == rounded) | (np.isnan(values) & np.isnan(rounded))
        if not (close | allowed.excused(values, np.arange(values.size), dtype, relative)).all():
            return False
    if not floats:
        return True
    runs = WideRuns(reference.case, library, inputs, [dtype for _, dtype in tensors], shapes)
    try:
        single = runs.wide_run(False)
        wide = [
            narrow(one.wide, dtype) if number in floats else one.values
            for number, (one, (_, dtype)) in enumerate(zip(single.outputs, tensors, strict=True))
        ]
        judged = judge(reference, inputs, wide, standard)
    except OpkitError:
        return False
    return all(
        output.comparison.passed
        for output, (_, dtype) in zip(judged, tensors, strict=True)
        if is_float(dtype)
    )


def _are_neighbours(values: Array, allowed: Allowance, output: OutputResult) -> bool:
    """Whether whole numbers are what a golden with a fraction rounds to, up to its errors."""
    if output.comparison.standard != ROUNDED.name:
        return False
    numbers = ROUNDED.numbers[output.comparison.dtype]
    distance = np.abs(values - np.clip(allowed.golden, numbers["lowest"], numbers["highest"]))
    return bool(((distance < 1.0) & (distance <= 0.5 + allowed.errors)).all())
