"""All stages of a program on the same inputs, and the first node that differs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ..ir import HALVES, Graph, Location, is_floating, rounded_to
from ..tracing import from_storage, run_graph, run_nodes

if TYPE_CHECKING:
    from ..calls import ProgramCalls

__all__ = ["Difference", "verify"]

_LIMITS = {"float16": 4e-3, "bfloat16": 3e-2, "float32": 2e-5}


@dataclass(frozen=True)
class Difference:
    """The first tensor that a stage computes otherwise than float64 does."""

    stage: str
    """`graph`: after rewriting; `steps of NAME` and `plan of NAME`: a kernel's instructions, and
    these where values share slots; `kernel NAME`: what a kernel wrote."""
    tensor: str
    location: Location | None
    error: float
    """The largest difference, as a share of the larger of 1 and the value."""
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

    The rewritten graph is held against the traced one, in float64; then each kernel's stages and
    the kernel itself against float64 on what it read, so that none is blamed for the one before.
    """
    attributes = attributes or {}
    traced, graph = program.graph, program.lowered.graph
    given = {t.name: np.asarray(a) for t, a in zip(traced.inputs, arrays, strict=True)}
    wanted = run_graph(traced, given, attributes)
    rewritten = run_graph(graph, given, attributes)
    others = _Others(lambda moved: run_graph(traced, given, attributes, moved=moved))
    for (name, before), (_, after) in zip(traced.outputs, graph.outputs, strict=True):
        limit = 1e-5
        error = difference(rewritten[after], wanted[before])
        if error > limit:
            error = difference(rewritten[after], wanted[before], others.of(before))
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
        for stage, results in program.stage_results(group, {**expected, **inputs}, scalars, sizes):
            for name, value in results.items():
                dtype = graph.tensors[name].dtype
                limit = 1e-5 if is_floating(dtype) else 0.0
                error = difference(value, _stored(expected[name], dtype))
                if error > limit:
                    error = difference(
                        value, _stored(expected[name], dtype), others.of(name, dtype)
                    )
                if error > limit:
                    return Difference(stage, name, _location(graph, name), error, limit)
        for name in program.lowered.outputs_of(group):
            dtype = graph.tensors[name].dtype
            limit = _LIMITS.get(dtype, 0.0)
            actual = from_storage(memory[name], dtype)
            reference = _stored(expected[name], dtype)
            error = difference(actual, reference)
            if error > limit:
                error = difference(actual, reference, others.of(name, dtype))
            if error > limit:
                return Difference(
                    f"kernel {group.name}", name, _location(graph, name), error, limit
                )
    return None


def difference(actual: Any, expected: Any, others: Sequence[Any] = ()) -> float:
    """Return the largest difference as a share of the larger of 1 and the value; infinities and
    what is no number must agree.

    Args:
        actual: what was computed.
        expected: what is right.
        others: what is as right; so is all between.
    """
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    if actual.shape != expected.shape:
        return float("inf")
    with np.errstate(all="ignore"):
        if others:
            ends = [expected, *(np.asarray(each, np.float64) for each in others)]
            near = np.clip(actual, np.minimum.reduce(ends), np.maximum.reduce(ends))
            expected = np.where(np.isnan(near), expected, near)
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        share = np.abs(actual - expected) / np.maximum(1.0, np.abs(expected))
    share = np.where(same, 0.0, share)
    return float(np.max(np.where(np.isnan(share), np.inf, share), initial=0.0))


_TIE = 4 * 2.0**-24
"""How near to a tie, relatively, roundings of float32 decide: as in
`opkit.testing.numbers.condition`."""


class _Others:
    """What a reference is where roundings before a tie decide it the other way, once asked for."""

    def __init__(self, run: Callable[[float], Mapping[str, Any]]) -> None:
        self.run = run

    @cached_property
    def ends(self) -> tuple[Mapping[str, Any], ...]:
        """All tensors, either way."""
        return self.run(_TIE), self.run(-_TIE)

    def of(self, name: str, dtype: str = "") -> list[Any]:
        """Return a tensor's ends, as they lie in memory where a data type is given."""
        values = [found[name] for found in self.ends]
        if dtype not in HALVES:
            return values
        return [_stored(v * (1.0 + way), dtype) for v in values for way in (_TIE, -_TIE)]


def _run_part(
    part: Graph,
    inputs: Mapping[str, Any],
    attributes: Mapping[str, float],
    sizes: Mapping[str, int],
    moved: float,
) -> Mapping[str, Any]:
    return run_nodes(part, dict(inputs), attributes, sizes, moved=moved)


def _stored(values: Any, dtype: str) -> Any:
    return rounded_to(values, dtype) if dtype in HALVES else values


def _location(graph: Graph, tensor: str) -> Location | None:
    node = graph.producers.get(tensor)
    return node.location if node is not None else None


def is_exact(dtype: str) -> bool:
    """Return whether a data type holds no fractions."""
    return not is_floating(dtype)
