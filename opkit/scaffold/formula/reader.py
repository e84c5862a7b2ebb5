"""Formula text to sympy, through an explicit list of what the language has; nothing is ever
evaluated as Python."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NoReturn

import sympy

from opkit.errors import SpecError
from opkit.schema import OpSpec

from .functions import COLUMNS, COMPARISONS, FUNCTIONS, REDUCTIONS, Comparison, Reduction, RowInput

__all__ = ["ParsedFormulas", "ParsedOutput", "parse", "space_of"]

Kind = Literal["elementwise", "rowwise"]
Space = Literal["uniform", "row", "tile"]

_BINARY: dict[type[ast.operator], Callable[[sympy.Expr, sympy.Expr], sympy.Expr]] = {
    ast.Add: lambda a, b: a + b,
    ast.Sub: lambda a, b: a - b,
    ast.Mult: lambda a, b: a * b,
    ast.Div: lambda a, b: a / b,
    ast.Pow: lambda a, b: a**b,
}
_CONSTANTS = {"pi": sympy.pi, "e": sympy.E, "columns": COLUMNS}
# Deeper nesting than any formula needs would exhaust Python's stack in sympy rather than end in a
# message.
_DEEPEST_NESTING = 60
_LONGEST_FORMULA = 10_000
_LARGEST_EXPONENT = 64


@dataclass(frozen=True)
class ParsedOutput:
    """One output's formula."""

    name: str
    text: str
    expression: sympy.Expr
    per_row: bool
    """Whether it has one value per row: every input appears inside a reduction."""
    keepdims: bool
    """A per-row output keeps a last axis of length 1."""


@dataclass(frozen=True)
class ParsedFormulas:
    """The formulas of one operator."""

    spec: OpSpec
    outputs: tuple[ParsedOutput, ...]
    inputs: dict[str, sympy.Symbol]
    attrs: dict[str, sympy.Symbol]
    row_inputs: frozenset[str]
    """Inputs that have one value per row, marked `row(name)`."""

    @property
    def kind(self) -> Kind:
        """`rowwise` if any formula reduces over the last axis or takes a per-row input, else
        `elementwise`."""
        if self.row_inputs or any(o.expression.has(Reduction, COLUMNS) for o in self.outputs):
            return "rowwise"
        return "elementwise"

    def space(self, expression: sympy.Basic) -> Space:
        """Return whether a value is the same everywhere, one per row, or one per element."""
        return space_of(expression, frozenset(self.inputs.values()))


def space_of(expression: sympy.Basic, inputs: frozenset[sympy.Symbol]) -> Space:
    """Return whether a value is the same everywhere, one per row, or one per element of
    `inputs`."""
    if isinstance(expression, Reduction | RowInput):
        return "row"
    if isinstance(expression, sympy.Symbol):
        return "tile" if expression in inputs else "uniform"
    spaces = {space_of(argument, inputs) for argument in expression.args}
    for space in ("tile", "row"):
        if space in spaces:
            return space
    return "uniform"


def parse(spec: OpSpec) -> ParsedFormulas:
    """Return the formulas of every output as sympy expressions.

    Raises:
        SpecError: an output has no formula, or a formula is wrong; with the pointer to it and the
        column.
    """
    inputs = {tensor.name: sympy.Symbol(tensor.name, real=True) for tensor in spec.inputs}
    attrs = {attr.name: sympy.Symbol(attr.name, real=True) for attr in spec.attrs}
    outputs: list[ParsedOutput] = []
    row_inputs: set[str] = set()
    for index, tensor in enumerate(spec.outputs):
        if tensor.formula is None:
            raise SpecError(
                f'output "{tensor.name}" has no formula',
                file=spec.source,
                pointer=_pointer(spec, index),
                help="give every output of the operator a formula, or none",
            )
        reader = _Reader(spec, index, tensor.formula, inputs, attrs)
        expression = reader.read()
        per_row = not reader.full and space_of(expression, frozenset(inputs.values())) == "row"
        row_inputs |= reader.row_inputs
        outputs.append(
            ParsedOutput(tensor.name, tensor.formula, expression, per_row, reader.keepdims)
        )
    for index, output in enumerate(outputs):
        # Collected over all formulas: an input cannot be per row in one and per element in another.
        mixed = sorted(n for n in row_inputs if _appears_plain(output.expression, inputs[n]))
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


