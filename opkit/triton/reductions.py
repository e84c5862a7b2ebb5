"""Reductions and scans: any combining function, folded in order; sums and extremes by vectors."""

from __future__ import annotations

import math
from collections.abc import Sequence

from .elementwise import narrowed, widened
from .lowering import Lowering, lowers
from .ttir import Block, Operation, Type
from .values import COMPUTED, STORED, Buffer, Scalar, Splat, Stored, Value

__all__: list[str] = []


def _parts(shape: tuple[int, ...], axis: int) -> tuple[int, int, int]:
    return math.prod(shape[:axis]), shape[axis], math.prod(shape[axis + 1 :])


def _combine(
    lowering: Lowering, block: Block, left: list[Scalar], right: list[Scalar]
) -> list[Scalar]:
    """Write a combining function's body, and return what it gives."""
    for (name, _), value in zip(block.arguments, [*left, *right], strict=True):
        lowering.values[name] = value
    last = lowering.block(block)
    return [lowering.scalar(lowering.value(name)) for name in last.operands]


def _combine_element(
    lowering: Lowering,
    block: Block,
    kinds: list[Type],
    totals: list[str],
    buffers: Sequence[Buffer],
    at: str,
) -> None:
    """Write the combination of totals so far with the buffers' elements at an index."""
    left = [Scalar(kind, total) for kind, total in zip(kinds, totals, strict=True)]
    right = [
        lowering.new_scalar(kind, f"get({buffer.name}, {at})")
        for kind, buffer in zip(kinds, buffers, strict=True)
    ]
    _assign(lowering, totals, _combine(lowering, block, left, right))


def _single(lowering: Lowering, block: Block) -> str | None:
    """Return the name of the one operation that a combining function is."""
    name = None
    for _ in range(4):
        body = [each for each in block.operations if not each.name.endswith("return")]
        if len(body) != 1 or len(block.arguments) != 2:
            return None
        name = body[0].name
        if name != "tt.call":
            return name
        callee = lowering.module.functions[body[0].attributes["callee"].lstrip("@").strip('"')]
        blocks = [each for each in callee.regions[0] if each.operations]
        block = blocks[0]
        inner = [each for each in block.operations if each.name not in ("tt.return", "ub.poison")]
        if len(inner) != 1:
            return None
        if inner[0].name != "tt.call":
            return (
                inner[0].name if set(inner[0].operands) == {n for n, _ in block.arguments} else None
            )
    return None


@lowers("tt.reduce")
def _reduce(lowering: Lowering, operation: Operation) -> None:
    given = lowering.given(operation)
    axis = operation.integer("axis")
    shape = operation.operand_types[0].shape or ()
    block = operation.regions[0][0]
    if len(given) == 1:
        fast = _rows_folded(lowering, operation, given[0], _single(lowering, block))
        if fast is not None:
            lowering.set(operation, fast)
            return
    buffers = [lowering.stored(each) for each in given]
    outer, length, inner = _parts(shape, axis)
    writer = lowering.writer
    kinds = [Type(each.element) for each in operation.operand_types]
    totals = [writer.variable(COMPUTED[lowering.element(kind)]) for kind in kinds]
    targets = [
        None if kind.shape is None else lowering.new_buffer(kind) for kind in operation.result_types
    ]
    if length * outer * inner > 1:
        lowering.note_slow("a reduction")
    row, column, step = (writer.name("i") for _ in range(3))
    writer.on("any")
    with writer.loop():
        writer.line(f"for (int64_t {row} = 0; {row} < {outer}; ++{row})")
        writer.line(f"for (int64_t {column} = 0; {column} < {inner}; ++{column}) {{")
        first = f"{row} * {length * inner} + {column}"
        for total, buffer in zip(totals, buffers, strict=True):
            writer.line(f"{total} = get({buffer.name}, {first});")
        with writer.loop():
            writer.line(f"for (int64_t {step} = 1; {step} < {length}; ++{step}) {{")
            at = f"{first} + {step} * {inner}"
            _combine_element(lowering, block, kinds, totals, buffers, at)
            writer.line("}")
        for total, target in zip(totals, targets, strict=True):
            if target is not None:
                writer.line(f"set({target.name}, {row} * {inner} + {column}, {total});")
        writer.line("}")
    writer.pipe = "any"
    lowering.set(
        operation,
        *(
            Scalar(kind, total) if target is None else Stored(kind, target)
            for kind, total, target in zip(operation.result_types, totals, targets, strict=True)
        ),
    )


def _assign(lowering: Lowering, totals: list[str], results: list[Scalar]) -> None:
    writer = lowering.writer
    copies = []
    for total, result in zip(totals, results, strict=True):
        if len(totals) == 1 or result.text not in totals:
            copies.append((total, result.text))
        else:
            kind = COMPUTED[lowering.element(result.type)]
            copies.append((total, writer.variable(kind, result.text)))
    for total, text in copies:
        if total != text:
            writer.line(f"{total} = {text};")


# What is no number counts for nothing in them.
_OF_NUMBERS = {"arith.maxnumf": "-INFINITY", "arith.minnumf": "INFINITY"}
_FOLDS = {
    "arith.addf": "Add",
    "arith.maximumf": "Max",
    "arith.minimumf": "Min",
    "arith.maxnumf": "Max",
    "arith.minnumf": "Min",
    "arith.addi": "Add",
    "arith.maxsi": "Max",
    "arith.minsi": "Min",
}


