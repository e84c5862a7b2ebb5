"""What operators compute that quantise their result.

A whole number is given as what it is rounded from (see docs/precision.md), in units of int8: 4-bit
results are no data type here. None stands for an output of which a document says that it has no
meaning in that mode. Sources: the documents of each operator, formula and parameters.
"""

from __future__ import annotations

from opkit.testing.documented.gates import halves
from opkit.testing.documented.norms import axes_of, by_matrix, plain_layer_normed
from opkit.testing.documented.norms_of_channels import group_normed, statistics_of_groups
from opkit.testing.documented.table import (
    Array,
    Numbers,
    Tensor,
    Tensors,
    documented,
    torch,
)

LARGEST = 127


def _normed(x: Tensor, gamma: Tensor, epsilon: float) -> Tensor:
    """Return RMS norm, a product at a time."""
    return x * torch.rsqrt(x.square().mean(axes_of(gamma), True) + epsilon) * gamma


def _layer_normed(x: Tensor, gamma: Tensor, beta: Tensor, epsilon: float) -> Tensor:
    return torch.nn.functional.layer_norm(x, gamma.shape, gamma, beta, epsilon)


def _scales_of_rows(x: Tensor) -> Tensor:
    return torch.amax(torch.abs(x), -1) / LARGEST


def by_row(x: Tensor) -> tuple[Tensor, Tensor]:
    """Return x by row in int8, and the rows' scales."""
    scales = _scales_of_rows(x)
    return x / scales.unsqueeze(-1), scales


def _by_given(
    x: Tensor, scale: Tensor | None, point: Tensor | None, div_mode: bool
) -> Tensor | None:
    """Return x quantised by what is given as a scale and a zero point; None without scale."""
    if scale is None:
        return None
    return (x / scale if div_mode else x * scale) + (0 if point is None else point)


def _with_bias(x: Tensor, bias: Tensor | None) -> Tensor:
    return x + (0 if bias is None else bias)


@documented("ada_layer_norm_quant")
def ada_layer_norm_quant(
    x: Tensor, scale: Tensor, shift: Tensor, *, epsilon: float
) -> tuple[Tensor, Tensor]:
    """Layer norm of x * (1 + scale) + shift by row in int8, and the rows' scales."""
    return by_row(plain_layer_normed(x, epsilon) * (1 + by_matrix(scale, x)) + by_matrix(shift, x))


def _norm_quantised_twice(
    normed: Tensor,
    scales: tuple[Tensor | None, Tensor | None],
    points: tuple[Tensor | None, Tensor | None],
    quant_mode: str,
    div_mode: bool,
) -> tuple[tuple[Tensor | None, Tensor | None], tuple[Tensor | None, Tensor | None]] | None:
    """Return a value quantised by two given scales, or by row once they have smoothed it.

    With the scales of rows; None where the document says nothing.
    """
    first, second = scales
    if quant_mode == "static" and div_mode in (True, False):
        found = tuple(
            _by_given(normed, scale, point, div_mode)
            for scale, point in zip(scales, points, strict=True)
        )
        return (found[0], found[1]), (None, None)
    if quant_mode != "dynamic" or any(point is not None for point in points):
        return None
    quantised, of_rows = by_row(normed if first is None else normed * first)
    if second is None:
        return (quantised, None), (of_rows, None)
    again, of_rows_again = by_row(normed * second)
    return (quantised, again), (of_rows, of_rows_again)


@documented("add_layer_norm_quant_v2", divisors=("scales1", "scales2"))
def add_layer_norm_quant_v2(
    x1: Tensor,
    x2: Tensor,
    gamma: Tensor,
    beta: Tensor,
    bias: Tensor | None,
    scales1: Tensor | None,
    scales2: Tensor | None,
    points1: Tensor | None,
    points2: Tensor | None,
    *,
    epsilon: float,
    quant_mode: str,
    div_mode: bool,
    additional_output: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor, Tensor, Tensor | None, Tensor | None] | None:
    """Layer norm of x1 + x2 + bias quantised twice, the sum, the norm, and the rows' scales."""
    if not additional_output or gamma.dim() != 1:
        return None
    x = _with_bias(x1 + x2, bias)
    normed = _layer_normed(x, gamma, beta, epsilon)
    found = _norm_quantised_twice(
        normed, (scales1, scales2), (points1, points2), quant_mode, div_mode
    )
    return None if found is None else (*found[0], x, normed, *found[1])


