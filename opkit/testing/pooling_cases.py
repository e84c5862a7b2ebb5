"""Cases of operators that pool windows, whose sizes, steps and padding belong to their tensor.

Sources: the documents of each operator, parameters and constraints.
"""

from __future__ import annotations

import math

from opkit.testing.cases import Shape
from opkit.testing.together import Together, different

__all__ = ["POOLING_CASES"]

_VOLUMES: tuple[Shape, ...] = ((1, 4, 6, 7, 16), (2, 5, 7, 9, 33))

POOLING_CASES: dict[str, tuple[Together, ...]] = {
    "adaptive_avg_pool3d": tuple(
        Together((volume,), {"output_size": size})
        for volume in _VOLUMES
        for size in ((1, 1, 1), (2, 3, 5))
    ),
    "adaptive_max_pool3d": tuple(
        Together((volume,), {"output_size": size}, {"x": different(math.prod(volume))})
        for volume, size in (
            *(((1, 1, 4, 6, 7), (2, 3, 5)), ((1, 3, 3, 5, 5), (1, 2, 4))),
            *(((2, 2, 3, 3, 5), (2, 2, 2)), ((1, 2, 4, 4, 8), (1, 1, 1))),
        )
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
}
"""As `opkit.testing.operator_cases.TOGETHER`, of which these are a part."""
