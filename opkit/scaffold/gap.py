"""Kernels without a formula: what of them follows from the shapes that the prototype says."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from opkit.chips import Chip
from opkit.scaffold.formula import EVENTS
from opkit.scaffold.shapes import default_rule
from opkit.schema import OpSpec

__all__ = ["Layout", "blank_layout"]


@dataclass(frozen=True)
class Layout:
    """How a kernel walks its tensors."""

    kind: Literal["elementwise", "rowwise"]
    per_row: frozenset[str]
    """Outputs with one value per row."""
    infers_largest: bool = False
    """No output has a `shape`: each gets the largest input's, not the first's."""


def blank_layout(spec: OpSpec, *, chips: Sequence[Chip]) -> Layout | None:
    """Return how a kernel without a formula walks its tensors; None where that does not follow.

    Element by element where every output has the inputs' shape or what they broadcast to; row by
    row where one reduces the last axis. An optional input is walked where it is given.
    """
    required = {tensor.name for tensor in spec.inputs if tensor.param_type == "required"}
    if not required or any(tensor.param_type == "dynamic" for tensor in spec.inputs):
        return None
    if any(output.param_type != "required" for output in spec.outputs):
        return None
    if not all(chip.has_data_copy_pad for chip in chips):
        return None
    if max(len(spec.inputs), len(spec.outputs)) > EVENTS:
        return None
    per_row = set()
    for output in spec.outputs:
        rule = default_rule(spec, output)
        if rule is None or rule.kind not in ("same", "broadcast", "reduce"):
            return None
        if not required.issuperset(rule.tensors):
            return None
        if rule.kind != "reduce":
            continue
        if rule.options["axis"] != (-1,) or rule.tensors[0] != spec.inputs[0].name:
            return None
        per_row.add(output.name)
    unsaid = [output for output in spec.outputs if output.shape is None]
    if per_row or len(spec.inputs) == 1 or len(unsaid) < len(spec.outputs):
        return Layout("rowwise" if per_row else "elementwise", frozenset(per_row))
    return Layout("elementwise", frozenset(), infers_largest=True)
