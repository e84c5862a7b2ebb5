"""Expressions over tensors, for `print`, conditions and messages: `any(isnan(y))`, `x[3] > 0.5`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from opkit.errors import UsageError

__all__ = ["FUNCTIONS", "Expression", "Message", "short"]

_MOST_SHOWN = 8
# A literal, an expression in braces, or a brace that is neither.
_PIECE = re.compile(r"((?:[^{}]|\{\{|\}\})+)|\{([^{}]+)\}|([{}])")

FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "any": np.any,
    "all": np.all,
    "isnan": np.isnan,
    "isinf": np.isinf,
    "isfinite": np.isfinite,
    "abs": np.abs,
    "max": np.max,
    "min": np.min,
    "sum": np.sum,
    "mean": np.mean,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "sqrt": np.sqrt,
    "len": np.size,
}
"""What expressions may call, by name."""
_BINARY: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Mod: np.mod,
    ast.FloorDiv: np.floor_divide,
    ast.BitAnd: np.logical_and,
    ast.BitOr: np.logical_or,
}
_COMPARED: Mapping[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
_UNARY: Mapping[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: np.negative,
    ast.UAdd: np.positive,
    ast.Not: np.logical_not,
    ast.Invert: np.logical_not,
}


class Expression:
    """One expression, parsed."""

    def __init__(self, text: str) -> None:
        """Parse an expression.

        Raises:
            UsageError: it is none, or holds what is no part of the language.
        """
        self.text = text.strip()
        try:
            self._tree = ast.parse(self.text, mode="eval").body
        except (SyntaxError, ValueError, RecursionError) as error:
            raise UsageError(
                f'"{self.text}" is no expression: {error.args[0]}',
                help="write it as any(isnan(y)) or x[3] > 0.5",
            ) from None
        self.names = tuple(dict.fromkeys(self._check(self._tree)))
        """The tensors that it reads."""

    def value(self, tensor: Callable[[str], Any]) -> Any:
        """Return what it comes to.

        Args:
            tensor: the array of a name.
        Raises:
            UsageError: an index outside a tensor, shapes that do not fit, too many arguments.
        """
        try:
            with np.errstate(all="ignore"):
                return self._value(self._tree, tensor)
        except (IndexError, ValueError, TypeError, ZeroDivisionError) as error:
            raise UsageError(f"{self.text}: {error}") from None

    def holds(self, tensor: Callable[[str], Any]) -> bool:
        """Return whether it is true, for every element where it has several."""
        return bool(np.all(self.value(tensor)))

    def _check(self, node: ast.AST) -> list[str]:
        if isinstance(node, ast.Name):
            return [node.id]
        if isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            return []
        if isinstance(node, ast.Call):
            named = isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS
            if named and not node.keywords:
                return [name for each in node.args for name in self._check(each)]
            wrong = ast.unparse(node.func)
            raise UsageError(
                f'{self.text}: there is no function "{wrong}"',
                help="there are " + ", ".join(FUNCTIONS),
            )
        parts: list[ast.AST] = []
        if isinstance(node, ast.BinOp) and type(node.op) in _BINARY:
            parts = [node.left, node.right]
        elif isinstance(node, ast.UnaryOp) and type(node.op) in _UNARY:
            parts = [node.operand]
        elif isinstance(node, ast.Compare) and all(type(op) in _COMPARED for op in node.ops):
            parts = [node.left, *node.comparators]
        elif isinstance(node, ast.BoolOp):
            parts = list(node.values)
        elif isinstance(node, ast.Subscript):
            parts = [node.value, node.slice]
        elif isinstance(node, ast.Tuple):
            parts = list(node.elts)
        elif isinstance(node, ast.Slice):
            parts = [part for part in (node.lower, node.upper, node.step) if part is not None]
        else:
            raise UsageError(f"{self.text}: {ast.unparse(node)} is no part of the language")
        return [name for part in parts for name in self._check(part)]

    def _value(self, node: ast.AST, tensor: Callable[[str], Any]) -> Any:
        def of(part: ast.AST | None) -> Any:
            return None if part is None else self._value(part, tensor)

        if isinstance(node, ast.Name):
            return tensor(node.id)
        if isinstance(node, ast.Constant):
            return node.value
        if isinstance(node, ast.Call):
            assert isinstance(node.func, ast.Name)
            return FUNCTIONS[node.func.id](*map(of, node.args))
        if isinstance(node, ast.BinOp):
            return _BINARY[type(node.op)](of(node.left), of(node.right))
        if isinstance(node, ast.UnaryOp):
            return _UNARY[type(node.op)](of(node.operand))
        if isinstance(node, ast.Compare):
            values = [of(node.left), *map(of, node.comparators)]
            results = [
                _COMPARED[type(op)](one, other)
                for op, one, other in zip(node.ops, values, values[1:], strict=False)
            ]
            return results[0] if len(results) == 1 else np.logical_and.reduce(results)
        if isinstance(node, ast.BoolOp):
            combine = np.logical_and if isinstance(node.op, ast.And) else np.logical_or
            return combine.reduce([np.all(of(part)) for part in node.values])
        if isinstance(node, ast.Subscript):
            index = of(node.slice)
            return np.asarray(of(node.value))[index]
        if isinstance(node, ast.Tuple):
            return tuple(map(of, node.elts))
        assert isinstance(node, ast.Slice)
        return slice(of(node.lower), of(node.upper), of(node.step))


class Message:
    """A text with expressions in braces: `x begins with {x[0]}`; `{{` and `}}` are braces."""

    def __init__(self, text: str) -> None:
        """Parse a text.

        Raises:
            UsageError: a brace stands alone, or what is between braces is no expression.
        """
        self.text = text
        self._parts: list[str | Expression] = []
        for literal, expression, alone in re.findall(
            r"((?:[^{}]|\{\{|\}\})+)|\{([^{}]+)\}|([{}])", text
        ):
            if alone:
                raise UsageError(
                    f'"{text}": a brace stands alone', help="write {x[0]}, and {{ for a brace"
                )
            literal = literal.replace("{{", "{").replace("}}", "}")
            self._parts.append(Expression(expression) if expression else literal)

    @property
    def names(self) -> tuple[str, ...]:
        """The tensors that its expressions read."""
        expressions = [part for part in self._parts if isinstance(part, Expression)]
        return tuple(dict.fromkeys(name for part in expressions for name in part.names))

    def filled(self, tensor: Callable[[str], Any]) -> str:
        """Return the text with the values of its expressions; `?` for one that has none there.

        Args:
            tensor: the array of a name.
        """
        return "".join(
            part if isinstance(part, str) else _shown(part, tensor) for part in self._parts
        )


def _shown(expression: Expression, tensor: Callable[[str], Any]) -> str:
    try:
        return short(np.asarray(expression.value(tensor)))
    except UsageError:
        # Its tensors are not there yet, or not on this core.
        return "?"


def short(array: NDArray[Any]) -> str:
    """Return the first elements of an array as text; a number alone without brackets."""
    flat = array.reshape(-1)
    shown = ", ".join(f"{value:.6g}" for value in flat[:_MOST_SHOWN].tolist())
    more = ", ..." if flat.size > _MOST_SHOWN else ""
    return shown if not array.ndim else f"[{shown}{more}]"
