"""Operators of torch_npu that PyTorch has under another name or with its arguments in other places.

Source: the documents of torch_npu's custom interfaces, one page a function.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch.nn import functional as F

__all__ = [
    "copy_memory_",
    "empty_with_format",
    "npu_conv2d",
    "npu_conv3d",
    "npu_conv_transpose2d",
    "npu_convolution",
    "npu_convolution_transpose",
    "npu_cross_entropy_loss",
    "npu_group_norm_swish",
    "npu_indexing",
    "npu_layer_norm_eval",
    "npu_masked_causal_conv1d",
    "npu_prefetch",
    "npu_reshape",
    "npu_scatter_nd_update_",
    "npu_sim_exponential_",
    "one_",
    "scatter_update",
    "scatter_update_",
]

_Sizes = Sequence[int]


def npu_convolution(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: _Sizes,
    padding: _Sizes,
    dilation: _Sizes,
    groups: int,
) -> torch.Tensor:
    """Return the convolution over as many dims as the weight has beyond its channels, 2 or 3."""
    sizes = (list(stride), list(padding), list(dilation))
    none = [0] * (weight.dim() - 2)
    return torch.convolution(input, weight, bias, *sizes, False, none, groups)


def npu_conv2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    stride: _Sizes,
    padding: _Sizes,
    dilation: _Sizes,
    groups: int,
) -> torch.Tensor:
    """Return the convolution of (N, C, H, W)."""
    return npu_convolution(input, weight, bias, stride, padding, dilation, groups)


def npu_conv3d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    stride: _Sizes = (1, 1, 1),
    padding: _Sizes = (1, 1, 1),
    dilation: _Sizes = (1, 1, 1),
    groups: int = 1,
) -> torch.Tensor:
    """Return the convolution of (N, C, T, H, W)."""
    return npu_convolution(input, weight, bias, stride, padding, dilation, groups)


def npu_convolution_transpose(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None,
    padding: _Sizes,
    output_padding: _Sizes,
    stride: _Sizes,
    dilation: _Sizes,
    groups: int,
) -> torch.Tensor:
    """Return the transposed convolution over as many dims as the weight has beyond its channels."""
    sizes = (list(stride), list(padding), list(dilation))
    return torch.convolution(input, weight, bias, *sizes, True, list(output_padding), groups)


def npu_conv_transpose2d(
    input: torch.Tensor,
    weight: torch.Tensor,
    bias: torch.Tensor | None = None,
    padding: _Sizes = (0, 0),
    output_padding: _Sizes = (0, 0),
    stride: _Sizes = (1, 1),
    dilation: _Sizes = (1, 1),
    groups: int = 1,
) -> torch.Tensor:
    """Return the transposed convolution of (N, C, H, W)."""
    return npu_convolution_transpose(
        input, weight, bias, padding, output_padding, stride, dilation, groups
    )


def npu_masked_causal_conv1d(
    input: torch.Tensor, weight: torch.Tensor, *, mask: torch.Tensor | None = None
) -> torch.Tensor:
    """Return each channel's convolution with what came before it, zeros before the first.

    Args:
        input: (S, B, H).
        weight: (W, H), the last row for the element itself.
        mask: (B, S); where it is false, the result is 0.
    """
    x = F.pad(input.permute(1, 2, 0), (weight.shape[0] - 1, 0))
    y = F.conv1d(x, weight.t().unsqueeze(1).contiguous(), groups=weight.shape[1])
    if mask is not None:
        y = y.masked_fill(~mask[:, None], 0)
    return y.permute(2, 0, 1)


def npu_reshape(self: torch.Tensor, shape: _Sizes, can_refresh: bool = False) -> torch.Tensor:
    """Return the elements under another shape."""
    return self.reshape(*shape)


def npu_indexing(
    self: torch.Tensor,
    begin: _Sizes,
    end: _Sizes,
    strides: _Sizes,
    begin_mask: int = 0,
    end_mask: int = 0,
    ellipsis_mask: int = 0,
    new_axis_mask: int = 0,
    shrink_axis_mask: int = 0,
) -> torch.Tensor:
    """Return self[begin:end:strides]; bit i of a mask is about the i-th place of the lists.

    Places of `begin_mask` and `end_mask` have no such end; those of `ellipsis_mask`,
    `new_axis_mask` and `shrink_axis_mask` are `...`, `None` and the number of `begin`.

    Raises:
        ValueError: a step is not positive.
    """
    if any(step <= 0 for step in strides):
        raise ValueError(f"strides are {list(strides)}, expected positive numbers")
    places: list[object] = []
    for i, (first, last, step) in enumerate(zip(begin, end, strides, strict=True)):
        if ellipsis_mask >> i & 1:
            places.append(...)
        elif new_axis_mask >> i & 1:
            places.append(None)
        elif shrink_axis_mask >> i & 1:
            places.append(first)
        else:
            low = None if begin_mask >> i & 1 else first
            places.append(slice(low, None if end_mask >> i & 1 else last, step))
    return self[tuple(places)].contiguous()  # type: ignore[index]


def npu_layer_norm_eval(
    input: torch.Tensor,
    normalized_shape: _Sizes,
    weight: torch.Tensor | None = None,
    bias: torch.Tensor | None = None,
    eps: float = 1e-5,
) -> torch.Tensor:
    """Return `torch.nn.functional.layer_norm`."""
    return F.layer_norm(input, list(normalized_shape), weight, bias, eps)


def npu_group_norm_swish(
    input: torch.Tensor,
    num_groups: int,
    weight: torch.Tensor,
    bias: torch.Tensor,
    eps: float = 1e-5,
    swish_scale: float = 1.0,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return y * sigmoid(scale * y) of the group norm y, and the groups' means and 1 / deviations.

    The last two are (N, num_groups), all in the input's type.
    """
    samples, channels, rest = input.shape[0], input.shape[1], input[0, 0].numel()
    normed, mean, rstd = torch.native_group_norm(
        input.contiguous(), weight, bias, samples, channels, rest, num_groups, eps
    )
    return normed * torch.sigmoid(swish_scale * normed), mean, rstd


