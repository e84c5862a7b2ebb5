"""The launches of a program's kernels for known sizes, kind by kind."""

from __future__ import annotations

from collections.abc import Mapping

from opkit.errors import UsageError

from ..codegen import (
    VectorKernel,
    attention_data,
    attention_layout,
    fitting_launch,
    source_of,
    workspaces,
)
from ..ir import GraphError
from ..passes import Group
from ..stages import Stages, attention_source
from .launch import Argument, Code, Launch, Room, TensorArgument, sized
from .library import library_launches
from .library_calls import LIBRARY
from .movements import MOVEMENTS, movement_launches
from .product_launches import launch_product

__all__ = ["launched_cores", "launches_of", "vector_code"]


def launches_of(
    stages: Stages, group: Group, sizes: Mapping[str, int], scalars: Mapping[str, float]
) -> tuple[Launch, ...]:
    """Return the launches of one group, in order; none where it has nothing to write.

    Args:
        sizes: of the named dimensions.
        scalars: the numbers that come with the launch, by tensor.
    Raises:
        GraphError: there is no kernel for it, or not for these sizes; at the user's line.
        UsageError: not for these sizes.
    """
    if group.kind == "view":
        return ()
    if group.kind == "vector":
        return (_vector(stages, group, sizes, scalars),)
    if group.kind == "attention":
        return _attention(stages, group, sizes)
    if group.kind in MOVEMENTS:
        return movement_launches(stages, group.nodes[0], sizes)
    if group.kind in LIBRARY:
        return library_launches(stages, group, sizes, scalars)
    if group.kind != "matmul":
        raise GraphError(f"{group.kind} has no kernel yet", location=group.nodes[0].location)
    if sized(stages, stages.fused.outputs_of(group)[0], sizes).size == 0:
        # What comes first may be wanted by itself.
        parts = (launches_of(stages, part, sizes, scalars) for part in group.before)
        return tuple(launch for launches in parts for launch in launches)
    return (launch_product(stages, group, sizes, scalars),)


def launched_cores(stages: Stages, group: Group, sizes: Mapping[str, int]) -> int:
    """Return the most cores of a launch of a group; 0 where nothing is launched."""
    scalars = dict.fromkeys(stages.fused.uniform, 0.0)
    try:
        found = launches_of(stages, group, sizes, scalars)
    except UsageError:
        # The sizes do not fit: the launch itself says why.
        return 0
    return max((launch.block_dim for launch in found), default=0)


def vector_code(kernel: VectorKernel) -> Code:
    """Return a vector kernel as what is launched."""
    # The compiler gets the user's lines: faults, findings and profiles name the program's own.
    return Code(
        kernel.name,
        lambda: source_of(kernel, with_lines=True, file=f"{kernel.name}.cpp"),
        part=lambda: kernel.text.as_class,
    )


def _vector(
    stages: Stages, group: Group, sizes: Mapping[str, int], scalars: Mapping[str, float]
) -> Launch:
    kernel, launch = fitting_launch(
        stages.vector[group.name], stages.chip, sizes, scalars, stages.choices
    )
    operands = map(TensorArgument, kernel.text.arguments)
    return Launch(vector_code(kernel), (*operands, launch.data), launch.block_dim)


def _attention(stages: Stages, group: Group, sizes: Mapping[str, int]) -> tuple[Launch, ...]:
    (node,) = group.nodes
    result = sized(stages, node.output.name, sizes)
    if result.size == 0:
        return ()
    given = [sized(stages, name, sizes).shape for name in node.inputs]
    shapes, spreads = attention_layout(given, node.settings.text("turned"))
    kernel = stages.attentions[group.name]
    cores, data = attention_data(node, shapes, stages.chip)
    rooms = (Room(*room) for room in workspaces(cores, result.shape[-1], kernel.dtype))
    arguments: list[Argument] = [
        *map(TensorArgument, node.inputs, spreads),
        result.operand,
        *rooms,
        data,
    ]
    code = Code(group.name, lambda: attention_source(kernel, with_lines=True))
    return (Launch(code, tuple(arguments), cores),)
