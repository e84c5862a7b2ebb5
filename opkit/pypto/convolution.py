"""`pypto.conv`: convolutions of one and two dimensions, by the compiler's operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from opkit.compiler import GraphError

from .enumerations import dtype_name
from .extension import extension_of
from .location import here
from .traced import Traced

__all__ = ["conv"]


def conv(
    x: Traced,
    weight: Traced,
    out_dtype: object,
    strides: Sequence[int],
    paddings: Sequence[int],
    dilations: Sequence[int],
    *,
    groups: int = 1,
    transposed: bool = False,
    output_paddings: Sequence[int] = (),
    extend_params: Mapping[str, Any] | None = None,
) -> Traced:
    """Images of batch, channels and one or two axes by kernels of outputs, channels of a group and
    these axes; `paddings` are before and behind each axis.

    Raises:
        GraphError: opkit has no such convolution, or the operands do not fit.
    """
    axes = x.ndim - 2
    bias, is_relu, further = extension_of(extend_params)
    lacking = "transposed" if transposed or output_paddings else next(iter(further), "")
    if axes not in (1, 2) or weight.ndim != x.ndim:
        lacking = f"images of {x.ndim} axes by kernels of {weight.ndim}"
    if lacking:
        raise GraphError(
            f"conv: opkit has no {lacking}", location=here(), help="it has one and two dimensions"
        )
    for name, given, count in (
        *(("strides", strides, axes), ("paddings", paddings, 2 * axes)),
        ("dilations", dilations, axes),
    ):
        if len(given) != count:
            raise GraphError(f"conv: {len(given)} {name}, expected {count}", location=here())
    pairs = [(paddings[2 * at], paddings[2 * at + 1]) for at in range(axes)]
    if any(map(any, pairs)):
        x = x.apply("pad", widths=((0, 0), (0, 0), *pairs))
    if axes == 1:
        x = x.reshape(*x.shape[:2], 1, x.shape[2])
        weight = weight.reshape(*weight.shape[:2], 1, weight.shape[2])
    lead = (1,) * (2 - axes)
    result = x.apply(
        *("conv2d", weight),
        stride=(*lead, *strides),
        dilation=(*lead, *dilations),
        groups=groups,
    )
    if bias is not None:
        result = result + bias.reshape(-1, 1, 1)
    if is_relu:
        result = result.apply("relu")
    if axes == 1:
        result = result.reshape(*result.shape[:2], result.shape[3])
    wanted = dtype_name(out_dtype)
    return result if wanted == result.dtype else result.apply("cast", dtype=wanted)
