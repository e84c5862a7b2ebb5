"""The kernels that a generated operator has for one group of a program: each with its class, and
with how the host's code launches it.

Vector kernels are the compiler's own; here are the others, written for all shapes of a rank.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from opkit.dtypes import find_dtype
from opkit.errors import UsageError

from .dimensions import Dimension, product
from .fusion import Group
from .graph import GraphError, Node, Tensor
from .kernel_class import KernelClass, TilingValue
from .movements import MOVEMENTS, constant_bits
from .moving import (
    boxes_of,
    copy_values,
    count_values,
    lookup_values,
    pieces_of,
    write_copy,
    write_count,
    write_lookup,
)
from .stages import Stages
from .vector_kernels import VectorKernel

__all__ = ["HostedKernel", "OperatorKernel", "operator_kernels"]

ExtentOf: TypeAlias = Callable[[Dimension], Any]


@dataclass(frozen=True)
class HostedKernel:
    """A kernel that is no vector kernel."""

    text: KernelClass
    arguments: tuple[str, ...]
    """The tensors behind its addresses, in order."""
    launch: Callable[[Any, ExtentOf], tuple[Any, Sequence[TilingValue]]]
    """Returns the cores that it takes and its tiling data, from the cores that the chip has and the
    numbers of named sizes: Python's, or terms of C++."""


OperatorKernel: TypeAlias = VectorKernel | HostedKernel


def operator_kernels(stages: Stages, group: Group) -> tuple[OperatorKernel, ...]:
    """Return the kernels of a group of which the first that fits a launch's shapes serves it.

    Raises:
        GraphError: it is of a kind whose launch is not written in host code.
    """
    if group.kind == "vector":
        return stages.kernels[group.name]
    if group.kind in MOVEMENTS:
        return (_movement(stages, group),)
    node = group.nodes[0]
    raise GraphError(
        f"the formulas take a kernel of {group.kind}, which a generated operator does not have",
        location=node.location,
        help="write the program in Python: opkit compile",
    )


def _movement(stages: Stages, group: Group) -> HostedKernel:
    (node,) = group.nodes
    graph = stages.fused.graph
    inputs = [graph.tensors[name] for name in node.inputs]
    arguments = (*node.inputs, node.output.name)
    output = node.output
    if node.operator == "arange":
        text = write_count(group.name, _cpp(output), node.location)
        return HostedKernel(
            *(text, arguments), lambda cores, of: count_values(of(output.size), cores)
        )
    if node.operator == "take":
        return _lookup(group, node, inputs, arguments)
    size = _bytes(output)
    shapes = [tensor.shape for tensor in inputs]
    pieces = pieces_of(node.operator, node.settings, shapes, output.shape)
    try:
        boxes = boxes_of(pieces, size)
        bits = constant_bits(node.settings.get("value", 0.0), output.dtype, size)
    except UsageError as err:
        raise GraphError(err.message, location=node.location, help=err.help) from err
    outer = max(len(box.outer) for box in boxes)
    text = write_copy(group.name, len(inputs), len(boxes), size, node.location, outer)

    def launch(cores: Any, extent_of: ExtentOf) -> tuple[Any, Sequence[TilingValue]]:
        sizes = [tensor.size for tensor in inputs]
        return copy_values(boxes, sizes, output.size, size, bits, cores, outer, extent_of)

    return HostedKernel(text, arguments, launch)


def _lookup(
    group: Group, node: Node, inputs: Sequence[Tensor], arguments: tuple[str, ...]
) -> HostedKernel:
    table, indices = inputs
    axis = node.settings["axis"]
    assert isinstance(axis, int)
    size = _bytes(table)
    text = write_lookup(group.name, size, _cpp(indices), node.location)

    def launch(cores: Any, extent_of: ExtentOf) -> tuple[Any, Sequence[TilingValue]]:
        shape = [extent_of(extent) for extent in table.shape]
        return lookup_values(shape, axis, extent_of(product(indices.shape)), size, cores)

    return HostedKernel(text, arguments, launch)


def _bytes(tensor: Tensor) -> int:
    row = find_dtype(tensor.dtype)
    assert row is not None
    return row.size_bytes


def _cpp(tensor: Tensor) -> str:
    row = find_dtype(tensor.dtype)
    assert row is not None
    return row.kernel
