"""A group of nodes to the steps of one kernel."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TypeGuard

from opkit.dtypes import find_dtype

from ...ir import (
    HALVES,
    GraphError,
    Location,
    Node,
    Tensor,
    charge,
    holds_all,
    is_floating,
    limits_of,
)
from ...ops import OPERATORS
from ...passes import Domain, FusedGraph, Group, Space
from .steps import Derived, Field, Number, Operand, Program, Scalar, Section, Step, Value

__all__ = ["lower_group"]

_MIRRORED = {"LT": "GT", "LE": "GE", "GT": "LT", "GE": "LE", "EQ": "EQ", "NE": "NE"}
_SCALAR_FORM = {"Add": "Adds", "Mul": "Muls", "Max": "Maxs", "Min": "Mins"}
_PARTS: Mapping[Space, Space] = {"tile": "tile", "column": "tile", "row": "one", "one": "one"}
_DEEPEST = 64
"""Calls of `value` within one another, behind which sources come first: Python's stack is finite,
and programs are of any length."""


def lower_group(fused: FusedGraph, group: Group, domain: Domain, schedule: str) -> Program:
    """Return the steps of a group's kernel.

    Args:
        fused: the whole program.
        group: one of its vector groups.
        domain: the group's loops.
        schedule: `rows`, `parts`, `down` or `blocks`.

    Raises:
        GraphError: an operator has no instructions for its data types; at the user's line.
    """
    return _Lowering(fused, group, domain, schedule).run()


class _Lowering:
    def __init__(self, fused: FusedGraph, group: Group, domain: Domain, schedule: str) -> None:
        self.fused = fused
        self.graph = fused.graph
        self.group = group
        self.domain = domain
        self.schedule = schedule
        self.uniform = fused.uniform
        self.nodes = {node.output.name: node for node in group.nodes}
        # In the program's order: combinations of data types compute them in another one.
        places = {tensor: at for at, (_, tensor) in enumerate(fused.graph.outputs)}
        outputs = fused.outputs_of(group)
        self.outputs = sorted(outputs, key=lambda name: places.get(name, len(places)))
        self.is_short = self.stays_short()
        """All is int16, and its instructions take that."""
        self.numbers = 0
        self.kept: dict[str, Value] = {}
        """Values that outlive a pass: of space `one` or `column`, from `prepare` and `finish`."""
        self.known: dict[str, Value] = {}
        """Values of the pass under way."""
        self.nesting = 0
        """Calls of `value` within one another."""
        self.casts: dict[tuple[int, str, str], Value] = {}
        self.scalars: dict[int, Scalar] = {}
        self.prepare: list[Step] = []
        self.steps: list[Step] = []
        self.before: list[Step] = []
        """Those that come after a pass, of the passes so far."""
        self.location: Location | None = None
        self.results: set[int] = set()
        self.loaded: dict[str, Tensor] = {}
        self.kept_space: Space = "column" if schedule in ("down", "blocks") else "one"
        """The space of what a reduction in passes gives."""

    # The order of work

    def run(self) -> Program:
        stored: list[tuple[Tensor, Value]] = []
        sections: list[Section] = []
        if self.schedule == "rows":
            for name in self.outputs:
                tensor = self.graph.tensors[name]
                stored.append((tensor, self.store(tensor)))
            sections = [Section("prepare", tuple(self.prepare)), Section("tile", tuple(self.steps))]
        else:
            sections, stored = self.passes()
        return Program(
            self.schedule, self.domain, tuple(sections), tuple(self.loaded.values()), tuple(stored)
        )

    def passes(self) -> tuple[list[Section], list[tuple[Tensor, Value]]]:
        """Rows in parts, or columns in parts: a pass over the parts for each generation of
        reductions, and one for the
        rest."""
        generations = self.generations()
        last = max([0, *generations.values()])
        stored: list[tuple[Tensor, Value]] = []
        sections: list[Section] = []
        for generation in range(last + 1):
            self.known, self.casts = {}, {}
            self.steps = []
            folds = [
                node
                for node in self.group.nodes
                if OPERATORS[node.operator].kind == "reduction"
                and generations[node.output.name] == generation + 1
            ]
            accumulators = [(node, self.accumulate(node)) for node in folds]
            if generation == last:
                for name in self.outputs:
                    if self.space(name) == "tile":
                        tensor = self.graph.tensors[name]
                        stored.append((tensor, self.store(tensor)))
            sections.append(Section("tile", tuple(self.steps)))
            self.steps = []
            for node, accumulator in accumulators:
                self.location = node.location
                mode = OPERATORS[node.operator].vector.partition(":")[2]
                total = self.emit("Fold", self.kept_space, "float32", (accumulator,), mode=mode)
                kind = self.kind_of(node.output)
                self.kept[node.output.name] = self.convert(total, kind)
            if generation == last:
                for name in self.outputs:
                    if self.space(name) == self.kept_space:
                        tensor = self.graph.tensors[name]
                        stored.append((tensor, self.store(tensor)))
            else:
                # What the next pass reads as one number a row is computed between the passes.
                for node in self.group.nodes:
                    is_next = generations[node.output.name] == generation + 1
                    if is_next and self.space(node.output.name) == self.kept_space:
                        self.value(node.output.name)
            sections.append(Section("finish", tuple(self.steps)))
            self.before += self.steps
        return [Section("prepare", tuple(self.prepare)), *sections], stored

    def generations(self) -> dict[str, int]:
        """Return how many reductions each tensor waits for, one after another."""
        found: dict[str, int] = {}
        for node in self.group.nodes:
            own = max([0, *(found.get(name, 0) for name in node.inputs)])
            if OPERATORS[node.operator].kind == "reduction":
                own += 1
            found[node.output.name] = own
        return found

    def accumulate(self, node: Node) -> Value:
        self.location = node.location
        value = self.tile_value(node.inputs[0], "float32")
        mode = OPERATORS[node.operator].vector.partition(":")[2]
        return self.emit("Accumulate", "tile", "float32", (value,), mode=mode)

    def stays_short(self) -> bool:
        graph = self.graph
        for node in self.group.nodes:
            if node.operator not in _SHORT or node.output.dtype != "int16":
                return False
            for name in node.inputs:
                if name in self.uniform:
                    made = graph.producers[name]
                    number = made.settings["value"] if made.operator == "constant" else None
                    if not isinstance(number, int | float) or not -32768 <= number <= 32767:
                        return False
                elif graph.tensors[name].dtype != "int16":
                    return False
        return True

    # Spaces and kinds

    def space(self, name: str) -> Space:
        own = self.domain.space(name)
        return _PARTS[own] if self.schedule == "parts" else own

    def kind_of(self, tensor: Tensor) -> str:
        if is_floating(tensor.dtype) and tensor.dtype != "float64":
            return "float32"
        if tensor.dtype == "bool":
            return "mask"
        if tensor.dtype == "int16" and self.is_short:
            return "int16"
        if tensor.dtype in ("int8", "uint8", "int16", "int32") or self.is_held_narrow(tensor):
            return "int32"
        raise GraphError(
            f'"{tensor.name}" is {tensor.dtype}, which the vector unit does not compute',
            location=self.location,
            help=(
                "cast it on the host: there are float16, bfloat16, float32, int8,"
                " uint8, int16, int32, bool"
            ),
        )

    def is_held_narrow(self, tensor: Tensor) -> bool:
        """Whether a tensor of int64 holds places and counts: it is read as int32 only, or written
        from that."""
        if tensor.dtype != "int64":
            return False
        made = self.graph.producers.get(tensor.name)
        if made is not None:
            return made.operator == "cast" and self.graph.tensors[made.inputs[0]].dtype in _NARROW
        users = self.graph.users[tensor.name]
        return all(node.operator == "cast" and node.output.dtype == "int32" for node in users)

    def is_hoisted(self, space: Space) -> bool:
        return space in ("one", "column")

    # Values

    def value(self, name: str) -> Value:
        """Return a tensor's value in its computing kind, computed once a section."""
        found = self.kept.get(name) or self.known.get(name)
        if found is not None:
            return found
        self.nesting += 1
        if self.nesting % _DEEPEST == 0:
            for each in self.below(name):
                self.value(each)
        space = self.space(name)
        node = self.nodes.get(name)
        before = self.location
        self.location = node.location if node is not None else before
        hoist = self.is_hoisted(space) and not (self.schedule != "rows" and self.depends(name))
        saved, self.steps = self.steps, self.prepare if hoist else self.steps
        if node is None:
            value = self.loaded_value(name)
        else:
            value = self.computed(node, space)
            if self.is_read_whole(node):
                value = self.wrapped(value, node.output.dtype)
        self.steps = saved
        (self.kept if self.is_hoisted(space) else self.known)[name] = value
        self.location = before
        self.nesting -= 1
        return value

    def below(self, name: str) -> list[str]:
        """Return what a tensor is computed from element by element and has no value yet, each after
        its own sources: the order in which the calls of `value` would come to them."""
        order: list[str] = []
        seen: set[str] = set()
        stack = [(name, False)]
        while stack:
            each, is_done = stack.pop()
            if is_done:
                order.append(each)
                continue
            node = self.nodes.get(each)
            has_value = each in seen or each in self.kept or each in self.known
            if node is None or has_value or each in self.uniform:
                continue
            if OPERATORS[node.operator].kind == "reduction":
                continue
            seen.add(each)
            stack.append((each, True))
            stack += [(source, False) for source in reversed(node.inputs)]
        return order[:-1]

    def depends(self, name: str) -> bool:
        """Whether a tensor waits for a reduction of this kernel."""
        node = self.nodes.get(name)
        if node is None:
            return False
        if OPERATORS[node.operator].kind == "reduction":
            return True
        return any(self.depends(each) for each in node.inputs)

    def loaded_value(self, name: str) -> Value:
        tensor = self.graph.tensors[name]
        self.loaded.setdefault(name, tensor)
        kind = self.kind_of(tensor)
        raw = self.emit("Load", self.space(name), tensor.dtype, (), mode=name)
        return self.convert(raw, kind)

    def convert(self, value: Value, kind: str) -> Value:
        """Return a value in another kind."""
        if value.kind == kind:
            return value
        key = (value.number, kind, "")
        if key in self.casts:
            return self.casts[key]
        # What comes before all tiles may ask for it later.
        saved, self.steps = self.steps, self.home(value)
        for step, mode in _CASTS[(value.kind, kind)]:
            if step == "mask":
                value = self.emit(
                    "CompareScalar", value.space, "mask", (value, Number(0)), mode="NE"
                )
            elif step == "number":
                value = self.numbers_of(value, mode)
            else:
                value = self.emit("Cast", value.space, step, (value,), mode=mode)
        self.steps = saved
        self.casts[key] = value
        return value

    def home(self, value: Value) -> list[Step]:
        """Return the steps among which a value's conversions belong."""
        return self.prepare if any(step.target == value for step in self.prepare) else self.steps

    def numbers_of(self, mask: Value, kind: str) -> Value:
        """Return 1 where a mask holds, 0 elsewhere."""
        ones = self.emit("Duplicate", mask.space, kind, (Number(1),))
        return self.emit("Selects", mask.space, kind, (mask, ones, Number(0)))

    def operand(self, name: str, kind: str, space: Space) -> Operand:
        """Return an operand of an instruction over `space`: a value, or a number."""
        if name in self.uniform:
            node = self.graph.producers[name]
            # A mask is made of numbers that are 0 or not: of float32, as `spread` compares them.
            is_whole = kind not in ("float32", "mask")
            if node.operator == "constant":
                number = node.settings["value"]
                return Number(int(number) if is_whole else float(number))
            return Field(name, is_whole)
        value = self.convert(self.value(name), kind)
        if value.space == "one" and space != "one" and kind != "mask":
            return self.read(value)
        return value

    def read(self, value: Value) -> Scalar:
        if value.number not in self.scalars:
            self.scalars[value.number] = Scalar(value)
            self.home(value).append(Step("Read", value, (), location=self.location))
        return self.scalars[value.number]

    def tile_value(self, name: str, kind: str) -> Value:
        """Return a tensor as a whole tile, filled out where it has fewer elements."""
        return self.spread(self.operand(name, kind, "tile"), "tile", kind)

    def spread(self, operand: Operand, space: Space, kind: str) -> Value:
        if isinstance(operand, Value) and operand.space == space:
            return operand
        if kind == "mask":
            if isinstance(operand, Value):
                operand = self.convert(operand, "float32")
            numbers = self.spread(operand, space, "float32")
            return self.emit("CompareScalar", space, "mask", (numbers, Number(0)), mode="NE")
        if not isinstance(operand, Value):
            return self.emit("Duplicate", space, kind, (operand,))
        if operand.space == "one":
            return self.emit("Duplicate", space, kind, (self.read(operand),))
        return self.emit("Fill", space, kind, (operand,))

    def emit(
        self,
        operation: str,
        space: Space,
        kind: str,
        sources: Sequence[Operand],
        *,
        mode: str = "",
    ) -> Value:
        charge(self.location)
        target = Value(self.numbers, space, kind)
        self.numbers += 1
        self.steps.append(Step(operation, target, tuple(sources), mode, self.location))
        return target

    # Operators

    def computed(self, node: Node, space: Space) -> Value:
        row = OPERATORS[node.operator]
        kind = self.kind_of(node.output)
        if row.kind == "reduction":
            return self.reduction(node, row.vector.partition(":")[2])
        if node.operator == "broadcast_to":
            return self.spread(self.operand(node.inputs[0], kind, space), space, kind)
        name, _, mode = row.vector.partition(":")
        if name in _BINARY:
            return self.binary(name, node.inputs, space, self.compute_kind(node, kind))
        method: Callable[[Node, Space, str, str], Value] | None = getattr(
            self, f"on_{name.lower()}", None
        )
        if method is not None:
            return method(node, space, kind, mode)
        source = self.spread(self.operand(node.inputs[0], "float32", space), space, "float32")
        return self.emit(name, space, "float32", (source,))

    def compute_kind(self, node: Node, kind: str) -> str:
        return "float32" if node.operator == "div" else kind

    def binary(self, name: str, inputs: Sequence[str], space: Space, kind: str) -> Value:
        if kind == "mask":
            raise GraphError(
                "truth values do not add or multiply",
                location=self.location,
                help="use logical_and and logical_or",
            )
        a, b = (self.operand(each, kind, space) for each in inputs)
        return self.combine(name, a, b, space, kind)

    def combine(self, name: str, a: Operand, b: Operand, space: Space, kind: str) -> Value:
        """Return a binary instruction's result for operands of any spaces."""
        if not isinstance(a, Value) and not isinstance(b, Value):
            a = self.spread(a, space, kind)
        if name == "Sub":
            if not isinstance(b, Value):
                return self.emit("Adds", space, kind, (self.spread(a, space, kind), _negated(b)))
            if not isinstance(a, Value):
                minus = self.emit("Muls", b.space, kind, (b, Number(-1)))
                return self.combine("Add", minus, a, space, kind)
            if a.space == b.space == space:
                return self.emit("Sub", space, kind, (a, b))
            if a.space == space and b.space in ("row", "column"):
                return self.emit(f"Sub{b.space.capitalize()}", space, kind, (a, b))
            minus = self.emit("Muls", b.space, kind, (b, Number(-1)))
            return self.combine("Add", a, minus, space, kind)
        if name == "Div":
            return self.quotient(a, b, space, kind)
        if not isinstance(a, Value):
            a, b = b, a
        assert isinstance(a, Value)
        if not isinstance(b, Value):
            if a.space != space:
                a = self.spread(a, space, kind)
            return self.emit(_SCALAR_FORM[name], space, kind, (a, b))
        if a.space != space:
            a, b = b, a
        if a.space != space:
            # A row by a column: neither fills the tile by itself.
            row, column = (a, b) if a.space == "row" else (b, a)
            a, b = self.emit("Fill", space, kind, (column,)), row
        if b.space == space:
            return self.emit(name, space, kind, (a, b))
        return self.emit(f"{name}{'Row' if b.space == 'row' else 'Column'}", space, kind, (a, b))

    def quotient(self, a: Operand, b: Operand, space: Space, kind: str) -> Value:
        if not isinstance(b, Value):
            return self.emit("Muls", space, kind, (self.spread(a, space, kind), _inverse(b)))
        if b.space == space:
            a = self.spread(a, space, kind)
            return self.emit("Div", space, kind, (a, b))
        ones = self.emit("Duplicate", b.space, kind, (Number(1.0),))
        inverse = self.emit("Div", b.space, kind, (ones, b))
        return self.combine("Mul", a, inverse, space, kind)

    def reduction(self, node: Node, mode: str) -> Value:
        (source,) = self.graph.inputs_of(node)
        value = self.spread(self.operand(source.name, "float32", "tile"), "tile", "float32")
        space = self.space(node.output.name)
        total = self.emit("Reduce", space, "float32", (value,), mode=mode)
        return self.convert(total, self.kind_of(node.output))

    def on_neg(self, node: Node, space: Space, kind: str, mode: str) -> Value:
        source = self.spread(self.operand(node.inputs[0], kind, space), space, kind)
        return self.emit("Muls", space, kind, (source, Number(-1)))

    def on_abs(self, node: Node, space: Space, kind: str, mode: str) -> Value:
        source = self.spread(self.operand(node.inputs[0], kind, space), space, kind)
        if kind == "float32":
            return self.emit("Abs", space, kind, (source,))
        minus = self.emit("Muls", space, kind, (source, Number(-1)))
        return self.emit("Max", space, kind, (source, minus))

    def on_round(self, node: Node, space: Space, kind: str, mode: str) -> Value:
        source = self.spread(self.operand(node.inputs[0], "float32", space), space, "float32")
        return self.emit("Cast", space, "float32", (source,), mode=mode)

    def on_cast(self, node: Node, space: Space, kind: str, mode: str) -> Value:
        (name,) = node.inputs
        source = self.graph.tensors[name]
        own = self.kind_of(source)
        value = self.spread(self.operand(name, own, space), space, own)
        wanted = node.output.dtype
        if wanted in HALVES and (source.dtype == wanted or not holds_all(wanted, source.dtype)):
            # Rounded here: what reads it widens it again.
            return self.convert(self.convert(value, "float32"), wanted)
        result = self.convert(value, kind)
        if kind != "int32" or own == "mask" or node.output.dtype in (*_WIDE, source.dtype):
            return result
        if own == "int32":
            return self.wrapped(result, node.output.dtype)
        limits = limits_of(node.output.dtype)
        assert limits is not None
        for name, limit in zip(("Maxs", "Mins"), limits, strict=True):
            result = self.emit(name, space, kind, (result, Number(limit)))
        return result

    def on_compare(self, node: Node, space: Space, kind: str, mode: str) -> Value:
        kinds = {self.kind_of(self.graph.tensors[name]) for name in node.inputs}
        if kinds == {"mask"}:
            kinds = {"float32"}
        common = "float32" if "float32" in kinds else "int32"
        a, b = (self.operand(each, common, space) for each in node.inputs)
        if not isinstance(a, Value):
            a, b, mode = b, a, _MIRRORED[mode]
        a = self.spread(a, space, common)
        if common == "int32":
            return self.compare_integers(a, self.spread(b, space, common), mode)
        if isinstance(b, Value):
            return self.emit(
                "Compare", space, "mask", (a, self.spread(b, space, common)), mode=mode
            )
        return self.emit("CompareScalar", space, "mask", (a, b), mode=mode)

    def compare_integers(self, a: Value, b: Value, mode: str) -> Value:
        # The unit compares int32 for equality only: a <= b is min(a, b) == a.
        space = a.space
        if mode in ("LT", "GT"):
            other = self.compare_integers(a, b, "GE" if mode == "LT" else "LE")
            return self.emit("MaskNot", space, "mask", (other,))
        if mode == "NE":
            return self.emit("MaskNot", space, "mask", (self.compare_integers(a, b, "EQ"),))
        if mode in ("LE", "GE"):
            b = self.emit("Min" if mode == "LE" else "Max", space, "int32", (a, b))
        return self.emit("Compare", space, "mask", (a, b), mode="EQ")

    def masks(self, node: Node, space: Space) -> list[Value]:
        return [
            self.spread(self.operand(name, "mask", space), space, "mask") for name in node.inputs
        ]

    def on_maskand(self, node: Node, space: Space, kind: str, mode: str) -> Value:
        return self.emit("MaskAnd", space, "mask", self.masks(node, space))

    def on_maskor(self, node: Node, space: Space, kind: str, mode: str) -> Value:
        return self.emit("MaskOr", space, "mask", self.masks(node, space))

    def on_masknot(self, node: Node, space: Space, kind: str, mode: str) -> Value:
        return self.emit("MaskNot", space, "mask", self.masks(node, space))

    def on_and(self, node: Node, space: Space, kind: str, mode: str) -> Value:
        return self.bits("And", node, space, kind)

    def on_or(self, node: Node, space: Space, kind: str, mode: str) -> Value:
        return self.bits("Or", node, space, kind)

    def on_not(self, node: Node, space: Space, kind: str, mode: str) -> Value:
        return self.bits("Not", node, space, kind)

    def bits(self, name: str, node: Node, space: Space, kind: str) -> Value:
        if kind == "float32":
            raise GraphError("bits of fractions do not combine", location=self.location)
        if kind == "mask":
            return self.emit(f"Mask{name}", space, kind, self.masks(node, space))
        sources = [
            self.spread(self.operand(each, kind, space), space, kind) for each in node.inputs
        ]
        return self.emit(f"Bits{name}", space, kind, sources)

    def on_select(self, node: Node, space: Space, kind: str, mode: str) -> Value:
        condition, first, second = node.inputs
        mask = self.spread(self.operand(condition, "mask", space), space, "mask")
        if kind == "mask":
            return self.select_masks(mask, first, second, space)
        a, b = (self.operand(each, kind, space) for each in (first, second))
        if kind == "float32" and isinstance(b, Value) and not isinstance(a, Value):
            mask = self.emit("MaskNot", space, "mask", (mask,))
            a, b = b, a
        a = self.spread(a, space, kind)
        if kind == "float32" and not isinstance(b, Value):
            return self.emit("Selects", space, kind, (mask, a, b))
        return self.emit("Select", space, kind, (mask, a, self.spread(b, space, kind)))

    def select_masks(self, mask: Value, first: str, second: str, space: Space) -> Value:
        a, b = (self.spread(self.operand(n, "mask", space), space, "mask") for n in (first, second))
        where = self.emit("MaskAnd", space, "mask", (mask, a))
        other = self.emit("MaskNot", space, "mask", (mask,))
        other = self.emit("MaskAnd", space, "mask", (other, b))
        return self.emit("MaskOr", space, "mask", (where, other))

    # Results

    def store(self, tensor: Tensor) -> Value:
        """Return an output's value in the type that it has in memory, in a place of its own."""
        node = self.nodes.get(tensor.name)
        self.location = node.location if node is not None else None
        value = self.value(tensor.name)
        kind = self.kind_of(tensor)
        if self.may_leave(node) and not self.is_read_whole(node):
            value = self.wrapped(value, tensor.dtype)
        if kind != tensor.dtype:
            # Rounded into the output, where nothing else reads it.
            self.casts = {key: v for key, v in self.casts.items() if key[1] != tensor.dtype}
            value = self.convert(value, tensor.dtype)
        else:
            steps = (*self.prepare, *self.before, *self.steps)
            producing = next((s for s in steps if s.target == value), None)
            own = producing is not None and producing.operation not in ("Load", "Accumulate")
            if value.number in self.results or not own or value.number in self.scalars:
                name, neutral = ("Muls", 1) if kind == "float32" else ("Adds", 0)
                value = self.emit(name, value.space, kind, (value, Number(neutral)))
        self.results.add(value.number)
        return value

    def may_leave(self, node: Node | None) -> TypeGuard[Node]:
        """Whether an operator's result, computed as int32, may not be in its own narrower type."""
        if node is None or node.output.dtype not in ("int8", "uint8", "int16") or self.is_short:
            return False
        return node.operator not in _WITHIN

    def is_read_whole(self, node: Node) -> bool:
        """Whether a result that may leave its type is read by what looks beyond the bits that
        remain when it wraps. Others need not see it wrapped."""
        if not self.may_leave(node):
            return False
        name = node.output.name
        readers = [each for each in self.group.nodes if name in each.inputs]
        return any(
            each.operator not in _LOW_BITS or each.output.dtype != node.output.dtype
            for each in readers
        )

    def wrapped(self, value: Value, dtype: str) -> Value:
        """Return whole numbers as they wrap in a narrower type."""
        row = find_dtype(dtype)
        assert row is not None
        shift = 32 - 8 * row.size_bytes
        up = self.emit("ShiftLeftUnsigned", value.space, "int32", (value, Number(shift)))
        name = "ShiftRight" if dtype.startswith("int") else "ShiftRightUnsigned"
        return self.emit(name, value.space, "int32", (up, Number(shift)))


