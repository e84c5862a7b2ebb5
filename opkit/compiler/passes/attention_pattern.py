"""Attention that a program spells out: found, and put into one operator."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..ir import Graph, Node, Value, is_floating, same
from .rewrite import Rebuilder

__all__ = ["recognise_attention", "why_no_attention"]

_WIDEST = 128
_TYPES = ("float16", "bfloat16")
_MASKS = ("float16", "bfloat16", "float32")
_HIDDEN = -1.0e4
"""What a mask puts in the place of hidden scores is this or less."""
_LEAST = -1.0e30
"""Infinities become this: a row that is hidden as far as one has looked has no largest score."""


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
    hidden: float = 0.0


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


def recognise_attention(graph: Graph) -> Graph:
    """Return the graph with an attention operator for each softmax between two products.

    What is recognised: `softmax(q @ kᵀ * scale + mask) @ v`, the scale as factor or divisor, the
    mask added or by `where`, with casts anywhere in between; of tensors that the kernel takes.
    """
    found: dict[str, _Found] = {}
    for node in graph.nodes:
        if node.operator == "matmul":
            parts = _attention(graph, node)
            if parts is not None:
                found[node.output.name] = parts
    if not found:
        return graph
    work = Rebuilder(graph)
    for node in graph.nodes:
        with work.builder.at(node.location):
            inputs = [work.values[name] for name in node.inputs]
            value = work.same(node, inputs)
            if node.output.name in found:
                value = _built(work, found[node.output.name])
            work.values[node.output.name] = value
    return work.finish()


def _built(work: Rebuilder, parts: _Found) -> Value:
    operands = [work.values[name] for name in (parts.q, parts.k, parts.v)]
    if parts.added:
        operands.append(work.values[parts.added])
    if parts.seen:
        condition = work.values[parts.seen]
        zero = work.builder.constant(0.0, "float32")
        operands.append(condition.apply("where", zero, max(parts.hidden, _LEAST)))
    return work.builder.apply("attention", *operands, scale=parts.scale, causal=False)


def _attention(graph: Graph, node: Node) -> _Found | None:
    if node.settings["transpose_a"] or node.settings["transpose_b"]:
        return None
    weights = _only(graph, _through_casts(graph, node.inputs[0]))
    if weights is None or weights.operator != "softmax":
        return None
    rank = len(weights.output.shape)
    if weights.settings.get("axis", -1) not in (-1, rank - 1):
        return None
    parts = _Found(v=node.inputs[1])
    if not _scores(graph, weights.inputs[0], parts):
        return None
    names = [parts.q, parts.k, parts.v, *([parts.added] if parts.added else [])]
    if why_no_attention(graph, names):
        return None
    q = graph.tensors[parts.q]
    result = node.output
    fits = len(q.shape) == len(result.shape) and all(map(same, q.shape[:-1], result.shape[:-1]))
    return parts if fits and result.dtype == q.dtype else None


def _scores(graph: Graph, name: str, parts: _Found) -> bool:
    """Fill in what lies between the softmax and the first product."""
    is_scaled = False
    while True:
        node = _only(graph, _through_casts(graph, name))
        if node is None:
            return False
        if node.operator == "matmul":
            return _first_product(graph, node, parts)
        if node.operator == "where" and not is_scaled and not (parts.seen or parts.added):
            number = _number(graph, node.inputs[2])
            if number is None or number > _HIDDEN:
                return False
            parts.seen, parts.hidden, name = node.inputs[0], number, node.inputs[1]
            continue
        if node.operator not in ("mul", "div", "add"):
            return False
        numbers = [_number(graph, each) for each in node.inputs]
        if node.operator == "add":
            if is_scaled or parts.seen or parts.added:
                return False
            sides = [_leads_to_product(graph, each) for each in node.inputs]
            if sides.count(True) != 1:
                return False
            parts.added, name = node.inputs[sides.index(False)], node.inputs[sides.index(True)]
            if not is_floating(graph.tensors[parts.added].dtype) or numbers != [None, None]:
                return False
            continue
        if node.operator == "mul" and numbers[0] is not None:
            numbers, other = [numbers[0]], node.inputs[1]
        elif numbers[1] is not None:
            other = node.inputs[0]
            numbers = [1.0 / numbers[1] if node.operator == "div" else numbers[1]]
        else:
            return False
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
    node = graph.producers.get(_through_casts(graph, name))
    while node is not None and node.operator in ("mul", "div"):
        inner = [each for each in node.inputs if _number(graph, each) is None]
        if len(inner) != 1:
            return False
        node = graph.producers.get(_through_casts(graph, inner[0]))
    return node is not None and node.operator == "matmul"


def _number(graph: Graph, name: str) -> float | None:
    node = graph.producers.get(name)
    if node is None or node.operator != "constant":
        return None
    return float(node.settings["value"])  # type: ignore[arg-type]


def _through_casts(graph: Graph, name: str) -> str:
    node = graph.producers.get(name)
    while node is not None and node.operator == "cast" and is_floating(node.output.dtype):
        if len(graph.users[name]) > 1:
            break
        name = node.inputs[0]
        node = graph.producers.get(name)
    return name


def _only(graph: Graph, name: str) -> Node | None:
    """Return the node that computes a tensor which one other node reads and nobody else."""
    node = graph.producers.get(name)
    if node is None or len(graph.users[name]) != 1:
        return None
    return None if any(tensor == name for _, tensor in graph.outputs) else node