@documented("add_layer_norm_quant", divisors=("scales1", "scales2"))
def add_layer_norm_quant(
    x1: Tensor,
    x2: Tensor,
    gamma: Tensor,
    beta: Tensor,
    bias: Tensor | None,
    scales1: Tensor | None,
    scales2: Tensor | None,
    points1: Tensor | None,
    points2: Tensor | None,
    *,
    epsilon: float,
    quant_mode: str,
    div_mode: bool,
    additional_output: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor, Tensor | None, Tensor | None] | None:
    """Layer norm of x1 + x2 + bias quantised twice, the sum, and the rows' scales."""
    found = add_layer_norm_quant_v2(
        *(x1, x2, gamma, beta, bias, scales1, scales2, points1, points2),
        epsilon=epsilon,
        quant_mode=quant_mode,
        div_mode=div_mode,
        additional_output=additional_output,
    )
    return None if found is None else (*found[:3], *found[4:])


@documented("add_rms_norm_dynamic_quant")
def add_rms_norm_dynamic_quant(
    x1: Tensor, x2: Tensor, gamma: Tensor, *, epsilon: float, output_mask: list[bool]
) -> tuple[Tensor, None, Tensor, Tensor, None] | None:
    """RMS norm of x1 + x2 by row in int8, the sum, and the rows' scales."""
    if output_mask or x1.shape != x2.shape or gamma.dim() != 1:
        return None
    quantised, scales = by_row(_normed(x1 + x2, gamma, epsilon))
    return quantised, None, x1 + x2, scales, None


@documented("add_rms_norm_dynamic_quant")
def add_rms_norm_dynamic_quant_with_norm(
    x1: Tensor, x2: Tensor, gamma: Tensor, *, epsilon: float, output_mask: list[bool]
) -> tuple[Tensor, None, Tensor, Tensor, Tensor, Tensor, None] | None:
    """RMS norm of x1 + x2 by row in int8, the norm in two data types, the sum, the rows' scales."""
    if output_mask or x1.shape != x2.shape or gamma.dim() != 1:
        return None
    normed = _normed(x1 + x2, gamma, epsilon)
    quantised, scales = by_row(normed)
    return quantised, None, normed, normed, x1 + x2, scales, None


@documented("add_rms_norm_quant", divisors=("scales",))
def add_rms_norm_quant(
    x1: Tensor,
    x2: Tensor,
    gamma: Tensor,
    scales: Tensor,
    *,
    epsilon: float,
    axis: int,
    div_mode: bool,
) -> tuple[Tensor, None, Tensor] | None:
    """RMS norm of x1 + x2, divided by a scale a column, and the sum."""
    if axis != -1 or not div_mode or not gamma.shape == scales.shape == x1.shape[-1:]:
        return None
    return _normed(x1 + x2, gamma, epsilon) / scales, None, x1 + x2


@documented("add_rms_norm_quant_v2", divisors=("scales1", "scales2"))
def add_rms_norm_quant_v2(
    x1: Tensor,
    x2: Tensor,
    gamma: Tensor,
    scales1: Tensor | None,
    scales2: Tensor | None,
    points1: Tensor | None,
    points2: Tensor | None,
    bias: Tensor | None,
    *,
    epsilon: float,
    axis: int,
    div_mode: bool,
    output_res: bool,
) -> tuple[Tensor | None, Tensor | None, Tensor | None, Tensor | None] | None:
    """RMS norm of x1 + x2, and a bias, quantised twice; the sum, or the norm, as asked."""
    if axis != -1 or gamma.dim() != 1 or (output_res and bias is not None):
        return None
    normed = _with_bias(_normed(x1 + x2, gamma, epsilon), bias)
    return (
        _by_given(normed, scales1, points1, div_mode),
        _by_given(normed, scales2, points2, div_mode),
        None if output_res else x1 + x2,
        normed if output_res else None,
    )


@documented("ascend_anti_quant")
def ascend_anti_quant(x: Array, scale: Array, *, sqrt_mode: bool) -> Array:
    """x * scale, or x * scale^2."""
    return x * scale * (scale if sqrt_mode else 1)


@documented("ascend_quant")
def ascend_quant(
    x: Array, scale: Array, *, sqrt_mode: bool, round_mode: str, axis: int
) -> Array | None:
    """x * scale, or x * scale^2; a scale a column."""
    if round_mode != "round" or axis != -1 or scale.shape != x.shape[-1:]:
        return None
    return x * scale * (scale if sqrt_mode else 1)


