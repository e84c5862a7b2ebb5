"""What a formula's reader does with parts: it applies operators, and names the column of errors."""

from __future__ import annotations

import ast
import copy
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from opkit.errors import UsageError

from ...ir import (
    HALVES,
    Attribute,
    Graph,
    GraphError,
    Location,
    Value,
    checked_settings,
    computed_size,
)
from ...ops import OPERATORS
from ...tracing import GraphBuilder, TensorSpec
from .parts import Part, floats, gone_of_all, of_one_rank, single, widened

__all__ = ["FROM_NOTHING", "FormulaReader", "Given"]

FROM_NOTHING = ("arange",)
"""Operators that take no tensor."""
_COMPUTED = ("elementwise", "reduction", "scan", "random")
_PROMOTING = ("add", "sub", "mul", "div", "maximum", "minimum")
"""Operators that compute in the widest of their operands' types."""
_LONGEST_NOTE = 60
"""Characters of a formula's part that stand beside the instructions which compute it."""


class _Undivided(ast.NodeTransformer):
    """Writes divisions of sizes as those that leave no rest."""

    def visit_FloorDiv(self, node: ast.FloorDiv) -> ast.Div:
        return ast.Div()


def _short_text(node: ast.expr) -> str:
    """Return a formula's part; nothing where it is too long for a note."""
    # What is far longer is not worth writing: it may be deeper than Python's stack.
    if (node.end_col_offset or 0) - node.col_offset > 4 * _LONGEST_NOTE:
        return ""
    text = ast.unparse(node)
    return text if len(text) <= _LONGEST_NOTE else ""


@dataclass(frozen=True)
class Given:
    """What all formulas of an operator may name."""

    builder: GraphBuilder
    known: Mapping[str, Any]
    """Inputs, attributes, sizes and constants, by name."""
    inputs: Sequence[TensorSpec]
    attributes: Sequence[Attribute]
    sizes: Mapping[str, Any]
    is_whole: bool
    """Whether sizes are multiples of what they are divided by."""


