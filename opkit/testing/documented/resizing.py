"""What operators that resize images or sample them compute.

Images are (images, channels, rows, columns), solid ones have a depth before the rows. Scales that
are 0 or left out follow from the sizes. Sources: the documents of each operator, formula and
parameters.
"""

from __future__ import annotations

from typing import Any

from opkit.testing.documented.table import Numbers, Tensor, documented, torch

_INTERPOLATIONS = ["bilinear", "nearest", "bicubic"]
_PADDINGS = ["zeros", "border", "reflection"]


@documented("grid_sample")
def grid_sample(
    x: Tensor,
    grid: Tensor,
    *,
    channel_last: bool,
    interpolation_mode: str,
    padding_mode: str,
    align_corners: bool,
) -> Tensor:
    """Samples of images at places of a grid, which are within -1 and 1."""
    images = x.movedim(-1, 1) if channel_last else x
    return torch.nn.functional.grid_sample(
        images, grid, interpolation_mode, padding_mode, align_corners
    )


def _sampling_modes(interpolation: str, padding: str, align_corners: bool) -> tuple[Any, ...]:
    """The modes as PyTorch's gradients of samples number them."""
    return _INTERPOLATIONS.index(interpolation), _PADDINGS.index(padding), align_corners


@documented("grid_sampler2_d_grad")
def grid_sampler2_d_grad(
    dy: Tensor,
    x: Tensor,
    grid: Tensor,
    *,
    interpolation_mode: str,
    padding_mode: str,
    align_corners: bool,
) -> tuple[Tensor, ...]:
    """Gradients of samples by images and grid."""
    backward = torch.ops.aten.grid_sampler_2d_backward
    modes = _sampling_modes(interpolation_mode, padding_mode, align_corners)
    return tuple(backward(dy, x, grid, *modes, [True, True]))


@documented("grid_sampler3_d_grad")
def grid_sampler3_d_grad(
    dy: Tensor,
    x: Tensor,
    grid: Tensor,
    *,
    interpolation_mode: str,
    padding_mode: str,
    align_corners: bool,
) -> tuple[Tensor, ...]:
    """Gradients of samples by solid images and grid."""
    backward = torch.ops.aten.grid_sampler_3d_backward
    modes = _sampling_modes(interpolation_mode, padding_mode, align_corners)
    return tuple(backward(dy, x, grid, *modes, [True, True]))


@documented("resize_upsample_trilinear")
def resize_upsample_trilinear(
    x: Tensor,
    *,
    output_size: list[int],
    align_corners: bool,
    scales_d: float,
    scales_h: float,
    scales_w: float,
) -> Tensor:
    """Solid images resized, linear along three axes."""
    scales = (scales_d or None, scales_h or None, scales_w or None)
    return torch.ops.aten.upsample_trilinear3d(x, output_size, align_corners, *scales)


@documented("upsample_trilinear3d_backward")
def upsample_trilinear3d_backward(
    grad: Tensor,
    *,
    output_size: list[int],
    input_size: list[int],
    align_corners: bool,
    scale_d: float,
    scale_h: float,
    scale_w: float,
) -> Tensor:
    """The gradient of solid images resized, linear along three axes."""
    scales = (scale_d or None, scale_h or None, scale_w or None)
    return torch.ops.aten.upsample_trilinear3d_backward(
        grad, output_size, input_size, align_corners, *scales
    )


@documented("upsample_bicubic2d")
def upsample_bicubic2d(
    x: Tensor, *, output_size: list[int], align_corners: bool, scales_h: float, scales_w: float
) -> Tensor:
    """Images resized, cubic along two axes."""
    return torch.ops.aten.upsample_bicubic2d(
        x, output_size, align_corners, scales_h or None, scales_w or None
    )


@documented("upsample_bicubic2d_aa")
def upsample_bicubic2d_aa(
    x: Tensor, *, output_size: list[int], align_corners: bool, scales_h: float, scales_w: float
) -> Tensor:
    """Images resized, cubic along two axes, smoothed where they shrink."""
    return torch.ops.aten._upsample_bicubic2d_aa(
        x, output_size, align_corners, scales_h or None, scales_w or None
    )


@documented("upsample_bicubic2d_aa_grad")
def upsample_bicubic2d_aa_grad(
    dy: Tensor,
    *,
    output_size: list[int],
    input_size: list[int],
    align_corners: bool,
    scales_h: float,
    scales_w: float,
) -> Tensor:
    """The gradient of upsample_bicubic2d_aa."""
    return torch.ops.aten._upsample_bicubic2d_aa_backward(
        dy, output_size, input_size, align_corners, scales_h or None, scales_w or None
    )


@documented("upsample_bicubic2d_grad")
def upsample_bicubic2d_grad(
    dy: Tensor, *, align_corners: bool, scales_h: float, scales_w: float
) -> Tensor:
    """The gradient of images resized by these scales, cubic along two axes."""
    size = dy.shape[-2:]
    before = [int(n / by) if by else n for n, by in zip(size, (scales_h, scales_w), strict=True)]
    return torch.ops.aten.upsample_bicubic2d_backward(
        dy, size, [*dy.shape[:2], *before], align_corners, scales_h or None, scales_w or None
    )


