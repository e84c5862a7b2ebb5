"""How the kernels that move elements are launched: one description for known sizes and for the
host's C++."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np

from opkit.chips import Chip
from opkit.errors import UsageError

from ..codegen import (
    HEAD,
    MOST_OUTER,
    ExtentOf,
    KernelClass,
    LaunchRule,
    Piece,
    TilingValue,
    boxes_of,
    can_pick,
    copy_cores,
    copy_values,
    count_values,
    cpp_type,
    element_bytes,
    lookup_values,
    pack_tiling,
    pick_values,
    pieces_of,
    search_values,
    turn_of,
    turn_values,
    weave_of,
    weave_values,
    write_copy,
    write_count,
    write_lookup,
    write_pick,
    write_search,
    write_turn,
    write_weave,
)
from ..ir import GraphError, Node, Tensor, evaluate, product
from ..stages import Stages
from ..tracing import to_storage
from .launch import Code, Launch, Sized, TensorArgument, sized

__all__ = [
    "MOVEMENTS",
    "Movement",
    "movement_launches",
    "movement_of",
    "whole_copy",
    "whole_copy_launch",
]

Operand: TypeAlias = "Tensor | Sized"

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
    "search",
)


@dataclass(frozen=True)
class Movement:
    """How a movement is launched: for known sizes, or in terms of the host's C++ for all."""

    stem: str
    """What kernels alike are called where programs share them."""
    write: Callable[[str], KernelClass]
    """Returns the kernel under a name."""
    tensors: tuple[str, ...]
    """Behind the addresses that it takes, in order."""
    rule: LaunchRule


def movement_launches(stages: Stages, node: Node, sizes: Mapping[str, int]) -> tuple[Launch, ...]:
    """Return the launch of a movement; none where its result has no elements."""
    result = sized(stages, node.output.name, sizes)
    if result.size == 0:
        return ()
    operands = [sized(stages, name, sizes) for name in node.inputs]
    settings = {key: _bound(value, sizes) for key, value in node.settings.items()}
    movement = movement_of(node, operands, result, settings, chip=stages.chip)
    return (_launch(movement, node, stages.chip),)


def whole_copy_launch(node: Node, source: Sized, result: Sized, chip: Chip) -> Launch:
    """Return the launch that copies one tensor to another of the same size, as a node needs."""
    return _launch(whole_copy(node, source, result, chip=chip), node, chip)


def movement_of(
    node: Node,
    operands: Sequence[Operand],
    result: Operand,
    settings: Mapping[str, object],
    *,
    outer: int | None = MOST_OUTER,
    chip: Chip | None = None,
) -> Movement:
    """Return how a movement is launched.

    Args:
        operands: of known sizes or of named ones, as `result` and the sizes in `settings` are.
        outer: the axes of a box beside its rows that the kernel has room for; None: as many as it
            needs.
        chip: where all sizes are known: elements may be turned in the cores, which are then as many
            as make the launch shortest.
    Raises:
        GraphError: there is no kernel for it; at the user's line.
    """
    tensors = (*(each.name for each in operands), result.name)
    if node.operator == "arange":
        kind = cpp_type(result.dtype)
        return Movement(
            f"count_{result.dtype}",
            lambda name: write_count(name, kind, node.location),
            tensors,
            lambda cores, of, _: count_values(of(result.size), cores),
        )
    if node.operator == "take":
        return _lookup(node, operands, tensors, chip)
    if node.operator == "search":
        return _search(node, operands, tensors, chip)
    pieces = pieces_of(node.operator, settings, [each.shape for each in operands], result.shape)
    value = settings.get("value", 0.0)
    return _copy(node, operands, result, pieces, value, outer, chip)


