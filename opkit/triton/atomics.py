"""Atomics: writes that add, and take extremes, by instructions; all else by one core in order."""

from __future__ import annotations

from collections.abc import Sequence

from .lowering import Lowering, all_operations, lowers
from .memory import box_text, each_put, everything, is_scattered
from .scalars import UNSIGNED, rounded
from .ttir import Operation
from .values import COMPUTED, STORED, Scalar, Stored, Value

__all__: list[str] = []

# By MLIR's number.
_ATOMICS = ("and", "or", "xor", "add", "fadd", "max", "min", "umax", "umin", "xchg")
_INSTRUCTIONS = {"add": "Add", "fadd": "Add", "max": "Max", "min": "Min"}
_ELEMENTS = ("f32", "f16", "bf16", "i32", "i16", "i8")
# Of what was there (a) and the operand (b); {kind} is the element without a sign.
_AFTER = {
    "and": "a & b",
    "or": "a | b",
    "xor": "a ^ b",
    "add": "(uint64_t)a + (uint64_t)b",
    "fadd": "a + b",
    "max": "(a > b ? a : b)",
    "min": "(a < b ? a : b)",
    "umax": "(({kind})a > ({kind})b ? a : b)",
    "umin": "(({kind})a < ({kind})b ? a : b)",
    "xchg": "b",
}


@lowers("tt.atomic_rmw")
def _atomic(lowering: Lowering, operation: Operation) -> None:
    pointer, value, *rest = lowering.given(operation)
    mask = rest[0] if rest else None
    kind = _ATOMICS[operation.integer("atomic_rmw_op") - 1]
    element = lowering.element(value.type)
    is_asked = any(_is_used(lowering, result, set()) for result in operation.results)
    if is_asked or kind not in _INSTRUCTIONS or element not in _ELEMENTS:
        after = _AFTER[kind].format(kind=UNSIGNED.get(element, "float"))
        _in_turns(lowering, operation, [pointer, value], mask, f"put({{at}}, {after})")
        return
    writer = lowering.writer
    stored = STORED[element]
    stage = writer.buffer(element, 1)
    writer.on("any")
    writer.line(f"SetAtomic{_INSTRUCTIONS[kind]}<{stored}>();")
    if value.type.shape is None:
        keep = lowering.scalar(mask).text if mask is not None else None
        put = (
            f"put({lowering.scalar(pointer).text},"
            f" stored<{stored}>({lowering.scalar(value).text}), {stage.name});"
        )
        writer.line(f"if ({keep}) {put}" if keep not in (None, "true") else put)
    else:
        pointers = lowering.as_pointers(pointer)
        where = lowering.as_mask(mask) if mask is not None else everything(value.type)
        source = lowering.stored(value)
        if is_scattered(pointers, where):
            each_put(lowering, pointers, where, source, stage)
        else:
            writer.line(
                f"store_box<{stored}, {len(value.type.shape)}>({pointers.address}, {source.name},"
                f" {box_text(pointers, where)}, {stage.name});"
            )
    writer.line("barrier();")
    writer.line("SetAtomicNone();")
    writer.pipe = "any"


@lowers("tt.atomic_cas")
def _atomic_cas(lowering: Lowering, operation: Operation) -> None:
    put = "if (is_same(a, b)) put({at}, c)"
    _in_turns(lowering, operation, lowering.given(operation), None, put)


def _in_turns(
    lowering: Lowering, operation: Operation, given: list[Value], mask: Value | None, put: str
) -> None:
    """Read what is there, and write what becomes of it: as no other core runs meanwhile.

    `put` is C++ of a, what is there, and the operands b and c; `put(` writes to `{at}`.
    """
    what = "atomic_cas" if operation.name.endswith("cas") else "an atomic that no instruction does"
    lowering.run_in_turns(what)
    pointer, *values = given
    kind = values[0].type
    element = lowering.element(kind)
    stored, computed = STORED[element], COMPUTED[element]
    writer = lowering.writer
    stage = writer.buffer(element, 1)
    head, inside = put.split("put({at}, ")
    new = rounded(f"static_cast<{computed}>({inside[:-1]})", element)
    write = f"{head}put(place, stored<{stored}>({new}), {stage.name});"

    def line(address: str, operands: Sequence[str]) -> str:
        names = [
            f"const {computed} {name} = {text}; "
            for name, text in zip("bc", operands, strict=False)
        ]
        read = (
            f"const int64_t place = {address}; const {computed} a = fetch<{stored}, true>(place); "
        )
        return read + "".join(names) + write

    if kind.shape is None:
        before = writer.variable(computed)
        text = line(lowering.scalar(pointer).text, [lowering.scalar(each).text for each in values])
        keep = lowering.scalar(mask).text if mask is not None else "true"
        writer.on("any")
        writer.line(f"{before} = 0; if ({keep}) {{ {text} {before} = a; }}")
        writer.pipe = "any"
        lowering.set(operation, Scalar(kind, before))
        return
    pointers = lowering.as_pointers(pointer)
    where = lowering.as_mask(mask) if mask is not None else everything(kind)
    sources = [lowering.stored(each) for each in values]
    target = lowering.new_buffer(kind)

    def element_line(at: str, loops: Sequence[str]) -> str:
        address = lowering.address_text(pointers, at, loops)
        text = line(address, [f"get({each.name}, {at})" for each in sources])
        keep = lowering.mask_text(where, at, loops)
        done = f"{{ {text} set({target.name}, {at}, a); }}"
        return f"if ({keep}) {done} else set({target.name}, {at}, 0);"

    lowering.each_element(kind, element_line)
    lowering.set(operation, Stored(kind, target))


def _is_used(lowering: Lowering, name: str, seen: set[str]) -> bool:
    """Whether something that stays depends on a value: a store, a branch, a result."""
    if name in seen:
        return False
    seen.add(name)
    for each in all_operations(lowering.function):
        if name not in each.operands:
            continue
        is_plain = each.name.startswith(("arith.", "math.")) or each.name in _PLAIN
        if not is_plain or any(_is_used(lowering, result, seen) for result in each.results):
            return True
    return False


_PLAIN = frozenset(
    f"tt.{name}"
    for name in ("bitcast", "broadcast", "expand_dims", "fp_to_fp", "reshape", "splat", "trans")
)
