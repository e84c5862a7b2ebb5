"""The statements of a vector kernel: one for each step, with what it reads and writes by name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from opkit.dtypes import find_dtype

from ...ir import Graph, Tensor
from ..text import Text, special_number, upper
from .slots import ONE_CAPACITY, ROW_CAPACITY, Place, Plan
from .steps import Field, Number, Operand, Program, Scalar, Section, Step, Value
from .tiling import TilingLayout

__all__ = ["StatementWriter", "cpp_type", "literal", "slots", "times"]

_CPP = {
    "float32": "float",
    "float16": "half",
    "bfloat16": "bfloat16_t",
    "int32": "int32_t",
    "mask": "uint8_t",
    "bool": "uint8_t",
}
_SPELLED = {"float": "", "int32_t": "Whole", "half": "Half", "bfloat16_t": "Brain"}


def cpp_type(kind: str) -> str:
    """Return the Ascend C type of a kind of value."""
    if kind in _CPP:
        return _CPP[kind]
    row = find_dtype(kind)
    assert row is not None, kind
    return row.kernel


def literal(value: float | int, kind: str) -> str:
    """Return a number as C++ spells it."""
    if kind not in ("float32", "float16"):
        # The least int32 has no literal: 2147483648, of which it is the negative, is a long.
        text = "INT32_MIN" if value == -(1 << 31) else str(int(value))
        return f"static_cast<int16_t>({text})" if kind == "int16" else text
    import numpy as np

    with np.errstate(over="ignore"):
        short = np.float32(value)
    special = special_number(float(short))
    if special is not None:
        return special
    text = str(short)
    mantissa, _, exponent = text.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}e{exponent}f" if exponent else f"{mantissa}f"


class StatementWriter:
    """What the writers of sections share: where values lie, and what a step is as text."""

    graph: Graph
    plan: Plan
    program: Program
    layout: TilingLayout
    out: Text
    stems: dict[str, str]
    down: bool
    column_room: str
    known_uses: dict[tuple[int, ...], Counter[tuple[Place, str]]]
    """Uses in the sections so far, by what they compute."""

    @property
    def length(self) -> str:
        """The elements of a part of a row, by name."""
        raise NotImplementedError

    @property
    def input_segments(self) -> list[tuple[str, int, bool]]:
        tiles = [(name, size, False) for name, size in self.plan.input_bytes]
        dtypes = self.graph.tensors
        return tiles + [(n, _size(dtypes[n].dtype), True) for n in self.plan.row_inputs]

    @property
    def output_segments(self) -> list[tuple[str, int, bool]]:
        tiles = [(name, size, False) for name, size in self.plan.output_bytes]
        dtypes = self.graph.tensors
        return tiles + [(n, _size(dtypes[n].dtype), True) for n in self.plan.row_outputs]

    def type_of(self, tensor: Tensor) -> str:
        """Return the type of a tensor's elements in memory."""
        return cpp_type(tensor.dtype)

    def type_of_value(self, value: Value) -> str:
        """Return the type of a value's elements."""
        return cpp_type(value.kind)

    def bytes_of(self, segments: Sequence[tuple[str, int, bool]]) -> str:
        """Return the bytes that segments take for each element of a tile; empty for none."""
        total = sum(size for _, size, _ in segments)
        return str(total) if total else ""

    def queue_bytes(self, segments: Sequence[tuple[str, int, bool]]) -> str:
        """Return the bytes of a queue's buffer."""
        per_element = self.bytes_of([each for each in segments if not each[2]])
        fixed = 4 * ROW_CAPACITY * sum(is_row for _, _, is_row in segments)
        parts = [f"{per_element} * tiling.tileLength"] if per_element else []
        parts += [str(fixed)] if fixed else []
        return " + ".join(parts)

    def segment(self, segments: Sequence[tuple[str, int, bool]], name: str) -> str:
        """Return where a tensor begins in its queue's buffer, in bytes."""
        ahead = segments[: [each for each, _, _ in segments].index(name)]
        return self.queue_bytes(ahead) or "0"

    def declare(self, section: Section) -> None:
        """Name the slots that a section uses, once for each type that they hold."""
        names: dict[str, Value] = {}
        for value in self.declared(section):
            names.setdefault(self.named(value, section), value)
        for name, value in names.items():
            address = self.address(value)
            if name != address:
                self.out(f"const LocalTensor<{self.type_of_value(value)}> {name} = {address};")

    def declared(self, section: Section) -> list[Value]:
        """Return the values that a section's instructions read and write."""
        found: list[Value] = []
        for step in section.steps:
            if step.operation != "Read":
                found += [v for v in (step.target, *step.sources) if isinstance(v, Value)]
        return found

    def named(self, value: Value, section: Section) -> str:
        place = self.plan.places[value.number]
        kind = self.type_of_value(value)
        suffix = _SPELLED.get(kind, upper(value.kind))
        if place.area in ("input", "output"):
            tensor = self.segment_name(place)
            stem = self.stems[tensor]
            own = self.type_of(self.graph.tensors[tensor]) == kind
            return f"{stem}Local" if own else f"{stem}{suffix or 'Float'}"
        counts = self.plan.counts
        if place.area == "mask":
            return f"mask{place.index}" if counts["mask"] > 1 else "masks"
        is_only = place.area == "scratch" and counts["scratch"] == 1 and not suffix
        is_once = place.area == "row" and self.uses(section)[place, kind] == 1
        if section.name == "prepare" or place.area in ("one", "column") or is_only or is_once:
            return self.address(value)
        if value.kind == "mask":
            return f"{place.area}{place.index}Mask"
        return f"{place.area}{place.index}{suffix}"

    def uses(self, section: Section) -> Counter[tuple[Place, str]]:
        """Return how many times the instructions of a section say a slot, as which type."""
        key = tuple(step.target.number for step in section.steps)
        if key not in self.known_uses:
            self.known_uses[key] = Counter(
                (self.plan.places[each.number], self.type_of_value(each))
                for step in section.steps
                if step.operation != "Read" and step.target.number not in self.plan.constants
                for each in (step.target, *step.sources)
                if isinstance(each, Value)
            )
        return self.known_uses[key]

    def segment_name(self, place: Place) -> str:
        for name, _, _ in self.input_segments:
            if self.plan_segment("in", name) == place:
                return name
        for name, _, _ in self.output_segments:
            if self.plan_segment("out", name) == place:
                return name
        raise AssertionError(place)

    def plan_segment(self, way: str, name: str) -> Place | None:
        if way == "out":
            number = next(v.number for t, v in self.program.outputs if t.name == name)
            return self.plan.places[number]
        for section in self.program.sections:
            for step in section.steps:
                if step.operation == "Load" and step.mode == name:
                    return self.plan.places[step.target.number]
        return None

    def address(self, value: Value) -> str:
        place = self.plan.places[value.number]
        kind = self.type_of_value(value)
        if place.area in ("input", "output"):
            name = self.segment_name(place)
            segments = self.input_segments if place.area == "input" else self.output_segments
            at = self.segment(segments, name)
            base = place.area if at == "0" else f"{place.area}[{at}]"
            return self.seen_as(base, kind)
        if place.area == "mask":
            return _at("masks", place.index, "MaskBytes()")
        at = self.slot(place)
        return at if kind == "float" else self.seen_as(at, kind)

    def slot(self, place: Place) -> str:
        """Return a slot of floats."""
        size = {
            "scratch": "SlotLength()",
            "row": str(ROW_CAPACITY),
            "one": str(ONE_CAPACITY),
            "column": self.column_room,
        }[place.area]
        array = "scratch" if place.area == "scratch" else slots(place.area)
        return _at(array, place.index, size)

    def seen_as(self, tensor: str, kind: str) -> str:
        """Return a local tensor as one of another type."""
        return f"{tensor}.ReinterpretCast<{kind}>()"

    def count(self, value: Value, section: Section) -> str:
        if value.space == "column" and section.name == "prepare":
            # What was just loaded ends there; behind it scratch holds nothing yet.
            return "columns"
        return {"tile": "count", "row": "rows", "one": "1", "column": "stride"}[value.space]

    def operand(self, operand: Operand, kind: str, section: Section) -> str:
        if isinstance(operand, Value):
            return self.named(operand, section)
        if isinstance(operand, Number):
            return literal(operand.value, kind)
        if isinstance(operand, Field):
            return f"tiling.{self.layout.field_of[operand.tensor]}"
        if isinstance(operand, Scalar):
            return f"scalar{operand.value.number}"
        inner = self.operand(operand.operand, kind, section)
        return f"-{inner}" if operand.how == "-" else f"1.0f / {inner}"

    def step(self, step: Step, section: Section) -> None:
        out, target = self.out, step.target
        if target.number in self.plan.constants:
            return
        name = step.operation
        if name == "Read":
            kind = self.type_of_value(target)
            read = f"ReadScalar<{kind}>({self.named(target, section)})"
            out(f"scalar{target.number} = {read};", step.location)
            return
        count = self.count(target, section)
        kinds = target.kind
        if kinds == "mask":
            kinds = next((s.kind for s in step.sources if isinstance(s, Value)), "float32")
        sources = [self.operand(source, kinds, section) for source in step.sources]
        to = self.named(target, section)
        whole = count if target.space == "tile" else f"RoundUp({count}, 64)"
        if name in _PLAIN:
            text = f"{name}({', '.join([to, *sources, count])});"
        elif name == "Cast":
            text = f"Cast({to}, {sources[0]}, RoundMode::{step.mode}, {count});"
        elif name in ("Compare", "CompareScalar"):
            text = f"{name}({to}, {sources[0]}, {sources[1]}, CMPMODE::{step.mode}, {whole});"
        elif name == "Selects":
            text = f"Select({to}, {', '.join(sources)}, SELMODE::VSEL_TENSOR_SCALAR_MODE, {count});"
        elif name == "Select":
            sources = [sources[0], *(self.as_float(s, step) for s in sources[1:])]
            to = self.as_float(to, step)
            text = f"Select({to}, {', '.join(sources)}, SELMODE::VSEL_TENSOR_TENSOR_MODE, {count});"
        elif name.startswith("Mask"):
            text = f"{name}({', '.join([to, *sources, whole])});"
        elif name.startswith("Bits"):
            text = f"{name}({', '.join([to, *sources, count])});"
        elif name in ("ShiftRightUnsigned", "ShiftLeftUnsigned"):
            views = [f"{each}.ReinterpretCast<uint32_t>()" for each in (to, sources[0])]
            text = (
                f"{name.removesuffix('Unsigned')}({views[0]}, {views[1]},"
                f" static_cast<uint32_t>({sources[1]}), {count});"
            )
        elif name == "Accumulate":
            # Not what comparisons read beyond a short tile: a longer one has left its own there.
            filled = "rows * stride" if self.down else self.length
            text = f"Accumulate{step.mode}({to}, {sources[0]}, {filled}, isFirst);"
        elif name == "Fold":
            text = f"{step.mode}Part({to}, {sources[0]}, work);"
            if self.down:
                text = f"{step.mode}Down({to}, {sources[0]});"
        elif name == "Reduce":
            text = f"{step.mode}Rows({to}, {sources[0]}, work, rows);"
        elif name == "Fill":
            source = step.sources[0]
            assert isinstance(source, Value)
            kind = "Row" if source.space == "row" else "Column"
            text = f"Fill{kind}({to}, {sources[0]}, rows);"
        elif name.endswith(("Row", "Column")):
            text = f"{name}({', '.join([to, *sources])}, rows);"
        else:
            raise AssertionError(f"no Ascend C for {name}")
        out(text, step.location)

    def as_float(self, name: str, step: Step) -> str:
        return name if step.target.kind == "float32" else f"{name}.ReinterpretCast<float>()"


_PLAIN = frozenset(
    {"Add", "Sub", "Mul", "Div", "Max", "Min", "Adds", "Muls", "Maxs", "Mins"}
    | {"Exp", "Ln", "Abs", "Sqrt", "Duplicate", "ShiftLeft", "ShiftRight"}
)


def times(count: int, size: str) -> str:
    """Return so many times a size as C++."""
    return size if count == 1 else f"{count} * {size}"


def _at(array: str, index: int, size: str) -> str:
    """Return the part of an array that begins at so many times a size."""
    return f"{array}[{times(index, size)}]" if index else array


def slots(area: str) -> str:
    """Return the member that holds an area's slots."""
    return "blocks" if area == "block" else f"{area}Slots"


def _size(dtype: str) -> int:
    row = find_dtype(dtype)
    assert row is not None
    return row.size_bytes
