"""All stages of a program on the same inputs, and the first node that differs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from .graph import Graph, Location
from .reference import from_storage, run_graph, run_nodes, to_storage
from .table import is_floating

if TYPE_CHECKING:
    from .calls import ProgramCalls

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
    for (name, before), (_, after) in zip(traced.outputs, graph.outputs, strict=True):
        limit = 1e-5
        error = difference(rewritten[after], wanted[before])
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
        scalars = program.scalars(sizes, attributes)
        for stage, results in program.stage_results(group, {**expected, **inputs}, scalars, sizes):
            for name, value in results.items():
                error = difference(value, expected[name])
                limit = 1e-5 if is_floating(graph.tensors[name].dtype) else 0.0
                if error > limit:
                    return Difference(stage, name, _location(graph, name), error, limit)
        for name in program.lowered.outputs_of(group):
            dtype = graph.tensors[name].dtype
            limit = _LIMITS.get(dtype, 0.0)
            actual = from_storage(memory[name], dtype)
            reference = from_storage(to_storage(expected[name], dtype), dtype)
            error = difference(actual, reference)
            if error > limit:
                return Difference(
                    f"kernel {group.name}", name, _location(graph, name), error, limit
                )
    return None


def difference(actual: Any, expected: Any) -> float:
    """Return the largest difference as a share of the larger of 1 and the value; infinities and
    what is no number must agree."""
    actual, expected = np.asarray(actual, np.float64), np.asarray(expected, np.float64)
    if actual.shape != expected.shape:
        return float("inf")
    with np.errstate(all="ignore"):
        same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
        share = np.abs(actual - expected) / np.maximum(1.0, np.abs(expected))
    share = np.where(same, 0.0, share)
    return float(np.max(np.where(np.isnan(share), np.inf, share), initial=0.0))


def _location(graph: Graph, tensor: str) -> Location | None:
    node = graph.producers.get(tensor)
    return node.location if node is not None else None


def is_exact(dtype: str) -> bool:
    """Return whether a data type holds no fractions."""
    return not is_floating(dtype)
