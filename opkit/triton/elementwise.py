"""Operations on elements: vector instructions where the chip has them, loops elsewhere."""

from __future__ import annotations

import re
import struct
from collections.abc import Sequence
from dataclasses import replace

from .lowering import Lowering, lowers
from .scalars import FLOAT_COMPARISONS, INTEGER_COMPARISONS, element_text
from .slices import SLICES, lower_slice
from .ttir import Operation, Type
from .values import (
    COMPUTED,
    STORED,
    Affine,
    Buffer,
    Index,
    Mask,
    Pointers,
    Scalar,
    Splat,
    Stored,
    Value,
)

__all__: list[str] = []

_ARITHMETIC = (
    *("arith.addi", "arith.subi", "arith.muli", "arith.divsi", "arith.divui", "arith.remsi"),
    *("arith.remui", "arith.andi", "arith.ori", "arith.xori", "arith.shli", "arith.shrsi"),
    *("arith.shrui", "arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui", "arith.addf"),
    *("arith.subf", "arith.mulf", "arith.divf", "arith.negf", "arith.maxnumf", "arith.minnumf"),
    *("arith.maximumf", "arith.minimumf", "arith.cmpi", "arith.cmpf", "arith.select", "math.fma"),
    *("arith.extsi", "arith.extui", "arith.trunci", "arith.sitofp", "arith.uitofp"),
    *("arith.fptosi", "arith.fptoui", "arith.extf", "arith.truncf", "tt.fp_to_fp", "math.absf"),
    *("math.absi", "tt.mulhiui", "tt.precise_divf", "tt.approx_divf", "tt.ptr_to_int"),
    *("tt.int_to_ptr", "arith.index_cast"),
)


@lowers("arith.constant")
def _constant(lowering: Lowering, operation: Operation) -> None:
    kind = operation.result_types[0]
    text = operation.attributes["value"]
    element = lowering.element(kind)
    if text.startswith("dense<"):
        text = text[len("dense<") : text.rindex("> : ")]
        if text.startswith("["):
            raise lowering.refuse("a constant tile of different numbers")
        scalar = _number(text, element)
        lowering.set(operation, spread_scalar(kind, scalar))
        return
    lowering.set(operation, _number(text.split(" : ")[0], element))


def spread_scalar(kind: Type, scalar: Scalar) -> Value:
    """Return a tile that is one scalar everywhere."""
    rank = len(kind.shape or ())
    if kind.is_pointer or scalar.type.element[0] != "i" or scalar.type.element == "i1":
        if kind.is_pointer:
            return Pointers(kind, scalar.text, (0,) * rank)
        return Splat(kind, scalar)
    base: Index = int(scalar.constant) if scalar.constant is not None else scalar.text
    return Affine(kind, base, (0,) * rank)


def _number(text: str, element: str) -> Scalar:
    kind = Type(element)
    if text in ("true", "false"):
        return Scalar(kind, text, int(text == "true"))
    if element.startswith("i"):
        value = int(text, 16) if text.startswith(('"0x', "0x")) else int(text)
        if element == "i1":
            return Scalar(kind, "true" if value else "false", int(bool(value)))
        suffix = "LL" if element == "i64" else ""
        plain = f"({COMPUTED[element]}){value}{suffix}"
        if value == -(2**63):
            plain = "INT64_MIN"
        return Scalar(kind, f"({plain})", value)
    if text.startswith(("0x", '"0x')):
        number = _float_of_bits(int(text.strip('"'), 16), element)
    else:
        number = float(text)
    return Scalar(kind, float_text(number), number)


def _float_of_bits(bits: int, element: str) -> float:
    if element == "f32":
        return float(struct.unpack("<f", struct.pack("<I", bits))[0])
    if element == "bf16":
        return float(struct.unpack("<f", struct.pack("<I", bits << 16))[0])
    return float(struct.unpack("<e", struct.pack("<H", bits))[0])


def float_text(number: float) -> str:
    """Return C++ of a float."""
    if number != number:
        return '__builtin_nanf("")'
    if number in (float("inf"), float("-inf")):
        return "__builtin_inff()" if number > 0 else "(-__builtin_inff())"
    single = struct.unpack("<f", struct.pack("<f", number))[0]
    return f"({single!r}f)"