def _rows_folded(
    lowering: Lowering, operation: Operation, value: Value, name: str | None
) -> Value | None:
    """Fold whole rows into each other; along the last dimension, the halves of a row."""
    instruction = _FOLDS.get(name or "")
    kind = operation.operand_types[0]
    is_half = kind.element in ("f16", "bf16")
    if instruction is None or (kind.element not in ("f32", "i32") and not is_half):
        return None
    if isinstance(value, Splat):
        return None
    axis = operation.integer("axis")
    outer, length, inner = _parts(kind.shape or (), axis)
    if length == 1:
        return None
    # Sums of 16-bit floats are rounded once.
    element = "f32" if is_half else kind.element
    stored = STORED[element]
    filler = _OF_NUMBERS.get(name or "")
    block = 32 // 4
    writer = lowering.writer
    if inner > 1:
        if inner % block:
            return None
        whole = widened(lowering, value) if is_half else lowering.stored(value)
        source = _numbers(lowering, whole, filler)
        target = lowering.writer.buffer(element, outer * inner)
        writer.on("V")
        writer.line(
            f"fold_rows<{stored}, Fold::{instruction}>({target.name}, {source.name},"
            f" {outer}, {length}, {inner});"
        )
    else:
        if length % block and outer > 1:
            return None
        whole = widened(lowering, value) if is_half else lowering.stored(value)
        source = _numbers(lowering, whole, filler)
        target = lowering.writer.buffer(element, outer)
        work = lowering.writer.buffer(element, length)
        writer.on("any")
        writer.line(
            f"fold_halves<{stored}, Fold::{instruction}>({target.name}, {source.name},"
            f" {work.name}, {outer}, {length});"
        )
        writer.pipe = "any"
    if filler is not None:
        writer.on("any")
        writer.line(f"restore({target.name}, {whole.name}, {filler}, {outer}, {length}, {inner});")
        writer.pipe = "any"
    result = operation.result_types[0]
    if is_half:
        target = narrowed(lowering, target, Type(kind.element, (target.count,)))
    if result.shape is None:
        writer.on("S")
        return lowering.new_scalar(result, f"get({target.name}, 0)")
    return Stored(result, target)


def _numbers(lowering: Lowering, source: Buffer, filler: str | None) -> Buffer:
    """Return a tile with a filler where it is no number; without a filler the tile itself."""
    if filler is None:
        return source
    writer = lowering.writer
    target = writer.buffer(source.element, source.count)
    bits = writer.buffer("i1", (source.count + 7) // 8)
    writer.vector(f"numbers({target.name}, {source.name}, {bits.name}, {filler}, {source.count});")
    return target


@lowers("tt.scan")
def _scan(lowering: Lowering, operation: Operation) -> None:
    given = lowering.given(operation)
    axis = operation.integer("axis")
    is_reverse = operation.attributes.get("reverse", "false").startswith("true")
    shape = operation.operand_types[0].shape or ()
    block = operation.regions[0][0]
    buffers = [lowering.stored(each) for each in given]
    outer, length, inner = _parts(shape, axis)
    writer = lowering.writer
    kinds = [Type(each.element) for each in operation.operand_types]
    totals = [writer.variable(COMPUTED[lowering.element(kind)]) for kind in kinds]
    targets: list[Buffer] = [lowering.new_buffer(kind) for kind in operation.result_types]
    lowering.note_slow("a scan")
    # Sums and products of 16-bit floats are rounded where they are written, not on the way.
    sign = {"arith.addf": "+", "arith.mulf": "*"}.get(_single(lowering, block) or "")
    is_wide = len(given) == 1 and kinds[0].element in ("f16", "bf16")
    row, column, step = (writer.name("i") for _ in range(3))
    writer.on("any")
    with writer.loop():
        writer.line(f"for (int64_t {row} = 0; {row} < {outer}; ++{row})")
        writer.line(f"for (int64_t {column} = 0; {column} < {inner}; ++{column}) {{")
        begin = length - 1 if is_reverse else 0
        first = f"{row} * {length * inner} + {column} + {begin * inner}"
        for total, buffer, target in zip(totals, buffers, targets, strict=True):
            writer.line(f"{total} = get({buffer.name}, {first});")
            writer.line(f"set({target.name}, {first}, {total});")
        with writer.loop():
            writer.line(f"for (int64_t {step} = 1; {step} < {length}; ++{step}) {{")
            at = f"{first} {'-' if is_reverse else '+'} {step} * {inner}"
            if sign is not None and is_wide:
                writer.line(f"{totals[0]} = {totals[0]} {sign} get({buffers[0].name}, {at});")
            else:
                _combine_element(lowering, block, kinds, totals, buffers, at)
            for total, target in zip(totals, targets, strict=True):
                writer.line(f"set({target.name}, {at}, {total});")
            writer.line("}")
        writer.line("}")
    writer.pipe = "any"
    lowering.set(
        operation,
        *(
            Stored(kind, target)
            for kind, target in zip(operation.result_types, targets, strict=True)
        ),
    )
