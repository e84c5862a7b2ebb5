"""Attention that a program spells out: found, and put into one operator."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ..ir import Graph, Node, Shape, Value, fixed_shape, fixed_size, is_floating, same
from .attention_guard import finds_infinities
from .rewrite import Rebuilder, runs_of

__all__ = ["recognise_attention", "why_no_attention"]

_WIDEST = 128
_TYPES = ("float16", "bfloat16")
_MASKS = ("float16", "bfloat16", "float32")
_HIDDEN = -1.0e4
"""What a mask puts in the place of hidden scores is this or less."""
_LEAST = -1.0e30
"""Infinities become this without a guard: the softmax of a row of them is no number, the kernel's
is zeros."""


@dataclass
class _Found:
    """The parts of an attention, and the nodes that only serve it."""

    q: str = ""
    k: str = ""
    v: str = ""
    scale: float = 1.0
    added: str = ""
    """A mask that is added to the scores."""
    seen: str = ""
    """A condition under which scores count."""
    is_hiding: bool = False
    """Scores count where the condition is false."""
    hidden: float = 0.0
    view: Shape = ()
    """The shape of the scores that the mask is over."""
    guard: str = ""
    """Where this is true, a row's weights are zeros: it sees no key."""
    heads: Shape = ()
    """Batches and rows of queries, each head by itself, where products have those of several in one
    matrix."""


def why_no_attention(graph: Graph, names: Sequence[str]) -> str:
    """Return why one kernel does not compute attention over these tensors; empty where it does."""
    q, k, v, *mask = (graph.tensors[name] for name in names)
    if q.dtype not in _TYPES or not q.dtype == k.dtype == v.dtype:
        return f"q, k and v are {q.dtype}, {k.dtype}, {v.dtype}, expected one of two 16-bit types"
    for tensor in (q, v):
        width = tensor.shape[-1]
        if not isinstance(width, int) or width > _WIDEST:
            return f"{tensor.name} is {width} wide, expected at most {_WIDEST}"
    if mask and mask[0].dtype not in _MASKS:
        return f"the mask is {mask[0].dtype}, expected one of {', '.join(_MASKS)}"
    return ""


def recognise_attention(graph: Graph, triangles: Mapping[str, int] | None = None) -> Graph:
    """Return the graph with an attention operator for each softmax between two products.

    What is recognised: `softmax(q @ kᵀ * scale + mask) @ v`, the scale as factor or divisor, the
    mask added or by `where`, with casts and other views of the rows anywhere in between, and with
    or without zeros for rows whose largest score is minus infinity; of tensors that the kernel
    takes.

    Args:
        triangles: inputs of truths that are true in column j of row i where j is at most i plus
            this number, or where it is more.
    """
    known = triangles or {}
    found: dict[str, _Found] = {}
    for node in graph.nodes:
        if node.operator == "matmul":
            parts = _attention(graph, node, known)
            if parts is not None:
                found[node.output.name] = parts
    if not found:
        return graph
    work = Rebuilder(graph)
    for node in graph.nodes:
        with work.builder.at(node.location):
            inputs = [work.values[name] for name in node.inputs]
            value = _in_fewer_axes(node, inputs[0]) if node.operator == "transpose" else None
            value = work.same(node, inputs) if value is None else value
            if node.output.name in found:
                value = _built(work, node, found[node.output.name], known)
            work.values[node.output.name] = value
    return work.finish()


def _built(work: Rebuilder, node: Node, parts: _Found, triangles: Mapping[str, int]) -> Value:
    q, k, v = (work.values[name] for name in (parts.q, parts.k, parts.v))
    if parts.heads:
        *outer, heads, _ = q.shape[:-1]
        *more, rows = parts.heads[len(outer) + 1 :]
        shared = math.prod(fixed_shape(more))
        q = q.reshape(*outer, heads * shared, rows, q.shape[-1])
    operands = [q, k, v]
    causal = parts.seen in triangles
    ahead = triangles[parts.seen] if causal else 0
    if parts.added:
        operands.append(work.values[parts.added])
    if parts.seen and not causal:
        condition = work.values[parts.seen]
        zero = work.builder.constant(0.0, "float32")
        least = parts.hidden if parts.guard else max(parts.hidden, _LEAST)
        hidden = work.builder.constant(least, "float32")
        either = (hidden, zero) if parts.is_hiding else (zero, hidden)
        operands.append(condition.apply("where", *either))
    result = work.builder.apply(
        "attention", *operands, scale=parts.scale, causal=causal, ahead=ahead
    )
    return result.reshape(*node.output.shape) if parts.heads else result


