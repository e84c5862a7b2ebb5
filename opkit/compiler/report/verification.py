"""All stages of a program on the same inputs, and the first node that differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir import HALVES, Graph, Location, Node, Value, is_floating, rounded_to
from ..ops import OPERATORS
from ..passes import Rebuilder
from ..tracing import ADDING, from_storage, run_graph, run_nodes

if TYPE_CHECKING:
    from ..calls import ProgramCalls

__all__ = ["Difference", "verify"]

_LIMITS = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5}
_SMALLEST = 2.0**-100
_FLOOR = 2.0**-10
"""Elements below this share of the tensor's largest, or of 1, may be off by as much as it."""
_FLOORS = dict.fromkeys(HALVES, 2.0**-3)
"""Floors of 16-bit types where a kernel adds up: times the limit it is half a step at the largest
value, what each product of an attention's rounded weights may lose where the sum cancels."""
_LARGEST_SINGLE = float(np.finfo(np.float32).max)


@dataclass(frozen=True)
class Difference:
    """The first tensor that a stage computes otherwise than float64 does."""

    stage: str
    """`graph`: after rewriting; `steps of NAME` and `plan of NAME`: a kernel's instructions, and
    these where values share slots; `kernel NAME`: what a kernel wrote."""
    tensor: str
    location: Location | None
    error: float
    """The largest difference, as a share of the value, or of the tensor's largest up to 1."""
    limit: float

    def __str__(self) -> str:
        place = f"{self.location}: " if self.location else ""
        return (
            f"{place}{self.tensor} of {self.stage} differs by {self.error:.3g},"
            f" more than {self.limit:.3g}"
        )


def verify(
    program: ProgramCalls, arrays: Sequence[Any], attributes: Mapping[str, float] | None = None
) -> Difference | None:
    """Return the first difference among the stages for these inputs; None where all agree.

    The rewritten graph is held against the traced one, in float64, where nodes whose operator
    states an allowance are what they are made of, and within it of what they are; then each
    kernel's stages and the kernel itself against float64 on what it read, so that none is blamed
    for the one before.
    """
    attributes = attributes or {}
    traced, graph = program.graph, program.lowered.graph
    given = {t.name: np.asarray(a) for t, a in zip(traced.inputs, arrays, strict=True)}
    stated, made = _as_stated(traced)
    wanted = run_graph(stated, given, attributes)
    if wrong := _beyond_allowance(traced, wanted, made):
        return wrong
    rewritten = run_graph(graph, given, attributes)
    others = _Others(lambda **how: run_graph(stated, given, attributes, **how))
    for (name, before), (_, after) in zip(stated.outputs, graph.outputs, strict=True):
        limit = 1e-5
        error = _least_error(rewritten[after], wanted[before], limit, others, before)
        if error > limit:
            return Difference("graph", name, _location(graph, after), error, limit)
    memory, sizes = program.run_all(given, attributes)
    # What a kernel computes first is read by the rest of it as it lies in memory.
    parts = [part for kernel in program.lowered.groups for part in (*kernel.before, kernel)]
    for group in parts:
        inputs = {n: memory[n] for n in program.lowered.inputs_of(group) if n in memory}
        part = Graph(
            group.name,
            tuple(graph.tensors[name] for name in inputs),
            (
                *(n for n in graph.nodes if n.output.name in program.lowered.uniform),
                *group.nodes,
            ),
            (),
            graph.attributes,
        )
        expected = run_nodes(part, dict(inputs), attributes, sizes)
        others = _Others(partial(_run_part, part, inputs, attributes, sizes))
        scalars = program.scalars(sizes, attributes)
        adds = any(OPERATORS[node.operator].kind in ADDING for node in group.nodes)
        for stage, results in program.stage_results(group, {**expected, **inputs}, scalars, sizes):
            for name, value in results.items():
                dtype = graph.tensors[name].dtype
                limit = 1e-5 if is_floating(dtype) else 0.0
                right = _stored(expected[name], dtype)
                # Steps run in float64: what leaves float32 on the way is infinite here, too.
                made = _stored(value, dtype) if dtype == "float32" else value
                error = _least_error(made, right, limit, others, name, dtype, adds=adds)
                if error > limit:
                    return Difference(stage, name, _location(graph, name), error, limit)
        for name in program.lowered.outputs_of(group):
            dtype = graph.tensors[name].dtype
            limit = _LIMITS.get(dtype, 0.0)
            actual = from_storage(memory[name], dtype)
            reference = _stored(expected[name], dtype)
            error = _least_error(actual, reference, limit, others, name, dtype, adds=adds)
            if error > limit:
                return Difference(
                    f"kernel {group.name}", name, _location(graph, name), error, limit
                )
    return None


def _as_stated(traced: Graph) -> tuple[Graph, Mapping[str, str]]:
    """Return a graph with the nodes that an allowance is stated for taken apart, and the name there
    of each of its tensors."""
    work = Rebuilder(traced)

    def apart(node: Node, inputs: Sequence[Value]) -> Value | None:
        row = OPERATORS[node.operator]
        if row.expand is None or node.output.dtype not in row.allowances:
            return None
        return row.expand(*inputs, **dict(node.attributes))

    graph = work.rebuilt(apart)
    return graph, {name: value.tensor.name for name, value in work.values.items()}


