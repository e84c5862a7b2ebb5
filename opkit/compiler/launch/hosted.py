"""The kernels that a generated operator has for one group of a program: each with its class, and
with how the host's code launches it.

Vector kernels are the compiler's own; here are the others, written for all shapes of a rank.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from opkit.chips import Chip

from ..codegen import (
    Cut,
    ExtentOf,
    KernelClass,
    LaunchRule,
    ProductKernel,
    ProductShape,
    Term,
    Text,
    TilingValue,
    VectorKernel,
    Work,
    cut_call,
    cut_product,
    cut_shape,
    most_slots,
    product_tiling,
)
from ..ir import Graph, GraphError, Node, Tensor, is_one, same, shape_text
from ..passes import Group
from ..stages import Stages
from .hosted_library import library_class
from .library import HOMES
from .library_calls import LIBRARY, library_call
from .movements import MOVEMENTS, Movement, movement_of, whole_copy

__all__ = ["HostedKernel", "OperatorKernel", "Share", "operator_kernels", "shares_of_kernel"]


@dataclass(frozen=True)
class Share:
    """What one kind of core runs of a kernel."""

    kind: Literal["vector", "cube"]
    class_name: str
    arguments: tuple[str, ...]
    """The tensors behind the addresses that its Init takes, before its tiling data."""


@dataclass(frozen=True)
class HostedKernel:
    """A kernel that is no vector kernel."""

    text: KernelClass
    shares: tuple[Share, ...]
    launch: LaunchRule
    """Returns the cores that it takes and its tiling data, from the cores that the chip has, the
    numbers of named sizes and those that come with a launch: Python's, or C++."""
    rooms: tuple[Tensor, ...] = ()
    """What its cores hand over to each other in the workspace."""
    uses_object: bool = False
    """Whether it needs the header of the Matmul object."""
    first: HostedKernel | None = None
    """What all cores have to be done with before."""
    header: str = ""
    """The header of the device's library that it needs. Its function is shared by all vector cores
    that are launched."""

    @property
    def counts_cube(self) -> bool:
        """Whether its cores are cube cores, each with its vector cores."""
        return any(share.kind == "cube" for share in self.shares)


OperatorKernel: TypeAlias = VectorKernel | HostedKernel


def shares_of_kernel(kernel: OperatorKernel) -> tuple[Share, ...]:
    """Return what each kind of core runs of a kernel."""
    if isinstance(kernel, VectorKernel):
        return (Share("vector", kernel.text.class_name, kernel.text.arguments),)
    return kernel.shares


def operator_kernels(stages: Stages, group: Group) -> tuple[OperatorKernel, ...]:
    """Return the kernels of a group of which the first that fits a launch's shapes serves it.

    Raises:
        GraphError: it is of a kind whose launch is not written in host code.
    """
    if group.kind == "vector":
        return stages.kernels[group.name]
    if group.kind in MOVEMENTS:
        node = group.nodes[0]
        operands = stages.fused.graph.inputs_of(node)
        movement = movement_of(node, operands, node.output, node.settings, outer=None)
        return (_moving(group.name, movement),)
    if group.kind == "matmul":
        return (_product(stages, group),)
    if group.kind in LIBRARY:
        fused = stages.fused
        operands = fused.graph.inputs_of(group.nodes[0])
        call = library_call(group, operands, [n.output for n in group.nodes], fused.uniform)
        text, header = library_class(group, call), HOMES[call.function][0]
        share = Share("vector", text.class_name, tuple(call.tensors.values()))
        first = None
        if group.kind == "put_along":
            # The first operand, at first, into the output, of which the rest is put there.
            (node,) = group.nodes
            begun = whole_copy(node, fused.graph.inputs_of(node)[0], node.output, outer=None)
            first = _moving(f"{group.name}_begin", begun)
        return (HostedKernel(text, (share,), call.rule, first=first, header=header),)
    node = group.nodes[0]
    raise GraphError(
        f"the formulas take a kernel of {group.kind}, which a generated operator does not have",
        location=node.location,
        help="write the program in Python: opkit compile",
    )


def _moving(name: str, movement: Movement) -> HostedKernel:
    text = movement.write(name)
    share = Share("vector", text.class_name, movement.tensors)
    return HostedKernel(text, (share,), movement.rule)


