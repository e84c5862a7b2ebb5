"""What became of a model: sub-graphs, what was compiled, why not the rest, modelled times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from opkit.chips import Chip, find_chip
from opkit.errors import OpkitError
from opkit.graph.backend import CompiledGraph, opkit, watching
from opkit.graph.program import CompiledSegment
from opkit.graph.segments import Left, alone
from opkit.graph.translation import does_nothing, is_view, operator_name, translate

__all__ = ["Explanation", "SegmentNote", "described", "explain", "launches_us", "modelled_us"]


@dataclass(frozen=True)
class SegmentNote:
    """One compiled sub-graph."""

    kind: str
    """`inference`, `forward` or `backward`."""
    nodes: tuple[str, ...]
    """The operators that do work, as torch names them."""
    kernels: tuple[str, ...]
    """In the order of the launches."""
    arena_bytes: int
    """Bytes of intermediate results, with memory used again."""
    unshared_bytes: int
    """The same if it were not."""
    fused_us: float
    """Modelled time of all launches."""
    apart_us: float | None
    """Modelled time of a launch for each node; None where that was not asked for."""


@dataclass(frozen=True)
class Explanation:
    """A model as opkit sees it; `print` it for a table."""

    segments: tuple[SegmentNote, ...]
    left: tuple[Left, ...]
    """What torch runs, views included."""
    chip: str
    sources: dict[str, str] = field(repr=False, default_factory=dict)
    """The kernels' Ascend C by name."""

    @property
    def compiled(self) -> int:
        """Nodes that kernels compute."""
        return sum(len(segment.nodes) for segment in self.segments)

    @property
    def share(self) -> float:
        """Share of the nodes that do work which kernels compute; 1 where there are none."""
        rest = sum(not left.is_view for left in self.left)
        return self.compiled / (self.compiled + rest) if self.compiled + rest else 1.0

    def __str__(self) -> str:
        rows = [("sub-graph", "nodes", "kernels", "fused us", "apart us", "memory")]
        for index, each in enumerate(self.segments):
            apart = "" if each.apart_us is None else f"{each.apart_us:.1f}"
            memory = f"{each.arena_bytes} of {each.unshared_bytes} B"
            rows.append(
                (
                    f"{index} {each.kind}",
                    str(len(each.nodes)),
                    str(len(each.kernels)),
                    f"{each.fused_us:.1f}",
                    apart,
                    memory,
                )
            )
        widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
        lines = ["  ".join(c.ljust(w) for c, w in zip(r, widths, strict=True)) for r in rows]
        lines = [line.rstrip() for line in lines]
        work = [left for left in self.left if not left.is_view]
        views = len(self.left) - len(work)
        lines.append(
            f"{self.compiled} of {self.compiled + len(work)} nodes compiled ({self.share:.0%}) for"
            f" the {self.chip}; {views} views, which take no kernel"
        )
        for left in work:
            lines.append(
                f"torch runs {left.node} ({left.operator}, {left.location}): {left.reason}"
            )
        return "\n".join(lines)


def explain(
    model: Any,
    inputs: Sequence[Any],
    *,
    training: bool = False,
    one_by_one: bool = True,
    chip: str | None = None,
) -> Explanation:
    """Compile a model for some inputs and say what became of it.

    Args:
        training: with the backward of the sum of its first result.
        one_by_one: also compile each node alone, for the time that it would take.
        chip: the configured device's without one.
    Raises:
        UsageError: there is no such chip.
    """

    def backend(module: Any, examples: Sequence[Any]) -> Any:
        return opkit(module, examples, options={"chip": chip})

    compiled: Any = torch.compile(model, backend=backend)
    with watching() as graphs:
        if training:
            result: Any = compiled(*inputs)
            while not isinstance(result, torch.Tensor):
                result = next(iter(result.values() if isinstance(result, dict) else result))
            total: Any = result.sum()
            total.backward()
        else:
            with torch.no_grad():
                compiled(*inputs)
    from opkit.runtime import configuration

    target = find_chip(chip or configuration().chip)
    return described(graphs, target, one_by_one)


def described(graphs: Sequence[CompiledGraph], chip: Chip, one_by_one: bool) -> Explanation:
    """Return what became of some graphs; `one_by_one`: with the time of each node alone."""
    notes, left = [], []
    sources: dict[str, str] = {}
    for graph in graphs:
        left += graph.left
        for segment, nodes in zip(graph.segments, graph.sources, strict=True):
            work = [n for n in nodes if not is_view(n) and not does_nothing(n)]
            apart = sum(_alone_us(node, chip) for node in work) if one_by_one else None
            plan = segment.plan
            sources |= {kernel.name: kernel.source for kernel in plan.kernels}
            notes.append(
                SegmentNote(
                    graph.kind,
                    tuple(operator_name(node) for node in work),
                    tuple(plan.kernels[launch.kernel].name for launch in plan.launches),
                    plan.arena_bytes,
                    plan.unshared_bytes,
                    modelled_us(segment),
                    apart,
                )
            )
    return Explanation(tuple(notes), tuple(left), chip.name, sources)


def modelled_us(segment: CompiledSegment) -> float:
    """Return the modelled time of a sub-graph's launches, on tensors of its shapes."""
    return sum(launches_us(segment))


def launches_us(segment: CompiledSegment) -> list[float]:
    """Return the modelled time of each launch of a sub-graph."""
    from opkit.profiling import Profile

    given = []
    for node in segment.translation.inputs:
        example = node.meta["val"]
        given.append(torch.zeros(tuple(example.shape), dtype=example.dtype))
    with Profile(event_limit=0) as session:
        segment(*given)
    return [timeline.task_us for timeline in session.timelines]


def _alone_us(node: Any, chip: Chip) -> float:
    nodes, outputs = alone(node)
    try:
        return modelled_us(CompiledSegment("alone", translate(nodes, outputs, "alone"), chip))
    except OpkitError:
        return 0.0
