"""Formulas over inputs of one shape, or of one row of it, as formulas over named axes."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from dataclasses import dataclass, replace

from opkit.algebra import REDUCTION_NAMES, Node
from opkit.schema import OpSpec, free_name

from .reader import parse

__all__ = ["OverRows", "over_rows"]


@dataclass(frozen=True)
class OverRows:
    """An operator whose inputs' shapes are told apart at run time."""

    spec: OpSpec
    """Its inputs with axes: all elements as one, or rows and columns."""
    one_row: frozenset[str]
    """The inputs of which a launch may give one row for all."""
    rows: str
    """The name of the rows' axis; empty where all elements are one axis."""
    columns: str
    """The name of the last axis."""
    walks: str
    """`elementwise` or `rowwise`."""
    written: Mapping[str, Node]
    """Its outputs element by element as they were read: constants have names, and are exact."""


def over_rows(spec: OpSpec) -> OverRows:
    """Return an operator that has formulas as one over named axes.

    Element by element, inputs are rows and columns where they may broadcast: a launch whose inputs
    all have one shape has one row.

    Raises:
        SpecError: a formula is wrong.
    """
    parsed = parse(spec)
    taken = {tensor.name for tensor in (*spec.inputs, *spec.outputs)}
    taken |= {attr.name for attr in spec.attrs}
    whole = [tensor.name for tensor in spec.inputs if tensor.name not in parsed.row_inputs]
    is_rowwise = parsed.kind == "rowwise"
    # By row, the first input says how many rows there are.
    one_row = frozenset(whole[1:] if is_rowwise else whole if len(whole) > 1 else ())
    columns = free_name("columns" if is_rowwise or one_row else "elements", taken)
    rows = free_name("rows", {*taken, columns}) if is_rowwise or one_row else ""
    lead = (rows,) if rows else ()
    writer = _Writer((*lead, columns))
    outputs, written = [], {}
    for tensor, output in zip(spec.outputs, parsed.outputs, strict=True):
        is_number = output.expression.space == "uniform"
        if is_rowwise or is_number:
            text = writer.text(tensor.formula or "", is_number=is_number)
            outputs.append(replace(tensor, formula=text))
        else:
            outputs.append(tensor)
            written[tensor.name] = output.expression
    inputs = tuple(
        replace(t, axes=(*lead, 1 if t.name in parsed.row_inputs else columns)) for t in spec.inputs
    )
    spec = replace(spec, inputs=inputs, outputs=tuple(outputs))
    return OverRows(spec, one_row, rows, columns, parsed.kind, written)


class _Writer(ast.NodeTransformer):
    """Writes what the shapes of inputs say already: reductions keep their axis, values of rows are
    columns of one element; a number for all elements is one for each."""

    def __init__(self, axes: tuple[str, ...]) -> None:
        self.shape = f"({', '.join(axes)},)"

    def text(self, formula: str, *, is_number: bool = False) -> str:
        body = ast.parse(" ".join(formula.split()), mode="eval").body
        if isinstance(body, ast.Call) and _name(body) == "like":
            body, is_number = body.args[0], True
        value = ast.unparse(self.visit(body))
        return f"broadcast_to({value}, shape={self.shape})" if is_number else value

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if _name(node) == "row":
            return node.args[0]
        self.generic_visit(node)
        if _name(node) == "where":
            # Rows are fractions: what a condition chooses is not summed as whole numbers.
            node.args = [node.args[0], *map(_fraction, node.args[1:])]
        if _name(node) in REDUCTION_NAMES and len(node.args) == 1:
            kept = ast.keyword("keepdims", ast.Constant(value=True))
            node.keywords = [k for k in node.keywords if k.arg != "keepdims"] + [kept]
        return node


def _fraction(node: ast.expr) -> ast.expr:
    is_whole = isinstance(node, ast.Constant) and isinstance(node.value, int)
    return ast.Constant(value=float(node.value)) if is_whole else node  # type: ignore[attr-defined]


def _name(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""
