"""What operators compute that quantise their result, by the formulas of their documents.

A whole number is given as what it is rounded from (see docs/precision.md), in units of int8: 4-bit
results are no data type here. None stands for an output of which a document says that it has no
meaning in that mode. Sources: the documents of each operator, formula and parameters.
"""

from __future__ import annotations

__all__ = ["QUANTISING"]

_LARGEST = 127
_NORMED = (
    "({X} * torch.rsqrt(({X}).square().mean(tuple(range(-{W}.dim(), 0)), True) + epsilon) * {W})"
)
_LAYER_NORMED = "torch.nn.functional.layer_norm({X}, {G}.shape, {G}, {B}, epsilon)"
_PLAIN_LAYER_NORM = "torch.nn.functional.layer_norm({X}, {X}.shape[-1:], eps=epsilon)"


def _of(template: str, **parts: str) -> str:
    for name, text in parts.items():
        template = template.replace(f"{{{name}}}", text)
    return template


def _by_row(value: str, results: str) -> str:
    """Return results in which `V` is a value, `Q` it by row in int8, and `S` the rows' scales."""
    scales = f"torch.amax(torch.abs({value}), -1) / {_LARGEST}"
    results = results.replace("Q", "V / S.unsqueeze(-1)")
    return (
        f"((row_values := {value}), (row_scales := {scales}))"
        f" and ({results.replace('V', 'row_values').replace('S', 'row_scales')})"
    )


_ADDED = "({0} + {1})"
_ADDED_RMS = _of(_NORMED, X=_ADDED, W="{2}")
_BIASED = "({0} + {1} + {4})"
_BIASED_LAYER = _of(_LAYER_NORMED, X=_BIASED, G="{2}", B="{3}")
_SUMMED = "(sum({0}) + {1})"
# What is added before layer norm where there may be a bias, and after a norm.
_MAYBE_BIASED = "({0} + {1} + (0 if {4} is None else {4}))"
_MAYBE_BIASED_LAYER = _of(_LAYER_NORMED, X=_MAYBE_BIASED, G="{2}", B="{3}")
_MAYBE_BIASED_RMS = f"({_ADDED_RMS} + (0 if {{7}} is None else {{7}}))"


def _twice(value: str, scales: str, points: str) -> str:
    """Return a value quantised by what is given as a scale and a zero point; None without scale."""
    return (
        f"None if {scales} is None else ({value} / {scales} if div_mode else {value} * {scales})"
        f" + (0 if {points} is None else {points})"
    )


def _norm_quantised_twice(between: str) -> str:
    """Return the results of layer norm after a sum, of which a row or a given scale quantises."""
    static = (
        f"({_twice('V', '{5}', '{7}')}, {_twice('V', '{6}', '{8}')},"
        f" {_MAYBE_BIASED}{between}, None, None)"
    )
    row = "torch.amax(torch.abs(V if C is None else V * C), -1) / " + str(_LARGEST)
    rows = "(V if C is None else V * C) / S.unsqueeze(-1)"
    dynamic = (
        f"(row_scales := [{row.replace('C', '{5}')}, {row.replace('C', '{6}')}]) and"
        f" ({rows.replace('C', '{5}').replace('S', 'row_scales[0]')},"
        f" None if {{6}} is None else {rows.replace('C', '{6}').replace('S', 'row_scales[1]')},"
        f" {_MAYBE_BIASED}{between}, row_scales[0],"
        " None if {6} is None else row_scales[1])"
    )
    both = f"({static} if quant_mode == 'static' else {dynamic})"
    return (
        f"[normed := {_MAYBE_BIASED_LAYER}] and {both.replace('V', 'normed')}"
        " if additional_output and {2}.dim() == 1"
        " and (quant_mode == 'dynamic' and {7} is None and {8} is None"
        " or quant_mode == 'static' and div_mode in (True, False)) else None"
    )


