"""What a program asks of the sizes that have names: that slices lie within their axes, that lines
fit what sorts them, that what is cut into equal parts is a multiple of them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ..ir import Dimension, Graph, Location, Node, evaluate
from ..ops import MOST_SORTED

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
    total: Dimension = 0
    """What must be a multiple of `divisor`; 0 where nothing must."""
    divisor: Dimension = 1
    location: Location | None = None
    """The line that asks for it first."""

    @property
    def wanted(self) -> str:
        """What is expected of which size, for messages."""
        return f"a multiple of {self.divisor}" if self.divisor != 1 else "0 or more"


_PLACED = ("take", "take_along", "put_along", "join_along")
"""Operators whose second operand names places along an axis of the first."""
_SAME_NUMBERS = ("cast", "reshape", "broadcast_to")
"""Operators whose results are places where their operands are."""
_TRIED = 200
"""Sizes that are tried where no equation says the smallest."""


def size_limits(graph: Graph, *, of_sorting: bool = True) -> tuple[SizeLimit, ...]:
    """Return what a launch must check: what does not hold for all sizes from 0, or from 1 of what a
    part of an axis is cut by.

    Args:
        of_sorting: also how long lines the chip's cores sort.
    """
    found: dict[str, SizeLimit] = {}
    for node in graph.nodes:
        for limit in _multiples(node):
            found.setdefault(str(limit.rest), replace(limit, location=node.location))
        asked = [rest for rest in _rests(graph, node) if not _holds(rest)]
        asked += [rest for rest in _rests_of_empty(graph, node) if not _holds_for_none(rest)]
        if of_sorting and node.operator in ("sort", "argsort"):
            asked += [rest for rest in [MOST_SORTED - _line(graph, node)] if not _holds(rest)]
        for rest in asked:
            if str(rest) not in found:
                found[str(rest)] = replace(_limit(rest), location=node.location)
    return tuple(found.values())


def _multiples(node: Node) -> Iterator[SizeLimit]:
    """Yield what must be multiples, for a result to have whole numbers of elements."""
    import sympy

    for extent in node.output.shape:
        if isinstance(extent, int):
            continue
        total, divisor = sympy.fraction(sympy.together(extent))
        if divisor != 1:
            yield SizeLimit(-sympy.Mod(total, divisor), total=total, divisor=divisor)


def _line(graph: Graph, node: Node) -> Dimension:
    (x,) = graph.inputs_of(node)
    settings = node.settings
    return x.shape[settings["axis"]]


def _rests(graph: Graph, node: Node) -> Iterator[Dimension]:
    settings = node.settings
    if node.operator in ("sort", "argsort") and settings["count"] is not None:
        yield _line(graph, node) - settings["count"]
    if node.operator == "slice":
        yield settings["stop"] - settings["start"] - 1
    if node.operator == "pad":
        yield from (width for ends in settings["widths"] for width in ends)


def _rests_of_empty(graph: Graph, node: Node) -> Iterator[Dimension]:
    """Yield what must not be below zero for axes without elements either: what lies around a slice,
    along how many elements products add up, of which none would be no product, and among how many
    places one is named."""
    settings = node.settings
    if node.operator == "slice":
        (x,) = graph.inputs_of(node)
        yield from (settings["start"], x.shape[settings["axis"]] - settings["stop"])
    if node.operator == "matmul":
        left = graph.tensors[node.inputs[0]]
        yield left.shape[-2 if settings["transpose_a"] else -1] - 1
    if node.operator in _PLACED:
        table = graph.tensors[node.inputs[0]].shape
        yield table[settings.axis(len(table))] - 1


def _holds(rest: Dimension) -> bool:
    """Whether an expression is no less than zero for all sizes from 1; that of numbers alone was
    checked when the program was read."""
    return isinstance(rest, int) or bool(rest.is_nonnegative)


def _holds_for_none(rest: Dimension) -> bool:
    """Whether an expression is no less than zero for all sizes from 0."""
    import sympy

    if isinstance(rest, int):
        return True
    from_none = {
        size: sympy.Symbol(size.name, integer=True, nonnegative=True) for size in rest.free_symbols
    }
    return bool(rest.subs(from_none).is_nonnegative)


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
        if node.operator not in _PLACED:
            continue
        table, indices = node.inputs[:2]
        settings = node.settings
        axis = settings.axis(len(graph.tensors[table].shape))
        for name in _chosen_from(graph, indices):
            if name in inputs:
                found.setdefault(name, graph.tensors[table].shape[axis])
    return found


def _chosen_from(graph: Graph, name: str) -> Iterator[str]:
    """Yield the tensors whose numbers a tensor's are, as of `where(c, 0, x)` those of x."""
    node = graph.producers.get(name)
    if node is None:
        yield name
    elif node.operator in _SAME_NUMBERS:
        yield from _chosen_from(graph, node.inputs[0])
    elif node.operator == "where":
        for each in node.inputs[1:]:
            yield from _chosen_from(graph, each)
