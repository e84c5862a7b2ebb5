"""Inputs that belong together as no general rule says: shapes, values and attributes of operators.

Places along an axis, classes, what is sorted: what `opdef_cases` tries for operators of which only
the OpDef is known is refused by their references, or is nothing that they compute.
Sources: the documents of each operator, parameters and constraints.
"""

from __future__ import annotations

import math
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


def _different(count: int, step: int = 37) -> Source:
    """Return whole numbers that differ, in an order without one, which 16 bits hold."""
    assert math.gcd(count, step) == 1 and count <= _WHOLE_IN_BFLOAT16
    return Source(values=tuple(float(place * step % count) for place in range(count)))


def _repeated(row: Source, rows: int) -> Source:
    assert row.values is not None
    return Source(values=row.values * rows)


def _rows(places: Iterable[int], columns: int) -> Source:
    """Return the same place in each column of a row, so that no two of a column are the same."""
    return Source(values=tuple(float(place) for place in places for _ in range(columns)))


_WHOLE_IN_BFLOAT16 = 256
_POSITIVE = Source("uniform", 0.125, 2.0)
_PROBABILITY = Source("uniform", 0.0625, 0.9375)
# What quantises by division, and by multiplication.
_DIVIDES, _MULTIPLIES = Source("uniform", 0.03125, 0.125), Source("uniform", 8.0, 32.0)
_POINTS = Source("uniform", -8.0, 8.0)
_ROWS: tuple[Shape, ...] = ((7, 33), (3, 5, 65), (97, 1031))
_VOLUMES: tuple[Shape, ...] = ((1, 4, 6, 7, 16), (2, 5, 7, 9, 33))
_SCATTERED: tuple[Shape, ...] = ((5, 7), (17, 33), (9, 257))


def _quantised_twice(*between: str) -> tuple[Together, ...]:
    """Return cases of layer norm after a sum: scales of rows, then given ones, with zero points."""
    cases = []
    for shape in _ROWS:
        row = shape[-1:]
        for bias, scales, points, divides in (
            (None, (None, None), (None, None), None),
            (row, (row, row), (None, None), None),
            (row, (row, None), (row, None), True),
            (shape, (row, row), (row, row), False),
        ):
            by = _POSITIVE if divides is None else _DIVIDES if divides else _MULTIPLIES
            given = {"scales1": by, "scales2": by, "zero_points1": _POINTS, "zero_points2": _POINTS}
            mode = {"quant_mode": "dynamic" if divides is None else "static"}
            cases.append(
                Together(
                    (shape, shape, row, row, bias, *scales, *points),
                    {"additional_output": True, "div_mode": divides is not False, **mode},
                    given,
                )
            )
    return tuple(cases)


