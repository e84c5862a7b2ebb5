"""The device's formulas (csrc/runtime/program.h), traced from the compiler's operators when the
device's library is built: the eager device and `torch.compile` then compute the same.

Each row of csrc/aten/elementwise.inc names an operator of PyTorch; its formula is what the compiler
makes of that operator, with the operator's own tensors and numbers by their names. What the device
has a step for stays one (kernels/vector_ops.inc).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from opkit.compiler import Graph, GraphBuilder, Node, Value

__all__ = ["FormulaRow", "formula", "formula_rows", "formulas_text", "special_formulas_text"]

_TABLE = Path(__file__).parent / "csrc" / "aten" / "elementwise.inc"
_ROW = re.compile(r'^ROW\("([\w.]+)", (\w+)\)$|^ROW_IF\("([\w.]+)", "(\w+)", "([^"]+)", (\w+)\)$')
_SPECIAL = {
    "kLogSigmoid": "log_sigmoid",
    "kLogSigmoidBackward": "log_sigmoid_backward",
}
"""Operators whose kernels are written by hand (csrc/aten/operators.cpp), by the names that their
formulas have there."""
_STEPS: Mapping[str, str] = {
    **{name: f"({{0}} {sign} {{1}})" for name, sign in (("add", "+"), ("sub", "-"), ("mul", "*"))},
    **{name: f"({{0}} {sign} {{1}})" for name, sign in (("div", "/"), ("equal", "=="))},
    **{name: f"({{0}} {sign} {{1}})" for name, sign in (("less", "<"), ("less_equal", "<="))},
    **{name: f"({{0}} {sign} {{1}})" for name, sign in (("greater", ">"), ("greater_equal", ">="))},
    "not_equal": "({0} != {1})",
    "maximum": "max({0}, {1})",
    "minimum": "min({0}, {1})",
    "neg": "(-{0})",
    "log": "ln({0})",
    "where": "select({0}, {1}, {2})",
    "logical_and": "and({0}, {1})",
    "logical_or": "or({0}, {1})",
    # Of whole numbers the step inverts all bits.
    "logical_not": "({0} == 0)",
    **{f"bitwise_{name}": f"{name}({{0}}, {{1}})" for name in ("and", "or", "xor")},
    "bitwise_not": "not({0})",
    **{name: f"{name}({{0}})" for name in ("abs", "exp", "sqrt", "floor", "ceil", "trunc")},
    "round": "round({0})",
    # Composites that the device has a step for.
    **{name: f"{name}({{0}})" for name in ("sin", "cos", "tan", "atan", "tanh", "erf", "sigmoid")},
    **{name: f"{name}({{0}})" for name in ("rsqrt", "reciprocal", "log2", "log10", "sign")},
    "erfc": "select(abs({0}) < 0.5, 1 - erf({0}), erfc({0}))",
    "signbit": "negative({0})",
    "fmod": "fmod({0}, {1})",
    "pow": "power({0}, {1})",
    "mod": "remainder({0}, {1})",
    "floor_divide": "floordiv({0}, {1})",
}
"""The compiler's operators as the device's formulas write them."""
_EXACT = ("fmod", "pow")
"""Those that the device computes to the last bit."""
_WHOLE = ("bits", "whole_only")
_TRUTHS = ("condition", "mask")
"""Tensors that say yes or no."""


@dataclass(frozen=True)
class FormulaRow:
    """One row of csrc/aten/elementwise.inc."""

    operator: str
    """Its name in PyTorch, with its overload."""
    typing: str
    argument: str = ""
    """The row is for calls where this argument has a certain value."""
    value: str = ""


def formula_rows() -> Iterator[FormulaRow]:
    """Yield the rows of csrc/aten/elementwise.inc, in their order."""
    for line in _TABLE.read_text(encoding="utf-8").splitlines():
        if (row := _ROW.match(line)) is None:
            assert not line.startswith("ROW"), line
            continue
        operator, typing, *given = row.groups()
        yield (
            FormulaRow(operator, typing)
            if operator
            else FormulaRow(given[0], given[3], given[1], given[2])
        )


def formulas_text() -> str:
    """Return the formulas of the rows as literals of C++, in the rows' order, for formulas.inc."""
    return "".join(f'"{formula(row)}",  // {row.operator}\n' for row in formula_rows())


