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
from opkit.graph.translation import DTYPES, operator_name

__all__ = ["fold"]

_MOST_ELEMENTS = 1 << 20
"""Of a tensor that is kept instead of computed."""


def fold(module: fx.GraphModule) -> int:
    """Compute what no input reaches and kernels cannot, and return how many nodes that spared.

    What the graph returns is computed in each call: whoever gets it may write to it.
    """
    values: dict[fx.Node, Any] = {}
    foreign: set[fx.Node] = set()
    for node in module.graph.nodes:
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
        and not any(user.op == "output" for user in node.users)
    ]
    for index, node in enumerate(kept):
        name = f"_opkit_folded_{index}"
        module.register_buffer(name, values[node], persistent=False)
        with module.graph.inserting_before(node):
            stored = module.graph.get_attr(name)
        stored.meta = dict(node.meta)
        node.replace_all_uses_with(stored)
    before = len(module.graph.nodes) - len(kept)
    module.graph.eliminate_dead_code()
    module.recompile()
    return before - (len(module.graph.nodes) - len(kept))


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
    return operator_name(node) in ROWS and node.meta["val"].dtype in DTYPES