TOGETHER: dict[str, tuple[Together, ...]] = {
    "ada_layer_norm_grad": tuple(
        Together(
            (
                *(whole, whole, (*whole[:-1], 1), (*whole[:-1], 1)),
                *((*whole[:-2], whole[-1]), whole[-1:], whole[-1:]),
            ),
            {},
            {"rstd": _POSITIVE},
        )
        for whole in ((7, 33), (3, 5, 65), (2, 19, 1031))
    ),
    "adaptive_avg_pool3d": tuple(
        Together((volume,), {"output_size": size})
        for volume in _VOLUMES
        for size in ((1, 1, 1), (2, 3, 5))
    ),
    "adaptive_avg_pool3d_grad": tuple(
        Together(((volume[0], *size, volume[-1]), volume))
        for volume in _VOLUMES
        for size in ((1, 1, 1), (2, 3, 5))
    ),
    "adaptive_max_pool3d": tuple(
        Together((volume,), {"output_size": size}, {"x": _different(math.prod(volume))})
        for volume, size in (
            *(((1, 1, 4, 6, 7), (2, 3, 5)), ((1, 3, 3, 5, 5), (1, 2, 4))),
            *(((2, 2, 3, 3, 5), (2, 2, 2)), ((1, 2, 4, 4, 8), (1, 1, 1))),
        )
    ),
    "add_layer_norm_quant": _quantised_twice(),
    "add_layer_norm_quant_v2": _quantised_twice(),
    "add_rms_norm_quant_v2": tuple(
        Together(
            shapes,
            {"div_mode": divides, "output_res": output_res},
            {
                **dict.fromkeys(("scales1", "scales2"), _DIVIDES if divides else _MULTIPLIES),
                **dict.fromkeys(("zero_points1", "zero_points2"), _POINTS),
            },
        )
        for whole in _ROWS
        for row in (whole[-1:],)
        for shapes, divides, output_res in (
            ((whole, whole, row, row), True, False),
            ((whole, whole, row, row, row, row, row, row), True, False),
            ((whole, whole, row, row, None, row), False, False),
            ((whole, whole, row, (1,), None, (1,)), True, True),
        )
    ),
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
    "avg_pool3_d": tuple(
        Together(
            (volume,),
            {
                **{"ksize": size, "strides": step, "pads": pads, "ceil_mode": ceil},
                "count_include_pad": ceil,
            },
        )
        for volume in _VOLUMES
        for size, step, pads, ceil in (
            ((2, 2, 2), (2, 2, 2), (0, 0, 0), False),
            ((3, 2, 3), (1, 2, 2), (1, 0, 1), False),
            ((2, 3, 3), (2, 3, 2), (0, 1, 1), True),
        )
    ),
    "batch_normalization_grad": tuple(
        Together(
            (whole, whole, *[whole[1:2]] * 4),
            {},
            {"save_invstd": _POSITIVE},
        )
        for whole in ((7, 33), (3, 5, 65), (2, 3, 17, 19))
    ),
    "cdist_grad": tuple(
        Together(
            (
                (*batch, rows, others),
                (*batch, rows, size),
                (*batch, others, size),
                (*batch, rows, others),
            ),
            {"p": power},
            {"cdist": _POSITIVE},
        )
        for batch, rows, others, size in (
            *(((), 7, 5, 33), ((3,), 5, 9, 65), ((), 31, 17, 131), ((2, 3), 7, 3, 19)),
        )
        for power in (1.0, 2.0)
    ),
    "cross_entropy_grad": tuple(
        Together(((rows, classes), (rows,)), {}, {"target": _places(classes)})
        for rows, classes in ((1, 8), (7, 33), (97, 257))
    ),
    "cross_entropy_loss": tuple(
        Together(
            ((rows, classes), (rows,), (classes,) if weighs else None),
            {"reduction": reduction},
            {"target": _places(classes), "weight": _POSITIVE},
        )
        for rows, classes in ((1, 8), (7, 33), (97, 257))
        for reduction, weighs in (("mean", False), ("sum", True), ("none", True))
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
    "fill": tuple(
        Together(((len(shape),), (1,)), {}, {"dims": _given(*shape)})
        for shape in ((31,), (7, 33), (3, 5, 65), (97, 1031))
    ),
    "fused_matmul_gelu": tuple(
        Together(((*rows, inner), (columns, inner), (columns,) if biased else None))
        for rows, inner, columns, biased in (
            *(((16,), 16, 16, True), ((7,), 33, 65, True)),
            *(((3, 5), 65, 129, False), ((97,), 257, 131, True)),
        )
    ),
    "group_normalization_grad": tuple(
        Together((whole, whole, whole, whole[:2], whole[:2]), {}, {"rstd": _POSITIVE})
        for whole in ((1, 1, 8), (2, 3, 65), (3, 2, 1031))
    ),
    "inplace_scatter_add": tuple(
        Together(((9, columns), (6,), (6, columns)), {}, {"indices": _places(9)})
        for columns in (8, 33, 1031)
    ),
    "max_pool_v3": tuple(
        Together(
            (whole,),
            {"ksize": (1, 1, *size), "strides": (1, 1, *step), "pads": pads, "ceil_mode": ceil},
        )
        for whole in ((1, 1, 8, 8), (2, 3, 17, 19), (1, 33, 9, 65))
        for size, step, pads, ceil in (
            ((2, 2), (2, 2), (0, 0, 0, 0), False),
            ((3, 3), (2, 1), (1, 1, 1, 1), False),
            ((3, 2), (2, 2), (0, 0, 1, 1), True),
        )
    ),
    "modulate_grad": tuple(
        Together((whole, whole, (whole[0], whole[2]), (whole[0], whole[2])))
        for whole in ((1, 1, 8), (1, 7, 33), (3, 5, 65), (2, 17, 19), (5, 3, 130), (97, 2, 1031))
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
    "nll_loss_grad": tuple(
        Together(
            ((rows, classes), (rows,) if reduction == "none" else (1,), (rows,), (classes,), (1,)),
            {"reduction": reduction},
            {"target": _places(classes), "weight": _POSITIVE, "total_weight": _POSITIVE},
        )
        for rows, classes, reduction in ((1, 8, "mean"), (7, 33, "sum"), (97, 257, "none"))
    ),
    # Its functions come here with one of these exponents, and leave the others to `pow`.
    "pows": tuple(
        Together((shape, (1,)), {}, {"x1": _POSITIVE, "x2": _given(exponent)})
        for shape in ((31,), (3, 5, 65), (97, 1031))
        for exponent in (-2.0, -1.0, -0.5, 0.5, 2.0, 3.0)
    ),
    "quant_batch_matmul_v3": tuple(
        Together(
            (
                *((rows, inner), (columns, inner) if turned else (inner, columns), (columns,)),
                *(None, (columns,) if biased else None, (rows,) if by_row else None),
            ),
            {"transpose_x2": turned},
            {"scale": _POSITIVE, "pertoken_scale": _POSITIVE},
        )
        for rows, inner, columns, turned, biased, by_row in (
            *((16, 32, 32, False, False, True), (7, 33, 65, True, True, True)),
            *((97, 257, 129, False, True, False), (65, 130, 513, True, False, False)),
        )
    ),
    "radix_top_k": tuple(
        Together(
            ((rows, columns), (1,)),
            {"largest": largest},
            {"x": _repeated(_different(columns), rows), "k": _given(most)},
        )
        for rows, columns, most in ((1, 31, 3), (7, 33, 33), (5, 256, 17))
        for largest in (True, False)
    ),
    "rms_norm_quant": tuple(
        Together(
            (shape, shape[-1:], shape[-1:], (1,), (1,)),
            {},
            {"scale": _DIVIDES, "offset": _POINTS},
        )
        for shape in ((1, 64), *_ROWS)
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
    "scatter_nd_update": tuple(
        Together(
            (whole, (4, axes), (4, *whole[axes:])),
            {},
            {
                "indices": _given(
                    *(
                        min(place + axis, size - 1)
                        for place in (3, 0, 2, 1)
                        for axis, size in enumerate(whole[:axes])
                    )
                )
            },
        )
        for whole in ((5,), (5, 33), (7, 6, 65))
        for axes in (1, len(whole))
    ),
    "swi_glu_quant": tuple(
        Together(
            ((*shape[:-1], 2 * shape[-1]), (1, shape[-1]), points),
            {"quant_mode": "dynamic" if points is None else "static", "activate_left": left},
            {"smooth_scales": _MULTIPLIES if points else _POSITIVE, "offsets": _POINTS},
        )
        for shape, left in zip(_ROWS, (True, False, True), strict=True)
        for points in (None, (1, shape[-1]))
    ),
    "thnn_fused_lstm_cell": tuple(
        Together(((rows, 4 * size), (rows, 4 * size), (rows, size), (4 * size,), (4 * size,)))
        for rows, size in ((1, 8), (3, 33), (17, 65), (5, 257))
    ),
    "transform_bias_rescale_qkv": tuple(
        Together(((batch, rows, 3 * size), (3 * size,)), {"num_heads": heads})
        for batch, rows, size, heads in ((1, 1, 16, 1), (2, 5, 48, 3), (3, 17, 128, 4))
    ),
    "unfold_grad": tuple(
        Together(
            (
                (*whole[:dim], (whole[dim] - size) // step + 1, *whole[dim + 1 :], size),
                (len(whole),),
            ),
            {"dim": dim, "size": size, "step": step},
            {"input_sizes": _given(*whole)},
        )
        for whole, dim, size, step in (
            *(((31,), 0, 4, 3), ((7, 33), 1, 5, 2), ((7, 33), 0, 3, 1), ((3, 5, 65), 2, 8, 8)),
            *(((2, 3, 17, 19), 2, 4, 5), ((97, 1031), 1, 16, 7)),
        )
    ),
    "weight_quant_batch_matmul_v2": tuple(
        Together(
            (
                *((rows, inner), (columns, inner) if turned else (inner, columns)),
                *((1, columns) if not turned else (columns, 1), None, None, None),
                (columns,) if biased else None,
            ),
            {"transpose_weight": turned},
            {"antiquant_scale": _DIVIDES},
        )
        for rows, inner, columns, turned, biased in (
            (16, 64, 64, False, True),
            (97, 192, 128, False, False),
        )
    ),
}
"""By names without a version; operators that are named here have these cases and no others."""
