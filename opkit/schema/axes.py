"""The `shape` of an input: a name or a length for each axis."""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence
from typing import cast

from opkit.schema.json_text import Json, JsonDocument
from opkit.schema.names import is_reserved
from opkit.schema.spec import AttrSpec, TensorSpec

__all__ = ["axis_names", "check_axes", "multiple_of", "read_axes"]

_PARTS = (
    ast.BinOp,
    ast.Load,
    ast.Add,
    ast.Sub,
    ast.Mult,
    ast.FloorDiv,
    ast.Div,
    ast.UnaryOp,
    ast.USub,
)
"""What lengths are computed of, beside names and numbers."""


def read_axes(
    document: JsonDocument, pointer: str, entry: Mapping[str, Json]
) -> tuple[str | int, ...] | None:
    """Return the axes of an input; None where its `shape` is not said, and for outputs.

    Raises:
        SpecError: an axis is neither a name nor a length.
    """
    if "formula" in entry or not isinstance(entry.get("shape"), list):
        return None
    if not pointer.rpartition("/")[0].endswith("/input_desc"):
        return None
    axes = cast("list[str | int]", entry["shape"])
    for index, axis in enumerate(axes):
        here = f"{pointer}/shape/{index}"
        if axis == "..." and index == 0:
            continue
        if isinstance(axis, int) and not isinstance(axis, bool) and axis >= 1:
            continue
        if isinstance(axis, str) and axis.isidentifier() and axis.isascii():
            if is_reserved(axis):
                raise document.error(f'"{axis}" is a reserved word and cannot name an axis', here)
            continue
        if isinstance(axis, str) and axis_names(axis):
            continue
        raise document.error(
            f"{axis!r} is no axis",
            here,
            help='use a name such as "M", a length from 1, or what follows from names, such as'
            ' "2*M"; "..." may stand first',
        )
    return tuple(axes)


def axis_names(axis: str | int) -> tuple[str, ...]:
    """Return the names that an axis is, or is computed of by `+ - * // /`; none for other text."""
    if not isinstance(axis, str):
        return ()
    try:
        tree = ast.parse(axis, mode="eval")
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return ()
    found: dict[str, None] = {}
    for node in ast.walk(tree.body):
        if isinstance(node, ast.Name):
            found[node.id] = None
        elif isinstance(node, ast.Constant):
            if type(node.value) is not int:
                return ()
        elif not isinstance(node, _PARTS):
            return ()
    return tuple(found)


def multiple_of(axis: str | int) -> tuple[str, int] | None:
    """Return the name and the number whose product an axis is, as of "2*D"; None for others."""
    if not isinstance(axis, str) or not axis_names(axis):
        return None
    tree = ast.parse(axis, mode="eval").body
    if not isinstance(tree, ast.BinOp) or not isinstance(tree.op, ast.Mult):
        return None
    name, number = tree.left, tree.right
    if isinstance(name, ast.Constant):
        name, number = number, name
    is_product = isinstance(name, ast.Name) and isinstance(number, ast.Constant)
    return (ast.unparse(name), int(ast.unparse(number))) if is_product else None


def check_axes(
    document: JsonDocument,
    pointer: str,
    inputs: Sequence[TensorSpec],
    outputs: Sequence[TensorSpec],
    attrs: Sequence[AttrSpec],
) -> None:
    """Refuse a prototype in which the axes of some inputs only have names, or which has no
    formulas to make use of them.

    Raises:
        SpecError: the first that is wrong.
    """
    if not any(tensor.axes is not None for tensor in inputs):
        return
    bound = {axis for tensor in inputs for axis in tensor.axes or ()}
    products = (multiple_of(axis) for axis in bound)
    bound |= {product[0] for product in products if product is not None and product[1] > 0}
    taken = {tensor.name for tensor in (*inputs, *outputs)} | {attr.name for attr in attrs}
    for index, tensor in enumerate(inputs):
        here = f"{pointer}/input_desc/{index}"
        if tensor.axes is None:
            raise document.error(
                f'"{tensor.name}" has no `shape`, but other inputs have',
                here,
                help="give every input one",
            )
        if tensor.param_type == "optional":
            raise document.error(
                f'"{tensor.name}" is optional; an input with a `shape` is required, or a list',
                f"{here}/param_type",
            )
        if tensor.is_list:
            _check_list(document, here, tensor, inputs)
        for axis, name in enumerate(tensor.axes):
            loose = [each for each in axis_names(name) if each not in bound]
            if loose:
                raise document.error(
                    f'no axis is "{loose[0]}" alone',
                    f"{here}/shape/{axis}",
                    help=f'give the axis a name of its own, such as "D" for "{name}", or let it be'
                    " a product of one name and one number",
                )
            if name in taken:
                raise document.error(
                    f'the axis "{name}" has the name of a tensor or an attribute',
                    f"{here}/shape/{axis}",
                    help="choose another name",
                )
    for index, tensor in enumerate(outputs):
        if tensor.formula is None or tensor.param_type == "optional":
            what = "has no formula" if tensor.formula is None else "is optional"
            raise document.error(
                f'"{tensor.name}" {what}, but the inputs say their shapes',
                f"{pointer}/output_desc/{index}",
                help="give every output a formula and make it required, or the inputs no `shape`",
            )


def _check_list(
    document: JsonDocument, pointer: str, tensor: TensorSpec, inputs: Sequence[TensorSpec]
) -> None:
    first = tensor.axes[0] if tensor.axes else ""
    if isinstance(first, str) and first != "..." and not first.isidentifier():
        raise document.error(
            f'the first axis of "{tensor.name}", a list, is {first!r}, expected how many tensors'
            " it has",
            f"{pointer}/shape",
            help='begin with a name, such as ["L", "N"] for L tensors of N elements, with a length,'
            ' or with "..." for tensors of any shapes',
        )
    other = next((t for t in inputs if not t.is_list and "..." in (t.axes or ())), None)
    if first == "..." and other is not None:
        raise document.error(
            f'"..." of "{tensor.name}" stands for all tensors of a list, and that of'
            f' "{other.name}" for axes of one tensor',
            f"{pointer}/shape/0",
            help=f'make "{other.name}" a list too, or name its axes',
        )
