"""The `shape` of an output: how its dimensions follow from inputs and attributes.

    same(x)                                      the shape of x
    broadcast(x, y)                              what the shapes broadcast to
    reduce(x, axis=-1, keepdims=true)            without an axis, or several: axis=(0, 2)
    matmul(a, b, transpose_b=true)               rows of a, columns of b, leading axes broadcast
    ["x[0]", "x[-1] // 2", "heads", 8]           one entry a dimension; len(xs) of a list
    ["x[:-1]", "x[-1] // 2"]                     first all axes of x but the last, however many

`axis`, `keepdims` and `transpose_*` may name an attribute; so may a dimension.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

__all__ = ["ShapeOption", "ShapeRule", "counted_list", "leading_axes", "parse_shape_rule"]

ShapeOption: TypeAlias = bool | tuple[int, ...] | str
"""A value, or the name of the attribute that holds it."""

_RULES: dict[str, dict[str, ShapeOption]] = {
    "same": {},
    "broadcast": {},
    "reduce": {"axis": (-1,), "keepdims": False},
    "matmul": {"transpose_a": False, "transpose_b": False},
}
_OPTION_TYPES = {
    "axis": ("int", "list_int"),
    "keepdims": ("bool",),
    "transpose_a": ("bool",),
    "transpose_b": ("bool",),
}
_LITERALS = {"true": True, "false": False}
_OPERATIONS = (ast.Add, ast.Sub, ast.Mult, ast.FloorDiv)


@dataclass(frozen=True)
class ShapeRule:
    """How one output's shape follows."""

    kind: Literal["same", "broadcast", "reduce", "matmul", "dims"]
    tensors: tuple[str, ...]
    """The inputs it reads, in the rule's order."""
    options: dict[str, ShapeOption] = field(default_factory=dict, hash=False)
    """`axis`, `keepdims`, `transpose_a`, `transpose_b`."""
    dims: tuple[str, ...] = ()
    """Expressions of `dims`, one a dimension, checked; Python's syntax."""
    text: str | tuple[str | int, ...] = ""
    """As the prototype has it."""


def parse_shape_rule(
    value: object, *, inputs: Sequence[tuple[str, str]], attrs: Sequence[tuple[str, str]]
) -> ShapeRule:
    """Return the rule that a prototype's `shape` spells.

    Args:
        value: a rule's text, or a list of dimensions.
        inputs: name and param_type of each input.
        attrs: name and type of each attribute.
    Raises:
        ValueError: it is none; the text says what is wrong.
    """
    names = _Names(dict(inputs), dict(attrs))
    if isinstance(value, list):
        dims = tuple(str(entry) for entry in value)
        read: dict[str, None] = {}
        for at, dim in enumerate(dims):
            tree = _expression(dim)
            if at == 0 and leading_axes(dim) is not None:
                assert isinstance(tree, ast.Subscript)
                read.setdefault(names.tensor(tree.value))
                continue
            names.check_dim(tree, read)
        return ShapeRule("dims", tuple(read), dims=dims, text=tuple(value))
    text = str(value)
    tree = _expression(text)
    if not (isinstance(tree, ast.Call) and isinstance(tree.func, ast.Name)):
        raise ValueError(f'"{text}" is no rule; use one of {_known()}, or a list of dimensions')
    kind = tree.func.id
    if kind not in _RULES:
        raise ValueError(f'"{kind}" is no rule; use one of {_known()}, or a list of dimensions')
    tensors = tuple(names.tensor(argument) for argument in tree.args)
    wanted = {"same": 1, "reduce": 1, "matmul": 2}.get(kind)
    if not tensors or (wanted is not None and len(tensors) != wanted):
        raise ValueError(f"{kind} takes {wanted or 'one or more'} inputs, not {len(tensors)}")
    options = dict(_RULES[kind])
    for keyword in tree.keywords:
        if keyword.arg not in options:
            known = ", ".join(options) or "none"
            raise ValueError(f"{kind} has no option {keyword.arg}; its options: {known}")
        options[keyword.arg] = names.option(keyword.arg, keyword.value)
    return ShapeRule(kind, tensors, options, text=text)  # type: ignore[arg-type]


