"""The stages of a compilation, each a value made of the one before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from opkit.chips import Chip

from .attention import (
    AttentionKernel,
    absorb_transposes,
    attention_kernel,
    recognise_attention,
    write_attention,
)
from .choices import OWN_CHOICES, Choices
from .collapsing import collapse
from .dimensions import evaluate
from .fusion import FusedGraph, Group, fuse
from .graph import Graph, GraphError, Node
from .operators import OPERATORS
from .products import ProductKernel, product_kernel
from .rewrite import expand, simplify
from .sinking import join_slices, movements, sink_transposes
from .text import identifier
from .vector import (
    Domain,
    KernelText,
    Plan,
    TilingLayout,
    domain_of,
    layout_of,
    lower_group,
    plan_memory,
    tile_for,
    write_kernel,
)

__all__ = [
    "Stages",
    "VectorKernel",
    "attention_source",
    "compile_stages",
    "prepare",
    "source_of",
]


@dataclass(frozen=True)
class VectorKernel:
    """One vector group through the stages after fusion, for one schedule."""

    group: Group
    domain: Domain
    plan: Plan
    layout: TilingLayout
    text: KernelText

    @property
    def name(self) -> str:
        """The kernel's entry point."""
        return self.text.name


@dataclass(frozen=True)
class Stages:
    """Everything that a compilation makes of a graph, stage by stage."""

    traced: Graph
    graph: Graph
    """Taken apart and simplified."""
    fused: FusedGraph
    kernels: Mapping[str, tuple[VectorKernel, ...]]
    """The kernels of each vector group: the first that fits a launch's shapes serves it."""
    products: Mapping[str, ProductKernel]
    """The kernel of each group that begins with a product."""
    attentions: Mapping[str, AttentionKernel]
    chip: Chip
    choices: Choices = OWN_CHOICES

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Each kernel's source as people read it, in the order in which they run."""
        found: dict[str, str] = {}
        for group in self.fused.groups:
            for kernel in self.kernels.get(group.name, ()):
                found[kernel.name] = source_of(kernel)
            if group.name in self.products:
                found[group.name] = self.products[group.name].source()
            if group.name in self.attentions:
                found[group.name] = attention_source(self.attentions[group.name])
        return found


def compile_stages(graph: Graph, chip: Chip, choices: Choices | None = None) -> Stages:
    """Return all stages of a graph for a chip; `choices` in place of the compiler's own.

    Raises:
        GraphError: it cannot be compiled, or not for this chip; at the user's line.
    """
    simple = absorb_transposes(simplify(expand(recognise_attention(graph), fractions_only=True)))
    chosen = choices or OWN_CHOICES
    fused = fuse(simple, apart=chosen.fusion == "none")
    if not chip.has_data_copy_pad:
        _check_blocks(fused, chip)
    kernels = {
        group.name: _kernels_of(fused, group, chip, chosen)
        for group in fused.groups
        if group.kind == "vector"
    }
    products = {
        group.name: product_kernel(fused, group) for group in fused.groups if group.kind == "matmul"
    }
    attentions = {
        group.name: attention_kernel(simple, group.name, group.nodes[0])
        for group in fused.groups
        if group.kind == "attention"
    }
    return Stages(graph, simple, fused, kernels, products, attentions, chip, chosen)


def prepare(graph: Graph) -> FusedGraph:
    """Return a graph as the kernels that it would be, before any of them is written.

    Unlike `compile_stages`, which takes programs as they were written, rows of several axes are
    first made rows of one, so that what follows a product of matrices joins its kernel.

    Raises:
        GraphError: it cannot be compiled; at the user's line.
    """
    expanded = simplify(expand(recognise_attention(graph)))
    simple = _settled(expanded)
    sunk = sink_transposes(expanded)
    if sunk is not expanded:
        other = _settled(simplify(sunk))
        simple = other if movements(other) < movements(simple) else simple
    return fuse(simple)


def _settled(graph: Graph) -> Graph:
    return join_slices(absorb_transposes(simplify(collapse(graph))))


_HEAD = '#include "kernel_operator.h"\n\nusing namespace AscendC;\n\n'


def attention_source(kernel: AttentionKernel, *, with_lines: bool = False) -> str:
    """Return an attention kernel's whole source file."""
    body = write_attention(kernel).render(with_lines=with_lines, file=f"{kernel.name}.cpp")
    return _HEAD + body


def source_of(kernel: VectorKernel, *, with_lines: bool = False, file: str = "") -> str:
    """Return a kernel's whole source file."""
    body = kernel.text.text.render(with_lines=with_lines, file=file)
    return _HEAD + body