def _beyond_allowance(
    traced: Graph, computed: Mapping[str, Any], made: Mapping[str, str]
) -> Difference | None:
    """Return the first node that what it is made of is further off than its operator allows;
    `made` names each tensor's value in `computed`."""
    for node in traced.nodes:
        row = OPERATORS[node.operator]
        if limit := row.allowances.get(node.output.dtype, 0.0):
            inputs = [computed[made[name]] for name in node.inputs]
            right = row.reference(*inputs, **node.settings)
            found = computed[made[node.output.name]]
            # What the type rounds to 0 is as right as 0, however many times the other it is.
            zeros = [rounded_to(each, node.output.dtype) == 0 for each in (found, right)]
            error = difference(np.where(zeros[0] & zeros[1], right, found), right)
            if error > limit:
                return Difference("graph", node.output.name, node.location, error, limit)
    return None


def _least_error(
    actual: Any,
    expected: Any,
    limit: float,
    others: _Others,
    name: str,
    dtype: str = "",
    *,
    adds: bool = False,
) -> float:
    """Return the difference; where it is above a limit, that to the nearest of the other values."""
    floor = _FLOORS.get(dtype, _FLOOR) if adds else _FLOOR
    error = difference(actual, expected, floor=floor)
    if error <= limit:
        return error
    return difference(actual, expected, others.of(name, dtype), floor=floor)


def difference(
    actual: Any, expected: Any, others: Sequence[Any] = (), *, floor: float = _FLOOR
) -> float:
    """Return the largest difference as a share of the value, or of the tensor's largest up to 1
    where that is more; infinities and what is no number must agree.

    Args:
        actual: what was computed.
        expected: what is right.
        others: what is as right; so is all between, and of fractions what is as far the other way,
            or twice: not every rounding is tried.
        floor: share of the largest value, or of 1, that smaller values count as.
    """
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    # Of whole numbers, those that a float holds included, the next one is another number.
    is_whole = bool(np.all((expected == np.rint(expected)) | ~np.isfinite(expected)))
    if actual.shape != expected.shape:
        return float("inf")
    sizes = np.abs(expected)
    # Not 1 itself: a tensor of small numbers, such as a softmax along a long row, would be as good
    # as zeros.
    largest = float(np.max(sizes[np.isfinite(sizes)], initial=_SMALLEST))
    smallest = floor * min(1.0, largest)
    with np.errstate(all="ignore"):
        if others:
            ends = [expected, *(np.asarray(each, np.float64) for each in others)]
            low, high = np.minimum.reduce(ends), np.maximum.reduce(ends)
            if not is_whole:
                reach = 2 * np.maximum(high - expected, expected - low)
                low, high = expected - reach, expected + reach
            near = np.clip(actual, low, high)
            expected = np.where(np.isnan(near), expected, near)
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        share = np.abs(actual - expected) / np.maximum(smallest, np.abs(expected))
    share = np.where(same, 0.0, share)
    return float(np.max(np.where(np.isnan(share), np.inf, share), initial=0.0))


_TIE = 4 * 2.0**-24
"""How near to a tie, relatively, roundings of float32 decide: as in
`opkit.testing.numbers.condition`."""


_SHAKES = 4


class _Others:
    """What a reference is where roundings on the way go otherwise, once asked for."""

    def __init__(self, run: Callable[..., Mapping[str, Any]]) -> None:
        self.run = run

    @cached_property
    def ends(self) -> tuple[Mapping[str, Any], ...]:
        """All tensors: where roundings before a tie decide it the other way; and where values move
        by float32's last places, which is much of what is left where numbers cancel."""
        shaken = (self.run(shaken=seed) for seed in range(_SHAKES))
        return self.run(moved=_TIE), self.run(moved=-_TIE), *shaken

    def of(self, name: str, dtype: str = "") -> list[Any]:
        """Return a tensor's ends, as they lie in memory where a data type is given."""
        values = [found[name] for found in self.ends]
        if dtype not in _LIMITS:
            return values
        return [_stored(v * (1.0 + way), dtype) for v in values for way in (_TIE, -_TIE)]


def _run_part(
    part: Graph,
    inputs: Mapping[str, Any],
    attributes: Mapping[str, float],
    sizes: Mapping[str, int],
    **how: Any,
) -> Mapping[str, Any]:
    return run_nodes(part, dict(inputs), attributes, sizes, **how)


def _stored(values: Any, dtype: str) -> Any:
    """Return values as they lie in memory: what float32 has no number for is infinite."""
    if dtype in HALVES:
        return rounded_to(values, dtype)
    if dtype != "float32":
        return values
    values = np.asarray(values, np.float64)
    return np.where(np.abs(values) > _LARGEST_SINGLE, np.copysign(np.inf, values), values)


def _location(graph: Graph, tensor: str) -> Location | None:
    node = graph.producers.get(tensor)
    return node.location if node is not None else None


def is_exact(dtype: str) -> bool:
    """Return whether a data type holds no fractions."""
    return not is_floating(dtype)
