"""Operators of torch_npu that are a few of PyTorch's own, on tensors of any device.

Source: the documents of torch_npu's custom interfaces, one page a function.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import torch

__all__ = [
    "Format",
    "dropout_with_byte_mask",
    "fast_gelu",
    "npu_bmmV2",
    "npu_broadcast",
    "npu_confusion_transpose",
    "npu_dtype_cast",
    "npu_fast_gelu",
    "npu_linear",
    "npu_max",
    "npu_min",
    "npu_mish",
    "npu_one_hot",
    "npu_pad",
    "npu_scaled_masked_softmax",
    "npu_scatter_nd_update",
    "npu_sign_bits_pack",
    "npu_sign_bits_unpack",
    "npu_silu",
    "npu_silu_",
    "npu_slice",
    "npu_sort_v2",
    "npu_transpose",
]


class Format(enum.IntEnum):
    """Numbers of the formats that tensors of the hardware may lie in; here all are ND."""

    UNDEFINED = -1
    NCHW = 0
    NHWC = 1
    ND = 2
    NC1HWC0 = 3
    FRACTAL_Z = 4
    NC1HWC0_C04 = 12
    HWCN = 16
    NDHWC = 27
    FRACTAL_NZ = 29
    NCDHW = 30
    NDC1HWC0 = 32
    FRACTAL_Z_3D = 33


def npu_fast_gelu(input: torch.Tensor) -> torch.Tensor:
    """Return x * sigmoid(1.702 * x), rounded once."""
    wide = input.float()
    return (wide * torch.sigmoid(1.702 * wide)).to(input.dtype)


fast_gelu = npu_fast_gelu


def npu_silu(self: torch.Tensor) -> torch.Tensor:
    """Return x * sigmoid(x)."""
    return torch.nn.functional.silu(self)


def npu_silu_(self: torch.Tensor) -> torch.Tensor:
    """Replace x by x * sigmoid(x)."""
    return torch.nn.functional.silu(self, inplace=True)


def npu_mish(self: torch.Tensor) -> torch.Tensor:
    """Return x * tanh(softplus(x))."""
    return torch.nn.functional.mish(self)


def npu_dtype_cast(input: torch.Tensor, dtype: torch.dtype) -> torch.Tensor:
    """Return a tensor's values in another data type."""
    return input.to(dtype)


def npu_linear(
    input: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None = None
) -> torch.Tensor:
    """Return input @ weight transposed + bias."""
    return torch.nn.functional.linear(input, weight, bias)


def npu_bmmV2(  # the name is torch_npu's
    self: torch.Tensor, mat2: torch.Tensor, output_sizes: Sequence[int]
) -> torch.Tensor:
    """Return the product of two stacks of matrices.

    Raises:
        NotImplementedError: sizes of the output are given, for which a stack would be summed.
    """
    if output_sizes:
        raise NotImplementedError("opkit's npu_bmmV2 takes no output_sizes")
    return torch.matmul(self, mat2)


def npu_transpose(
    self: torch.Tensor, perm: Sequence[int], require_contiguous: bool = True
) -> torch.Tensor:
    """Return a tensor with its dims in another order, packed."""
    return self.permute(tuple(perm)).contiguous()


def npu_confusion_transpose(
    self: torch.Tensor, perm: Sequence[int], shape: Sequence[int], transpose_first: bool
) -> torch.Tensor:
    """Return a tensor with its dims in another order and another shape, packed."""
    if transpose_first:
        return self.permute(tuple(perm)).reshape(tuple(shape)).contiguous()
    return self.reshape(tuple(shape)).permute(tuple(perm)).contiguous()


def npu_slice(self: torch.Tensor, offsets: Sequence[int], size: Sequence[int]) -> torch.Tensor:
    """Return the part that begins at an offset in each dim and has a size.

    Raises:
        ValueError: the part reaches over the tensor.
    """
    if not len(offsets) == len(size) == self.dim():
        raise ValueError(f"{len(offsets)} offsets and {len(size)} sizes for {self.dim()} dims")
    for dim, (begin, length) in enumerate(zip(offsets, size, strict=True)):
        if begin < 0 or length < 0 or begin + length > self.shape[dim]:
            raise ValueError(
                f"{length} elements from {begin} on do not lie in dim {dim} of {self.shape[dim]}"
            )
    part = tuple(slice(o, o + s) for o, s in zip(offsets, size, strict=True))
    return self[part].contiguous()