@lowers("ub.poison")
def _poison(lowering: Lowering, operation: Operation) -> None:
    kind = operation.result_types[0]
    element = lowering.element(kind)
    zero = _number("0", element) if element.startswith("i") else _number("0.0", element)
    lowering.set(operation, zero if kind.shape is None else spread_scalar(kind, zero))


@lowers("arith.bitcast", "tt.bitcast")
def _bitcast(lowering: Lowering, operation: Operation) -> None:
    (value,) = lowering.given(operation)
    kind = operation.result_types[0]
    source, target = value.type, kind
    if source == target:
        lowering.set(operation, value)
        return
    if source.is_pointer and target.is_pointer:
        lowering.set(operation, _pointer_cast(lowering, value, kind))
        return
    if isinstance(value, Scalar):
        number = _bits_text(lowering, value, kind)
        lowering.set(operation, number)
        return
    buffer = lowering.stored(value)
    stored = STORED[lowering.element(kind)]
    name = f"{buffer.name}.template ReinterpretCast<{stored}>()"
    name = name.replace(".template ", ".")
    lowering.set(operation, Stored(kind, Buffer(name, kind.element, buffer.count)))


def _pointer_cast(lowering: Lowering, value: Value, kind: Type) -> Value:
    if isinstance(value, Scalar):
        return Scalar(kind, value.text, value.constant)
    pointers = lowering.as_pointers(value)
    if lowering.pointee_bytes(pointers.type) != lowering.pointee_bytes(kind):
        raise lowering.refuse("a tile of pointers to elements of another size")
    return replace(pointers, type=kind)


def _bits_text(lowering: Lowering, value: Scalar, kind: Type) -> Scalar:
    if value.type.element[0] == "i" and kind.element[0] == "i":
        return lowering.new_scalar(kind, f"({COMPUTED[kind.element]}){value.text}")
    # Through UB, which has the element's own form.
    buffer = lowering.stored(value)
    lowering.writer.on("S")
    stored = STORED[lowering.element(kind)]
    return lowering.new_scalar(kind, f"get({buffer.name}.ReinterpretCast<{stored}>(), 0)")


@lowers(*_ARITHMETIC)
def _arithmetic(lowering: Lowering, operation: Operation) -> None:
    given = lowering.given(operation)
    kind = operation.result_types[0]
    if kind.shape is None:
        lowering.set(operation, scalar_result(lowering, operation, given))
        return
    for way in (_affine, _masks, _vector, _loop):
        result = way(lowering, operation, given)
        if result is not None:
            lowering.set(operation, result)
            return
    raise lowering.refuse(f"{operation.name} of {kind.element} has no kernel here")


def scalar_result(lowering: Lowering, operation: Operation, given: Sequence[Value]) -> Scalar:
    """Return what an operation on scalars gives."""
    kind = operation.result_types[0]
    scalars = [lowering.scalar(each) for each in given]
    text = element_text(operation, [each.text for each in scalars])
    if text is None:
        raise lowering.refuse(f"{operation.name} of {kind.element} has no kernel here")
    constant = _folded(operation, scalars)
    if constant is not None:
        return _number(str(constant), kind.element)
    if kind.is_pointer:
        return Scalar(kind, lowering.writer.variable("int64_t", text))
    return lowering.new_scalar(kind, text)


def _folded(operation: Operation, scalars: Sequence[Scalar]) -> int | None:
    """Return the whole number that some operations on known ones give."""
    kind = operation.result_types[0]
    if kind.is_pointer or any(each.constant is None for each in scalars):
        return None
    if kind.element not in ("i32", "i64") or scalars[0].type.element[0] != "i":
        return None
    values = [int(each.constant or 0) for each in scalars]
    result: int
    bits = int(kind.element[1:])
    name = operation.name
    if name in ("arith.extsi", "arith.trunci") and scalars[0].type.element != "i1":
        result = values[0]
    elif name in ("arith.addi", "arith.subi", "arith.muli"):
        a, b = values
        result = a + b if name == "arith.addi" else a - b if name == "arith.subi" else a * b
    else:
        return None
    return int((result + 2 ** (bits - 1)) % 2**bits - 2 ** (bits - 1))


def _is_wide(value: Value) -> bool:
    return value.type.element in ("i32", "i64") and not value.type.is_pointer


