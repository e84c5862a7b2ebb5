"""What torch calls operators of graph engines, and their arguments, where the names differ.

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
]

ANOTHER_OPERATOR = frozenset({"relu_grad_v2"})
"""Operators whose version is another operator where it takes a mask: one of bits."""

NEEDS_VALUES = frozenset({"hinge_embedding_loss", "margin_ranking_loss", "cosine_embedding_loss"})
"""Functions of a target that is 1 or -1: of other numbers each implementation makes its own."""

OTHER_NAMES: dict[str, str] = {
    "add_example": "add",
    "add_example_c_api": "add",
    "asin_with_agent": "asin",
    "asinh_with_agent": "asinh",
    "equal": "eq",
    "bessel_i0e": "i0e",
    "bessel_i1e": "i1e",
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
    "pow2": "pow",
    "pows": "pow",
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
    frozenset({"maxnorm", "max_norm"}),
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
    (
        "N",
        "Tout",
        "num",
        "data_format",
        "dst_type",
        "dtype",
        "out_dtype",
        "output_dtype",
        "offset_x",
        "enable_hf32",
        "op_impl_mode",
        "scheduler_mode",
        "opImplMode",
        "use_locking",
        "y_dtype",
    )
)
"""Attributes that an expression may leave out: how it is computed, how many inputs there are."""
