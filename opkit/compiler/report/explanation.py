"""What became of a program: kernels, why they are not one, tiles, bytes, cores."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from opkit.errors import UsageError

from ..codegen import DoesNotFit, cut_of, fitting_launch, product_launch, tile_for
from ..ir import Graph
from ..launch import launched_cores
from ..passes import PASSES, FusedGraph, Group, passes_of

if TYPE_CHECKING:
    from ..stages import Stages

__all__ = ["KernelNote", "PassNote", "explain", "pass_notes", "stage_text"]

_SCHEDULES = {
    "sort": "lines: a core sorts whole ones in UB, by runs of 32 that it merges",
    "argmax": "lines: their largest element and its index; several cores share a long one",
    "argmin": "lines: their smallest element and its index; several cores share a long one",
    "whole_sum": "lines: the scalar unit adds their whole numbers up",
    "random_uniform": "tiles: Philox, by the vector unit",
    "arange": "tiles: counted up by the vector unit",
    "take": "rows of a table are copied, each to the index that names it",
    "take_along": "elements are picked at the places that indices name",
    "join_along": "elements are joined at the places that indices name",
    "search": "numbers are looked for among sorted ones",
    "put_along": "elements are put at the places that indices name, after a copy",
    "attention": "blocks of queries and keys: cube cores multiply, vector cores keep sums of rows",
}
"""What kernels do that are neither loops over elements nor products, by their kind."""
STAGES = ("traced", "graph", "fused", "steps", "plan", "split", "ascendc")
"""Stages of a compilation. `graph` is what the last pass over graphs leaves, `fused` what the last
of all passes leaves."""


@dataclass(frozen=True)
class PassNote:
    """What one pass of the list did to a program."""

    name: str
    does: str
    condition: str
    ran: bool
    nodes: int
    """Nodes of the graph after the pass; 0 where it did not run."""
    kernels: int
    """Likewise; 0 before there are any."""


@dataclass(frozen=True)
class KernelNote:
    """One kernel of a program."""

    name: str
    kind: str
    operators: tuple[str, ...]
    separate_because: str
    """Why it is not part of a kernel before it."""
    schedule: str
    ub_bytes_per_element: float
    """Bytes for one element of a tile, over all buffers; 0 for kernels of other cores."""
    scratch_slots: int
    largest_tile: int
    """Elements; 0 where rows of no known length decide."""
    cores: int
    """For the sizes given; 0 without sizes."""
    tile: int
    tiles: int


def explain(stages: Stages, sizes: Mapping[str, int] | None = None) -> list[KernelNote]:
    """Return a note for each kernel; `sizes` of the named dimensions decide tiles and cores."""
    return [_note(stages, group, sizes) for group in stages.fused.groups if group.kind != "view"]


def _note(stages: Stages, group: Group, sizes: Mapping[str, int] | None) -> KernelNote:
    names = tuple(node.operator for node in group.all_nodes)
    kernels = stages.kernels.get(group.name, ())
    if group.name in stages.products and sizes is not None:
        uniform = dict.fromkeys(stages.fused.uniform, 0.0)
        launched = product_launch(
            stages.products[group.name],
            stages.graph,
            stages.chip,
            sizes,
            uniform,
            stages.choices,
        )
        cut = launched.cut
        tile = cut.most_rows * cut.most_columns
        schedule = "blocks" if len(group.nodes) == 1 else "blocks, finished by vector cores"
        if group.before:
            schedule = f"what is multiplied, by vector cores; {schedule}"
        return KernelNote(
            *(group.name, group.kind, names, group.why, schedule, 0.0, 0, 0),
            *(launched.cores, tile, cut.blocks),
        )
    if not kernels:
        schedule = _SCHEDULES.get(group.kind, "pieces are copied; nothing is computed")
        cores = launched_cores(stages, group, sizes) if sizes is not None else 0
        return KernelNote(group.name, group.kind, names, group.why, schedule, 0, 0, 0, cores, 0, 0)
    kernel = kernels[0]
    cores = tile = tiles = 0
    if sizes is not None:
        uniform = dict.fromkeys(stages.fused.uniform, 0.0)
        try:
            kernel, launch = fitting_launch(kernels, stages.chip, sizes, uniform, stages.choices)
        except DoesNotFit:
            kernel = kernels[-1]
        else:
            cores, tiles = launch.block_dim, launch.split.tiles
            tile = int(launch.values["tileLength"])
    columns = kernel.domain.columns
    largest = 0
    if isinstance(columns, int) or kernel.plan.program.schedule != "rows":
        largest = tile_for(kernel.plan, stages.chip, columns if isinstance(columns, int) else 0)
    return KernelNote(
        group.name,
        group.kind,
        names,
        group.why,
        kernel.plan.program.schedule,
        kernel.plan.bytes_per_element(),
        kernel.plan.counts["scratch"],
        largest,
        cores,
        tile,
        tiles,
    )


def pass_notes(stages: Stages) -> list[PassNote]:
    """Return what each pass of the compiler's list did, in its order."""
    results = {each.name: result for each, result in passes_of(stages.traced, stages.lowering)}
    found = []
    for row in PASSES:
        result = results.get(row.name)
        fused = result if isinstance(result, FusedGraph) else None
        graph = fused.graph if fused is not None else result
        nodes = len(graph.nodes) if isinstance(graph, Graph) else 0
        kernels = sum(group.kind != "view" for group in fused.groups) if fused is not None else 0
        found.append(
            PassNote(row.name, row.does, row.condition, result is not None, nodes, kernels)
        )
    return found


def stage_text(stages: Stages, stage: str, sizes: Mapping[str, int] | None = None) -> str:
    """Return one stage as text, or the program after one pass.

    Args:
        stage: one of `STAGES`, or the name of a pass.

    Raises:
        UsageError: there is none of this name, or the pass did not run for this program.
    """
    names = [row.name for row in PASSES]
    if stage in names:
        row = PASSES[names.index(stage)]
        for each, result in passes_of(stages.traced, stages.lowering):
            if each is row:
                return str(result)
        raise UsageError(
            f"the pass {stage} did not run for {stages.traced.name}",
            help=f"it runs {row.condition}; --dump list says which ran",
        )
    if stage not in STAGES:
        raise UsageError(
            f'there is no stage or pass "{stage}"',
            help=f"stages: {', '.join(STAGES)}; passes: {', '.join(names)}",
        )
    kernels = [kernel for group in stages.vector.values() for kernel in group]
    if stage == "traced":
        return str(stages.traced)
    if stage == "graph":
        return str(stages.graph)
    if stage == "fused":
        return str(stages.fused)
    if stage == "steps":
        return "\n\n".join(f"kernel {k.name}\n{k.plan.program}" for k in kernels)
    if stage == "plan":
        return "\n\n".join(f"kernel {k.name}\n{k.plan}" for k in kernels)
    if stage == "split":
        uniform = dict.fromkeys(stages.fused.uniform, 0.0)
        parts = []
        for product in stages.products.values():
            cut = cut_of(product, stages.graph, stages.chip, sizes or {}, stages.choices)
            parts.append(f"kernel {product.group.name}\n{cut}")
        for group in stages.vector.values():
            with suppress(DoesNotFit):
                kernel, launch = fitting_launch(
                    group, stages.chip, sizes or {}, uniform, stages.choices
                )
                parts.append(f"kernel {kernel.name}\n{launch.split}")
        return "\n\n".join(parts)
    return "\n".join(stages.texts.values())
