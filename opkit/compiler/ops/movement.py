"""Rows of the operators that move elements, look them up or multiply matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from opkit.errors import UsageError

from ..ir import (
    HALVES,
    REQUIRED,
    Dimension,
    Operator,
    Settings,
    Shape,
    Tensor,
    Value,
    as_first,
    as_promoted,
    broadcast_shapes,
    is_floating,
    is_one,
    product,
    quotient,
    same,
    shape_text,
)
from .convolution import unwindowed

__all__ = ["ROWS"]


def _reshaped(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    shape = tuple(settings["shape"])
    total = tensors[0].size
    if any(isinstance(e, int) and e == -1 for e in shape):
        rest = product(e for e in shape if not (isinstance(e, int) and e == -1))
        if isinstance(total, int) and isinstance(rest, int):
            if rest == 0 or total % rest:
                raise UsageError(f"{shape_text(tensors[0].shape)} has no shape {shape_text(shape)}")
            inferred: Dimension = total // rest
        else:
            inferred = quotient(total, rest)
        shape = tuple(inferred if isinstance(e, int) and e == -1 else e for e in shape)
    if not same(product(shape), total):
        raise UsageError(
            f"{shape_text(tensors[0].shape)} has {total} elements,"
            f" {shape_text(shape)} {product(shape)}"
        )
    return shape


def _permuted(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    shape = tensors[0].shape
    axes = settings["axes"]
    if sorted(axes) != list(range(len(shape))):
        raise UsageError(f"axes {list(axes)} are no order of {len(shape)} axes")
    return tuple(shape[at] for at in axes)


def _expanded(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    shape = tuple(settings["shape"])
    wide = broadcast_shapes(tensors[0].shape, shape)
    if len(wide) != len(shape) or not all(same(a, b) for a, b in zip(wide, shape, strict=True)):
        raise UsageError(
            f"{shape_text(tensors[0].shape)} does not broadcast to {shape_text(shape)}"
        )
    return shape


def _sliced(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    shape = list(tensors[0].shape)
    axis, start, stop = settings["axis"], settings["start"], settings["stop"]
    extent = shape[axis]
    if isinstance(extent, int) and isinstance(start, int) and isinstance(stop, int):
        if not 0 <= start <= stop <= extent:
            raise UsageError(f"elements {start} to {stop} are not within {extent}")
        shape[axis] = -(-(stop - start) // settings["step"])
    else:
        # Written so that the rules of an operator's shapes can say it.
        step = settings["step"]
        shape[axis] = stop - start if step == 1 else (stop - start + step - 1) // step
    return tuple(shape)


def _joined(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    axis = settings["axis"]
    shape = list(tensors[0].shape)
    for other in tensors[1:]:
        if len(other.shape) != len(shape) or not all(
            same(a, b)
            for at, (a, b) in enumerate(zip(shape, other.shape, strict=True))
            if at != axis
        ):
            raise UsageError(f"{shape_text(other.shape)} does not continue {shape_text(shape)}")
    total = shape[axis]
    for other in tensors[1:]:
        total = total + other.shape[axis]
    shape[axis] = total
    return tuple(shape)


def _stacked(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    axis, shape = settings["axis"], tensors[0].shape
    for other in tensors[1:]:
        if len(other.shape) != len(shape) or not all(map(same, other.shape, shape)):
            raise UsageError(f"{shape_text(other.shape)} lies on no {shape_text(shape)}")
    at = axis % (len(shape) + 1)
    return (*shape[:at], len(tensors), *shape[at:])


def _stack(*tensors: Value, axis: int) -> Value:
    first = tensors[0]
    at = axis % (first.ndim + 1)
    layers = [x.reshape(*x.shape[:at], 1, *x.shape[at:]) for x in tensors]
    return first.builder.apply("concat", *layers, axis=at)


def _are_cuts(cuts: object, count: int) -> bool:
    return (
        isinstance(cuts, tuple | list)
        and len(cuts) == count
        and all(isinstance(cut, tuple | list) and len(cut) == 4 for cut in cuts)
        and all(isinstance(each, int) for cut in cuts for each in cut)
    )


def _cut_and_joined(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    axis, cuts = settings["axis"], settings["cuts"]
    if not _are_cuts(cuts, len(tensors)):
        raise UsageError(f"cuts are {cuts}, expected (axis, start, step, count) of each tensor")
    shapes = []
    for tensor, (along, _, step, count) in zip(tensors, cuts, strict=True):
        if step < 1 or count < 0:
            raise UsageError(f"{count} elements, {step} apart, do not exist")
        shapes.append((*tensor.shape[:along], count, *tensor.shape[along + 1 :]))
    first = shapes[0]
    for shape in shapes[1:]:
        if shape[:axis] + shape[axis + 1 :] != first[:axis] + first[axis + 1 :]:
            raise UsageError(f"{shape_text(shape)} does not lie beside {shape_text(first)}")
    return (*first[:axis], sum(shape[axis] for shape in shapes), *first[axis + 1 :])


def _np_cut_and_joined(*tensors: Any, axis: int, cuts: Any, value: float) -> Any:
    parts = []
    for tensor, (along, start, step, count) in zip(tensors, cuts, strict=True):
        stop = start + (count - 1) * step + 1
        before, after = max(-start, 0), max(stop - tensor.shape[along], 0)
        widths = [(0, 0)] * tensor.ndim
        widths[along] = (before, after)
        wide = np.pad(tensor, widths, constant_values=value)
        at = (*(slice(None),) * along, slice(start + before, stop + before, step))
        parts.append(wide[at])
    return np.concatenate(parts, axis=axis)


def _padded(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    pairs = zip(tensors[0].shape, settings["widths"], strict=True)
    return tuple(extent + before + after for extent, (before, after) in pairs)


def _windowed(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    if len(tensors[0].shape) != 4:
        raise UsageError(
            f"{shape_text(tensors[0].shape)}: expected images of batch, rows, columns, channels"
        )
    images, *extents, channels = tensors[0].shape
    kernel = settings["kernel"]
    places = []
    for axis, extent in enumerate(extents):
        stride, padding, dilation = (settings[n][axis] for n in ("stride", "padding", "dilation"))
        reach = dilation * (kernel[axis] - 1) + 1
        if not isinstance(extent, int) or reach > extent + 2 * padding:
            raise UsageError(f"windows of {reach} rows or columns do not fit {extent}")
        places.append((extent + 2 * padding - reach) // stride + 1)
    return (images, *places, kernel[0] * kernel[1] * channels)


def _np_windows(x: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, value: float) -> Any:
    widths = ((0, 0), (padding[0],) * 2, (padding[1],) * 2, (0, 0))
    x = np.pad(x, widths, constant_values=value)
    rows, columns = (
        (x.shape[1 + at] - dilation[at] * (kernel[at] - 1) - 1) // stride[at] + 1 for at in (0, 1)
    )
    taps = []
    for i, j in np.ndindex(*kernel):
        part = x[:, i * dilation[0] :: stride[0], j * dilation[1] :: stride[1]]
        taps.append(part[:, :rows, :columns])
    return np.concatenate(taps, axis=-1)


def _taken(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    table, indices = tensors
    if is_floating(indices.dtype):
        raise UsageError(f"indices are {indices.dtype}, expected whole numbers")
    axis = settings["axis"]
    return (*table.shape[:axis], *indices.shape, *table.shape[axis + 1 :])


def _product_shape(tensors: Sequence[Tensor], settings: Settings) -> Shape:
    a, b = (tensor.shape for tensor in tensors)
    if len(a) < 2 or len(b) < 2:
        raise UsageError("matrices have two axes or more")
    rows, inner_a = (a[-1], a[-2]) if settings["transpose_a"] else (a[-2], a[-1])
    inner_b, columns = (b[-1], b[-2]) if settings["transpose_b"] else (b[-2], b[-1])
    if not same(inner_a, inner_b):
        raise UsageError(
            f"{shape_text(a)} and {shape_text(b)} do not multiply: {inner_a}"
            f" columns, {inner_b} rows"
        )
    return (*broadcast_shapes(a[:-2], b[:-2]), rows, columns)


def _product_dtype(tensors: Sequence[Tensor], settings: Settings) -> str:
    dtype = as_promoted(tensors, settings)
    dtype = "int32" if dtype == "int8" else dtype
    wanted = settings["dtype"]
    if wanted is None or wanted == dtype:
        return dtype
    if wanted != "float32" or dtype not in ("float16", "bfloat16"):
        raise UsageError(
            f"products of {tensors[0].dtype} and {tensors[1].dtype} are {dtype}, not {wanted}",
            help="cast the result; float32 is what float16 and bfloat16 add up in",
        )
    return "float32"


def _np_product(a: Any, b: Any, transpose_a: bool, transpose_b: bool, dtype: str | None) -> Any:
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    b = np.swapaxes(b, -1, -2) if transpose_b else b
    if not is_floating(str(a.dtype)):
        a, b = a.astype(np.int64), b.astype(np.int64)
    return a @ b


def _np_slice(x: Any, axis: int, start: int, stop: int, step: int) -> Any:
    key: list[slice] = [slice(None)] * x.ndim
    key[axis] = slice(start, stop, step)
    return x[tuple(key)]


def _grad_product(
    grad: Value,
    a: Value,
    b: Value,
    y: Value,
    transpose_a: bool,
    transpose_b: bool,
    dtype: str | None,
) -> Sequence[Value | None]:
    if grad.dtype != a.dtype:
        # The cube multiplies matrices of one type: that of the result, whose gradient this is.
        a, b, grad = (each.astype(y.dtype) for each in (a, b, grad))
    sums = "float32" if a.dtype in HALVES else None

    def dot(p: Value, q: Value, tp: bool, tq: bool) -> Value:
        return p.apply("matmul", q, transpose_a=tp, transpose_b=tq, dtype=sums)

    for_a = dot(b, grad, transpose_b, True) if transpose_a else dot(grad, b, False, not transpose_b)
    outer = grad.shape[:-2]
    is_whole = a.ndim == grad.ndim and all(map(same, a.shape[:-2], outer))
    if outer and is_whole and not transpose_a and all(map(is_one, b.shape[:-2])):
        # One matrix for all batches: their rows are those of one product, which adds them up.
        rows = product(a.shape[:-1])
        a, grad = (each.reshape(rows, each.shape[-1]) for each in (a, grad))
    for_b = dot(grad, a, True, transpose_a) if transpose_b else dot(a, grad, not transpose_a, False)
    return for_a, for_b


def _grad_transpose(grad: Value, x: Value, y: Value, axes: Sequence[int]) -> Sequence[Value | None]:
    back = sorted(range(len(axes)), key=lambda at: axes[at])
    return (grad.apply("transpose", axes=tuple(back)),)


ROWS = (
    Operator(
        *("reshape", 1, "movement", _reshaped, as_first),
        lambda x, shape: np.reshape(x, shape),
        gradient=lambda g, x, y, shape: (g.reshape(*x.shape),),
        pto="reshape",
        aten="view",
        parameters={"shape": REQUIRED},
    ),
    Operator(
        *("broadcast_to", 1, "movement", _expanded, as_first),
        lambda x, shape: np.broadcast_to(x, shape),
        gradient=lambda g, x, y, shape: (g,),
        pto="expands",
        aten="expand",
        parameters={"shape": REQUIRED},
    ),
    Operator(
        *("transpose", 1, "movement", _permuted, as_first),
        lambda x, axes: np.transpose(x, axes),
        gradient=_grad_transpose,
        pto="trans",
        aten="permute",
        parameters={"axes": REQUIRED},
    ),
    Operator(
        *("slice", 1, "movement", _sliced, as_first, _np_slice),
        pto="subview",
        aten="slice",
        parameters={"axis": REQUIRED, "start": 0, "stop": REQUIRED, "step": 1},
    ),
    Operator(
        *("concat", None, "movement", _joined, as_promoted),
        lambda *tensors, axis: np.concatenate(tensors, axis=axis),
        pto="concat",
        aten="cat",
        parameters={"axis": 0},
    ),
    Operator(
        # What of each tensor is put side by side: (axis, start, step, count), with a value at the
        # places that lie beside it.
        *("concat_slices", None, "movement", _cut_and_joined, as_promoted, _np_cut_and_joined),
        parameters={"axis": REQUIRED, "cuts": REQUIRED, "value": 0.0},
    ),
    Operator(
        *("stack", None, "movement", _stacked, as_promoted),
        lambda *tensors, axis: np.stack(tensors, axis=axis),
        expand=_stack,
        aten="stack",
        parameters={"axis": 0},
    ),
    Operator(
        *("pad", 1, "movement", _padded, as_first),
        lambda x, widths, value: np.pad(x, widths, constant_values=value),
        pto="fillpad",
        aten="constant_pad_nd",
        parameters={"widths": REQUIRED, "value": 0.0},
    ),
    Operator(
        # Of images with channels last: all taps of each place, row by row.
        *("windows", 1, "movement", _windowed, as_first, _np_windows),
        gradient=lambda g, x, y, **settings: (unwindowed(g, x.shape, settings),),
        parameters={
            "kernel": REQUIRED,
            **{"stride": (1, 1), "padding": (0, 0), "dilation": (1, 1), "value": 0.0},
        },
    ),
    Operator(
        *("take", 2, "index", _taken, as_first),
        lambda table, indices, axis: np.take(table, indices.astype(np.int64), axis=axis),
        pto="gather",
        aten="embedding",
        parameters={"axis": 0},
    ),
    Operator(
        *("matmul", 2, "product", _product_shape, _product_dtype, _np_product),
        gradient=_grad_product,
        pto="matmul",
        aten="matmul",
        # `dtype`: of the result, where it is not the operands': float32 keeps the sums of halves.
        parameters={"transpose_a": False, "transpose_b": False, "dtype": None},
    ),
)