class FormulaReader(ABC):
    """One formula that is being read; which syntax means what is the grammar's (`read`)."""

    def __init__(self, given: Given, text: str, inner_graph: Callable[[str, str], Graph]) -> None:
        self.given = given
        self.builder = given.builder
        self.text = text.strip()
        self.inner_graph = inner_graph
        """Returns the graph of a formula inside this one, by a name for its result and its text."""
        self.divides = False
        """Whether a size was divided that has a name."""

    @abstractmethod
    def read(self, node: ast.expr) -> Part:
        """Return what a part of the formula is."""

    def wrong(self, node: ast.expr, what: str, help: str | None = None) -> GraphError:
        """Return the error that says what is wrong with a part of the formula, and its column."""
        text = _short_text(node) or f"{self.text[node.col_offset :][:57]}..."
        message = f'column {node.col_offset + 1}: "{text}" {what}'
        return GraphError(message, location=None, help=help)

    def guarded(self, node: ast.expr, apply: Callable[[], Any]) -> Any:
        """Return what `apply` gives; its errors become those of a part of the formula."""
        place = Location("formula", 1, _short_text(node))
        try:
            with self.builder.at(place):
                return apply()
        except UsageError as err:
            # The place of a formula is its column: it stands in no Python file.
            raise self.wrong(node, f"cannot be: {err.message}", err.help) from err

    def tensor(self, node: ast.expr, part: Part) -> Value:
        """Return a part's tensor.

        Raises:
            GraphError: it is a number.
        """
        if not isinstance(part.value, Value):
            raise self.wrong(node, "takes a tensor, not a number")
        return part.value

    def combine(
        self,
        node: ast.expr,
        name: str,
        parts: Sequence[Part],
        settings: Mapping[str, Any] | None = None,
    ) -> Part:
        """Return an operator of parts: now where all are numbers, else as a node of the graph."""
        given = dict(settings or {})
        if name == "broadcast_to" and parts and not isinstance(parts[0].value, Value):
            parts = [Part(self.builder.constant(parts[0].value))]
        makes = OPERATORS[name].kind == "random" or name in FROM_NOTHING
        if not makes and not any(isinstance(part.value, Value) for part in parts):
            return Part(self.number(node, name, parts, given))
        row = OPERATORS[name]
        if row.kind == "elementwise" and any(part.gone for part in parts):
            parts = of_one_rank(parts)
        gone: frozenset[int] = frozenset()
        keeps = bool(given.get("keepdims", False))
        if row.kind == "reduction" or name in ("argmax", "argmin"):
            given["keepdims"] = True
        # Halves hold what is stored: what is computed of them is float32 until an output's end.
        operands = [part.value for part in parts]
        if name == "matmul" and "dtype" not in given and len(floats(operands)) == 1:
            given |= {"dtype": "float32"} if floats(operands) <= set(HALVES) else {}
        if name in _PROMOTING:
            operands = widened(operands)
        elif row.kind in _COMPUTED or len(floats(operands)) > 1:
            operands = [single(each) for each in operands]
        if name == "take_along" and len(operands) == 2:
            value, gone = self.taken(node, operands[0], operands[1], given)
        else:
            value = self.guarded(node, lambda: self.builder.apply(name, *operands, **given))
        if row.kind == "elementwise":
            gone = gone_of_all(parts)
        elif "keepdims" in given:
            rank = self.tensor(node, parts[0]).ndim
            axes = given.get("axis", row.parameters["axis"])
            axes = range(rank) if axes is None else axes
            axes = (axes,) if isinstance(axes, int) else axes
            reduced = frozenset(axis if axis < 0 else axis - rank for axis in axes)
            gone = parts[0].gone | (frozenset() if keeps else reduced)
        return Part(value, gone)

    def taken(
        self, node: ast.expr, x: Any, indices: Any, given: Mapping[str, Any]
    ) -> tuple[Value, frozenset[int]]:
        """Return `take_along`; where the indices lack its axis there is one for each line, and the
        result lacks it, too."""
        is_line = isinstance(x, Value) and isinstance(indices, Value) and indices.ndim == x.ndim - 1
        axis = given.get("axis")
        gone: frozenset[int] = frozenset()
        if is_line and isinstance(axis, int) and -x.ndim <= axis < x.ndim:
            at = axis % x.ndim
            indices = indices.reshape(*indices.shape[:at], 1, *indices.shape[at:])
            gone = frozenset({at - x.ndim})
        return self.guarded(
            node, lambda: self.builder.apply("take_along", x, indices, **given)
        ), gone

    def number(
        self,
        node: ast.expr,
        name: str,
        parts: Sequence[Part],
        given: Mapping[str, Any],
    ) -> Any:
        """Return an operator of plain numbers, computed now."""
        import numpy as np

        row = OPERATORS[name]
        if row.kind != "elementwise":
            raise self.wrong(node, "takes a tensor, not a number")
        values = [np.asarray(part.value) for part in parts]
        settings = self.guarded(node, lambda: checked_settings(row, given, 0))
        try:
            with np.errstate(all="ignore"):
                return row.reference(*values, **settings).item()
        except (TypeError, ValueError, AttributeError, ArithmeticError) as err:
            raise self.wrong(node, f"is no number: {err}") from err

    def is_tensor(self, node: ast.expr) -> bool:
        """Whether an index is one of a tensor: it reads an input."""
        names = {spec.name for spec in self.given.inputs}
        return not isinstance(node, ast.Slice) and any(
            isinstance(each, ast.Call) or (isinstance(each, ast.Name) and each.id in names)
            for each in ast.walk(node)
        )

    def indices(self, node: ast.expr) -> Value:
        """Read whole numbers, as the operators that look up take them."""
        value = self.tensor(node, self.read(node))
        is_other = "int" in value.dtype and value.dtype != "int32"
        return value.astype("int32") if is_other else value

    def literal(self, node: ast.expr) -> Any:
        """Return a value that is written out; numbers may be computed of named sizes."""
        if isinstance(node, ast.Tuple | ast.List):
            return tuple(self.literal(each) for each in node.elts)
        if any(isinstance(each, ast.FloorDiv) for each in ast.walk(node)):
            self.divides = True
            node = _Undivided().visit(copy.deepcopy(node)) if self.given.is_whole else node
        try:
            return computed_size(node, self.size)
        except (KeyError, ValueError, ArithmeticError):
            pass
        try:
            return ast.literal_eval(node)
        except ValueError:
            named = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
            given = next((a for a in self.given.attributes if a.name in named), None)
            cure = None
            if given is not None and given.kind == "int":
                cure = f'give "{given.name}" a default_value: the kernel is made for it'
            elif given is not None:
                cure = f'make "{given.name}" an attribute of type int'
            raise self.wrong(node, "must be a number here", cure) from None

    def size(self, name: str) -> Any:
        """Return a named size, or an attribute's default, which the program is then made for."""
        if name in self.given.sizes:
            return self.given.sizes[name]
        found = self.builder.fixed(name)
        if found is None:
            raise KeyError(name)
        return found
