"""Graphs whose sizes are known only when they run: each is planned for the sizes that come.

What a kernel computes does not depend on sizes, which come with its launch: a new size costs a
plan, and seldom a kernel that the build cache does not have.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode

from opkit import log

__all__ = ["Sized", "has_open_sizes", "specialised"]

_MOST_PLANS = 128
"""Most plans of one graph; the least recently used one makes room."""


def has_open_sizes(module: fx.GraphModule) -> bool:
    """Return whether a size of a graph's inputs is a symbol."""
    for node in module.graph.find_nodes(op="placeholder"):
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt):
            return True
        if isinstance(value, torch.Tensor) and not all(isinstance(n, int) for n in value.shape):
            return True
    return False


class Sized:
    """Runs a graph by a plan for the sizes of its inputs, made when they first come."""

    def __init__(
        self,
        module: fx.GraphModule,
        compiler: Callable[[fx.GraphModule], Callable[..., Any]],
    ) -> None:
        """Keep a graph.

        Args:
            compiler: makes a function of a graph of fixed sizes.
        """
        self._module, self._compiler = module, compiler
        self._plans: dict[tuple[object, ...], Callable[..., Any]] = {}
        self._lock = threading.Lock()

    def __call__(self, *values: Any) -> Any:
        """Run it.

        Raises:
            KernelFault: a kernel faulted.
        """
        if any(isinstance(value, FakeTensor) for value in values):
            # Shapes are all that such tensors have, and these may be symbols.
            return self._module(*values)
        key = tuple(_described(value) for value in values)
        with self._lock:
            plan = self._plans.pop(key, None)
            if plan is None:
                while len(self._plans) >= _MOST_PLANS:
                    del self._plans[next(iter(self._plans))]
                log.info("GRAPH", "a plan for new sizes", sizes=str(key))
                plan = self._compiler(specialised(self._module, values))
            self._plans[key] = plan
        return plan(*values)


def _described(value: Any) -> object:
    if isinstance(value, torch.Tensor):
        return (tuple(value.shape), value.stride(), value.dtype, value.device)
    return value


def specialised(module: fx.GraphModule, values: Sequence[Any]) -> fx.GraphModule:
    """Return a graph for the sizes of some inputs: what is computed of sizes alone is a number."""
    from torch.fx.experimental.symbolic_shapes import ShapeEnv

    # What depends on values, as the number of elements that are not zero, stays a symbol.
    mode = FakeTensorMode(shape_env=ShapeEnv(), static_shapes=True, allow_non_fake_inputs=True)
    graph = fx.Graph()
    copies: dict[fx.Node, Any] = {}
    fakes: dict[fx.Node, Any] = {}
    given = iter(values)

    def fake(value: Any) -> Any:
        return mode.from_tensor(value) if isinstance(value, torch.Tensor) else value

    for node in module.graph.nodes:
        if node.op == "output":
            graph.node_copy(node, copies.__getitem__).meta = dict(node.meta)
            continue
        if node.op == "placeholder":
            fakes[node] = fake(next(given))
        elif node.op == "get_attr":
            fakes[node] = fake(_attribute(module, str(node.target)))
        else:
            args = fx.map_arg(node.args, fakes.__getitem__)
            kwargs = fx.map_arg(node.kwargs, fakes.__getitem__)
            assert callable(node.target)
            with mode, torch.no_grad():
                fakes[node] = node.target(*args, **kwargs)
        value = fakes[node]
        is_number = isinstance(value, int | float | bool)
        if is_number and node.op != "placeholder":
            copies[node] = value
            continue
        copy = graph.node_copy(node, copies.__getitem__)
        copy.meta = {**node.meta, "val": value}
        copies[node] = value if is_number else copy
    return fx.GraphModule(module, graph)


def _attribute(module: torch.nn.Module, target: str) -> Any:
    value: Any = module
    for part in target.split("."):
        value = getattr(value, part)
    return value
