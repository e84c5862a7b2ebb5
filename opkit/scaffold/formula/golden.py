"""The reference implementation: the formulas as they are written, over NumPy float64 or float32.

It is made from the formula's text alone; nothing that the kernel is derived with touches it. The
reference of a backward operator is the derived formula, so: a slope by differences would be wrong
at kinks and have half the digits. That the formula is the gradient is held by torch and by
differences in the tests.
"""

from __future__ import annotations

import ast
from collections.abc import Collection
from typing import Literal

from opkit.algebra import FUNCTIONS, REDUCTION_NAMES, simplify, to_formula
from opkit.schema import AttrSpec, OpSpec

from .derive import backward
from .excerpt import text_of
from .reader import ParsedFormulas, ParsedOutput, parse

__all__ = ["Precision", "golden_source"]

Precision = Literal["float64", "float32"]
"""What a reference computes in."""

_HEADER = '''"""Reference results in NumPy float64, written out from the formulas of {source}."""

from __future__ import annotations

import numpy as np


def _wide(value):
    """Return an array that holds the reference's arithmetic: float64, or int64 for integers."""
    value = np.asarray(value)
    return value.astype(np.int64 if value.dtype.kind in "iu" else np.float64)
'''

# As kernels do: whole numbers too are float32 from where they are read.
_HEADER_SINGLE = '''"""Results in NumPy float32, one rounding an operation: formulas of {source}."""

from __future__ import annotations

import numpy as np


def _wide(value):
    """Return an array of float32."""
    return np.asarray(value).astype(np.float32)
'''

_HELPERS = {
    "_relu(": '''

def _relu(u):
    """Return the larger of u and 0."""
    return np.maximum(u, 0)
''',
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
    "_power(": '''

def _power(base, exponent):
    """Return base**exponent by multiplications, each of which rounds; exponent is at least 1."""
    if exponent == 1:
        return base
    half = _power(base, exponent // 2)
    return half * half * base if exponent % 2 else half * half
''',
}

_ROW_HELPER = '''

def _row(value, shape):
    """Return one value per row, with a last axis of length 1."""
    return value.reshape((*shape[:-1], 1))
'''

