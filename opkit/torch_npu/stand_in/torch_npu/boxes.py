"""Boxes of object detection: to differences from anchors, and back.

Corners are pixels, so a box from 1 to 3 is three wide. Source: the documents of torch_npu's custom
interfaces, one page a function.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch

__all__ = ["npu_anchor_response_flags", "npu_bounding_box_decode", "npu_bounding_box_encode"]


def _centres(boxes: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """Return centres and sizes, (N, 2) each, of boxes (x0, y0, x1, y1)."""
    first, last = boxes[:, :2], boxes[:, 2:]
    return (first + last) * 0.5, last - first + 1


def npu_bounding_box_encode(
    anchor_box: torch.Tensor,
    ground_truth_box: torch.Tensor,
    means0: float,
    means1: float,
    means2: float,
    means3: float,
    stds0: float,
    stds1: float,
    stds2: float,
    stds3: float,
) -> torch.Tensor:
    """Return (dx, dy, dw, dh) of each box from its anchor, less means, over deviations."""
    centre, size = _centres(anchor_box.float())
    wanted, wanted_size = _centres(ground_truth_box.float())
    deltas = torch.cat([(wanted - centre) / size, torch.log(wanted_size / size)], 1)
    means = deltas.new_tensor([means0, means1, means2, means3])
    stds = deltas.new_tensor([stds0, stds1, stds2, stds3])
    return ((deltas - means) / stds).to(anchor_box.dtype)


def npu_bounding_box_decode(
    rois: torch.Tensor,
    deltas: torch.Tensor,
    means0: float,
    means1: float,
    means2: float,
    means3: float,
    stds0: float,
    stds1: float,
    stds2: float,
    stds3: float,
    max_shape: Sequence[int],
    wh_ratio_clip: float,
) -> torch.Tensor:
    """Return boxes (x0, y0, x1, y1) for anchors and differences, inside an image.

    Args:
        max_shape: height and width of the image.
        wh_ratio_clip: no size changes by more than this factor, or one over it.
    """
    given = deltas.float()
    means = given.new_tensor([means0, means1, means2, means3])
    stds = given.new_tensor([stds0, stds1, stds2, stds3])
    moves = given * stds + means
    most = abs(math.log(wh_ratio_clip))
    centre, size = _centres(rois.float())
    centre = centre + size * moves[:, :2]
    half = size * torch.exp(moves[:, 2:].clamp(-most, most)) * 0.5
    corners = torch.cat([centre - half + 0.5, centre + half - 0.5], 1)
    limit = corners.new_tensor([max_shape[1] - 1, max_shape[0] - 1] * 2)
    return torch.minimum(corners.clamp(min=0), limit).to(rois.dtype)


def npu_anchor_response_flags(
    self: torch.Tensor,
    featmap_size: Sequence[int],
    stride: Sequence[int],
    num_base_anchors: int,
) -> torch.Tensor:
    """Return 1 for the anchors at the cells of a map that hold a box's centre, else 0, as uint8.

    Args:
        self: boxes (x0, y0, x1, y1).
        featmap_size: height and width of the map.
        stride: what a cell takes of the image, along x and along y.
        num_base_anchors: how many anchors a cell has; theirs stand together in the result.
    """
    height, width = featmap_size
    centre = (self[:, :2] + self[:, 2:]) * 0.5
    column = torch.floor(centre[:, 0] / stride[0]).long().clamp(0, width - 1)
    row = torch.floor(centre[:, 1] / stride[1]).long().clamp(0, height - 1)
    flags = torch.zeros(height * width, dtype=torch.uint8, device=self.device)
    flags[row * width + column] = 1
    return flags.repeat_interleave(num_base_anchors)