@documented("dua_quantize_add_layer_norm", divisors=("scales1", "scales2"))
def dua_quantize_add_layer_norm(
    x1: Tensor,
    x2: Tensor,
    gamma: Tensor,
    beta: Tensor,
    bias: Tensor,
    scales1: Tensor,
    scales2: Tensor,
    *,
    epsilon: float,
    axis: int,
    additional_output: bool,
) -> tuple[Tensor, Tensor, Tensor] | None:
    """Layer norm of x1 + x2 + bias, divided by each of two scales, and the sum."""
    if axis != -1 or not additional_output or gamma.dim() != 1:
        return None
    if not bias.shape == scales1.shape == scales2.shape == gamma.shape:
        return None
    x = x1 + x2 + bias
    normed = _layer_normed(x, gamma, beta, epsilon)
    return normed / scales1, normed / scales2, x


@documented("dynamic_quant")
def dynamic_quant(x: Tensor) -> tuple[Tensor, Tensor]:
    """x by row in int8, and the rows' scales."""
    return by_row(x)


@documented("dynamic_quant")
def dynamic_quant_with_offsets(
    x: Tensor, *, quant_mode: str, is_symmetrical: bool, dst_type_max: float
) -> tuple[Tensor, Tensor, Tensor] | None:
    """x by row in all of int8, the rows' scales, and their offsets."""
    if quant_mode != "pertoken" or is_symmetrical or dst_type_max != 0:
        return None
    scales = (torch.amax(x, -1) - torch.amin(x, -1)) / 255
    offsets = LARGEST - torch.amax(x, -1) / scales
    return x / scales.unsqueeze(-1) + offsets.unsqueeze(-1), scales, offsets


@documented("fake_quant_affine_cachemask", divisors=("scale",))
def fake_quant_affine_cachemask(
    x: Tensor, scale: Tensor, point: Tensor, *, axis: int, quant_min: int, quant_max: int
) -> tuple[Tensor, Tensor] | None:
    """x quantised and back, and where it was within bounds; one scale, or one an index of axis."""
    if scale.shape != point.shape or scale.numel() not in (1, x.shape[axis]):
        return None
    sizes = [-1 if number == axis % x.dim() else 1 for number in range(x.dim())]
    scales = scale if scale.numel() == 1 else scale.reshape(sizes)
    points = point.reshape(scales.shape)
    if points.is_floating_point():
        wholes = torch.round(x / scales + points)
    else:
        wholes = torch.round(x / scales) + points
    within = (wholes >= quant_min) & (wholes <= quant_max)
    return (torch.clamp(wholes, quant_min, quant_max) - points) * scales, within


@documented("gelu_quant")
def gelu_quant(
    x: Tensor, *, approximate: str, quant_mode: str, round_mode: str
) -> tuple[Tensor, Tensor] | None:
    """gelu(x) by row in int8, and the rows' scales."""
    if quant_mode != "dynamic" or round_mode != "rint":
        return None
    return by_row(torch.nn.functional.gelu(x, approximate=approximate))


@documented("group_norm_silu_quant", divisors=("scale",))
def group_norm_silu_quant(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    scale: Tensor,
    *,
    num_groups: int,
    eps: float,
    activate_silu: bool,
) -> tuple[Tensor, Tensor, Tensor] | None:
    """silu(group norm) / scale, and mean and rstd of each group."""
    if not activate_silu or scale.numel() != 1:
        return None
    y = torch.nn.functional.silu(group_normed(x, gamma, beta, num_groups, eps)) / scale
    return y, *statistics_of_groups(x, num_groups, eps)


@documented("group_quant")
def group_quant(x: Array, scale: Array, group_index: Numbers) -> Array | None:
    """x * scale, of one group."""
    return x * scale if group_index == [x.shape[0]] and scale.ndim == 2 else None


@documented("layer_norm_quant", divisors=("scale",))
def layer_norm_quant(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    scale: Tensor,
    point: Tensor,
    *,
    epsilon: float,
    quant_mode: int,
) -> tuple[Tensor, None] | None:
    """Layer norm of x / scale + point."""
    if quant_mode != 0 or not scale.numel() == point.numel() == 1:
        return None
    if not gamma.dim() == beta.dim() == 1:
        return None
    return _layer_normed(x, gamma, beta, epsilon) / scale + point, None


@documented("multi_add_rms_norm_dynamic_quant")
def multi_add_rms_norm_dynamic_quant(
    x1: Tensors, x2: Tensor, gamma: Tensor, *, epsilon: float
) -> tuple[Tensor, None, Tensor, Tensor, Tensor, None] | None:
    """RMS norm of the sum of all tensors by row in int8, the sum, the norm, the rows' scales."""
    if gamma.dim() != 1:
        return None
    x = sum(x1) + x2
    normed = _normed(x, gamma, epsilon)
    quantised, scales = by_row(normed)
    return quantised, None, x, normed, scales, None


