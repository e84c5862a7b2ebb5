"""Kernels that multiply matrices, and launching them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from opkit.chips import Chip

from ..choices import OWN_CHOICES, Choices
from ..ir import Graph, GraphError, Node, evaluate, is_one, product, same
from ..passes import FusedGraph, Group
from .cube import (
    BLOCK_FIELDS,
    SLOTS,
    BlockProduct,
    Cut,
    Epilogue,
    ProductShape,
    Prologue,
    Work,
    chosen_cut,
    cut_product,
    epilogue_of,
    epilogue_values,
    product_values,
    write_blocks,
    write_cube_class,
    write_entry,
    write_epilogue,
    write_object_cube,
    write_object_product,
)
from .kernel_class import ExtentOf, KernelClass, TilingValue, pack_tiling
from .text import Text, upper
from .vector import Launch, tensor_values
from .vector_kernel import VectorKernel, fitting_launch, vector_kernels

__all__ = [
    "ProductKernel",
    "ProductLaunch",
    "cut_of",
    "cut_shape",
    "product_kernel",
    "product_launch",
    "product_tiling",
]

_TYPES = ("float16", "bfloat16", "float32", "int8")


Prologues = tuple[VectorKernel, ...]
"""For each vector group that comes first the kernel that serves it."""


@dataclass(frozen=True)
class ProductClasses:
    """What the cores of a product's kernel run."""

    declaration: Text
    """Declaration of the tiling structure."""
    definition: Text
    """Definition of the classes."""
    struct: str
    cube: Work
    vector: Work | None


@dataclass(frozen=True)
class ProductKernel:
    """A product, alone or with what vector cores do before and after it."""

    group: Group
    block: BlockProduct
    bias: str | None
    """The tensor of one number a column that the sums begin with."""
    epilogue: Epilogue | None
    prologues: tuple[tuple[VectorKernel, ...], ...]
    """For each vector group of `group.before` its kernels: the first that fits serves it."""

    @property
    def uses_object(self) -> bool:
        """Whether a Matmul object multiplies, not the kernel block by block."""
        return not self.block.is_blocked

    @property
    def sums(self) -> str:
        """The data type in which the cube adds up."""
        return self.block.sums

    @property
    def mode(self) -> str | None:
        """The kernel's mode, where its text does not say that it is mixed."""
        return "cube" if self.epilogue is None and not self.prologues else None

    @property
    def stands_alone(self) -> bool:
        """Whether it is all cube cores' work, block by block."""
        return self.mode is not None and not self.uses_object and self.bias is None

    def as_class(self) -> KernelClass:
        """Return a product that stands alone as a class, for a launch that it shares."""
        classes = self.classes()
        work = classes.cube
        texts = (classes.struct, classes.declaration, classes.definition)
        return KernelClass(self.group.name, work.class_name, *texts, tuple(work.arguments))

    def name(self, prologues: Prologues = ()) -> str:
        """Return the entry point of the kernel with these prologues."""
        first = [each[0] for each in self.prologues]
        others = [
            kernel.plan.program.schedule
            for kernel, usual in zip(prologues, first, strict=False)
            if kernel is not usual
        ]
        return "_".join([self.group.name, *others])

    def text(self, prologues: Prologues = ()) -> Text:
        """Return the kernel's text, without its head; `prologues` of the first ones by default."""
        chosen = prologues or tuple(each[0] for each in self.prologues)
        out = Text()
        for kernel in chosen:
            out.extend(kernel.text.body)
        classes = self.classes()
        out.extend(classes.declaration)
        out()
        out.extend(classes.definition)
        cube, vector, struct = classes.cube, classes.vector, classes.struct
        addresses = list(cube.arguments)
        if vector is not None:
            first, last = vector.arguments[:2], vector.arguments[2:]
            addresses = [*first, *(n for n in addresses if n not in vector.arguments), *last]
        entries = []
        for index, kernel in enumerate(chosen):
            names = [f"operand{index}{upper(name)}" for name in kernel.text.parameters]
            addresses += names
            entries.append(Prologue(kernel.text.class_name, kernel.text.struct, names))
        out()
        write_entry(out, self.name(chosen), struct, addresses, cube, vector, entries)
        return out

    def classes(self) -> ProductClasses:
        """Return the product's classes and their tiling structure."""
        declaration, out = Text(), Text()
        struct = self.block.struct
        if self.epilogue is not None:
            own = Text()
            if self.uses_object:
                write_object_cube(own, self.block, self.sums)
            else:
                write_cube_class(own, self.block, SLOTS)
            cube, vector = write_epilogue(declaration, out, self.block, self.epilogue, own)
            return ProductClasses(declaration, out, struct, cube, vector)
        if not self.uses_object:
            write_blocks(declaration, out, self.block, BLOCK_FIELDS, hands_over=False)
            write_cube_class(out, self.block)
            work = Work(self.block.cube_class, ("left", "right", "y"))
            return ProductClasses(declaration, out, struct, work, None)
        declaration, out, struct, work = write_object_product(
            self.group.name,
            self.block.dtype,
            self.block.dtype,
            self.block.result,
            transpose_left=self.block.transpose_left,
            transpose_right=self.block.transpose_right,
            bias=self.bias and self.block.result,
        )
        return ProductClasses(declaration, out, struct, work, None)

    def source(self, prologues: Prologues = (), *, with_lines: bool = False) -> str:
        """Return the whole source file; with lines, what the compiler says names the program's."""
        head = '#include "kernel_operator.h"\n'
        if self.uses_object:
            head = f'#define ASCENDC_CUBE_ONLY\n{head}#include "lib/matmul_intf.h"\n'
        name = self.name(prologues)
        body = self.text(prologues).render(with_lines=with_lines, file=f"{name}.cpp")
        return f"{head}\nusing namespace AscendC;\n\n{body}"

    def sources(self) -> dict[str, str]:
        """Return the source of each kernel, by entry point: the usual one first."""
        choices = itertools.product(*self.prologues)
        return {self.name(chosen): self.source(chosen) for chosen in choices}


