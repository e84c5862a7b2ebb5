"""The shapes of outputs, for fake tensors: what InferShape says, and no shapes that tiling refuses.

Sizes may be symbols; comparing them adds guards, as torch's own operators do.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import torch

__all__ = [
    "broadcast_shape",
    "elementwise_shape",
    "matmul_shape",
    "reduce_shape",
    "row_shape",
    "rowwise_shape",
]

Shape = Sequence[int]

# torch annotates neither this nor its arguments.
_broadcast_shapes: Callable[..., Shape] = torch.broadcast_shapes


def broadcast_shape(*tensors: torch.Tensor | None) -> Shape:
    """Return what the shapes of the tensors that are there broadcast to."""
    return _broadcast_shapes(*(tensor.shape for tensor in tensors if tensor is not None))


def elementwise_shape(*given: torch.Tensor | None) -> Shape:
    """Return the largest input's shape, which the outputs of an element by element kernel have.

    Args:
        given: the inputs; None for one that is optional and not there.
    Raises:
        RuntimeError: an input has neither that shape, but for leading axes of length 1, nor is its
            last axis alone. Other broadcasts are refused by the kernel's tiling too.
    """
    tensors = [tensor for tensor in given if tensor is not None]
    whole = tensors[0]
    for tensor in tensors[1:]:
        if tensor.dim() > whole.dim() or (
            tensor.dim() == whole.dim() and tensor.numel() > whole.numel()
        ):
            whole = tensor
    for index, each in enumerate(given):
        if each is None or _is_same(each.shape, whole.shape):
            continue
        if _is_last_axis(each, whole.shape):
            continue
        # Nothing is launched for an empty result, so that no tiling refuses anything.
        if whole.numel():
            raise RuntimeError(
                f"input {index} has shape {tuple(each.shape)}: it must have the shape of the"
                f" largest input, {tuple(whole.shape)}, or be its last axis alone"
            )
    return whole.shape


def rowwise_shape(
    tensors: Sequence[torch.Tensor], row_values: Sequence[torch.Tensor] = (), *, reduces: bool
) -> Shape:
    """Return the first tensor's shape, which the outputs of a row by row kernel have.

    Args:
        tensors: inputs with one value per element: of the first one's shape, or one row of it.
        row_values: inputs with one value per row, of any shape of that many elements.
        reduces: an output has one value per row, so a row must not be empty.
    Raises:
        RuntimeError: the kernel's tiling would refuse these shapes.
    """
    whole = tensors[0].shape
    columns, rows = _last_axis(whole), _rows(whole)

    def is_launched() -> bool:
        # Asked only where shapes differ, of sizes that may be symbols.
        return bool(rows != 0 and (columns != 0 or reduces))

    for tensor in tensors[1:]:
        own = _rows(tensor.shape)
        differs = _last_axis(tensor.shape) != columns or (own != rows and own != 1)
        if differs and is_launched():
            raise RuntimeError(
                f"an input of shape {tuple(tensor.shape)} beside one of {tuple(whole)}: rows must"
                " agree in number and length, or it be one row"
            )
    for tensor in row_values:
        if tensor.numel() != rows and is_launched():
            raise RuntimeError(
                f"an input with one value per row has shape {tuple(tensor.shape)}, beside"
                f" {tuple(whole)}"
            )
    if reduces and columns == 0 and rows != 0:
        raise RuntimeError(f"the last axis of {tuple(whole)} is empty: there is nothing to reduce")
    return whole


def row_shape(shape: Shape, *, keepdims: bool) -> Shape:
    """Return the shape of one value per row: without the last axis, or with 1 there."""
    if len(shape) == 0:
        return tuple(shape)
    return (*shape[:-1], 1) if keepdims else tuple(shape[:-1])


def reduce_shape(tensor: torch.Tensor, *, axis: int | Sequence[int], keepdims: bool) -> Shape:
    """Return a shape without some axes, or with 1 there."""
    given = (axis,) if isinstance(axis, int) else tuple(axis)
    if any(not -tensor.dim() <= each < tensor.dim() for each in given):
        raise RuntimeError(f"a tensor of shape {tuple(tensor.shape)} has no axis {axis}")
    axes = {each % tensor.dim() for each in given}
    return [1 if i in axes else n for i, n in enumerate(tensor.shape) if keepdims or i not in axes]


def matmul_shape(
    a: torch.Tensor, b: torch.Tensor, *, transpose_a: bool, transpose_b: bool
) -> Shape:
    """Return the shape of a matrix product: the last two axes are matrices, others broadcast."""
    if a.dim() < 2 or b.dim() < 2:
        raise RuntimeError(f"{tuple(a.shape)} and {tuple(b.shape)} are no matrices to multiply")
    depths = a.shape[-2 if transpose_a else -1], b.shape[-1 if transpose_b else -2]
    if depths[0] != depths[1]:
        raise RuntimeError(
            f"matrices of {tuple(a.shape)} and {tuple(b.shape)} differ in depth:"
            f" {depths[0]} and {depths[1]}"
        )
    leading = _broadcast_shapes(a.shape[:-2], b.shape[:-2])
    return (*leading, a.shape[-1 if transpose_a else -2], b.shape[-2 if transpose_b else -1])


def _is_same(shape: Shape, whole: Shape) -> bool:
    missing = len(whole) - len(shape)
    return all(n == 1 for n in whole[:missing]) and all(
        a == b for a, b in zip(shape, whole[missing:], strict=True)
    )


def _is_last_axis(tensor: torch.Tensor, whole: Shape) -> bool:
    last = _last_axis(tensor.shape)
    return bool(last == _last_axis(whole) and tensor.numel() == last)


def _last_axis(shape: Shape) -> int:
    return shape[-1] if len(shape) else 1


def _rows(shape: Shape) -> int:
    rows = 1
    for size in shape[:-1]:
        rows = rows * size
    return rows
