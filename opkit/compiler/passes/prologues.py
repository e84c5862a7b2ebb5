"""What products multiply, computed in their kernels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from ..ir import is_one, same
from .fusion import FusedGraph, Group
from .waiting import in_running_order, needs

__all__ = ["fuse_prologues"]


def fuse_prologues(fused: FusedGraph) -> FusedGraph:
    """Return the graph with the vector groups that compute what products multiply in the kernels
    of these.

    Vector cores do such work first, cube cores wait for it: that saves a launch. Of several
    products that read the same the first takes it in; what lies between two kernels through a
    third stays a kernel of its own.
    """
    home = {node.output.name: at for at, each in enumerate(fused.groups) for node in each.nodes}
    reads = [
        {home[n] for node in each.nodes for n in node.inputs if n in home} - {at}
        for at, each in enumerate(fused.groups)
    ]
    groups: dict[int, Group] = dict(enumerate(fused.groups))
    for index, group in enumerate(fused.groups):
        taken = _prologue_of(fused, index, home, reads) if group.kind == "matmul" else []
        groups[index] = replace(group, before=tuple(groups.pop(at) for at in taken))
        for at in taken:
            home |= {node.output.name: index for node in fused.groups[at].nodes}
            reads[index] |= reads[at]
            reads[at] = set()
        for read in reads:
            if read & set(taken):
                read -= set(taken)
                read.add(index)
        reads[index].discard(index)
    if len(groups) == 1:
        groups = {at: replace(group, name=fused.graph.name) for at, group in groups.items()}
    order = [at for at in in_running_order(reads) if at in groups]
    return replace(fused, groups=tuple(groups[at] for at in order))


def _prologue_of(
    fused: FusedGraph, index: int, home: Mapping[str, int], reads: Sequence[set[int]]
) -> list[int]:
    """Return the places of the groups that can be part of a product's kernel, in order.

    Args:
        fused: the program, no product of which has taken anything in.
        index: the product's place.
        home: the place of the kernel that computes each tensor.
        reads: the places of the kernels that each kernel waits for.
    """
    groups = fused.groups
    returned = {home.get(tensor) for _, tensor in fused.graph.outputs}
    taken: list[int] = []
    for name in groups[index].nodes[0].inputs:
        chain: list[int] = []
        at = home.get(name)
        while at is not None and groups[at].kind == "view":
            chain.append(at)
            at = home.get(groups[at].nodes[0].inputs[0])
        if at is None or groups[at].kind != "vector" or not _lies_ready(fused, groups[index], name):
            continue
        # Others would not know under which name such a view lies.
        if any(
            each in returned or any(each in read for to, read in enumerate(reads) if to != after)
            for each, after in zip(chain, [index, *chain], strict=False)
        ):
            continue
        wanted = {*taken, *chain, at}
        # Nothing else that this kernel waits for may need what it computes first.
        others = (reads[index] | set().union(*(reads[each] for each in wanted))) - wanted
        if not needs(reads, others, wanted):
            taken = sorted(wanted)
    return taken


def _lies_ready(fused: FusedGraph, group: Group, name: str) -> bool:
    """Whether a product's kernel takes a matrix as it lies: one for each batch, or one for all."""
    outer = group.nodes[0].output.shape[:-2]
    own = fused.graph.tensors[name].shape[:-2]
    return all(map(is_one, own)) or (
        len(own) == len(outer) and all(same(a, b) for a, b in zip(own, outer, strict=True))
    )
