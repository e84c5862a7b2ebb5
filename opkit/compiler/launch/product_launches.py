"""Launches of the kernels that multiply matrices."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping

from ..codegen import Spread, product_launch
from ..passes import Group
from ..stages import Stages
from .launch import Argument, Code, Launch, Room, Sized, TensorArgument, sized

__all__ = ["launch_product"]


def launch_product(
    stages: Stages, group: Group, sizes: Mapping[str, int], scalars: Mapping[str, float]
) -> Launch:
    """Return the launch of a product and of what its kernel does before and after it."""
    kernel = stages.products[group.name]
    node = group.nodes[0]
    launched = product_launch(kernel, stages.graph, stages.chip, sizes, scalars, stages.choices)
    chosen = tuple(vector for vector, _ in launched.prologues)
    outer = sized(stages, node.output.name, sizes).shape[:-2]
    arguments: list[Argument] = [
        _batched(sized(stages, each, sizes), outer) for each in node.inputs
    ]
    if kernel.bias:
        arguments.append(TensorArgument(kernel.bias))
    if kernel.epilogue is not None:
        product = kernel.epilogue.product
        arguments += [
            Room(launched.slots, kernel.sums) if name == product else TensorArgument(name)
            for name in kernel.epilogue.arguments
        ]
    else:
        arguments.append(TensorArgument(stages.fused.outputs_of(group)[0]))
    for vector, _ in launched.prologues:
        arguments += map(TensorArgument, vector.text.arguments)
    for _, launch in launched.prologues:
        arguments += [launch.data, struct.pack("=I", launch.block_dim)]
    code = Code(
        kernel.name(chosen),
        lambda: kernel.source(chosen, with_lines=True),
        mode=kernel.mode,
        part=kernel.as_class if kernel.stands_alone else None,
    )
    return Launch(code, (*arguments, launched.data), launched.cores)


def _batched(matrices: Sized, outer: tuple[int, ...]) -> TensorArgument:
    """Return matrices with one for each batch, or one for all."""
    own, matrix = matrices.shape[:-2], matrices.shape[-2:]
    if math.prod(own) == 1 or own == outer:
        return matrices.operand
    # Broadcast along some batch axes only: laid out once by the host.
    return TensorArgument(matrices.name, Spread(matrices.shape, (*outer, *matrix)))
