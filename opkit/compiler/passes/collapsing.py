"""Element-wise work on a product's rows, in the product's own two axes.

Front ends flatten `[batch, row, column]` to two axes for a product and restore them behind it. The
element-wise operators that follow have three axes again, and a change of shape lies between them
and the product, which keeps them out of its kernel. Here they get the product's axes, and the
change of shape moves behind them.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..ir import Graph, Node, Shape, Value, is_one, product, same
from ..ops import OPERATORS
from .rewrite import Rebuilder

__all__ = ["collapse"]


def collapse(graph: Graph) -> Graph:
    """Return the graph with operators on restored axes applied before these are restored."""
    work = _Collapser(graph)
    return work.rebuilt(work.collapsed)


class _Collapser(Rebuilder):
    def __init__(self, graph: Graph) -> None:
        super().__init__(graph)
        self._seen = 0
        self._tensors: dict[str, Shape] = {t.name: t.shape for t in graph.inputs}
        self._reshaped: dict[str, Shape] = {}

    def collapsed(self, node: Node, inputs: Sequence[Value]) -> Value | None:
        """Return an operator's value computed with two axes; None where that is not possible."""
        shape = node.output.shape
        kind = OPERATORS[node.operator].kind
        if kind not in ("elementwise", "reduction") or len(shape) < 3:
            return None
        if kind == "reduction" and not self._is_of_rows(node, inputs[0]):
            return None
        if not any(self._is_restored(value) for value in inputs):
            return None
        rows = product(shape[:-1])
        flat = []
        for value in inputs:
            given = value.shape
            if len(given) == len(shape) and all(map(same, given[:-1], shape[:-1])):
                flat.append(value.reshape(rows, given[-1]))
            elif all(is_one(extent) for extent in given[:-1]):
                flat.append(value.reshape(given[-1]) if len(given) > 1 else value)
            else:
                return None
        settings = dict(node.attributes)
        if kind == "reduction":
            settings["axis"] = (1,)
        result = self.builder.apply(node.operator, *flat, **settings)
        return result.reshape(*shape)

    def _is_of_rows(self, node: Node, value: Value) -> bool:
        axes = node.settings.axes(value.ndim)
        return node.settings.truth("keepdims") and axes == (value.ndim - 1,)

    def _is_restored(self, value: Value) -> bool:
        """Whether a value is one of two axes in another shape, its last axis kept."""
        nodes = self.builder.nodes
        for node in nodes[self._seen :]:
            self._tensors[node.output.name] = node.output.shape
            if node.operator == "reshape":
                self._reshaped[node.output.name] = self._tensors[node.inputs[0]]
        self._seen = len(nodes)
        before = self._reshaped.get(value.tensor.name)
        return (
            before is not None
            and value.ndim > 2
            and len(before) == 2
            and same(before[-1], value.shape[-1])
        )
