"""Control flow: loops, branches, early returns, calls; what is carried from round to round."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from .lowering import Lowering, lowers
from .ttir import Block, Operation, Type
from .values import COMPUTED, Affine, Buffer, Pointers, Scalar, Stored, Value, element_bytes
from .writer import Writer

__all__ = ["lower_function"]


class _Carried:
    """A value that changes while a kernel runs: a variable, a moving base, or a tile."""

    def __init__(self, lowering: Lowering, kind: Type, first: Value | None, is_tile: bool) -> None:
        self.lowering, self.kind = lowering, kind
        self.form = first
        self.is_tile = is_tile
        writer = lowering.writer
        self.buffer: Buffer | None = None
        self.name = ""
        if kind.shape is None:
            ctype = "int64_t" if kind.is_pointer else COMPUTED[lowering.element(kind)]
            self.name = writer.variable(ctype)
        elif not is_tile:
            self.name = writer.variable("int64_t")
        else:
            self.buffer = lowering.new_buffer(kind)

    @property
    def value(self) -> Value:
        """What it is now."""
        if self.kind.shape is None:
            return Scalar(self.kind, self.name)
        if self.buffer is not None:
            return Stored(self.kind, self.buffer)
        if isinstance(self.form, Pointers):
            return replace(self.form, address=self.name)
        assert isinstance(self.form, Affine)
        return replace(self.form, base=self.name)

    def takes(self, value: Value) -> bool:
        """Whether a value differs in its base alone."""
        if self.kind.shape is None or self.is_tile:
            return True
        if isinstance(value, Pointers) and isinstance(self.form, Pointers):
            return (value.coefficients, value.buffers, value.places) == (
                self.form.coefficients,
                self.form.buffers,
                self.form.places,
            )
        if isinstance(value, Affine) and isinstance(self.form, Affine):
            return value.coefficients == self.form.coefficients
        return False

    def text(self, value: Value) -> str:
        """Return C++ of what the variable becomes."""
        if isinstance(value, Scalar):
            return value.text
        if isinstance(value, Pointers):
            return str(value.address)
        assert isinstance(value, Affine)
        return str(value.base)


def _moves(value: Value) -> bool:
    """Whether a value may change in its base alone."""
    if isinstance(value, Pointers):
        return True
    return isinstance(value, Affine) and value.type.element in ("i32", "i64")


def _copy(writer: Writer, target: Buffer, source: Buffer) -> None:
    words = (source.count * element_bytes(source.element) + 31) // 32 * 16
    names = ", ".join(f"{each.name}.ReinterpretCast<int16_t>()" for each in (target, source))
    writer.vector(f"DataCopy({names}, {words});")


def assign(lowering: Lowering, carried: Sequence[_Carried], values: Sequence[Value]) -> None:
    """Give carried values new ones, all at once."""
    writer = lowering.writer
    own = {each.name for each in carried if each.name}
    places = {each.buffer.name for each in carried if each.buffer is not None}
    later: list[tuple[str, str]] = []
    copies: list[tuple[Buffer, Buffer]] = []
    for each, value in zip(carried, values, strict=True):
        if each.buffer is None:
            text = each.text(value)
            if text in own and text != each.name and len(carried) > 1:
                kind = "int64_t" if not isinstance(value, Scalar) else None
                if kind is None:
                    kind = "int64_t" if each.kind.is_pointer else COMPUTED[each.kind.element]
                text = writer.variable(kind, text)
            later.append((each.name, text))
            continue
        source = lowering.stored(value)
        if source == each.buffer:
            continue
        start = source.name.partition(".")[0]
        if start in places:
            copy = writer.buffer(source.element, source.count)
            _copy(writer, copy, source)
            source = copy
        copies.append((each.buffer, source))
    for target, source in copies:
        _copy(writer, target, source)
    for name, text in later:
        if name != text:
            writer.line(f"{name} = {text};")


def _carry(lowering: Lowering, value: Value, kind: Type, *, is_tile: bool) -> _Carried:
    carried = _Carried(lowering, kind, value, is_tile or not _moves(value))
    if kind.shape is not None and carried.is_tile and not isinstance(value, Stored):
        carried.buffer = lowering.fresh(value)
    else:
        assign(lowering, [carried], [value])
    return carried


@lowers("scf.for")
def _for(lowering: Lowering, operation: Operation) -> None:
    given = lowering.given(operation)
    low, high, step = (lowering.scalar(each) for each in given[:3])
    (block,) = operation.regions[0]
    writer = lowering.writer
    tiles: set[int] = set()
    while True:
        state = writer.state()
        carried = [
            _carry(lowering, value, kind, is_tile=index in tiles)
            for index, (value, kind) in enumerate(
                zip(given[3:], operation.result_types, strict=True)
            )
        ]
        name, kind = block.arguments[0]
        counter = writer.variable(COMPUTED[lowering.element(kind)])
        lowering.values[name] = Scalar(kind, counter)
        for (argument, _), each in zip(block.arguments[1:], carried, strict=True):
            lowering.values[argument] = each.value
        with writer.loop():
            writer.line(
                f"for ({counter} = {low.text}; {counter} < {high.text};"
                f" {counter} += {step.text}) {{"
            )
            last = lowering.block(block)
            results = lowering.given(last)
            odd = _assigned_but(lowering, carried, results)
            writer.line("}")
        if not odd:
            break
        tiles |= odd
        writer.restore(state)
    lowering.set(operation, *(each.value for each in carried))


def _assigned_but(
    lowering: Lowering, carried: Sequence[_Carried], results: Sequence[Value]
) -> set[int]:
    """Carry results into the next round; return the indices of those that their form cannot."""
    odd = {
        index
        for index, (each, value) in enumerate(zip(carried, results, strict=True))
        if not each.takes(value)
    }
    if not odd:
        assign(lowering, carried, results)
    return odd


@lowers("scf.if")
def _if(lowering: Lowering, operation: Operation) -> None:
    writer = lowering.writer
    condition = lowering.scalar(lowering.given(operation)[0])
    forms: list[Value | None] = [None] * len(operation.results)
    if any(kind.shape is not None and _may_move(kind) for kind in operation.result_types):
        state = writer.state()
        found = []
        for region in operation.regions:
            with writer.scope():
                found.append(lowering.given(lowering.block(region[0])))
        writer.restore(state)
        for index, (one, other) in enumerate(zip(*found, strict=True)):
            if _moves(one) and _Carried(lowering, one.type, one, False).takes(other):
                forms[index] = one
    carried = [
        _Carried(lowering, kind, form, kind.shape is not None and form is None)
        for kind, form in zip(operation.result_types, forms, strict=True)
    ]
    _declare(carried)
    writer.line(f"if ({condition.text}) {{")
    for index, region in enumerate(operation.regions):
        if index:
            writer.line("} else {")
        if not region:
            continue
        with writer.scope():
            last = lowering.block(region[0])
            assign(lowering, carried, lowering.given(last))
    writer.line("}")
    writer.pipe = "any"
    lowering.set(operation, *(each.value for each in carried))


def _may_move(kind: Type) -> bool:
    return kind.is_pointer or kind.element in ("i32", "i64")


def _declare(carried: Sequence[_Carried]) -> None:
    """Tiles that branches write are theirs from before the branch on."""
    for each in carried:
        if each.buffer is not None:
            each.lowering.writer.line(f"// {each.buffer.name}")


@lowers("scf.while")
def _while(lowering: Lowering, operation: Operation) -> None:
    writer = lowering.writer
    given = lowering.given(operation)
    (before,), (after,) = operation.regions
    tiles: set[int] = set()
    while True:
        state = writer.state()
        carried = [
            _carry(lowering, value, value.type, is_tile=index in tiles)
            for index, value in enumerate(given)
        ]
        for (name, _), each in zip(before.arguments, carried, strict=True):
            lowering.values[name] = each.value
        with writer.loop():
            writer.line("while (true) {")
            condition = lowering.given(lowering.block(before))
            writer.line(f"if (!{lowering.scalar(condition[0]).text}) break;")
            for (name, _), value in zip(after.arguments, condition[1:], strict=True):
                lowering.values[name] = value
            results = lowering.given(lowering.block(after))
            odd = _assigned_but(lowering, carried, results)
            writer.line("}")
        if not odd:
            break
        tiles |= odd
        writer.restore(state)
    lowering.set(operation, *condition[1:])


@lowers("tt.call")
def _call(lowering: Lowering, operation: Operation) -> None:
    name = operation.attributes["callee"].lstrip("@").strip('"')
    function = lowering.module.functions[name]
    if name in lowering.calls:
        raise lowering.refuse("a function that calls itself")
    outer, outer_function = lowering.values, lowering.function
    given = lowering.given(operation)
    lowering.calls.append(name)
    lowering.function = function
    blocks = function.regions[0]
    lowering.values = {
        argument: value for (argument, _), value in zip(blocks[0].arguments, given, strict=True)
    }
    try:
        results = lower_function(lowering, blocks, operation.result_types)
    finally:
        lowering.values, lowering.function = outer, outer_function
        lowering.calls.pop()
    lowering.set(operation, *results)


def _reached(blocks: Sequence[Block]) -> list[Block]:
    labels = {block.label: block for block in blocks}
    seen = {blocks[0].label}
    waiting = [blocks[0]]
    while waiting:
        for label in waiting.pop().operations[-1].successors:
            if label not in seen:
                seen.add(label)
                waiting.append(labels[label])
    return [block for block in blocks if block.label in seen]


def lower_function(
    lowering: Lowering, blocks: Sequence[Block], kinds: Sequence[Type] | None
) -> list[Value]:
    """Lower a function's blocks in place, and return what it returns; None: the kernel itself."""
    blocks = _reached(blocks)
    writer = lowering.writer
    if len(blocks) == 1 and kinds is not None:
        return lowering.given(lowering.block(blocks[0]))
    names = {block.label: writer.name("L") for block in blocks}
    end = writer.name("L")
    carried = {
        block.label: [
            _Carried(lowering, kind, None, kind.shape is not None) for _, kind in block.arguments
        ]
        for block in blocks[1:]
    }
    results = [_Carried(lowering, kind, None, kind.shape is not None) for kind in kinds or ()]
    for group in (*carried.values(), results):
        _declare(group)
    order = [block.label for block in blocks]
    for index, block in enumerate(blocks):
        if index:
            writer.line(f"{names[block.label]}:;")
            for (name, _), each in zip(block.arguments, carried[block.label], strict=True):
                lowering.values[name] = each.value
        with writer.scope():
            last = lowering.block(block)
            if any(order.index(label) <= index for label in last.successors):
                raise lowering.refuse("a jump backwards")
            if last.name == "tt.return":
                if kinds is None:
                    writer.line("return;")
                else:
                    assign(lowering, results, lowering.given(last))
                    writer.line(f"goto {end};")
            elif last.name == "cf.br":
                label = last.successors[0]
                assign(lowering, carried[label], lowering.given(last))
                writer.line(f"goto {names[label]};")
            elif last.name == "cf.cond_br":
                _branch(lowering, last, names, carried)
            else:
                raise lowering.refuse(f"{last.name} has no kernel here")
    if kinds is not None:
        writer.line(f"{end}:;")
        writer.pipe = "any"
    return [each.value for each in results]


def _branch(
    lowering: Lowering,
    last: Operation,
    names: dict[str, str],
    carried: dict[str, list[_Carried]],
) -> None:
    writer = lowering.writer
    given = lowering.given(last)
    condition = lowering.scalar(given[0])
    first = last.integers("operandSegmentSizes")[1]
    parts = (given[1 : 1 + first], given[1 + first :])
    writer.line(f"if ({condition.text}) {{")
    for index, (label, values) in enumerate(zip(last.successors, parts, strict=True)):
        if index:
            writer.line("} else {")
        with writer.scope():
            assign(lowering, carried[label], values)
            writer.line(f"goto {names[label]};")
    writer.line("}")