def _search(
    node: Node, operands: Sequence[Operand], tensors: tuple[str, ...], chip: Chip | None
) -> Movement:
    edges, x = operands
    if chip is None or edges.size == 0:
        raise GraphError(
            "numbers are looked for among edges whose number is known, one or more",
            location=node.location,
        )
    is_right = node.settings.truth("right")

    def rule(
        cores: Any, extent_of: ExtentOf, _: Mapping[str, Any]
    ) -> tuple[Any, Sequence[TilingValue]]:
        lines = extent_of(product(edges.shape[:-1]))
        each = extent_of(edges.shape[-1])
        return search_values(lines, each, extent_of(x.size) // lines, cores, chip)

    return Movement(
        "search_right" if is_right else "search_left",
        lambda name: write_search(name, is_right, node.location),
        tensors,
        rule,
    )


def whole_copy(
    node: Node,
    source: Operand,
    result: Operand,
    *,
    outer: int | None = MOST_OUTER,
    chip: Chip | None = None,
) -> Movement:
    """Return the copy of one tensor to another of the same size, as a node needs."""
    pieces = [Piece(0, 0, 0, ((result.size, 1, 1),))]
    return _copy(node, [source], result, pieces, 0.0, outer, chip)


def _turned(
    node: Node, operand: Operand, result: Operand, pieces: Sequence[Piece], chip: Chip
) -> Movement | None:
    """Return a movement whose elements lie apart on one side; None where it is no such one."""
    size = element_bytes(result.dtype)
    turn = turn_of(pieces, size)
    if turn is None:
        return None

    def rule(
        cores: Any, extent_of: ExtentOf, _: Mapping[str, Any]
    ) -> tuple[Any, Sequence[TilingValue]]:
        sizes = extent_of(operand.size), extent_of(result.size)
        return turn_values(turn, sizes, size, cores, chip)

    return Movement(
        f"{turn.way}_{size}",
        lambda name: write_turn(name, turn.way, size, node.location),
        (operand.name, result.name),
        rule,
    )


def _woven(
    node: Node,
    operands: Sequence[Operand],
    result: Operand,
    pieces: Sequence[Piece],
    bits: int,
    chip: Chip,
) -> Movement | None:
    """Return a movement whose result has few elements of each source in turn; None where it is no
    such one."""
    size = element_bytes(result.dtype)
    names = [each.name for each in operands]
    # What comes of one tensor twice is copied in once.
    pieces = [
        replace(piece, source=names.index(names[piece.source]) if piece.source >= 0 else -1)
        for piece in pieces
    ]
    weave = weave_of(pieces, size)
    if weave is None:
        return None
    inputs, strips, width = len(operands), len(weave.strips), len(weave.places)

    def rule(
        cores: Any, extent_of: ExtentOf, _: Mapping[str, Any]
    ) -> tuple[Any, Sequence[TilingValue]]:
        sizes = [extent_of(operand.size) for operand in operands]
        return weave_values(weave, sizes, extent_of(result.size), size, bits, cores, chip)

    return Movement(
        f"weave_{inputs}_{strips}_{width}_{size}",
        lambda name: write_weave(name, inputs, strips, width, size, node.location),
        (*names, result.name),
        rule,
    )


def _lookup(
    node: Node, operands: Sequence[Operand], tensors: tuple[str, ...], chip: Chip | None
) -> Movement:
    axis = node.settings["axis"]
    table, indices = operands
    size, kind = element_bytes(table.dtype), cpp_type(indices.dtype)
    if chip and can_pick(table.shape, axis, indices.size, size, indices.dtype):
        return Movement(
            f"pick_rows_{size}",
            lambda name: write_pick(name, size, node.location),
            tensors,
            lambda cores, *_: pick_values(table.shape, axis, indices.size, size, cores, chip),
        )

    def rule(
        cores: Any, extent_of: ExtentOf, _: Mapping[str, Any]
    ) -> tuple[Any, Sequence[TilingValue]]:
        shape = [extent_of(extent) for extent in table.shape]
        count = extent_of(product(indices.shape))
        return lookup_values(shape, axis, count, size, cores, chip)

    return Movement(
        f"lookup_{size}_{indices.dtype}",
        lambda name: write_lookup(name, size, kind, node.location),
        tensors,
        rule,
    )


def _copy(
    node: Node,
    operands: Sequence[Operand],
    result: Operand,
    pieces: Sequence[Piece],
    value: object,
    outer: int | None,
    chip: Chip | None,
) -> Movement:
    size = element_bytes(result.dtype)
    try:
        bits = constant_bits(value, result.dtype, size)
        if chip:
            ordered = _woven(node, operands, result, pieces, bits, chip)
            ordered = ordered or _turned(node, operands[0], result, pieces, chip)
            if ordered:
                return ordered
        boxes = boxes_of(pieces, size)
    except UsageError as err:
        raise GraphError(err.message, location=node.location, help=err.help) from err
    room = max(len(box.outer) for box in boxes) if outer is None else outer
    inputs = len(operands)

    def rule(
        cores: Any, extent_of: ExtentOf, _: Mapping[str, Any]
    ) -> tuple[Any, Sequence[TilingValue]]:
        counts = [each.size for each in operands]
        if chip is not None:
            cores = copy_cores(boxes, size, cores, chip)
        return copy_values(boxes, counts, result.size, size, bits, cores, room, extent_of)

    return Movement(
        f"copy_{inputs}_{len(boxes)}_{size}",
        lambda name: write_copy(name, inputs, len(boxes), size, node.location, room),
        (*(each.name for each in operands), result.name),
        rule,
    )


def _launch(movement: Movement, node: Node, chip: Chip) -> Launch:
    """Return the launch of a movement of known sizes."""
    available = chip.count("cores.aiv") or chip.count("cores.aic")
    cores, values = movement.rule(available, lambda extent: extent, {})
    # One that several lines of a program use, for one of them.
    code = Code(
        movement.stem,
        lambda: _source(movement.write(movement.stem)),
        location=node.location,
        part=lambda: movement.write(movement.stem),
    )
    return Launch(code, (*map(TensorArgument, movement.tensors), pack_tiling(values)), cores)


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
