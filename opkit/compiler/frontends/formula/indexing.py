"""Subscripts of formulas: parts of tensors, by numbers that are written out or by other tensors."""

from __future__ import annotations

import ast
from typing import Any, TypeGuard

from ...ir import Value, quotient
from .operations import FormulaReader
from .parts import Part

__all__ = ["read_subscript"]

_COUNTED = ("arange", "range")
"""What names every row."""


def _is_cut(node: ast.expr) -> TypeGuard[ast.Call]:
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("chunk", "split")
    )


def _is_none(key: ast.expr) -> bool:
    return isinstance(key, ast.Constant) and key.value is None


def _is_dots(key: ast.expr) -> bool:
    return isinstance(key, ast.Constant) and key.value is Ellipsis


def _is_all(key: ast.Slice) -> bool:
    return key.lower is None and key.upper is None and key.step is None


def read_subscript(reader: FormulaReader, node: ast.Subscript) -> Part:
    """Read `x[...]`: indices that are written out, or those of a tensor along one axis.

    Raises:
        GraphError: the indices are neither, or are not those of `x`.
    """
    if _is_cut(node.value):
        return _cut(reader, node, node.value)
    part = reader.read(node.value)
    keys = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    by_tensor = [at for at, key in enumerate(keys) if reader.is_tensor(key)]
    if by_tensor:
        return _looked_up(reader, node, part, keys, by_tensor)
    if any(map(_is_none, keys)):
        part = part.without_gone()
    x = reader.tensor(node, part)
    for key in keys:
        reader.divides |= isinstance(key, ast.Slice) and key.step is not None
    if reader.given.is_whole:
        x, keys = _in_steps(reader, node, x, keys)
    indices = tuple(_key(reader, each) for each in keys)
    return Part(reader.guarded(node, lambda: x[indices]))


def _cut(reader: FormulaReader, node: ast.Subscript, call: ast.Call) -> Part:
    """Read one part of `chunk(x, count, axis=0)` or of `split(x, length, axis=0)`, which are
    PyTorch's: the last part may be shorter."""
    assert isinstance(call.func, ast.Name)
    what = {"chunk": "count", "split": "length"}[call.func.id]
    settings = {str(each.arg): reader.literal(each.value) for each in call.keywords}
    settings |= dict(zip((what, "axis"), map(reader.literal, call.args[1:]), strict=False))
    settings = {"axis": 0, **settings}
    at = reader.literal(node.slice)
    if not call.args or settings.keys() != {what, "axis"} or type(at) is not int:
        raise reader.wrong(node, f"takes a tensor, the {what} of its parts, and an axis")
    x, axis = reader.tensor(call, reader.read(call.args[0])), settings["axis"]
    if type(axis) is not int or not -x.ndim <= axis < x.ndim:
        raise reader.wrong(node, f"has axis {axis}, expected one from {-x.ndim} to {x.ndim - 1}")
    extent, given = x.shape[axis], settings[what]
    if isinstance(given, int) and (given < 1 or at < 0 or (what == "count" and at >= given)):
        raise reader.wrong(node, f"has no part {at}")
    length = given if what == "length" else (extent + given - 1) // given
    if what == "count" and not isinstance(extent, int):
        reader.divides = True
        length = quotient(extent, given) if reader.given.is_whole else length
    is_last = what == "count" and at == given - 1
    end = extent if is_last else (at + 1) * length
    key = (*(slice(None),) * (axis % x.ndim), slice(at * length, end))
    return Part(reader.guarded(node, lambda: x[key]))


def _in_steps(
    reader: FormulaReader, node: ast.Subscript, x: Value, keys: list[ast.expr]
) -> tuple[Value, list[ast.expr]]:
    """Return a tensor whose axes that are read in steps of n are n columns, and the indices with
    one of them: `x[..., 1::2]` is the second of every two."""
    rest = x.ndim - sum(1 for key in keys if not _is_none(key) and not _is_dots(key))
    shape: list[Any] = []
    written: list[ast.expr] = []
    for key in keys:
        if _is_none(key):
            written.append(key)
            continue
        if _is_dots(key):
            shape += x.shape[len(shape) : len(shape) + rest]
            written.append(key)
            continue
        at = len(shape)
        extent = x.shape[at]
        indices = _key(reader, key)
        step = indices.step if isinstance(indices, slice) else None
        first = indices.start or 0 if isinstance(indices, slice) else 0
        is_each = (
            isinstance(step, int)
            and step > 1
            and not isinstance(extent, int)
            and isinstance(first, int)
            and 0 <= first < step
            and indices.stop is None
        )
        if is_each:
            shape.append((quotient(extent, step), step))
            written += [ast.Slice(), ast.Constant(first)]
        else:
            shape.append(extent)
            written.append(key)
    shape += x.shape[len(shape) :]
    if not any(isinstance(each, tuple) for each in shape):
        return x, keys
    wide = [e for each in shape for e in (each if isinstance(each, tuple) else (each,))]
    return reader.guarded(node, lambda: x.reshape(*wide)), written


def _looked_up(
    reader: FormulaReader,
    node: ast.Subscript,
    part: Part,
    keys: list[ast.expr],
    by_tensor: list[int],
) -> Part:
    """Read `table[ids]` and `x[:, ids]`, rows by their indices, and `x[arange(N), ids]`, an index
    for each row."""
    x = reader.tensor(node, part)
    others = [key for at, key in enumerate(keys) if at not in by_tensor]
    is_whole = all(isinstance(key, ast.Slice) and _is_all(key) for key in others)
    first = keys[0]
    if len(by_tensor) == 1 and is_whole:
        axis = by_tensor[0]
        indices = reader.indices(keys[axis])
        return Part(reader.guarded(node, lambda: x.apply("take", indices, axis=axis)))
    is_each = len(keys) == 2 and x.ndim == 2 and isinstance(first, ast.Call)
    if is_each and isinstance(first, ast.Call) and ast.unparse(first.func) in _COUNTED:
        indices = reader.indices(keys[1])
        value, gone = reader.taken(node, x, indices, {"axis": -1})
        return Part(value, gone)
    raise reader.wrong(
        node,
        "names indices by tensors and otherwise",
        "write take(x, indices, axis=1), or take_along(x, indices, axis=1)",
    )


def _key(reader: FormulaReader, node: ast.expr) -> Any:
    if isinstance(node, ast.Tuple):
        return tuple(_key(reader, each) for each in node.elts)
    if isinstance(node, ast.Slice):
        parts = (node.lower, node.upper, node.step)
        return slice(*(None if part is None else reader.literal(part) for part in parts))
    return reader.literal(node)
