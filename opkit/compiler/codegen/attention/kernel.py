"""An attention node's kernel, and the numbers and arrays of its launches."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

import numpy as np

from opkit.chips import Chip

from ...ir import Graph, GraphError, Node
from ...passes import why_no_attention
from .text import KEYS, QUERIES, SLOTS, AttentionKernel

__all__ = ["attention_arrays", "attention_data", "attention_kernel", "workspaces"]


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
    return AttentionKernel(name, dtype, bool(node.settings["causal"]), mask, node.location)


def attention_data(node: Node, arrays: Sequence[Any], chip: Chip) -> tuple[int, bytes]:
    """Return the cores and the tiling data of a launch over q, k, v and a mask, laid out by
    `attention_arrays`."""
    turned = str(node.settings["turned"])
    q, k, v, *mask = (apart(a, c in turned) for a, c in zip(arrays, "qkvm", strict=False))
    batches = int(np.prod(q.shape[:-2]))
    queries, width = q.shape[-2:]
    groups = -(-queries // QUERIES)
    scale = node.settings["scale"]
    factor = width**-0.5 if scale is None else float(scale)  # type: ignore[arg-type]
    is_shared = int(np.prod(k.shape[:-2])) == 1
    batch_mask = row_mask = 0
    if mask:
        rows, columns = mask[0].shape[-2:]
        row_mask = columns if rows > 1 or queries == 1 else 0
        batch_mask = rows * columns if int(np.prod(mask[0].shape[:-2])) > 1 else 0
    values = (
        *(batches * groups, groups, queries, k.shape[-2], width, v.shape[-1]),
        *(0 if is_shared else k.shape[-2], batch_mask, row_mask),
        *(q.shape[-3] if letter in turned else 1 for letter in "qkvy"),
    )
    cores = min(chip.count("cores.aic"), batches * groups)
    return cores, struct.pack("=13qfI", *values, factor, 0)


def attention_arrays(arrays: Sequence[Any], turned: str = "") -> list[Any]:
    """Return q, k, v and a mask with one matrix for each batch, or one for all: what broadcasts
    along some batch axes only is laid out by the host.

    Args:
        turned: which of q, k and v have rows before heads.
    """
    q, k, v, *mask = arrays
    outer = apart(q, "q" in turned).shape[:-2]
    if "k" not in turned and "v" not in turned:
        is_shared = int(np.prod(k.shape[:-2])) == 1 and int(np.prod(v.shape[:-2])) == 1
        if not is_shared:
            k, v = (_laid_out(each, outer) for each in (k, v))
    # What is turned has q's own batches; what is not beside it, too.
    elif "k" not in turned:
        k = _laid_out(k, outer)
    elif "v" not in turned:
        v = _laid_out(v, outer)
    keys = apart(k, "k" in turned).shape[-2]
    if mask:
        (given,) = mask
        given = given.reshape((1,) * max(0, 2 - given.ndim) + given.shape)
        if given.shape[-1] != keys:
            given = np.broadcast_to(given, (*given.shape[:-1], keys))
        own = given.shape[:-2]
        mask = [np.ascontiguousarray(given if int(np.prod(own)) == 1 else _laid_out(given, outer))]
    return [q, k, v, *mask]


def apart(array: Any, is_turned: bool) -> Any:
    """Return heads before rows, whatever comes first in memory."""
    return np.swapaxes(array, -3, -2) if is_turned else array


def workspaces(cores: int, value_width: int, dtype: str) -> list[Any]:
    """Return the arrays through which cube and vector cores hand over scores, weights and sums."""
    slots = cores * SLOTS * QUERIES
    columns = -(-value_width // 16) * 16
    numpy = "float16" if dtype == "float16" else "uint16"
    return [
        np.empty(slots * KEYS, np.float32),
        np.empty(slots * KEYS, numpy),
        np.empty(slots * columns, np.float32),
    ]


def _laid_out(array: Any, outer: tuple[int, ...]) -> Any:
    if array.shape[:-2] == outer:
        return array
    return np.ascontiguousarray(np.broadcast_to(array, (*outer, *array.shape[-2:])))
