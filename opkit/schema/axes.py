"""The `shape` of an input: a name or a length for each axis."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import cast

from opkit.schema.json_text import Json, JsonDocument
from opkit.schema.names import is_reserved
from opkit.schema.spec import AttrSpec, TensorSpec

__all__ = ["check_axes", "read_axes"]


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
        raise document.error(
            f"{axis!r} is no axis",
            here,
            help='use a name such as "M" or a length from 1; "..." may stand first',
        )
    return tuple(axes)


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
    taken = {tensor.name for tensor in (*inputs, *outputs)} | {attr.name for attr in attrs}
    for index, tensor in enumerate(inputs):
        here = f"{pointer}/input_desc/{index}"
        if tensor.axes is None:
            raise document.error(
                f'"{tensor.name}" has no `shape`, but other inputs have',
                here,
                help="give every input one",
            )
        if tensor.param_type != "required":
            raise document.error(
                f'"{tensor.name}" is {tensor.param_type}; an input with a `shape` is required',
                f"{here}/param_type",
            )
        for axis, name in enumerate(tensor.axes):
            if name in taken:
                raise document.error(
                    f'the axis "{name}" has the name of a tensor or an attribute',
                    f"{here}/shape/{axis}",
                    help="choose another name",
                )
    for index, tensor in enumerate(outputs):
        if tensor.formula is None or tensor.param_type != "required":
            what = "has no formula" if tensor.formula is None else f"is {tensor.param_type}"
            raise document.error(
                f'"{tensor.name}" {what}, but the inputs say their shapes',
                f"{pointer}/output_desc/{index}",
                help="give every output a formula and make it required, or the inputs no `shape`",
            )
