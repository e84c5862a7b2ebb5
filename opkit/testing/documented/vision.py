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
