"""What a program asks of the sizes that have names: that slices lie within their axes, that lines
fit what sorts them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from .dimensions import Dimension, evaluate
from .graph import Graph, Node
from .ordering import MOST_SORTED

__all__ = ["SizeLimit", "index_limits", "size_limits"]


@dataclass(frozen=True)
class SizeLimit:
    """Something that must be no less than zero."""

    rest: Dimension
    size: str = ""
    """The one size that it is made of, where that must only be large enough."""
    least: int = 0
    """The smallest value of that size."""
    is_exact: bool = False
    """Whether it is so for all sizes; else for those that were tried."""


def size_limits(graph: Graph) -> tuple[SizeLimit, ...]:
    """Return what a launch must check: what does not hold for all sizes from 0, or from 1 of what a
    slice or a product runs along."""
    found: dict[str, SizeLimit] = {}
    for rest in _rests(graph):
        if not isinstance(rest, int) and not rest.is_nonnegative:
            found.setdefault(str(rest), _limit(rest))
    for depth in _depths(graph):
        if not isinstance(depth, int) and depth.free_symbols:
            found.setdefault(str(depth - 1), _limit(depth - 1))
    return tuple(found.values())


def _depths(graph: Graph) -> Iterator[Dimension]:
    """Yield along how many elements products add up: none would be no product."""
    for node in graph.nodes:
        if node.operator == "matmul":
            left = graph.tensors[node.inputs[0]]
            yield left.shape[-2 if node.settings["transpose_a"] else -1]


def _rests(graph: Graph) -> Iterator[Dimension]:
    for node in graph.nodes:
        if node.operator == "slice":
            settings: Mapping[str, Any] = node.settings
            start, stop, axis = (settings[key] for key in ("start", "stop", "axis"))
            (x,) = graph.inputs_of(node)
            yield from (start, stop - start - 1, x.shape[axis] - stop)
        if node.operator in ("sort", "argsort"):
            yield from _sorted(graph, node)
        if node.operator == "pad":
            widths: Any = node.settings["widths"]
            yield from (width for ends in widths for width in ends)


_TRIED = 200
"""Sizes that are tried where no equation says the smallest."""


def _sorted(graph: Graph, node: Node) -> Iterator[Dimension]:
    settings: Mapping[str, Any] = node.settings
    (x,) = graph.inputs_of(node)
    extent = x.shape[settings["axis"]]
    yield MOST_SORTED - extent
    if settings["count"] is not None:
        yield extent - settings["count"]


def _limit(rest: Dimension) -> SizeLimit:
    import sympy

    assert not isinstance(rest, int)
    symbols = sorted(rest.free_symbols, key=str)
    if len(symbols) != 1:
        return SizeLimit(rest)
    (symbol,) = symbols
    if not rest.is_polynomial(symbol) or sympy.degree(rest) != 1:
        name = str(symbol)
        fits = [evaluate(rest, {name: size}) >= 0 for size in range(_TRIED)]
        least = max((size + 1 for size, each in enumerate(fits) if not each), default=0)
        return SizeLimit(rest, name if least < _TRIED else "", least)
    slope, begin = rest.coeff(symbol, 1), rest.coeff(symbol, 0)
    if not slope > 0:
        return SizeLimit(rest)
    return SizeLimit(rest, str(symbol), int(sympy.ceiling(-begin / slope)), is_exact=True)


def index_limits(graph: Graph) -> dict[str, Dimension]:
    """Return, for inputs that say places along an axis, how many places there are."""
    inputs = {tensor.name for tensor in graph.inputs}
    found: dict[str, Dimension] = {}
    for node in graph.nodes:
        if node.operator != "take":
            continue
        table, indices = node.inputs
        name = indices
        while name in graph.producers and graph.producers[name].operator in ("cast", "reshape"):
            name = graph.producers[name].inputs[0]
        settings: Mapping[str, Any] = node.settings
        if name in inputs:
            found.setdefault(name, graph.tensors[table].shape[settings["axis"]])
    return found