def _kernels_of(
    fused: FusedGraph, group: Group, chip: Chip, choices: Choices
) -> tuple[VectorKernel, ...]:
    domain = domain_of(fused.graph, group.nodes)
    found: list[VectorKernel] = []
    # The one asked for first; what it cannot do the others still can.
    schedules = sorted(_schedules(domain, chip), key=lambda name: name != choices.schedule)
    for schedule in schedules:
        name = group.name if not found else f"{group.name}_{schedule}"
        kernel = _kernel(fused, group, chip, domain, schedule, name, choices)
        if isinstance(domain.columns, int) and not tile_for(kernel.plan, chip, domain.columns):
            continue
        found.append(kernel)
        if isinstance(domain.columns, int):
            break
    if not found:
        last = group.nodes[-1]
        schedule = _schedules(domain, chip)[-1]
        plan = _kernel(fused, group, chip, domain, schedule, group.name, choices).plan
        raise _overflow(plan, chip, last)
    return tuple(found)


_BLOCK_CHIP_TYPES = ("float16", "float32", "int32", "bool")
"""Data types that kernels of a chip without DataCopyPad convert to the one that they compute in."""


def _check_blocks(fused: FusedGraph, chip: Chip) -> None:
    """Refuse kernels that a chip without DataCopyPad does not run: it copies whole blocks of 32
    bytes, so that tensors have rows.

    Raises:
        GraphError: at the user's line.
    """
    graph = fused.graph
    for group in fused.groups:
        if group.kind == "view":
            continue
        node = group.nodes[-1]
        tensors = [graph.tensors[n] for n in (*fused.inputs_of(group), *fused.outputs_of(group))]
        what = ""
        if group.kind != "vector":
            what = f"{node.operator} is a kernel that only chips like the Ascend910B2 run"
        elif others := [t for t in tensors if t.dtype not in _BLOCK_CHIP_TYPES]:
            what = f"{others[0]} is none of {', '.join(_BLOCK_CHIP_TYPES)}"
        elif rounding := [
            n for n in group.nodes if OPERATORS[n.operator].vector.startswith("Round")
        ]:
            node = rounding[0]
            what = "it does not round float32 to whole numbers"
        else:
            domain = domain_of(graph, group.nodes)
            single = [t for t in tensors if not domain.varies[t.name][-1]]
            if single:
                what = f"it copies 32 bytes at least, and {single[0]} has one element a row"
        if what:
            raise GraphError(
                f"the program does not run on {chip.name}: {what}", location=node.location
            )


_LEAST_TILE = 256
"""Elements of the smallest tile."""


def _overflow(plan: Plan, chip: Chip, node: Node) -> GraphError:
    """Return the error of a kernel of which not even the smallest tile fits: what its buffers take,
    and how many results would fit."""
    room = chip.count("memory.ub_bytes")
    moved = {"inputs": plan.input_bytes, "results": plan.output_bytes}
    takes = {
        f"{len(rows)} {what} {plan.buffers} times": plan.buffers * sum(size for _, size in rows)
        for what, rows in moved.items()
        if rows
    }
    takes["what is computed on the way"] = 4 * plan.counts.get("scratch", 0)
    listed = ", ".join(f"{_LEAST_TILE * size} for {what}" for what, size in takes.items() if size)
    fixed = plan.fixed_bytes()
    total = fixed + int(plan.bytes_per_element() * _LEAST_TILE)
    each = _LEAST_TILE * plan.buffers * max((size for _, size in plan.output_bytes), default=4)
    fits = len(plan.output_bytes) - -(-(total - room) // each)
    return GraphError(
        f"a tile of {_LEAST_TILE} elements takes {total} of the {room} bytes of UB:"
        f" {listed}, {fixed} whatever the tile",
        location=node.location,
        help=f"return {fits} values at once, with which such a tile fits, or split the program"
        if fits > 0
        else "split the program",
    )


def _kernel(
    fused: FusedGraph,
    group: Group,
    chip: Chip,
    domain: Domain,
    schedule: str,
    name: str,
    choices: Choices,
) -> VectorKernel:
    program = lower_group(fused, group, domain, schedule)
    plan = plan_memory(program)
    if choices.buffers:
        plan = replace(plan, buffers=choices.buffers)
    names = {tensor: output for output, tensor in fused.graph.outputs}
    tensors = [*program.inputs, *(tensor for tensor, _ in program.outputs)]
    stems: dict[str, str] = {}
    for tensor in tensors:
        wanted = identifier(names.get(tensor.name, tensor.name))
        while wanted in stems.values():
            wanted += "Out"
        stems[tensor.name] = wanted
    layout = layout_of(plan, stems, copies_blocks=not chip.has_data_copy_pad)
    text = write_kernel(name, fused.graph, plan, layout)
    return VectorKernel(group, domain, plan, layout, text)


def _schedules(domain: Domain, chip: Chip) -> tuple[str, ...]:
    """Return the schedules worth having, the preferred one first."""
    single = len(domain.extents) == 2 and domain.rows == 1
    if domain.reduces == "rows":
        return ("down",)
    if domain.reduces:
        return ("rows", "parts")
    if single:
        return ("parts",)
    cores = chip.count("cores.aiv") or chip.count("cores.aic")
    if all(isinstance(extent, int) for extent in domain.extents):
        rows = 1
        for extent in domain.extents[:-1]:
            rows *= evaluate(extent, {})
        if rows < cores and evaluate(domain.columns, {}) >= 4096:
            return ("parts", "rows")
    return ("rows", "parts")
