"""What a prototype's tensors and data types must be for its formulas to have a kernel."""

from __future__ import annotations

from collections.abc import Iterator

from opkit.algebra import Node, add, product
from opkit.errors import SpecError
from opkit.schema import OpSpec

from .reader import ParsedFormulas

__all__ = ["EVENTS", "check_formulas"]

EVENTS = 8
"""Events between two pipes, one for each buffer of a kernel's queues: at most so many
inputs or outputs.
Source: Ascend C API, AllocEventID: event ids 0 to 7."""

_FLOATING = frozenset({"float16", "float32", "bfloat16"})
_INTEGERS = frozenset({"int32", "int16"})
# Source: vector instructions of the Atlas A2 that take int32 and int16 as well as float: Add, Sub,
# Mul, Max, Min, and these with a scalar.
_WHOLE_KINDS = frozenset(
    {"guard", "input", "maximum", "minimum", "opaque", "plus_zero", "product", "relu", "sum"}
)
_COMBINED = {"sum": add, "product": product}


def check_formulas(parsed: ParsedFormulas) -> None:
    """Refuse operators whose tensors the kernel of formulas over inputs of one shape cannot have.

    Raises:
        SpecError: a tensor is optional or a list, none has a value per element, there are too many,
            or the formulas do not fit the data types.
    """
    _check_tensors(parsed)
    _check_count(parsed.spec)
    if _check_dtypes(parsed.spec):
        _check_whole_numbers(parsed)


def _check_tensors(parsed: ParsedFormulas) -> None:
    spec = parsed.spec
    for where, tensors in (("input_desc", spec.inputs), ("output_desc", spec.outputs)):
        for index, tensor in enumerate(tensors):
            if tensor.param_type != "required":
                raise SpecError(
                    f'"{tensor.name}" is {tensor.param_type}; a formula takes required ones only',
                    file=spec.source,
                    pointer=f"{spec.pointer}/{where}/{index}/param_type",
                    help='make it required; formulas over lists give every input a "shape", such as'
                    ' ["L", "N"], or have lists only'
                    if tensor.is_list
                    else "make it required, or leave the formula out and write the kernel by hand",
                )
    if not parsed.inputs or parsed.row_inputs >= set(parsed.inputs):
        raise SpecError(
            "an operator with a formula needs an input with one value per element",
            file=spec.source,
            pointer=f"{spec.pointer}/input_desc",
        )


def _check_count(spec: OpSpec) -> None:
    for where, tensors in (("input_desc", spec.inputs), ("output_desc", spec.outputs)):
        if len(tensors) > EVENTS:
            raise SpecError(
                f"{len(tensors)} tensors need as many queues, but two pipes share {EVENTS} events",
                file=spec.source,
                pointer=f"{spec.pointer}/{where}",
                help="split the operator, or leave the formula out and write the kernel by hand",
            )


def _check_dtypes(spec: OpSpec) -> bool:
    """Return whether some variant computes in whole numbers."""
    whole = False
    for variant in range(spec.variant_count):
        names = [dtype.name for dtype in spec.variant_dtypes(variant)]
        outputs = [tensor.dtypes[variant].name for tensor in spec.outputs]
        if set(names) <= _INTEGERS and len(set(names)) == 1:
            whole = True
        elif not set(outputs) <= _FLOATING or not set(names) <= _FLOATING | _INTEGERS:
            raise SpecError(
                f"no kernel for data types {', '.join(names)} (variant {variant})",
                file=spec.source,
                pointer=f"{spec.pointer}/output_desc",
                help="outputs are float16, float32 or bfloat16; or all are int32, or all int16",
            )
    return whole


def _check_whole_numbers(parsed: ParsedFormulas) -> None:
    found = {each for output in parsed.outputs for each in _not_of_whole_numbers(output.expression)}
    if found:
        raise SpecError(
            f"the formula needs {', '.join(sorted(found))}, which the vector unit does not have"
            " for int32 and int16",
            file=parsed.spec.source,
            pointer=f"{parsed.spec.pointer}/output_desc",
            help="keep to + - * max min and whole numbers, or drop the integer data types",
        )


def _not_of_whole_numbers(node: Node) -> Iterator[str]:
    """Yield what a formula needs that the vector unit lacks for whole numbers, in the formula's own
    words."""
    if node.space == "uniform":
        if node.is_constant and not (node.is_number and node.fraction.denominator == 1):
            yield "a constant that is no whole number"
        return
    if node.kind in _COMBINED:
        # What is the same for all elements is one scalar operand.
        numbers = [each for each in node.args if each.space == "uniform"]
        if numbers:
            yield from _not_of_whole_numbers(_COMBINED[node.kind](*numbers))
    elif node.kind == "power":
        exponent = node.args[1].fraction
        if exponent < 0:
            yield "division"
        if exponent.denominator > 1:
            yield "a root"
    elif node.kind not in _WHOLE_KINDS:
        yield node.kind.removeprefix("row_")
    for each in node.args:
        if each.space != "uniform":
            yield from _not_of_whole_numbers(each)
