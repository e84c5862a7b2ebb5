"""Rows of the operators that order elements, and that pick or put them where a tensor says."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from opkit.compiler import AtenCall as Call
from opkit.compiler import Operand, Refused, Value, fixed_shape, fixed_size, log_of_sums, scan

__all__ = ["LOOKUPS", "ROWS", "Lookup"]

Row = Callable[..., Any]
Lookup = Callable[..., Sequence[tuple[Any, int]]]
"""Takes an operator's arguments, where a tensor is anything with a `shape`; returns those that hold
places, and how many places there are."""


def _sort(c: Call, x: Value, dim: int = -1, descending: bool = False) -> tuple[Value, Value]:
    given = {"axis": c.axis(dim, x.ndim), "descending": bool(descending)}
    return x.apply("sort", **given), x.apply("argsort", **given)


def _stable_sort(c: Call, x: Value, *, stable: bool = True, **settings: Any) -> tuple[Value, Value]:
    return _sort(c, x, **settings)


def _topk(
    c: Call, x: Value, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Value, Value]:
    given = {"k": k, "axis": c.axis(dim, x.ndim), "largest": bool(largest)}
    return x.apply("topk", **given), x.apply("topk_places", **given)


def _extreme(name: str) -> Row:
    def row(c: Call, x: Value, dim: int | None = None, keepdim: bool = False) -> Value:
        whole = x.reshape(-1) if dim is None else x
        axis = 0 if dim is None else c.axis(dim, x.ndim)
        return whole.apply(name, axis=axis, keepdims=True).reshape(*c.shape)

    return row


def _extreme_and_place(name: str) -> Row:
    def row(c: Call, x: Value, dim: int, keepdim: bool = False) -> tuple[Value, Value]:
        axis = c.axis(dim, x.ndim)
        found = x.apply(name, axis=axis, keepdims=True)
        place = x.apply(f"arg{name}", axis=axis, keepdims=True)
        return found.reshape(*c.shapes[0]), place.reshape(*c.shapes[1])

    return row


def _any(c: Call, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    return _highest(c, x, dim, "max")


def _all(c: Call, x: Value, dim: Any = None, keepdim: bool = False) -> Value:
    return _highest(c, x, dim, "min")


def _highest(c: Call, x: Value, dim: Any, name: str) -> Value:
    truth = x if x.dtype == "bool" else x.apply("not_equal", 0)
    axes = tuple(dim) if isinstance(dim, list | tuple) else dim
    number = truth.astype("float32").apply(name, axis=None if axes == () else axes, keepdims=True)
    return number.apply("greater", 0.5).reshape(*c.shape)


def _on_the_way(name: str) -> Row:
    def row(c: Call, x: Value, dim: int) -> Value:
        if x.ndim == 0:
            raise Refused("along no axis there is no kernel")
        return c.typed(x).apply(name, axis=c.axis(dim, x.ndim))  # type: ignore[union-attr]

    return row


def _log_of_sums(c: Call, x: Value, dim: int) -> Value:
    if x.ndim == 0:
        raise Refused("along no axis there is no kernel")
    return log_of_sums(x, c.axis(dim, x.ndim)).astype(c.dtype)


def _running_extreme(name: str, neutral: float) -> Row:
    """Row of extremes on the way and their places: of equal elements that of the last."""

    def row(c: Call, x: Value, dim: int) -> tuple[Value, Value]:
        if x.ndim == 0 or "float" not in x.dtype:
            raise Refused("extremes on the way have a kernel of fractions along an axis")
        axis = c.axis(dim, x.ndim)
        if axis == x.ndim - 1:
            raise Refused("within lines the device's own kernel takes less time")
        wide = x.astype("float32")
        found = scan(wide, lambda a, b: a.apply(name, b), neutral, axis)
        is_new = wide.apply("equal", found).apply("logical_or", wide.apply("not_equal", wide))
        extent = fixed_size(x.shape[axis])
        if extent >= _MOST_FLOATS:
            raise Refused(f"places among {extent} elements have no kernel")
        ones = (extent if at == axis else 1 for at in range(x.ndim))
        position = c.apply("arange", count=extent, dtype="int32").astype("float32").reshape(*ones)
        place = scan(
            is_new.apply("where", position, 0.0), lambda a, b: a.apply("maximum", b), 0.0, axis
        )
        return found.astype(c.dtypes[0]), place.astype("int32")

    return row


def _cut(x: Value, shape: Sequence[Any], but: int | None = None) -> Value:
    """Return the first elements along every axis, as many as a shape has."""
    for axis, extent in enumerate(shape):
        if axis != but and x.shape[axis] != extent:
            x = x.apply("slice", axis=axis, start=0, stop=extent, step=1)
    return x


def _gather(c: Call, x: Value, dim: int, index: Value, sparse_grad: bool = False) -> Value:
    if x.ndim == 0 or index.ndim == 0:
        raise Refused("indices of a scalar have no kernel")
    axis = c.axis(dim, x.ndim)
    return _cut(x, index.shape, axis).apply("take_along", index, axis=axis)


def _put(c: Call, x: Value, index: Value, source: Operand) -> Value:
    """Return what is put at each index: a part of a tensor, or a number."""
    if x.ndim == 0 or index.ndim == 0:
        raise Refused("indices of a scalar have no kernel")
    if isinstance(source, Value):
        return _cut(source, index.shape)
    return c.full(fixed_shape(index.shape), source, c.dtype)


def _scatter(add: bool) -> Row:
    def row(c: Call, x: Value, dim: int, index: Value, source: Operand) -> Value:
        return x.apply(
            "put_along", index, _put(c, x, index, source), axis=c.axis(dim, x.ndim), add=add
        )

    return row


_MOST_FLOATS = 1 << 24
_JOINS = {"amax": "max", "amin": "min", "prod": "multiply", "multiply": "multiply"}


def _reduced(
    c: Call, x: Value, axis: int, index: Value, source: Value, reduce: str, has_own: bool
) -> Value:
    """Return a tensor whose elements are joined with those that are put at their places.

    Args:
        has_own: what stood there before counts, too.
    """
    if (*x.shape[:axis], *x.shape[axis + 1 :]) != (
        *source.shape[:axis],
        *source.shape[axis + 1 :],
    ):
        raise Refused("elements of a part of a tensor are joined by no kernel")
    is_fraction = "float" in x.dtype
    if reduce == "mean" and not is_fraction:
        raise Refused("means of whole numbers have no kernel")
    wide = "float32" if reduce == "mean" else x.dtype if is_fraction else "int32"
    x, source = x.astype(wide), source.astype(wide)
    shape = fixed_shape(source.shape)
    if not has_own:
        least, most = (-math.inf, math.inf) if is_fraction else (-(1 << 31), (1 << 31) - 1)
        neutral = {"amax": least, "amin": most, "prod": 1, "multiply": 1}.get(reduce, 0)
        x = x.apply("put_along", index, c.full(shape, neutral, wide), axis=axis)
    if reduce in _JOINS:
        return x.apply("join_along", index, source, axis=axis, join=_JOINS[reduce]).astype(c.dtype)
    total = x.apply("put_along", index, source, axis=axis, add=True)
    if reduce == "mean":
        own = c.full(fixed_shape(x.shape), float(has_own), wide)
        ones = c.full(shape, 1.0, wide)
        count = own.apply("put_along", index, ones, axis=axis, add=True)
        total = total / count.apply("maximum", 1.0)
    elif reduce not in ("sum", "add"):
        raise Refused(f'there is no kernel that joins by "{reduce}"')
    return total.astype(c.dtype)


def _scatter_reduced(
    c: Call,
    x: Value,
    dim: int,
    index: Value,
    source: Operand,
    reduce: str | None = None,
    include_self: bool = True,
    **_: Any,
) -> Value:
    given = _put(c, x, index, source)
    return _reduced(c, x, c.axis(dim, x.ndim), index, given, str(reduce), include_self)


def _index_reduced(
    c: Call,
    x: Value,
    dim: int,
    index: Value,
    source: Value,
    reduce: str,
    *,
    include_self: bool = True,
) -> Value:
    if x.ndim == 0:
        raise Refused("indices of a scalar have no kernel")
    axis = c.axis(dim, x.ndim)
    places = index.reshape(*(-1 if at == axis else 1 for at in range(x.ndim)))
    return _reduced(c, x, axis, places, source, reduce, include_self)


def _index_add(
    c: Call, x: Value, dim: int, index: Value, source: Value, *, alpha: float = 1
) -> Value:
    if x.ndim == 0:
        raise Refused("indices of a scalar have no kernel")
    axis = c.axis(dim, x.ndim)
    places = index.reshape(*(-1 if at == axis else 1 for at in range(x.ndim)))
    given = source if alpha == 1 else source * alpha
    return x.apply("put_along", places, given, axis=axis, add=True)


def _embedding_backward(
    c: Call, grad: Value, indices: Value, rows: int, padding: int, by_frequency: bool
) -> Value:
    """Return the sum of the gradients of each row of a table."""
    if by_frequency:
        raise Refused("gradients scaled by how often a row is read have no kernel")
    places = indices.reshape(-1, 1)
    # Many rows of half precision are added up in full.
    lines = grad.reshape(-1, grad.shape[-1]).astype("float32")
    if padding >= 0:
        lines = places.apply("not_equal", padding).apply("where", lines, 0.0)
    zeros = c.full((rows, fixed_size(lines.shape[1])), 0, "float32")
    return zeros.apply("put_along", places, lines, axis=0, add=True).astype(c.dtype)


def _index(c: Call, x: Value, indices: Sequence[Value | None]) -> Value:
    apart = _apart(x, indices)
    if apart is not None:
        return apart.reshape(*c.shape)
    first, places, count = _flat_places(x, indices)
    shape = x.shape
    flat = x.reshape(*shape[:first], -1, *shape[first + count :])
    return flat.apply("take", places.reshape(-1), axis=first).reshape(*c.shape)


def _apart(x: Value, indices: Sequence[Value | None]) -> Value | None:
    """Return what indices pick that each have axes of the result for themselves, one axis after the
    other: rows, and then elements of them. None where they pick together."""
    given = [at for at, each in enumerate(indices) if each is not None]
    if len(given) < 2 or given != list(range(given[0], given[-1] + 1)):
        return None
    rank = max(each.ndim for each in indices if each is not None)
    behind = 0
    for at in given:
        index = indices[at]
        assert index is not None
        if index.dtype == "bool" or not all(isinstance(n, int) for n in index.shape):
            return None
        own = [axis + rank - index.ndim for axis, n in enumerate(index.shape) if n != 1]
        if not own or own[0] < behind:
            return None
        behind = own[-1] + 1
        x = x.apply("take", index.astype("int32").reshape(-1), axis=at)
    return x


def _index_put(
    c: Call, x: Value, indices: Sequence[Value | None], values: Value, accumulate: bool = False
) -> Value:
    first, places, count = _flat_places(x, indices)
    if first:
        raise Refused("elements are put by indices of the first axes only")
    rest = tuple(x.shape[count:])
    wide = values.apply("broadcast_to", shape=(*places.shape, *rest))
    lines = x.reshape(_rows_of(x, count), -1)
    source = wide.reshape(-1, lines.shape[1])
    put = lines.apply("put_along", places.reshape(-1, 1), source, axis=0, add=bool(accumulate))
    return put.reshape(*c.shape)


def _rows_of(x: Value, count: int) -> int:
    """Return how many elements the first axes have together."""
    return math.prod(fixed_shape(x.shape[:count]))


def _flat_places(x: Value, indices: Sequence[Value | None]) -> tuple[int, Value, int]:
    """Return the first axis of neighbouring ones that tensors index, places along all of them as
    one axis, and how many axes that are."""
    given = [at for at, each in enumerate(indices) if each is not None]
    if not given or given != list(range(given[0], given[-1] + 1)):
        raise Refused("indices of axes that are not neighbours have no kernel")
    total: Value | None = None
    for at in given:
        index, extent = indices[at], fixed_size(x.shape[at])
        assert index is not None
        if index.dtype == "bool":
            raise Refused("indexing by a mask has no kernel")
        index = index.astype("int32")
        # Places count from the end where they are below 0.
        index = index.apply("less", 0).apply("where", index + extent, index)
        total = index if total is None else total * extent + index
    assert total is not None
    return given[0], total, len(given)


def _table(position: int, index: int) -> Lookup:
    def lookup(*args: Any, **_: Any) -> Sequence[tuple[Any, int]]:
        axis = 0 if position < 0 else args[position]
        shape = args[0].shape
        return [(args[index], int(shape[axis]) if len(shape) else 1)]

    return lookup


def _rows(*args: Any, **_: Any) -> Sequence[tuple[Any, int]]:
    return [(args[1], int(args[2]))]


def _each(x: Any, indices: Sequence[Any], *_: Any, **__: Any) -> Sequence[tuple[Any, int]]:
    """Places may count from the end."""
    given = enumerate(indices)
    return [(each, -int(x.shape[at])) for at, each in given if each is not None]


LOOKUPS: Mapping[str, Lookup] = {
    "aten.embedding.default": _table(-1, 1),
    "aten.index_select.default": _table(1, 2),
    "aten.gather.default": _table(1, 2),
    "aten.scatter.src": _table(1, 2),
    "aten.scatter.value": _table(1, 2),
    "aten.scatter_add.default": _table(1, 2),
    "aten.index_add.default": _table(1, 2),
    "aten.index_reduce.default": _table(1, 2),
    "aten.scatter_reduce.two": _table(1, 2),
    "aten.scatter.reduce": _table(1, 2),
    "aten.scatter.value_reduce": _table(1, 2),
    "aten.embedding_dense_backward.default": _rows,
    **{f"aten.{name}.Tensor": _each for name in ("index", "_unsafe_index")},
    **{f"aten.{name}.default": _each for name in ("index_put", "_unsafe_index_put")},
}
"""Operators that look up, with which of their arguments hold places. A count below 0: places may
count from the end."""

ROWS: Mapping[str, Row] = {
    "aten.sort.default": _sort,
    "aten.sort.stable": _stable_sort,
    "aten.topk.default": _topk,
    "aten.argmax.default": _extreme("argmax"),
    "aten.argmin.default": _extreme("argmin"),
    "aten.max.dim": _extreme_and_place("max"),
    "aten.min.dim": _extreme_and_place("min"),
    **{f"aten.any.{kind}": _any for kind in ("default", "dim", "dims")},
    **{f"aten.all.{kind}": _all for kind in ("default", "dim", "dims")},
    "aten.cumsum.default": _on_the_way("cumsum"),
    "aten.cumprod.default": _on_the_way("cumprod"),
    "aten.logcumsumexp.default": _log_of_sums,
    "aten.cummax.default": _running_extreme("maximum", -math.inf),
    "aten.cummin.default": _running_extreme("minimum", math.inf),
    "aten.gather.default": _gather,
    "aten.scatter.src": _scatter(False),
    "aten.scatter.value": _scatter(False),
    "aten.scatter_add.default": _scatter(True),
    "aten.index_add.default": _index_add,
    "aten.index_reduce.default": _index_reduced,
    **{f"aten.{name}": _scatter_reduced for name in ("scatter_reduce.two", "scatter.reduce")},
    "aten.scatter.value_reduce": _scatter_reduced,
    "aten.embedding_dense_backward.default": _embedding_backward,
    **{f"aten.{name}.Tensor": _index for name in ("index", "_unsafe_index")},
    **{f"aten.{name}.default": _index_put for name in ("index_put", "_unsafe_index_put")},
}
