"""Kernels that multiply matrices, and launching them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from opkit.chips import Chip

from .choices import OWN_CHOICES, Choices
from .cube import (
    SLOTS,
    BlockProduct,
    Cut,
    Epilogue,
    ProductShape,
    chosen_cut,
    cut_product,
    epilogue_data,
    epilogue_of,
    product_data,
    write_cube_class,
    write_epilogue,
    write_object_cube,
    write_plain_product,
    write_product,
)
from .dimensions import evaluate, product, same
from .fusion import FusedGraph, Group
from .graph import Graph, GraphError, Node
from .text import Text

if TYPE_CHECKING:
    from .compiled import Compiled

__all__ = ["ProductKernel", "cut_of", "cut_shape", "product_kernel", "run_product"]

_TYPES = ("float16", "bfloat16", "float32", "int8")


@dataclass(frozen=True)
class ProductKernel:
    """A product, alone or with what vector cores make of it."""

    group: Group
    block: BlockProduct
    bias: str | None
    """The tensor that the sums begin with, for a Matmul object."""
    epilogue: Epilogue | None

    @property
    def name(self) -> str:
        """The kernel's entry point."""
        return self.group.name

    @property
    def uses_object(self) -> bool:
        """Whether a Matmul object multiplies, not the kernel block by block."""
        return not self.block.is_blocked

    @property
    def sums(self) -> str:
        """The data type in which the cube adds up."""
        return self.block.sums

    @cached_property
    def text(self) -> Text:
        """The kernel's text, without its head."""
        if self.epilogue is not None:
            cube = Text()
            if self.uses_object:
                write_object_cube(cube, self.block, self.sums)
            else:
                write_cube_class(cube, self.block, SLOTS)
            return write_epilogue(self.block, self.epilogue, cube)
        if not self.uses_object:
            return write_plain_product(self.block)
        return write_product(
            self.name,
            self.block.dtype,
            self.block.dtype,
            self.block.result,
            transpose_left=self.block.transpose_left,
            transpose_right=self.block.transpose_right,
            bias=self.bias and self.block.result,
        )

    def source(self, *, with_lines: bool = False) -> str:
        """Return the whole source file; with lines, what the compiler says names the program's."""
        head = '#include "kernel_operator.h"\n'
        if self.uses_object:
            head = f'#define ASCENDC_CUBE_ONLY\n{head}#include "lib/matmul_intf.h"\n'
        body = self.text.render(with_lines=with_lines, file=f"{self.name}.cpp")
        return f"{head}\nusing namespace AscendC;\n\n{body}"


def product_kernel(fused: FusedGraph, group: Group) -> ProductKernel:
    """Return the kernel of a group that begins with a product.

    Raises:
        GraphError: the cube does not multiply these types.
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
    bias = None if block.is_blocked else _bias_of(graph, group)
    epilogue = None
    if after and bias is None:
        epilogue = epilogue_of(fused, group, block.sums)
    return ProductKernel(group, block, bias, epilogue)


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


def cut_shape(node: Node, graph: Graph, sizes: Mapping[str, int]) -> ProductShape:
    """Return the sizes of a product's launch for named sizes."""
    left, right = graph.inputs_of(node)
    *outer, m, n = (evaluate(extent, sizes) for extent in node.output.shape)
    k = evaluate(left.shape[-2 if node.settings["transpose_a"] else -1], sizes)

    def is_shared(shape: Any) -> bool:
        return evaluate(product(shape[:-2]), sizes) == 1

    batches = int(np.prod(outer))
    return ProductShape(batches, m, n, k, is_shared(left.shape), is_shared(right.shape))


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
            cut_shape(kernel.group.nodes[0], graph, sizes),
            chip,
            is_int8=kernel.block.dtype == "int8" and not kernel.uses_object,
        ),
        chip,
        rows=choices.base_m,
        columns=choices.base_n,
        band=choices.band,
        cores=choices.cores,
    )


def run_product(
    program: Compiled,
    group: Group,
    memory: dict[str, Any],
    sizes: Mapping[str, int],
    scalars: Mapping[str, float],
) -> None:
    """Run a product and what follows it; the results appear in memory."""
    kernel = program.stages.products[group.name]
    graph, chip = program.stages.graph, program.stages.chip
    node = group.nodes[0]
    outer = tuple(evaluate(extent, sizes) for extent in node.output.shape[:-2])
    left, right = (_batched(memory[name], outer) for name in node.inputs)
    outputs = [program.room(name, memory, sizes) for name in program.stages.fused.outputs_of(group)]
    if outputs[0].size == 0:
        return
    native = program.native(
        group.name,
        lambda: kernel.source(with_lines=True),
        mode="cube" if kernel.epilogue is None else None,
    )
    choices = program.stages.choices
    cut = cut_of(kernel, graph, chip, sizes, choices)
    if kernel.epilogue is not None:
        slots, data = epilogue_data(kernel.epilogue, cut, chip, sizes, scalars)
        arguments = [
            np.empty(slots, kernel.sums)
            if name == kernel.epilogue.product
            else program.room(name, memory, sizes)
            for name in kernel.epilogue.arguments
        ]
        native.launch([left, right, *arguments, data], cut.cores)
    elif kernel.uses_object:
        cores, data = product_data(cut.shape, kernel.block.dtype, chip, choices)
        extra = [memory[kernel.bias]] if kernel.bias else []
        native.launch([left, right, *extra, outputs[0], data], cores)
    else:
        native.launch([left, right, outputs[0], cut.pack()], cut.cores)


def _batched(matrices: Any, outer: tuple[int, ...]) -> Any:
    """Return matrices with one for each batch, or one for all."""
    own = matrices.shape[:-2]
    if int(np.prod(own)) == 1 or own == outer:
        return matrices
    # Broadcast along some batch axes only: laid out once by the host.
    return np.ascontiguousarray(np.broadcast_to(matrices, (*outer, *matrices.shape[-2:])))