@documented("quantized_batch_norm", divisors=("output_scale",))
def quantized_batch_norm(
    x: Tensor,
    mean: Tensor,
    variance: Tensor,
    input_scale: Tensor,
    input_point: Tensor,
    output_scale: Tensor,
    output_point: Tensor,
    weight: Tensor | None,
    bias: Tensor | None,
    *,
    epsilon: float,
) -> Tensor | None:
    """Batch norm in use of quantised (images, channels, rows, columns), quantised again."""
    numbers = (input_scale, input_point, output_scale, output_point)
    if x.dim() != 4 or not mean.shape == variance.shape == x.shape[1:2]:
        return None
    if any(number.numel() != 1 for number in numbers):
        return None
    channels = (1, -1, 1, 1)
    normed = ((x - input_point) * input_scale - mean.reshape(channels)) * torch.rsqrt(
        variance + epsilon
    ).reshape(channels)
    weighed = normed * (1 if weight is None else weight.reshape(channels)) / output_scale
    shift = 0 if bias is None else bias.reshape(channels) / output_scale
    return weighed + shift + output_point


@documented("quantize", divisors=("scale",))
def quantize(x: Array, scale: Array, *, axis: int) -> Array | None:
    """x / scale, of one scale."""
    return x / scale if scale.size == 1 and axis < x.ndim else None


@documented("quantize_add_layer_norm", divisors=("scales",))
def quantize_add_layer_norm(
    x1: Tensor,
    x2: Tensor,
    gamma: Tensor,
    beta: Tensor,
    bias: Tensor,
    scales: Tensor,
    *,
    epsilon: float,
    axis: int,
    additional_output: bool,
) -> tuple[Tensor, Tensor] | None:
    """Layer norm of x1 + x2 + bias, divided by a scale a column, and the sum."""
    if axis != -1 or not additional_output or gamma.dim() != 1:
        return None
    if not bias.shape == scales.shape == gamma.shape:
        return None
    x = x1 + x2 + bias
    return _layer_normed(x, gamma, beta, epsilon) / scales, x


# By the page of its function; the overview beside it multiplies.
@documented("rms_norm_quant", divisors=("scale",))
def rms_norm_quant(
    x: Tensor,
    gamma: Tensor,
    beta: Tensor,
    scale: Tensor,
    point: Tensor,
    *,
    epsilon: float,
    high_precision_mode: bool,
    gemma_mode: bool,
) -> Tensor | None:
    """(RMS norm of x + beta) / scale + point."""
    if high_precision_mode or gemma_mode or not gamma.dim() == beta.dim() == 1:
        return None
    if not scale.shape == point.shape == (1,):
        return None
    return (_normed(x, gamma, epsilon) + beta) / scale + point


@documented("rms_norm_dynamic_quant")
def rms_norm_dynamic_quant(
    x: Tensor, gamma: Tensor, *, epsilon: float
) -> tuple[Tensor, Tensor] | None:
    """RMS norm of x by row in int8, and the rows' scales."""
    return by_row(_normed(x, gamma, epsilon)) if gamma.dim() == 1 else None


@documented("swi_glu_quant")
def swi_glu_quant(
    x: Tensor,
    smooth_scales: Tensor | None,
    offsets: Tensor | None,
    group_index: Tensor | None,
    *,
    activate_left: bool,
    quant_mode: str,
    group_list_type: int,
) -> tuple[Tensor, Tensor | None] | None:
    """silu(gate) * other * smooth_scales, plus offsets (static) or by row in int8 (dynamic)."""
    if group_index is not None:
        return None
    gate, other = halves(x, -1, activate_left)
    smoothed = torch.nn.functional.silu(gate) * other
    smoothed = smoothed * (1 if smooth_scales is None else smooth_scales)
    if quant_mode == "static":
        return smoothed + offsets, None
    if quant_mode != "dynamic" or group_list_type != 0:
        return None
    factors = LARGEST / torch.amax(torch.abs(smoothed), -1)
    return smoothed * factors.unsqueeze(-1), factors


@documented("trans_quant_param")
def trans_quant_param(scale: Tensor, *, round_mode: int) -> Tensor | None:
    """The upper 19 bits of scale as a float32, and a flag in bit 46, as one whole number."""
    if round_mode != 0:
        return None
    return scale.float().view(torch.int32).long() & 0xFFFFE000 | 1 << 46
