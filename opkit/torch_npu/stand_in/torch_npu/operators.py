"""Operators of torch_npu that are a few of PyTorch's own, on tensors of any device.

Source: the documents of torch_npu's custom interfaces, one page a function.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence

import torch

__all__ = [
    "Format",
    "fast_gelu",
    "npu_bmmV2",
    "npu_confusion_transpose",
    "npu_dtype_cast",
    "npu_fast_gelu",
    "npu_linear",
    "npu_mish",
    "npu_one_hot",
    "npu_pad",
    "npu_scaled_masked_softmax",
    "npu_silu",
    "npu_silu_",
    "npu_slice",
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