def _in_fewer_axes(node: Node, x: Value) -> Value | None:
    """Return a transpose that keeps neighbours together as one of fewer axes, so that heads in
    groups are as plain heads; None where there are no neighbours."""
    axes = node.settings["axes"]
    if not all(isinstance(extent, int) for extent in x.shape):
        return None
    runs = runs_of(axes)
    if len(runs) == len(axes) or len(runs) == 1:
        return None
    order = sorted(runs)
    extents = [math.prod(fixed_size(x.shape[axis]) for axis in run) for run in order]
    turned = x.reshape(*extents).transpose(*(order.index(run) for run in runs))
    return turned.reshape(*node.output.shape)


def _attention(graph: Graph, node: Node, triangles: Mapping[str, int]) -> _Found | None:
    if node.settings["transpose_a"] or node.settings["transpose_b"]:
        return None
    parts = _Found(v=node.inputs[1])
    weights = _only(graph, _through_views(graph, node.inputs[0]))
    if weights is not None and weights.operator == "where":
        if _number(graph, weights.inputs[1]) != 0.0:
            return None
        parts.guard = weights.inputs[0]
        weights = _only(graph, _through_views(graph, weights.inputs[2]))
    if weights is None or weights.operator != "softmax":
        return None
    rank = len(weights.output.shape)
    if weights.settings.get("axis", -1) not in (-1, rank - 1):
        return None
    product = _scores(graph, weights.inputs[0], parts)
    if product is None or not _are_same(product, graph.tensors[node.inputs[0]].shape):
        return None
    names = [parts.q, parts.k, parts.v, *([parts.added] if parts.added else [])]
    if why_no_attention(graph, names):
        return None
    q, result = graph.tensors[parts.q], node.output
    if not _are_same(q.shape[:-1], result.shape[:-1]) or result.dtype != q.dtype:
        return None
    # The kernel gives zeros where a mask hides all keys. Without one no query has minus infinity
    # for its largest score but by the overflow of 16 bits, and the kernel's scores are float32.
    if parts.guard and not finds_infinities(graph, parts.guard, weights.inputs[0]):
        return None
    return parts if _has_heads(graph, parts, product, triangles) else None


def _has_heads(graph: Graph, parts: _Found, product: Shape, triangles: Mapping[str, int]) -> bool:
    """Say where the heads are; return whether the mask is over these."""
    is_masked = bool(parts.seen or parts.added)
    if is_masked and _are_same(parts.view, product):
        return triangles.get(parts.seen, 0) >= 0
    if not is_masked:
        parts.heads = _heads_apart(graph, parts.q)
        return True
    if triangles.get(parts.seen, -1) < 0:
        return False
    parts.heads = _with_groups(graph, parts.q, parts.view[:-1])
    return bool(parts.heads)


def _heads_apart(graph: Graph, q: str) -> Shape:
    """Return batches and rows with each head apart, where queries of several heads in turn were
    brought together as rows of one matrix; empty elsewhere."""
    view = graph.producers.get(q)
    turn = graph.producers.get(view.inputs[0]) if view is not None else None
    if view is None or view.operator != "reshape" or turn is None or turn.operator != "transpose":
        return ()
    # As long as each head has one row, it lies with the others of its group.
    if len(turn.output.shape) < 2 or same(turn.output.shape[-2], 1):
        return ()
    is_row = same(turn.output.shape[-1], graph.tensors[q].shape[-1])
    return _with_groups(graph, q, turn.output.shape[:-1]) if is_row else ()


def _with_groups(graph: Graph, q: str, wanted: Shape) -> Shape:
    """Return batches and rows of queries if they are q's own, the rows cut into heads."""
    lead = graph.tensors[q].shape[:-2]
    fixed = all(isinstance(extent, int) for extent in (*wanted, *graph.tensors[q].shape))
    if not fixed or not lead or len(wanted) < len(lead) + 2:
        return ()
    return wanted if all(map(same, wanted, lead)) else ()


def _are_same(left: Shape, right: Shape) -> bool:
    return len(left) == len(right) and all(map(same, left, right))


