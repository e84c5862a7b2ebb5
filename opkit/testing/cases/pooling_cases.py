"""Cases of operators that pool windows, whose sizes, steps and padding belong to their tensor.

Sources: the documents of each operator, parameters and constraints.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product

from opkit.schema import AttrValue
from opkit.testing.cases.cases import Shape
from opkit.testing.cases.together import Together, different, given
from opkit.testing.cases.values import Source

__all__ = ["POOLING_CASES"]

_VOLUMES: tuple[Shape, ...] = ((1, 4, 6, 7, 16), (2, 5, 7, 9, 33))

# Channels first: a tensor, windows, steps, padding, and whether a window may stand over the end.
_CHANNELS_FIRST = (
    ((1, 1, 4, 6, 8), (2, 2, 2), (2, 2, 2), (0, 0, 0), False),
    ((1, 3, 3, 5, 5), (1, 2, 3), (1, 2, 1), (0, 0, 1), False),
    ((2, 2, 4, 4, 7), (3, 2, 2), (2, 1, 3), (1, 1, 0), True),
    ((2, 17, 3, 5, 5), (2, 3, 3), (1, 1, 1), (0, 1, 1), False),
)
# The same windows of an adaptive pool: a tensor and how many of each axis.
_ADAPTIVE = (
    *(((1, 1, 4, 6, 7), (2, 3, 5)), ((1, 3, 3, 5, 5), (1, 2, 4))),
    *(((2, 2, 3, 3, 5), (2, 2, 2)), ((1, 2, 4, 4, 8), (1, 1, 1))),
)


def _windows(size: int, length: int, step: int, pad: int, ceil: bool) -> list[range]:
    """Return which places of an axis each of its windows has; one that begins behind it is none."""
    left = size + 2 * pad - length
    count = (-(-left // step) if ceil else left // step) + 1
    starts = [step * number - pad for number in range(count) if step * number < size + pad]
    return [range(max(start, 0), min(start + length, size)) for start in starts]


def _pooled(whole: Shape, size: Shape, step: Shape, pads: Shape, ceil: bool) -> Shape:
    """Return the shape of what is pooled from a tensor with its channels first."""
    axes = zip(whole[2:], size, step, pads, strict=True)
    return (*whole[:2], *(len(_windows(*axis, ceil)) for axis in axes))


def _shares(size: int, parts: int) -> list[range]:
    return [range(n * size // parts, -(-(n + 1) * size // parts)) for n in range(parts)]


def _places(whole: Shape, windows: Sequence[Sequence[range]]) -> tuple[tuple[int, ...], Source]:
    """Return the shape of what is pooled, and one place of each window, not always the same."""
    _, height, width = whole[2:]
    places: list[float] = []
    for _ in product(range(whole[0]), range(whole[1])):
        for window in product(*windows):
            d, h, w = (axis[len(places) * 7 % len(axis)] for axis in window)
            places.append(float((d * height + h) * width + w))
    return (*whole[:2], *map(len, windows)), given(*places)


def _gradient(whole: Shape, windows: Sequence[Sequence[range]], **attrs: AttrValue) -> Together:
    pooled, places = _places(whole, windows)
    return Together((whole, pooled, pooled), attrs, {"argmax": places})


POOLING_CASES: dict[str, tuple[Together, ...]] = {
    "adaptive_avg_pool3d": tuple(
        Together((volume,), {"output_size": size})
        for volume in _VOLUMES
        for size in ((1, 1, 1), (2, 3, 5))
    ),
    "adaptive_max_pool3d": tuple(
        Together((volume,), {"output_size": size}, {"x": different(math.prod(volume))})
        for volume, size in _ADAPTIVE
    ),
    "adaptive_avg_pool3d_grad": tuple(
        Together(((volume[0], *size, volume[4]), volume))
        for volume in _VOLUMES
        for size in ((1, 1, 1), (2, 3, 5))
    ),
    "adaptive_max_pool3_d_grad": tuple(
        _gradient(volume, [_shares(*axis) for axis in zip(volume[2:], size, strict=True)])
        for volume, size in _ADAPTIVE
    ),
    "average_pooling_grad": tuple(
        Together(
            (
                (4,),
                _pooled(whole, size, step, pads, ceil),
            ),
            {
                **dict(
                    zip(
                        ("kernel_h", "kernel_w", "stride_h", "stride_w"),
                        (*size, *step),
                        strict=True,
                    )
                ),
                **dict.fromkeys(("pad_top", "pad_bottom"), pads[0]),
                **dict.fromkeys(("pad_left", "pad_right"), pads[1]),
                "ceil_mode": ceil,
                # With it, what a window over the end is divided by is left open.
                "count_include_pad": not ceil,
            },
            {"orig_input_shape": given(*whole)},
        )
        for whole in ((1, 1, 8, 8), (2, 3, 17, 19), (1, 33, 9, 65))
        for size, step, pads, ceil in (
            ((2, 2), (2, 2), (0, 0), False),
            ((3, 3), (2, 1), (1, 1), False),
            ((3, 2), (2, 2), (0, 1), True),
        )
    ),
    "avg_pool3_d_grad": tuple(
        Together(
            ((5,), _pooled(whole, size, step, pads, ceil)),
            {
                **{"ksize": size, "strides": step, "pads": pads, "ceil_mode": ceil},
                **{"count_include_pad": ceil, "data_format": "NCDHW"},
            },
            {"orig_input_shape": given(*whole)},
        )
        for whole, size, step, pads, ceil in _CHANNELS_FIRST
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
    "max_pool3_d": tuple(
        Together(
            (whole if first else (whole[0], *whole[2:], whole[1]),),
            {
                **{"ksize": size, "strides": step, "padding": "CALCULATED", "ceil_mode": int(ceil)},
                "pads": tuple(pad for pad in pads for _ in range(2)),
                "data_format": "NCDHW" if first else "NDHWC",
            },
        )
        for whole, size, step, pads, ceil in _CHANNELS_FIRST
        for first in (True, False)
    ),
    "max_pooling_grad": tuple(
        Together(
            (shape,) * 3,
            {},
            {
                name: Source(values=tuple(float(n % count) for n in range(math.prod(shape))))
                for name, count in (("x", 5), ("y", 3))
            },
        )
        for shape in ((31,), (7, 33), (3, 5, 65), (97, 1031))
    ),
    "max_pool3_d_grad_with_argmax": tuple(
        _gradient(
            volume,
            [_windows(*axis, ceil) for axis in zip(volume[2:], size, step, pads, strict=True)],
            ksize=size,
            strides=step,
            pads=pads,
            ceil_mode=ceil,
        )
        for volume, size, step, pads, ceil in _CHANNELS_FIRST
    ),
    "max_pool3_d_with_argmax": tuple(
        Together(
            (volume,),
            # The type of the places, not of the result.
            {"ksize": size, "strides": step, "pads": pads, "ceil_mode": ceil, "dtype": 3},
            {"x": different(math.prod(volume))},
        )
        for volume, size, step, pads, ceil in _CHANNELS_FIRST
        if math.prod(volume) <= 256
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
"""As `opkit.testing.cases.operator_cases.TOGETHER`, of which these are a part."""
