"""The shapes of an operator's outputs as Python expressions, for torch's fake tensors."""

from __future__ import annotations

from opkit.schema import OpSpec

__all__ = ["output_shapes"]


def output_shapes(spec: OpSpec) -> tuple[str, ...]:
    """Return one expression per output, over the inputs and the helpers of `_torch.py`.

    The rule is InferShape's: a formula's output has the inputs' broadcast shape; one that holds a
    value per row lacks its last axis, or has 1 there with keepdims. Without a formula it is the
    first input's shape.

    Raises:
        SpecError: a formula is wrong.
    """
    if not spec.inputs:
        return tuple("torch.Size(())" for _ in spec.outputs)
    if not spec.has_formula:
        return tuple(f"{spec.inputs[0].name}.shape" for _ in spec.outputs)
    from opkit.scaffold import formula

    parsed = formula.parse(spec)
    full = [tensor.name for tensor in spec.inputs if tensor.name not in parsed.row_inputs]
    if not full:
        return tuple(f"{spec.inputs[0].name}.shape" for _ in spec.outputs)
    arguments = ", ".join(full)
    whole = f"{full[0]}.shape" if len(full) == 1 else f"_broadcast_shape({arguments})"
    return tuple(
        f"_row_shape({whole}, keepdims={output.keepdims})" if output.per_row else whole
        for output in parsed.outputs
    )