def _affine(lowering: Lowering, operation: Operation, given: Sequence[Value]) -> Value | None:
    """Index arithmetic: kept as numbers, nothing is computed in UB."""
    name, kind = operation.name, operation.result_types[0]
    if name in ("tt.ptr_to_int", "tt.int_to_ptr"):
        return None
    if not all(isinstance(each, Affine) and _is_wide(each) for each in given):
        return None
    values = [each for each in given if isinstance(each, Affine)]
    writer = lowering.writer
    if name == "arith.cmpi":
        return _box(lowering, operation, values[0], values[1])
    if kind.element not in ("i32", "i64"):
        return None
    if name == "arith.extsi":
        return Affine(kind, values[0].base, values[0].coefficients)
    if name == "arith.trunci":
        return replace(values[0], type=kind) if _is_small(values[0]) else None
    if name in ("arith.addi", "arith.subi"):
        function = writer.sum if name == "arith.addi" else writer.difference
        a, b = values
        coefficients = tuple(
            function(x, y) for x, y in zip(a.coefficients, b.coefficients, strict=True)
        )
        return Affine(kind, function(a.base, b.base), coefficients)
    if name == "arith.muli":
        a, b = values
        if any(each != 0 for each in a.coefficients):
            a, b = b, a
        if any(each != 0 for each in a.coefficients):
            return None
        coefficients = tuple(writer.product(a.base, each) for each in b.coefficients)
        return Affine(kind, writer.product(a.base, b.base), coefficients)
    if all(each == 0 for value in values for each in value.coefficients):
        scalars = [
            Scalar(
                Type(value.type.element),
                f"({COMPUTED[value.type.element]}){value.base}",
                value.base if isinstance(value.base, int) else None,
            )
            for value in values
        ]
        text = element_text(operation, [f"({each.text})" for each in scalars])
        if text is None:
            return None
        return spread_scalar(kind, lowering.new_scalar(Type(kind.element), text))
    return None


def _is_small(value: Affine) -> bool:
    """Whether all numbers are known to be whole numbers of 32 bits."""
    if not all(isinstance(each, int) for each in (value.base, *value.coefficients)):
        return False
    reach = sum(
        abs(int(coefficient)) * extent
        for coefficient, extent in zip(value.coefficients, value.type.shape or (), strict=True)
    )
    return abs(int(value.base)) + reach < 2**31


_SIGNED = {"slt": "lt", "sle": "le", "sgt": "gt", "sge": "ge"}


def _box(lowering: Lowering, operation: Operation, a: Affine, b: Affine) -> Value | None:
    """Return a comparison of indices along one dimension as the range in which it holds."""
    writer = lowering.writer
    predicate = INTEGER_COMPARISONS[operation.integer("predicate")]
    kind = operation.result_types[0]
    shape = kind.shape or ()
    base = writer.difference(a.base, b.base)
    steps = [
        writer.difference(x, y) if extent > 1 else 0
        for x, y, extent in zip(a.coefficients, b.coefficients, shape, strict=True)
    ]
    moving = [axis for axis, step in enumerate(steps) if step != 0]
    if not moving:
        if predicate.startswith("u"):
            return None
        texts = [f"(({COMPUTED[a.type.element]}){each.base})" for each in (a, b)]
        text = element_text(operation, texts)
        assert text is not None
        if isinstance(base, int):
            signs = {"eq": base == 0, "ne": base != 0, "slt": base < 0, "sle": base <= 0}
            known = signs.get(predicate, base > 0 if predicate == "sgt" else base >= 0)
            return Splat(kind, Scalar(Type("i1"), str(known).lower(), int(known)))
        return Splat(kind, lowering.new_scalar(Type("i1"), text))
    if len(moving) > 1:
        return None
    axis = moving[0]
    step = steps[axis]
    if not isinstance(step, int):
        return None
    low: list[Index] = [0] * len(shape)
    high: list[Index] = list(shape)
    need = writer.difference(0, base)
    # step * i compared with need
    if predicate == "eq":
        if abs(step) != 1:
            return None
        at = need if step == 1 else writer.difference(0, need)
        low[axis], high[axis] = at, writer.sum(at, 1)
        return Mask(kind, tuple(low), tuple(high))
    sign = _SIGNED.get(predicate)
    if sign is None:
        return None
    if step < 0:
        step, need = -step, writer.difference(0, need)
        sign = {"lt": "gt", "le": "ge", "gt": "lt", "ge": "le"}[sign]
    if sign == "lt":
        high[axis] = writer.call("ceil_div", need, step) if step > 1 else need
    elif sign == "le":
        high[axis] = writer.sum(writer.call("floor_div", need, step) if step > 1 else need, 1)
    elif sign == "gt":
        low[axis] = writer.sum(writer.call("floor_div", need, step) if step > 1 else need, 1)
    else:
        low[axis] = writer.call("ceil_div", need, step) if step > 1 else need
    if high[axis] != shape[axis]:
        high[axis] = writer.call("least", high[axis], shape[axis])
    if low[axis] != 0:
        low[axis] = writer.call("most", low[axis], 0)
    return Mask(kind, tuple(low), tuple(high))


