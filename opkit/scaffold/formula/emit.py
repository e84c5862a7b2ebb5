"""A plan as Ascend C statements."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from opkit.algebra import Node, evaluate
from opkit.errors import SpecError

from .passes import LongPlan
from .plan import Operand, Plan, Scalar, Step, Value

__all__ = ["LongBody", "PassBody", "float_literal", "long_statements", "statements"]

_PLAIN = frozenset(
    {"Add", "Sub", "Mul", "Div", "Max", "Min", "Adds", "Muls", "Maxs", "Mins"}
    | {"Exp", "Ln", "Abs", "Sqrt", "Duplicate"}
)
_NOTE_COLUMN = 52


@dataclass(frozen=True)
class _Statement:
    text: str
    note: str


def float_literal(value: Node, *, integer: bool = False) -> str:
    """Return a number as the shortest float literal that rounds to it; as an integer literal for
    integer kernels."""
    if integer:
        return str(int(evaluate(value)))
    # Imported here: numpy prints the shortest decimal of a float32.
    import numpy as np

    with np.errstate(over="ignore"):
        single = np.float32(evaluate(value))
    if not np.isfinite(single):
        raise SpecError(
            f"a constant of the formula comes to {evaluate(value):.3g}, more than float32 holds",
            help="scale the formula so that its constants stay below 3.4e38",
        )
    text = str(single)
    mantissa, _, exponent = text.partition("e")
    if "." not in mantissa:
        mantissa += ".0"
    return f"{mantissa}e{exponent}f" if exponent else f"{mantissa}f"


def statements(
    plan: Plan,
    *,
    tensors: Mapping[str, str],
    outputs: tuple[str, ...],
    scalars: Mapping[Node, str],
    count: str,
    row_inputs: frozenset[str] = frozenset(),
    suffix: str = "Local",
    integer: bool = False,
) -> tuple[str, ...]:
    """Return the body of Compute, one statement a line.

    Args:
        plan: what `lower` returned.
        tensors: the C++ stem of each input and output name.
        outputs: the names of the outputs, in the plan's order.
        scalars: the C++ name of each expression over attributes.
        count: the C++ name of the number of elements.
        row_inputs: inputs with one value per row.
        suffix: what the queue's tensor of a stem is called: `xLocal`, `xRow`.
        integer: the kernel also computes in integers, so constants carry no `f` and are cast.
    """
    return _Writer(plan, tensors, outputs, scalars, count, row_inputs, suffix, integer).write()


@dataclass(frozen=True)
class PassBody:
    """One pass over a long row."""

    inputs: frozenset[str]
    """Names of the inputs that each part needs."""
    lines: tuple[str, ...]
    """For each part."""
    then: tuple[str, ...]
    """After the last part."""
    writes: bool
    """Whether the parts of the outputs are written."""


@dataclass(frozen=True)
class LongBody:
    """The statements for a row that is taken in parts."""

    first: tuple[str, ...]
    passes: tuple[PassBody, ...]
    last: tuple[str, ...]
    """Rounds the outputs that have one value per row."""


def long_statements(
    plan: LongPlan,
    *,
    tensors: Mapping[str, str],
    outputs: tuple[str, ...],
    scalars: Mapping[Node, str],
    row_inputs: frozenset[str],
    integer: bool,
) -> LongBody:
    """Return the statements of `plan`; arguments as those of `statements`."""
    shell = Plan((), plan.outputs, 0, 0, 0)
    writer = _Writer(shell, tensors, outputs, scalars, "count", row_inputs, "Row", integer)
    return writer.write_long(plan)


def _reduction(operation: str, target: str, source: str, count: str) -> str:
    """Return the reduction of a row; extrema go through a helper of the kernel, which folds."""
    if operation == "ReduceSum":
        return f"ReduceSum({target}, {source}, reduceWork, {count});"
    return f"Folded{operation.removeprefix('Reduce')}({target}, {source}, {count});"


class _Writer:
    def __init__(
        self,
        plan: Plan,
        tensors: Mapping[str, str],
        outputs: tuple[str, ...],
        scalars: Mapping[Node, str],
        count: str,
        row_inputs: frozenset[str],
        suffix: str,
        integer: bool,
    ) -> None:
        self.plan = plan
        self.tensors = tensors
        self.outputs = outputs
        self.scalars = scalars
        self.count = count
        self.row_inputs = row_inputs
        self.suffix = suffix
        self.integer = integer
        self.names: dict[int, str] = {}
        self.lines: list[_Statement] = []

    def write(self) -> tuple[str, ...]:
        self.declare()
        for step in self.plan.steps:
            self.step(step)
        self.round()
        return tuple(self.render(line) for line in self.lines)

    def write_long(self, plan: LongPlan) -> LongBody:
        first = self.section(plan.first, "row", targets=True)
        passes = []
        for one in plan.passes:
            row_names = dict(self.names)
            lines = self.section(one.steps, "tile", targets=one.writes, results=one.writes)
            self.names = row_names
            inputs = {s.mode for s in one.steps if s.operation == "Widen"}
            then = self.section(one.then)
            passes.append(PassBody(frozenset(inputs), lines, then, one.writes))
        return LongBody(first, tuple(passes), self.section((), "row", results=True))

    def section(
        self,
        steps: tuple[Step, ...],
        space: str = "",
        *,
        targets: bool = False,
        results: bool = False,
    ) -> tuple[str, ...]:
        """Return the statements of some steps, and what the outputs of a space need around them."""
        self.lines = []
        if targets:
            self.declare(space)
        for step in steps:
            if step.operation.startswith("Reduce"):
                self.join(step)
            else:
                self.step(step)
        if results:
            self.round(space)
        return tuple(self.render(line) for line in self.lines)

    def join(self, step: Step) -> None:
        """Reduce a part, and join it with those before."""
        target, source = self.name(step.target), self.name(step.sources[0])
        joined = {"ReduceSum": "Add", "ReduceMax": "Max", "ReduceMin": "Min"}[step.operation]
        destination = f"start == 0 ? {target} : partial"
        self.add(_reduction(step.operation, destination, source, "count"), step.note)
        self.add("if (start != 0) {")
        self.add(f"    {joined}({target}, {target}, partial, 1);")
        self.add("}")

    def declare(self, space: str = "") -> None:
        for name, value in zip(self.outputs, self.plan.outputs, strict=True):
            if space in ("", value.space):
                stem = self.tensors[name]
                self.names[value.number] = f"{stem}Value"
                room = self.register(value)
                self.add(
                    f"LocalTensor<ComputeType> {stem}Value = Target({stem}{self.suffix}, {room});"
                )

    def round(self, space: str = "") -> None:
        for name, value in zip(self.outputs, self.plan.outputs, strict=True):
            if space in ("", value.space):
                stem = self.tensors[name]
                count = "1" if value.space == "row" else self.count
                self.add(f"Narrow({stem}{self.suffix}, {stem}Value, {count});")

    def add(self, text: str, note: str = "") -> None:
        self.lines.append(_Statement(text, note))

    @staticmethod
    def render(line: _Statement) -> str:
        return f"{line.text:<{_NOTE_COLUMN}}  // {line.note}" if line.note else line.text

    def register(self, value: Value) -> str:
        return {"tile": "scratch", "row": "row", "mask": "mask"}[value.space] + str(value.register)

    def name(self, operand: Operand) -> str:
        if isinstance(operand, Value):
            return self.names.get(operand.number) or self.register(operand)
        return self.scalar(operand)

    def scalar(self, scalar: Scalar) -> str:
        if scalar.expression.is_constant:
            literal = float_literal(scalar.expression, integer=self.integer)
        else:
            literal = self.scalars[scalar.expression]
        return f"static_cast<ComputeType>({literal})" if self.integer else literal

    def step(self, step: Step) -> None:
        target, name = step.target, step.operation
        count = "1" if "row" in (target.space,) or target.per_row else self.count
        sources = [self.name(source) for source in step.sources]
        if name == "Widen":
            stem = self.tensors[step.mode]
            room = self.register(target)
            count = "1" if step.mode in self.row_inputs else self.count
            value = self.names.get(target.number)
            self.names[target.number] = f"{stem}Value"
            assert value is None, "an output is never an input itself"
            self.add(
                f"const LocalTensor<ComputeType> {stem}Value ="
                f" Widen({stem}{self.suffix}, {room}, {count});"
            )
            return
        if name == "Read":
            self.names[target.number] = f"rowScalar{target.number}"
            self.add(f"const ComputeType rowScalar{target.number} = ReadRow({sources[0]});")
            return
        destination = self.name(target)
        if name in _PLAIN:
            arguments = [destination, *sources, count]
        elif name == "Cast":
            arguments = [destination, *sources, f"RoundMode::{step.mode}", count]
        elif name in ("Compare", "CompareScalar"):
            # Compare writes whole repeats, 64 float elements each.
            arguments = [destination, *sources, f"CMPMODE::{step.mode}", f"RoundUp({count}, 64)"]
        elif name in ("Select", "Selects"):
            kind = "TENSOR_SCALAR" if name == "Selects" else "TENSOR_TENSOR"
            arguments = [destination, *sources, f"SELMODE::VSEL_{kind}_MODE", count]
            name = "Select"
        elif name.startswith("Reduce"):
            self.add(_reduction(name, destination, sources[0], self.count), step.note)
            return
        else:
            raise NotImplementedError(f"no Ascend C for {name}")
        self.add(f"{name}({', '.join(arguments)});", step.note)
