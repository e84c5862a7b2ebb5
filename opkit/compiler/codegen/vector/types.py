"""Programs that are the same but for their tensors' data types, as one program over type
parameters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from .steps import Derived, Field, Number, Operand, Program, Scalar, Step, Value

__all__ = ["TypedProgram", "Types", "common_types"]

_NARROW = frozenset({"float16", "bfloat16"})
"""Types that are computed with as float32."""
_WHOLE = frozenset({"int32", "int16"})
"""Types that instructions take as they are."""

_Row: TypeAlias = tuple[Any, ...]


@dataclass(frozen=True)
class Types:
    """The type parameters of a kernel that serves several combinations of data types."""

    combinations: tuple[Mapping[str, str], ...]
    """Each tensor's data type."""
    parameter_of: Mapping[str, str]
    """The type parameter of each tensor that has not the same data type in all combinations."""
    has_narrow: bool
    """Whether some types are narrower than what is computed in."""
    has_whole: bool
    """Whether some combinations compute with whole numbers."""

    @property
    def parameters(self) -> Mapping[str, str]:
        """The first tensor of each type parameter."""
        found: dict[str, str] = {}
        for tensor, parameter in self.parameter_of.items():
            found.setdefault(parameter, tensor)
        return found

    @property
    def computed(self) -> str:
        """The type that is computed in."""
        if not self.has_whole:
            return "float"
        return "Number" if self.has_narrow else next(iter(self.parameters))


@dataclass(frozen=True)
class TypedProgram:
    """A program for one combination of data types."""

    program: Program
    dtypes: tuple[str, ...]
    """Data types of its inputs and outputs in memory."""
    fields: Mapping[str, Any]
    """How each number that comes with a launch is computed, in a form that can be compared."""

    @property
    def tensors(self) -> tuple[str, ...]:
        """The names of its inputs and outputs."""
        outputs = [tensor for tensor, _ in self.program.outputs]
        return tuple(tensor.name for tensor in (*self.program.inputs, *outputs))


def common_types(
    programs: Sequence[TypedProgram], stems: Sequence[str]
) -> tuple[int, Types] | None:
    """Return the program to write for all combinations of data types, by its place, and its type
    parameters; None where the programs differ in more than conversions.

    The one to write has every conversion that another has: where a type is the one that is computed
    in, it does nothing.

    Args:
        programs: one for each combination.
        stems: the names of inputs and outputs in C++.
    """
    first, *rest = (_form(each) for each in programs)
    if any(form != first for form in rest):
        return None
    columns = list(zip(*(each.dtypes for each in programs), strict=True))
    varying = [at for at, column in enumerate(columns) if len(set(column)) > 1]
    narrow = [{at for at in varying if each.dtypes[at] in _NARROW} for each in programs]
    base = max(range(len(programs)), key=lambda at: len(narrow[at]))
    if any(not each <= narrow[base] for each in narrow):
        return None
    names: dict[tuple[str, ...], str] = {}
    for at in varying:
        names.setdefault(columns[at], f"{stems[at][:1].upper()}{stems[at][1:]}Type")
    if len(names) == 1:
        names = dict.fromkeys(names, "Element")
    has_whole = any(set(each.dtypes) <= _WHOLE for each in programs)
    if has_whole and (len(names) > 1 or len(varying) < len(columns)):
        return None
    tensors = programs[base].tensors
    parameter_of = {tensors[at]: names[columns[at]] for at in varying}
    combinations = tuple(dict(zip(tensors, each.dtypes, strict=True)) for each in programs)
    return base, Types(combinations, parameter_of, bool(narrow[base]), has_whole)


def _form(typed: TypedProgram) -> _Row:
    """Return a program without conversions from and to memory, its values numbered anew."""
    program = typed.program
    steps = [step for section in program.sections for step in section.steps]
    loads = {s.target.number for s in steps if s.operation == "Load"}
    stored = {value.number for _, value in program.outputs}
    is_whole = {s.target.kind for s in steps} - {"mask"} <= _WHOLE
    numbers: dict[int, int] = {}

    def value(each: Value) -> _Row:
        number = numbers.setdefault(each.number, len(set(numbers.values())))
        kind = "number" if is_whole or each.kind in _NARROW else each.kind
        return number, each.space, "number" if kind == "float32" else kind

    def operand(each: Operand) -> _Row:
        if isinstance(each, Value):
            return value(each)
        if isinstance(each, Number):
            return ("number", float(each.value))
        if isinstance(each, Field):
            return ("field", typed.fields[each.tensor], each.is_integer)
        if isinstance(each, Scalar):
            return ("scalar", value(each.value))
        assert isinstance(each, Derived)
        return (each.how, operand(each.operand))

    def converts(step: Step) -> bool:
        if step.operation != "Cast":
            return False
        (source,) = step.sources
        assert isinstance(source, Value)
        widens = source.number in loads and source.kind in _NARROW
        narrows = step.target.kind in _NARROW or step.target.kind == source.kind
        return widens or (step.target.number in stored and narrows)

    sections: list[_Row] = []
    for section in program.sections:
        rows: list[_Row] = [(section.name,)]
        for step in section.steps:
            if converts(step):
                (source,) = step.sources
                assert isinstance(source, Value)
                numbers[step.target.number] = value(source)[0]
                continue
            sources = tuple(operand(source) for source in step.sources)
            rows.append((step.operation, step.mode, sources, value(step.target)))
        sections.append(tuple(rows))
    outputs = tuple(value(each)[0] for _, each in program.outputs)
    inputs = tuple(tensor.name for tensor in program.inputs)
    extents = tuple(map(str, program.domain.extents))
    return (program.schedule, extents, tuple(sections), inputs, outputs, program.one_row)
