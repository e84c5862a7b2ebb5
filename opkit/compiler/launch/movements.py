"""Launching the kernels that move elements."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

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
from ..tracing import to_storage
from .kernel_program import KernelProgram

__all__ = ["MOVEMENTS", "constant_bits", "copy_whole", "run_movement"]

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


def run_movement(
    program: KernelProgram, node: Node, memory: dict[str, Any], sizes: Mapping[str, int]
) -> None:
    """Run a movement; its result appears in memory."""
    arrays = [memory[name] for name in node.inputs]
    result = program.room(node.output.name, memory, sizes)
    chip = program.stages.chip
    row = find_dtype(node.output.dtype)
    assert row is not None
    size = row.size_bytes
    if result.size == 0:
        return
    if node.operator == "arange":
        name = f"count_{row.name}"
        kernel = program.native(
            name,
            lambda: _source(write_count(name, row.kernel, node.location)),
            location=node.location,
        )
        cores, data = count_data(result.size, chip)
        kernel.launch([result, data], cores)
        return
    if node.operator == "take":
        axis = node.settings["axis"]
        assert isinstance(axis, int)
        table, indices = arrays
        index_row = find_dtype(program.stages.graph.tensors[node.inputs[1]].dtype)
        assert index_row is not None
        cores, data = lookup_data(table.shape, axis, indices.size, size, chip)
        name = f"lookup_{size}_{index_row.name}"
        kernel = program.native(
            name,
            lambda: _source(write_lookup(name, size, index_row.kernel, node.location)),
            location=node.location,
        )
        kernel.launch([table, indices, result, data], cores)
        return
    settings = {key: _bound(value, sizes) for key, value in node.settings.items()}
    pieces = pieces_of(node.operator, settings, [a.shape for a in arrays], result.shape)
    bits = constant_bits(settings.get("value", 0.0), node.output.dtype, size)
    _copy(program, node, arrays, result, pieces, bits)


def copy_whole(program: KernelProgram, node: Node, array: Any, result: Any) -> None:
    """Copy one array to another of the same size, as a node needs."""
    _copy(program, node, [array], result, [Piece(0, 0, 0, ((result.size, 1, 1),))], 0)


def _copy(
    program: KernelProgram,
    node: Node,
    arrays: Sequence[Any],
    result: Any,
    pieces: Sequence[Piece],
    constant_bits: int,
) -> None:
    size = result.itemsize
    count, cores, data = copy_data(
        pieces,
        [each.size for each in arrays],
        result.size,
        size,
        constant_bits,
        program.stages.chip,
    )
    name = f"copy_{len(arrays)}_{count}_{size}"
    kernel = program.native(
        name,
        lambda: _source(write_copy(name, len(arrays), count, size, node.location)),
        location=node.location,
    )
    kernel.launch([*arrays, result, data], cores)


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
