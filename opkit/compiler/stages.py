"""The stages of a compilation, each a value made of the one before it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from opkit.chips import Chip

from .choices import OWN_CHOICES, Choices
from .codegen import (
    HEAD,
    AttentionKernel,
    ProductKernel,
    VectorKernel,
    attention_kernel,
    product_kernel,
    source_of,
    vector_kernels,
    write_attention,
)
from .ir import Graph, GraphError, allowance
from .ops import OPERATORS
from .passes import FormulaForm, FusedGraph, Lowering, domain_of, lower

__all__ = [
    "Stages",
    "attention_source",
    "compile_kernel",
    "compile_stages",
    "prepare",
]


@dataclass(frozen=True)
class Stages:
    """Everything that a compilation makes of a graph, stage by stage."""

    traced: Graph
    graph: Graph
    """Taken apart and simplified."""
    fused: FusedGraph
    kernels: Mapping[str, tuple[VectorKernel, ...]]
    """The kernels of each vector group that is a kernel of its own: the first that fits a launch's
    shapes serves it."""
    products: Mapping[str, ProductKernel]
    """The kernel of each group that begins with a product."""
    attentions: Mapping[str, AttentionKernel]
    chip: Chip
    lowering: Lowering
    """What `graph` and `fused` were made for: the passes that `traced` went through."""
    choices: Choices = OWN_CHOICES

    @cached_property
    def vector(self) -> Mapping[str, tuple[VectorKernel, ...]]:
        """The kernels of all vector groups, those that come first in a product's kernel too."""
        found = dict(self.kernels)
        for product in self.products.values():
            parts = [part.name for part in product.group.before if part.kind == "vector"]
            found |= zip(parts, product.prologues, strict=True)
        return found

    @cached_property
    def texts(self) -> Mapping[str, str]:
        """Each kernel's source as people read it, in the order in which they run."""
        found: dict[str, str] = {}
        for group in self.fused.groups:
            for kernel in self.kernels.get(group.name, ()):
                found[kernel.name] = source_of(kernel)
            if group.name in self.products:
                found |= self.products[group.name].sources()
            if group.name in self.attentions:
                found[group.name] = attention_source(self.attentions[group.name])
        return found


@allowance()
def compile_stages(
    graph: Graph,
    chip: Chip,
    choices: Choices | None = None,
    *,
    hosted: bool = False,
    formulas: FormulaForm | None = None,
    one_row: frozenset[str] = frozenset(),
) -> Stages:
    """Return all stages of a graph for a chip; `choices` in place of the compiler's own.

    Args:
        hosted: the kernels are steps of an operator: what products multiply is computed in steps
            before, and attention is made of products.
        formulas: of a graph that was made of an operator's formulas.
        one_row: inputs of which a launch may give one row for all, as its `step_size` says.

    Raises:
        GraphError: it cannot be compiled, or not for this chip; at the user's line.
    """
    chosen = choices or OWN_CHOICES
    lowering = Lowering(
        "operator" if hosted else "program",
        formulas,
        fast_math=chosen.fast_math,
        apart=chosen.fusion == "none",
        sharing_cores=chip.count("cores.aiv") if chip.has_data_copy_pad else 0,
    )
    fused = replace(lower(graph, lowering), one_row=one_row)
    return _with_kernels(graph, fused, lowering, chip, chosen)


def compile_kernel(kernel: FusedGraph, chip: Chip) -> Stages:
    """Return all stages of one kernel of a program that `prepare` has taken: it by itself.

    Alone it may become simpler, as what it reads is rounded in memory, or two kernels, where more
    cores share the first; otherwise it stays as it was fused, and so does one that reads or writes
    parts of tensors.

    Raises:
        GraphError: it cannot be compiled for this chip; at the user's line.
    """
    cores = chip.count("cores.aiv") if chip.has_data_copy_pad else 0
    lowering = Lowering("kernel", sharing_cores=cores, kernel=kernel)
    graph = kernel.graph
    # Parts of tensors are known by the names that the kernel's own graph has for them.
    lowered = kernel if kernel.windows else lower(graph, lowering)
    return _with_kernels(graph, lowered, lowering, chip, OWN_CHOICES)


def _with_kernels(
    traced: Graph, fused: FusedGraph, lowering: Lowering, chip: Chip, chosen: Choices
) -> Stages:
    """Return the stages of a graph whose passes are done."""
    if not chip.has_data_copy_pad:
        _check_blocks(fused, chip)
    kernels = {
        group.name: vector_kernels(fused, group, chip, chosen)
        for group in fused.groups
        if group.kind == "vector"
    }
    products = {
        group.name: product_kernel(fused, group, chip, chosen)
        for group in fused.groups
        if group.kind == "matmul"
    }
    attentions = {
        group.name: attention_kernel(fused.graph, group.name, group.nodes[0])
        for group in fused.groups
        if group.kind == "attention"
    }
    return Stages(traced, fused.graph, fused, kernels, products, attentions, chip, lowering, chosen)


def prepare(graph: Graph, triangles: Mapping[str, int] | None = None) -> FusedGraph:
    """Return a graph as the kernels that it would be, before any of them is written.

    Unlike `compile_stages`, which takes programs as they were written, rows of several axes are
    first made rows of one, so that what follows a product of matrices joins its kernel.

    Args:
        triangles: inputs whose truths are known: true in column j of row i where j is at most i
            plus this number, or where it is more.
    Raises:
        GraphError: it cannot be compiled; at the user's line.
    """
    return lower(graph, Lowering("model", triangles=triangles or {}))


def attention_source(kernel: AttentionKernel, *, with_lines: bool = False) -> str:
    """Return an attention kernel's whole source file."""
    body = write_attention(kernel).render(with_lines=with_lines, file=f"{kernel.name}.cpp")
    return HEAD + body


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
        tensors = [graph.tensors[n] for n in (*fused.inputs_of(group), *fused.results_of(group))]
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
