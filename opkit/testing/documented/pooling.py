"""What operators that pool windows of a tensor compute.

Channels come last where the data format says NDHWC. Sources: the documents of each operator,
formula and parameters.
"""

from __future__ import annotations

from opkit.testing.documented.table import Numbers, Tensor, documented, torch


def _averages(
    x: Tensor,
    ksize: list[int],
    strides: list[int],
    pads: list[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int,
) -> Tensor:
    # A divisor of 0 is none.
    return torch.nn.functional.avg_pool3d(
        *(x, ksize, strides, pads, ceil_mode, count_include_pad, divisor_override or None)
    )


def _put_back(x: Tensor, indices: Tensor, dy: Tensor) -> Tensor | None:
    """Return what each window's largest element was given, where it stands in its channel."""
    if x.dim() != 5 or indices.shape != dy.shape:
        return None
    channels = torch.zeros_like(x).flatten(2)
    return channels.scatter_add(2, indices.flatten(2), dy.flatten(2)).reshape(x.shape)


def _index_where_known(indices: Tensor, x: Tensor) -> Tensor | None:
    """Return indices of what is largest; which of two that are equal they name is open."""
    return indices if x.unique().numel() == x.numel() else None


@documented("adaptive_avg_pool3d")
def adaptive_avg_pool3d(x: Tensor, *, output_size: list[int], data_format: str) -> Tensor | None:
    """Means of windows that share (images, depth, rows, columns, channels) evenly."""
    if data_format != "NDHWC" or x.dim() != 5:
        return None
    first = x.movedim(-1, 1)
    return torch.nn.functional.adaptive_avg_pool3d(first, output_size).movedim(1, -1)


@documented("adaptive_avg_pool3d_grad")
def adaptive_avg_pool3d_grad(dy: Tensor, x: Tensor, *, data_format: str) -> Tensor | None:
    """The gradient of adaptive_avg_pool3d."""
    if data_format != "NDHWC" or x.dim() != 5:
        return None
    size = dy.shape[1:4]

    def forward(x: Tensor) -> Tensor:
        first = x.movedim(-1, 1)
        return torch.nn.functional.adaptive_avg_pool3d(first, size).movedim(1, -1)

    return torch.autograd.functional.vjp(forward, x, dy)[1]


@documented("adaptive_max_pool3d")
def adaptive_max_pool3d(
    x: Tensor, *, output_size: list[int], indices_dtype: int
) -> tuple[Tensor, Tensor | None] | None:
    """The largest of windows that share an image evenly, and its index in its channel.

    Args:
        x: (images, channels, depth, rows, columns).
        indices_dtype: a number of ge::DataType, 3 or 9.
    """
    if x.dim() != 5 or indices_dtype not in (3, 9):
        return None
    pooled = torch.nn.functional.adaptive_max_pool3d(x, output_size, return_indices=True)
    return pooled[0], _index_where_known(pooled[1], x)


@documented("adaptive_max_pool3_d_grad")
def adaptive_max_pool3_d_grad(dy: Tensor, x: Tensor, indices: Tensor) -> Tensor | None:
    """dy at the indices of what was largest, else 0."""
    return _put_back(x, indices, dy)


@documented("average_pooling_grad")
def average_pooling_grad(
    dy: Tensor,
    input_shape: Numbers,
    *,
    kernel_h: int,
    kernel_w: int,
    stride_h: int,
    stride_w: int,
    pad_top: int,
    pad_bottom: int,
    pad_left: int,
    pad_right: int,
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int,
) -> Tensor | None:
    """The gradient of means of windows of (images, channels, rows, columns)."""
    if pad_top != pad_bottom or pad_left != pad_right:
        return None

    def forward(plane: Tensor) -> Tensor:
        return torch.nn.functional.avg_pool2d(
            *(plane, (kernel_h, kernel_w), (stride_h, stride_w), (pad_top, pad_left), ceil_mode),
            *(count_include_pad, divisor_override or None),
        )

    return torch.autograd.functional.vjp(forward, dy.new_zeros(input_shape), dy)[1]


@documented("avg_pool3_d")
def avg_pool3_d(
    x: Tensor,
    *,
    ksize: list[int],
    strides: list[int],
    pads: list[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int,
    data_format: str,
) -> Tensor | None:
    """Means of windows, of NDHWC or NCDHW."""
    how = (ksize, strides, pads, ceil_mode, count_include_pad, divisor_override)
    if data_format == "NDHWC":
        return _averages(x.movedim(-1, 1), *how).movedim(1, -1)
    return _averages(x, *how) if data_format == "NCDHW" else None


# Where channels come last, the document is silent on the order of the sizes that it is given.
@documented("avg_pool3_d_grad")
def avg_pool3_d_grad(
    dy: Tensor,
    input_shape: Numbers,
    *,
    ksize: list[int],
    strides: list[int],
    pads: list[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int,
    data_format: str,
) -> Tensor | None:
    """The gradient of means of windows of NCDHW."""
    if data_format != "NCDHW":
        return None
    how = (ksize, strides, pads, ceil_mode, count_include_pad, divisor_override)
    return torch.autograd.functional.vjp(
        lambda volume: _averages(volume, *how), dy.new_zeros(input_shape), dy
    )[1]


@documented("max_pool3_d")
def max_pool3_d(
    x: Tensor,
    *,
    ksize: list[int],
    strides: list[int],
    padding: str,
    pads: list[int],
    dilation: list[int],
    ceil_mode: int,
    data_format: str,
) -> Tensor | None:
    """The largest of windows, by pads of two equal sides an axis (padding CALCULATED)."""
    if x.dim() != 5 or padding != "CALCULATED" or pads[::2] != pads[1::2]:
        return None
    if not len(ksize) == len(strides) == 3 or set(dilation) != {1}:
        return None
    is_last = data_format == "NDHWC"
    pooled = torch.nn.functional.max_pool3d(
        x.movedim(-1, 1) if is_last else x, ksize, strides, pads[::2], ceil_mode=bool(ceil_mode)
    )
    return pooled.movedim(1, -1 if is_last else 1)


@documented("max_pooling_grad")
def max_pooling_grad(dy: Tensor, x: Tensor, y: Tensor) -> Tensor | None:
    """dy where x is what was largest, else 0; one shape."""
    return torch.where(x == y, dy, 0.0) if dy.shape == x.shape == y.shape else None


# Of the windows only their sizes are known here; a case names the indices itself.
@documented("max_pool3_d_grad_with_argmax")
def max_pool3_d_grad_with_argmax(
    x: Tensor,
    grad: Tensor,
    argmax: Tensor,
    *,
    ksize: list[int],
    strides: list[int],
    pads: list[int],
    dilation: list[int],
    ceil_mode: bool,
) -> Tensor | None:
    """The gradient at the indices of what was largest, else 0."""
    if not len(ksize) == len(strides) == len(pads) == len(dilation) == 3:
        return None
    return _put_back(x, argmax, grad) if ceil_mode in (True, False) else None


@documented("max_pool3_d_with_argmax")
def max_pool3_d_with_argmax(
    x: Tensor,
    *,
    ksize: list[int],
    strides: list[int],
    pads: list[int],
    dilation: list[int],
    ceil_mode: bool,
    data_format: str,
) -> tuple[Tensor, Tensor | None] | None:
    """The largest of windows of NCDHW, and its index in its channel."""
    if data_format != "NCDHW" or x.dim() != 5:
        return None
    pooled = torch.nn.functional.max_pool3d(
        x, ksize, strides, pads, dilation, ceil_mode, return_indices=True
    )
    return pooled[0], _index_where_known(pooled[1], x)


@documented("max_pool_v3")
def max_pool_v3(
    x: Tensor, *, ksize: list[int], strides: list[int], pads: list[int], ceil_mode: bool
) -> Tensor | None:
    """The largest of windows of (images, channels, rows, columns), four sizes to each list."""
    if not len(ksize) == len(strides) == 4 or pads[::2] != pads[1::2]:
        return None
    return torch.nn.functional.max_pool2d(
        x, ksize[2:], strides[2:], (pads[0], pads[2]), ceil_mode=ceil_mode
    )
