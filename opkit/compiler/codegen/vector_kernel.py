"""Vector groups through the stages after fusion, for each schedule that can serve them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from opkit.chips import Chip

from ..choices import OWN_CHOICES, Choices
from ..ir import Graph, GraphError, Node, evaluate, shape_text
from ..passes import Domain, FusedGraph, Group, domain_of, with_long_batches
from .text import HEAD, identifier
from .vector import (
    DoesNotFit,
    KernelText,
    Launch,
    LinesWriter,
    Plan,
    Program,
    TilingLayout,
    TypedProgram,
    TypedWriter,
    Types,
    common_types,
    in_lines,
    launch_for,
    layout_of,
    lower_group,
    plan_memory,
    tile_for,
    write_kernel,
)

__all__ = ["VectorKernel", "common_kernel", "fitting_launch", "source_of", "vector_kernels"]


@dataclass(frozen=True)
class VectorKernel:
    """One vector group through the stages after fusion, for one schedule."""

    group: Group
    domain: Domain
    plan: Plan
    layout: TilingLayout
    text: KernelText
    types: Types | None = None
    """Its type parameters, where it serves several combinations of data types."""

    @property
    def name(self) -> str:
        """The kernel's entry point."""
        return self.text.name

    @property
    def arguments(self) -> tuple[str, ...]:
        """The tensors behind its addresses, in order."""
        return self.text.arguments


def source_of(kernel: VectorKernel, *, with_lines: bool = False, file: str = "") -> str:
    """Return a kernel's whole source file."""
    body = kernel.text.text.render(with_lines=with_lines, file=file)
    return HEAD + body


def fitting_launch(
    kernels: Sequence[VectorKernel],
    chip: Chip,
    sizes: Mapping[str, int],
    scalars: Mapping[str, float],
    choices: Choices = OWN_CHOICES,
) -> tuple[VectorKernel, Launch]:
    """Return the first of a group's kernels whose tiles fit named sizes, and its launch.

    Raises:
        DoesNotFit: none fits.
        UsageError: rows are no multiple of the blocks that the chip copies.
    """
    for kernel in kernels[:-1]:
        try:
            return kernel, launch_for(kernel.layout, chip, sizes, scalars, choices)
        except DoesNotFit:
            continue
    return kernels[-1], launch_for(kernels[-1].layout, chip, sizes, scalars, choices)


def vector_kernels(
    fused: FusedGraph, group: Group, chip: Chip, choices: Choices
) -> tuple[VectorKernel, ...]:
    """Return the kernels of a vector group: the first that fits a launch's shapes serves it.

    Raises:
        GraphError: not even the smallest tile fits the unified buffer, or there is nothing to
            compute; at the user's line.
    """
    _check_elements(fused, group)
    one_row = fused.one_row & set(fused.inputs_of(group))
    domain = domain_of(
        fused.graph, group.nodes, keeps_matrices=bool(one_row), windows=fused.windows
    )
    if fused.is_planned:
        domain = with_long_batches(domain)
    spaces = {domain.space(name) for name in fused.inputs_of(group) if name in domain.varies}
    if choices.schedule == "lines" and (domain.reduces == "columns" or "row" in spaces):
        kernel = _lines_kernel(fused, group, chip, domain)
        if kernel is not None:
            return (kernel,)
    found: list[VectorKernel] = []
    # The one asked for first; what it cannot do the others still can.
    kinds = _schedules(domain, chip) if domain.reduces or not one_row else ("parts",)
    schedules = sorted(kinds, key=lambda name: name != choices.schedule)
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


def common_kernel(
    name: str, kernels: Sequence[VectorKernel], graphs: Sequence[Graph]
) -> tuple[int, VectorKernel] | None:
    """Return one kernel for several combinations of data types, and the place of the one whose
    tensors' names it has; None where they differ in more than types.

    Args:
        name: of its entry point.
        kernels: one for each combination.
        graphs: the programs that they are of.
    """
    programs = []
    for kernel, graph in zip(kernels, graphs, strict=True):
        program = kernel.plan.program
        tensors = (*program.inputs, *(tensor for tensor, _ in program.outputs))
        dtypes = tuple(graph.tensors[tensor.name].dtype for tensor in tensors)
        fields = {name: _computed(graph, name) for name in kernel.layout.field_of}
        programs.append(TypedProgram(program, dtypes, fields))
    found = common_types(programs, kernels[0].text.parameters)
    if found is None:
        return None
    at, types = found
    base = kernels[at]
    sizes = {types.parameter_of.get(*row) for row in types.combinations[at].items()}
    has_gap = base.plan.program.schedule != "parts" and len(sizes) > 1
    layout = replace(base.layout, has_gap=has_gap)
    writer = LinesWriter if base.plan.program.schedule == "lines" else TypedWriter
    text = writer(name, graphs[at], base.plan, layout, types).write()
    return at, replace(base, layout=layout, text=text, types=types)


def _computed(graph: Graph, tensor: str) -> object:
    """Return how a number is computed, whatever its type."""
    node = graph.producers[tensor]
    sources = tuple(_computed(graph, each) for each in node.inputs)
    if node.operator == "cast":
        return sources[0]
    return (node.operator, tuple(sorted(map(str, node.settings.items()))), sources)


def _check_elements(fused: FusedGraph, group: Group) -> None:
    for node in group.nodes:
        for tensor in (*fused.graph.inputs_of(node), node.output):
            if any(isinstance(extent, int) and extent == 0 for extent in tensor.shape):
                raise GraphError(
                    f"{tensor.name} of shape {shape_text(tensor.shape)} has no elements: there is"
                    " nothing to compute",
                    location=node.location,
                    help="give an axis that may be empty a name instead of the size 0",
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


def _lines_kernel(
    fused: FusedGraph, group: Group, chip: Chip, domain: Domain
) -> VectorKernel | None:
    """Return one kernel for whole rows and parts of longer ones; None where it takes two."""
    program = lower_group(fused, group, domain, "rows")
    one_row = fused.one_row & {tensor.name for tensor in program.inputs}
    lines = in_lines(replace(program, one_row=one_row))
    if lines is None or not chip.has_data_copy_pad:
        return None
    plan = plan_memory(lines)
    layout = layout_of(plan, _stems(fused, lines))
    writer = LinesWriter(group.name, fused.graph, plan, layout, Types((), {}, False, False))
    return VectorKernel(group, domain, plan, layout, writer.write())


def _stems(fused: FusedGraph, program: Program) -> dict[str, str]:
    """Return the C++ names of a program's tensors."""
    names = {tensor: output for output, tensor in fused.graph.outputs}
    stems: dict[str, str] = {}
    for tensor in (*program.inputs, *(tensor for tensor, _ in program.outputs)):
        wanted = identifier(names.get(tensor.name, tensor.name))
        while wanted in stems.values():
            wanted += "Out"
        stems[tensor.name] = wanted
    return stems


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
    program = replace(program, one_row=fused.one_row & {t.name for t in program.inputs})
    plan = plan_memory(program)
    if choices.buffers:
        plan = replace(plan, buffers=choices.buffers)
    layout = layout_of(plan, _stems(fused, program), copies_blocks=not chip.has_data_copy_pad)
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