_BINARY: dict[type[ast.operator], str] = {ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/"}
_COMPARE: dict[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
_COMPARISON, _SUM, _PRODUCT, _UNARY, _POWER, _ATOM = range(6)
_RANKS: dict[type[ast.operator], int] = {
    **{ast.Add: _SUM, ast.Sub: _SUM, ast.Mult: _PRODUCT, ast.Div: _PRODUCT},
    **{ast.Pow: _POWER},
}
_CONSTANTS = {"pi": "np.pi", "e": "np.e", "columns": "_shape[-1]"}


def golden_source(spec: OpSpec, *others: OpSpec, precision: Precision = "float64") -> str | None:
    """Return a Python module with one function per operator, and one for the backward operator of
    each.

    A function takes the inputs in order and the attributes by keyword, and returns the output, or a
    tuple of them.

    Args:
        spec: an operator; others: further operators of the same project.
        precision: what every operation is rounded to. What is the same for all elements, such as
            `sqrt(2/pi)`, is computed in double precision, as a compiler does, and rounded once.
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
    functions = "".join(_function(parse(one), precision) for one in wanted.values())
    helpers = "".join(text for name, text in _HELPERS.items() if name in functions)
    if "_row(" in functions:
        helpers += _ROW_HELPER
    header = _HEADER if precision == "float64" else _HEADER_SINGLE
    return header.format(source=spec.source.name) + helpers + functions


def _function(parsed: ParsedFormulas, precision: Precision) -> str:
    spec = parsed.spec
    parameters = [tensor.name for tensor in spec.inputs]
    if spec.attrs:
        parameters.append("*")
    parameters += [_parameter(attr) for attr in spec.attrs]
    tiles = [t.name for t in spec.inputs if t.name not in parsed.row_inputs]
    formulas = "\n    ".join(f"{o.name} = {' '.join(o.text.split())}" for o in parsed.outputs)
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
    writer = _Writer({*parsed.inputs, *parsed.attrs})
    if precision == "float32":
        writer = _SingleWriter(writer.names, parsed.inputs)
    for index, output in enumerate(parsed.outputs):
        result = f"_result{index}"
        results.append(result)
        lines.append(f"        {result} = {writer.text(_formula(spec, output))}")
    for output, result in zip(parsed.outputs, results, strict=True):
        lines += [f"    {line}" for line in _shaping(output, result)]
    lines.append(f"    return {', '.join(results)}")
    return "\n".join(lines) + "\n"


def _formula(spec: OpSpec, output: ParsedOutput) -> str:
    """Return what an output's reference computes: what is written, or what `fast_math` makes of
    it."""
    return to_formula(simplify(output.expression)) if spec.fast_math else output.text


def _parameter(attr: AttrSpec) -> str:
    if attr.required or attr.default is None:
        return attr.name
    return f"{attr.name}={attr.default!r}"


class _Writer:
    """A formula as NumPy, operation by operation; `parse` has accepted it before."""

    def __init__(self, names: set[str]) -> None:
        self.names = names

    def text(self, formula: str) -> str:
        source = " ".join(formula.split())
        body = ast.parse(source, mode="eval").body
        if (
            isinstance(body, ast.Call)
            and isinstance(body.func, ast.Name)
            and body.func.id == "like"
        ):
            body = body.args[0]
        self.source = source
        return self.write(body)

    def write(self, node: ast.expr, outer: int = 0) -> str:
        """Return a value, in brackets where it binds less than what surrounds it."""
        text, own = self.node(node)
        return f"({text})" if own < outer else text

    def node(self, node: ast.expr) -> tuple[str, int]:
        if isinstance(node, ast.Constant):
            return text_of(self.source, node) or repr(node.value), _ATOM
        if isinstance(node, ast.Name):
            return node.id if node.id in self.names else _CONSTANTS[node.id], _ATOM
        if isinstance(node, ast.UnaryOp):
            sign = "-" if isinstance(node.op, ast.USub) else "+"
            return f"{sign}{self.write(node.operand, _UNARY)}", _UNARY
        if isinstance(node, ast.BinOp):
            if isinstance(node.op, ast.Pow):
                return self.power(node.left, node.right)
            return self.operation(node), _RANKS[type(node.op)]
        if isinstance(node, ast.Compare):
            sign = _COMPARE[type(node.ops[0])]
            left, right = node.left, node.comparators[0]
            return f"{self.write(left, _SUM)} {sign} {self.write(right, _SUM)}", _COMPARISON
        assert isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        return self.call(node, node.func.id)

    def power(self, base: ast.expr, exponent: ast.expr) -> tuple[str, int]:
        """Write a power, whose exponent is a number or whose base is."""
        if ast.unparse(exponent) == "-0.5":
            # NumPy and torch take the root for x**0.5, and torch for x**-0.5 too: the infinity of
            # -0 and -inf are the root's.
            return f"1 / np.sqrt({self.write(base)})", _PRODUCT
        return f"{self.write(base, _ATOM)}**{self.exponent(exponent)}", _POWER

    def exponent(self, node: ast.expr) -> str:
        return self.write(node, _UNARY)

    def operation(self, node: ast.BinOp) -> str:
        own = _RANKS[type(node.op)]
        # A long sum leans to the left: a loop instead of a level for each of its terms.
        links = [node]
        while isinstance(links[-1].left, ast.BinOp) and _RANKS[type(links[-1].left.op)] == own:
            links.append(links[-1].left)
        text = self.write(links[-1].left, own)
        for link in reversed(links):
            text += f" {_BINARY[type(link.op)]} {self.write(link.right, own + 1)}"
        return text

    def call(self, node: ast.Call, name: str) -> tuple[str, int]:
        if name == "row":
            return self.node(node.args[0])
        arguments = ", ".join(self.write(argument) for argument in node.args)
        if name in REDUCTION_NAMES and len(node.args) == 1:
            return f"np.{name}({arguments}, axis=-1, keepdims=True)", _ATOM
        name = {"max": "maximum", "min": "minimum"}.get(name, name)
        if name == "pow":
            return self.power(*node.args)
        if name == "reciprocal":
            return f"1 / {self.write(node.args[0], _UNARY)}", _PRODUCT
        text = f"{FUNCTIONS[name].numpy}({arguments})"
        return text, _PRODUCT if text.startswith("1 /") else _ATOM


class _SingleWriter(_Writer):
    """A formula in float32: what is the same for all elements is rounded where it meets them.

    NumPy gives `sqrt(2)` as float64, and would give all that meets it as float64 too.
    """

    def __init__(self, names: set[str], inputs: Collection[str]) -> None:
        super().__init__(names)
        self.inputs = frozenset(inputs)

    def write(self, node: ast.expr, outer: int = 0) -> str:
        if isinstance(node, ast.Compare) or self.varies(node):
            return super().write(node, outer)
        return f"np.float32({self.double(node)})"

    def power(self, base: ast.expr, exponent: ast.expr) -> tuple[str, int]:
        whole = exponent.value if isinstance(exponent, ast.Constant) else 0
        if isinstance(whole, int) and whole > 2:
            return f"_power({self.write(base)}, {whole})", _ATOM
        return super().power(base, exponent)

    def exponent(self, node: ast.expr) -> str:
        literal = node.operand if isinstance(node, ast.UnaryOp) else node
        # A literal has no type of its own, and NumPy takes squares and roots for some.
        return self.double(node) if isinstance(literal, ast.Constant) else self.write(node, _UNARY)

    def double(self, node: ast.expr) -> str:
        """Return the text of a value in double precision."""
        writer = _Writer(self.names)
        writer.source = self.source
        return writer.write(node)

    def varies(self, node: ast.expr) -> bool:
        """Whether elements have values of their own."""
        names = (each.id for each in ast.walk(node) if isinstance(each, ast.Name))
        return not self.inputs.isdisjoint(names)


def _shaping(output: ParsedOutput, result: str) -> list[str]:
    if not output.per_row:
        return [f"{result} = np.broadcast_to({result}, _shape)"]
    if output.keepdims:
        return [f"{result} = np.broadcast_to({result}, (*_shape[:-1], 1))"]
    return [f"{result} = np.broadcast_to({result}, (*_shape[:-1], 1))[..., 0]"]
