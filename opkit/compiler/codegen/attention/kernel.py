"""An attention node's kernel, and the numbers and shapes of its launches."""

from __future__ import annotations

import math
import struct
from collections.abc import Sequence
from typing import TypeAlias

from opkit.chips import Chip

from ...ir import Graph, GraphError, Node
from ...passes import why_no_attention
from ..spread import Spread
from .text import KEYS, QUERIES, SLOTS, AttentionKernel

__all__ = ["attention_data", "attention_kernel", "attention_layout", "workspaces"]

Extents: TypeAlias = tuple[int, ...]


def attention_kernel(graph: Graph, name: str, node: Node) -> AttentionKernel:
    """Return a node's kernel.

    Raises:
        GraphError: the tensors are too wide, or of other types; at the user's line.
    """
    reason = why_no_attention(graph, node.inputs)
    if reason:
        raise GraphError(
            f"attention in one kernel: {reason}",
            location=node.location,
            help="cast the operands, or spell it out: products and a softmax are several kernels",
        )
    mask = graph.tensors[node.inputs[3]].dtype if len(node.inputs) > 3 else None
    dtype = graph.tensors[node.inputs[0]].dtype
    return AttentionKernel(name, dtype, node.settings.truth("causal"), mask, node.location)


def attention_data(node: Node, shapes: Sequence[Extents], chip: Chip) -> tuple[int, bytes]:
    """Return the cores and the tiling data of a launch over q, k, v and a mask, of the shapes that
    `attention_layout` gives."""
    turned = node.settings.text("turned")
    q, k, v, *mask = (_apart(s, c in turned) for s, c in zip(shapes, "qkvm", strict=False))
    batches = math.prod(q[:-2])
    queries, width = q[-2:]
    groups = -(-queries // QUERIES)
    scale = node.settings["scale"]
    factor = width**-0.5 if scale is None else float(scale)
    sharing = max(1, batches // max(1, math.prod(k[:-2])))
    batch_mask = row_mask = 0
    if mask:
        *own, rows, columns = mask[0]
        row_mask = columns if rows > 1 or queries == 1 else 0
        batch_mask = rows * columns if math.prod(own) > 1 else 0
    values = (
        *(batches * groups, groups, queries, k[-2], width, v[-1]),
        *(sharing, node.settings.integer("ahead"), batch_mask, row_mask),
        *(
            each[-3] if letter in turned else 1
            for letter, each in zip("qkvy", (q, k, v, q), strict=True)
        ),
    )
    cores = min(chip.count("cores.aic"), batches * groups)
    return cores, struct.pack("=14qfI", *values, factor, 0)


def attention_layout(
    shapes: Sequence[Extents], turned: str = ""
) -> tuple[list[Extents], list[Spread | None]]:
    """Return the shapes of q, k, v and a mask with one matrix for each batch, or one for all, and
    how the host lays each out so: what broadcasts along some batch axes only.

    Args:
        turned: which of q, k and v have rows before heads.
    """
    q, k, v, *mask = shapes
    outer = _apart(q, "q" in turned)[:-2]
    found: list[Extents] = [q, k, v]
    own = [_apart(each, letter in turned)[:-2] for each, letter in ((k, "k"), (v, "v"))]
    sharing = [_batches_sharing(outer, each) for each in own]
    if None in sharing or sharing[0] != sharing[1]:
        # What is turned has batches enough of its own; what is not beside it gets as many.
        wide = [each for each, letter in zip(own, "kv", strict=True) if letter in turned]
        wanted = wide[0] if wide else outer
        for at, letter in ((1, "k"), (2, "v")):
            if letter not in turned:
                found[at] = (*wanted, *shapes[at][-2:])
    if mask:
        keys = _apart(found[1], "k" in turned)[-2]
        *several, rows, _ = ((1,) * max(0, 2 - len(mask[0]))) + mask[0]
        found.append((*(several if math.prod(several) == 1 else outer), rows, keys))
    spreads = [
        Spread((1,) * max(0, 2 - len(given)) + given, wanted)
        if math.prod(given) != math.prod(wanted)
        else None
        for given, wanted in zip(shapes, found, strict=True)
    ]
    return found, spreads


def _batches_sharing(outer: Extents, own: Extents) -> int | None:
    """Return how many batches of queries that follow one another share one of keys; None where
    those that share one do not follow one another.

    Args:
        outer: the batches of queries.
        own: those of keys, or of values, which broadcast to them or have fewer heads.
    """
    own = (*(1,) * (len(outer) - len(own)), *own)
    rest = list(zip(outer, own, strict=True))
    while rest and rest[0][0] == rest[0][1]:
        rest = rest[1:]
    if any(each != 1 for _, each in rest[1:]):
        return None
    return math.prod(outer) // max(1, math.prod(own))


def _apart(shape: Extents, is_turned: bool) -> Extents:
    """Return heads before rows, whatever comes first in memory."""
    if not is_turned:
        return shape
    *outer, rows, heads, width = shape
    return (*outer, heads, rows, width)


def workspaces(cores: int, value_width: int, dtype: str) -> list[tuple[int, str]]:
    """Return the elements and the data types, NumPy's, of the arrays through which cube and vector
    cores hand over scores, weights and sums."""
    slots = cores * SLOTS * QUERIES
    columns = -(-value_width // 16) * 16
    numpy = "float16" if dtype == "float16" else "uint16"
    return [(slots * KEYS, "float32"), (slots * KEYS, numpy), (slots * columns, "float32")]
