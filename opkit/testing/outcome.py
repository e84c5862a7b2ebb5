"""What a golden makes of a case's inputs, and how large numbers become on its way."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from opkit.dtypes import DType
from opkit.errors import OpkitError
from opkit.schema import OpSpec
from opkit.testing.cases import Case, make_inputs, output_tensors
from opkit.testing.numbers import Array, format_numbers, is_float, measured
from opkit.testing.references import Reference

__all__ = ["Outcome", "is_in_range", "outcome_of", "types_of_outputs"]


@dataclass(frozen=True)
class Outcome:
    """What the golden makes of a case's inputs."""

    outputs: tuple[Array, ...]
    largest_whole: float
    """Largest integer on the way; 0 where none was seen."""
    largest_fraction: float
    rounds: bool
    """Whether anything is rounded to a whole number."""
    decides: bool
    """Whether values are compared, the larger of them chosen or asked for their sign."""
    thresholds: tuple[float, ...]
    """The numbers that they are compared with, in order."""


def outcome_of(reference: Reference, case: Case) -> Outcome | None:
    """Return what the golden makes of a case; None where it fails."""
    try:
        inputs = make_inputs(case)
        asked = replace(reference, case=case)
        outputs, _ = asked.whole(inputs)
        seen = measured(asked.evaluation(inputs))
    except (OpkitError, MemoryError):
        return None
    return Outcome(
        outputs,
        seen.largest_whole,
        seen.largest_fraction,
        seen.rounds,
        seen.decides,
        tuple(sorted(seen.thresholds)),
    )


def types_of_outputs(case: Case, spec: OpSpec) -> list[DType]:
    """Return the type of each tensor that the operator gives."""
    return [dtype for _, dtype in output_tensors(case, spec)]


def is_in_range(outcome: Outcome, case: Case, spec: OpSpec) -> bool:
    """Whether no result leaves its type."""
    return all(map(_fits, outcome.outputs, types_of_outputs(case, spec)))


def _fits(output: Array, dtype: DType) -> bool:
    if output.size == 0 or dtype.name == "bool" or output.dtype.kind not in "iuf":
        return True
    largest = max(-float(output.min()), float(output.max()))
    if is_float(dtype):
        return not largest > format_numbers(dtype.name)["largest"] / 2
    limits = np.iinfo(np.dtype(dtype.numpy))
    return limits.min <= int(output.min()) and int(output.max()) <= limits.max