def _masks(lowering: Lowering, operation: Operation, given: Sequence[Value]) -> Value | None:
    """What holds of both of two masks, as a box where they are boxes."""
    if operation.name != "arith.andi" or operation.result_types[0].element != "i1":
        return None
    if not any(isinstance(each, (Mask, Splat)) for each in given):
        return None
    for one, other in ((given[0], given[1]), (given[1], given[0])):
        if isinstance(one, Splat) and one.scalar.constant is not None:
            return other if one.scalar.constant else one
    a, b = (lowering.as_mask(each) for each in given)
    writer = lowering.writer
    low = tuple(
        x if x == y else writer.call("most", x, y) for x, y in zip(a.low, b.low, strict=True)
    )
    high = tuple(
        x if x == y else writer.call("least", x, y) for x, y in zip(a.high, b.high, strict=True)
    )
    buffers = a.buffers + tuple(each for each in b.buffers if each not in a.buffers)
    return Mask(operation.result_types[0], low, high, buffers)


_BINARY = {
    "arith.addf": "Add",
    "arith.subf": "Sub",
    "arith.mulf": "Mul",
    "arith.divf": "Div",
    "tt.precise_divf": "Div",
    "tt.approx_divf": "Div",
    "arith.maximumf": "Max",
    "arith.minimumf": "Min",
    "arith.maxnumf": "Max",
    "arith.minnumf": "Min",
    "arith.addi": "Add",
    "arith.subi": "Sub",
    "arith.muli": "Mul",
    "arith.maxsi": "Max",
    "arith.minsi": "Min",
}
_WITH_SCALAR = {"Add": "Adds", "Mul": "Muls", "Max": "Maxs", "Min": "Mins"}
_COMPUTES = ("f32", "f16", "i32", "i16")


def _vector(lowering: Lowering, operation: Operation, given: Sequence[Value]) -> Value | None:
    name, kind = operation.name, operation.result_types[0]
    if name == "arith.cmpf" or name == "arith.cmpi":
        return _comparison(lowering, operation, given)
    if name == "arith.select":
        return _selection(lowering, operation, given)
    if name in ("arith.andi", "arith.ori"):
        return _bitwise(lowering, operation, given)
    cast = _cast(lowering, operation, given)
    if cast is not None:
        return cast
    element = kind.element
    if element == "bf16" and (name in _BINARY or name in ("arith.negf", "math.absf")):
        wide = Type("f32", kind.shape)
        copies = [Stored(wide, widened(lowering, each)) for each in given]
        result = _instruction(lowering, operation, copies, wide)
        return None if result is None else Stored(kind, narrowed(lowering, result, kind))
    if element not in _COMPUTES:
        return None
    result = _instruction(lowering, operation, given, kind)
    return None if result is None else Stored(kind, result)


