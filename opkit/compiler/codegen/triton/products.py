"""A product of matrices, with the element-wise operators that follow it, as a Triton kernel."""

from __future__ import annotations

from ...ir import GraphError, Shape, is_one, product, same
from ...passes import Domain, FusedGraph, Group, domain_of
from .expressions import KINDS, TritonWriter
from .functions import Schedule, TritonFunction, indented, launcher

__all__ = ["write_product"]

_SUMS = {"float16": "float32", "bfloat16": "float32", "float32": "float32", "int8": "int32"}
"""What products of a data type are added up in."""
_TOGETHER = 8
"""Blocks of rows that follow one another, and read the columns that a cache still holds."""


def _schedule(rows: int, columns: int, depth: int, warps: int = 4, stages: int = 3) -> Schedule:
    constants = {"ROWS": rows, "COLUMNS": columns, "DEPTH": depth, "TOGETHER": _TOGETHER}
    return Schedule(constants, warps, stages)


_SCHEDULES = (
    _schedule(64, 64, 32),
    _schedule(16, 64, 128, stages=4),
    _schedule(128, 128, 64),
    _schedule(128, 256, 64, warps=8),
)
_OF_FLOAT32 = (_schedule(64, 64, 16), _schedule(64, 64, 32, stages=2))


def write_product(fused: FusedGraph, group: Group) -> TritonFunction:
    """Return the function that multiplies two matrices of each batch.

    Raises:
        GraphError: Triton does not multiply these types, or an operator behind has no Triton.
    """
    node, *after = group.nodes
    left, right = fused.graph.inputs_of(node)
    if left.dtype != right.dtype or left.dtype not in _SUMS:
        raise GraphError(
            f"Triton does not multiply {left.dtype} by {right.dtype}",
            location=node.location,
            help=f"both matrices have one of {', '.join(_SUMS)}",
        )
    if after:
        domain = domain_of(fused.graph, after, keeps_matrices=True)
    else:
        shape = node.output.shape
        domain = Domain(shape, {node.output.name: (True,) * len(shape)}, "")
    writer = _Product(fused, after, fused.outputs_of(group), domain)
    result = node.output.name
    # The operators behind see what the product would be in memory, but for its rounding.
    total = "total"
    if KINDS[node.output.dtype] != _SUMS[left.dtype]:
        total = writer.converted(total, _SUMS[left.dtype], KINDS[node.output.dtype])
    writer.known[result] = total
    for name in writer.outputs:
        writer.store(name)
    tail = writer.lines
    *outer, m, n = (writer.size(extent) for extent in node.output.shape)
    turned_left, turned_right = (bool(node.settings[key]) for key in ("transpose_a", "transpose_b"))
    k = writer.size(left.shape[-2 if turned_left else -1])
    shapes = [[writer.size(extent) for extent in tensor.shape] for tensor in (left, right)]
    first, second = (writer.stem(tensor.name) for tensor in (left, right))
    shared = [_is_shared(tensor.shape) for tensor in (left, right)]
    begins = [
        "" if is_shared else f"batch * {rows} * {columns} + "
        for is_shared, rows, columns in ((shared[0], m, k), (shared[1], k, n))
    ]
    left_at = f"depth * {m} + rows" if turned_left else f"rows * {k} + depth"
    right_at = f"columns * {k} + deep" if turned_right else f"deep * {n} + columns"
    kernel = [
        "at = tl.program_id(0).to(tl.int64)",
        f"down, across = tl.cdiv({m}, ROWS), tl.cdiv({n}, COLUMNS)",
        *(["batch = at // (down * across)", "at = at % (down * across)"] if outer else []),
        "first = at // (TOGETHER * across) * TOGETHER",
        "high = min(TOGETHER, down - first)",
        "at = at % (TOGETHER * across)",
        "rows = (first + at % high) * ROWS + tl.arange(0, ROWS)[:, None]",
        "columns = at // high * COLUMNS + tl.arange(0, COLUMNS)[None, :]",
        f"in_rows = rows < {m}",
        f"in_columns = columns < {n}",
        "within = in_rows & in_columns",
        f"total = tl.zeros([ROWS, COLUMNS], tl.{_SUMS[left.dtype]})",
        f"for begin in range(0, {k}, DEPTH):",
        *indented(
            [
                "depth = begin + tl.arange(0, DEPTH)[None, :]",
                "deep = begin + tl.arange(0, DEPTH)[:, None]",
                f"left = tl.load({first} + {begins[0]}{left_at},"
                f" mask=in_rows & (depth < {k}), other=0)",
                f"right = tl.load({second} + {begins[1]}{right_at},"
                f" mask=in_columns & (deep < {k}), other=0)",
                f"total += {writer.dot(left.dtype, 'left', 'right')}",
            ]
        ),
        *writer.axes(m, n),
        *tail,
    ]
    before = []
    for stem, tensor, extents, is_shared in zip(
        (first, second), (left, right), shapes, shared, strict=True
    ):
        own, wide = tensor.shape[:-2], node.output.shape[:-2]
        is_whole = len(own) == len(wide) and all(map(same, own, wide))
        if is_shared or is_whole:
            before.append(f"{stem} = {stem}.contiguous()")
        else:
            wide_text = ", ".join([*outer, *extents[-2:]])
            before.append(f"{stem} = {stem}.expand({wide_text}).contiguous()")
    return launcher(
        group.name,
        fused,
        writer,
        kernel=kernel,
        inputs=fused.inputs_of(group),
        blocks=[
            f"triton.cdiv({m}, ROWS)",
            f"triton.cdiv({n}, COLUMNS)",
            *outer,
        ],
        schedules=_OF_FLOAT32 if left.dtype == "float32" else _SCHEDULES,
        before=before,
    )


def _is_shared(shape: Shape) -> bool:
    """Whether one matrix serves all batches."""
    return is_one(product(shape[:-2]))


class _Product(TritonWriter):
    """Elements at the rows and columns of a block of the product."""

    def axes(self, m: str, n: str) -> list[str]:
        """Return the lines that name the indices under way."""
        *batches, rows, columns = range(len(self.domain.extents))
        own = [f"{self.axis(rows)} = rows", f"{self.axis(columns)} = columns"]
        return [*own, *self.indices("batch", batches)]

    def mask(self, name: str) -> str:
        by_row, by_column = self.domain.varies[name][-2:]
        if by_row:
            return "within" if by_column else "in_rows"
        return "in_columns" if by_column else ""
