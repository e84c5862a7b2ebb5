"""Largest and smallest elements that a result does not depend on, as softmax takes one off."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from opkit.errors import UsageError

from ...ir import Graph, Tensor, evaluate, is_floating

__all__ = ["shifts_of"]

_EXTENT = 5
"""Extent of every named size when a program is tried on numbers."""
_MULTIPLES = (6, 8, 12, 16, 24, 30, 32, 48, 64)
"""Where that is no multiple of what parts of it are."""
_LARGEST = 10**6
"""Elements of a tensor that is worth trying."""
_TRIED = (0.25, 1.0, 1.75)
_RANGES = ((0.5, 2.0), (-2.0, -0.5), (-3.0, 3.0), (-0.1, 0.1))
"""Ranges of the numbers that inputs are tried on: a choice may hide what it leaves out."""


def shifts_of(graph: Graph) -> list[str]:
    """Return the reductions to a largest or smallest element in whose place any number gives the
    same outputs, as in exp(x - max(x))/sum(exp(x - max(x))).

    The gradient by way of them is exactly 0, which rounding would make noise. Tried on numbers,
    negative and small ones too.
    """
    names = [node.output.name for node in graph.nodes if node.operator in ("max", "min")]
    names = [name for name in names if is_floating(graph.tensors[name].dtype)]
    if not names:
        return []
    symbols = {
        str(symbol)
        for tensor in graph.inputs
        for extent in tensor.shape
        if not isinstance(extent, int)
        for symbol in extent.free_symbols
    }
    tried = (dict.fromkeys(symbols, extent) for extent in (_EXTENT, *_MULTIPLES))
    sizes = next((each for each in tried if _fits(graph, each)), None)
    if sizes is None:
        return []
    shapes = {t.name: tuple(evaluate(e, sizes) for e in t.shape) for t in graph.inputs}
    if any(_elements(shape) > _LARGEST for shape in shapes.values()):
        return []
    return [name for name in names if _is_shift(graph, name, shapes, sizes)]


def _fits(graph: Graph, sizes: Mapping[str, int]) -> bool:
    """Whether every extent is a whole number: what is cut into equal parts is a multiple."""
    try:
        for tensor in (*graph.inputs, *(node.output for node in graph.nodes)):
            for extent in tensor.shape:
                evaluate(extent, sizes)
    except UsageError:
        return False
    return True


def _elements(shape: tuple[int, ...]) -> int:
    count = 1
    for extent in shape:
        count *= extent
    return count


def _is_shift(
    graph: Graph, name: str, shapes: Mapping[str, tuple[int, ...]], sizes: Mapping[str, int]
) -> bool:
    import numpy as np

    from ...tracing import apply_nodes

    draw = np.random.default_rng(7)
    before, after = _split(graph, name)
    for low, high in _RANGES:
        arrays = {t.name: _drawn(t, shapes[t.name], draw, low, high) for t in graph.inputs}
        attributes = {each.name: float(draw.uniform(0.5, 2.0)) for each in graph.attributes}
        first: list[Any] | None = None
        for value in _TRIED:
            with np.errstate(all="ignore"):
                found = apply_nodes(before, dict(arrays), attributes, sizes)
                found[name] = np.full_like(found[name], value)
                found = apply_nodes(after, found, attributes, sizes)
            results = [found[tensor] for _, tensor in graph.outputs]
            first = first or results
            pairs = zip(first, results, strict=True)
            # Outside of a function's domain there is nothing to tell apart.
            if not all(np.allclose(a, b, rtol=1e-9, atol=1e-12, equal_nan=True) for a, b in pairs):
                return False
    return True


def _split(graph: Graph, name: str) -> tuple[Graph, Graph]:
    """Return the nodes up to the one that computes a tensor, and those behind it."""
    at = next(i for i, node in enumerate(graph.nodes) if node.output.name == name) + 1
    parts = (graph.nodes[:at], graph.nodes[at:])
    before, after = (
        Graph(graph.name, graph.inputs, nodes, (), graph.attributes) for nodes in parts
    )
    return before, after


def _drawn(tensor: Tensor, shape: tuple[int, ...], draw: Any, low: float, high: float) -> Any:
    if tensor.dtype == "bool":
        return draw.random(shape) < 0.5
    if is_floating(tensor.dtype):
        return draw.uniform(low, high, shape)
    return draw.integers(0, 3, shape).astype(tensor.dtype)
