"""Launching the kernels that multiply matrices."""

from __future__ import annotations

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np

from ..codegen import epilogue_data, product_launch
from ..ir import evaluate
from ..passes import Group
from .kernel_program import KernelProgram

__all__ = ["run_product"]


def run_product(
    program: KernelProgram,
    group: Group,
    memory: dict[str, Any],
    sizes: Mapping[str, int],
    scalars: Mapping[str, float],
) -> None:
    """Run a product and what follows it; the results appear in memory."""
    kernel = program.stages.products[group.name]
    stages = program.stages
    node = group.nodes[0]
    outer = tuple(evaluate(extent, sizes) for extent in node.output.shape[:-2])
    outputs = [program.room(name, memory, sizes) for name in stages.fused.outputs_of(group)]
    if outputs[0].size == 0:
        for part in group.before:
            program.run_group(part, memory, sizes, scalars)
        return
    launched = product_launch(kernel, stages.graph, stages.chip, sizes, scalars, stages.choices)
    # Views of what the prologues will have computed.
    for part in group.before:
        for name in stages.fused.outputs_of(part) if part.kind == "vector" else ():
            program.room(name, memory, sizes)
        if part.kind == "view":
            program.run_view(part, memory, sizes)
    more: list[Any] = []
    told: list[bytes] = []
    for vector, launch in launched.prologues:
        more += [program.room(name, memory, sizes) for name in vector.text.arguments]
        told += [launch.data, struct.pack("=I", launch.block_dim)]
    chosen = tuple(vector for vector, _ in launched.prologues)
    native = program.native(
        kernel.name(chosen), lambda: kernel.source(chosen, with_lines=True), mode=kernel.mode
    )
    left, right = (_batched(memory[name], outer) for name in node.inputs)
    data = launched.data
    if kernel.epilogue is not None:
        slots, data = epilogue_data(kernel.epilogue, launched.cut, stages.chip, sizes, scalars)
        arguments = [
            np.empty(slots, kernel.sums)
            if name == kernel.epilogue.product
            else program.room(name, memory, sizes)
            for name in kernel.epilogue.arguments
        ]
        if kernel.bias:
            arguments.insert(0, memory[kernel.bias])
    elif kernel.uses_object:
        arguments = [*([memory[kernel.bias]] if kernel.bias else []), outputs[0]]
    else:
        arguments = [outputs[0]]
    native.launch([left, right, *arguments, *more, *told, data], launched.cores)


def _batched(matrices: Any, outer: tuple[int, ...]) -> Any:
    """Return matrices with one for each batch, or one for all."""
    own = matrices.shape[:-2]
    if int(np.prod(own)) == 1 or own == outer:
        return matrices
    # Broadcast along some batch axes only: laid out once by the host.
    return np.ascontiguousarray(np.broadcast_to(matrices, (*outer, *matrices.shape[-2:])))
