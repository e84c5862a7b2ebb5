"""Outputs that would be an input, or another output, in whatever shape, as tensors of their own."""

from __future__ import annotations

from ..ir import Graph, Location, Value
from .rewrite import Rebuilder, expand, simplify

__all__ = ["with_own_outputs"]

_COMPUTED = {
    **{"float16": "float32", "bfloat16": "float32", "float32": "float32"},
    **{"int8": "int32", "uint8": "int32", "int16": "int32", "int32": "int32"},
}
"""In which type a copy of each data type is computed."""


def with_own_outputs(graph: Graph) -> Graph:
    """Return a graph in which an output that is an input or an earlier output is a copy of it: the
    larger of it and itself, which is it for every value.

    Kernels write each output; the gradients of a sum, say, are one tensor that two outputs show.
    Outputs of data types that the vector unit does not compute stay what they are.
    """
    simple = simplify(expand(graph))
    known = {tensor.name: 1 for tensor in simple.inputs}
    copies: dict[str, int] = {}
    for name, tensor in simple.output_tensors:
        source = _source(simple, tensor.name)
        copies[name] = known.get(source, 0) if tensor.dtype in _COMPUTED else 0
        known[source] = known.get(source, 0) + 1
    return _Copies(graph, copies).copied() if any(copies.values()) else graph


def _source(graph: Graph, tensor: str) -> str:
    """Return the tensor that another shows in another shape."""
    while tensor in graph.producers and graph.producers[tensor].operator == "reshape":
        (tensor,) = graph.producers[tensor].inputs
    return tensor


class _Copies(Rebuilder):
    def __init__(self, graph: Graph, copies: dict[str, int]) -> None:
        super().__init__(graph)
        self.copies = copies

    def copied(self) -> Graph:
        self._apply(self.same)
        for name, tensor in self.graph.outputs:
            value = self.values[tensor]
            producer = self.graph.producers.get(tensor)
            # An input that is an output has no line: what it is called there names the copy.
            location = producer.location if producer is not None else Location("formula", 1, name)
            with self.builder.at(location):
                self.builder.output(name, _copy(value, self.copies[name]))
        return self.builder.graph()


def _copy(value: Value, count: int) -> Value:
    if not count:
        return value
    wide = value.astype(_COMPUTED[value.dtype])
    # A second copy is not the first one: it is one operator longer.
    for _ in range(count):
        wide = wide.apply("maximum", wide)
    return wide.astype(value.dtype)
