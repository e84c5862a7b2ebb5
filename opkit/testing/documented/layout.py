"""What operators compute that move, join, pad, fill or number elements.

Sources: the documents of each operator, formula and parameters.
"""

from __future__ import annotations

from opkit.testing.documented.table import (
    Array,
    Number,
    Numbers,
    Tensor,
    Tensors,
    documented,
    torch,
)

_PAD_MODES = {"edge": "replicate", "reflect": "reflect", "circular": "circular"}


def _pads(paddings: list[int], rank: int) -> list[int]:
    """Return paddings as torch takes them.

    Two numbers an axis, in the axes' order; torch begins with the last one, and takes those of two
    axes, or of three where there are more than four.
    """
    pairs = list(zip(paddings[::2], paddings[1::2], strict=False))
    return [number for pair in pairs[: -4 if rank > 4 else -3 : -1] for number in pair]


def _padded_gradient(dy: Tensor, paddings: list[int], mode: str) -> Tensor:
    """Return the gradient of padding by what is padded: sums of what was copied."""
    sides = zip(dy.shape, paddings[::2], paddings[1::2], strict=False)
    unpadded = dy.new_zeros([size - before - after for size, before, after in sides])

    def pad(x: Tensor) -> Tensor:
        return torch.nn.functional.pad(x, _pads(paddings, x.dim()), mode)

    return torch.autograd.functional.vjp(pad, unpadded, dy)[1]


@documented("circular_pad")
def circular_pad(x: Tensor, paddings: Numbers) -> Tensor:
    """x with its other end before and behind each of its last axes."""
    return torch.nn.functional.pad(x, _pads(paddings, x.dim()), "circular")


@documented("circular_pad_grad")
def circular_pad_grad(grad: Tensor, paddings: Numbers) -> Tensor:
    """The gradient of circular_pad."""
    return _padded_gradient(grad, paddings, "circular")


@documented("pad_grad", "pad_v3_grad_replicate")
def pad_grad(
    grad: Tensor, paddings: Numbers, *, mode: str, paddings_contiguous: bool
) -> Tensor | None:
    """The gradient of padding by the mode `edge`, `reflect` or `circular`."""
    return _padded_gradient(grad, paddings, _PAD_MODES[mode]) if paddings_contiguous else None


@documented("pad_v3_grad_replication")
def pad_v3_grad_replication(grad: Tensor, paddings: Numbers) -> Tensor:
    """The gradient of padding by the nearest element."""
    return _padded_gradient(grad, paddings, "replicate")


@documented("reflection_pad3d_grad")
def reflection_pad3d_grad(grad: Tensor, paddings: Numbers) -> Tensor:
    """The gradient of padding by what is reflected at the edges."""
    return _padded_gradient(grad, paddings, "reflect")


@documented("concat")
def concat_behind_axis(axis: Number, x: Tensors) -> Tensor:
    """The tensors behind one another along an axis, which comes first."""
    return torch.cat(x, axis)


@documented("concat")
def concat(x: Tensors, axis: Number) -> Tensor:
    """The tensors behind one another along an axis."""
    return torch.cat(x, axis)


@documented("concat")
def concat_of_two(x1: Tensor, x2: Tensor, *, d: int) -> Tensor:
    """x1 and x2 behind one another along an axis."""
    return torch.cat((x1, x2), d)


@documented("diag_part")
def diag_part(x: Tensor) -> Tensor | None:
    """The diagonal of a square matrix."""
    return torch.diagonal(x) if x.dim() == 2 and x.shape[0] == x.shape[1] else None


@documented("expandv")
def expandv(x: Tensor, *, shape: list[int]) -> Tensor:
    """x, its axes of one element repeated to a shape."""
    return torch.broadcast_to(x, shape)


@documented("fill")
def fill_like(*, x: Tensor, fill_value: Number) -> Tensor:
    """One number, in x's shape."""
    return torch.full_like(x, fill_value)


@documented("fill")
def fill(dims: Numbers, value: Number) -> Tensor:
    """One number, in a shape that is given."""
    return torch.full(dims, value)


@documented("fill_diagonal")
def fill_diagonal(x: Tensor, value: Number, *, wrap: bool) -> Tensor:
    """x with one number along its diagonal, of a tall matrix again and again where it wraps."""
    return torch.clone(x).fill_diagonal_(value, wrap)


@documented("im2_col")
def im2_col(
    x: Tensor,
    *,
    kernel_h: int,
    kernel_w: int,
    dilation_h: int,
    dilation_w: int,
    pad_h: int,
    pad_w: int,
    stride_h: int,
    stride_w: int,
) -> Tensor:
    """The windows of images (images, channels, rows, columns), each a column."""
    return torch.nn.functional.unfold(
        *(x, (kernel_h, kernel_w), (dilation_h, dilation_w), (pad_h, pad_w), (stride_h, stride_w))
    )


@documented("lin_space")
def lin_space(start: Number, stop: Number, count: Number) -> Tensor:
    """So many numbers from start to stop, equally far apart."""
    return torch.linspace(start, stop, count)


@documented("pack")
def pack(x: Tensors, *, axis: int) -> Tensor:
    """The tensors along a new axis."""
    return torch.stack(x, axis)


@documented("pack")
def pack_of_two(x: Tensor, y: Tensor, *, d: int) -> Tensor:
    """x and y along a new axis."""
    return torch.stack((x, y), d)


@documented("range")
def numbers_in_range(start: Number, limit: Number, delta: Number) -> Tensor:
    """start, start + delta, ... below limit."""
    return torch.arange(start, limit, delta)


@documented("slice")
def slice_of_sizes(x: Array, begin: Numbers, size: Numbers) -> Array:
    """x[begin : begin + size] of every axis."""
    return x[tuple(slice(a, a + n) for a, n in zip(begin, size, strict=True))]


@documented("tensor_move")
def tensor_move(x: Tensor) -> Tensor:
    """x."""
    return torch.clone(x)


@documented("transpose", "transposev")
def transpose(x: Tensor, perm: Numbers) -> Tensor:
    """x with its axes in an order that is given."""
    return torch.permute(x, perm)
