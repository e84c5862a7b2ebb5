"""The text of a formula: one expression, after lines that give parts of it a name."""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping

from opkit.schema.familiar import taken_apart
from opkit.schema.json_text import Json, JsonDocument

__all__ = ["read_formula"]

_LONGEST = 20_000
"""Characters of a formula in which the names stand for what they name."""


def read_formula(document: JsonDocument, pointer: str, given: Json) -> str:
    """Return a formula as one expression, its names replaced by what they stand for.

    What is computed twice by that is computed once: equal parts of formulas are one value.

    Args:
        document: the prototype, for errors.
        pointer: where the formula stands.
        given: text, or a list of its lines.

    Raises:
        SpecError: it is no expression, or a line is not `name = expression`.
    """
    text = "\n".join(map(str, given)) if isinstance(given, list) else str(given)
    one, whole = text.strip(), " ".join(text.split())
    try:
        ast.parse(one, mode="eval")
        return text if isinstance(given, str) else one
    except (ValueError, RecursionError, MemoryError) as err:
        raise document.error(f"not a formula: {err or type(err).__name__}", pointer) from err
    except SyntaxError as err:
        first = err
    if "=" in one and (found := _substituted(document, pointer, one)):
        return found
    try:
        # One expression on several lines needs no brackets around it.
        ast.parse(whole, mode="eval")
        return whole
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise document.error(
            f'column {first.offset} of "{_around(one, first.offset)}": not a formula: {first.msg}',
            pointer,
        ) from first


def _substituted(document: JsonDocument, pointer: str, text: str) -> str:
    """Return the last line of some with the names of those before it replaced; nothing where they
    are no lines of that kind."""
    try:
        body = ast.parse(text).body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ""
    known: dict[str, ast.expr] = {}
    *lines, last = body
    for line in lines:
        target = (
            line.targets[0] if isinstance(line, ast.Assign) and len(line.targets) == 1 else None
        )
        parts = None
        if isinstance(line, ast.Assign) and isinstance(target, ast.Tuple):
            parts = taken_apart(target, line.value)
        if parts is not None:
            value = {name: _Names(known).visit(copy.deepcopy(part)) for name, part in parts.items()}
            for part in value.values():
                _check_length(document, pointer, ast.unparse(part))
            known |= value
            continue
        if not isinstance(line, ast.Assign) or not isinstance(target, ast.Name):
            raise document.error(
                f'"{ast.unparse(line)[:60]}" gives nothing a name',
                pointer,
                help="lines before the last are name = expression, or a, b = chunk(x, 2, axis=-1)",
            )
        known[target.id] = _Names(known).visit(copy.deepcopy(line.value))
        _check_length(document, pointer, ast.unparse(known[target.id]))
    if isinstance(last, ast.Assign):
        name = ast.unparse(last.targets[0])
        raise document.error(
            f'the formula ends in "{name} = ...", and says no value',
            pointer,
            help=f"add a last line: {name}",
        )
    if not isinstance(last, ast.Expr):
        raise document.error(f'"{ast.unparse(last)[:60]}" is no expression', pointer)
    found = ast.unparse(_Names(known).visit(copy.deepcopy(last.value)))
    _check_length(document, pointer, found)
    return found


def _check_length(document: JsonDocument, pointer: str, text: str) -> None:
    """Refuse names within names that grow beyond any formula."""
    if len(text) > _LONGEST:
        raise document.error(
            f"with its names replaced the formula has {len(text)} characters, of {_LONGEST}",
            pointer,
            help="use fewer names within names, or split the operator",
        )


class _Names(ast.NodeTransformer):
    """Puts what names stand for in their place; functions and keywords keep theirs."""

    def __init__(self, known: Mapping[str, ast.expr]) -> None:
        self.known = known

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Return what a name stands for."""
        return copy.deepcopy(self.known[node.id]) if node.id in self.known else node

    def visit_Call(self, node: ast.Call) -> ast.expr:
        """Return a call with its arguments replaced, and what it is a method of."""
        if isinstance(node.func, ast.Attribute):
            node.func.value = self.visit(node.func.value)
        node.args = [self.visit(each) for each in node.args]
        for keyword in node.keywords:
            keyword.value = self.visit(keyword.value)
        return node


def _around(formula: str, column: int | None, reach: int = 60) -> str:
    """Return a formula, of a long one what surrounds a column."""
    if len(formula) <= 2 * reach:
        return formula
    start = max(0, (column or 1) - reach)
    end = start + 2 * reach
    return f"{'...' if start else ''}{formula[start:end]}{'...' if end < len(formula) else ''}"
