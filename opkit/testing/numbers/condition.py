"""How far a right result may be off because the operator itself multiplies roundings.

    allowed = C * sum over inputs i of |g(x_i * (1 +- 2^-24)) - g(x)|

with one input at a time, g the float64 golden and C = 8; to it come the golden's own constants,
rational terms of sums and sums over an axis, each a rounding away in the same manner (see
`opkit.testing.numbers.traced`), and half a step of the output's type. Where a subtraction of the
operator itself cancels, that is far more than a relative limit allows, for every float32
implementation.
Source: our own rule; docs/precision.md and benchmarks/verdict.py say what it passes and fails.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from opkit.dtypes import DType
from opkit.errors import OperatorError
from opkit.testing.numbers.arrays import Array, Input, is_float, tensors_of
from opkit.testing.numbers.measures import format_numbers
from opkit.testing.numbers.traced import Role, Traced, tracing
from opkit.testing.numbers.tracer import Cancellation, Tracer

__all__ = [
    "FACTOR",
    "STEP",
    "Allowance",
    "Evaluation",
    "allowance",
    "cancellation",
    "measured",
    "rounding",
]

STEP = 2.0**-24
"""Half a step of float32, the type that kernels compute in: what one rounding moves a value by."""
FACTOR = 8.0
"""C: how many such roundings a right implementation may add up."""
_DECISIONS = 4
# Threads may add up a sum in another order each time: by less than this, of the largest element.
_REPEATABLE = 1e-4
_DRAWS = 3
_MOST_SITES = 256
# What a golden raises that takes ordinary arrays and no traced ones.
_NOT_TRACED = (OperatorError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError)


@dataclass(frozen=True)
class Evaluation:
    """A golden at one set of inputs."""

    function: Callable[[Sequence[Input]], tuple[Array, ...]]
    """From wide inputs to the outputs."""
    inputs: tuple[Input, ...]
    """Wide, as `widen_input` gives them."""
    by_element: bool
    """Whether each element of the outputs depends on one element of each input only."""
    names: dict[str, Any] | None = None
    """The global names of the golden's module, to trace what it computes."""

    def __call__(self, inputs: Sequence[Input]) -> list[Array]:
        """Return the outputs, flat."""
        with np.errstate(all="ignore"):
            found = self.function(inputs)
        return [np.asarray(output).reshape(-1) for output in found]


def rounding(golden: Array, allowed: Array, dtype: DType) -> Array:
    """Return half a step of the output's type at the largest value that is allowed."""
    numbers = format_numbers(dtype.name)
    half = 2.0 ** -(numbers["fraction"] + 1)
    result: Array = half * (np.abs(golden) + allowed) + numbers["smallest"] / 2
    return result


@dataclass(frozen=True)
class Allowance:
    """What a right result may be, for one output, flat, without the output's rounding."""

    golden: Array
    errors: Array
    """How far an element may be off; nothing where the golden is not finite."""
    others: tuple[Array, ...]
    """What it may be instead: the golden with one computed value decided the other way."""

    def excused(self, actual: Array, indices: Array, dtype: DType, relative: float) -> Array:
        """Return which elements at some indices are right by their condition.

        `relative`: what an element of another decision may be off by, relative to itself.
        """
        if not is_float(dtype):
            # Whole numbers have no error but the decision by which they were chosen.
            same = [actual == other[indices] for other in self.others]
            either: Array = np.any(same, axis=0) if same else np.zeros(actual.shape, np.bool_)
            return either
        golden, errors = self.golden[indices].astype(np.float64), self.errors[indices]
        found: Array = np.abs(actual - golden) <= errors + rounding(golden, errors, dtype)
        found &= np.isfinite(golden)
        for other in self.others:
            value = other[indices]
            limit = errors + relative * np.abs(value) + rounding(value, errors, dtype)
            found |= np.isfinite(value) & (np.abs(actual - value) <= limit)
        return found


def allowance(evaluation: Evaluation, *, step: float = STEP) -> list[Allowance]:
    """Return what the elements of each output may be, where a rounding moves a value by `step`.

    Raises:
        OperatorError: the golden gives something else each time, whatever its inputs are.
    """
    base = evaluation(evaluation.inputs)
    _check_repeatable(base, evaluation(evaluation.inputs))
    others: list[list[Array]] = [[] for _ in base]
    total = [np.zeros(output.shape) for output in base]

    def add(changes: list[Array]) -> None:
        for number, change in enumerate(changes):
            total[number] += FACTOR * change

    for index, value in enumerate(evaluation.inputs):
        if _is_floating(value):
            add(_input_changes(evaluation, base, index, step))
    for index, kind in enumerate(_site_kinds(evaluation, base)):
        decides = kind in ("decision", "tie")
        moved_by = _DECISIONS * step if decides else step
        signs = (1.0,) if kind == "tie" else (1.0, -1.0)
        ends = [_traced_run(evaluation, Tracer(index, sign * moved_by)) for sign in signs]
        if not decides:
            add([_smaller(b, up, down) for b, up, down in zip(base, *ends, strict=True)])
            continue
        for end in ends:
            for number, (usual, other) in enumerate(zip(base, end, strict=True)):
                if other.shape == usual.shape and not np.array_equal(other, usual, equal_nan=True):
                    others[number].append(other)
    rows = zip(base, total, others, strict=True)
    return [Allowance(golden, errors, tuple(found)) for golden, errors, found in rows]