def product_kernel(
    fused: FusedGraph, group: Group, chip: Chip, choices: Choices = OWN_CHOICES
) -> ProductKernel:
    """Return the kernel of a group that multiplies; `choices` in place of our own.

    Raises:
        GraphError: the cube does not multiply these types, or what comes before does not fit the
            unified buffer.
    """
    graph = fused.graph
    node, *after = group.nodes
    left, right = graph.inputs_of(node)
    if left.dtype != right.dtype or left.dtype not in _TYPES:
        raise GraphError(
            f"the cube does not multiply {left.dtype} by {right.dtype}",
            location=node.location,
            help=f"both matrices have one of {', '.join(_TYPES)}",
        )
    flags = node.settings
    block = BlockProduct(
        group.name,
        left.dtype,
        group.nodes[-1].output.dtype,
        bool(flags["transpose_a"]),
        bool(flags["transpose_b"]),
        node.location,
    )
    epilogue, bias = None, None
    if block.is_blocked and after:
        biased = _biased(fused, group, block.sums)
        if biased is not None:
            bias = next(n for n in biased.inputs if n != node.output.name)
            block = replace(block, bias=graph.tensors[bias].dtype)
        epilogue = epilogue_of(fused, group, block.sums, biased)
    elif after:
        bias = _bias_of(graph, group)
        epilogue = epilogue_of(fused, group, block.sums) if bias is None else None
    prologues = tuple(
        vector_kernels(fused, part, chip, choices) for part in group.before if part.kind == "vector"
    )
    return ProductKernel(group, block, bias, epilogue, prologues)


def _biased(fused: FusedGraph, group: Group, sums: str) -> Node | None:
    """Return the node that adds one number a column to a product's sums, where more follows it: the
    cube's sums begin with such a bias, which vector cores then need not add."""
    graph = fused.graph
    result, outputs = group.nodes[0].output, fused.outputs_of(group)
    users = graph.users[result.name]
    if len(users) != 1 or result.name in outputs or sums != "float32" or len(group.nodes) < 3:
        return None
    (node,) = users
    if node not in group.nodes or node.operator != "add" or node.output.name in outputs:
        return None
    others = [graph.tensors[name] for name in node.inputs if name != result.name]
    if len(others) != 1:
        return None
    (bias,) = others
    own = {n.output.name for part in group.before for n in part.nodes}
    own |= fused.uniform | {n.output.name for n in group.nodes}
    if bias.name in own or bias.dtype not in ("float16", "float32"):
        return None
    *outer, last = bias.shape or (1,)
    is_row = same(last, result.shape[-1]) and all(map(is_one, outer))
    return node if is_row and len(bias.shape) <= len(result.shape) else None


def _bias_of(graph: Graph, group: Group) -> str | None:
    """Return the tensor of one number a column that is all that is added to a product."""
    if len(group.nodes) != 2 or group.nodes[1].operator != "add":
        return None
    result, node = group.nodes[0].output, group.nodes[1]
    others = [graph.tensors[name] for name in node.inputs if name != result.name]
    if len(others) != 1 or others[0].dtype != result.dtype or result.dtype != "float32":
        return None
    (bias,) = others
    fits = len(bias.shape) == 1 and same(bias.shape[0], result.shape[-1])
    return bias.name if fits else None