@documented("upsample_bilinear2d")
def upsample_bilinear2d(
    x: Tensor, size: Numbers, *, align_corners: bool, scales: list[float]
) -> Tensor | None:
    """Images resized to a size, linear along two axes."""
    if scales and any(scales):
        return None
    return torch.ops.aten.upsample_bilinear2d(x, size, align_corners)


@documented("upsample_linear1d")
def upsample_linear1d(
    x: Tensor, size: Numbers, *, align_corners: bool, scale: float
) -> Tensor | None:
    """Lines resized to a size, linear."""
    if scale:
        return None
    return torch.ops.aten.upsample_linear1d(x, size[-1:], align_corners)


@documented("upsample_bilinear2d_aa")
def upsample_bilinear2d_aa(
    x: Tensor, *, output_size: list[int], align_corners: bool, scales_h: float, scales_w: float
) -> Tensor:
    """Images resized, linear along two axes, smoothed where they shrink."""
    return torch.ops.aten._upsample_bilinear2d_aa(
        x, output_size, align_corners, scales_h or None, scales_w or None
    )


@documented("upsample_bilinear2d_aa_backward")
def upsample_bilinear2d_aa_backward(
    grad: Tensor,
    *,
    output_size: list[int],
    input_size: list[int],
    align_corners: bool,
    scales_h: float,
    scales_w: float,
) -> Tensor:
    """The gradient of upsample_bilinear2d_aa."""
    return torch.ops.aten._upsample_bilinear2d_aa_backward(
        grad, output_size, input_size, align_corners, scales_h or None, scales_w or None
    )


@documented("upsample_bilinear2d_grad")
def upsample_bilinear2d_grad(
    dy: Tensor,
    *,
    output_size: list[int],
    input_size: list[int],
    align_corners: bool,
    scales_h: float,
    scales_w: float,
) -> Tensor:
    """The gradient of images resized, linear along two axes."""
    return torch.ops.aten.upsample_bilinear2d_backward(
        dy, output_size, input_size, align_corners, scales_h or None, scales_w or None
    )


@documented("upsample_nearest")
def upsample_nearest(
    x: Tensor, *, output_size: list[int], exact_mode: bool, scales_h: float, scales_w: float
) -> Tensor:
    """The nearest of images whose channels come last, from pixels' middles in exact mode."""
    aten = torch.ops.aten
    function = aten._upsample_nearest_exact2d if exact_mode else aten.upsample_nearest2d
    resized = function(x.movedim(-1, 1), output_size, scales_h or None, scales_w or None)
    return resized.movedim(1, -1)


@documented("upsample_nearest2d_grad")
def upsample_nearest2d_grad(
    dy: Tensor, *, output_size: list[int], input_size: list[int], scales_h: float, scales_w: float
) -> Tensor:
    """The gradient of the nearest of images, from pixels' corners."""
    return torch.ops.aten.upsample_nearest2d_backward(
        dy, output_size, input_size, scales_h or None, scales_w or None
    )


@documented("upsample_nearest_exact2d_grad")
def upsample_nearest_exact2d_grad(
    dy: Tensor, *, output_size: list[int], input_size: list[int], scales_h: float, scales_w: float
) -> Tensor:
    """The gradient of the nearest of images, from pixels' middles."""
    return torch.ops.aten._upsample_nearest_exact2d_backward(
        dy, output_size, input_size, scales_h or None, scales_w or None
    )


@documented("upsample_nearest3d")
def upsample_nearest3d(
    x: Tensor, *, output_size: list[int], scale_d: float, scale_h: float, scale_w: float
) -> Tensor:
    """The nearest of solid images, from corners."""
    scales = (scale_d or None, scale_h or None, scale_w or None)
    return torch.ops.aten.upsample_nearest3d(x, output_size, *scales)


@documented("upsample_nearest_exact3d")
def upsample_nearest_exact3d(
    x: Tensor, *, output_size: list[int], scale_d: float, scale_h: float, scale_w: float
) -> Tensor:
    """The nearest of solid images, from middles."""
    scales = (scale_d or None, scale_h or None, scale_w or None)
    return torch.ops.aten._upsample_nearest_exact3d(x, output_size, *scales)


@documented("upsample_nearest3d_grad")
def upsample_nearest3d_grad(
    dy: Tensor, *, output_size: list[int], input_size: list[int], scales: list[float]
) -> Tensor:
    """The gradient of upsample_nearest3d; of sizes and scales one is given."""
    return torch.ops.aten.upsample_nearest3d_backward(
        dy, output_size or dy.shape[2:], input_size, *[scale or None for scale in scales]
    )


@documented("upsample_nearest_exact3d_grad")
def upsample_nearest_exact3d_grad(
    dy: Tensor, *, output_size: list[int], input_size: list[int], scales: list[float]
) -> Tensor:
    """The gradient of upsample_nearest_exact3d; of sizes and scales one is given."""
    return torch.ops.aten._upsample_nearest_exact3d_backward(
        dy, output_size or dy.shape[2:], input_size, *[scale or None for scale in scales]
    )
