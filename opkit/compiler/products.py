"""Launching products of matrices."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from .cube import ProductShape, product_data, write_product
from .fusion import Group
from .graph import GraphError

if TYPE_CHECKING:
    from .compiled import Compiled

__all__ = ["product_source", "run_product"]

_HEAD = (
    "#define ASCENDC_CUBE_ONLY\n"
    '#include "kernel_operator.h"\n#include "lib/matmul_intf.h"\n\nusing namespace AscendC;\n\n'
)
_TYPES = ("float16", "bfloat16", "float32", "int8")


def product_source(program: Compiled, group: Group) -> tuple[str, str]:
    """Return a product's kernel: its name and its text.

    Raises:
        GraphError: the cube does not multiply these types.
    """
    graph = program.stages.graph
    node = group.nodes[0]
    left, right = graph.inputs_of(node)
    if left.dtype != right.dtype or left.dtype not in _TYPES:
        raise GraphError(
            f"the cube does not multiply {left.dtype} by {right.dtype}",
            location=node.location,
            help=f"both matrices have one of {', '.join(_TYPES)}",
        )
    bias = bias_of(program, group)
    result = group.nodes[-1].output.dtype
    flags = node.settings
    text = write_product(
        group.name,
        left.dtype,
        right.dtype,
        result,
        transpose_left=bool(flags["transpose_a"]),
        transpose_right=bool(flags["transpose_b"]),
        bias=graph.tensors[bias].dtype if bias else None,
    )
    return group.name, _HEAD + text.render()


def bias_of(program: Compiled, group: Group) -> str | None:
    """Return the tensor that a product's sums begin with."""
    if len(group.nodes) == 1:
        return None
    product = group.nodes[0].output.name
    return next(name for name in group.nodes[1].inputs if name != product)


def run_product(
    program: Compiled, group: Group, memory: dict[str, Any], sizes: Mapping[str, int]
) -> None:
    """Run a product; its result appears in memory."""
    node = group.nodes[0]
    left, right = (memory[name] for name in node.inputs)
    result = program.room(group.nodes[-1].output.name, memory, sizes)
    m, n = result.shape[-2:]
    k = left.shape[-2] if node.settings["transpose_a"] else left.shape[-1]
    outer = result.shape[:-2]
    left, left_shared = _batched(left, outer)
    right, right_shared = _batched(right, outer)
    if result.size == 0:
        return
    shape = ProductShape(int(np.prod(outer)), m, n, k, left_shared, right_shared)
    cores, data = product_data(
        shape, program.stages.graph.tensors[node.inputs[0]].dtype, program.stages.chip
    )
    kernel = program.native(group.name, lambda: product_source(program, group)[1], mode="cube")
    bias = bias_of(program, group)
    extra = [memory[bias]] if bias else []
    kernel.launch([left, right, *extra, result, data], cores)


def _batched(matrices: Any, outer: tuple[int, ...]) -> tuple[Any, bool]:
    """Return matrices with one for each batch, or one for all."""
    own = matrices.shape[:-2]
    if int(np.prod(own)) == 1:
        return matrices, True
    if own == outer:
        return matrices, False
    # Broadcast along some batch axes only: laid out once by the host.
    return np.ascontiguousarray(np.broadcast_to(matrices, (*outer, *matrices.shape[-2:]))), False
