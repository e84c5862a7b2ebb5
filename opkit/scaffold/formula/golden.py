"""The reference implementation: a NumPy float64 module, which shares nothing with the lowering but
`stabilise`."""

from __future__ import annotations

from opkit.schema import AttrSpec, OpSpec

from .derive import backward
from .functions import RowInput
from .reader import ParsedFormulas, ParsedOutput, parse
from .stable import stabilise
from .text import to_numpy

__all__ = ["golden_source"]

_HEADER = '''"""Reference results in NumPy float64, written out from the formulas of {source}."""

from __future__ import annotations

import numpy as np


def _wide(value):
    """Return an array that holds the reference's arithmetic: float64, or int64 for integers."""
    value = np.asarray(value)
    return value.astype(np.int64 if value.dtype.kind in "iu" else np.float64)
'''

_HELPERS = {
    "_sigmoid(": '''

def _sigmoid(u):
    """Return 1 / (1 + exp(-u)), without overflow."""
    small = np.exp(-np.abs(u))
    return np.where(u >= 0, 1.0, small) / (1.0 + small)
''',
    "_softplus(": '''

def _softplus(u):
    """Return log(1 + exp(u)), without overflow."""
    return np.maximum(u, 0.0) + np.log1p(np.exp(-np.abs(u)))
''',
}

_ROW_HELPER = '''

def _row(value, shape):
    """Return one value per row, with a last axis of length 1."""
    return value.reshape((*shape[:-1], 1))
'''


def golden_source(spec: OpSpec, *others: OpSpec) -> str | None:
    """Return a Python module with one function per operator, and one for the backward operator of
    each.

    A function takes the inputs in order and the attributes by keyword, and returns the output, or a
    tuple of them.

    Args:
        spec: an operator; others: further operators of the same project.
    Returns:
        None if none of them has formulas.
    Raises:
        SpecError: a formula is wrong.
    """
    wanted: dict[str, OpSpec] = {}
    for forward in (spec, *others):
        if not forward.has_formula:
            continue
        wanted.setdefault(forward.name, forward)
        derived = backward(forward)
        if derived is not None and not any(derived.name == other.name for other in others):
            wanted.setdefault(derived.name, derived)
    if not wanted:
        return None
    functions = "".join(_function(parse(one)) for one in wanted.values())
    helpers = "".join(text for name, text in _HELPERS.items() if name in functions)
    if "_row(" in functions:
        helpers += _ROW_HELPER
    return _HEADER.format(source=spec.source.name) + helpers + functions


def _function(parsed: ParsedFormulas) -> str:
    spec = parsed.spec
    parameters = [tensor.name for tensor in spec.inputs]
    if spec.attrs:
        parameters.append("*")
    parameters += [_parameter(attr) for attr in spec.attrs]
    tiles = [t.name for t in spec.inputs if t.name not in parsed.row_inputs]
    formulas = "\n    ".join(f"{o.name} = {o.text}" for o in parsed.outputs)
    lines = [
        "",
        "",
        f"def {spec.name}({', '.join(parameters)}):",
        f'    """Return the outputs of {spec.op}.',
        "",
        f"    {formulas}",
        '    """',
    ]
    lines += [f"    {tensor.name} = _wide({tensor.name})" for tensor in spec.inputs]
    lines.append(f"    _shape = np.broadcast_shapes({', '.join(f'{t}.shape' for t in tiles)})")
    lines += [f"    {name} = _row({name}, _shape)" for name in sorted(parsed.row_inputs)]
    if not any(output.per_row for output in parsed.outputs):
        # NumPy refuses to take the maximum of no elements, though there is then none to give back.
        empty = ", ".join(["np.zeros(_shape)"] * len(parsed.outputs))
        lines += ["    if 0 in _shape:", f"        return {empty}"]
    lines.append('    with np.errstate(all="ignore"):')
    results = []
    for index, output in enumerate(parsed.outputs):
        result = f"_result{index}"
        results.append(result)
        lines.append(f"        {result} = {_expression(output)}")
    for output, result in zip(parsed.outputs, results, strict=True):
        lines += [f"    {line}" for line in _shaping(output, result)]
    lines.append(f"    return {', '.join(results)}")
    return "\n".join(lines) + "\n"


def _parameter(attr: AttrSpec) -> str:
    if attr.required or attr.default is None:
        return attr.name
    return f"{attr.name}={attr.default!r}"


def _expression(output: ParsedOutput) -> str:
    # The stable form: as written, exp(x)/(1 + exp(x)) would be NaN in float64 too, from x = 710 on.
    expression = stabilise(output.expression).replace(RowInput, lambda symbol: symbol)
    return to_numpy(expression, columns="_shape[-1]")


def _shaping(output: ParsedOutput, result: str) -> list[str]:
    if not output.per_row:
        return [f"{result} = np.broadcast_to({result}, _shape)"]
    if output.keepdims:
        return [f"{result} = np.broadcast_to({result}, (*_shape[:-1], 1))"]
    return [f"{result} = np.broadcast_to({result}, (*_shape[:-1], 1))[..., 0]"]
