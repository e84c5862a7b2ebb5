"""Rows of the operators that move elements, look them up, or fill tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opkit.compiler import AtenCall as Call
from opkit.compiler import Value, fixed_size, placed

__all__ = ["ROWS", "VIEWS"]

Row = Callable[..., Any]

_SHORT_ROW = 16
"""Elements: loops over rows of fewer take longer than over joined ones."""


def _same(c: Call, x: Value, *_: Any, **__: Any) -> Value:
    return x


def _reshape(c: Call, x: Value, *_: Any, **__: Any) -> Value:
    restored = _batched_product(c, x)
    return x.reshape(*c.shape) if restored is None else restored


def _batched_product(c: Call, x: Value) -> Value | None:
    """Return a product of flattened batches whose result gets its batches back, with its operands'
    own batches."""
    nodes = {node.output.name: node for node in c.builder.nodes[-64:]}
    product = nodes.get(x.tensor.name)
    if product is None or product.operator != "matmul" or x.ndim != 3 or len(c.shape) < 4:
        return None
    if tuple(x.shape[1:]) != c.shape[-2:]:
        return None
    operands = []
    for name in product.inputs:
        node = nodes.get(name)
        if node is None or node.operator != "reshape":
            return None
        before = c.builder.value(node.inputs[0])
        if before.shape[:-2] != c.shape[:-2] or before.shape[-2:] != node.output.shape[-2:]:
            return None
        operands.append(before)
    return c.apply("matmul", *operands, **dict(product.attributes))


def _permute(c: Call, x: Value, dims: Sequence[int]) -> Value:
    return x.transpose(*(axis % x.ndim for axis in dims))


def _swap(c: Call, x: Value, a: int, b: int) -> Value:
    axes = list(range(x.ndim))
    a, b = a % x.ndim, b % x.ndim
    axes[a], axes[b] = axes[b], axes[a]
    return x.transpose(*axes)


def _turn(c: Call, x: Value) -> Value:
    return x.T if x.ndim == 2 else x


def _expand(c: Call, x: Value, *_: Any, **__: Any) -> Value:
    if x.shape == c.shape:
        return x
    lead = len(c.shape) - x.ndim
    return x.reshape(*((1,) * lead), *x.shape).apply("broadcast_to", shape=c.shape)


def _slice(
    c: Call, x: Value, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Value:
    axis = dim % x.ndim
    extent = x.shape[axis]
    assert isinstance(extent, int)
    first, stop, _ = slice(start, end).indices(extent)
    return _cut(x, axis, first, stop, step)


def _cut(x: Value, axis: int, start: int, stop: int, step: int = 1) -> Value:
    if start == 0 and stop == x.shape[axis] and step == 1:
        return x
    return x.apply("slice", axis=axis, start=start, stop=stop, step=step)


def _select(c: Call, x: Value, dim: int, index: int) -> Value:
    axis = dim % x.ndim
    extent = x.shape[axis]
    assert isinstance(extent, int)
    at = index % extent
    return _cut(x, axis, at, at + 1).reshape(*c.shape)


def _split(c: Call, x: Value, sizes: int | Sequence[int], dim: int = 0) -> tuple[Value, ...]:
    axis, begin, found = dim % x.ndim, 0, []
    for shape in c.shapes:
        found.append(_cut(x, axis, begin, begin + shape[axis]))
        begin += shape[axis]
    return tuple(found)


def _unbind(c: Call, x: Value, dim: int = 0) -> tuple[Value, ...]:
    axis = dim % x.ndim
    return tuple(_cut(x, axis, at, at + 1).reshape(*shape) for at, shape in enumerate(c.shapes))


def _cat(c: Call, tensors: Sequence[Value], dim: int = 0) -> Value:
    given = [c.typed(x) for x in tensors if x.shape != (0,)]
    if len(given) == 1:
        return given[0]  # type: ignore[return-value]
    return _joined(c, given, dim % len(c.shape))  # type: ignore[arg-type]


def _joined(c: Call, parts: Sequence[Value], axis: int) -> Value:
    bare, signs = _signs_of(c, parts, axis)
    joined = c.apply("concat", *bare, axis=axis)
    if signs is None:
        return joined
    behind = joined.ndim - axis - 1
    if (
        len(signs) >= _SHORT_ROW
        or behind
        or not axis
        or not isinstance(joined.shape[axis - 1], int)
    ):
        return joined * c.typed(c.constant(signs.reshape(-1, *(1,) * behind)))
    inner = joined.shape[axis - 1]
    rows = joined.reshape(*joined.shape[: axis - 1], inner * len(signs))
    return (rows * c.typed(c.constant(np.tile(signs, inner)))).reshape(*joined.shape)


def _signs_of(
    c: Call, parts: Sequence[Value], axis: int
) -> tuple[Sequence[Value], np.ndarray | None]:
    """Return what is joined without the negations of some parts, and the sign of each index along
    the axis; None where no part is negated.

    A negated part is a kernel between two that move elements, as in the rotation of half a head; a
    sign joins what reads the result, and the kernel that joins cuts its parts itself.
    """
    made = {node.output.name: node for node in c.builder.nodes}
    bare: list[Value] = []
    signs: list[np.ndarray] = []
    for part in parts:
        node = made.get(part.tensor.name)
        if node is not None and node.operator == "reshape":
            node = made.get(node.inputs[0])
        is_negated = node is not None and node.operator == "neg" and "float" in part.dtype
        extent = part.shape[axis]
        if not isinstance(extent, int):
            return parts, None
        if node and is_negated:
            part = c.builder.value(node.inputs[0]).reshape(*part.shape)
        bare.append(part)
        signs.append(np.full(extent, -1.0 if is_negated else 1.0, np.float32))
    is_plain = all(mine is given for mine, given in zip(bare, parts, strict=True))
    return bare, None if is_plain else np.concatenate(signs)


def _stack(c: Call, tensors: Sequence[Value], dim: int = 0) -> Value:
    axis = dim % len(c.shape)
    wide = [x.reshape(*x.shape[:axis], 1, *x.shape[axis:]) for x in tensors]
    return _joined(c, wide, axis) if len(wide) > 1 else wide[0]


def _copied(c: Call, x: Value, source: Value, non_blocking: bool = False) -> Value:
    """Return what a tensor is after another was copied into all of it."""
    lead = len(c.shape) - source.ndim
    source = source.reshape(*(1,) * lead, *source.shape) if lead > 0 else source
    wide = source if source.shape == c.shape else source.apply("broadcast_to", shape=c.shape)
    return wide.astype(x.dtype)


def _slice_scatter(
    c: Call,
    x: Value,
    source: Value,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Value:
    """Return a tensor with a part of it replaced."""
    axis = dim % x.ndim
    extent = x.shape[axis]
    assert isinstance(extent, int)
    first, stop, _ = slice(start, end).indices(extent)
    if first >= stop:
        return x
    if step != 1:
        return _scattered_with_gaps(c, x, source, axis, range(first, stop, step))
    parts = [source]
    if first > 0:
        parts.insert(0, _cut(x, axis, 0, first))
    if stop < extent:
        parts.append(_cut(x, axis, stop, extent))
    return c.apply("concat", *parts, axis=axis) if len(parts) > 1 else source


def _scattered_with_gaps(c: Call, x: Value, source: Value, axis: int, at: range) -> Value:
    """Return a tensor with what lies at equal distances along an axis replaced: in each group of so
    many elements the same one."""
    extent, step = fixed_size(x.shape[axis]), at.step
    lead, rest = x.shape[:axis], x.shape[axis + 1 :]
    count, (before, first) = -(-extent // step), divmod(at.start, step)
    groups = placed(x, axis, 0, count * step).reshape(*lead, count, step, *rest)
    new = placed(source, axis, before, count).reshape(*lead, count, 1, *rest)
    around = (_cut(groups, axis + 1, 0, first), _cut(groups, axis + 1, first + 1, step))
    parts = [each for each in (around[0], new, around[1]) if each.shape[axis + 1]]
    put = c.apply("concat", *parts, axis=axis + 1).reshape(*lead, count * step, *rest)
    put = _cut(put, axis, 0, extent)
    every = range(first, extent, step)
    if at == every:
        return put
    is_new = np.isin(np.arange(extent), at).astype(np.float32).reshape(-1, *(1,) * len(rest))
    return c.constant(is_new).apply("not_equal", 0.0).apply("where", put, x)


def _select_scatter(c: Call, x: Value, source: Value, dim: int, index: int) -> Value:
    axis = dim % x.ndim
    extent = x.shape[axis]
    assert isinstance(extent, int)
    at = index % extent
    wide = source.reshape(*x.shape[:axis], 1, *x.shape[axis + 1 :])
    return _slice_scatter(c, x, wide, axis, at, at + 1)


def _pad(c: Call, x: Value, pad: Sequence[int], value: float = 0) -> Value:
    pairs = [(int(pad[at]), int(pad[at + 1])) for at in range(0, len(pad), 2)]
    widths = [(0, 0)] * (x.ndim - len(pairs)) + pairs[::-1]
    for axis, (before, after) in enumerate(widths):
        # Less than nothing is cut off.
        x = _cut(x, axis, max(0, -before), fixed_size(x.shape[axis]) - max(0, -after))
        widths[axis] = (max(0, before), max(0, after))
    if not any(max(pair) for pair in widths):
        return x
    return x.apply(
        "pad", widths=tuple(widths), value=value if "float" not in x.dtype else float(value)
    )


def _repeat(c: Call, x: Value, repeats: Sequence[int]) -> Value:
    lead = len(repeats) - x.ndim
    shape = (*((1,) * lead), *x.shape)
    split = [each for extent in shape for each in (1, extent)]
    wide = [e for n, extent in zip(repeats, shape, strict=True) for e in (n, extent)]
    return x.reshape(*split).apply("broadcast_to", shape=tuple(wide)).reshape(*c.shape)


def _fill(c: Call, _: Any, value: float = 0, **__: Any) -> Value:
    if isinstance(value, Value):
        return value.astype(c.dtype).apply("broadcast_to", shape=c.shape)
    return c.full(c.shape, value, c.dtype)


def _filled(value: float) -> Row:
    return lambda c, *_, **__: c.full(c.shape, value, c.dtype)


def _embedding(c: Call, table: Value, indices: Value, *_: Any, **__: Any) -> Value:
    return table.apply("take", indices, axis=0)


def _index_select(c: Call, x: Value, dim: int, index: Value) -> Value:
    return x.apply("take", index, axis=dim % x.ndim)


def _flip(c: Call, x: Value, dims: Sequence[int]) -> Value:
    for axis in sorted({c.axis(dim, x.ndim) for dim in dims}) if x.ndim else ():
        extent = fixed_size(x.shape[axis])
        if extent > 1:
            x = x.apply(
                "take", c.constant(np.arange(extent, dtype=np.int32)[::-1].copy()), axis=axis
            )
    return x


_VIEWS: Mapping[str, Row] = {
    **{f"aten.{n}.default": _reshape for n in ("view", "reshape", "unsqueeze", "squeeze")},
    **{f"aten.squeeze.{kind}": _reshape for kind in ("dim", "dims")},
    "aten._unsafe_view.default": _reshape,
    "aten.permute.default": _permute,
    "aten.transpose.int": _swap,
    "aten.t.default": _turn,
    "aten.expand.default": _expand,
    "aten.slice.Tensor": _slice,
    "aten.select.int": _select,
    "aten.alias.default": _same,
    "aten.detach.default": _same,
    "aten.split.Tensor": _split,
    "aten.split_with_sizes.default": _split,
    "aten.unbind.int": _unbind,
}

VIEWS = frozenset(_VIEWS)

ROWS: Mapping[str, Row] = {
    **_VIEWS,
    "aten.clone.default": _same,
    "aten.copy.default": _copied,
    "aten.contiguous.default": _same,
    "aten.lift_fresh_copy.default": _same,
    "aten.cat.default": _cat,
    "aten.stack.default": _stack,
    "aten.constant_pad_nd.default": _pad,
    "aten.slice_scatter.default": _slice_scatter,
    "aten.select_scatter.default": _select_scatter,
    "aten.flip.default": _flip,
    "aten.repeat.default": _repeat,
    "aten.full.default": _fill,
    "aten.full_like.default": _fill,
    "aten.fill.Scalar": _fill,
    "aten.scalar_tensor.default": lambda c, value, **_: c.full(c.shape, value, c.dtype),
    **{f"aten.{name}.default": _filled(0) for name in ("zeros", "zeros_like", "new_zeros")},
    **{f"aten.{name}.default": _filled(1) for name in ("ones", "ones_like", "new_ones")},
    "aten.new_full.default": lambda c, x, size, value, **_: c.full(c.shape, value, c.dtype),
    "aten.embedding.default": _embedding,
    "aten.index_select.default": _index_select,
}
