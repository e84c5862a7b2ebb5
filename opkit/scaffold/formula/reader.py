"""Formula text to a tree, through an explicit list of what the language has; nothing is ever
evaluated as Python."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from typing import Literal, NoReturn

from opkit.algebra import (
    COLUMNS,
    COMPARISON_SIGNS,
    COMPARISONS,
    FUNCTIONS,
    REDUCTION_NAMES,
    REDUCTIONS,
    ZERO,
    Node,
    Space,
    add,
    attribute,
    call,
    constant,
    divide,
    evaluate,
    negate,
    number,
    power,
    product,
    space_of,
    subtract,
    tensor,
)
from opkit.errors import SpecError
from opkit.schema import OpSpec

from .excerpt import text_of
from .refused import NAMED_AXES, OF_AXES, REFUSED_FUNCTIONS, REFUSED_SYNTAX

__all__ = ["LONGEST_FORMULA", "ParsedFormulas", "ParsedOutput", "parse", "space_of"]

Kind = Literal["elementwise", "rowwise"]

_BINARY: dict[type[ast.operator], Callable[[Node, Node], Node]] = {
    ast.Add: add,
    ast.Sub: subtract,
    ast.Mult: product,
    ast.Div: divide,
    ast.Pow: lambda a, b: a,
}
_CONSTANTS = {"pi": constant("pi"), "e": constant("e"), "columns": COLUMNS}
# Deeper nesting than any formula needs would exhaust Python's stack rather than end in a message.
_DEEPEST_NESTING = 60
LONGEST_FORMULA = 10_000
"""Characters."""
_LARGEST_EXPONENT = 64
_LARGEST_FLOAT32 = 3.4e38
# Characters of a long formula that a message shows on each side of the place.
_CONTEXT = 40
_ROW_KINDS = (*sorted(REDUCTIONS), "columns")


@dataclass(frozen=True)
class ParsedOutput:
    """One output's formula."""

    name: str
    text: str
    expression: Node
    per_row: bool
    """Whether it has one value per row: every input appears inside a reduction."""
    keepdims: bool
    """A per-row output keeps a last axis of length 1."""


@dataclass(frozen=True)
class ParsedFormulas:
    """The formulas of one operator."""

    spec: OpSpec
    outputs: tuple[ParsedOutput, ...]
    inputs: Mapping[str, Node]
    attrs: Mapping[str, Node]
    row_inputs: frozenset[str]
    """Inputs that have one value per row, marked `row(name)`."""

    @property
    def kind(self) -> Kind:
        """`rowwise` if any formula reduces over the last axis or takes a per-row input, else
        `elementwise`."""
        if self.row_inputs or any(o.expression.has(*_ROW_KINDS) for o in self.outputs):
            return "rowwise"
        return "elementwise"

    def space(self, expression: Node) -> Space:
        """Return whether a value is the same everywhere, one per row, or one per element."""
        return space_of(expression)


# Checks, the gradient, references and kernels of one operator all read its formulas.
@lru_cache(maxsize=64)
def parse(spec: OpSpec) -> ParsedFormulas:
    """Return the formulas of every output as trees.

    Raises:
        SpecError: an output has no formula, or a formula is wrong; with the pointer to it and the
        column.
    """
    inputs = {one.name: tensor(one.name) for one in spec.inputs}
    attrs = {attr.name: attribute(attr.name) for attr in spec.attrs}
    outputs: list[ParsedOutput] = []
    row_inputs: set[str] = set()
    for index, output in enumerate(spec.outputs):
        if output.formula is None:
            raise SpecError(
                f'output "{output.name}" has no formula',
                file=spec.source,
                pointer=_pointer(spec, index),
                help="give every output of the operator a formula, or none",
            )
        reader = _Reader(spec, index, output.formula, inputs, attrs)
        expression = reader.read()
        per_row = not reader.full and expression.space == "row"
        row_inputs |= reader.row_inputs
        outputs.append(
            ParsedOutput(output.name, output.formula, expression, per_row, reader.keepdims)
        )
    for index, parsed in enumerate(outputs):
        # Collected over all formulas: an input cannot be per row in one and per element in another.
        mixed = sorted(n for n in row_inputs if _appears_plain(parsed.expression, inputs[n]))
        if mixed:
            raise SpecError(
                f'"{mixed[0]}" is used both as row({mixed[0]}) and as {mixed[0]}',
                file=spec.source,
                pointer=_pointer(spec, index),
                help=f"write row({mixed[0]}) everywhere, or nowhere",
            )
    return ParsedFormulas(spec, tuple(outputs), inputs, attrs, frozenset(row_inputs))