def _product(stages: Stages, group: Group) -> HostedKernel:
    graph, chip = stages.fused.graph, stages.chip
    kernel = stages.products[group.name]
    if kernel.prologues:
        raise GraphError(
            "what a product multiplies is computed in its kernel", location=group.nodes[0].location
        )
    node = group.nodes[0]
    _check_batches(graph, node)
    classes = kernel.classes()
    # Classes that several products have under one name.
    space = kernel.block.stem + "Parts"
    definition = Text()
    definition(f"namespace {space} {{")
    definition.extend(classes.definition)
    definition(f"}}  // namespace {space}")
    left, right = node.inputs
    (result, *_) = stages.fused.outputs_of(group)
    epilogue = kernel.epilogue
    named_tensors = {"left": left, "right": right, "bias": kernel.bias or "", "y": result}
    if epilogue is not None:
        named_tensors |= {stem: name for name, stem in epilogue.stems.items()}
    shares = [_share("cube", space, classes.cube, named_tensors)]
    rooms: tuple[Tensor, ...] = ()
    if classes.vector is not None and epilogue is not None:
        shares.append(_share("vector", space, classes.vector, named_tensors))
        rooms = (Tensor(epilogue.product, (most_slots(chip),), kernel.sums),)
    text = KernelClass(
        group.name,
        shares[0].class_name,
        *(classes.struct, classes.declaration, definition, tuple(classes.cube.arguments)),
    )

    def launch(
        cores: Any, extent_of: ExtentOf, scalars: Mapping[str, Any]
    ) -> tuple[Any, Sequence[TilingValue]]:
        return _product_launch(kernel, graph, chip, cores, extent_of, scalars)

    return HostedKernel(text, tuple(shares), launch, rooms, kernel.uses_object)


def _share(
    kind: Literal["vector", "cube"], space: str, work: Work, tensors: Mapping[str, str]
) -> Share:
    arguments = tuple(tensors[each] for each in work.arguments)
    return Share(kind, f"{space}::{work.class_name}", arguments)


def _check_batches(graph: Graph, node: Node) -> None:
    """Refuse matrices of which there is neither one for each batch nor one for all."""
    outer = node.output.shape[:-2]
    for tensor in graph.inputs_of(node):
        own = tensor.shape[:-2]
        is_whole = len(own) == len(outer) and all(map(same, own, outer))
        if not is_whole and not all(map(is_one, own)):
            raise GraphError(
                f"{shape_text(tensor.shape)} is broadcast along some axes of"
                f" {shape_text(node.output.shape)} only",
                location=node.location,
                help="multiply by one matrix for all, or by one for each",
            )


def _product_launch(
    kernel: ProductKernel,
    graph: Graph,
    chip: Chip,
    cores: Any,
    extent_of: ExtentOf,
    scalars: Mapping[str, Any],
) -> tuple[Any, Sequence[TilingValue]]:
    shape = cut_shape(kernel.group.nodes[0], graph, extent_of)
    _return_for_nothing(shape)
    is_int8 = kernel.block.dtype == "int8" and not kernel.uses_object

    def cut() -> Cut:
        return _cut(shape, chip, cores, is_int8)

    used, _, values = product_tiling(kernel, shape, cut, chip, cores, extent_of, scalars)
    return used, values


def _return_for_nothing(shape: ProductShape) -> None:
    """Have a host's function say that no core takes part where the result has no elements."""
    terms = [each for each in (shape.batches, shape.m, shape.n) if isinstance(each, Term)]
    if terms:
        condition = " || ".join(f"{each.text} == 0" for each in terms)
        terms[0].host.lines += [f"if ({condition}) {{", "return 0;", "}"]


def _cut(shape: ProductShape, chip: Chip, cores: Any, is_int8: bool) -> Cut:
    """Return the blocks as numbers, or as members of what the host's C++ finds."""
    if not isinstance(cores, Term):
        return cut_product(shape, chip, is_int8=is_int8)
    host = cores.host
    sizes = (shape.batches, shape.m, shape.n, shape.k, cores)
    b, m, n, k, most_cores = (each.text if isinstance(each, Term) else str(each) for each in sizes)
    host.lines.append(
        f"const CubeCut cut = {cut_call(b, m, n, k, most_cores, chip, is_int8=is_int8)};"
    )
    return Cut(shape, *(Term(host, f"cut.{name}") for name in ("down", "across", "band", "cores")))
