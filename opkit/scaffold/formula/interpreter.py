"""Run a plan in NumPy float32: how the lowering is checked without an emulator."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from opkit.algebra import evaluate

from .plan import Operand, Plan, Scalar, Step, Value

__all__ = ["interpret"]

_BINARY = {
    "Add": np.add,
    "Sub": np.subtract,
    "Mul": np.multiply,
    "Div": np.divide,
    "Max": np.maximum,
    "Min": np.minimum,
}
_SCALAR = {"Adds": np.add, "Muls": np.multiply, "Maxs": np.maximum, "Mins": np.minimum}
_UNARY = {"Exp": np.exp, "Ln": np.log, "Abs": np.abs, "Sqrt": np.sqrt}
_ROUND = {"CAST_FLOOR": np.floor, "CAST_CEIL": np.ceil, "CAST_RINT": np.rint}
_COMPARE = {
    "LT": np.less,
    "LE": np.less_equal,
    "GT": np.greater,
    "GE": np.greater_equal,
    "EQ": np.equal,
    "NE": np.not_equal,
}
_REDUCE: dict[str, Callable[..., object]] = {
    "ReduceSum": np.sum,
    "ReduceMax": np.max,
    "ReduceMin": np.min,
}


def interpret(
    plan: Plan,
    inputs: Mapping[str, np.ndarray],
    attrs: Mapping[str, float] | None = None,
    *,
    dtype: type[np.generic] = np.float32,
) -> list[np.ndarray]:
    """Return the outputs of a plan, one rounding to `dtype` an instruction.

    Registers are modelled, so a register that is reused too early shows as a wrong result.

    Args:
        plan: what `lower` returned.
        inputs: shape (rows, n), (n,) or, for per-row inputs, (rows, 1); cast to `dtype`.
        attrs: attribute values.
    """
    values = dict(attrs or {})
    shape = np.broadcast_shapes(*(np.shape(a) for a in inputs.values()))
    registers: dict[tuple[str, int], np.ndarray] = {}

    def read(operand: Operand) -> np.ndarray:
        if isinstance(operand, Scalar):
            names = {"columns": float(shape[-1]), **values}
            return np.asarray(evaluate(operand.expression, names)).astype(dtype)
        return registers[_place(operand)]

    with np.errstate(all="ignore"):
        for step in plan.steps:
            result = _execute(step, [read(s) for s in step.sources], inputs, shape, dtype)
            registers[_place(step.target)] = result
    return [registers[_place(value)] for value in plan.outputs]


def _place(value: Value) -> tuple[str, int]:
    return value.space, value.number if value.space == "scalar" else value.register


def _execute(
    step: Step,
    sources: list[np.ndarray],
    inputs: Mapping[str, np.ndarray],
    shape: tuple[int, ...],
    dtype: type[np.generic],
) -> np.ndarray:
    name = step.operation
    if name == "Widen":
        return np.asarray(inputs[step.mode]).astype(dtype)
    if name == "Read":
        return sources[0]
    if name == "Duplicate":
        full = shape if step.target.space == "tile" else (*shape[:-1], 1)
        return np.broadcast_to(sources[0], full).astype(dtype)
    if name in ("Compare", "CompareScalar"):
        return np.asarray(_COMPARE[step.mode](sources[0], sources[1]))
    if name in ("Select", "Selects"):
        return np.where(sources[0], sources[1], sources[2]).astype(dtype)
    if name in _REDUCE:
        row = np.broadcast_to(sources[0], shape)
        return np.asarray(_REDUCE[name](row, axis=-1, keepdims=True)).astype(dtype)
    if name == "Cast":
        return np.asarray(_ROUND[step.mode](sources[0])).astype(dtype)
    operation: Callable[..., object] | None = (
        _BINARY.get(name) or _SCALAR.get(name) or _UNARY.get(name)
    )
    if operation is None:
        raise NotImplementedError(f"the interpreter has no {name}")
    return np.asarray(operation(*sources)).astype(dtype)
