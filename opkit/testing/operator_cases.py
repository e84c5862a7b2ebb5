"""Inputs that belong together as no general rule says: shapes, values and attributes of operators.

Places along an axis, classes, what is sorted: what `opdef_cases` tries for operators of which only
the OpDef is known is refused by their references, or is nothing that they compute.
Sources: the documents of each operator, parameters and constraints.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from opkit.schema import AttrValue
from opkit.testing.cases import LIST_LENGTH, Shape
from opkit.testing.values import Source

__all__ = ["TOGETHER", "Together"]


@dataclass(frozen=True)
class Together:
    """One case's inputs and attributes."""

    shapes: tuple[Shape | None, ...]
    """One for each input in the OpDef's order; None: it is left out. Those behind are too."""
    attrs: Mapping[str, AttrValue] = field(default_factory=dict)
    """Attributes that are not their default."""
    values: Mapping[str, Source] = field(default_factory=dict)
    """Of inputs that may not hold any values."""


def _given(*numbers: float) -> Source:
    return Source(values=numbers)


def _places(count: int) -> Source:
    """Return any places along an axis of so many."""
    return Source("uniform", 0.0, float(count - 1))


def _rows(places: Iterable[int], columns: int) -> Source:
    """Return the same place in each column of a row, so that no two of a column are the same."""
    return Source(values=tuple(float(place) for place in places for _ in range(columns)))


_POSITIVE = Source("uniform", 0.125, 2.0)
_PROBABILITY = Source("uniform", 0.0625, 0.9375)
_SCATTERED: tuple[Shape, ...] = ((5, 7), (17, 33), (9, 257))

TOGETHER: dict[str, tuple[Together, ...]] = {
    "amp_update_scale": tuple(
        Together(
            ((1,), (1,), (1,)),
            {"growth_factor": 2.0, "backoff_factor": 0.5, "growth_interval": interval},
            {"current_scale": _POSITIVE, "growth_tracker": _given(3), "found_inf": _given(found)},
        )
        for interval, found in ((9, 0.0), (4, 0.0), (4, 1.0))
    ),
    "apply_top_k_top_p_with_sorted": tuple(
        Together(
            ((rows, columns), (rows, columns), (rows,), (rows,)),
            {},
            {
                "sorted_value": Source(
                    values=tuple(
                        8.0 * (column + 1) / columns - 4.0
                        for _ in range(rows)
                        for column in range(columns)
                    )
                ),
                "sorted_indices": Source(
                    values=tuple(
                        float((column * 7 + row) % columns)
                        for row in range(rows)
                        for column in range(columns)
                    )
                ),
                "p": _PROBABILITY,
                "k": Source("uniform", 1.0, float(columns)),
            },
        )
        for rows, columns in ((1, 32), (5, 65), (3, 1031))
    ),
    "cross_entropy_grad": tuple(
        Together(((rows, classes), (rows,)), {}, {"target": _places(classes)})
        for rows, classes in ((1, 8), (7, 33), (97, 257))
    ),
    "expand_into_jagged_permute": (
        Together(
            ((3,), (4,), (4,)),
            {"output_size": 15},
            {
                "permute": _given(2, 0, 1),
                "input_offsets": _given(0, 4, 9, 15),
                "output_offsets": _given(0, 6, 10, 15),
            },
        ),
    ),
    "group_normalization_grad": tuple(
        Together((whole, whole, whole, whole[:2], whole[:2]), {}, {"rstd": _POSITIVE})
        for whole in ((1, 1, 8), (2, 3, 65), (3, 2, 1031))
    ),
    "inplace_scatter_add": tuple(
        Together(((9, columns), (6,), (6, columns)), {}, {"indices": _places(9)})
        for columns in (8, 33, 1031)
    ),
    "mul_addn": tuple(
        Together(((batch, rows, 1), (batch, 1, columns)), {"N": LIST_LENGTH})
        for batch, rows, columns in ((1, 8, 8), (3, 7, 33), (2, 65, 129))
    ),
    "nll_loss": tuple(
        Together(
            ((rows, classes), (rows,), (classes,)),
            {"reduction": reduction},
            {"target": _places(classes), "weight": _POSITIVE},
        )
        for rows, classes, reduction in ((1, 8, "mean"), (7, 33, "sum"), (97, 257, "none"))
    ),
    # Its functions come here with one of these exponents, and leave the others to `pow`.
    "pows": tuple(
        Together((shape, (1,)), {}, {"x1": _POSITIVE, "x2": _given(exponent)})
        for shape in ((31,), (3, 5, 65), (97, 1031))
        for exponent in (-2.0, -1.0, -0.5, 0.5, 2.0, 3.0)
    ),
    "scatter_elements": tuple(
        Together(
            ((rows, columns),) * 3,
            {"axis": 0, "reduction": reduction},
            {
                "indices": _rows(reversed(range(rows)), columns)
                if reduction == "none"
                else _places(rows)
            },
        )
        for rows, columns in _SCATTERED
        for reduction in ("none", "add")
    ),
    "transform_bias_rescale_qkv": tuple(
        Together(((batch, rows, 3 * size), (3 * size,)), {"num_heads": heads})
        for batch, rows, size, heads in ((1, 1, 16, 1), (2, 5, 48, 3), (3, 17, 128, 4))
    ),
}
"""By names without a version; operators that are named here have these cases and no others."""
