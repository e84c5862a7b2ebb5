"""Cases of operators that resize images or sample them, whose sizes belong to their tensor.

Sources: the documents of each operator, parameters and constraints.
"""

from __future__ import annotations

from collections.abc import Iterator

from opkit.schema import AttrValue
from opkit.testing.cases.cases import Shape
from opkit.testing.cases.together import POSITIVE, Together
from opkit.testing.cases.values import Source

__all__ = ["RESIZING_CASES"]

# Images, and what they become: larger, smaller, one axis each way, and with tails.
_PLANES = (
    ((1, 1, 4, 4), (8, 8)),
    ((2, 3, 9, 17), (5, 6)),
    ((1, 5, 7, 33), (19, 16)),
    ((2, 17, 16, 16), (33, 35)),
)
_VOLUMES = (
    ((1, 1, 2, 4, 4), (4, 8, 8)),
    ((2, 3, 5, 9, 17), (3, 5, 6)),
    ((1, 5, 3, 7, 9), (6, 5, 19)),
)
# Places between -1 and 1 are inside of the image; some lie outside.
_PLACES = Source("uniform", -1.25, 1.25)
_SAMPLED = (((1, 1, 4, 5), (3, 7)), ((2, 3, 9, 17), (5, 6)), ((1, 33, 7, 16), (19, 16)))
_CORNERS = (False, True)


# Host code that takes a list of scales takes no sizes beside it; whole ratios round nowhere.
_SCALED = (
    ((1, 1, 2, 4, 4), (2.0, 2.0, 2.0)),
    ((2, 3, 3, 6, 5), (2.0, 0.5, 4.0)),
    ((1, 5, 4, 7, 9), (0.5, 1.0, 2.0)),
)
# Scales of 0 follow from the sizes.
_OF_PLANES: dict[str, AttrValue] = {"scales_h": 0.0, "scales_w": 0.0}
_OF_VOLUMES: dict[str, AttrValue] = {"scale_d": 0.0, "scale_h": 0.0, "scale_w": 0.0}


def _resized(
    images: tuple[tuple[Shape, Shape], ...], scales: dict[str, AttrValue], name: str = "x"
) -> tuple[Together, ...]:
    """Return cases of an input of this name. What is seen is no less than 0, as in an image."""
    return tuple(
        Together((image,), {"output_size": size, **scales}, {name: POSITIVE})
        for image, size in images
    )


def _with_corners(cases: tuple[Together, ...]) -> tuple[Together, ...]:
    return tuple(
        Together(case.shapes, {**case.attrs, "align_corners": _CORNERS[number % 2]}, case.values)
        for number, case in enumerate(cases)
    )


def _gradients(
    images: tuple[tuple[Shape, Shape], ...], scales: dict[str, AttrValue]
) -> tuple[Together, ...]:
    return tuple(
        Together(
            ((*image[:2], *size),),
            {"output_size": size, "input_size": image, **scales},
            {"grad_output": POSITIVE},
        )
        for image, size in images
    )


def _samples(*, has_gradient: bool) -> Iterator[Together]:
    for number, (image, size) in enumerate(_SAMPLED):
        grid = (image[0], *size, 2)
        before = ((*image[:2], *size),) if has_gradient else ()
        attrs: dict[str, AttrValue] = {
            "interpolation_mode": ("bilinear", "nearest")[number % 2],
            "padding_mode": ("zeros", "border", "reflection")[number % 3],
            "align_corners": _CORNERS[number % 2],
        }
        yield Together((*before, image, grid), attrs, {"grid": _PLACES, "x": POSITIVE})


