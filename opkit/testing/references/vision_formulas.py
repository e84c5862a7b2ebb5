"""What operators on points and feature maps compute, by their documents' formulas."""

from __future__ import annotations

__all__ = ["VISION"]

_NEAREST = "torch.gather({1}, 1, {2}.long().unsqueeze(-1).expand({0}.shape))"
# What a distance gives the point that it is of; the nearest one gets as much, negated.
_FROM_FIRST = f"2 * {{4}}.unsqueeze(-1) * ({{0}} - {_NEAREST})"
_EXCHANGED = {"{0}": "{1}", "{1}": "{0}", "{2}": "{3}", "{3}": "{2}", "{4}": "{5}", "{5}": "{4}"}


def _exchanged(expression: str) -> str:
    """Return what it is with the two sets of points in each other's place."""
    for name, other in _EXCHANGED.items():
        expression = expression.replace(name, other.replace("{", "<").replace("}", ">"))
    return expression.replace("<", "{").replace(">", "}")


def _of_points(own: str, others: str) -> str:
    return f"({own}).scatter_add(1, {{3}}.long().unsqueeze(-1).expand({{1}}.shape), -({others}))"


_TO_FIRST = _of_points(_FROM_FIRST, _exchanged(_FROM_FIRST))
# A level's map, and its samples, by batch and head.
_MAP = (
    "value[:, start : start + height * width].permute(0, 2, 3, 1)"
    ".reshape(-1, value.shape[3], height, width)"
)
# Queries come last in what the operator is given: its function turns the axes of its page so.
_GRID = "(2 * places[:, :, level] - 1).permute(0, 1, 4, 2, 3).flatten(0, 1)"
_SAMPLES = f"torch.nn.functional.grid_sample({_MAP}, {_GRID}, align_corners=False)"
_WEIGHTS = "shares[:, :, level].transpose(2, 3).flatten(0, 1).unsqueeze(1)"
_ATTENDED = (
    f"lambda value, places, shares: sum(({_SAMPLES} * {_WEIGHTS}).sum(-1)"
    " for level, (start, (height, width)) in enumerate(zip({2}.tolist(), {1}.tolist())))"
    ".reshape(value.shape[0], -1, places.shape[-1]).transpose(1, 2)"
)

VISION: dict[str, tuple[str, ...]] = {
    "chamfer_distance_grad": (f"({_TO_FIRST}, {_exchanged(_TO_FIRST)})",),
    "multi_scale_deformable_attention_grad": (
        f"torch.autograd.functional.vjp({_ATTENDED}, ({{0}}, {{3}}, {{4}}), {{dy}})[1]",
    ),
}
"""As `opkit.testing.references.operator_formulas.WRITTEN_OUT`, of which these are a part."""
