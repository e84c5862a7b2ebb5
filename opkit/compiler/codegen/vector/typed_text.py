"""A vector kernel for several combinations of data types: one class over type parameters."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property

from ...ir import Graph, Tensor
from .ascendc import KernelWriter
from .helpers import HELPERS
from .slots import Plan
from .statements import literal
from .steps import Number, Operand, Section, Step, Value
from .tiling import TilingLayout, element_bytes
from .types import Types

__all__ = ["TypedWriter"]


class TypedWriter(KernelWriter):
    """Writes the program of one combination so that it serves all of them.

    What is converted where it is loaded or stored is, in a combination that computes in that very
    type, used where it lies.
    """

    def __init__(
        self, name: str, graph: Graph, plan: Plan, layout: TilingLayout, types: Types
    ) -> None:
        super().__init__(name, graph, plan, layout)
        self.types = types

    @property
    def class_parameters(self) -> Sequence[str]:
        return list(self.types.parameters)

    @property
    def type_tensors(self) -> tuple[str, ...]:
        return tuple(self.types.parameters.values())

    def own_types(self) -> None:
        if self.types.computed == "Number":
            (element,) = self.types.parameters
            test = f"std::is_integral<{element}>::value"
            self.out(f"using Number = typename std::conditional<{test}, {element}, float>::type;")
            self.out()

    # Types

    def type_of(self, tensor: Tensor) -> str:
        return self.types.parameter_of.get(tensor.name) or super().type_of(tensor)

    def type_of_value(self, value: Value) -> str:
        parameter = self.types.parameter_of.get(self.in_memory.get(value.number, ""))
        if parameter is not None:
            return parameter
        is_number = value.kind in ("float32", "int32", "int16") and self.types.has_whole
        return self.types.computed if is_number else super().type_of_value(value)

    def bytes_of(self, segments: Sequence[tuple[str, int, bool]]) -> str:
        counts: dict[str, int] = {}
        for name, _, _ in segments:
            parameter = self.types.parameter_of.get(name, "")
            size = 1 if parameter else element_bytes(self.graph.tensors[name].dtype)
            counts[parameter] = counts.get(parameter, 0) + size
        fixed = counts.pop("", 0)
        terms = [f"{n} * sizeof({t})" if n > 1 else f"sizeof({t})" for t, n in counts.items()]
        terms += [str(fixed)] if fixed else []
        return f"({' + '.join(terms)})" if len(terms) > 1 else "".join(terms)

    # Values

    def address(self, value: Value) -> str:
        if value.number in self.columns:
            kept, room = self.columns[value.number], self.slot(self.plan.places[value.number])
            return f"Loaded<{self.type_of_value(value)}>({super().address(kept)}, {room})"
        return super().address(value)

    @cached_property
    def steps(self) -> list[Step]:
        return [step for section in self.program.sections for step in section.steps]

    @cached_property
    def in_memory(self) -> dict[int, str]:
        """The tensor that a value is of, in the type that it has in memory."""
        loaded = {s.target.number: s.mode for s in self.steps if s.operation == "Load"}
        return loaded | {value.number: tensor.name for tensor, value in self.program.outputs}

    @cached_property
    def converted(self) -> dict[int, Value]:
        """What lies in memory of values that are computed with: what they are converted from, or
        to."""
        found: dict[int, Value] = {}
        for step in self.steps:
            if self.is_conversion(step):
                (source,) = step.sources
                assert isinstance(source, Value)
                is_load = source.number in self.in_memory
                stored, value = (source, step.target) if is_load else (step.target, source)
                if stored.number not in self.columns:
                    found[value.number] = stored
        return found

    @cached_property
    def columns(self) -> dict[int, Value]:
        """Results of conversions of columns, by the source's number: the source is gone before
        the first tile."""
        return {
            source.number: step.target
            for step in self.steps
            if self.is_conversion(step) and step.target.space == "column"
            for source in step.sources
            if isinstance(source, Value) and source.number in self.in_memory
        }

    def is_conversion(self, step: Step) -> bool:
        """Whether a step does nothing where the type in memory is the one that is computed in."""
        if step.operation != "Cast":
            return False
        ends = [each.number for each in (step.target, *step.sources) if isinstance(each, Value)]
        return any(self.in_memory.get(n, "") in self.types.parameter_of for n in ends)

    def declare(self, section: Section) -> None:
        super().declare(section)
        named = dict.fromkeys(
            each
            for step in section.steps
            for each in (step.target, *step.sources)
            if isinstance(each, Value) and each.number in self.converted
        )
        for value in named:
            name, address = self.named(value, section), self.shared(value, section)
            if name != address:
                self.out(f"const LocalTensor<{self.types.computed}> {name} = {address};")

    def declared(self, section: Section) -> list[Value]:
        return [v for v in super().declared(section) if v.number not in self.converted]

    def shared(self, value: Value, section: Section) -> str:
        """Return where a converted value lies: in memory's type's place, or in its own."""
        stored = self.converted[value.number]
        own = self.address(value)
        names = {super(TypedWriter, self).named(v, section) for v in self.declared(section)}
        slot = super().named(value, section)
        room = slot if slot in names else own
        return f"Computed({self.named(stored, section)}, {room})"

    def named(self, value: Value, section: Section) -> str:
        if value.number not in self.converted:
            return super().named(value, section)
        place = self.plan.places[value.number]
        if section.name == "prepare" or place.area in ("one", "column"):
            return self.shared(value, section)
        return f"{self.stems[self.in_memory[self.converted[value.number].number]]}Value"

    def operand(self, operand: Operand, kind: str, section: Section) -> str:
        if isinstance(operand, Number) and self.types.has_whole:
            return f"static_cast<{self.types.computed}>({literal(operand.value, 'int32')})"
        return super().operand(operand, kind, section)

    def step(self, step: Step, section: Section) -> None:
        if not self.is_conversion(step):
            super().step(step, section)
            return
        count = self.count(step.target, section)
        text = f"Convert({self.ends(step, section)}, RoundMode::{step.mode}, {count});"
        self.out(text, step.location)

    def ends(self, step: Step, section: Section) -> str:
        """Return the names of what a step of one source writes and reads."""
        (source,) = step.sources
        assert isinstance(source, Value)
        return f"{self.named(step.target, section)}, {self.named(source, section)}"

    def seen_as(self, tensor: str, kind: str) -> str:
        # What a function of the class says is of no known type before its parameters are.
        return f"{tensor}.{'template ' if '()' in tensor else ''}ReinterpretCast<{kind}>()"

    def as_float(self, name: str, step: Step) -> str:
        if self.types.has_whole:
            return f"{name}.template ReinterpretCast<float>()"
        return super().as_float(name, step)

    def helpers(self) -> None:
        super().helpers()
        self.type_helpers()

    def type_helpers(self) -> None:
        """Write the functions that conversions call."""
        needed = {"Computed": self.converted, "Loaded": self.columns}
        needed["Convert"] = {**self.converted, **self.columns}
        for name in (name for name, values in needed.items() if values):
            self.out.all(line.replace("COMPUTED", self.types.computed) for line in HELPERS[name])