def _instruction(
    lowering: Lowering, operation: Operation, given: Sequence[Value], kind: Type
) -> Buffer | None:
    name, writer = operation.name, lowering.writer
    if name in ("arith.negf", "math.absf"):
        source = lowering.stored(given[0])
        target = lowering.new_buffer(kind)
        stored = STORED[kind.element]
        if name == "math.absf":
            writer.vector(f"Abs({target.name}, {source.name}, {kind.count});")
        else:
            writer.vector(f"Muls({target.name}, {source.name}, ({stored})-1.0f, {kind.count});")
        return target
    instruction = _BINARY.get(name)
    if instruction is None:
        return None
    is_mended = name in ("arith.maxnumf", "arith.minnumf")
    a, b = given
    scalar_form = _WITH_SCALAR.get(instruction)
    if scalar_form is not None and not is_mended:
        if _uniform(a) is not None and _uniform(b) is None:
            a, b = b, a
        uniform = _uniform(b)
        if uniform is not None:
            source = lowering.stored(a)
            target = lowering.new_buffer(kind)
            text = f"stored<{STORED[kind.element]}>({uniform})"
            writer.vector(f"{scalar_form}({target.name}, {source.name}, {text}, {kind.count});")
            return target
    left, right = lowering.stored(a), lowering.stored(b)
    target = lowering.new_buffer(kind)
    writer.vector(f"{instruction}({target.name}, {left.name}, {right.name}, {kind.count});")
    if is_mended:
        bits = writer.buffer("i1", (kind.count + 7) // 8)
        writer.line(f"mend({target.name}, {left.name}, {right.name}, {bits.name}, {kind.count});")
    return target


def _uniform(value: Value) -> str | None:
    if isinstance(value, Splat):
        return value.scalar.text
    if isinstance(value, Affine) and all(each == 0 for each in value.coefficients):
        return str(value.base)
    return None


def widened(lowering: Lowering, value: Value) -> Buffer:
    """Return a tile of 16-bit floats as floats."""
    if isinstance(value, Splat):
        wide = Type("f32", value.type.shape)
        return lowering.stored(Splat(wide, Scalar(Type("f32"), value.scalar.text)))
    source = lowering.stored(value)
    if source.element == "f32":
        return source
    target = lowering.writer.buffer("f32", source.count)
    lowering.writer.vector(
        f"Cast({target.name}, {source.name}, RoundMode::CAST_NONE, {source.count});"
    )
    return target


def narrowed(lowering: Lowering, source: Buffer, kind: Type) -> Buffer:
    """Return a tile of floats rounded to 16-bit floats."""
    if kind.element == "f32":
        return source
    target = lowering.new_buffer(kind)
    lowering.writer.vector(
        f"Cast({target.name}, {source.name}, RoundMode::CAST_RINT, {source.count});"
    )
    return target


def _bitwise(lowering: Lowering, operation: Operation, given: Sequence[Value]) -> Value | None:
    kind = operation.result_types[0]
    left, right = (lowering.stored(each) for each in given)
    target = lowering.new_buffer(kind)
    words = (kind.count * {"i1": 1, "i8": 1, "i16": 2, "i32": 4, "i64": 8}[kind.element] + 1) // 2
    function = "And" if operation.name == "arith.andi" else "Or"
    names = ", ".join(f"{each.name}.ReinterpretCast<int16_t>()" for each in (target, left, right))
    lowering.writer.vector(f"{function}({names}, {words});")
    return Stored(kind, target)


# Casts that the chip has, one after the other: target element, rounding.
_CASTS: dict[tuple[str, str, str], tuple[tuple[str, str], ...]] = {
    ("f", "f32", "f16"): (("f16", "RINT"),),
    ("f", "f32", "bf16"): (("bf16", "RINT"),),
    ("f", "f16", "f32"): (("f32", "NONE"),),
    ("f", "bf16", "f32"): (("f32", "NONE"),),
    ("f", "f16", "bf16"): (("f32", "NONE"), ("bf16", "RINT")),
    ("f", "bf16", "f16"): (("f32", "NONE"), ("f16", "RINT")),
    ("si", "i32", "f32"): (("f32", "RINT"),),
    ("si", "i32", "f16"): (("f32", "RINT"), ("f16", "RINT")),
    ("si", "i32", "bf16"): (("f32", "RINT"), ("bf16", "RINT")),
    ("si", "i16", "f32"): (("f32", "NONE"),),
    ("si", "i16", "f16"): (("f32", "NONE"), ("f16", "RINT")),
    ("si", "i16", "bf16"): (("f32", "NONE"), ("bf16", "RINT")),
    ("si", "i8", "f16"): (("f16", "NONE"),),
    ("si", "i8", "f32"): (("f16", "NONE"), ("f32", "NONE")),
    ("si", "i8", "bf16"): (("f16", "NONE"), ("f32", "NONE"), ("bf16", "RINT")),
    ("si", "i64", "f32"): (("f32", "RINT"),),
    ("ui", "i1", "f16"): (("f16", "NONE"),),
    ("ui", "i1", "f32"): (("f16", "NONE"), ("f32", "NONE")),
    ("ui", "i1", "i32"): (("f16", "NONE"), ("i32", "RINT")),
    ("ui", "i1", "i16"): (("f16", "NONE"), ("i16", "RINT")),
    ("to", "f32", "i32"): (("i32", "TRUNC"),),
    ("to", "f16", "i32"): (("i32", "TRUNC"),),
    ("to", "f32", "i64"): (("i64", "TRUNC"),),
    ("to", "f16", "i64"): (("f32", "NONE"), ("i64", "TRUNC")),
    ("si", "i32", "i64"): (("i64", "NONE"),),
    ("si", "i8", "i32"): (("f16", "NONE"), ("i32", "RINT")),
    ("si", "i16", "i32"): (("f32", "NONE"), ("i32", "RINT")),
    ("si", "i8", "i16"): (("f16", "NONE"), ("i16", "RINT")),
}
_CAST_KINDS = {
    "arith.truncf": "f",
    "arith.extf": "f",
    "tt.fp_to_fp": "f",
    "arith.sitofp": "si",
    "arith.uitofp": "ui",
    "arith.extsi": "si",
    "arith.extui": "ui",
    "arith.fptosi": "to",
}


def _cast(lowering: Lowering, operation: Operation, given: Sequence[Value]) -> Value | None:
    kind = operation.result_types[0]
    cast = _CAST_KINDS.get(operation.name)
    if cast is None:
        return None
    source = given[0].type.element
    # Nearest even is 1; toward zero is what the loops do not do either.
    if operation.name == "tt.fp_to_fp" and operation.integer("rounding", 1) == 0:
        raise lowering.refuse("a cast that rounds toward zero (fp_downcast_rounding)")
    if isinstance(given[0], Splat) and cast != "to":
        text = element_text(_of_scalars(operation), [given[0].scalar.text])
        if text is not None:
            return spread_scalar(kind, lowering.new_scalar(Type(kind.element), text))
    steps = _CASTS.get((cast, source, kind.element))
    if steps is None:
        return None
    buffer = lowering.stored(given[0])
    for element, rounding in steps:
        target = lowering.writer.buffer(element, kind.count)
        lowering.writer.vector(
            f"Cast({target.name}, {buffer.name}, RoundMode::CAST_{rounding}, {kind.count});"
        )
        buffer = target
    return Stored(kind, buffer)


def _of_scalars(operation: Operation) -> Operation:
    return Operation(
        operation.name,
        operation.operands,
        [Type(each.element, None, each.is_pointer) for each in operation.operand_types],
        operation.results,
        [Type(each.element, None, each.is_pointer) for each in operation.result_types],
        operation.attributes,
        where=operation.where,
    )


_MODES = {
    "oeq": "EQ",
    "olt": "LT",
    "ole": "LE",
    "ogt": "GT",
    "oge": "GE",
}


def _mask_space(lowering: Lowering, count: int) -> Buffer:
    halves = (2 * count + 255) // 256 * 256
    bits = ((count + 7) // 8 + 255) // 256 * 256
    return lowering.writer.buffer("i1", 2 * halves + bits)


def _comparison(lowering: Lowering, operation: Operation, given: Sequence[Value]) -> Value | None:
    kind, writer = operation.result_types[0], lowering.writer
    source = given[0].type.element
    number = operation.integer("predicate")
    is_inverse = False
    if operation.name == "arith.cmpf":
        predicate = FLOAT_COMPARISONS[number]
        if predicate == "une":
            predicate, is_inverse = "oeq", True
        mode = _MODES.get(predicate)
        if mode is None:
            return None
        if source == "bf16":
            left, right = (widened(lowering, each) for each in given)
        elif source in ("f32", "f16"):
            left, right = (lowering.stored(each) for each in given)
        else:
            return None
    else:
        predicate = INTEGER_COMPARISONS[number]
        if source not in ("i32",):
            return None
        if predicate not in ("eq", "ne", "slt", "sle", "sgt", "sge"):
            return None
        left, right = (lowering.stored(each) for each in given)
        target, space = lowering.new_buffer(kind), _mask_space(lowering, kind.count)
        if predicate in ("eq", "ne"):
            is_inverse = predicate == "ne"
            writer.vector(
                f"compare({target.name}, {left.name}, {right.name}, CMPMODE::EQ,"
                f" {str(is_inverse).lower()}, {space.name}, {kind.count});"
            )
            return Stored(kind, target)
        if predicate in ("sgt", "sge"):
            left, right = right, left
        # a <= b, and b < a is what is not.
        if predicate in ("slt", "sgt"):
            left, right, is_inverse = right, left, True
        most = writer.buffer("i32", kind.count)
        writer.vector(
            f"compare_order({target.name}, {left.name}, {right.name}, {most.name},"
            f" {str(is_inverse).lower()}, {space.name}, {kind.count});"
        )
        return Stored(kind, target)
    target, space = lowering.new_buffer(kind), _mask_space(lowering, kind.count)
    writer.vector(
        f"compare({target.name}, {left.name}, {right.name}, CMPMODE::{mode},"
        f" {str(is_inverse).lower()}, {space.name}, {kind.count});"
    )
    return Stored(kind, target)


def _selection(lowering: Lowering, operation: Operation, given: Sequence[Value]) -> Value | None:
    kind = operation.result_types[0]
    if isinstance(given[0], Scalar):
        return None
    if kind.is_pointer or kind.element not in ("f32", "f16", "bf16", "i32", "i16"):
        return None
    mask, left, right = (lowering.stored(each) for each in given)
    target, space = lowering.new_buffer(kind), _mask_space(lowering, kind.count)
    width = "float" if kind.element in ("f32", "i32") else "half"
    names = [
        each.name
        if each.element == {"float": "f32", "half": "f16"}[width]
        else f"{each.name}.ReinterpretCast<{width}>()"
        for each in (target, left, right)
    ]
    lowering.writer.vector(
        f"choose({names[0]}, {mask.name}, {names[1]}, {names[2]}, {space.name}, {kind.count});"
    )
    return Stored(kind, target)


def _loop(lowering: Lowering, operation: Operation, given: Sequence[Value]) -> Value | None:
    kind = operation.result_types[0]
    reads = []
    for each in given:
        if isinstance(each, Splat):
            reads.append(each.scalar.text)
        elif isinstance(each, Scalar):
            reads.append(each.text)
        else:
            buffer = lowering.stored(each)
            reads.append(f"get({buffer.name}, @)")
    text = element_text(_of_scalars(operation), reads)
    if text is None:
        return None
    target = lowering.new_buffer(kind)
    lowering.note_slow(f"{operation.name} of {kind.element}")
    flat = Type(kind.element, (kind.count,), kind.is_pointer)
    lowering.each_element(
        flat, lambda at, loops: f"set({target.name}, {at}, {re.sub('@', at, text)});"
    )
    return Stored(kind, target)


_MATH = {
    "math.exp": "Exp({0}, {1}, {2});",
    "math.log": "Ln({0}, {1}, {2});",
    "math.sqrt": "Sqrt({0}, {1}, {2});",
    "tt.precise_sqrt": "Sqrt({0}, {1}, {2});",
    "math.rsqrt": "Rsqrt({0}, {1}, {2});",
    "math.floor": "Cast({0}, {1}, RoundMode::CAST_FLOOR, {2});",
    "math.ceil": "Cast({0}, {1}, RoundMode::CAST_CEIL, {2});",
    "math.trunc": "Cast({0}, {1}, RoundMode::CAST_TRUNC, {2});",
    "math.rint": "Cast({0}, {1}, RoundMode::CAST_RINT, {2});",
    "math.round": "Cast({0}, {1}, RoundMode::CAST_ROUND, {2});",
    "extern.trunc": "Cast({0}, {1}, RoundMode::CAST_TRUNC, {2});",
    "extern.rint": "Cast({0}, {1}, RoundMode::CAST_RINT, {2});",
    "extern.round": "Cast({0}, {1}, RoundMode::CAST_ROUND, {2});",
    "math.exp2": "Muls({0}, {1}, 0.693147180559945f, {2}); PipeBarrier<PIPE_V>();"
    " Exp({0}, {0}, {2});",
}
"""In floats: target, source, count."""
_LIBRARY = {
    "math.log2": "Log2",
    "math.sin": "Sin",
    "math.cos": "Cos",
    "math.erf": "Erf",
    "math.tanh": "Tanh",
}
_LIBRARY |= {
    f"extern.{name.lower()}": name
    for name in (
        *("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Cosh", "Sinh", "Tan", "Tanh"),
        *("Erfc", "Log10"),
    )
}
"""Functions of the high-level library that want temporary space."""


_LIBRARY_OF_TWO = {"extern.pow": "Power"}
"""The same, of two operands."""


def apply_math(lowering: Lowering, name: str, *sources: Buffer) -> Buffer | None:
    """Return a function of tiles of floats; None: there is none."""
    writer, source = lowering.writer, sources[0]
    target = writer.buffer("f32", source.count)
    text = _MATH.get(name)
    if text is not None:
        writer.vector(text.format(target.name, source.name, source.count))
        return target
    function = _LIBRARY.get(name) or _LIBRARY_OF_TWO.get(name)
    if function is None:
        return None
    lowering.needs_library = True
    space = writer.buffer("i1", (5 + len(sources)) * 4 * max(source.count, 64))
    writer.on("any")
    given = ", ".join(each.name for each in sources)
    writer.line(f"{function}({target.name}, {given}, {space.name}, {source.count});")
    writer.pipe = "any"
    return target


@lowers("tt.extern_elementwise", *_MATH, *_LIBRARY)
def _math(lowering: Lowering, operation: Operation) -> None:
    kind = operation.result_types[0]
    name = operation.name
    if name == "tt.extern_elementwise":
        symbol, *strides = operation.attributes["symbol"].strip('"').split()
        if symbol in SLICES:
            lower_slice(lowering, operation, symbol, [int(each) for each in strides])
            return
        name = f"extern.{symbol}"
        if not any(name in table for table in (_MATH, _LIBRARY, _LIBRARY_OF_TWO)):
            raise lowering.refuse(f"{name.partition('.')[2]}: no function of a library here")
    if kind.element not in ("f32", "f16", "bf16"):
        raise lowering.refuse(f"{operation.name} of {kind.element} has no kernel here")
    shape = kind.shape or (1,)

    def tile(value: Value) -> Buffer:
        if isinstance(value, Scalar):
            return lowering.stored(Splat(Type("f32", shape), Scalar(Type("f32"), value.text)))
        return widened(lowering, value)

    result = apply_math(lowering, name, *map(tile, lowering.given(operation)))
    assert result is not None
    result = narrowed(lowering, result, Type(kind.element, shape))
    if kind.shape is None:
        lowering.writer.on("S")
        lowering.set(operation, lowering.new_scalar(kind, f"get({result.name}, 0)"))
        return
    lowering.set(operation, Stored(kind, result))


@lowers("arith.remf")
def _remainder(lowering: Lowering, operation: Operation) -> None:
    kind = operation.result_types[0]
    shape = kind.shape or (1,)
    wide = Type("f32", shape)
    buffers = [
        lowering.stored(Splat(wide, Scalar(Type("f32"), value.text)))
        if isinstance(value, Scalar)
        else widened(lowering, value)
        for value in lowering.given(operation)
    ]
    writer = lowering.writer
    lowering.needs_library = True
    target = writer.buffer("f32", wide.count)
    space = writer.buffer("i1", 4 * 4 * max(wide.count, 64))
    left, right = (each.name for each in buffers)
    writer.on("any")
    writer.line(f"Fmod({target.name}, {left}, {right}, {space.name}, {wide.count});")
    writer.pipe = "any"
    result = narrowed(lowering, target, Type(kind.element, shape))
    if kind.shape is None:
        writer.on("S")
        lowering.set(operation, lowering.new_scalar(kind, f"get({result.name}, 0)"))
        return
    lowering.set(operation, Stored(kind, result))


@lowers("tt.clampf")
def _clamp(lowering: Lowering, operation: Operation) -> None:
    value, low, high = operation.operands
    kind = operation.result_types[0]
    propagates = operation.integer("propagateNan", 0) != 0
    names = (
        ("arith.maximumf", "arith.minimumf") if propagates else ("arith.maxnumf", "arith.minnumf")
    )
    for index, (name, bound) in enumerate(zip(names, (low, high), strict=True)):
        result = operation.results[0] + ("#clamped" if index == 0 else "")
        step = Operation(
            name, [value, bound], [kind, kind], [result], [kind], where=operation.where
        )
        lowering.lower(step)
        value = result
