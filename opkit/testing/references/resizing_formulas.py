"""What operators that resize images or sample them compute, as calls of torch's functions.

Scales that are 0 or left out follow from the sizes. Sources: the documents of each operator,
formula and parameters.
"""

from __future__ import annotations

__all__ = ["RESIZING"]

_ATEN = "torch.ops.aten."
_HW = "scales_h or None, scales_w or None"
_DHW = "scale_d or None, scale_h or None, scale_w or None"
_NAMED_DHW = "scales_d or None, scales_h or None, scales_w or None"
# One of the two is given: sizes, or a scale an axis.
_BY_SCALES = "output_size or {dy}.shape[2:], input_size, *[scale or None for scale in scales]"
_SIZES = "output_size, input_size"


def _call(function: str, *arguments: str) -> tuple[str, ...]:
    return (f"{_ATEN}{function}({', '.join(arguments)})",)


_CHANNELS_LAST = "{0}.movedim(-1, 1)"
_EXACT = _call("_upsample_nearest_exact2d", _CHANNELS_LAST, "output_size", _HW)[0]
_FLOOR = _call("upsample_nearest2d", _CHANNELS_LAST, "output_size", _HW)[0]
_SAMPLED = (
    "torch.nn.functional.grid_sample({0}.movedim(-1, 1) if channel_last else {0}, {1},"
    " interpolation_mode, padding_mode, align_corners)"
)

RESIZING: dict[str, tuple[str, ...]] = {
    "grid_sample": (_SAMPLED,),
    "grid_sampler2_d_grad": _call(
        "grid_sampler_2d_backward",
        *("{dy}", "{0}", "{1}", "['bilinear', 'nearest', 'bicubic'].index(interpolation_mode)"),
        *("['zeros', 'border', 'reflection'].index(padding_mode)", "align_corners", "[True, True]"),
    ),
    "resize_upsample_trilinear": _call(
        "upsample_trilinear3d", "{0}", "output_size", "align_corners", _NAMED_DHW
    ),
    "upsample_bicubic2d": _call("upsample_bicubic2d", "{0}", "output_size", "align_corners", _HW),
    "upsample_bicubic2d_aa": _call(
        "_upsample_bicubic2d_aa", "{0}", "output_size", "align_corners", _HW
    ),
    "upsample_bicubic2d_aa_grad": _call(
        "_upsample_bicubic2d_aa_backward", "{dy}", _SIZES, "align_corners", _HW
    ),
    "upsample_bilinear2d_aa": _call(
        "_upsample_bilinear2d_aa", "{0}", "output_size", "align_corners", _HW
    ),
    "upsample_bilinear2d_aa_backward": _call(
        "_upsample_bilinear2d_aa_backward", "{0}", _SIZES, "align_corners", _HW
    ),
    "upsample_bilinear2d_grad": _call(
        "upsample_bilinear2d_backward", "{dy}", _SIZES, "align_corners", _HW
    ),
    "upsample_nearest": (f"({_EXACT} if exact_mode else {_FLOOR}).movedim(1, -1)",),
    "upsample_nearest2d_grad": _call("upsample_nearest2d_backward", "{dy}", _SIZES, _HW),
    "upsample_nearest3d": _call("upsample_nearest3d", "{0}", "output_size", _DHW),
    "upsample_nearest3d_grad": _call("upsample_nearest3d_backward", "{dy}", _BY_SCALES),
    "upsample_nearest_exact2d_grad": _call(
        "_upsample_nearest_exact2d_backward", "{dy}", _SIZES, _HW
    ),
    "upsample_nearest_exact3d": _call("_upsample_nearest_exact3d", "{0}", "output_size", _DHW),
    "upsample_nearest_exact3d_grad": _call(
        "_upsample_nearest_exact3d_backward", "{dy}", _BY_SCALES
    ),
    "upsample_trilinear3d_backward": _call(
        "upsample_trilinear3d_backward", "{0}", _SIZES, "align_corners", _DHW
    ),
}
"""As `opkit.testing.references.operator_formulas.WRITTEN_OUT`, of which these are a part."""
