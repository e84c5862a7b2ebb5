"""Operations that move elements: broadcasts, transposes, joins; index arithmetic stays so."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from .elementwise import spread_scalar
from .lowering import Lowering, indices, lowers
from .ttir import Operation, Type
from .values import STORED, Affine, Buffer, Index, Mask, Pointers, Scalar, Splat, Stored, Value

__all__: list[str] = []


@lowers("tt.make_range")
def _make_range(lowering: Lowering, operation: Operation) -> None:
    kind = operation.result_types[0]
    lowering.set(operation, Affine(kind, operation.integer("start"), (1,)))


@lowers("tt.get_program_id")
def _program_id(lowering: Lowering, operation: Operation) -> None:
    axis = operation.integer("axis")
    lowering.set(operation, Scalar(operation.result_types[0], f"program_{'xyz'[axis]}"))


@lowers("tt.get_num_programs")
def _num_programs(lowering: Lowering, operation: Operation) -> None:
    axis = operation.integer("axis")
    lowering.set(operation, Scalar(operation.result_types[0], f"grid_{'xyz'[axis]}"))


@lowers("tt.splat")
def _splat(lowering: Lowering, operation: Operation) -> None:
    scalar = lowering.scalar(lowering.given(operation)[0])
    lowering.set(operation, spread_scalar(operation.result_types[0], scalar))


@lowers("tt.unsplat")
def _unsplat(lowering: Lowering, operation: Operation) -> None:
    (value,) = lowering.given(operation)
    lowering.set(operation, first_element(lowering, value, operation.result_types[0]))


def first_element(lowering: Lowering, value: Value, kind: Type) -> Scalar:
    """Return the only element of a tile."""
    if isinstance(value, Splat):
        return value.scalar
    if isinstance(value, Affine):
        return Scalar(kind, str(value.base), value.base if isinstance(value.base, int) else None)
    buffer = lowering.stored(value)
    lowering.writer.on("S")
    return lowering.new_scalar(kind, f"get({buffer.name}, 0)")


def moved(
    lowering: Lowering,
    value: Value,
    kind: Type,
    sources: Sequence[int | None],
) -> Value:
    """Return a tile whose dimensions are some of another's.

    Args:
        kind: the new type.
        sources: for each new dimension the old one; None where the tile is the same all along.
    """
    shape = kind.shape or ()
    old = value.type.shape or ()

    def pick(given: Sequence[Index]) -> tuple[Index, ...]:
        return tuple(0 if axis is None or old[axis] == 1 else given[axis] for axis in sources)

    if isinstance(value, Splat):
        return Splat(kind, value.scalar)
    if isinstance(value, Affine):
        return Affine(kind, value.base, pick(value.coefficients))
    if isinstance(value, Mask):
        low: list[Index] = []
        high: list[Index] = []
        for extent, axis in zip(shape, sources, strict=True):
            if axis is None:
                low.append(0)
                high.append(extent)
            elif old[axis] == extent:
                low.append(value.low[axis])
                high.append(value.high[axis])
            else:
                # Of one element all, or none.
                low.append(0)
                high.append(_all_or_none(lowering, value.low[axis], value.high[axis], extent))
        left_out = [axis for axis in range(len(old)) if axis not in sources]
        for axis in left_out:
            high[0] = _all_or_none(lowering, value.low[axis], value.high[axis], high[0])
        parts = tuple(
            lowering.stored(moved(lowering, Stored(Type("i1", old), each), kind, sources))
            for each in value.buffers
        )
        return Mask(kind, tuple(low), tuple(high), parts)
    if isinstance(value, Pointers):

        def offsets(buffers: Sequence[Buffer]) -> tuple[Buffer, ...]:
            return tuple(
                lowering.stored(
                    moved(
                        lowering,
                        Stored(Type(each.element, old), each),
                        Type(each.element, shape),
                        sources,
                    )
                )
                for each in buffers
            )

        coefficients = pick(value.coefficients)
        buffers, places = offsets(value.buffers), offsets(value.places)
        return Pointers(kind, value.address, coefficients, buffers, places)
    buffer = lowering.stored(value)
    strides = [math.prod(old[axis + 1 :]) for axis in range(len(old))]
    at = list(pick(strides))
    if _is_packed(at, shape):
        return Stored(kind, buffer)
    target = lowering.writer.buffer(buffer.element, kind.count)
    writer = lowering.writer
    writer.on("any")
    writer.line(
        f"spread<{STORED[buffer.element]}, {len(shape)}>({target.name}, {buffer.name}, 0,"
        f" {indices(at)}, {indices(shape)});"
    )
    writer.pipe = "any"
    return Stored(kind, target)


def _all_or_none(lowering: Lowering, low: Index, high: Index, extent: Index) -> Index:
    if isinstance(low, int) and isinstance(high, int):
        return extent if low < high else 0
    return lowering.writer.index(f"(int64_t){low} < (int64_t){high} ? (int64_t){extent} : 0")


def _is_packed(strides: Sequence[Index], shape: Sequence[int]) -> bool:
    step = 1
    for stride, extent in zip(reversed(strides), reversed(shape), strict=True):
        if extent != 1 and stride != step:
            return False
        step *= extent
    return True


@lowers("tt.broadcast")
def _broadcast(lowering: Lowering, operation: Operation) -> None:
    (value,) = lowering.given(operation)
    kind = operation.result_types[0]
    lowering.set(operation, moved(lowering, value, kind, range(len(kind.shape or ()))))


@lowers("tt.expand_dims")
def _expand_dims(lowering: Lowering, operation: Operation) -> None:
    (value,) = lowering.given(operation)
    kind, axis = operation.result_types[0], operation.integer("axis")
    old = list(range(len(value.type.shape or ())))
    lowering.set(operation, moved(lowering, value, kind, [*old[:axis], None, *old[axis:]]))


@lowers("tt.trans")
def _trans(lowering: Lowering, operation: Operation) -> None:
    (value,) = lowering.given(operation)
    order = operation.integers("order")
    lowering.set(operation, moved(lowering, value, operation.result_types[0], order))


@lowers("tt.reshape")
def _reshape(lowering: Lowering, operation: Operation) -> None:
    (value,) = lowering.given(operation)
    lowering.set(operation, reshaped(lowering, value, operation.result_types[0]))


def reshaped(lowering: Lowering, value: Value, kind: Type) -> Value:
    """Return a tile with the same elements in another shape."""
    old, new = value.type.shape or (), kind.shape or ()
    if isinstance(value, Splat):
        return Splat(kind, value.scalar)
    if [each for each in old if each != 1] == [each for each in new if each != 1]:
        # Extents of one come and go.
        kept = [axis for axis, extent in enumerate(old) if extent != 1]
        sources: list[int | None] = []
        for extent in new:
            sources.append(kept.pop(0) if extent != 1 else None)
        if not isinstance(value, Mask) or all(
            (value.low[axis], value.high[axis]) == (0, 1)
            for axis, extent in enumerate(old)
            if extent == 1
        ):
            return moved(lowering, value, kind, sources)
    if isinstance(value, Affine):
        flat = _flat_step(value.coefficients, old)
        if flat is not None:
            steps = [flat * math.prod(new[axis + 1 :]) for axis in range(len(new))]
            return Affine(kind, value.base, tuple(steps))
    if isinstance(value, Pointers):
        flat = _flat_step(value.coefficients, old)
        if flat is not None:
            steps = [flat * math.prod(new[axis + 1 :]) for axis in range(len(new))]
            return replace(value, type=kind, coefficients=tuple(steps))
        raise lowering.refuse("a tile of pointers in another shape")
    return Stored(kind, lowering.stored(value))


def _flat_step(coefficients: Sequence[Index], shape: Sequence[int]) -> int | None:
    """Return the step of a tile that is one ramp along its packed elements."""
    step: int | None = None
    for axis, (coefficient, extent) in enumerate(zip(coefficients, shape, strict=True)):
        if extent == 1:
            continue
        inner = math.prod(shape[axis + 1 :])
        if not isinstance(coefficient, int) or coefficient % inner:
            return None
        if step is not None and coefficient // inner != step:
            return None
        step = coefficient // inner
    return step if step is not None else 0


@lowers("tt.cat")
def _cat(lowering: Lowering, operation: Operation) -> None:
    kind = operation.result_types[0]
    left, right = (lowering.stored(each) for each in lowering.given(operation))
    target = lowering.new_buffer(kind)
    lowering.each_element(
        Type("i32", (kind.count,)),
        lambda at, loops: (
            f"{target.name}.SetValue({at}, {at} < {left.count} ?"
            f" {left.name}.GetValue({at}) : {right.name}.GetValue({at} - {left.count}));"
        ),
    )
    lowering.set(operation, Stored(kind, target))


@lowers("tt.join")
def _join(lowering: Lowering, operation: Operation) -> None:
    kind = operation.result_types[0]
    left, right = (lowering.stored(each) for each in lowering.given(operation))
    target = lowering.new_buffer(kind)
    lowering.each_element(
        Type("i32", (left.count,)),
        lambda at, loops: (
            f"{target.name}.SetValue(2 * {at}, {left.name}.GetValue({at}));"
            f" {target.name}.SetValue(2 * {at} + 1, {right.name}.GetValue({at}));"
        ),
    )
    lowering.set(operation, Stored(kind, target))


@lowers("tt.split")
def _split(lowering: Lowering, operation: Operation) -> None:
    source = lowering.stored(lowering.given(operation)[0])
    kind = operation.result_types[0]
    left, right = lowering.new_buffer(kind), lowering.new_buffer(kind)
    lowering.each_element(
        Type("i32", (kind.count,)),
        lambda at, loops: (
            f"{left.name}.SetValue({at}, {source.name}.GetValue(2 * {at}));"
            f" {right.name}.SetValue({at}, {source.name}.GetValue(2 * {at} + 1));"
        ),
    )
    lowering.set(operation, Stored(kind, left), Stored(kind, right))


@lowers("tt.gather")
def _gather(lowering: Lowering, operation: Operation) -> None:
    source, index = (lowering.stored(each) for each in lowering.given(operation))
    kind, axis = operation.result_types[0], operation.integer("axis")
    shape = operation.operand_types[0].shape or ()
    target = lowering.new_buffer(kind)

    def line(at: str, loops: Sequence[str]) -> str:
        parts = []
        for each, name in enumerate(loops):
            stride = math.prod(shape[each + 1 :])
            chosen = f"(int64_t){index.name}.GetValue({at})" if each == axis else name
            parts.append(f"{chosen} * {stride}")
        return f"{target.name}.SetValue({at}, {source.name}.GetValue({' + '.join(parts)}));"

    lowering.each_element(kind, line)
    lowering.set(operation, Stored(kind, target))


@lowers("tt.histogram")
def _histogram(lowering: Lowering, operation: Operation) -> None:
    given = lowering.given(operation)
    source = lowering.stored(given[0])
    kind = operation.result_types[0]
    bins = kind.count
    target = lowering.new_buffer(kind)
    mask = lowering.stored(given[1]) if len(given) > 1 else None
    stored = STORED[target.element]
    lowering.writer.on("V")
    lowering.writer.line(f"fill({target.name}, ({stored})0, {bins});")

    def line(at: str, loops: Sequence[str]) -> str:
        del loops
        value = f"(int64_t){source.name}.GetValue({at})"
        keep = f"{value} >= 0 && {value} < {bins}"
        if mask is not None:
            keep += f" && get({mask.name}, {at})"
        return (
            f"if ({keep}) {target.name}.SetValue({value},"
            f" ({stored})({target.name}.GetValue({value}) + 1));"
        )

    lowering.each_element(Type("i32", (source.count,)), line)
    lowering.set(operation, Stored(kind, target))
