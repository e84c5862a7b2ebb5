"""What operators of graph engines compute whose names, or whose arguments, are not torch's.

Names are in snake_case without a version. Sources: the documents of each operator (formula and
parameters) beside torch's of the function.
"""

from __future__ import annotations

__all__ = [
    "ANOTHER_OPERATOR",
    "NEEDS_VALUES",
    "NEVER_IN_ORDER",
    "OTHER_NAMES",
    "PLAIN_NAMES",
    "SAME_ARGUMENTS",
    "SETS_NO_VALUE",
    "WRITTEN_OUT",
]

ANOTHER_OPERATOR = frozenset({"relu_grad_v2"})
"""Operators whose version takes other tensors than the first: here a mask of bits."""

NEEDS_VALUES = frozenset({"hinge_embedding_loss", "margin_ranking_loss", "cosine_embedding_loss"})
"""Functions of a target that is 1 or -1: of other numbers each implementation makes its own."""

OTHER_NAMES: dict[str, str] = {
    "equal": "eq",
    "erf_inv": "erfinv",
    "expandv": "expand",
    "floor_div": "floor_divide",
    "floor_mod": "remainder",
    "gather_elements": "gather",
    "greater": "gt",
    "greater_equal": "ge",
    "hard_swish": "hardswish",
    "inv": "reciprocal",
    "invert": "bitwise_not",
    "is_neg_inf": "isneginf",
    "is_pos_inf": "isposinf",
    "kl_div_loss": "kl_div",
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
    # ATen's unfold_backward calls so what comes in.
    frozenset({"grad_in", "grad_output"}),
    frozenset({"index", "indices"}),
    frozenset({"output", "result", "y", "outputs"}),
    frozenset({"target", "targets", "label", "labels"}),
    frozenset({"source", "updates"}),
    frozenset({"dims", "multiples"}),
    frozenset({"offset", "diagonal"}),
    frozenset({"cdist", "cdist_result"}),
    frozenset({"beta", "sigma"}),
    frozenset({"value", "fill_value"}),
    frozenset({"min", "clip_value_min", "min_value", "min_val"}),
    frozenset({"max", "clip_value_max", "max_value", "max_val"}),
)
"""Parameters that are one by several names."""

PLAIN_NAMES = frozenset(
    {"x", "y", "z", "a", "b", "self", "other", "input", "inputs", "input_x", "input_y", "in"}
    | {"data", "input_data", "feature", "features", "input_feature", "logits", "predict"}
    | {"predictions", "var", "tensor", "vec", "mat", "src", "start", "condition"}
)
"""Names of tensors, without a number behind them, that say no more than the order does."""

NEVER_IN_ORDER = frozenset(
    {"dims", "dim", "axis", "axes", "shape", "size", "sizes", "perm", "index", "indices", "mask"}
    | {"num", "count", "seed", "offset", "offsets", "stride", "strides", "begin", "end", "output"}
    | {"result", "min", "max", "depth", "multiples", "repeats", "paddings", "k"}
)
"""Names that say what a tensor is for: it is given to the parameter of that name, or to none."""

SETS_NO_VALUE = frozenset(
    ("N", "num", "data_format", "offset_x", "enable_hf32", "op_impl_mode", "opImplMode")
)
"""Attributes that an expression may leave out: how it is computed, how many inputs there are."""

_RECIPROCAL_SCALE = "(math.log(base) if base > 0 else 1.0)"

_ROOT_MEAN_SQUARE = "torch.rsqrt(({x}).square().mean(tuple(range(-{w}.dim(), 0)), True) + epsilon)"
_NORMED = "torch.nn.functional.rms_norm({x}, {w}.shape, {w}, epsilon)"
_MATRICES = (
    "torch.matmul({0}.mT if transpose_x1 else {0}, {1}.mT if transpose_x2 else {1})",
    "torch.matmul({0}.mT if adj_x1 else {0}, {1}.mT if adj_x2 else {1})",
    "torch.matmul({0}.mT if adj_x else {0}, {1}.mT if adj_y else {1})",
    "torch.matmul({0}, {1})",
)