def _check_repeatable(first: Sequence[Array], second: Sequence[Array]) -> None:
    for number, (one, other) in enumerate(zip(first, second, strict=True)):
        if one.shape != other.shape:
            moved = np.inf
        else:
            with np.errstate(all="ignore"):
                off = np.abs(one.astype(np.float64) - other.astype(np.float64))
                large = np.abs(one[np.isfinite(one)]).max(initial=0.0)
            moved = np.where(np.isfinite(off), off, 0.0).max(initial=0.0)
            moved = moved / large if large else moved
        if moved > _REPEATABLE:
            raise OperatorError(
                f"the reference gives output {number} with other values each time it is called",
                help="seed what it draws, and let it change neither its inputs nor what it keeps",
            )


def cancellation(evaluation: Evaluation, output: int, position: int) -> Cancellation | None:
    """Return the sum of the golden that cancels most at a flat position of an output."""
    with np.errstate(all="ignore"):
        shape = evaluation.function(evaluation.inputs)[output].shape
    tracer = Tracer(watched=position, watched_shape=shape)
    _traced_run(evaluation, tracer)
    return tracer.worst


def measured(evaluation: Evaluation) -> Tracer:
    """Return how large numbers become on the golden's way, and whether it rounds; what it computes
    by means that cannot be traced, such as another package, is not seen."""
    tracer = Tracer(measures=True)
    with contextlib.suppress(*_NOT_TRACED):
        _traced_run(evaluation, tracer)
    return tracer


def _is_floating(value: Input) -> bool:
    if isinstance(value, list):
        return any(_is_floating(array) for array in value)
    return value is not None and value.dtype.kind == "f"


def _moved(value: Array, changes: Array | float) -> Array:
    return value * (1.0 + changes) if value.dtype.kind == "f" else value


def _input_changes(
    evaluation: Evaluation, base: list[Array], index: int, step: float
) -> list[Array]:
    """Return how far the outputs move when one input is a rounding away, either way."""
    stream = np.random.default_rng(index)
    largest = [np.zeros(output.shape) for output in base]
    # Elements of one output may depend on many of the input, whose roundings have signs of their
    # own: all alike, and some draws.
    for draw in range(1 if evaluation.by_element else 1 + _DRAWS):

        def signs(array: Array, draw: int = draw) -> Array | float:
            return 1.0 if draw == 0 else stream.choice([-1.0, 1.0], array.shape)

        value = evaluation.inputs[index]
        arrays = tensors_of([value])
        factors = [signs(array) for array in arrays]
        ends = []
        for way in (step, -step):
            moved = [
                _moved(a, way * f) for a, f in zip(arrays, factors, strict=True) if a is not None
            ]
            inputs = list(evaluation.inputs)
            inputs[index] = moved if isinstance(value, list) else moved[0]
            ends.append(evaluation(inputs))
        for number, (b, up, down) in enumerate(zip(base, *ends, strict=True)):
            largest[number] = np.maximum(largest[number], _smaller(b, up, down))
    return largest


def _smaller(base: Array, up: Array, down: Array) -> Array:
    """Return the smaller of the two ways' changes: a jump at an exact input is no rounding."""
    return np.minimum(_change(base, up), _change(base, down))


def _change(base: Array, moved: Array) -> Array:
    if moved.shape != base.shape:
        return np.zeros(base.shape)
    if base.dtype == np.bool_:
        changed: Array = (moved != base).astype(np.float64)
        return changed
    with np.errstate(all="ignore"):
        difference = np.abs(moved - base)
    result: Array = np.where(np.isfinite(difference), difference, 0.0)
    return result


def _traced_inputs(inputs: Sequence[Input]) -> list[Input]:
    def traced(array: Array) -> Array:
        view = array.view(Traced)
        view.role = Role.INPUT
        return view

    return [
        [traced(array) for array in value]
        if isinstance(value, list)
        else None
        if value is None
        else traced(value)
        for value in inputs
    ]


def _traced_run(evaluation: Evaluation, tracer: Tracer) -> list[Array]:
    with tracing(tracer, evaluation.names):
        return evaluation(_traced_inputs(evaluation.inputs))


def _site_kinds(evaluation: Evaluation, base: list[Array]) -> list[str]:
    """Return the golden's own places; none where it does not take traced arrays as it does others.

    A golden may use what cannot be traced, such as another package: then the inputs' part is all.
    """
    tracer = Tracer()
    try:
        found = _traced_run(evaluation, tracer)
    except _NOT_TRACED:
        return []
    same = all(np.array_equal(a, b, equal_nan=True) for a, b in zip(found, base, strict=True))
    return [site.kind for site in tracer.sites][:_MOST_SITES] if same else []
