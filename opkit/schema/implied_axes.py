"""The axes of inputs without a `shape`, where their formulas say what only formulas over axes have.

Element by element, every input has the same axes, however many: `["..."]`. With reductions along
the last axis that axis is one of its own: `["...", "columns"]`. Where all inputs are lists, whose
formulas are computed over all of their tensors, they have these axes whatever the formulas say.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TypeGuard

from opkit.algebra import FUNCTIONS, REDUCTION_NAMES
from opkit.schema.names import free_name
from opkit.schema.spec import AttrSpec, TensorSpec

__all__ = ["ELEMENTWISE", "ROWS", "with_implied_axes"]

ELEMENTWISE = frozenset(
    {
        *("acos", "acosh", "asin", "atan", "atan2", "cast", "clamp", "cos", "elu", "erf", "erfc"),
        *("dropout", "exp2", "floor_divide", "fmod", "gelu", "hardsigmoid", "hardswish"),
        "leaky_relu",
        *("log10", "log2", "logcosh", "log_sigmoid", "mish", "mod", "ndtr", "signbit", "silu"),
        *("sin", "tan", "tanhshrink", "trunc"),
    }
)
"""The compiler's functions of single elements that other formulas do not have."""
ROWS = frozenset(
    {
        *("argmax", "argmin", "cumprod", "cumsum", "log_softmax", "logsumexp", "prod", "softmax"),
        *("take_along", "var"),
    }
)
"""The compiler's functions along an axis that other formulas do not have."""
_CUTS = frozenset({"chunk", "split"})
"""Functions whose results, `chunk(x, 2, axis=-1)[0]`, are parts of an axis."""
_ALONG_LAST = frozenset({"log_softmax", "softmax"})
"""Functions along an axis that take the last one unless another is named."""
_BYTES = frozenset({"bool", "int8", "uint8"})
_OPERATORS = (ast.Mod, ast.FloorDiv)
_BITS = (ast.BitAnd, ast.BitOr, ast.Invert, ast.LShift, ast.RShift)
_CHOICES = (ast.BoolOp, ast.Not, ast.IfExp)


def with_implied_axes(
    inputs: tuple[TensorSpec, ...], outputs: Sequence[TensorSpec], attrs: Sequence[AttrSpec]
) -> tuple[TensorSpec, ...]:
    """Return the inputs of an operator, with axes where its formulas need them to be understood."""
    tensors = (*inputs, *outputs)
    if not inputs or any(t.axes is not None for t in tensors):
        return inputs
    has_lists = all(tensor.is_list for tensor in tensors)
    if not has_lists and any(t.param_type != "required" for t in tensors):
        return inputs
    if any(tensor.formula is None for tensor in outputs):
        return inputs
    trees = [ast.parse((t.formula or "").strip(), mode="eval") for t in outputs]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    cuts = {id(node.value) for node in nodes if _is_cut(node)}
    cuts |= {id(node) for node in nodes if _is_cut(node)}
    is_beyond = (
        has_lists or _mixes_types(tensors) or any(_is_beyond(node, tensors) for node in nodes)
    )
    if has_lists and any(map(_is_of_all, nodes)):
        # Of which tensors, one or all?
        return inputs
    # Of whole numbers ^ is bits, of fractions it may be a power.
    cuts |= {id(node) for node in nodes if isinstance(node, ast.BitXor) and _are_whole(tensors)}
    if not is_beyond or not all(id(node) in cuts or _fits(node) for node in nodes):
        return inputs
    taken = {tensor.name for tensor in tensors} | {attr.name for attr in attrs}
    has_rows = any(_is_cut(node) or _is_along_last(node) for node in nodes)
    reads_columns = "columns" in _names(nodes) and "columns" not in taken
    if not has_rows and not reads_columns:
        return tuple(replace(tensor, axes=("...",)) for tensor in inputs)
    last = free_name("columns", taken)
    # An index for each row, such as the class of a sample, has no columns.
    indices = {name for node in nodes for name in _index_names(node)}
    indices &= {tensor.name for tensor in inputs if _holds_indices(tensor)}
    return tuple(
        replace(tensor, axes=("...",) if tensor.name in indices else ("...", last))
        for tensor in inputs
    )


