"""What operators of graph engines compute that no function of torch's computes by their name.

Sources: the documents of each operator, formula and parameters.
"""

from __future__ import annotations

from opkit.testing.references.indexing_formulas import INDEXING
from opkit.testing.references.loss_formulas import LOSSES
from opkit.testing.references.pooling_formulas import POOLING
from opkit.testing.references.quantising_formulas import QUANTISING
from opkit.testing.references.resizing_formulas import RESIZING
from opkit.testing.references.vision_formulas import VISION

__all__ = ["WRITTEN_OUT"]

_RECIPROCAL_SCALE = "(math.log(base) if base > 0 else 1.0)"

_ROOT_MEAN_SQUARE = "torch.rsqrt(({x}).square().mean(tuple(range(-{w}.dim(), 0)), True) + epsilon)"
_NORMED = "torch.nn.functional.rms_norm({x}, {w}.shape, {w}, epsilon)"
_ADDED_NORMED = _NORMED.format(x="({0} + {1})", w="{2}")
_ADDED_ROOT = _ROOT_MEAN_SQUARE.format(x="({0} + {1})", w="{2}")
_GATE = "{0}.chunk(2, -1)[0]"
_GATED = "{0}.chunk(2, -1)[1]"
_GE_GLU = (
    "torch.nn.functional.gelu({0}.chunk(2, dim)[0 if activate_left else 1],"
    " approximate='tanh' if approximate else 'none')"
)
_SITU_GATE = "{0}.chunk(2, dim)[0 if activate_left else 1]"
_SITU_UP = "{0}.chunk(2, dim)[1 if activate_left else 0]"
# Two numbers an axis, in the axes' order; torch begins with the last one, and takes those of two
# axes, or of three where there are more than four.
_PADS = (
    "[n for pair in list(zip({1}.tolist()[::2], {1}.tolist()[1::2]))"
    "[: -4 if {0}.dim() > 4 else -3 : -1] for n in pair]"
)
_UNPADDED = (
    "{0}.new_zeros([n - a - b for n, a, b in"
    " zip({0}.shape, {1}.tolist()[::2], {1}.tolist()[1::2])])"
)
_PADDED_GRADIENT = (
    f"torch.autograd.functional.vjp(lambda {{0}}: torch.nn.functional.pad({{0}}, {_PADS}, MODE),"
    f" {_UNPADDED}, {{0}})[1]"
)
_PAD_MODES = (
    "{{'edge': 'replicate', 'reflect': 'reflect', 'circular': 'circular'}}[mode]"
    " if paddings_contiguous else None"
)
_CLIPPED_GATE = "torch.clamp({0}[..., ::2] if interleaved else {0}.chunk(2, dim)[0], max=limit)"
_CLIPPED_UP = "torch.clamp({0}[..., 1::2] if interleaved else {0}.chunk(2, dim)[1], -limit, limit)"
_SWISH_GRADIENT = (
    "{dy} * torch.sigmoid(scale * {0}) * (1 + scale * {0} * torch.sigmoid(-scale * {0}))"
)
_SECOND_MOMENT = "({0} ** 2 * {8} + {1} * {7})"
_FIRST_MOMENT = "({2} * {5} + {0} * {6})"
_ADAM_STEP = f"{_FIRST_MOMENT} / (torch.sqrt({_SECOND_MOMENT}) + LAST)"
_ADAM_APPLIED = f"({_SECOND_MOMENT}, {_FIRST_MOMENT}, {{3}} - ({_ADAM_STEP}DECAY) * {{4}})"
_ADAM_DECAYED = _ADAM_APPLIED.replace("LAST", "{10}").replace("DECAY", " + {3} * {9}")
_ADAM_M = "({1} + (1 - {6}.item()) * ({9} - {1}))"
_ADAM_V = "({2} + (1 - {7}.item()) * ({9} ** 2 - {2}))"
_ADAM_RATE = "{5}.item() * math.sqrt(1 - {4}.item()) / (1 - {3}.item())"
_ADAM_W_GRADIENT = "({10} * (-1 if maximize else 1))"
_ADAM_W_M = f"({{1}} * {{7}}.item() + (1 - {{7}}.item()) * {_ADAM_W_GRADIENT})"
_ADAM_W_V = f"({{2}} * {{8}}.item() + (1 - {{8}}.item()) * {_ADAM_W_GRADIENT} ** 2)"
_ADAM_W_STEP = (
    f"{_ADAM_W_M} / (1 - {{3}}.item() * {{7}}.item())"
    f" / (torch.sqrt({_ADAM_W_V} / (1 - {{4}}.item() * {{8}}.item())) + {{9}}.item())"
)
_FTRL_ACCUMULATED = "({1} + {3} ** 2)"
_FTRL_LINEAR = (
    f"({{2}} + {{3}} - ({_FTRL_ACCUMULATED} ** -{{7}}.item() - {{1}} ** -{{7}}.item())"
    " / {4}.item() * {0})"
)
_FTRL_QUADRATIC = f"({_FTRL_ACCUMULATED} ** -{{7}}.item() / {{4}}.item() + 2 * {{6}}.item())"
_GROUPS = "{0}.reshape({0}.shape[0], num_groups, -1)"
_GROUP_NORM = "torch.nn.functional.group_norm({0}, num_groups, {1}, {2}, eps)"
_GROUP_STATISTICS = f"{_GROUPS}.mean(-1), torch.rsqrt({_GROUPS}.var(-1, correction=0) + eps)"
# One number a row, in whatever shape that has; a row for each of the axes before the last two.
_BY_ROW = "{%d}.reshape(*{dy}.shape[:-1], 1)"
_BY_MATRIX = "{%d}.reshape(*{0}.shape[:-2], 1, {0}.shape[-1])"
_SUMMED = "torch.sum(({%s}).reshape(-1, {dy}.shape[-1]), 0)"
_LAYER_NORM_GRADIENT = (
    "({R} * ({dy} * {G} - torch.mean({dy} * {G}, -1, True)"
    " - {X} * torch.mean({dy} * {G} * {X}, -1, True)),"
    " ({dy} * {X}).reshape(-1, {dy}.shape[-1]).sum(0), {dy}.reshape(-1, {dy}.shape[-1]).sum(0))"
)


