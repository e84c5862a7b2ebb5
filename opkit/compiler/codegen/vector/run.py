"""A vector kernel's steps executed with NumPy: all rows at once, or in the slots of its plan."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from opkit.errors import UsageError

from ...ir import HALVES, evaluate, rounded_to
from ...tracing import from_storage
from .slots import Place, Plan
from .steps import Derived, Field, Number, Operand, Program, Scalar, Section, Step, Value

__all__ = ["SlotError", "run_plan", "run_steps"]


class SlotError(UsageError):
    """A step reads a slot that another value has taken meanwhile: the plan is wrong."""


def run_steps(
    program: Program,
    arrays: Mapping[str, Any],
    scalars: Mapping[str, float],
    sizes: Mapping[str, int],
) -> dict[str, Any]:
    """Return what the steps compute, in float64, by the names of the tensors that they store.

    Args:
        program: the steps.
        arrays: the tensors that they load, as they lie in memory.
        scalars: the numbers of the launch, by the names of their tensors.
        sizes: of the named dimensions.
    """
    return _Run(program, arrays, scalars, sizes, None).results()


def run_plan(
    plan: Plan,
    arrays: Mapping[str, Any],
    scalars: Mapping[str, float],
    sizes: Mapping[str, int],
) -> dict[str, Any]:
    """Return what the steps compute where their values share slots; arguments as of `run_steps`.

    What runs once a tile runs twice, as for a second tile.

    Raises:
        SlotError: a value is read that is no longer in its slot.
    """
    return _Run(plan.program, arrays, scalars, sizes, plan).results()


class _Run:
    def __init__(
        self,
        program: Program,
        arrays: Mapping[str, Any],
        scalars: Mapping[str, float],
        sizes: Mapping[str, int],
        plan: Plan | None,
    ) -> None:
        self.program = program
        self.arrays = arrays
        self.numbers = scalars
        self.plan = plan
        self.sizes = sizes
        self.extents = tuple(evaluate(extent, sizes) for extent in program.domain.extents)
        self.values: dict[int, Any] = {}
        self.slots: dict[Place, tuple[int, Any]] = {}
        self.registers: dict[int, Any] = {}

    def results(self) -> dict[str, Any]:
        """Run all sections, and return the stored tensors in their own shapes."""
        stored: dict[str, Any] = {}
        for section in self.program.sections:
            for _ in range(2 if self.plan is not None and section.name == "tile" else 1):
                self.section(section)
                made = {step.target.number for step in section.steps}
                for tensor, value in self.program.outputs:
                    if value.number in made:
                        stored[tensor.name] = self.stored(tensor.name, tensor.shape, value)
        for tensor, value in self.program.outputs:
            if tensor.name not in stored:
                stored[tensor.name] = self.stored(tensor.name, tensor.shape, value)
        return stored

    def section(self, section: Section) -> None:
        with np.errstate(all="ignore"):
            for step in section.steps:
                if step.operation == "Read":
                    self.registers[step.target.number] = self.get(step.target)
                else:
                    self.put(step.target, self.computed(step))

    def stored(self, name: str, shape: Any, value: Value) -> Any:
        varies = self.program.domain.varies[name]
        own = tuple(e if v else 1 for e, v in zip(self.extents, varies, strict=True))
        array = np.broadcast_to(self.get(value), own)
        return array.reshape(tuple(evaluate(extent, self.sizes) for extent in shape)).copy()

    # Where values are

    def get(self, value: Value) -> Any:
        if self.plan is None:
            return self.values[value.number]
        place = self.plan.places[value.number]
        owner, array = self.slots.get(place, (-1, None))
        # The same number, wherever it is asked for, has one slot.
        is_same = {owner, value.number} <= self.plan.constants
        if owner != value.number and not is_same:
            held = f"%{owner}" if owner >= 0 else "nothing yet"
            raise SlotError(f"{value} is read from {place.area}{place.index}, which holds {held}")
        return array

    def put(self, value: Value, array: Any) -> None:
        self.values[value.number] = array
        if self.plan is not None:
            self.slots[self.plan.places[value.number]] = (value.number, array)

    def operand(self, operand: Operand) -> Any:
        if isinstance(operand, Value):
            return self.get(operand)
        if isinstance(operand, Number):
            return operand.value
        if isinstance(operand, Field):
            return self.numbers[operand.tensor]
        if isinstance(operand, Scalar):
            return self.registers[operand.value.number]
        assert isinstance(operand, Derived)
        inner = self.operand(operand.operand)
        return -inner if operand.how == "-" else 1.0 / inner

    # What steps compute

    def computed(self, step: Step) -> Any:
        name, kind = step.operation, step.target.kind
        if name == "Load":
            return self.loaded(step.mode)
        sources = [self.operand(source) for source in step.sources]
        if name == "Duplicate":
            # A number that was read may be another one for each batch.
            shape = np.broadcast_shapes((1,) * len(self.extents), np.shape(sources[0]))
            return np.full(shape, sources[0], _numpy(kind))
        if name in ("Fill", "Accumulate"):
            return sources[0]
        if name in ("Reduce", "Fold"):
            return self.reduced(step.mode, sources[0])
        if name == "Cast":
            return _cast(sources[0], step)
        if name in ("Compare", "CompareScalar"):
            return _COMPARISONS[step.mode](*sources)
        plain = name.removesuffix("Row").removesuffix("Column")
        function = _OPERATIONS[plain]
        result = np.asarray(function(*sources))
        return result if kind == "mask" else result.astype(_numpy(kind))

    def loaded(self, name: str) -> Any:
        tensor = next(each for each in self.program.inputs if each.name == name)
        varies = self.program.domain.varies[name]
        shape = tuple(e if v else 1 for e, v in zip(self.extents, varies, strict=True))
        array = from_storage(self.arrays[name], tensor.dtype)
        return np.asarray(array).reshape(shape)

    def reduced(self, mode: str, array: Any) -> Any:
        axis = -2 if self.program.domain.reduces == "rows" else -1
        shape = list(array.shape)
        shape[axis] = self.extents[axis]
        whole = np.broadcast_to(array, shape)
        return _FOLDS[mode](whole, axis=axis, keepdims=True)


def _numpy(kind: str) -> Any:
    if "float" in kind:
        return np.float64
    return np.bool_ if kind in ("mask", "bool") else np.dtype(kind)


def _cast(array: Any, step: Step) -> Any:
    """Return a value in another kind, rounded to it; floats are computed in float64."""
    array, kind = np.asarray(array), step.target.kind
    (source,) = step.sources
    assert isinstance(source, Value)
    if source.kind == kind or ("float" in source.kind and "float" not in kind):
        array = _ROUNDINGS[step.mode](array)
    if kind in HALVES:
        return rounded_to(array, kind)
    if "float" in kind:
        return array.astype(np.float64)
    if kind == "bool":
        return array != 0
    whole = array.astype(np.int64)
    if kind == "int32" and (array.dtype == np.float64 or source.kind == "int64"):
        # The unit stops at the ends of int32.
        whole = np.clip(np.nan_to_num(array), -(2**31), 2**31 - 1).astype(np.int64)
    return whole.astype(kind)


def _shifted(left: bool, signed: bool) -> Callable[[Any, Any], Any]:
    def shift(array: Any, by: Any) -> Any:
        bits = np.asarray(array).astype(np.int32 if signed else np.uint32, casting="unsafe")
        moved = bits << int(by) if left else bits >> int(by)
        return moved.astype(np.uint32).view(np.int32)

    return shift


_OPERATIONS: Mapping[str, Callable[..., Any]] = {
    **dict.fromkeys(("Add", "Adds"), np.add),
    **dict.fromkeys(("Mul", "Muls"), np.multiply),
    **dict.fromkeys(("Max", "Maxs"), np.maximum),
    **dict.fromkeys(("Min", "Mins"), np.minimum),
    **{"Sub": np.subtract, "Div": np.true_divide},
    **{"Exp": np.exp, "Ln": np.log, "Abs": np.abs, "Sqrt": np.sqrt},
    **dict.fromkeys(("Select", "Selects"), np.where),
    **{"MaskAnd": np.logical_and, "MaskOr": np.logical_or, "MaskNot": np.logical_not},
    **{"BitsAnd": np.bitwise_and, "BitsOr": np.bitwise_or, "BitsNot": np.invert},
    **{"ShiftLeft": _shifted(True, True), "ShiftLeftUnsigned": _shifted(True, False)},
    **{"ShiftRight": _shifted(False, True), "ShiftRightUnsigned": _shifted(False, False)},
}
_COMPARISONS: Mapping[str, Callable[..., Any]] = {
    **{"LT": np.less, "LE": np.less_equal, "GT": np.greater},
    **{"GE": np.greater_equal, "EQ": np.equal, "NE": np.not_equal},
}
_FOLDS: Mapping[str, Callable[..., Any]] = {"Sum": np.sum, "Max": np.max, "Min": np.min}
_ROUNDINGS: Mapping[str, Callable[..., Any]] = {
    **{"CAST_NONE": lambda x: x, "CAST_RINT": np.rint, "CAST_TRUNC": np.trunc},
    **{"CAST_FLOOR": np.floor, "CAST_CEIL": np.ceil},
}
