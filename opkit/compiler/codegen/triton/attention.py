"""Attention as one Triton kernel: the softmax runs along with the keys."""

from __future__ import annotations

import math

from ...ir import GraphError, Shape
from ...ops import heads_shared
from ...passes import Domain, FusedGraph, Group
from .expressions import TritonWriter, literal
from .functions import Schedule, TritonFunction, indented, launcher

__all__ = ["write_attention"]

_TYPES = ("float16", "bfloat16", "float32")
_BLOCKS = (
    ({"ROWS": 64, "COLUMNS": 32}, 4, 2),
    ({"ROWS": 64, "COLUMNS": 64}, 4, 3),
    ({"ROWS": 128, "COLUMNS": 64}, 8, 3),
)
"""Constants of schedules, their warps and stages."""
_LOG2_E = math.log2(math.e)
"""exp(x) is exp2(x log2 e), and a GPU has an instruction for exp2."""
_WIDEST = 256
"""Elements of a query or a value that a program holds."""


def write_attention(fused: FusedGraph, group: Group) -> TritonFunction:
    """Return the function that weighs values by the softmax of queries' products with keys.

    Raises:
        GraphError: the types are not Triton's, or the widths are named or too large.
    """
    (node,) = group.nodes
    tensors = fused.graph.inputs_of(node)
    q, k, v = tensors[:3]
    widths = (q.shape[-1], v.shape[-1])
    fits = all(isinstance(width, int) and width <= _WIDEST for width in widths)
    if not fits or any(tensor.dtype not in _TYPES for tensor in (q, k, v)):
        raise GraphError(
            f"attention over {q}, {k} and {v} has no Triton",
            location=node.location,
            help=f"widths are fixed, at most {_WIDEST}, of {', '.join(_TYPES)}",
        )
    writer = TritonWriter(fused, (), fused.outputs_of(group), Domain((1, 1), {}, ""))
    turned = node.settings.text("turned")
    result = node.output
    shape = list(result.shape)
    if "y" in turned:
        shape[-3:-1] = shape[-2:-4:-1]
    *outer, queries, width_out = (writer.size(extent) for extent in shape)
    keys = writer.size(k.shape[-3 if "k" in turned else -2])
    width = writer.size(q.shape[-1])
    names = [writer.stem(tensor.name) for tensor in tensors]
    y = writer.stem(result.name)
    scale = node.settings["scale"]
    given = float(int(width)) ** -0.5 if scale is None else float(str(scale))
    factor = literal(given * _LOG2_E, "float32")
    before = []
    for letter, name, tensor in zip("qkv", names, tensors, strict=False):
        apart = f"{name}.transpose(-3, -2)" if letter in turned else name
        batches_of = _batches(tensor.shape, letter in turned)
        shared = heads_shared(_batches(q.shape, "q" in turned), batches_of)
        if shared > 1:
            apart += f".repeat_interleave({shared}, -3)"
        rows = queries if letter == "q" else keys
        wide = ", ".join([*outer, rows, writer.size(tensor.shape[-1])])
        before.append(f"{name} = {apart}.expand({wide}).contiguous()")
    seen = f"columns < {keys}"
    end = keys
    if node.settings["causal"]:
        ahead = f" + {node.settings['ahead']}" if node.settings["ahead"] else ""
        end = f"min({keys}, (at % high + 1) * ROWS{ahead})"
        seen = f"({seen}) & (columns <= rows{ahead})"
    mask = []
    if len(tensors) > 3:
        wide = ", ".join([*outer, queries, keys])
        before.append(f"{names[3]} = {names[3]}.expand({wide}).contiguous()")
        mask = [
            f"mask = tl.load({names[3]} + (batch * {queries} + rows) * {keys} + columns,"
            f" mask=in_rows & (columns < {keys}), other=0).to(tl.float32)",
            f"scores = scores + mask * {_LOG2_E!r}",
        ]
    kernel = [
        "at = tl.program_id(0).to(tl.int64)",
        f"high = tl.cdiv({queries}, ROWS)",
        "batch = at // high",
        "rows = at % high * ROWS + tl.arange(0, ROWS)[:, None]",
        f"in_rows = rows < {queries}",
        "along = tl.arange(0, WIDTH)",
        "across = tl.arange(0, VALUES)[None, :]",
        f"query = tl.load({names[0]} + (batch * {queries} + rows) * {width} + along[None, :],"
        f" mask=in_rows & (along[None, :] < {width}), other=0)",
        'peak = tl.full([ROWS, 1], float("-inf"), tl.float32)',
        "weight = tl.zeros([ROWS, 1], tl.float32)",
        "total = tl.zeros([ROWS, VALUES], tl.float32)",
        f"for begin in range(0, {end}, COLUMNS):",
        *indented(
            [
                "columns = begin + tl.arange(0, COLUMNS)[None, :]",
                "down = begin + tl.arange(0, COLUMNS)[:, None]",
                f"key = tl.load({names[1]} + (batch * {keys} + columns) * {width} + along[:, None],"
                f" mask=(columns < {keys}) & (along[:, None] < {width}), other=0)",
                f"value = tl.load({names[2]} + (batch * {keys} + down) * {width_out} + across,"
                f" mask=(down < {keys}) & (across < {width_out}), other=0)",
                f"scores = {writer.dot(q.dtype, 'query', 'key')} * {factor}",
                *mask,
                f'scores = tl.where({seen}, scores, float("-inf"))',
                "higher = tl.maximum(peak, tl.max(scores, axis=1)[:, None])",
                'base = tl.where(higher == float("-inf"), 0.0, higher)',
                "kept = tl.exp2(peak - base)",
                "shares = tl.exp2(scores - base)",
                "weight = weight * kept + tl.sum(shares, axis=1)[:, None]",
                "shares = shares.to(value.dtype)",
                f"total = total * kept + {writer.dot(v.dtype, 'shares', 'value')}",
                "peak = higher",
            ]
        ),
        # A row that sees no key gives zeros.
        "weight = tl.where(weight == 0.0, 1.0, weight)",
        f"tl.store({y} + (batch * {queries} + rows) * {width_out} + across, total / weight,"
        f" mask=in_rows & (across < {width_out}))",
    ]
    return launcher(
        group.name,
        fused,
        writer,
        kernel=kernel,
        inputs=fused.inputs_of(group),
        blocks=[f"triton.cdiv({queries}, ROWS)", *outer],
        schedules=[
            Schedule(
                {**blocks, "WIDTH": _power(int(width)), "VALUES": _power(int(width_out))}, *own
            )
            for blocks, *own in _BLOCKS
        ],
        before=before,
        turned=result.name if "y" in turned else "",
    )


def _batches(shape: Shape, is_turned: bool) -> Shape:
    """Return the axes before rows and columns, heads last."""
    return (*shape[:-3], shape[-2]) if is_turned else shape[:-2]


def _power(extent: int) -> int:
    """Return the power of two that holds a width; 16 is the least that Triton multiplies."""
    return max(16, 1 << (extent - 1).bit_length())