def _known() -> str:
    return ", ".join(f"{name}(...)" for name in _RULES)


def _expression(text: str) -> ast.expr:
    try:
        return ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as err:
        raise ValueError(f'"{text}" is not an expression') from err


@dataclass(frozen=True)
class _Names:
    """What a rule may name."""

    inputs: dict[str, str]
    attrs: dict[str, str]

    def tensor(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name) or node.id not in self.inputs:
            raise ValueError(f'"{ast.unparse(node)}" is not an input')
        if self.inputs[node.id] == "optional":
            raise ValueError(f'"{node.id}" is optional: a shape follows from required inputs')
        return node.id

    def option(self, name: str, node: ast.expr) -> ShapeOption:
        if isinstance(node, ast.Name) and node.id in self.attrs:
            kind = self.attrs[node.id]
            if kind not in _OPTION_TYPES[name]:
                wanted = " or ".join(_OPTION_TYPES[name])
                raise ValueError(
                    f'{name} is the attribute "{node.id}" of type {kind}, not {wanted}'
                )
            return node.id
        if isinstance(node, ast.Name) and node.id in _LITERALS:
            value: object = _LITERALS[node.id]
        else:
            try:
                value = ast.literal_eval(node)
            except ValueError:
                raise ValueError(
                    f'{name} is "{ast.unparse(node)}", neither value nor attribute'
                ) from None
        if name != "axis":
            if isinstance(value, bool):
                return value
            raise ValueError(f"{name} is {value!r}, expected true or false")
        axes = value if isinstance(value, (tuple, list)) else (value,)
        if not axes or not all(type(axis) is int and -8 <= axis < 8 for axis in axes):
            raise ValueError(f"axis is {value!r}, expected axes from -8 to 7, such as -1 or (0, 2)")
        return tuple(axes)

    def check_dim(self, node: ast.expr, read: dict[str, None]) -> None:
        """Check one dimension and note the inputs that it reads."""
        if isinstance(node, ast.Constant) and type(node.value) is int:
            return
        if isinstance(node, ast.Name) and self.attrs.get(node.id) == "int":
            return
        if isinstance(node, ast.BinOp) and isinstance(node.op, _OPERATIONS):
            self.check_dim(node.left, read)
            self.check_dim(node.right, read)
            return
        if isinstance(node, ast.Subscript) and _axis(node.slice) is not None:
            read.setdefault(self.tensor(node.value))
            return
        counted = counted_list(node)
        if counted is not None and self.inputs.get(counted) == "dynamic":
            read.setdefault(counted)
            return
        raise ValueError(
            f'"{ast.unparse(node)}" is no dimension: use whole numbers, int attributes,'
            " x[axis] of an input, len(xs) of a list, and + - * //"
        )


def leading_axes(dim: str) -> tuple[str, int] | None:
    """Return the input whose first axes a first dimension stands for, and how many last ones it
    leaves out: those of `x[:-1]` are x and 1; None for any other."""
    node = _expression(dim)
    if not isinstance(node, ast.Subscript) or not isinstance(node.slice, ast.Slice):
        return None
    part = node.slice
    left = None if part.upper is None else _axis(part.upper)
    is_start = part.lower is None and part.step is None
    if not is_start or left is None or left >= 0 or not isinstance(node.value, ast.Name):
        return None
    return node.value.id, -left


def counted_list(node: ast.expr) -> str | None:
    """Return the list whose length a part of a dimension is, `len(xs)`; None for any other."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "len":
        names = [each.id for each in node.args if isinstance(each, ast.Name)]
        return names[0] if len(node.args) == 1 and names else None
    return None


def _axis(node: ast.expr) -> int | None:
    try:
        value = ast.literal_eval(node)
    except ValueError:
        return None
    return value if type(value) is int else None
