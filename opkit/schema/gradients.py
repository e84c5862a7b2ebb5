"""Operators that the prototype names as the gradient of another."""

from __future__ import annotations

from collections.abc import Sequence

from opkit.schema.json_text import JsonDocument
from opkit.schema.spec import OpSpec

__all__ = ["check_gradients", "gradient_gap"]


def check_gradients(document: JsonDocument, specs: Sequence[OpSpec]) -> None:
    """Check that every operator named by `gradient` is there and can be called as one.

    Raises:
        SpecError: it is not; with the pointer to the field.
    """
    by_op = {spec.op: spec for spec in specs}
    for spec in specs:
        if not isinstance(spec.gradient, str):
            continue
        pointer = f"{spec.pointer}/gradient"
        found = by_op.get(spec.gradient)
        if found is None or found is spec:
            others = tuple(other for other in by_op if other != spec.op)
            raise document.error(
                f'there is no other operator "{spec.gradient}" in this file',
                pointer,
                help=f"there are: {', '.join(others)}" if others else "add it to the list",
            )
        gap = gradient_gap(spec, found)
        if gap is not None:
            raise document.error(
                f"{found.op} cannot be the gradient of {spec.op}: {gap}",
                pointer,
                help="its inputs are grad_<output> of each output that it needs, inputs and outputs"
                " of the operator; its outputs grad_<input>",
            )


def gradient_gap(spec: OpSpec, gradient: OpSpec) -> str | None:
    """Return why an operator cannot compute the gradients of another; None where it can."""
    inputs = {tensor.name for tensor in spec.inputs}
    outputs = {tensor.name for tensor in spec.outputs}
    known = inputs | outputs | {f"grad_{name}" for name in outputs}
    for tensor in gradient.inputs:
        if tensor.name not in known:
            return f'its input "{tensor.name}" is neither grad_<output>, an input nor an output'
    for tensor in gradient.outputs:
        if tensor.name.removeprefix("grad_") not in inputs or not tensor.name.startswith("grad_"):
            return f'its output "{tensor.name}" is not grad_<input>'
    attrs = {attr.name for attr in spec.attrs}
    for attr in gradient.attrs:
        if attr.name not in attrs:
            return f'{spec.op} has no attribute "{attr.name}"'
    if any(t.param_type != "required" for t in (*gradient.inputs, *gradient.outputs)):
        return "all of its tensors have to be required"
    return None