def _layer_norm_gradient(mean: int, rstd: int, gamma: int) -> str:
    """Return it, of inputs by their numbers: of what is normalised, of gamma, of beta."""
    root = _BY_ROW % rstd
    normed = f"(({{0}} - {_BY_ROW % mean}) * {root})"
    return (
        _LAYER_NORM_GRADIENT.replace("{R}", root)
        .replace("{X}", normed)
        .replace("{G}", f"{{{gamma}}}.reshape({{dy}}.shape[-1:])")
    )


_ADAPTED_NORMED = "(({0} - {2}) * {1})"
_ADAPTED_SCALE = f"(1 + {_BY_MATRIX % 3})"
_ADAPTED_DY = f"({{dy}} * {{4}} * {_ADAPTED_SCALE})"
_ADAPTED_GRADIENT = (
    f"({{1}} * ({_ADAPTED_DY} - torch.mean({_ADAPTED_DY}, -1, True)"
    f" - {_ADAPTED_NORMED} * torch.mean({_ADAPTED_DY} * {_ADAPTED_NORMED}, -1, True)),"
    f" torch.sum({{dy}} * ({_ADAPTED_NORMED} * {{4}} + {{5}}), -2).reshape({{3}}.shape),"
    " torch.sum({dy}, -2).reshape({3}.shape),"
    f" {_SUMMED.replace('{%s}', f'{{dy}} * {_ADAPTED_SCALE} * {_ADAPTED_NORMED}')},"
    f" {_SUMMED.replace('{%s}', f'{{dy}} * {_ADAPTED_SCALE}')})"
    " if {0}.dim() > 1 and {1}.shape == {2}.shape == (*{0}.shape[:-1], 1) else None"
)
_ADDED = "({0} + {1})"
_ADDED_LAYER_NORM = (
    f"(torch.nn.functional.layer_norm({_ADDED}, {{2}}.shape, {{2}}, {{3}}, epsilon),"
    f" {_ADDED}.mean(tuple(range(-{{2}}.dim(), 0)), True),"
    f" torch.rsqrt({_ADDED}.var(tuple(range(-{{2}}.dim(), 0)), correction=0, keepdim=True)"
    f" + epsilon), {_ADDED}) if additional_output else None"
)
_CHANNELS = "{0}.transpose(0, 1).reshape({0}.shape[1], -1)"
_OF_CHANNELS = "reshape({%s}.shape[1], *[1] * ({%s}.dim() - 2))"
_SWISH_NORMED = (
    "(({2}.reshape({2}.shape[0], num_groups, -1) - {0}.reshape(-1, num_groups, 1))"
    " * {1}.reshape(-1, num_groups, 1)).reshape({2}.shape)"
    f" * {{3}}.{_OF_CHANNELS % (2, 2)} + {{4}}.{_OF_CHANNELS % (2, 2)}"
)
_EMA_GRADIENT = "({0} + weight_decay * {1} * (mode == 0))"
_EMA_M = f"(beta1 * {{2}} + (1 - beta1) * {_EMA_GRADIENT})"
_EMA_V = f"(beta2 * {{3}} + (1 - beta2) * {_EMA_GRADIENT} ** 2)"
_EMA_STEP = (
    f"({_EMA_M} / (1 - beta1 ** {{5}}.item() * bias_correction)"
    f" / (torch.sqrt({_EMA_V} / (1 - beta2 ** {{5}}.item() * bias_correction)) + eps)"
    " + weight_decay * {1} * (mode == 1))"
)
_EMA_VAR = f"({{1}} - lr * {_EMA_STEP})"
_DEEP_SUM = "({0} * alpha + {1})"
_DEEP_PART = f"({_DEEP_SUM} - {_BY_ROW % 3})"
_DEEP_ROOT = _BY_ROW % 4
_DEEP_GAMMA = "{2}.reshape({dy}.shape[-1:])"
_DEEP_SCALED = f"{{dy}} * {_DEEP_GAMMA} * {_DEEP_ROOT}"
_DEEP_GRADIENT = (
    f"({_DEEP_SCALED} - torch.mean({_DEEP_SCALED}, -1, True)"
    f" - {_DEEP_PART} * torch.mean({_DEEP_SCALED} * {_DEEP_PART} * {_DEEP_ROOT} ** 2, -1, True))"
)
_RMS_ROOT = "{1}.unsqueeze(-1).expand({dy}.shape)"
_RMS_GAMMA = "{2}.reshape({dy}.shape[-1:])"
_MODULATED = f" * (1 + {_BY_MATRIX % 1}) + {_BY_MATRIX % 2}"
_PLAIN_LAYER_NORM = "torch.nn.functional.layer_norm({0}, {0}.shape[-1:], eps=epsilon)"
_GE_GLU_SIDES = ("{0}.chunk(2, dim)[0 if activate_left else 1]", "{0}.chunk(2, dim)[activate_left]")
_GE_GLU_GRADIENT = (
    f"torch.ops.aten.gelu_backward({{dy}} * {_GE_GLU_SIDES[1]}, {_GE_GLU_SIDES[0]},"
    " approximate='tanh' if approximate else 'none')"
)
_SCALED_SUM = "({0} * scale + {1})"
# Of a cell's gates i, f, g, o, what the state and its gates have for a gradient.
_CELL = tuple(f"{{4}}.chunk(4, -1)[{number}]" for number in range(4))
_CELL_GRADIENT = f"({{0}} * {_CELL[3]} * (1 - torch.tanh({{3}}) ** 2) + {{1}})"
_CELL_GATES = (
    f"{_CELL_GRADIENT} * {_CELL[2]} * {_CELL[0]} * (1 - {_CELL[0]}),"
    f" {_CELL_GRADIENT} * {{2}} * {_CELL[1]} * (1 - {_CELL[1]}),"
    f" {_CELL_GRADIENT} * {_CELL[0]} * (1 - {_CELL[2]} ** 2),"
    f" {{0}} * torch.tanh({{3}}) * {_CELL[3]} * (1 - {_CELL[3]})"
)
# By its document the gates are i, g, f, o.
_FUSED_GATES = "({0} + {1} + (0 if {3} is None else {3}) + (0 if {4} is None else {4}))"
_FUSED_STORAGE = (
    "torch.cat([torch.tanh(gate) if number == 1 else torch.sigmoid(gate)"
    f" for number, gate in enumerate({_FUSED_GATES}.chunk(4, -1))], -1)"
)
_FUSED_CELL = (
    f"[storage := {_FUSED_STORAGE}, gates := storage.chunk(4, -1),"
    " state := gates[2] * {2} + gates[0] * gates[1]]"
    " and gates[3] * torch.tanh(state), state, storage"
)
_SGD_GRADIENT = "((-g if maximize else g) + weight_decay * p)"
_SGD_MOMENTUM = (
    f"({_SGD_GRADIENT} if is_first_step else momentum * v + (1 - dampening) * {_SGD_GRADIENT})"
)
_SGD_RESULT = f"p - lr * {_SGD_MOMENTUM}"
_GROUP_NORMED = "(({0} - {2}.unsqueeze(-1)) * {3}.unsqueeze(-1))"
_GROUP_GRADIENT = (
    "{3}.unsqueeze(-1) * {1} * ({dy} - torch.mean({dy} * {1}, -1, True)"
    f" - {_GROUP_NORMED} * torch.mean({{dy}} * {{1}} * {_GROUP_NORMED}, -1, True))"
)
_SORTED = "torch.sort({0}, dim=axis, descending=descending, stable=True)"
_PRODUCTS = (
    "torch.matmul({0}.mT if transpose_x1 else {0}, {1}.mT if transpose_x2 else {1})",
    "torch.matmul({0}.mT if adj_x1 else {0}, {1}.mT if adj_x2 else {1})",
    "torch.matmul({0}.mT if adj_x else {0}, {1}.mT if adj_y else {1})",
    "torch.matmul({0}, {1})",
)
_MATRICES = (
    *(f"{product} + (0 if bias is None else bias)" for product in _PRODUCTS),
    *_PRODUCTS,
)

