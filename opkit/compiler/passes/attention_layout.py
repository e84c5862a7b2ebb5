"""Heads that lie beside each other, row by row: attention reads and writes them where they lie."""

from __future__ import annotations

from ..ir import Graph, Node, Value, fixed_size
from ..ops import heads_shared
from .rewrite import Rebuilder

__all__ = ["absorb_transposes"]

_LONGEST = 65535
"""Elements from row to row of a matrix that a copy to L1 can say."""


def absorb_transposes(graph: Graph) -> Graph:
    """Return the graph without the transposes that only bring heads before rows for attention, and
    rows before heads behind it: its kernel steps over the other heads instead."""
    if not any(node.operator == "attention" for node in graph.nodes):
        return graph
    work = Rebuilder(graph)
    done: set[str] = set()
    for node in graph.nodes:
        with work.builder.at(node.location):
            inputs = [work.values[name] for name in node.inputs]
            if node.operator == "attention":
                value, is_turned = _absorbed(work, node, inputs)
                if is_turned:
                    done.add(node.output.name)
            elif node.operator == "transpose" and node.inputs[0] in done:
                (value,) = inputs
            else:
                value = work.same(node, inputs)
            work.values[node.output.name] = value
    return work.finish()


def _absorbed(work: Rebuilder, node: Node, inputs: list[Value]) -> tuple[Value, bool]:
    """Return an attention without the transposes around it, and whether its result is turned."""
    graph = work.graph
    settings = dict(node.attributes)
    turned = str(settings.get("turned", ""))
    batches = graph.tensors[node.inputs[0]].shape[:-2]
    for index, letter in enumerate("qkv"):
        name = node.inputs[index]
        before = graph.producers.get(name)
        if letter in turned or before is None or not _is_turn(before, -3):
            continue
        # Keys that several batches share are laid out otherwise, but for heads that share some.
        own = graph.tensors[name].shape[:-2]
        if own == batches or (own[:-1] == batches[:-1] and heads_shared(batches, own) > 1):
            turned += letter
            inputs[index] = work.values[before.inputs[0]]
    result = node.output.name
    users = graph.users[result]
    is_turned = (
        "y" not in turned
        and bool(users)
        and all(_is_turn(user, -2) for user in users)
        and all(tensor != result for _, tensor in graph.outputs)
    )
    settings["turned"] = turned + ("y" if is_turned else "")
    return work.builder.apply("attention", *inputs, **settings), is_turned


def _is_turn(node: Node, heads_at: int) -> bool:
    """Whether a node swaps heads and rows, the axes before the last, of fixed sizes.

    Args:
        heads_at: the axis of its result that heads lie along; rows lie along the other.
    """
    if node.operator != "transpose":
        return False
    axes = node.settings["axes"]
    assert isinstance(axes, tuple)
    rank = len(axes)
    if rank < 3 or axes != (*range(rank - 3), rank - 2, rank - 3, rank - 1):
        return False
    sizes = node.output.shape[-3:]
    if not all(isinstance(extent, int) for extent in sizes):
        return False
    # From row to row of a head lie all heads.
    return fixed_size(sizes[heads_at]) * fixed_size(sizes[-1]) <= _LONGEST