def npu_cross_entropy_loss(
    input: torch.Tensor,
    target: torch.Tensor,
    weight: torch.Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int = -100,
    label_smoothing: float = 0.0,
    lse_square_scale_for_zloss: float = 0.0,
    return_zloss: bool = False,
) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return the loss, the classes' log probabilities, and two empty tensors.

    Args:
        input: (N, C).
        target: (N), of int64.

    Raises:
        NotImplementedError: the second loss (z loss) is asked for, which the documents leave out.
    """
    if return_zloss or lse_square_scale_for_zloss:
        raise NotImplementedError("npu_cross_entropy_loss has no z loss: leave it at 0 and False")
    found = F.cross_entropy(
        input,
        target,
        weight,
        ignore_index=ignore_index,
        reduction=reduction,
        label_smoothing=label_smoothing,
    )
    loss = found if reduction == "none" else found.reshape(1)
    return loss, F.log_softmax(input, -1), input.new_empty(0), input.new_empty(0)


def npu_scatter_nd_update_(
    input: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor
) -> torch.Tensor:
    """Write rows of updates where the last dim of indices says, into the tensor itself."""
    return input.index_put_(tuple(indices.long().unbind(-1)), updates)


def scatter_update(
    data: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor, axis: int
) -> torch.Tensor:
    """Return `data` with updates along an axis, from the places of indices on."""
    return scatter_update_(data.clone(), indices, updates, axis)


def scatter_update_(
    data: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor, axis: int
) -> torch.Tensor:
    """Write updates along an axis, from the places of indices on.

    Args:
        data: two dims or more.
        indices: (N), a place for each of the first dim of updates; or (N, 2), which of `data` and
            the place there.
        updates: as many dims as data; the sizes beside the axis fit those of data.
        axis: not the first.

    Raises:
        ValueError: the axis or the indices are others.
    """
    axis = axis + data.dim() if axis < 0 else axis
    if not 0 < axis < data.dim():
        raise ValueError(f"axis is {axis}, expected 1 to {data.dim() - 1}")
    if indices.dim() not in (1, 2) or (indices.dim() == 2 and indices.shape[1] != 2):
        raise ValueError(f"indices are {list(indices.shape)}, expected (N) or (N, 2)")
    rows = indices.tolist()
    for number, place in enumerate(rows):
        which, start = place if indices.dim() == 2 else (number, place)
        part = data[which].narrow(axis - 1, start, updates.shape[axis])
        part[tuple(slice(0, size) for size in updates[number].shape)] = updates[number]
    return data


def npu_sim_exponential_(
    input: torch.Tensor, lambd: float = 1.0, *, generator: torch.Generator | None = None
) -> torch.Tensor:
    """Fill a tensor with numbers of the exponential distribution."""
    return input.exponential_(lambd, generator=generator)


def one_(self: torch.Tensor) -> torch.Tensor:
    """Fill a tensor with 1."""
    return self.fill_(1)


def copy_memory_(self: torch.Tensor, src: torch.Tensor, non_blocking: bool = False) -> torch.Tensor:
    """Write a tensor of the same type on the same device.

    Raises:
        ValueError: its type or device is another.
    """
    if self.dtype != src.dtype or self.device != src.device:
        raise ValueError(
            f"src is {src.dtype} on {src.device}, expected {self.dtype} on {self.device}"
        )
    return self.copy_(src, non_blocking)


def empty_with_format(
    size: _Sizes,
    dtype: torch.dtype | None = None,
    layout: torch.layout = torch.strided,
    device: torch.device | str | None = None,
    pin_memory: bool = False,
    acl_format: int = 2,
) -> torch.Tensor:
    """Return a tensor that nobody has written, under a format, which `get_npu_format` tells."""
    made = torch.empty(
        tuple(size), dtype=dtype, layout=layout, device=device, pin_memory=pin_memory
    )
    made._npu_format = int(acl_format)  # type: ignore[attr-defined]
    return made


def npu_prefetch(
    input: torch.Tensor, dependency: torch.Tensor | None, max_size: int, offset: int = 0
) -> None:
    """Take a hint that a weight is needed soon; the emulated device has no use for it.

    Raises:
        ValueError: there is nothing at the offset, or the size is not positive.
    """
    total = input.numel() * input.element_size()
    if max_size <= 0 or not 0 <= offset < max(total, 1):
        raise ValueError(f"max_size is {max_size} and offset {offset} of {total} bytes")