WRITTEN_OUT: dict[str, tuple[str, ...]] = {
    **INDEXING,
    **LOSSES,
    **POOLING,
    **QUANTISING,
    **RESIZING,
    **VISION,
    "accumulate_n": ("sum({0})",),
    "acos_grad": ("-{dy} * torch.rsqrt(1 - {0} ** 2)",),
    "acosh_grad": ("{dy} / torch.sinh({0})",),
    "adam_apply_one": (_ADAM_APPLIED.replace("LAST", "{9}").replace("DECAY", ""),),
    "adam_apply_one_with_decay": (_ADAM_DECAYED,),
    "adam_apply_one_with_decay_assign": (_ADAM_DECAYED,),
    "add_layer_norm": (_ADDED_LAYER_NORM,),
    "add_layer_norm_grad": (_layer_norm_gradient(3, 2, 4).replace("{0}", _ADDED),),
    "add_mat_mat_elements_plus": ("{0} * {3}.item() + {4}.item() * {1} * {2}",),
    "add_mat_mat_elements": ("{0} * {3}.item() + {4}.item() * {1} * {2}",),
    "add_n": ("sum({0})",),
    "add_rms_norm": (f"({_ADDED_NORMED}, {_ADDED_ROOT}, {{0}} + {{1}})",),
    "add_rms_norm_cast": (f"({_ADDED_NORMED}, {_ADDED_NORMED}, {_ADDED_ROOT}, {{0}} + {{1}})",),
    "addcdiv": ("{0} + {3} * {1} / {2}",),
    "addcmul": ("{0} + {3} * {1} * {2}",),
    "adds": ("{0} + value",),
    "amp_update_scale": (
        "({0} * backoff_factor if {2} != 0 else {0} * growth_factor"
        " if {1} + 1 == growth_interval and torch.isfinite({0} * growth_factor) else {0},"
        " {1} * 0 if {2} != 0 or ({1} + 1 == growth_interval"
        " and torch.isfinite({0} * growth_factor)) else {1} + 1)",
    ),
    "apply_adagrad": (
        "({0} - {2}.item() * {3} * torch.rsqrt({1} + {3} ** 2 * update_slots),"
        " {1} + {3} ** 2 * update_slots)",
    ),
    "apply_adam": (
        f"({{0}} - {_ADAM_RATE} * ({_ADAM_M} * {{6}}.item() + (1 - {{6}}.item()) * {{9}}"
        f" if use_nesterov else {_ADAM_M}) / ({{8}}.item() + torch.sqrt({_ADAM_V})),"
        f" {_ADAM_M}, {_ADAM_V})",
    ),
    "apply_fused_ema_adam": (
        f"({_EMA_VAR}, {_EMA_M}, {_EMA_V}, ema_decay * {{4}} + (1 - ema_decay) * {_EMA_VAR})",
    ),
    "apply_gradient_descent": ("{0} - {1}.item() * {2}",),
    "ada_layer_norm": (
        f"({_PLAIN_LAYER_NORM}{_MODULATED}, {{0}}.mean(-1, True),"
        " torch.rsqrt({0}.var(-1, correction=0, keepdim=True) + epsilon))",
        f"{_PLAIN_LAYER_NORM}{_MODULATED}",
    ),
    "ada_layer_norm_grad": (_ADAPTED_GRADIENT,),
    "apply_adam_w": (
        f"({{0}} - {{5}}.item() * ({_ADAM_W_STEP} + {{6}}.item() * {{0}}), {_ADAM_W_M},"
        f" {_ADAM_W_V}) if not amsgrad else None",
    ),
    "apply_ftrl": (
        f"np.where(np.abs({_FTRL_LINEAR}) > {{5}}.item(),"
        f" (np.sign({_FTRL_LINEAR}) * {{5}}.item() - {_FTRL_LINEAR}) / {_FTRL_QUADRATIC}, 0.0)",
    ),
    "arg_max_with_value": ("tuple(torch.max({0}, dimension, keep_dims))[::-1]",),
    "arg_min_with_value": ("tuple(torch.min({0}, dimension, keep_dims))[::-1]",),
    "ascend_anti_quant": ("{0} * {1} * ({1} if sqrt_mode else 1)",),
    "asin_grad": ("{dy} * torch.rsqrt(1 - {0} ** 2)",),
    "asinh_grad": ("{dy} / torch.cosh({0})",),
    "assign_add": ("{0} + {1}",),
    "assign_sub": ("{0} - {1}",),
    "axpy": ("{0} + {2} * {1}", "{0} + alpha * {1}", "a * {0} + {1}"),
    "batch_mat_mul": _MATRICES,
    # What is saved is the variance, by the documents of this chip's.
    "batch_norm": (
        "(torch.nn.functional.batch_norm({0}, None, None, {1}.reshape({0}.shape[1]),"
        " {2}.reshape({0}.shape[1]), True, 0.0, epsilon),"
        f" {{3}}.reshape({{0}}.shape[1]) * (1 - momentum) + momentum * {_CHANNELS}.mean(1),"
        f" {{4}}.reshape({{0}}.shape[1]) * (1 - momentum) + momentum * {_CHANNELS}.var(1),"
        f" {_CHANNELS}.mean(1), {_CHANNELS}.var(1, correction=0)) if is_training else None",
    ),
    # What it is given is the variance that batch_norm saves.
    "batch_norm_grad": (
        "torch.ops.aten.native_batch_norm_backward({dy}, {0}, {1}, None, None, {4},"
        " torch.rsqrt({5} + epsilon), True, epsilon, [True, True, True])"
        " if is_training and version == 0 and {dy}.shape == {0}.shape"
        " and {1}.shape == {2}.shape == {3}.shape == {4}.shape == {5}.shape == {0}.shape[1:2]"
        " else None",
    ),
    "batch_normalization_grad": (
        "torch.ops.aten.native_batch_norm_backward({dy}, {0}, {1}, None, None, {3}, {4}, True,"
        " epsilon, [True, True, True])",
    ),
    "bias_add": ("{0} + {1}",),
    "bn_infer_grad": (
        f"{{dy}} * ({{0}} * torch.rsqrt({{1}} + epsilon)).{_OF_CHANNELS % ('dy', 'dy')}"
        " if format_mode == 0 and {dy}.dim() == 4 else None",
    ),
    # Whole numbers are what is left of a fraction's point.
    "cast": (
        "torch.clone({0}).double() if dst_type in (0, 1, 11, 27)"
        " else {0} != 0 if dst_type == 12 else {0}.long()",
    ),
    # Torch's does not look at shapes, and reads behind what is shorter.
    "cdist_grad": (
        "torch.ops.aten._cdist_backward({dy}, {0}, {1}, p, {2}) if {dy}.dim() > 1"
        " and {2}.shape == {dy}.shape == (*{0}.shape[:-1], {1}.shape[-2])"
        " and {1}.shape == (*{0}.shape[:-2], {1}.shape[-2], {0}.shape[-1]) else None",
    ),
    "circular_pad": (f"torch.nn.functional.pad({{0}}, {_PADS}, 'circular')",),
    "circular_pad_grad": (_PADDED_GRADIENT.replace("MODE", "'circular'"),),
    "clip_by_value": ("torch.clamp({0}, {1}.item(), {2}.item())",),
    "clipped_swiglu": (
        f"{_CLIPPED_GATE} * torch.sigmoid(alpha * {_CLIPPED_GATE}) * ({_CLIPPED_UP} + bias)"
        " if clamp_mode == 0 else None",
    ),
    "clipped_swiglu_grad": (
        f"torch.autograd.functional.vjp(lambda {{0}}: {_CLIPPED_GATE}"
        f" * torch.sigmoid(alpha * {_CLIPPED_GATE}) * ({_CLIPPED_UP} + bias), {{0}}, {{dy}})[1]",
    ),
    "concat": (
        "torch.cat({1}, {0}.item())",
        "torch.cat({0}, {1}.item())",
        "torch.cat(({0}, {1}), d)",
    ),
    "deep_norm": (
        f"({_DEEP_SUM}.mean(-1, True),"
        f" torch.rsqrt({_DEEP_SUM}.var(-1, correction=0, keepdim=True) + epsilon),"
        f" torch.nn.functional.layer_norm({_DEEP_SUM}, {{0}}.shape[-1:], {{3}}, {{2}}, epsilon))",
    ),
    "deep_norm_grad": (
        f"(alpha * {_DEEP_GRADIENT}, {_DEEP_GRADIENT}, {_SUMMED % 'dy'},"
        f" {_SUMMED.replace('{%s}', f'{{dy}} * {_DEEP_ROOT} * {_DEEP_PART}')})",
    ),
    "diag_part": (
        "torch.diagonal({0}) if {0}.dim() == 2 and {0}.shape[0] == {0}.shape[1] else None",
    ),
    "div": (
        "torch.div({0}, {1}, rounding_mode=(None, 'trunc', 'floor')[mode])",
        "torch.div({0}, {1}, rounding_mode=None if {0}.is_floating_point() else 'trunc')",
    ),
    "div_no_nan": ("torch.where({1} == 0, 0.0, {0} / {1})",),
    "elu_grad": ("{dy} * torch.where(activations > 0, 1.0, activations + 1.0)",),
    "exp": (f"torch.exp((scale * {{0}} + shift) * {_RECIPROCAL_SCALE})",),
    "exp_segsum_grad": (
        "torch.tril({0} * {1}, -1).flip(-2).cumsum(-2).flip(-2).tril(-1).sum(-1)"
        " if {0}.shape[-1] == {0}.shape[-2] else None",
    ),
    "fatrelu_mul": (f"torch.where({_GATE} > {{1}}.item(), {_GATE}, 0.0) * {_GATED}",),
    "fill": (
        "torch.full_like(x, fill_value.item())",
        "torch.full({0}.tolist(), {1}.item())",
    ),
    "fill_diagonal": ("torch.clone({0}).fill_diagonal_({1}.item(), wrap)",),
    "foreach_copy": ("[torch.clone(tensor) for tensor in {0}]",),
    "foreach_pow_scalar_and_tensor": ("torch._foreach_pow({0}.item(), {1})",),
    "foreach_round_off_number": (
        "[torch.round(tensor) for tensor in {0}] if {1}.item() == 1 else None",
    ),
    "fused_add_rms_norm": (
        f"({_NORMED.format(x=_SCALED_SUM, w='{2}')},"
        f" {_ROOT_MEAN_SQUARE.format(x=_SCALED_SUM, w='{2}')}, {_SCALED_SUM})",
    ),
    "fused_matmul_gelu": (
        "torch.nn.functional.gelu(torch.nn.functional.linear({0}, {1}, {2}), approximate='tanh')"
        " if approximate == 1 else None",
    ),
    "fused_mul_add_n": ("{0} * {2}.item() + {1}",),
    "ge_glu": (f"({_GE_GLU} * {{0}}.chunk(2, dim)[1 if activate_left else 0], {_GE_GLU})",),
    "ge_glu_grad": (
        f"torch.cat([{_GE_GLU_GRADIENT}, {{dy}} * {{1}}] if activate_left"
        f" else [{{dy}} * {{1}}, {_GE_GLU_GRADIENT}], dim)",
    ),
    "fused_sgd": (
        f"tuple(zip(*[({_SGD_RESULT}, g, {_SGD_MOMENTUM}) for p, g, v in zip({{0}},"
        " [g / (1 if {3} is None else {3}.item()) for g in {1}], {2})])) if not nesterov else None",
    ),
    "gelu": ("torch.nn.functional.gelu({0}, approximate='tanh')",),
    "gelu_grad": ("torch.ops.aten.gelu_backward({dy}, {0}, approximate='tanh')",),
    "gelu_mul": (f"torch.nn.functional.gelu({_GATE}, approximate=approximate) * {_GATED}",),
    "gemm": (
        "{2}.item() * torch.matmul({0}.mT if transpose_a else {0}, {1}.mT if transpose_b else {1})"
        " + {3}.item() * {4}",
        "alpha * torch.matmul({0}.mT if transpose_a else {0}, {1}.mT if transpose_b else {1})"
        " + beta * {2}",
    ),
    "gemma_rms_norm": (
        "(torch.nn.functional.rms_norm({0}, {1}.shape, 1 + {1}, epsilon), "
        + _ROOT_MEAN_SQUARE.format(x="{0}", w="{1}")
        + ")",
    ),
    "ger": ("{2} + alpha * torch.outer({0}, {1})",),
    "group_norm": (
        "(torch.nn.functional.group_norm({0}, num_groups, gamma, beta, eps),"
        f" {_GROUP_STATISTICS})",
    ),
    "group_norm_grad": (
        "torch.ops.aten.native_group_norm_backward({dy}, {2}, {0}[:, :], {1}[:, :], {3},"
        " {2}.shape[0], {2}.shape[1], {2}[0, 0].numel(), num_groups, [True, True, True])"
        " if dx_is_require and dgamma_is_require and dbeta_is_require else None",
    ),
    "group_norm_silu": (
        f"(torch.nn.functional.silu({_GROUP_NORM}) if activate_silu else {_GROUP_NORM},"
        f" {_GROUP_STATISTICS})",
    ),
    "group_norm_swish": (
        f"({_GROUP_NORM} * torch.sigmoid(swish_scale * {_GROUP_NORM}) if activate_swish"
        f" else {_GROUP_NORM}, {_GROUP_STATISTICS})",
    ),
    "group_norm_swish_grad": (
        f"torch.ops.aten.native_group_norm_backward(((y := swish_scale * ({_SWISH_NORMED})) * 0 + 1"
        " + y * torch.sigmoid(-y)) * torch.sigmoid(y) * {dy},"
        " {2}, {0}.reshape(-1, num_groups), {1}.reshape(-1, num_groups), {3},"
        " {2}.shape[0], {2}.shape[1], {2}[0, 0].numel(), num_groups, [True, True, True])"
        " if dgamma_is_require and dbeta_is_require else None",
    ),
    # Unlike torch's, at a bound it is not clipped. What it gave is where what it was given is.
    "hardtanh_grad": ("torch.where(({0} > max_val) | ({0} < min_val), 0.0, {dy})",),
    "grouped_bias_add_grad": (
        "torch.sum({dy}, 1) if {dy}.dim() == 3 and group_idx_type == 0 else None",
    ),
    "histogram": ("torch.histc({0}.double(), bins, {1}.item(), {2}.item())",),
    "im2_col": (
        "torch.nn.functional.unfold({0}, (kernel_h, kernel_w), (dilation_h, dilation_w),"
        " (pad_h, pad_w), (stride_h, stride_w))",
    ),
    "expandv": ("torch.broadcast_to({0}, shape)",),
    "group_normalization_grad": (f"{_GROUP_GRADIENT} if {{0}}.dim() == 3 else None",),
    "inv_grad": ("-{dy} * {0} ** 2",),
    "layer_norm": (
        "torch.native_layer_norm({0}, normalized_shape.tolist(), gamma, beta, epsilon)",
    ),
    "layer_norm_grad": (f"{_layer_norm_gradient(2, 1, 3)} if all(output_mask) else None",),
    "layer_normalization_grad": (_layer_norm_gradient(2, 3, 1),),
    "lin_space": ("torch.linspace({0}.item(), {1}.item(), {2}.item())",),
    "log": (f"torch.log(scale * {{0}} + shift) / {_RECIPROCAL_SCALE}",),
    "log_softmax": ("torch.log_softmax({0}, axes[0])",),
    "log_softmax_grad": ("{dy} - torch.exp({0}) * {dy}.sum(axis[0], True)",),
    "masked_fill": ("torch.where({1}.bool(), {2}.item(), {0})",),
    "masked_scale": ("{0} * {1} * scale", "{0} * {1} * value"),
    "masked_softmax_with_rel_pos_bias": (
        "torch.softmax(scale_value * {0} + (0 if {1} is None else {1}.unsqueeze(1).repeat("
        "{0}.shape[0] // {1}.shape[0], 1, 1, 1)) + {2}, -1)"
        " if {0}.dim() == 4 and {2}.shape == {0}.shape[1:] and inner_precision_mode == 0 else None",
    ),
    "mat_mul": _MATRICES,
    "matmul_fp32": _MATRICES,
    "modulate": (f"{{0}}{_MODULATED}",),
    # By the page of its function; the overview beside it adds 1 to the scale.
    "modulate_grad": (
        "({dy} * {1}.unsqueeze(-2), torch.sum({dy} * {0}, -2), torch.sum({dy}, -2))"
        " if {dy}.shape == {0}.shape and {0}.dim() == 3"
        " and {1}.shape == {2}.shape == {0}[..., 0, :].shape else None",
    ),
    "mul_addn": ("sum(a * b for a, b in zip({0}, {1}))",),
    "mul_no_nan": ("torch.where({1} == 0, 0.0, {0} * {1})",),
    "muls": ("{0} * value",),
    "non_finite_check": (
        "torch.tensor([float(not all(torch.isfinite(tensor).all() for tensor in {0}))])",
    ),
    "pack": ("torch.stack({0}, axis)", "torch.stack(({0}, {1}), d)"),
    "pad_grad": (_PADDED_GRADIENT.replace("MODE", _PAD_MODES),),
    "pad_v3_grad_replicate": (_PADDED_GRADIENT.replace("MODE", _PAD_MODES),),
    "pad_v3_grad_replication": (_PADDED_GRADIENT.replace("MODE", "'replicate'"),),
    "range": ("torch.arange({0}.item(), {1}.item(), {2}.item())",),
    "real": ("torch.real({0})",),
    "reciprocal_grad": ("-{dy} * {0} ** 2",),
    "reflection_pad3d_grad": (_PADDED_GRADIENT.replace("MODE", "'reflect'"),),
    "relu_grad": ("{dy} * ({0} > 0)",),
    "relu_grad_v3": ("{1} * ({0} > 0)",),
    "rms_norm": (f"({_NORMED}, {_ROOT_MEAN_SQUARE})".format(x="{0}", w="{1}"),),
    "rms_norm_grad": (
        f"({_RMS_ROOT} * ({{dy}} * {_RMS_GAMMA} - {{0}} * {_RMS_ROOT}"
        f" * torch.mean({{dy}} * {_RMS_GAMMA} * {{0}} * {_RMS_ROOT}, -1, True)),"
        f" {_SUMMED.replace('{%s}', f'{{dy}} * {{0}} * {_RMS_ROOT}')})",
    ),
    "rsqrt_grad": ("-0.5 * {dy} * {0} ** 3",),
    "scaled_masked_softmax_grad": (
        "torch.where({1}.bool() if not fixed_triu_mask else None, 0.0,"
        " scale * {0} * ({dy} - torch.sum({dy} * {0}, -1, True)))",
    ),
    "segsum": (
        "torch.exp("
        "torch.cumsum(torch.tril({0}.unsqueeze(-1).expand(*{0}.shape, {0}.shape[-1]), -1), -2)"
        " + torch.full({0}.shape[-1:] * 2, -math.inf).triu(1))",
    ),
    "select": ("torch.where({0}.bool(), {1}, {2})", "torch.where({2}.bool(), {0}, {1})"),
    "selu_grad": (
        "{dy} * torch.where(outputs < 0, outputs + 1.7580993408473766, 1.0507009873554805)",
    ),
    "silu_mul": ("torch.nn.functional.silu({0}) * {1}",),
    "situ_glu": (
        f"beta * torch.tanh({_SITU_GATE} / beta) * torch.sigmoid({_SITU_GATE})"
        f" * (linear_beta * torch.tanh({_SITU_UP} / linear_beta) if linear_beta > 0"
        f" else {_SITU_UP})",
    ),
    "slice": (
        "{0}[tuple(slice(a, a + n) for a, n in zip({1}.tolist(), {2}.tolist(), strict=True))]",
    ),
    "softmax": ("torch.softmax({0}, axes[0])",),
    "softmax_grad": (
        "{0} * ({dy} - torch.sum({0} * {dy}, axes[0], True))",
        "{0} * ({dy} - torch.sum({0} * {dy}, -1, True))",
    ),
    # Where two are equal, which of them comes first is open.
    "sort_with_index": (
        f"({_SORTED}[0], torch.gather({{1}}, axis, {_SORTED}[1])"
        f" if stable or (torch.diff({_SORTED}[0], dim=axis) != 0).all() else None)",
    ),
    "sqrt_grad": ("{dy} * 0.5 / {0}",),
    "squared_relu": ("torch.relu({0}) ** 2",),
    "swi_glu": ("torch.nn.functional.silu({0}.chunk(2, dim)[0]) * {0}.chunk(2, dim)[1]",),
    "swiglu_clamp": (
        f"torch.clamp(torch.nn.functional.silu({_GATE}), max=limit)"
        f" * torch.clamp({_GATED}, -limit, limit)",
    ),
    "swish": ("{0} * torch.sigmoid(scale * {0})",),
    "swish_grad": (
        _SWISH_GRADIENT.replace("scale", "sconf"),
        _SWISH_GRADIENT,
    ),
    "sync_batch_norm_backward_elemt": ("(({0} - {5}) - ({1} - {2}) * {3} ** 2 * {6}) * {3} * {4}",),
    "sync_batch_norm_backward_reduce": ("({1} - {2} * {0}, ({1} - {2} * {0}) * {3})",),
    "tensor_move": ("torch.clone({0})",),
    "thnn_fused_lstm_cell": (f"({_FUSED_CELL})",),
    "thnn_fused_lstm_cell_grad": (
        f"(torch.cat([{_CELL_GATES}], -1), {_CELL_GRADIENT} * {_CELL[1]},"
        f" torch.sum(torch.cat([{_CELL_GATES}], -1), 0)) if has_bias else None",
    ),
    "trans_quant_param": (
        "{0}.float().view(torch.int32).long() & 0xFFFFE000 | 1 << 46 if round_mode == 0 else None",
    ),
    "transform_bias_rescale_qkv": ("torch._transform_bias_rescale_qkv({0}, {1}, num_heads)",),
    "transpose": ("torch.permute({0}, {1}.tolist())",),
    "transposev": ("torch.permute({0}, {1}.tolist())",),
    "transpose_batch_mat_mul": (
        "torch.matmul({0}.permute(perm_x1), {1}.permute(perm_x2)).permute(perm_y)"
        " if {2} is None and {3} is None and batch_split_factor == 1 else None",
    ),
    "truncate_div": ("torch.div({0}, {1}, rounding_mode='trunc')",),
}
"""Expressions whose `{0}`, `{1}` are inputs in the OpDef's order, and whose names its attributes.

The first counts whose names are all there, and that has each attribute but `SETS_NO_VALUE`. Of
gradients `{dy}` is the input that is called so, and the others are counted without it. What is
read as `.bool()` is an input of whole numbers.
"""
