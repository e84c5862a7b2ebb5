"""Formulas as a torch function: what second and higher derivatives are taken of."""

from __future__ import annotations

from opkit.algebra import to_torch
from opkit.schema import OpSpec

from .reader import ParsedOutput, parse

__all__ = ["torch_source"]


def torch_source(spec: OpSpec) -> str:
    """Return a Python function `_formula_<name>` that computes an operator's outputs with torch.

    It takes the inputs, then the attributes, all by position, and returns a tuple; every step is
    torch's own, so autograd goes through it any number of times.

    Raises:
        SpecError: a formula is wrong.
    """
    parsed = parse(spec)
    names = [*(tensor.name for tensor in spec.inputs), *(attr.name for attr in spec.attrs)]
    tiles = [tensor.name for tensor in spec.inputs if tensor.name not in parsed.row_inputs]
    lines = [f"def _formula_{spec.name}({', '.join(f'{name}: Any' for name in names)}) -> Any:"]
    lines += [f"    {attr.name} = torch.as_tensor({attr.name})" for attr in spec.attrs]
    lines.append(f"    shape_ = _broadcast_shape({', '.join(tiles)})")
    # One value per row: without the last axis, or with 1 there.
    lines += [
        f"    {name} = {name}.reshape((*shape_[:-1], 1))" for name in sorted(parsed.row_inputs)
    ]
    results = ", ".join(_result(output) for output in parsed.outputs)
    lines.append(f"    return ({results},)")
    return "\n".join(lines)


def _result(output: ParsedOutput) -> str:
    # The gradient's own formulas: derived in forms that neither cancel nor overflow.
    text = to_torch(output.expression, columns="shape_[-1]")
    if not output.expression.has("input", "attr"):
        text = f"torch.as_tensor({text})"
    if not output.per_row:
        return f"({text}).expand(shape_)"
    row = f"({text}).expand((*shape_[:-1], 1))"
    return row if output.keepdims else f"{row}.squeeze(-1)"