def special_formulas_text() -> str:
    """Return the formulas of operators that are no rows as constants, for special_formulas.inc."""
    rows = {name: formula(FormulaRow(operator, "promote")) for name, operator in _SPECIAL.items()}
    return "".join(f'constexpr const char* {name} = "{text}";\n' for name, text in rows.items())


def formula(row: FormulaRow) -> str:
    """Return what a row computes, as assignments and a last expression.

    The operator's tensors are values of one element, its numbers come with each call; the argument
    that the row names is what the row says.
    """
    import torch

    from opkit.compiler import ATEN_ELEMENTWISE, AtenCall, GraphBuilder

    builder = GraphBuilder()
    tensors = "int32" if row.typing in _WHOLE else "float32"
    positional: list[object] = []
    by_name: dict[str, object] = {}
    for argument in _arguments(row.operator):
        value: object
        if argument.name == row.argument:
            is_text = argument.type.kind() == "OptionalType" or str(argument.type) == "str"
            value = row.value if is_text else float(row.value)
        elif isinstance(argument.type, torch.TensorType):
            dtype = "bool" if argument.name in _TRUTHS else tensors
            value = builder.input(argument.name, (1,), dtype)
        else:
            kind = "bool" if isinstance(argument.type, torch.BoolType) else "float"
            value = builder.attribute(argument.name, kind)
        if argument.kwarg_only:
            by_name[argument.name] = value
        else:
            positional.append(value)
    dtype = "bool" if row.typing == "to_bool" else tensors
    call = AtenCall(builder, ((1,),), (dtype,), {}, exact=_EXACT)
    name = _function_name(row.operator)
    return _text(builder, ATEN_ELEMENTWISE[name](call, *positional, **by_name))


def _function_name(operator: str) -> str:
    """Return the name of the function that takes what a form takes that writes its result."""
    import torch

    name = operator.partition(".")[0].removesuffix("_")
    packet = getattr(torch.ops.aten, name)
    wanted = [(each.name, str(each.type)) for each in _arguments(operator)]
    for overload in packet.overloads():
        schema = getattr(packet, overload)._schema
        is_written = any(each.alias_info and each.alias_info.is_write for each in schema.arguments)
        if not is_written and [(each.name, str(each.type)) for each in schema.arguments] == wanted:
            return f"aten.{name}.{overload}"
    raise KeyError(operator)


def _arguments(operator: str) -> list[Any]:
    import torch

    name, _, overload = operator.partition(".")
    schema = getattr(getattr(torch.ops.aten, name), overload or "default")._schema
    return [each for each in schema.arguments if not each.is_out]


def _text(builder: GraphBuilder, value: Value) -> str:
    from opkit.compiler import expand

    builder.output("y", value)
    return _formula(expand(builder.graph(), kept=_STEPS))


def _formula(graph: Graph) -> str:
    """Return a graph of one output as assignments and a last expression."""
    names = {tensor.name: tensor.name for tensor in graph.inputs}
    parts = []
    for number, node in enumerate(graph.nodes):
        operands = [names[name] for name in node.inputs]
        is_one = node.operator == "mul" and operands[0] == "1.0"
        text = operands[1] if is_one else _expression(node, operands)
        if is_one or node.operator in ("constant", "attribute", "cast", "broadcast_to"):
            names[node.output.name] = text
            continue
        names[node.output.name] = f"v{number}"
        parts.append(f"v{number} = {text}; ")
    return "".join(parts) + names[graph.outputs[0][1]]


def _expression(node: Node, operands: list[str]) -> str:
    if node.operator == "constant":
        value = node.settings.number("value")
        return f"({value!r})" if value < 0 else repr(value)
    if node.operator == "attribute":
        return node.settings.text("name")
    if node.operator in ("cast", "broadcast_to"):
        return operands[0]
    return _STEPS[node.operator].format(*operands)
