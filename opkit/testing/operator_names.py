"""What operators of graph engines compute whose names, or whose arguments, are not torch's.

Names are in snake_case without a version. Sources: the documents of each operator (formula and
parameters) beside torch's of the function.
"""

from __future__ import annotations

__all__ = ["ANOTHER_OPERATOR", "OTHER_NAMES", "SAME_ARGUMENTS", "WRITTEN_OUT"]

ANOTHER_OPERATOR = frozenset({"relu_grad_v2"})
"""Operators whose version takes other tensors than the first: here a mask of bits."""

OTHER_NAMES: dict[str, str] = {
    "equal": "eq",
    "erf_inv": "erfinv",
    "expandv": "expand",
    "floor_div": "floor_divide",
    "floor_mod": "remainder",
    "greater": "gt",
    "greater_equal": "ge",
    "hard_swish": "hardswish",
    "inv": "reciprocal",
    "invert": "bitwise_not",
    "is_neg_inf": "isneginf",
    "is_pos_inf": "isposinf",
    "left_shift": "bitwise_left_shift",
    "less": "lt",
    "less_equal": "le",
    "log_add_exp": "logaddexp",
    "mat_mul": "matmul",
    "batch_mat_mul": "matmul",
    "mod": "fmod",
    "not_equal": "ne",
    "real_div": "true_divide",
    "reduce_all": "all",
    "reduce_any": "any",
    "reduce_max": "amax",
    "reduce_mean": "mean",
    "reduce_min": "amin",
    "reduce_prod": "prod",
    "reduce_sum": "sum",
    "right_shift": "bitwise_right_shift",
    "truncate_mod": "fmod",
}
"""The name that torch's function of the same arguments has."""

SAME_ARGUMENTS: tuple[frozenset[str], ...] = (
    frozenset({"dim", "axis", "axes", "dims", "dimension", "concat_dim"}),
    frozenset({"keepdim", "keepdims", "keep_dim", "keep_dims"}),
    frozenset({"eps", "epsilon"}),
    frozenset({"grad_output", "grad", "grads", "grad_out", "gradients", "dy", "grad_y", "y_grad"}),
    frozenset({"index", "indices"}),
    frozenset({"output", "result", "y", "outputs"}),
    frozenset({"min", "clip_value_min", "min_value", "min_val"}),
    frozenset({"max", "clip_value_max", "max_value", "max_val"}),
)
"""Parameters that are one by several names."""

_RECIPROCAL_SCALE = "(math.log(base) if base > 0 else 1.0)"

WRITTEN_OUT: dict[str, tuple[str, ...]] = {
    "add_n": ("sum({0})",),
    "adds": ("{0} + value",),
    "addcdiv": ("{0} + {3} * {1} / {2}",),
    "addcmul": ("{0} + {3} * {1} * {2}",),
    "axpy": ("{0} + {2} * {1}", "{0} + alpha * {1}"),
    "bias_add": ("{0} + {1}",),
    "clip_by_value": ("torch.clamp({0}, {1}.item(), {2}.item())",),
    "concat": ("torch.cat({1}, {0}.item())", "torch.cat({0}, {1}.item())"),
    "div_no_nan": ("torch.where({1} == 0, 0.0, {0} / {1})",),
    "exp": (f"torch.exp((scale * {{0}} + shift) * {_RECIPROCAL_SCALE})",),
    "gelu": ("torch.nn.functional.gelu({0}, approximate='tanh')",),
    "gelu_grad": ("torch.ops.aten.gelu_backward({dy}, {0}, approximate='tanh')",),
    "inv_grad": ("-{dy} * {0} ** 2",),
    "log": (f"torch.log(scale * {{0}} + shift) / {_RECIPROCAL_SCALE}",),
    "log_softmax": ("torch.log_softmax({0}, axes[0])",),
    "masked_fill": ("torch.where({1}.bool(), {2}, {0})",),
    "mul_no_nan": ("torch.where({1} == 0, 0.0, {0} * {1})",),
    "muls": ("{0} * value",),
    "pack": ("torch.stack({0}, axis)",),
    "range": ("torch.arange({0}.item(), {1}.item(), {2}.item())",),
    "reciprocal_grad": ("-{dy} * {0} ** 2",),
    "relu_grad": ("{dy} * ({0} > 0)",),
    "rms_norm": (
        "(torch.nn.functional.rms_norm({0}, {1}.shape, {1}, epsilon), torch.rsqrt("
        "{0}.square().mean(tuple(range(-{1}.dim(), 0)), True) + epsilon))",
    ),
    "rsqrt_grad": ("-0.5 * {dy} * {0} ** 3",),
    "select": ("torch.where({0}.bool(), {1}, {2})",),
    "softmax": ("torch.softmax({0}, axes[0])",),
    "sqrt_grad": ("{dy} * 0.5 / {0}",),
    "squared_relu": ("torch.relu({0}) ** 2",),
    "swi_glu": ("torch.nn.functional.silu({0}.chunk(2, dim)[0]) * {0}.chunk(2, dim)[1]",),
    "swish": ("{0} * torch.sigmoid(scale * {0})",),
    "truncate_div": ("torch.div({0}, {1}, rounding_mode='trunc')",),
}
"""Expressions whose `{0}`, `{1}` are inputs in the OpDef's order, and whose names its attributes;
the first counts whose names are all there. Of gradients `{dy}` is the input that is called so, and
the others are counted without it."""