def _scores(graph: Graph, name: str, parts: _Found) -> Shape | None:
    """Fill in what lies between the softmax and the first product; return the shape that this
    gives, None where it is none."""
    is_scaled = False
    while True:
        is_guarded = bool(parts.guard)
        name = _through_views(graph, name, is_guarded=is_guarded)
        node = _only(graph, name, is_guarded=is_guarded)
        if node is None:
            return None
        if node.operator == "matmul":
            return node.output.shape if _first_product(graph, node, parts) else None
        if node.operator == "where" and not is_scaled and not (parts.seen or parts.added):
            first, second = (_number(graph, each) for each in node.inputs[1:])
            parts.is_hiding = first is not None
            number = first if parts.is_hiding else second
            if number is None or number > _HIDDEN:
                return None
            parts.seen, parts.hidden, parts.view = node.inputs[0], number, node.output.shape
            name = node.inputs[2 if parts.is_hiding else 1]
            continue
        if node.operator not in ("mul", "div", "add"):
            return None
        numbers = [_number(graph, each) for each in node.inputs]
        if node.operator == "add":
            if is_scaled or parts.seen or parts.added:
                return None
            sides = [_leads_to_product(graph, each) for each in node.inputs]
            if sides.count(True) != 1:
                return None
            parts.added, name = node.inputs[sides.index(False)], node.inputs[sides.index(True)]
            parts.view = node.output.shape
            if not is_floating(graph.tensors[parts.added].dtype) or numbers != [None, None]:
                return None
            continue
        if node.operator == "mul" and numbers[0] is not None:
            numbers, other = [numbers[0]], node.inputs[1]
        elif numbers[1] is not None:
            other = node.inputs[0]
            numbers = [1.0 / numbers[1] if node.operator == "div" else numbers[1]]
        else:
            return None
        is_scaled = True
        parts.scale *= numbers[0]  # type: ignore[operator]
        name = other


def _first_product(graph: Graph, node: Node, parts: _Found) -> bool:
    if node.settings["transpose_a"]:
        return False
    parts.q, parts.k = node.inputs
    if node.settings["transpose_b"]:
        return parts.scale > 0
    turned = graph.producers.get(parts.k)
    if turned is None or turned.operator != "transpose":
        return False
    axes = turned.settings["axes"]
    assert isinstance(axes, tuple)
    rank = len(axes)
    if axes != (*range(rank - 2), rank - 1, rank - 2):
        return False
    parts.k = turned.inputs[0]
    return parts.scale > 0


def _leads_to_product(graph: Graph, name: str) -> bool:
    node = graph.producers.get(_through_views(graph, name))
    while node is not None and node.operator in ("mul", "div"):
        inner = [each for each in node.inputs if _number(graph, each) is None]
        if len(inner) != 1:
            return False
        node = graph.producers.get(_through_views(graph, inner[0]))
    return node is not None and node.operator == "matmul"


def _number(graph: Graph, name: str) -> float | None:
    node = graph.producers.get(name)
    while node is not None and node.operator == "broadcast_to":
        node = graph.producers.get(node.inputs[0])
    if node is None or node.operator != "constant":
        return None
    return node.settings.number("value")


def _through_views(graph: Graph, name: str, *, is_guarded: bool = False) -> str:
    """Return what a tensor is a cast of, or another view of the rows of."""
    while (node := graph.producers.get(name)) is not None:
        if len(_readers(graph, name, is_guarded)) != 1:
            break
        (source,) = node.inputs if len(node.inputs) == 1 else ("",)
        is_cast = node.operator == "cast" and is_floating(node.output.dtype)
        if not is_cast and not (node.operator == "reshape" and _keeps_rows(graph, node)):
            break
        name = source
    return name


def _readers(graph: Graph, name: str, is_guarded: bool) -> list[Node]:
    """Return who reads a tensor, but for a guard's search for the largest of each row."""
    return [each for each in graph.users[name] if not (is_guarded and each.operator == "max")]


def _keeps_rows(graph: Graph, node: Node) -> bool:
    before, after = graph.tensors[node.inputs[0]].shape, node.output.shape
    return bool(before) and bool(after) and same(before[-1], after[-1])


def _only(graph: Graph, name: str, *, is_guarded: bool = False) -> Node | None:
    """Return the node that computes a tensor which one other node reads and nobody else, but for a
    guard."""
    node = graph.producers.get(name)
    if node is None or len(_readers(graph, name, is_guarded)) != 1:
        return None
    return None if any(tensor == name for _, tensor in graph.outputs) else node
