"""Functions that order an axis, or pick and put elements at places that a tensor names."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from opkit.compiler import GraphError

from .location import here
from .tiles import place_of
from .traced import Traced, new_value

__all__ = ["FUNCTIONS"]


class TopK(NamedTuple):
    """What `pypto.topk` returns."""

    values: Traced
    indices: Traced


def _topk(
    x: Traced, k: int, dim: int | None = None, largest: bool = True, algo: object = None
) -> TopK:
    settings = {"k": k, "axis": -1 if dim is None else dim, "largest": bool(largest)}
    return TopK(x.apply("topk", **settings), x.apply("topk_places", **settings))


def _argsort(x: Traced, dim: int | None = None, descending: bool = True) -> Traced:
    return x.apply("argsort", axis=-1 if dim is None else dim, descending=bool(descending))


def _extreme(name: str) -> Callable[..., Traced]:
    def call(x: Traced, dim: int = -1, keepdim: bool = False) -> Traced:
        return x.apply(name, axis=dim, keepdims=bool(keepdim))

    call.__name__ = name
    return call


def _numbers(index: Traced) -> Traced:
    return index if index.dtype == "int32" else index.apply("cast", dtype="int32")


def _there(x: Traced) -> Traced:
    """Return what is there of a tensor that is partly there: the rest puts nothing anywhere."""
    return Traced(x.builder, x.value) if x.is_partial else x


def _within(x: Traced, shape: Sequence[int], axis: int | None, what: str) -> Traced:
    """Return the part of a tensor that has as many elements as `shape` along all axes but one."""
    if len(shape) != x.ndim:
        raise GraphError(
            f"{what}: indices of {len(shape)} axes for a tensor of {x.ndim}", location=here()
        )
    for at, (extent, own) in enumerate(zip(shape, x.shape, strict=True)):
        if at != axis and extent > own:
            raise GraphError(
                f"{what}: {extent} indices along axis {at}, where the tensor has {own} elements",
                location=here(),
            )
    if all(at == axis or extent == x.shape[at] for at, extent in enumerate(shape)):
        return x
    part: Traced = x[tuple(slice(None) if at == axis else slice(n) for at, n in enumerate(shape))]
    return part


def _gather(x: Traced, dim: int, index: Traced) -> Traced:
    axis, index = dim % x.ndim, _there(index)
    part = _within(x, index.shape, axis, "gather")
    return part.apply("take_along", _numbers(index), axis=axis)


def _index_select(x: Traced, dim: int, index: Traced) -> Traced:
    return x.apply("take", index, axis=dim % x.ndim)


def _scatter(x: Traced, dim: int, index: Traced, src: Any, *, reduce: str | None = None) -> Traced:
    if reduce not in (None, "add"):
        raise GraphError(f'scatter: opkit has no reduce="{reduce}"', location=here())
    axis = dim % x.ndim
    index = _there(index)
    if isinstance(src, Traced):
        src = _there(src)
        source = _within(src, index.shape, None, "scatter")
    else:
        source = new_value(
            x.builder, "broadcast_to", x.builder.constant(src, x.dtype), shape=index.shape
        )
    own = _within(x, index.shape, axis, "scatter")
    put = own.apply("put_along", _numbers(index), source, axis=axis, add=reduce == "add")
    if own is x:
        return put
    # What lies beside the indices stays as it is.
    result = x.apply("add", 0)
    result[tuple(slice(extent) for extent in put.shape)] = put
    return result


def _index_add(x: Traced, dim: int, index: Traced, source: Traced, *, alpha: float = 1) -> Traced:
    axis = dim % x.ndim
    index, source = _there(index), _there(source)
    places = _numbers(index).reshape([-1 if at == axis else 1 for at in range(x.ndim)])
    given = source if alpha == 1 else source * alpha
    return x.apply("put_along", places, given, axis=axis, add=True)


def _index_put(
    x: Traced, indices: Sequence[Traced], values: Traced, accumulate: bool = False
) -> Traced:
    indices, values = [_there(index) for index in indices], _there(values)
    place = _numbers(indices[0])
    for axis, index in enumerate(indices[1:], start=1):
        place = place * x.shape[axis] + _numbers(index)
    rest = 1
    for extent in x.shape[len(indices) :]:
        rest *= extent
    rows = x.reshape(-1, rest)
    put = rows.apply(
        *("put_along", place.reshape(-1, 1), values.reshape(-1, rest)),
        axis=0,
        add=bool(accumulate),
    )
    return put.reshape(*x.shape)


def _scatter_update(x: Traced, dim: int, index: Traced, src: Traced) -> Traced:
    if dim != -2:
        raise GraphError(f"scatter_update along axis {dim}, expected -2", location=here())
    index, src = _there(index), _there(src)
    width = x.shape[-1]
    rows, given = x.reshape(-1, width), src.reshape(-1, width)
    put = rows.apply("put_along", _numbers(index).reshape(-1, 1), given, axis=0)
    return put.reshape(*x.shape)


def _in_place(function: Callable[..., Traced]) -> Callable[..., Traced]:
    def call(x: Traced, *operands: Any, **settings: Any) -> Traced:
        x[...] = function(x, *operands, **settings)
        return x

    return call


def _axpy(y: Traced, x: Traced, alpha: float = 1.0) -> Traced:
    scaled = x if x.dtype == y.dtype else x.apply("cast", dtype=y.dtype)
    return y + scaled * alpha


def _atomic_add(x: Traced, offsets: Sequence[int], out: Traced) -> None:
    place = place_of("atomic_add", x, offsets, out)
    out[place] = out[place] + x


def _one_hot(x: Traced, num_classes: int) -> Traced:
    classes = new_value(x.builder, "arange", count=num_classes, dtype="int32")
    return _numbers(x).reshape(*x.shape, 1).apply("equal", classes).apply("cast", dtype="int32")


def _triangle(comparison: str) -> Callable[..., Traced]:
    def call(x: Traced, diagonal: int = 0) -> Traced:
        rows = new_value(x.builder, "arange", count=x.shape[-2], dtype="int32")
        columns = new_value(x.builder, "arange", count=x.shape[-1], dtype="int32")
        kept = columns.apply(comparison, rows.reshape(-1, 1) + diagonal)
        return kept.apply("where", x, 0)

    return call


def _interleave(x: Traced, other: Traced) -> tuple[Traced, Traced]:
    width = x.shape[-1]
    both = new_value(x.builder, "stack", x, other, axis=-1).reshape(*x.shape[:-1], 2 * width)
    return both[..., :width], both[..., width:]


def _deinterleave(x: Traced, other: Traced | None = None) -> tuple[Traced, Traced]:
    whole = x if other is None else new_value(x.builder, "concat", x, other, axis=x.ndim - 1)
    pairs = whole.reshape(*whole.shape[:-1], whole.shape[-1] // 2, 2)
    return pairs[..., 0], pairs[..., 1]


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "topk": _topk,
    "argsort": _argsort,
    "argmax": _extreme("argmax"),
    "argmin": _extreme("argmin"),
    "gather": _gather,
    "index_select": _index_select,
    "scatter": _scatter,
    "scatter_": _in_place(_scatter),
    "scatter_update": _in_place(_scatter_update),
    "index_add": _index_add,
    "index_add_": _in_place(_index_add),
    "index_put_": _in_place(_index_put),
    "one_hot": _one_hot,
    "axpy_": _in_place(_axpy),
    "atomic_add": _atomic_add,
    "tril": _triangle("less_equal"),
    "triu": _triangle("greater_equal"),
    "interleave": _interleave,
    "deinterleave": _deinterleave,
}
