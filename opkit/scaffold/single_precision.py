"""Formulas in single precision: what a careful implementation of that precision gives."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opkit.errors import UsageError
from opkit.scaffold import formula
from opkit.schema import AttrValue, OpSpec

__all__ = ["formula_in_single_precision"]


def formula_in_single_precision(
    spec: OpSpec, inputs: Sequence[NDArray[Any]], attrs: Mapping[str, AttrValue]
) -> tuple[NDArray[Any], ...]:
    """Return the outputs of an operator's formulas, one rounding to float32 an operation.

    NumPy computes them, by the plan of the generated kernel and without its tiles.

    Args:
        inputs: all of them, in prototype order, shapes that broadcast.
    Raises:
        SpecError: an output has no formula.
        UsageError: an input is missing.
    """
    parsed = formula.parse(spec)
    if len(inputs) != len(spec.inputs):
        raise UsageError(f"{spec.op}: a formula has no value without all of its inputs")
    arrays = {
        tensor.name: array[..., None] if tensor.name in parsed.row_inputs else array
        for tensor, array in zip(spec.inputs, inputs, strict=True)
    }
    shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))
    if 0 in shape:
        return tuple(np.zeros(shape[:-1] if o.per_row else shape) for o in parsed.outputs)
    numbers = {n: float(v) for n, v in attrs.items() if isinstance(v, (bool, int, float))}
    results = formula.interpret(formula.lower(parsed), arrays, numbers)
    shaped = []
    for output, result in zip(parsed.outputs, results, strict=True):
        whole = np.broadcast_to(result, (*shape[:-1], 1) if output.per_row else shape)
        shaped.append(whole[..., 0] if output.per_row and not output.keepdims else whole)
    return tuple(shaped)
