"""The grammar of formulas: what each part of their text means."""

from __future__ import annotations

import ast
import difflib
from collections.abc import Callable, Mapping
from typing import Any

from opkit.schema import WRITTEN_OUT

from ...ir import GraphError, Value
from ...ops import OPERATORS
from .functions import (
    attention,
    dropout_of_given_share,
    filled,
    gradient,
    product_of_letters,
    torch_function,
    torch_row,
    word,
)
from .indexing import read_subscript
from .operations import FROM_NOTHING, FormulaReader
from .parts import Part, floats
from .words import FORMULA_WORDS, flat_widths

__all__ = ["Reader"]

_BINARY = {
    **{ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div", ast.Pow: "pow"},
    **{ast.FloorDiv: "floor_divide", ast.Mod: "mod", ast.MatMult: "matmul"},
    **{ast.LShift: "shift_left", ast.RShift: "shift_right"},
    **{ast.BitAnd: "bitwise_and", ast.BitOr: "bitwise_or", ast.BitXor: "bitwise_xor"},
}
_COMPARE = {
    **{ast.Lt: "less", ast.LtE: "less_equal", ast.Gt: "greater", ast.GtE: "greater_equal"},
    **{ast.Eq: "equal", ast.NotEq: "not_equal"},
}
_ALIASES = {"ln": "log", "arctan2": "atan2", "power": "pow"}
_CURES = {
    "group_norm": 'write group_norm(x, groups, weight, bias, eps) of an input x whose "shape" has'
    ' the number of channels, such as ["N", 32, "H", "W"]',
    "split": "write split(x, 64, axis=-1)[0], the first 64, or a, b = split(x, 64, axis=-1)",
    "chunk": "write chunk(x, 2, axis=-1)[0], the first half, or a, b = chunk(x, 2, axis=-1)",
}
_CURES |= dict.fromkeys(
    ("argwhere", "compress", "masked_select", "nonzero", "unique"),
    "how long its result is depends on values, and lengths follow from shapes here: keep places"
    " with where(mask, x, 0), or order them with sort and argsort",
)
"""What to write for names that are understood in some places only."""
_KINDS = ("elementwise", "reduction", "movement", "index", "scan", "line", "product", "random")
"""Kinds of operators that formulas call by name."""
_FUNCTIONS: Mapping[str, Callable[[FormulaReader, ast.Call], Part]] = {
    "gradient": gradient,
    "scaled_dot_product_attention": attention,
    "einsum": product_of_letters,
    **dict.fromkeys(("zeros", "ones", "full"), filled),
}


class Reader(FormulaReader):
    """Reads one formula."""

    def output(self) -> Value:
        """Return the formula's value.

        Raises:
            GraphError: the text is no formula, or is a number.
        """
        try:
            tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError) as err:
            message = f'"{self.text}" is not a formula: {err}'
            raise GraphError(message, location=None) from err
        part = self.read(tree)
        value = part.value
        if not isinstance(value, Value):
            raise self.wrong(tree, "is a number, the same for every element")
        last = part.without_gone().value
        assert isinstance(last, Value)
        return last

    def read(self, node: ast.expr) -> Part:
        if isinstance(node, ast.Constant) and isinstance(node.value, bool | int | float):
            return Part(node.value)
        if isinstance(node, ast.Name):
            return self.name(node)
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            return self.binary(node)
        if isinstance(node, ast.UnaryOp):
            return self.unary(node)
        if isinstance(node, ast.Compare) and len(node.ops) == 1 and type(node.ops[0]) in _COMPARE:
            return self.apply(node, _COMPARE[type(node.ops[0])], node.left, node.comparators[0])
        if isinstance(node, ast.BoolOp):
            name = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
            total = self.read(node.values[0])
            for each in node.values[1:]:
                total = self.combine(node, name, [total, self.read(each)])
            return total
        if isinstance(node, ast.IfExp):
            return self.apply(node, "where", node.test, node.body, node.orelse)
        if isinstance(node, ast.Attribute) and node.attr == "T":
            part = self.read(node.value)
            return Part(self.tensor(node, part).T)
        if isinstance(node, ast.Subscript):
            return read_subscript(self, node)
        if isinstance(node, ast.Call):
            return self.call(node)
        raise self.wrong(node, "is not part of the formula language")

    def binary(self, node: ast.BinOp) -> Part:
        # A long sum leans to the left: a loop instead of a level for each of its terms.
        chain = [node]
        while isinstance(chain[-1].left, ast.BinOp) and type(chain[-1].left.op) in _BINARY:
            chain.append(chain[-1].left)
        part = self.read(chain[-1].left)
        for each in reversed(chain):
            name = _BINARY[type(each.op)]
            if name in ("shift_left", "shift_right"):
                part = self.shifted(each, name, part)
                continue
            right = self.read(each.right)
            if name == "bitwise_xor" and floats([part.value, right.value]):
                name = "pow"
            part = self.combine(each, name, [part, right])
        return part

    def shifted(self, node: ast.BinOp, name: str, part: Part) -> Part:
        """Return whole numbers times a power of two, or divided by one and rounded down, which
        shifting their bits is."""
        count = self.literal(node.right)
        if floats([part.value]) or not isinstance(count, int) or not 0 <= count <= 30:
            raise self.wrong(node, "shifts whole numbers by 0 to 30 bits, a number written out")
        operator = "mul" if name == "shift_left" else "floor_divide"
        return self.combine(node, operator, [part, Part(1 << count)])

    def name(self, node: ast.Name) -> Part:
        known = self.given.known
        if node.id not in known:
            near = difflib.get_close_matches(node.id, [*known, *OPERATORS], n=1)
            raise self.wrong(
                node,
                "is no input, attribute or size",
                f"did you mean {near[0]}?" if near else "there are " + ", ".join(known),
            )
        return Part(known[node.id])

    def unary(self, node: ast.UnaryOp) -> Part:
        part = self.read(node.operand)
        if isinstance(node.op, ast.UAdd):
            return part
        if not isinstance(part.value, Value):
            operators: dict[type, Callable[[Any], Any]] = {
                **{ast.USub: lambda value: -value, ast.Not: lambda value: not value},
                ast.Invert: lambda value: ~int(value),
            }
            return Part(operators[type(node.op)](part.value))
        names = {ast.USub: "neg", ast.Not: "logical_not", ast.Invert: "bitwise_not"}
        return self.combine(node, names[type(node.op)], [part])

    def call(self, node: ast.Call) -> Part:
        if not isinstance(node.func, ast.Name):
            raise self.wrong(node, "is not part of the formula language", "call functions by name")
        if node.func.id in _FUNCTIONS:
            return _FUNCTIONS[node.func.id](self, node)
        if node.func.id in FORMULA_WORDS and node.args:
            return word(self, node, node.func.id)
        name = _ALIASES.get(node.func.id, node.func.id)
        if name in ("max", "min") and len(node.args) == 2:
            name = {"max": "maximum", "min": "minimum"}[name]
        row = OPERATORS.get(name)
        if row is None and (of_torch := torch_row(name)) is not None:
            return torch_function(self, node, of_torch)
        if row is None or (row.kind not in _KINDS and name not in FROM_NOTHING):
            known = [each for each, row in OPERATORS.items() if row.kind in _KINDS]
            near = difflib.get_close_matches(name, known, n=2)
            cure = f"did you mean {' or '.join(near)}?" if near else "docs/operators.md lists them"
            if name in WRITTEN_OUT:
                cure = f"it takes {name}({WRITTEN_OUT[name].parameters})"
            raise self.wrong(node, "calls no operator of the compiler", _CURES.get(name, cure))
        if name == "dropout" and (share := dropout_of_given_share(self, node)) is not None:
            return share
        settings = {str(each.arg): self.literal(each.value) for each in node.keywords}
        positional = list(node.args)
        if row.arity is not None and len(positional) > row.arity:
            # What follows the tensors is the settings, in the table's order: cast(x, "int32").
            names = [each for each in row.parameters if each not in settings]
            extra = positional[row.arity :]
            positional = positional[: row.arity]
            if len(extra) > len(names):
                tensors = f"{row.arity} tensor{'' if row.arity == 1 else 's'}"
                takes = ", ".join([tensors, *row.parameters])
                raise self.wrong(
                    node, f"has {len(extra) - len(names)} too many", f"it takes {takes}"
                )
            settings |= dict(zip(names, map(self.literal, extra), strict=False))
        parts = [self.read(each) for each in _listed(row.arity, positional)]
        if name == "pad" and "widths" in settings and parts:
            rank = self.tensor(node, parts[0]).ndim
            settings["widths"] = flat_widths(settings["widths"], rank)
        return self.combine(node, name, parts, settings)

    def apply(self, node: ast.expr, name: str, *operands: ast.expr) -> Part:
        return self.combine(node, name, [self.read(each) for each in operands])


def _listed(arity: int | None, nodes: list[ast.expr]) -> list[ast.expr]:
    """Return the operands; those of an operator over lists may stand in brackets."""
    if arity is None and len(nodes) == 1 and isinstance(nodes[0], ast.List | ast.Tuple):
        return list(nodes[0].elts)
    return nodes
