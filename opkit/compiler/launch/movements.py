"""Launches of the kernels that move elements."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from opkit.chips import Chip
from opkit.dtypes import find_dtype
from opkit.errors import UsageError

from ..codegen import (
    HEAD,
    KernelClass,
    Piece,
    copy_data,
    count_data,
    lookup_data,
    pieces_of,
    write_copy,
    write_count,
    write_lookup,
)
from ..ir import Node, evaluate
from ..stages import Stages
from ..tracing import to_storage
from .launch import Code, Launch, Sized, sized

__all__ = ["MOVEMENTS", "constant_bits", "movement_launches", "whole_copy"]

MOVEMENTS = (
    "transpose",
    "broadcast_to",
    "slice",
    "concat",
    "concat_slices",
    "pad",
    "windows",
    "take",
    "arange",
)


def movement_launches(stages: Stages, node: Node, sizes: Mapping[str, int]) -> tuple[Launch, ...]:
    """Return the launch of a movement; none where its result has no elements."""
    result = sized(stages, node.output.name, sizes)
    operands = [sized(stages, name, sizes) for name in node.inputs]
    chip = stages.chip
    row = find_dtype(result.dtype)
    assert row is not None
    if result.size == 0:
        return ()
    if node.operator == "arange":
        cores, data = count_data(result.size, chip)
        code = _code(
            node,
            f"count_{row.name}",
            lambda name: write_count(name, row.kernel, node.location),
        )
        return (Launch(code, (result.operand, data), cores),)
    if node.operator == "take":
        return (_lookup(node, operands, result, chip),)
    settings = {key: _bound(value, sizes) for key, value in node.settings.items()}
    pieces = pieces_of(node.operator, settings, [each.shape for each in operands], result.shape)
    bits = constant_bits(settings.get("value", 0.0), result.dtype, result.element_bytes)
    return (_copy(node, operands, result, pieces, bits, chip),)


def whole_copy(node: Node, source: Sized, result: Sized, chip: Chip) -> Launch:
    """Return the launch that copies one tensor to another of the same size, as a node needs."""
    return _copy(node, [source], result, [Piece(0, 0, 0, ((result.size, 1, 1),))], 0, chip)


def _lookup(node: Node, operands: Sequence[Sized], result: Sized, chip: Chip) -> Launch:
    axis = node.settings["axis"]
    assert isinstance(axis, int)
    table, indices = operands
    row = find_dtype(indices.dtype)
    assert row is not None
    size = result.element_bytes
    cores, data = lookup_data(table.shape, axis, indices.size, size, chip)
    code = _code(
        node,
        f"lookup_{size}_{row.name}",
        lambda name: write_lookup(name, size, row.kernel, node.location),
    )
    return Launch(code, (table.operand, indices.operand, result.operand, data), cores)


def _copy(
    node: Node,
    operands: Sequence[Sized],
    result: Sized,
    pieces: Sequence[Piece],
    constant_bits: int,
    chip: Chip,
) -> Launch:
    size = result.element_bytes
    count, cores, data = copy_data(
        pieces, [each.size for each in operands], result.size, size, constant_bits, chip
    )
    inputs = len(operands)
    code = _code(
        node,
        f"copy_{inputs}_{count}_{size}",
        lambda name: write_copy(name, inputs, count, size, node.location),
    )
    return Launch(code, (*(each.operand for each in operands), result.operand, data), cores)


def _code(node: Node, name: str, write: Callable[[str], KernelClass]) -> Code:
    """Return a kernel that several lines of a program may use, for one of them."""
    return Code(name, lambda: _source(write(name)), location=node.location)


def _source(kernel: KernelClass) -> str:
    return HEAD + kernel.whole().render(with_lines=True, file=f"{kernel.name}.cpp")


def _bound(value: object, sizes: Mapping[str, int]) -> object:
    if isinstance(value, tuple):
        return tuple(_bound(each, sizes) for each in value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return evaluate(value, sizes)


def constant_bits(value: object, dtype: str, size_bytes: int) -> int:
    """Return an element's bits, repeated to four bytes.

    Raises:
        UsageError: an element has eight bytes, and is not zero.
    """
    stored = to_storage(np.asarray(value), dtype).tobytes()
    if size_bytes > 4 and any(stored):
        raise UsageError(f"what stands around {dtype} is {value}, expected 0")
    return int.from_bytes((stored * 4)[:4], "little")