WRITTEN_OUT: dict[str, tuple[str, ...]] = {
    "accumulate_n": ("sum({0})",),
    "add_n": ("sum({0})",),
    "adds": ("{0} + value",),
    "addcdiv": ("{0} + {3} * {1} / {2}",),
    "addcmul": ("{0} + {3} * {1} * {2}",),
    "arg_max_with_value": ("tuple(torch.max({0}, dimension, keep_dims))[::-1]",),
    "arg_min_with_value": ("tuple(torch.min({0}, dimension, keep_dims))[::-1]",),
    "assign_add": ("{0} + {1}",),
    "assign_sub": ("{0} - {1}",),
    "axpy": ("{0} + {2} * {1}", "{0} + alpha * {1}"),
    "batch_mat_mul": _MATRICES,
    "bias_add": ("{0} + {1}",),
    "clip_by_value": ("torch.clamp({0}, {1}.item(), {2}.item())",),
    "concat": ("torch.cat({1}, {0}.item())", "torch.cat({0}, {1}.item())"),
    "div_no_nan": ("torch.where({1} == 0, 0.0, {0} / {1})",),
    "elu_grad": ("{dy} * torch.where(activations > 0, 1.0, activations + 1.0)",),
    "exp": (f"torch.exp((scale * {{0}} + shift) * {_RECIPROCAL_SCALE})",),
    "fill_diagonal": ("torch.clone({0}).fill_diagonal_({1}.item(), wrap)",),
    "foreach_copy": ("[torch.clone(tensor) for tensor in {0}]",),
    "foreach_pow_scalar_and_tensor": ("torch._foreach_pow({0}.item(), {1})",),
    "gelu": ("torch.nn.functional.gelu({0}, approximate='tanh')",),
    "gelu_grad": ("torch.ops.aten.gelu_backward({dy}, {0}, approximate='tanh')",),
    # What it gave is clipped where what it was given is.
    "hardtanh_grad": ("torch.ops.aten.hardtanh_backward({dy}, {0}, min_val, max_val)",),
    "inv_grad": ("-{dy} * {0} ** 2",),
    "l2_loss": ("torch.square({0}).sum() / 2",),
    "layer_norm": (
        "torch.native_layer_norm({0}, normalized_shape.tolist(), gamma, beta, epsilon)",
    ),
    "lin_space": ("torch.linspace({0}.item(), {1}.item(), {2}.item())",),
    "log": (f"torch.log(scale * {{0}} + shift) / {_RECIPROCAL_SCALE}",),
    "log_softmax": ("torch.log_softmax({0}, axes[0])",),
    "masked_fill": ("torch.where({1}.bool(), {2}, {0})",),
    "mat_mul": _MATRICES,
    "mul_no_nan": ("torch.where({1} == 0, 0.0, {0} * {1})",),
    "muls": ("{0} * value",),
    "pack": ("torch.stack({0}, axis)",),
    "range": ("torch.arange({0}.item(), {1}.item(), {2}.item())",),
    "reciprocal_grad": ("-{dy} * {0} ** 2",),
    "relu_grad": ("{dy} * ({0} > 0)",),
    "rms_norm": (f"({_NORMED}, {_ROOT_MEAN_SQUARE})".format(x="{0}", w="{1}"),),
    "rsqrt_grad": ("-0.5 * {dy} * {0} ** 3",),
    "select": ("torch.where({0}.bool(), {1}, {2})",),
    "selu_grad": (
        "{dy} * torch.where(outputs > 0, 1.0507009873554805, outputs + 1.7580993408473766)",
    ),
    "softmax": ("torch.softmax({0}, axes[0])",),
    "sqrt_grad": ("{dy} * 0.5 / {0}",),
    "squared_relu": ("torch.relu({0}) ** 2",),
    "swi_glu": ("torch.nn.functional.silu({0}.chunk(2, dim)[0]) * {0}.chunk(2, dim)[1]",),
    "swish": ("{0} * torch.sigmoid(scale * {0})",),
    "tensor_move": ("torch.clone({0})",),
    "transpose": ("torch.permute({0}, {1}.tolist())",),
    "truncate_div": ("torch.div({0}, {1}, rounding_mode='trunc')",),
}
"""Expressions whose `{0}`, `{1}` are inputs in the OpDef's order, and whose names its attributes.

The first counts whose names are all there, and that has each attribute but `SETS_NO_VALUE`. Of
gradients `{dy}` is the input that is called so, and the others are counted without it.
"""