def _pointer(spec: OpSpec, index: int) -> str:
    return f"{spec.pointer}/output_desc/{index}/formula"


def _appears_plain(expression: Node, plain: Node) -> bool:
    if expression.kind == "row":
        return False
    if expression == plain:
        return True
    return any(_appears_plain(argument, plain) for argument in expression.args)


class _Reader:
    """Reads one formula."""

    def __init__(
        self,
        spec: OpSpec,
        index: int,
        text: str,
        inputs: dict[str, Node],
        attrs: dict[str, Node],
    ) -> None:
        self.spec = spec
        self.index = index
        self.text = " ".join(text.split())
        self.inputs = inputs
        self.attrs = attrs
        self.keepdims = False
        self.full = False
        self.row_inputs: set[str] = set()

    def read(self) -> Node:
        if len(self.text) > LONGEST_FORMULA:
            self.fail(
                f"the formula has {len(self.text)} characters, the limit is {LONGEST_FORMULA}", 0
            )
        try:
            tree = ast.parse(self.text, mode="eval")
        except SyntaxError as error:
            self.fail(
                f"not a formula: {error.msg}", min(error.offset or 1 << 30, len(self.text) + 1) - 1
            )
        except (RecursionError, MemoryError, ValueError):
            self.fail(
                "the formula is nested too deeply or holds a character that no formula has", 0
            )
        body = tree.body
        self.refuse_axes(body)
        if (
            isinstance(body, ast.Call)
            and isinstance(body.func, ast.Name)
            and body.func.id == "like"
        ):
            # like(value, x): a value per row, wanted once per element of x.
            if (
                len(body.args) != 2
                or body.keywords
                or not isinstance(body.args[1], ast.Name)
                or body.args[1].id not in self.inputs
            ):
                self.fail("like takes a value and the name of an input", body.col_offset)
            self.full = True
            body = body.args[0]
        expression = self.visit(body, 0)
        if expression.kind in COMPARISONS:
            self.fail("a comparison is not a value", 0, help="use where(condition, a, b)")
        return expression

    def refuse_axes(self, body: ast.expr) -> None:
        """Refuse first what only formulas over named axes have: all else is in vain then."""
        for node in ast.walk(body):
            if isinstance(node, ast.Subscript):
                self.refuse(node, node.col_offset)
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
                self.refuse(node.op, node.right.col_offset - 2)
            if isinstance(node, ast.Call) and ast.unparse(node.func) in OF_AXES:
                self.call(node, 0)

    def fail(self, message: str, column: int, *, help: str | None = None) -> NoReturn:
        raise SpecError(
            f'column {column + 1} of "{_excerpt(self.text, column)}": {message}',
            file=self.spec.source,
            pointer=_pointer(self.spec, self.index),
            help=help,
        )

    def visit(self, node: ast.expr, depth: int) -> Node:
        if depth > _DEEPEST_NESTING:
            self.fail(f"nested more than {_DEEPEST_NESTING} levels deep", node.col_offset)
        if isinstance(node, ast.Constant):
            return self.number(node)
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            value = self.value(node.operand, depth)
            return negate(value) if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.BinOp):
            return self.binary(node, depth)
        if isinstance(node, ast.Compare):
            return self.comparison(node, depth)
        if isinstance(node, ast.Call):
            return self.defined(self.call(node, depth), node)
        return self.refuse(node, node.col_offset)

    def refuse(self, node: ast.AST, column: int) -> NoReturn:
        """Say that a piece of Python is none of the language, and what to write instead."""
        what, help = REFUSED_SYNTAX.get(type(node).__name__, (f'"{type(node).__name__}"', None))
        self.fail(f"{what} is not part of the formula language", column, help=help)

    def defined(self, value: Node, node: ast.expr) -> Node:
        """Return a value if, being a constant, it is a number that float32 has."""
        if value.space != "uniform" or not value.is_constant:
            return value
        found = evaluate(value)
        if not abs(found) <= _LARGEST_FLOAT32:
            text = text_of(self.text, node) or "it"
            self.fail(
                f"{_excerpt(text, 0)} is {found:.3g}: undefined, or more than float32 holds",
                node.col_offset,
            )
        return value

    def value(self, node: ast.expr, depth: int) -> Node:
        value = self.visit(node, depth + 1)
        if value.kind in COMPARISONS:
            self.fail(
                "a comparison is not a value", node.col_offset, help="use where(condition, a, b)"
            )
        return value

    def number(self, node: ast.Constant) -> Node:
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            self.fail(f"{_excerpt(repr(node.value), 0)} is not a number", node.col_offset)
        literal = text_of(self.text, node) or repr(node.value)
        if not abs(node.value) <= _LARGEST_FLOAT32:
            self.fail(f"{_excerpt(literal, 0)} does not fit float32", node.col_offset)
        # Exact, so that 0.1 stays 1/10 while numbers are gathered and is rounded once, when it is
        # written out.
        return number(
            Fraction(literal.replace("_", "")) if isinstance(node.value, float) else node.value
        )

    def name(self, node: ast.Name) -> Node:
        if node.id in self.inputs:
            return self.inputs[node.id]
        if node.id in self.attrs:
            kind = next(a.type for a in self.spec.attrs if a.name == node.id)
            if kind not in ("int", "float", "bool"):
                self.fail(
                    f'attribute "{node.id}" has type {kind}; a formula takes int, float and bool',
                    node.col_offset,
                )
            return self.attrs[node.id]
        if node.id in _CONSTANTS:
            return _CONSTANTS[node.id]
        if node.id in FUNCTIONS or node.id in REDUCTION_NAMES:
            self.fail(f'"{node.id}" is a function: {node.id}(...)', node.col_offset)
        known = [*self.inputs, *self.attrs, *_CONSTANTS]
        return self.unknown(node.id, "an input, an attribute or a constant", known, node.col_offset)

    def unknown(self, name: str, what: str, known: list[str], column: int) -> NoReturn:
        nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.6)
        help = f'did you mean "{nearest[0]}"?' if nearest else f"there are: {', '.join(known)}"
        self.fail(f'"{name}" is not {what}', column, help=help)

    def binary(self, node: ast.BinOp, depth: int) -> Node:
        # A long sum leans to the left: a loop instead of a level for each of its terms.
        chain = [node]
        while isinstance(chain[-1].left, ast.BinOp):
            chain.append(chain[-1].left)
        value = self.value(chain[-1].left, depth)
        for one in reversed(chain):
            value = self.defined(self.operation(one, value, depth), one)
        return value

    def operation(self, node: ast.BinOp, left: Node, depth: int) -> Node:
        build = _BINARY.get(type(node.op))
        if build is None:
            self.refuse(node.op, node.col_offset)
        right = self.value(node.right, depth)
        if isinstance(node.op, ast.Pow):
            return self.power(left, right, node.right.col_offset)
        if isinstance(node.op, ast.Div) and right == ZERO:
            self.fail("division by zero", node.right.col_offset)
        return build(left, right)

    def power(self, base: Node, exponent: Node, column: int) -> Node:
        if exponent.is_constant:
            value = exponent.fraction if exponent.is_number else Fraction(evaluate(exponent))
            if abs(value) > _LARGEST_EXPONENT:
                self.fail(f"the exponent is larger than {_LARGEST_EXPONENT}", column)
            return power(base, value)
        if base == _CONSTANTS["e"]:
            return call("exp", exponent)
        if base.is_constant and evaluate(base) > 0:
            return call("exp", product(exponent, call("log", base)))
        return self.fail(
            "the exponent must be a number",
            column,
            help="for a positive base write exp(p*log(x)) instead of x**p",
        )

    def comparison(self, node: ast.Compare, depth: int) -> Node:
        sign = COMPARISON_SIGNS.get(type(node.ops[0]).__name__)
        if len(node.ops) != 1 or sign is None:
            self.fail("write one comparison of < <= > >= == !=", node.col_offset)
        return call(sign, self.value(node.left, depth), self.value(node.comparators[0], depth))

    def call(self, node: ast.Call, depth: int) -> Node:
        if not isinstance(node.func, ast.Name):
            self.fail("only plain functions can be called", node.col_offset)
        name = node.func.id
        if name in REFUSED_FUNCTIONS:
            self.fail(
                f'"{name}" is not a function of the formula language',
                node.col_offset,
                help=REFUSED_FUNCTIONS[name],
            )
        reduces = any(k.arg == "axis" for k in node.keywords) or len(node.args) == 1
        if name in REDUCTION_NAMES and reduces:
            return self.reduction(node, name, depth)
        if node.keywords:
            self.fail(f"{name} has no option {node.keywords[0].arg}", node.col_offset)
        if name == "like":
            self.fail("like(value, x) can only enclose the whole formula", node.col_offset)
        if name == "row":
            return self.row_input(node)
        name = {"max": "maximum", "min": "minimum"}.get(name, name)
        row = FUNCTIONS.get(name)
        if row is None:
            known = [*FUNCTIONS, *REDUCTION_NAMES, "row"]
            self.unknown(name, "a function of the formula language", known, node.col_offset)
        if len(node.args) != row.arity:
            self.fail(f"{name} takes {row.arity} values, got {len(node.args)}", node.col_offset)
        if name == "where":
            condition = self.visit(node.args[0], depth + 1)
            if condition.kind not in COMPARISONS:
                self.fail(
                    "where starts with a comparison, as in where(x > 0, a, b)", node.col_offset
                )
            return row(condition, *(self.value(a, depth) for a in node.args[1:]))
        arguments = [self.value(a, depth) for a in node.args]
        if name == "pow":
            return self.power(arguments[0], arguments[1], node.args[1].col_offset)
        return row(*arguments)

    def reduction(self, node: ast.Call, name: str, depth: int) -> Node:
        if len(node.args) != 1:
            self.fail(f"{name} over an axis takes one value", node.col_offset)
        axis_given = False
        for keyword in node.keywords:
            literal = _literal(keyword.value)
            if keyword.arg == "axis":
                axis_given = True
                if literal != -1:
                    self.fail(
                        "only the last axis can be reduced: axis=-1",
                        keyword.value.col_offset,
                        help=NAMED_AXES,
                    )
            elif keyword.arg == "keepdims" and isinstance(literal, bool):
                self.keepdims = self.keepdims or literal
            else:
                self.fail(f"{name} has no option {keyword.arg}={literal}", keyword.value.col_offset)
        if not axis_given:
            self.fail(
                f"{name} of one value needs axis=-1",
                node.col_offset,
                help=f"{name}(x, axis=-1) reduces a row",
            )
        value = self.value(node.args[0], depth)
        if value.space != "tile":
            self.fail(
                f"{name} reduces a value that is the same along the row",
                node.args[0].col_offset,
                help="its argument must use an input outside of other reductions",
            )
        return call(REDUCTION_NAMES[name], value)

    def row_input(self, node: ast.Call) -> Node:
        argument = node.args[0] if len(node.args) == 1 else None
        if not isinstance(argument, ast.Name) or argument.id not in self.inputs:
            self.fail("row takes the name of one input", node.col_offset)
        self.row_inputs.add(argument.id)
        return call("row", self.inputs[argument.id])


def _excerpt(text: str, column: int) -> str:
    """Return the formula, of a long one what surrounds a place."""
    if len(text) <= 4 * _CONTEXT:
        return text
    start, end = max(0, column - _CONTEXT), column + _CONTEXT
    return f"{'...' if start else ''}{text[start:end]}{'...' if end < len(text) else ''}"


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None