def cut_shape(node: Node, graph: Graph, extent_of: ExtentOf) -> ProductShape:
    """Return the sizes of a product's launch: numbers, or terms of a host's C++."""
    left, right = graph.inputs_of(node)
    *outer, m, n = node.output.shape
    k = left.shape[-2 if node.settings["transpose_a"] else -1]

    def is_shared(shape: Any) -> bool:
        if all(map(is_one, shape[:-2])):
            return True
        count = extent_of(product(shape[:-2]))
        return isinstance(count, int) and count == 1

    return ProductShape(
        *(extent_of(each) for each in (product(outer), m, n, k)),
        *(is_shared(tensor.shape) for tensor in (left, right)),
    )


def cut_of(
    kernel: ProductKernel,
    graph: Graph,
    chip: Chip,
    sizes: Mapping[str, int],
    choices: Choices = OWN_CHOICES,
) -> Cut:
    """Return the blocks of a launch for named sizes; `choices` in place of our own.

    Raises:
        UsageError: blocks as large as was chosen do not fit.
    """
    return chosen_cut(
        cut_product(
            cut_shape(kernel.group.nodes[0], graph, lambda extent: evaluate(extent, sizes)),
            chip,
            is_int8=kernel.block.dtype == "int8" and not kernel.uses_object,
        ),
        chip,
        rows=choices.base_m,
        columns=choices.base_n,
        band=choices.band,
        cores=choices.cores,
    )


@dataclass(frozen=True)
class ProductLaunch:
    """How a product's kernel is launched for known sizes."""

    cut: Cut
    prologues: tuple[tuple[VectorKernel, Launch], ...]
    """For each vector group that comes first the kernel that serves it, and its launch."""
    cores: int
    """The cube cores that take part."""
    slots: int
    """Elements of the workspace where vector cores find what cube cores have multiplied."""
    data: bytes
    """The tiling data of the product and of what vector cores do behind it."""


def product_launch(
    kernel: ProductKernel,
    graph: Graph,
    chip: Chip,
    sizes: Mapping[str, int],
    scalars: Mapping[str, float],
    choices: Choices = OWN_CHOICES,
) -> ProductLaunch:
    """Return the launch of a product for known sizes.

    Raises:
        DoesNotFit: a vector group that comes first has no tile that fits the unified buffer, or
            what comes behind has none.
    """
    before = tuple(fitting_launch(each, chip, sizes, scalars, choices) for each in kernel.prologues)
    # Two vector cores come with each cube core. All that are launched share the blocks.
    least = max((-(-launch.block_dim // 2) for _, launch in before), default=1)
    cut = cut_of(kernel, graph, chip, sizes, choices)
    cut = replace(cut, cores=max(cut.cores, least))
    most_cores = chip.count("cores.aic")
    used, slots, values = product_tiling(
        kernel,
        cut.shape,
        lambda: cut,
        chip,
        min(most_cores, choices.cores or most_cores),
        lambda extent: evaluate(extent, sizes),
        scalars,
        choices=choices,
        least_cores=least,
    )
    return ProductLaunch(cut, before, max(used, least), slots, pack_tiling(values))


def product_tiling(
    kernel: ProductKernel,
    shape: ProductShape,
    cut_of_shape: Callable[[], Cut],
    chip: Chip,
    cores: Any,
    extent_of: ExtentOf,
    scalars: Mapping[str, Any],
    *,
    choices: Choices = OWN_CHOICES,
    least_cores: int = 1,
) -> tuple[Any, Any, Sequence[TilingValue]]:
    """Return the cube cores that a launch takes, the elements of the workspace between them and
    vector cores, and its tiling data: numbers, or terms of a host's C++.

    Args:
        kernel: what is launched.
        shape: the sizes of the launch.
        cut_of_shape: returns the blocks; not asked where the Matmul object cuts.
        chip: for its unified buffer.
        cores: that there are.
        extent_of: an extent's number.
        scalars: the numbers that come with the launch, by tensor.
        choices: in place of the Matmul object's own tiles.
        least_cores: that take part in any case where the Matmul object cuts.

    Raises:
        DoesNotFit: known sizes leave what follows the product no tile in the unified buffer.
    """
    epilogue = kernel.epilogue
    if epilogue is None and kernel.uses_object:
        dtype = kernel.block.dtype
        used, values = product_values(shape, dtype, cores, choices, least_cores=least_cores)
        return used, 0, values
    cut = cut_of_shape()
    if epilogue is None:
        rows = zip(BLOCK_FIELDS, cut.values(), strict=True)
        return cut.cores, 0, [TilingValue(name, kind, value) for (name, kind, _), value in rows]
    slots, members = epilogue_values(epilogue, cut, chip)
    members |= tensor_values(epilogue.layout, extent_of)
    members |= {field: scalars[tensor] for tensor, field in epilogue.layout.field_of.items()}
    members[f"{epilogue.stems[epilogue.product]}Size"] = slots
    return (
        cut.cores,
        slots,
        [
            TilingValue(member.name, member.cpp_type, members.get(member.name, 0))
            for member in epilogue.layout.fields
        ],
    )