def _index_names(node: ast.AST) -> Iterator[str]:
    """Yield what the indices of `take_along(x, indices)` are computed of."""
    if _function(node) == "take_along" and isinstance(node, ast.Call) and len(node.args) == 2:
        yield from _names(list(ast.walk(node.args[1])))


def _holds_indices(tensor: TensorSpec) -> bool:
    return all("int" in dtype.name for dtype in tensor.dtypes)


def _mixes_types(tensors: Sequence[TensorSpec]) -> bool:
    """Whether floats stand beside types that other formulas do not have: a mask of bytes, what a
    quantiser gives."""
    for dtypes in zip(*(tensor.dtypes for tensor in tensors), strict=True):
        names = {dtype.name for dtype in dtypes}
        if any("float" in name for name in names) and names & _BYTES:
            return True
    return False


def _are_whole(tensors: Sequence[TensorSpec]) -> bool:
    return not any("float" in dtype.name for tensor in tensors for dtype in tensor.dtypes)


def _names(nodes: Sequence[ast.AST]) -> Iterator[str]:
    return (node.id for node in nodes if isinstance(node, ast.Name))


def _function(node: ast.AST) -> str:
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id
    return ""


def _is_cut(node: ast.AST) -> TypeGuard[ast.Subscript]:
    """Whether part of a formula is one part of the last axis, `chunk(x, 2, axis=-1)[0]`."""
    return (
        isinstance(node, ast.Subscript)
        and isinstance(node.value, ast.Call)
        and _function(node.value) in _CUTS
        and _said_axis(node.value) == ["-1"]
    )


def _said_axis(node: ast.Call) -> list[str]:
    return [ast.unparse(each.value) for each in node.keywords if each.arg == "axis"]


def _is_of_all(node: ast.AST) -> bool:
    """Whether part of a formula takes all of a tensor's elements together: `mean(x)`."""
    return (
        _function(node) in REDUCTION_NAMES
        and isinstance(node, ast.Call)
        and len(node.args) == 1
        and not _said_axis(node)
        and not any(each.arg == "keepdims" for each in node.keywords)
    )


def _is_beyond(node: ast.AST, tensors: Sequence[TensorSpec]) -> bool:
    """Whether part of a formula is said by formulas over axes only."""
    if _is_cut(node) or _is_of_all(node):
        return True
    if isinstance(node, ast.Call):
        return _function(node) in ELEMENTWISE | ROWS
    if isinstance(node, _BITS):
        # Of fractions, it is a power that was meant, or a condition.
        return _are_whole(tensors)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
        return any(_names(list(ast.walk(node.right))))
    return isinstance(node, (*_OPERATORS, *_CHOICES))


def _is_along_axis(node: ast.AST) -> bool:
    name = _function(node)
    if name in ("max", "min") and isinstance(node, ast.Call) and len(node.args) == 2:
        return False
    return name in ROWS or name in REDUCTION_NAMES


def _is_along_last(node: ast.AST) -> bool:
    return _is_along_axis(node) and not _is_of_all(node)


def _fits(node: ast.AST) -> bool:
    """Whether part of a formula means the same for inputs of any number of axes."""
    if isinstance(node, ast.Subscript | ast.Attribute | ast.MatMult | ast.BitXor):
        return False
    if not isinstance(node, ast.Call):
        return True
    name = _function(node)
    if _is_of_all(node):
        return True
    if _is_along_axis(node):
        axes = _said_axis(node)
        return axes == ["-1"] or (not axes and name in _ALONG_LAST and len(node.args) == 1)
    return name in FUNCTIONS or name in ELEMENTWISE or name in REDUCTION_NAMES
