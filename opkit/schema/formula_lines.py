"""The text of a formula: one expression, after lines that give parts of it a name; other outputs
are parts, too."""

from __future__ import annotations

import ast
import copy
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace

from opkit.schema.familiar import taken_apart
from opkit.schema.json_text import Json, JsonDocument
from opkit.schema.spec import TensorSpec

__all__ = ["read_formula", "with_other_outputs"]

_LONGEST = 20_000
"""Characters of a formula in which the names stand for what they name."""
_COMMENT = re.compile(r"#[^\n\"']*$", re.MULTILINE)


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
    if "#" in text:
        text = _COMMENT.sub("", text)
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


def with_other_outputs(
    document: JsonDocument, pointer: str, outputs: Sequence[TensorSpec]
) -> tuple[TensorSpec, ...]:
    """Return outputs whose formulas name inputs only: where they name another output, its formula
    stands; of one of whole numbers, what it holds.

    Raises:
        SpecError: an output is computed of itself.
    """
    names = {tensor.name: tensor for tensor in outputs if tensor.formula is not None}
    trees = {name: _tree(tensor.formula or "") for name, tensor in names.items()}
    reads = {
        name: {n.id for n in ast.walk(tree) if isinstance(n, ast.Name)} & names.keys()
        for name, tree in trees.items()
    }
    if not any(reads.values()):
        return tuple(outputs)
    done: dict[str, ast.expr] = {}
    while len(done) < len(names):
        ready = [name for name in names if name not in done and reads[name] <= done.keys()]
        if not ready:
            name = next(name for name in names if name not in done)
            index = next(at for at, tensor in enumerate(outputs) if tensor.name == name)
            raise document.error(
                f'"{name}" is computed of itself',
                f"{pointer}/{index}/formula",
                help="formulas name inputs, attributes, and outputs that are computed of those",
            )
        for name in ready:
            known = {other: _held(names[other], done[other]) for other in reads[name]}
            done[name] = _Names(known).visit(trees[name])
            index = next(at for at, tensor in enumerate(outputs) if tensor.name == name)
            _check_length(document, f"{pointer}/{index}/formula", ast.unparse(done[name]))
    return tuple(
        replace(tensor, formula=ast.unparse(done[tensor.name]))
        if reads.get(tensor.name)
        else tensor
        for tensor in outputs
    )


def _tree(text: str) -> ast.expr:
    return ast.parse(text.strip(), mode="eval").body


def _held(tensor: TensorSpec, value: ast.expr) -> ast.expr:
    """Return what an output holds: of fractions what was computed, which is rounded once."""
    types = {dtype.name for dtype in tensor.dtypes}
    if len(types) > 1 or "float" in next(iter(types)):
        return value
    return ast.Call(ast.Name("cast", ast.Load()), [value, ast.Constant(types.pop())], [])


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
