"""The graph of an operator's formulas, for one combination of data types."""

from __future__ import annotations

from opkit import compiler
from opkit.errors import SpecError, UsageError
from opkit.schema import OpSpec, axis_names, free_name

__all__ = ["NUMBERS", "formula_graph_of", "leading_size", "spec_error"]

NUMBERS = ("float", "int", "bool")
"""Types of the attributes that formulas can use."""


def leading_size(spec: OpSpec) -> str:
    """Return what the product of the axes that `...` stands for is called."""
    axes = [axis for tensor in spec.inputs for axis in tensor.axes or ()]
    names = {name for axis in axes for name in axis_names(axis)}
    names |= {tensor.name for tensor in (*spec.inputs, *spec.outputs)}
    return free_name("leading", names | {attr.name for attr in spec.attrs})


def formula_graph_of(spec: OpSpec, variant: int, name: str = "") -> compiler.Graph:
    """Return the graph of an operator's formulas, for one combination of data types.

    Raises:
        SpecError: a formula is wrong, at its pointer.
    """
    leading = leading_size(spec)
    dtypes = [dtype.name for dtype in spec.variant_dtypes(variant)]
    inputs = [
        compiler.TensorSpec(
            tensor.name,
            tuple(
                axis
                if isinstance(axis, int)
                else compiler.computed_dimension(leading if axis == "..." else axis)
                for axis in tensor.axes or ()
            ),
            dtype,
        )
        for tensor, dtype in zip(spec.inputs, dtypes, strict=False)
    ]
    outputs = [
        compiler.FormulaOutput(tensor.name, tensor.formula or "", dtype)
        for tensor, dtype in zip(spec.outputs, dtypes[len(inputs) :], strict=True)
    ]
    attributes = [
        compiler.Attribute(attr.name, attr.type, attr.default)  # type: ignore[arg-type]
        for attr in spec.attrs
        if attr.type in NUMBERS
    ]
    name = name or spec.name
    narrowed = [tensor.name for tensor in inputs if tensor.dtype == "int64"]
    try:
        return compiler.formula_graph(name, inputs, outputs, attributes, narrowed=narrowed)
    except UsageError as whole:
        for index, output in enumerate(outputs):
            try:
                compiler.formula_graph(name, inputs, [output], attributes, narrowed=narrowed)
            except UsageError as err:
                raise spec_error(
                    spec, f"/output_desc/{index}/formula", err.message, err.help
                ) from err
        raise spec_error(spec, "/output_desc", whole.message, whole.help) from whole


def spec_error(spec: OpSpec, pointer: str, message: str, help: str | None) -> SpecError:
    """Return an error at a place of an operator's prototype."""
    return SpecError(message, file=spec.source, pointer=f"{spec.pointer}{pointer}", help=help)