def _negated(operand: Operand) -> Operand:
    if isinstance(operand, Number):
        return Number(-operand.value)
    assert isinstance(operand, Field | Scalar)
    return Derived(operand, "-")


def _inverse(operand: Operand) -> Operand:
    if isinstance(operand, Number):
        return Number(1.0 / operand.value)
    assert isinstance(operand, Field | Scalar)
    return Derived(operand, "1/")


# Results are in the type of the operands, or made to be.
_WITHIN = frozenset({"cast", "where", "maximum", "minimum", "broadcast_to"})
# Each bit of a result follows from the same and lower bits of the operands.
_LOW_BITS = frozenset({"add", "sub", "mul", "neg", "bitwise_and", "bitwise_or", "bitwise_not"})
# What the vector unit does with int16 as it is; results wrap as NumPy's do.
_SHORT = frozenset({"add", "sub", "mul", "neg", "maximum", "minimum"})
_BINARY = frozenset({"Add", "Sub", "Mul", "Div", "Max", "Min"})
# Types of whole numbers that are held as int32, and those that hold all of its values.
_NARROW = frozenset({"bool", "int8", "uint8", "int16", "int32"})
_WIDE = ("int32", "int64")
_N, _R, _T = "CAST_NONE", "CAST_RINT", "CAST_TRUNC"
# From what is held to what is wanted: a type and a rounding mode for each Cast; `mask` compares
# with 0, `number` selects
# 1 or 0. Source: Ascend C API, Cast, tables of supported combinations for the Atlas A2.
_CASTS: Mapping[tuple[str, str], Sequence[tuple[str, str]]] = {
    ("float16", "float32"): [("float32", _N)],
    ("bfloat16", "float32"): [("float32", _N)],
    ("float32", "float16"): [("float16", _R)],
    ("float32", "bfloat16"): [("bfloat16", _R)],
    ("float32", "int32"): [("int32", _T)],
    ("int32", "float32"): [("float32", _N)],
    ("int16", "int32"): [("float32", _N), ("int32", _R)],
    ("int8", "int32"): [("float16", _N), ("int32", _R)],
    ("uint8", "int32"): [("float16", _N), ("int32", _R)],
    ("bool", "mask"): [("float16", _N), ("float32", _N), ("mask", "")],
    ("int64", "int32"): [("int32", _N)],
    ("int32", "int64"): [("int64", _N)],
    ("int32", "int16"): [("int16", _N)],
    ("int32", "int8"): [("float32", _N), ("float16", _N), ("int8", _T)],
    ("int32", "uint8"): [("float32", _N), ("float16", _N), ("uint8", _T)],
    ("mask", "float32"): [("number", "float32")],
    ("mask", "int32"): [("number", "float32"), ("int32", _R)],
    ("float32", "mask"): [("mask", "")],
    ("int32", "mask"): [("float32", _N), ("mask", "")],
    ("mask", "bool"): [("number", "float32"), ("float16", _N), ("bool", _R)],
}