_PLAIN = _resized(_PLANES, _OF_PLANES, "input")
_SOLID = _resized(_VOLUMES, _OF_VOLUMES)
_NAMED_SOLID = _resized(_VOLUMES, {"scales_d": 0.0, **_OF_PLANES}, "input")
# Without a format that says otherwise its host code takes channels last.
_CHANNELS_LAST = _resized(tuple(((n, h, w, c), size) for (n, c, h, w), size in _PLANES), _OF_PLANES)
_BY_SCALES = tuple(
    Together(
        ((*image[:2], *(int(n * by) for n, by in zip(image[2:], scales, strict=True))),),
        {"input_size": image, "output_size": (), "scales": scales},
        {"grad_output": POSITIVE},
    )
    for image, scales in _SCALED
)
_PLANE_GRADIENTS = _gradients(_PLANES, _OF_PLANES)

RESIZING_CASES: dict[str, tuple[Together, ...]] = {
    "grid_sample": tuple(_samples(has_gradient=False)),
    "grid_sampler2_d_grad": tuple(_samples(has_gradient=True)),
    "grid_sampler3_d_grad": tuple(
        Together(
            ((*image[:2], *size), image, (image[0], *size, 3)),
            {
                "interpolation_mode": ("bilinear", "nearest")[number % 2],
                "padding_mode": ("zeros", "border")[number % 2],
                "align_corners": _CORNERS[number % 2],
            },
            {"grid": _PLACES, "x": POSITIVE},
        )
        for number, (image, size) in enumerate(_VOLUMES)
    ),
    "resize_upsample_trilinear": _with_corners(_NAMED_SOLID),
    "upsample_bicubic2d": _with_corners(_PLAIN),
    "upsample_bicubic2d_aa": _with_corners(_PLAIN),
    "upsample_bicubic2d_aa_grad": _with_corners(_PLANE_GRADIENTS),
    "upsample_bicubic2d_grad": tuple(
        Together(
            ((*image[:2], *(int(n * by) for n, by in zip(image[2:], scales, strict=True))),),
            {"scales_h": scales[0], "scales_w": scales[1], "align_corners": is_aligned},
            {"grad_output": POSITIVE},
        )
        for image, scales in (
            *(((1, 1, 4, 4), (2.0, 2.0)), ((2, 3, 6, 5), (0.5, 4.0))),
            ((1, 5, 7, 9), (3.0, 2.0)),
        )
        for is_aligned in _CORNERS
    ),
    "upsample_bilinear2d": tuple(
        Together(
            (image, (2,)),
            {"align_corners": is_aligned, "scales": (0.0, 0.0)},
            {"x": POSITIVE, "size": Source(values=tuple(map(float, size)))},
        )
        for image, size in _PLANES
        for is_aligned in _CORNERS
    ),
    "upsample_linear1d": tuple(
        Together(
            ((*image[:2], image[-1]), (1,)),
            {"align_corners": is_aligned},
            {"x": POSITIVE, "size": Source(values=(float(size[-1]),))},
        )
        for image, size in _PLANES
        for is_aligned in _CORNERS
    ),
    "upsample_bilinear2d_aa": _with_corners(_PLAIN),
    "upsample_bilinear2d_aa_backward": _with_corners(_PLANE_GRADIENTS),
    "upsample_bilinear2d_grad": _with_corners(_PLANE_GRADIENTS),
    "upsample_nearest": tuple(
        Together(case.shapes, {**case.attrs, "exact_mode": is_exact}, case.values)
        for case in _CHANNELS_LAST
        for is_exact in (False, True)
    ),
    "upsample_nearest2d_grad": _PLANE_GRADIENTS,
    "upsample_nearest3d": _SOLID,
    "upsample_nearest3d_grad": _BY_SCALES,
    "upsample_nearest_exact2d_grad": _PLANE_GRADIENTS,
    "upsample_nearest_exact3d": _SOLID,
    "upsample_nearest_exact3d_grad": _BY_SCALES,
    "upsample_trilinear3d_backward": _with_corners(_gradients(_VOLUMES, _OF_VOLUMES)),
}
"""As `opkit.testing.cases.operator_cases.TOGETHER`, of which these are a part."""