_PRODUCT = "torch.matmul({{0}}.mT if {one} else {{0}}, {{1}}.mT if {other} else {{1}})"
_SWI_GLU = (
    "(torch.nn.functional.silu({0}.chunk(2, -1)[0 if activate_left else 1])"
    " * {0}.chunk(2, -1)[1 if activate_left else 0])"
)
_BY_MATRIX = "{%d}.reshape(*{0}.shape[:-2], 1, {0}.shape[-1])"
_GROUPS = "{0}.reshape({0}.shape[0], num_groups, -1)"
_GROUP_NORM = "torch.nn.functional.group_norm({0}, num_groups, {1}, {2}, eps)"

QUANTISING: dict[str, tuple[str, ...]] = {
    "ada_layer_norm_quant": (
        _by_row(
            f"{_of(_PLAIN_LAYER_NORM, X='{0}')} * (1 + {_BY_MATRIX % 1}) + {_BY_MATRIX % 2}", "Q, S"
        ),
    ),
    "add_layer_norm_quant": (_norm_quantised_twice(""),),
    "add_layer_norm_quant_v2": (_norm_quantised_twice(", normed"),),
    "add_rms_norm_dynamic_quant": tuple(
        _by_row(_ADDED_RMS, results.replace("X", _ADDED))
        + " if not output_mask and {0}.shape == {1}.shape and {2}.dim() == 1 else None"
        for results in ("Q, None, X, S, None", "Q, None, V, V, X, S, None")
    ),
    "add_rms_norm_quant": (
        f"({_ADDED_RMS} / {{3}}, None, {_ADDED})"
        " if axis == -1 and div_mode and {2}.shape == {3}.shape == {0}.shape[-1:] else None",
    ),
    # The sum, or what is normalised, is written, as is asked for.
    "add_rms_norm_quant_v2": (
        f"[normed := {_MAYBE_BIASED_RMS}] and"
        f" ({_twice('normed', '{3}', '{5}')}, {_twice('normed', '{4}', '{6}')},"
        f" None if output_res else {_ADDED}, normed if output_res else None)"
        " if axis == -1 and {2}.dim() == 1 and not (output_res and {7} is not None) else None",
    ),
    "ascend_quant": (
        "{0} * {1} * ({1} if sqrt_mode else 1)"
        " if round_mode == 'round' and axis == -1 and {1}.shape == {0}.shape[-1:] else None",
    ),
    "dequant_bias": ("{0} * {1} if {1}.shape == {0}.shape[-1:] else None",),
    "dua_quantize_add_layer_norm": (
        f"({_BIASED_LAYER} / {{5}}, {_BIASED_LAYER} / {{6}}, {_BIASED})"
        " if axis == -1 and additional_output and {4}.shape == {5}.shape == {6}.shape == {2}.shape"
        " and {2}.dim() == 1 else None",
    ),
    "dynamic_quant": (
        _by_row("{0}", "Q, S"),
        "((row_scales := (torch.amax({0}, -1) - torch.amin({0}, -1)) / 255),"
        f" (row_offsets := {_LARGEST} - torch.amax({{0}}, -1) / row_scales)) and"
        " ({0} / row_scales.unsqueeze(-1) + row_offsets.unsqueeze(-1), row_scales, row_offsets)"
        " if quant_mode == 'pertoken' and not is_symmetrical and dst_type_max == 0 else None",
    ),
    "fake_quant_affine_cachemask": (
        "[scales := ({1} if {1}.numel() == 1 else {1}.reshape("
        "[-1 if place == axis % {0}.dim() else 1 for place in range({0}.dim())])),"
        " points := {2}.reshape(scales.shape), "
        " wholes := torch.round({0} / scales + points) if points.is_floating_point()"
        " else torch.round({0} / scales) + points] and"
        " ((torch.clamp(wholes, quant_min, quant_max) - points) * scales,"
        " (wholes >= quant_min) & (wholes <= quant_max))"
        " if {1}.shape == {2}.shape and {1}.numel() in (1, {0}.shape[axis]) else None",
    ),
    "gelu_quant": (
        _by_row("torch.nn.functional.gelu({0}, approximate=approximate)", "Q, S")
        + " if quant_mode == 'dynamic' and round_mode == 'rint' else None",
    ),
    "group_norm_silu_quant": (
        f"(torch.nn.functional.silu({_GROUP_NORM}) / {{3}}, {_GROUPS}.mean(-1),"
        f" torch.rsqrt({_GROUPS}.var(-1, correction=0) + eps))"
        " if activate_silu and {3}.numel() == 1 else None",
    ),
    "group_quant": ("{0} * {1} if {2}.tolist() == [{0}.shape[0]] and {1}.ndim == 2 else None",),
    "layer_norm_quant": (
        f"({_of(_LAYER_NORMED, X='{0}', G='{1}', B='{2}')} / {{3}} + {{4}}, None)"
        " if quant_mode == 0 and {3}.numel() == {4}.numel() == 1"
        " and {1}.dim() == {2}.dim() == 1 else None",
    ),
    "multi_add_rms_norm_dynamic_quant": (
        _by_row(_of(_NORMED, X=_SUMMED, W="{2}"), f"Q, None, {_SUMMED}, V, S, None")
        + " if {2}.dim() == 1 else None",
    ),
    # Scales of whole numbers are bits of a number, which no values here are.
    "quant_batch_matmul_v3": (
        f"({_PRODUCT.format(one='transpose_x1', other='transpose_x2')}"
        " + (0 if {4} is None or {4}.is_floating_point() else {4})) * {2}"
        " * (1 if {5} is None else {5}.unsqueeze(-1)) + (0 if {3} is None else {3})"
        " + ({4} if {4} is not None and {4}.is_floating_point() else 0)"
        " if group_size == 0 and {2}.is_floating_point() else None",
    ),
    "quantized_batch_norm": (
        "(({0} - {4}) * {3} - {1}.reshape(1, -1, 1, 1))"
        " * torch.rsqrt({2} + epsilon).reshape(1, -1, 1, 1)"
        " * (1 if {7} is None else {7}.reshape(1, -1, 1, 1))"
        " / {5} + (0 if {8} is None else {8}.reshape(1, -1, 1, 1) / {5}) + {6}"
        " if {0}.dim() == 4 and {1}.shape == {2}.shape == {0}.shape[1:2]"
        " and {3}.numel() == {4}.numel() == {5}.numel() == {6}.numel() == 1 else None",
    ),
    "quantize": ("{0} / {1} if {1}.size == 1 and axis < {0}.ndim else None",),
    "quantize_add_layer_norm": (
        f"({_BIASED_LAYER} / {{5}}, {_BIASED})"
        " if axis == -1 and additional_output and {4}.shape == {5}.shape == {2}.shape"
        " and {2}.dim() == 1 else None",
    ),
    # By the page of its function; the overview beside it multiplies.
    "rms_norm_quant": (
        f"({_of(_NORMED, X='{0}', W='{1}')} + {{2}}) / {{3}} + {{4}}"
        " if not high_precision_mode and not gemma_mode and {1}.dim() == {2}.dim() == 1"
        " and {3}.shape == {4}.shape == (1,) else None",
    ),
    "rms_norm_dynamic_quant": (
        _by_row(_of(_NORMED, X="{0}", W="{1}"), "Q, S") + " if {1}.dim() == 1 else None",
    ),
    "swi_glu_quant": (
        f"(({_SWI_GLU}) * (1 if {{1}} is None else {{1}}) + {{2}}, None)"
        " if quant_mode == 'static' and {3} is None else"
        f" [value := {_SWI_GLU} * (1 if {{1}} is None else {{1}}),"
        f" factor := {_LARGEST} / torch.amax(torch.abs(value), -1)]"
        " and (value * factor.unsqueeze(-1), factor)"
        " if quant_mode == 'dynamic' and {3} is None and group_list_type == 0 else None",
    ),
    "weight_quant_batch_matmul_v2": (
        "torch.matmul({0}.mT if transpose_x else {0}, (({1} if {3} is None else {1} + {3}) * {2})"
        ".mT if transpose_weight else ({1} if {3} is None else {1} + {3}) * {2})"
        " + (0 if {6} is None else {6})"
        " if antiquant_group_size == 0 and inner_precise == 0 and {4} is None and {5} is None"
        " and {2}.is_floating_point() else None",
    ),
}
"""As `opkit.testing.references.operator_formulas.WRITTEN_OUT`, of which these are a part."""
