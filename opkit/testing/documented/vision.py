"""What operators on points and feature maps compute.

Sources: the documents of each operator, formula and parameters.
"""

from __future__ import annotations

from opkit.testing.documented.table import Numbers, Tensor, documented, torch


def _from_own(points: Tensor, others: Tensor, nearest: Tensor, dy: Tensor) -> Tensor:
    """Return what squared distances to the nearest of other points give the points they are of."""
    found = torch.gather(others, 1, nearest.long().unsqueeze(-1).expand(points.shape))
    return 2 * dy.unsqueeze(-1) * (points - found)


@documented("chamfer_distance_grad")
def chamfer_distance_grad(
    points1: Tensor,
    points2: Tensor,
    nearest1: Tensor,
    nearest2: Tensor,
    dy1: Tensor,
    dy2: Tensor,
) -> tuple[Tensor, Tensor]:
    """Gradients of squared distances of each point to the nearest of the other set.

    Args:
        points1, points2: (batch, count, 2).
        nearest1, nearest2: indices into the other set, (batch, count).
        dy1, dy2: (batch, count).
    """
    first = _from_own(points1, points2, nearest1, dy1)
    second = _from_own(points2, points1, nearest2, dy2)
    # The nearest one gets as much, negated.
    to_first = nearest2.long().unsqueeze(-1).expand(points2.shape)
    to_second = nearest1.long().unsqueeze(-1).expand(points1.shape)
    return first.scatter_add(1, to_first, -second), second.scatter_add(1, to_second, -first)


@documented("multi_scale_deformable_attention_grad")
def multi_scale_deformable_attention_grad(
    dy: Tensor,
    value: Tensor,
    spatial_shapes: Numbers,
    level_start: Numbers,
    locations: Tensor,
    weights: Tensor,
) -> tuple[Tensor, ...]:
    """Gradients of weighed samples of maps in several sizes, by value, locations and weights.

    Args:
        dy: (batch, queries, heads * channels).
        value: (batch, elements of all maps, heads, channels).
        spatial_shapes: rows and columns of each map.
        level_start: where each map begins.
        locations: (batch, heads, levels, points, 2, queries), within 0 and 1. Queries come last:
            the operator's function turns the axes of its page so.
        weights: (batch, heads, levels, points, queries).
    """

    def attended(value: Tensor, locations: Tensor, weights: Tensor) -> Tensor:
        levels = enumerate(zip(level_start, spatial_shapes, strict=False))
        whole = sum(
            (
                _samples(value, locations[:, :, level], start, height, width)
                * weights[:, :, level].transpose(2, 3).flatten(0, 1).unsqueeze(1)
            ).sum(-1)
            for level, (start, (height, width)) in levels
        )
        rows = whole.reshape(value.shape[0], -1, locations.shape[-1])
        return rows.transpose(1, 2)

    found: tuple[Tensor, ...] = torch.autograd.functional.vjp(
        attended, (value, locations, weights), dy
    )[1]
    return found


def _samples(value: Tensor, locations: Tensor, start: int, height: int, width: int) -> Tensor:
    """Return the samples of a level, by batch and head: channels, queries, points."""
    level = value[:, start : start + height * width].permute(0, 2, 3, 1)
    level = level.reshape(-1, value.shape[3], height, width)
    grid = (2 * locations - 1).permute(0, 1, 4, 2, 3).flatten(0, 1)
    return torch.nn.functional.grid_sample(level, grid, align_corners=False)


@documented("iou_v2")
def iou_of_boxes(boxes: Tensor, others: Tensor, *, mode: str, eps: float, aligned: bool) -> Tensor:
    """What two boxes share, over what both cover or over the second; (others, boxes or 1).

    The aclnn function turns inputs and results: the operator itself has a column for each box
    where they belong to each other one by one, a row elsewhere.

    Args:
        boxes, others: left, upper, right and lower ends; `eps` is added to each extent.
    """
    first, second = (boxes.T, others.T) if aligned else (boxes, others)
    first = first.unsqueeze(1) if aligned else first.unsqueeze(0)
    second = second.unsqueeze(1)

    def area(box: Tensor) -> Tensor:
        return (box[..., 2:] - box[..., :2] + eps).prod(-1)

    shared = torch.cat(
        (
            torch.maximum(first[..., :2], second[..., :2]),
            torch.minimum(first[..., 2:], second[..., 2:]),
        ),
        -1,
    )
    inside = (shared[..., 2:] - shared[..., :2] + eps).clamp(min=0).prod(-1)
    whole = area(second) if mode == "iof" else area(first) + area(second) - inside
    return inside / whole


@documented("stack_group_points")
def stack_group_points(
    features: Tensor, features_batch_cnt: Numbers, indices: Tensor, indices_batch_cnt: Numbers
) -> Tensor:
    """Features at indices within their batch: (rows of indices, columns, samples)."""
    begins = torch.cumsum(torch.tensor([0, *features_batch_cnt[:-1]]), 0)
    shifts = torch.repeat_interleave(begins, torch.tensor(indices_batch_cnt))
    return features[indices.long() + shifts.unsqueeze(1)].transpose(1, 2)


@documented("three_interpolate_backward")
def three_interpolate_backward(dy: Tensor, idx: Tensor, weight: Tensor, *, m: int) -> Tensor:
    """The sum of gradient * weight at each of three places: (batch, channels, m)."""
    batch, channels, count = dy.shape
    shares = (dy.unsqueeze(-1) * weight.unsqueeze(1)).reshape(batch, channels, 3 * count)
    places = idx.long().reshape(batch, 1, 3 * count).expand(batch, channels, 3 * count)
    return dy.new_zeros(batch, channels, m).scatter_add(2, places, shares)
