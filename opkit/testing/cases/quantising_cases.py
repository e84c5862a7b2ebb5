"""Cases of operators that quantise, whose scales and zero points are given with what they scale.

Sources: the documents of each operator, parameters and constraints.
"""

from __future__ import annotations

from opkit.testing.cases.together import (
    DIVIDES,
    MULTIPLIES,
    POINTS,
    POSITIVE,
    ROWS,
    Together,
    given,
)
from opkit.testing.cases.values import Source

__all__ = ["QUANTISING_CASES"]


def _quantised_twice() -> tuple[Together, ...]:
    """Return cases of layer norm after a sum: scales of rows, then given ones, with zero points."""
    cases = []
    for shape in ROWS:
        row = shape[-1:]
        for bias, scales, points, divides in (
            (None, (None, None), (None, None), None),
            (row, (row, row), (None, None), None),
            (row, (row, None), (row, None), True),
            (shape, (row, row), (row, row), False),
        ):
            by = POSITIVE if divides is None else DIVIDES if divides else MULTIPLIES
            values = {"scales1": by, "scales2": by, "zero_points1": POINTS, "zero_points2": POINTS}
            mode = {"quant_mode": "dynamic" if divides is None else "static"}
            cases.append(
                Together(
                    (shape, shape, row, row, bias, *scales, *points),
                    {"additional_output": True, "div_mode": divides is not False, **mode},
                    values,
                )
            )
    return tuple(cases)


QUANTISING_CASES: dict[str, tuple[Together, ...]] = {
    "quantized_batch_norm": tuple(
        Together(
            (whole, row, row, (1,), (1,), (1,), (1,), row, row),
            {"epsilon": 0.0009765625},
            {
                "x": Source("uniform", 0.0, 100.0),
                "var": POSITIVE,
                "input_scale": given(0.015625),
                "input_zero_point": given(50.0),
                "output_scale": given(0.0625),
                "output_zero_point": given(60.0),
            },
        )
        for whole in ((1, 1, 4, 8), (2, 3, 17, 19), (3, 17, 5, 65))
        for row in (whole[1:2],)
    ),
    "add_layer_norm_quant": _quantised_twice(),
    "add_layer_norm_quant_v2": _quantised_twice(),
    "add_rms_norm_quant_v2": tuple(
        Together(
            shapes,
            {"div_mode": divides, "output_res": output_res},
            {
                **dict.fromkeys(("scales1", "scales2"), DIVIDES if divides else MULTIPLIES),
                **dict.fromkeys(("zero_points1", "zero_points2"), POINTS),
            },
        )
        for whole in ROWS
        for row in (whole[-1:],)
        for shapes, divides, output_res in (
            ((whole, whole, row, row), True, False),
            ((whole, whole, row, row, row, row, row, row), True, False),
            ((whole, whole, row, row, None, row), False, False),
            ((whole, whole, row, (1,), None, (1,)), True, True),
        )
    ),
    # Powers of two, so that each type rounds the same quotients.
    "fake_quant_affine_cachemask": tuple(
        Together(
            (whole, (count,), (count,)),
            {"axis": axis, "quant_min": -8, "quant_max": 7},
            {
                "scale": given(*(2.0 ** -(2 + place % 3) for place in range(count))),
                "zero_point": given(*(float(place % 5 - 2) for place in range(count))),
            },
        )
        for whole, axis in (((7, 33), 0), ((5, 64), 0), ((97, 1031), 0))
        for count in whole[:1]
    ),
    "quant_batch_matmul_v3": tuple(
        Together(
            (
                *((rows, inner), (columns, inner) if turned else (inner, columns), (columns,)),
                *(None, (columns,) if biased else None, (rows,) if by_row else None),
            ),
            {"transpose_x2": turned},
            {"scale": POSITIVE, "pertoken_scale": POSITIVE},
        )
        for rows, inner, columns, turned, biased, by_row in (
            *((16, 32, 32, False, False, True), (7, 33, 65, True, True, True)),
            *((97, 257, 129, False, True, False), (65, 130, 513, True, False, False)),
        )
    ),
    "rms_norm_quant": tuple(
        Together(
            (shape, shape[-1:], shape[-1:], (1,), (1,)),
            {},
            {"scale": DIVIDES, "offset": POINTS},
        )
        for shape in ((1, 64), *ROWS)
    ),
    "swi_glu_quant": tuple(
        Together(
            ((*shape[:-1], 2 * shape[-1]), (1, shape[-1]), points),
            {"quant_mode": "dynamic" if points is None else "static", "activate_left": left},
            {"smooth_scales": MULTIPLIES if points else POSITIVE, "offsets": POINTS},
        )
        for shape, left in zip(ROWS, (True, False, True), strict=True)
        for points in (None, (1, shape[-1]))
    ),
    "weight_quant_batch_matmul_v2": tuple(
        Together(
            (
                *((rows, inner), (columns, inner) if turned else (inner, columns)),
                *((1, columns) if not turned else (columns, 1), None, None, None),
                (columns,) if biased else None,
            ),
            {"transpose_weight": turned},
            {"antiquant_scale": DIVIDES},
        )
        for rows, inner, columns, turned, biased in (
            (16, 64, 64, False, True),
            (97, 192, 128, False, False),
        )
    ),
}
"""As `opkit.testing.cases.operator_cases.TOGETHER`, of which these are a part."""