def _appears_plain(expression: sympy.Basic, symbol: sympy.Symbol) -> bool:
    if isinstance(expression, RowInput):
        return False
    if expression == symbol:
        return True
    return any(_appears_plain(argument, symbol) for argument in expression.args)


class _Reader:
    """Reads one formula."""

    def __init__(
        self,
        spec: OpSpec,
        index: int,
        text: str,
        inputs: dict[str, sympy.Symbol],
        attrs: dict[str, sympy.Symbol],
    ) -> None:
        self.spec = spec
        self.index = index
        self.text = " ".join(text.split())
        self.inputs = inputs
        self.attrs = attrs
        self.tiles = frozenset(inputs.values())
        self.keepdims = False
        self.full = False
        self.row_inputs: set[str] = set()

    def read(self) -> sympy.Expr:
        if len(self.text) > _LONGEST_FORMULA:
            self.fail(
                f"the formula has {len(self.text)} characters, the limit is {_LONGEST_FORMULA}", 0
            )
        try:
            tree = ast.parse(self.text, mode="eval")
        except SyntaxError as error:
            self.fail(f"not a formula: {error.msg}", (error.offset or len(self.text) + 1) - 1)
        except (RecursionError, MemoryError, ValueError):
            self.fail(
                "the formula is nested too deeply or holds a character that no formula has", 0
            )
        body = tree.body
        if (
            isinstance(body, ast.Call)
            and isinstance(body.func, ast.Name)
            and body.func.id == "like"
        ):
            # like(value, x): a value per row, wanted once per element of x.
            if (
                len(body.args) != 2
                or body.keywords
                or self.visit(body.args[1], 0) not in self.tiles
            ):
                self.fail("like takes a value and the name of an input", body.col_offset)
            self.full = True
            body = body.args[0]
        expression = self.visit(body, 0)
        if isinstance(expression, Comparison):
            self.fail("a comparison is not a value", 0, help="use where(condition, a, b)")
        if expression.has(sympy.zoo, sympy.nan, sympy.oo, -sympy.oo, sympy.I):
            self.fail("the formula is undefined: it divides by zero or leaves the real numbers", 0)
        return expression

    def fail(self, message: str, column: int, *, help: str | None = None) -> NoReturn:
        raise SpecError(
            f'column {column + 1} of "{self.text}": {message}',
            file=self.spec.source,
            pointer=_pointer(self.spec, self.index),
            help=help,
        )

    def visit(self, node: ast.expr, depth: int) -> sympy.Expr:
        if depth > _DEEPEST_NESTING:
            self.fail(f"nested more than {_DEEPEST_NESTING} levels deep", node.col_offset)
        if isinstance(node, ast.Constant):
            return self.number(node)
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
            value = self.value(node.operand, depth)
            return -value if isinstance(node.op, ast.USub) else value
        if isinstance(node, ast.BinOp):
            return self.binary(node, depth)
        if isinstance(node, ast.Compare):
            return self.comparison(node, depth)
        if isinstance(node, ast.Call):
            return self.call(node, depth)
        return self.fail(f"{_describe(node)} is not part of the formula language", node.col_offset)

    def value(self, node: ast.expr, depth: int) -> sympy.Expr:
        value = self.visit(node, depth + 1)
        if isinstance(value, Comparison):
            self.fail(
                "a comparison is not a value", node.col_offset, help="use where(condition, a, b)"
            )
        return value

    def number(self, node: ast.Constant) -> sympy.Expr:
        if isinstance(node.value, bool) or not isinstance(node.value, int | float):
            self.fail(f"{node.value!r} is not a number", node.col_offset)
        literal = ast.get_source_segment(self.text, node) or repr(node.value)
        if isinstance(node.value, float) and not abs(node.value) <= 3.4e38:
            self.fail(f"{literal} does not fit float32", node.col_offset)
        # Exact, so that 0.1 stays 1/10 through simplification and is rounded once, when it is
        # written out.
        return (
            sympy.Rational(literal.replace("_", ""))
            if isinstance(node.value, float)
            else (sympy.Integer(node.value))
        )

    def name(self, node: ast.Name) -> sympy.Expr:
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
        if node.id in FUNCTIONS or node.id in REDUCTIONS:
            self.fail(f'"{node.id}" is a function: {node.id}(...)', node.col_offset)
        known = [*self.inputs, *self.attrs, *_CONSTANTS]
        return self.unknown(node.id, "an input, an attribute or a constant", known, node.col_offset)

    def unknown(self, name: str, what: str, known: list[str], column: int) -> NoReturn:
        nearest = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
        help = f'did you mean "{nearest[0]}"?' if nearest else f"there are: {', '.join(known)}"
        self.fail(f'"{name}" is not {what}', column, help=help)

    def binary(self, node: ast.BinOp, depth: int) -> sympy.Expr:
        build = _BINARY.get(type(node.op))
        if build is None:
            self.fail(f"{_describe(node.op)} is not part of the formula language", node.col_offset)
        left = self.value(node.left, depth)
        right = self.value(node.right, depth)
        if isinstance(node.op, ast.Pow):
            return self.power(left, right, node.right.col_offset)
        if isinstance(node.op, ast.Div) and right == 0:
            self.fail("division by zero", node.right.col_offset)
        return build(left, right)

    def power(self, base: sympy.Expr, exponent: sympy.Expr, column: int) -> sympy.Expr:
        if not exponent.free_symbols:
            if abs(sympy.N(exponent)) > _LARGEST_EXPONENT:
                self.fail(f"the exponent is larger than {_LARGEST_EXPONENT}", column)
            return base**exponent
        if not base.free_symbols and base.is_positive:
            return sympy.exp(exponent * sympy.log(base))
        return self.fail(
            "the exponent must be a number",
            column,
            help="for a positive base write exp(p*log(x)) instead of x**p",
        )

    def comparison(self, node: ast.Compare, depth: int) -> sympy.Expr:
        build = COMPARISONS.get(type(node.ops[0]).__name__)
        if len(node.ops) != 1 or build is None:
            self.fail("write one comparison of < <= > >= == !=", node.col_offset)
        return build(self.value(node.left, depth), self.value(node.comparators[0], depth))

    def call(self, node: ast.Call, depth: int) -> sympy.Expr:
        if not isinstance(node.func, ast.Name):
            self.fail("only plain functions can be called", node.col_offset)
        name = node.func.id
        reduces = any(k.arg == "axis" for k in node.keywords) or len(node.args) == 1
        if name in REDUCTIONS and reduces:
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
            known = [*FUNCTIONS, *REDUCTIONS, "row"]
            self.unknown(name, "a function of the formula language", known, node.col_offset)
        if len(node.args) != row.arity:
            self.fail(f"{name} takes {row.arity} values, got {len(node.args)}", node.col_offset)
        if name == "where":
            condition = self.visit(node.args[0], depth + 1)
            if not isinstance(condition, Comparison):
                self.fail(
                    "where starts with a comparison, as in where(x > 0, a, b)", node.col_offset
                )
            return row.build(condition, *(self.value(a, depth) for a in node.args[1:]))
        arguments = [self.value(a, depth) for a in node.args]
        if name == "pow":
            return self.power(arguments[0], arguments[1], node.args[1].col_offset)
        return row.build(*arguments)

    def reduction(self, node: ast.Call, name: str, depth: int) -> sympy.Expr:
        if len(node.args) != 1:
            self.fail(f"{name} over an axis takes one value", node.col_offset)
        axis_given = False
        for keyword in node.keywords:
            literal = _literal(keyword.value)
            if keyword.arg == "axis":
                axis_given = True
                if literal != -1:
                    self.fail(
                        "only the last axis can be reduced: axis=-1", keyword.value.col_offset
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
        if space_of(value, frozenset(self.inputs.values())) != "tile":
            self.fail(
                f"{name} reduces a value that is the same along the row",
                node.args[0].col_offset,
                help="its argument must use an input outside of other reductions",
            )
        return REDUCTIONS[name](value)

    def row_input(self, node: ast.Call) -> sympy.Expr:
        argument = node.args[0] if len(node.args) == 1 else None
        if not isinstance(argument, ast.Name) or argument.id not in self.inputs:
            self.fail("row takes the name of one input", node.col_offset)
        self.row_inputs.add(argument.id)
        return RowInput(self.inputs[argument.id])


def _literal(node: ast.expr) -> object:
    try:
        return ast.literal_eval(node)
    except ValueError:
        return None


def _describe(node: ast.AST) -> str:
    return {"Mod": "%", "FloorDiv": "//", "MatMult": "@"}.get(
        type(node).__name__, f'"{type(node).__name__}"'
    )
