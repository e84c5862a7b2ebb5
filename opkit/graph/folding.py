"""What no input reaches: computed once, when a graph is compiled.

Positions and masks of models are sums and comparisons of whole numbers of 64 bits, which kernels do
not hold; most of them are the same in every call.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import unset_fake_temporarily

from opkit.graph.aten import ROWS
from opkit.graph.program import run_nodes
from opkit.graph.translation import DTYPES, NUMBER, TRIANGLE, operator_name

__all__ = ["fold"]

_MOST_ELEMENTS = 1 << 20
"""Most elements of a tensor that is kept instead of computed."""


def fold(module: fx.GraphModule) -> int:
    """Compute what no input reaches and kernels cannot, and return how many nodes that spared.

    What the graph returns is copied in each call: whoever gets it may write to it.
    """
    count = len(module.graph.nodes)
    values: dict[fx.Node, Any] = {}
    foreign: set[fx.Node] = set()
    for node in module.graph.nodes:
        if node.op == "get_attr":
            constant = _constant(module, str(node.target))
            if constant is not None:
                values[node] = constant
        sources = node.all_input_nodes
        if node.op != "call_function" or any(source not in values for source in sources):
            continue
        if not _is_foldable(node):
            continue
        if not _has_kernel(node) or any(source in foreign for source in sources):
            foreign.add(node)
        # torch compiles under a mode in which tensors have no elements.
        with torch.no_grad(), unset_fake_temporarily():
            run_nodes([node], values)
    kept = [
        node
        for node in foreign
        if isinstance(values[node], torch.Tensor)
        and any(user not in foreign for user in node.users)
    ]
    for index, node in enumerate(kept):
        name = f"_opkit_folded_{index}"
        module.register_buffer(name, values[node], persistent=False)
        with module.graph.inserting_before(node):
            stored = module.graph.get_attr(name)
            stored.meta = dict(node.meta)
            with unset_fake_temporarily():
                if values[node].numel() == 1:
                    stored.meta[NUMBER] = values[node].item()
                reach = _reach(values[node])
                if reach is not None:
                    stored.meta[TRIANGLE] = reach
            if any(user.op == "output" for user in node.users):
                given = module.graph.call_function(torch.ops.aten.clone.default, (stored,))
                given.meta = dict(node.meta)
                node.replace_all_uses_with(given, lambda user: user.op == "output")
        node.replace_all_uses_with(stored)
    for node in module.graph.nodes:
        if node.target is torch.ops.aten.cat.default:
            _without_empty(node)
    module.graph.eliminate_dead_code()
    module.recompile()
    return max(0, count - len(module.graph.nodes))


def _reach(truths: torch.Tensor) -> int | None:
    """Return by how much a column is greater than its row, at most, wherever a matrix has the truth
    of its first place, and nowhere else; None where it is no such triangle."""
    is_matrix = truths.dtype == torch.bool and truths.dim() >= 2 and truths.numel() > 1
    if not is_matrix or any(extent != 1 for extent in truths.shape[:-2]):
        return None
    matrix = truths.reshape(truths.shape[-2:])
    own = matrix == matrix[0, 0]
    reach = int(own[0].long().cumprod(0).sum()) - 1
    return reach if torch.equal(own, torch.ones_like(own).tril(reach)) else None


def _constant(module: fx.GraphModule, target: str) -> torch.Tensor | None:
    """Return a tensor that a graph brings along; None for what is only a likeness of one."""
    value: Any = module
    for part in target.split("."):
        value = getattr(value, part, None)
    is_plain = isinstance(value, torch.Tensor) and type(value) in (torch.Tensor, torch.nn.Parameter)
    return value if is_plain else None


def _without_empty(node: fx.Node) -> None:
    """Take tensors without elements out of those that are joined, as long as some are left."""
    tensors, *rest = node.args
    assert isinstance(tensors, list | tuple)
    dtype = node.meta["val"].dtype
    full = [each for each in tensors if not _is_nothing(each, dtype)]
    if full and len(full) < len(tensors):
        node.args = (full, *rest)


def _is_nothing(node: Any, dtype: torch.dtype) -> bool:
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor) or value.dtype != dtype:
        return False
    return tuple(value.shape) == (0,)


def _is_foldable(node: fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    if schema is None or schema.is_mutable:
        return False
    if torch.Tag.nondeterministic_seeded in node.target.tags:  # type: ignore[union-attr]
        return False
    value = node.meta.get("val")
    if not isinstance(value, torch.Tensor):
        return False
    shape = [extent for extent in value.shape if isinstance(extent, int)]
    return len(shape) == value.dim() and value.numel() <= _MOST_ELEMENTS


def _has_kernel(node: fx.Node) -> bool:
    value = node.meta["val"]
    return operator_name(node) in ROWS and value.dtype in DTYPES and value.numel() > 0