def npu_pad(input: torch.Tensor, paddings: Sequence[int]) -> torch.Tensor:
    """Return a tensor with zeros around it: how many before and behind each dim, the first first.

    Raises:
        ValueError: there are not two numbers for each dim.
    """
    if len(paddings) != 2 * input.dim():
        raise ValueError(f"{len(paddings)} paddings for {input.dim()} dims, expected two for each")
    pairs = [list(paddings[at : at + 2]) for at in range(0, len(paddings), 2)]
    return torch.nn.functional.pad(input, [n for pair in reversed(pairs) for n in pair])


def npu_one_hot(
    input: torch.Tensor,
    num_classes: int = -1,
    depth: int = 1,
    on_value: float = 1,
    off_value: float = 0,
) -> torch.Tensor:
    """Return float32 with a new dim of a depth, on_value where it is the class.

    Args:
        num_classes: the place of the new dim.
    """
    classes = torch.arange(depth, device=input.device, dtype=input.dtype)
    found = torch.where(input.unsqueeze(-1) == classes, float(on_value), float(off_value))
    return found.float().movedim(-1, num_classes).contiguous()


def npu_scaled_masked_softmax(
    x: torch.Tensor, mask: torch.Tensor, scale: float = 1.0, fixed_triu_mask: bool = False
) -> torch.Tensor:
    """Return the softmax of x * scale along the last dim, -10000 where it is masked.

    Args:
        fixed_triu_mask: mask what lies above the diagonal, whatever `mask` holds.
    """
    if fixed_triu_mask:
        mask = torch.ones(x.shape[-2:], dtype=torch.bool, device=x.device).triu(1)
    masked = (x.float() * scale).masked_fill(mask.bool(), -10000.0)
    return torch.softmax(masked, -1).to(x.dtype)


def npu_broadcast(self: torch.Tensor, size: Sequence[int]) -> torch.Tensor:
    """Return a tensor expanded to a shape, packed."""
    return self.expand(tuple(size)).contiguous()


def npu_sort_v2(self: torch.Tensor, dim: int = -1, descending: bool = False) -> torch.Tensor:
    """Return the values sorted along a dim, without their places."""
    return torch.sort(self, dim, descending).values


def npu_max(
    self: torch.Tensor, dim: int, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the largest values along a dim and their places, in int32."""
    values, places = torch.max(self, dim, keepdim)
    return values, places.int()


def npu_min(
    self: torch.Tensor, dim: int, keepdim: bool = False
) -> tuple[torch.Tensor, torch.Tensor]:
    """Return the smallest values along a dim and their places, in int32."""
    values, places = torch.min(self, dim, keepdim)
    return values, places.int()


def npu_scatter_nd_update(
    input: torch.Tensor, indices: torch.Tensor, updates: torch.Tensor
) -> torch.Tensor:
    """Return a copy in which the slices at indices, one a row of the last dim, are replaced."""
    return input.index_put(tuple(indices.long().unbind(-1)), updates)


def npu_sign_bits_pack(self: torch.Tensor, size: int) -> torch.Tensor:
    """Return a bit for each sign, eight a uint8, the first the lowest; negative is 0.

    What lacks at the end counts as negative.

    Args:
        size: of the first of the result's two dims.
    """
    bits = torch.nn.functional.pad((self >= 0).int(), (0, -self.numel() % 8)).reshape(-1, 8)
    powers = torch.tensor([1 << at for at in range(8)], dtype=torch.int32, device=self.device)
    return (bits * powers).sum(-1).to(torch.uint8).reshape(size, -1)


def npu_sign_bits_unpack(x: torch.Tensor, size: int, dtype: torch.dtype) -> torch.Tensor:
    """Return 1 and -1 for the bits of uint8, the lowest first.

    Args:
        size: of the first of the result's two dims.
    """
    powers = torch.tensor([1 << at for at in range(8)], dtype=torch.int32, device=x.device)
    bits = torch.bitwise_and(x.int().unsqueeze(-1), powers) != 0
    return torch.where(bits, 1.0, -1.0).to(dtype).reshape(size, -1)


def dropout_with_byte_mask(input: torch.Tensor, p: float, train: bool) -> torch.Tensor:
    """Return PyTorch's dropout: on the emulated device all masks are bytes."""
    return torch.nn.functional.dropout(input, p, train)
