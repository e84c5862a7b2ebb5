"""float64 between narrower types, in float32: the chip has no float64, and what is rounded to 16
bits in the end keeps its digits.

Quantised products are written as products of doubles, which hold the sums of int8 exactly: such
sums are computed in int32, exactly too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx

from opkit.graph.aten import VIEWS
from opkit.graph.translation import operator_name

__all__ = ["narrow_doubles"]

_LONGEST_SUM = 1 << 17
"""Products of two int8 whose sum int32 holds."""
_PRODUCTS = ("aten.mm.default", "aten.bmm.default")
_ELEMENTWISE = frozenset(
    ("aten.add.Tensor", "aten.sub.Tensor", "aten.mul.Tensor", "aten.neg.default")
)
_CASTS = ("aten._to_copy.default", "prims.convert_element_type.default")
_WIDENED = (
    *(torch.int8, torch.uint8, torch.int16, torch.int32),
    *(torch.float16, torch.bfloat16, torch.float32),
)
_HALVES = (torch.float16, torch.bfloat16)


@torch.library.custom_op("opkit::int8_product", mutates_args=())
def int8_product(a: Tensor, b: Tensor) -> Tensor:
    """Return the product of matrices of int8, in int32."""
    return torch.matmul(a.double(), b.double()).to(torch.int32)


@int8_product.register_fake
def _(a: Tensor, b: Tensor) -> Tensor:
    return a.new_empty((*a.shape[:-1], b.shape[-1]), dtype=torch.int32)


def narrow_doubles(module: fx.GraphModule) -> int:
    """Compute in float32 what is float64 only between tensors of at most 32 bits and results of 16,
    and return how many nodes that are: sums and products of casts, and products of int8 matrices.
    """
    nodes = [node for node in module.graph.nodes if _dtype(node) == torch.float64]
    found = {node for node in nodes if _is_narrow(node)}
    while True:
        stay = {node for node in found if _is_inside(node, found)}
        if stay == found:
            break
        found = stay
    for node in nodes:
        if node in found:
            _narrowed(module.graph, node)
    if found:
        module.graph.eliminate_dead_code()
        module.recompile()
    return len(found)


def _is_narrow(node: fx.Node) -> bool:
    """Whether a node is one that float32 may compute, whatever is around it."""
    name = operator_name(node)
    if name in _PRODUCTS:
        sources = [_whole(each) for each in node.all_input_nodes]
        length = _example(node.all_input_nodes[0]).shape[-1]
        return len(sources) == 2 and None not in sources and _is_short(length)
    return name in _ELEMENTWISE or name in VIEWS or _is_widening(node)


def _is_short(length: Any) -> bool:
    return isinstance(length, int) and length <= _LONGEST_SUM


def _is_widening(node: fx.Node) -> bool:
    is_cast = operator_name(node) in _CASTS and len(node.all_input_nodes) == 1
    return is_cast and _dtype(node.all_input_nodes[0]) in _WIDENED


def _is_inside(node: fx.Node, found: set[fx.Node]) -> bool:
    """Whether all that a node reads, and all that reads it, is narrow too."""
    reads = [each for each in node.all_input_nodes if _dtype(each) == torch.float64]
    if not _is_widening(node) and (not reads or not found.issuperset(reads)):
        return False
    if any(_dtype(each) is None for each in node.all_input_nodes):
        return False
    return all(
        user in found or (operator_name(user) in _CASTS and _dtype(user) in _HALVES)
        for user in node.users
    )


def _whole(node: fx.Node) -> fx.Node | None:
    """Return the cast of an int8 tensor that a product reads through views; None for others."""
    while operator_name(node) in VIEWS and len(node.all_input_nodes) == 1:
        node = node.all_input_nodes[0]
    return node if _is_widening(node) and _dtype(node.all_input_nodes[0]) == torch.int8 else None


def _narrowed(graph: fx.Graph, node: fx.Node) -> None:
    """Have a node give float32."""
    name = operator_name(node)
    if name in _PRODUCTS:
        with graph.inserting_before(node):
            operands = tuple(_as_int8(graph, each) for each in node.all_input_nodes)
            product = _added(graph, torch.ops.opkit.int8_product.default, operands, node)
            product.meta["val"] = _converted(node, torch.int32)
            wide = _added(graph, torch.ops.aten._to_copy.default, (product,), node)
            wide.kwargs = {"dtype": torch.float32}
        wide.meta["val"] = _converted(node, torch.float32)
        node.replace_all_uses_with(wide)
        return
    if name == _CASTS[0]:
        node.kwargs = {**node.kwargs, "dtype": torch.float32}
    elif name == _CASTS[1]:
        node.args = (node.args[0], torch.float32)
    node.meta = {**node.meta, "val": _converted(node, torch.float32)}


def _as_int8(graph: fx.Graph, node: fx.Node) -> fx.Node:
    """Return what a product reads as it was before it became float64: views of int8."""
    if _is_widening(node):
        return node.all_input_nodes[0]
    (source,) = node.all_input_nodes
    before = _as_int8(graph, source)
    seen = graph.node_copy(node, lambda each: before if each is source else each)
    seen.meta = {**node.meta, "val": _converted(node, torch.int8)}
    return seen


def _added(
    graph: fx.Graph, target: Callable[..., Any], arguments: tuple[Any, ...], like: fx.Node
) -> fx.Node:
    node = graph.call_function(target, arguments)
    node.meta = dict(like.meta)
    return node


def _converted(node: fx.Node, dtype: torch.dtype) -> Tensor:
    """Return what stands for a node's tensor in the tracer, in another data type."""
    value = _example(node)
    with torch._subclasses.fake_tensor.unset_fake_temporarily():
        return value.to(dtype)


def _example(node: fx.Node) -> Tensor:
    value = node.meta["val"]
    assert isinstance(value, Tensor)
    return value


def _dtype(node: fx.Node) -> torch.dtype | None:
    value = node.meta.get("val")
    return value.dtype if isinstance(value, Tensor) else None
