"""Loads and stores: boxes of global memory at once, anything else element by element."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .lowering import Lowering, indices, lowers
from .ttir import Operation, Type
from .values import STORED, Affine, Buffer, Mask, Pointers, Scalar, Splat, Stored, Value

__all__ = ["box_text", "each_put", "everything", "is_scattered"]


def _optional(operation: Operation, lowering: Lowering) -> list[Value | None]:
    """Return operands by their segments, None where one is not there."""
    found: list[Value | None] = []
    at = 0
    for size in operation.integers("operandSegmentSizes"):
        found.append(lowering.value(operation.operands[at]) if size else None)
        at += size
    return found


@lowers("tt.addptr")
def _addptr(lowering: Lowering, operation: Operation) -> None:
    pointer, offset = lowering.given(operation)
    writer, kind = lowering.writer, operation.result_types[0]
    size = lowering.pointee_bytes(kind)
    if kind.shape is None:
        given = lowering.scalar(offset)
        address = lowering.index_of(lowering.scalar(pointer))
        moved = writer.sum(address, writer.product(lowering.index_of(given), size))
        lowering.set(operation, Scalar(kind, str(moved)))
        return
    pointers = lowering.as_pointers(pointer)
    if isinstance(offset, Affine):
        moved = writer.sum(pointers.address, writer.product(offset.base, size))
        coefficients = tuple(
            writer.sum(a, b)
            for a, b in zip(pointers.coefficients, offset.coefficients, strict=True)
        )
        lowering.set(operation, replace(pointers, address=moved, coefficients=coefficients))
        return
    buffers = (*pointers.buffers, lowering.stored(offset))
    lowering.set(operation, replace(pointers, buffers=buffers))


def _pointee(lowering: Lowering, pointer: Value, result: Type) -> str:
    """Return the element that lies in memory: a bool is a byte there."""
    del pointer
    return "i8" if result.element == "i1" else lowering.element(result)


@lowers("tt.load")
def _load(lowering: Lowering, operation: Operation) -> None:
    pointer, mask, other = _optional(operation, lowering)
    assert pointer is not None
    kind = operation.result_types[0]
    if kind.shape is None:
        lowering.set(operation, _load_scalar(lowering, lowering.scalar(pointer), mask, other, kind))
        return
    pointers = lowering.as_pointers(pointer)
    element = _pointee(lowering, pointer, kind)
    if kind.is_pointer:
        element = "i64"
    where = lowering.as_mask(mask) if mask is not None else everything(kind)
    target = lowering.writer.buffer("i1" if kind.element == "i1" else element, kind.count)
    filler = _filler(other)
    if not is_scattered(pointers, where) and filler is not None:
        _load_box(lowering, pointers, where, target, filler)
    else:
        _gather(lowering, pointers, where, target, other, filler)
    lowering.set(operation, Stored(kind, target))


def everything(kind: Type) -> Mask:
    """Return the mask that holds everywhere in a tile."""
    shape = kind.shape or ()
    return Mask(Type("i1", shape), (0,) * len(shape), shape)


def _filler(other: Value | None) -> str | None:
    """Return C++ of the one number that stands where nothing is read; None: there are several."""
    if other is None:
        return "0"
    if isinstance(other, Splat):
        return other.scalar.text
    if isinstance(other, Affine) and all(each == 0 for each in other.coefficients):
        return str(other.base)
    return None


def box_text(pointers: Pointers, where: Mask) -> str:
    """Return C++ of the box of memory that pointers under a mask are."""
    shape = pointers.type.shape or ()
    parts = (shape, pointers.coefficients, where.low, where.high)
    return f"Box<{len(shape)}>{{{', '.join(indices(part) for part in parts)}}}"


def is_scattered(pointers: Pointers, where: Mask) -> bool:
    """Whether addresses or their mask are no box."""
    return bool(pointers.buffers or pointers.places or where.buffers)


def _flag(lowering: Lowering) -> str:
    return "true" if lowering.is_written else "false"


def _load_box(
    lowering: Lowering, pointers: Pointers, where: Mask, target: Buffer, filler: str
) -> None:
    writer = lowering.writer
    stored = STORED[target.element]
    rank = len(pointers.type.shape or ())
    # One that fills first waits by itself; what follows waits for the vector unit and the reads.
    writer.on("any")
    writer.line(
        f"load_box<{stored}, {_flag(lowering)}, {rank}>({target.name}, {pointers.address},"
        f" {box_text(pointers, where)}, stored<{stored}>({filler}));"
    )
    writer.pipe = "any"


def _gather(
    lowering: Lowering,
    pointers: Pointers,
    where: Mask,
    target: Buffer,
    other: Value | None,
    filler: str | None,
) -> None:
    lowering.note_slow("a load of scattered addresses or a mask that is no box")
    stored = STORED[target.element]
    rest = lowering.stored(other).name if other is not None and filler is None else ""

    def line(at: str, loops: Sequence[str]) -> str:
        keep = lowering.mask_text(where, at, loops)
        address = lowering.address_text(pointers, at, loops)
        read = f"set({target.name}, {at}, fetch<{stored}, {_flag(lowering)}>({address}));"
        if keep == "true":
            return read
        value = f"get({rest}, {at})" if rest else filler
        return f"if ({keep}) {read} else set({target.name}, {at}, {value});"

    lowering.each_element(pointers.type, line)


def _load_scalar(
    lowering: Lowering, pointer: Scalar, mask: Value | None, other: Value | None, kind: Type
) -> Scalar:
    stored = "int64_t" if kind.is_pointer else STORED[_pointee(lowering, pointer, kind)]
    text = f"fetch<{stored}, {_flag(lowering)}>({pointer.text})"
    lowering.writer.on("S")
    if mask is not None:
        rest = lowering.scalar(other).text if other is not None else "0"
        if rest == "0":
            rest = f"decltype({text})(0)"
        text = f"({lowering.scalar(mask).text} ? {text} : {rest})"
    return lowering.new_scalar(kind, text)


@lowers("tt.store")
def _store(lowering: Lowering, operation: Operation) -> None:
    given = lowering.given(operation)
    pointer, value = given[:2]
    mask = given[2] if len(given) > 2 else None
    kind = value.type
    writer = lowering.writer
    if kind.shape is None:
        keep = lowering.scalar(mask).text if mask is not None else None
        _store_scalar(lowering, lowering.scalar(pointer), lowering.scalar(value), keep)
        return
    pointers = lowering.as_pointers(pointer)
    where = lowering.as_mask(mask) if mask is not None else everything(kind)
    source = lowering.stored(value)
    stage = writer.buffer(source.element, 1)
    if is_scattered(pointers, where):
        lowering.note_slow("a store to scattered addresses or under a mask that is no box")
        each_put(lowering, pointers, where, source, stage)
        return
    stored = STORED[source.element]
    rank = len(kind.shape)
    writer.on("any" if writer.pipe != "MTE3" else "MTE3")
    writer.line(
        f"store_box<{stored}, {rank}>({pointers.address}, {source.name},"
        f" {box_text(pointers, where)}, {stage.name});"
    )
    writer.pipe = "any"


def each_put(
    lowering: Lowering, pointers: Pointers, where: Mask, source: Buffer, stage: Buffer
) -> None:
    """Write a tile element by element to addresses under a mask."""

    def line(at: str, loops: Sequence[str]) -> str:
        keep = lowering.mask_text(where, at, loops)
        address = lowering.address_text(pointers, at, loops)
        put = f"put({address}, {source.name}.GetValue({at}), {stage.name});"
        return put if keep == "true" else f"if ({keep}) {put}"

    lowering.each_element(pointers.type, line)


def _store_scalar(lowering: Lowering, pointer: Scalar, value: Scalar, keep: str | None) -> None:
    writer = lowering.writer
    element = lowering.element(value.type)
    stage = writer.buffer(element, 1)
    writer.on("any")
    put = f"put({pointer.text}, stored<{STORED[element]}>({value.text}), {stage.name});"
    writer.line(f"if ({keep}) {put}" if keep is not None else put)
    writer.pipe = "any"


@lowers("tt.print")
def _print(lowering: Lowering, operation: Operation) -> None:
    prefix = operation.attributes.get("prefix", '""')[1:-1].replace("%", "%%")
    writer = lowering.writer
    for value in lowering.given(operation):
        element = lowering.element(value.type)
        form = "%f" if element in ("f32", "f16", "bf16") else "%ld"
        cast = "" if form == "%f" else "(int64_t)"
        if isinstance(value, Scalar):
            writer.on("S")
            writer.line(f'AscendC::printf("{prefix}{form}\\n", {cast}{value.text});')
            continue
        buffer = lowering.stored(value)

        read = f"{cast}get({buffer.name}, "

        def line(at: str, loops: Sequence[str], form: str = form, read: str = read) -> str:
            del loops
            return f'AscendC::printf("{prefix}[%ld] {form}\\n", (int64_t){at}, {read}{at}));'

        lowering.each_element(value.type, line)
    if not operation.operands:
        writer.line(f'AscendC::printf("{prefix}\\n");')


@lowers("tt.assert")
def _assert(lowering: Lowering, operation: Operation) -> None:
    (value,) = lowering.given(operation)
    writer = lowering.writer
    message = operation.attributes.get("message", '""')
    text = f"ascendc_assert(%s, {message})"
    if isinstance(value, Scalar):
        writer.line(f"{text % value.text};")
        return
    buffer = lowering.stored(value)
    lowering.each_element(value.type, lambda at, loops: f"{text % f'get({buffer.name}, {at})'};")


@lowers("tt.assume", "llvm.intr.assume", "gpu.barrier", "ttg.barrier", "tt.barrier")
def _nothing(lowering: Lowering, operation: Operation) -> None:
    """One program is one core: what it asks of others of its threads is there already."""
    del lowering, operation
