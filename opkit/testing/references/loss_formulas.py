"""What operators of losses, and of their gradients, compute by the formulas of their documents.

Sources: the documents of each operator, formula and parameters.
"""

from __future__ import annotations

__all__ = ["LOSSES"]

_NLL_VARIANCE = "torch.clamp({2}, min=eps)"
_NLL_GRADIENT = (
    "(({dy} if reduction == 'none' else {dy}.reshape(()))"
    " / ({0}.numel() if reduction == 'mean' else 1))"
)
# As ATen numbers reductions.
_NUMBERED = "(1 if reduction == 'mean' else 2 if reduction == 'sum' else 0)"

LOSSES: dict[str, tuple[str, ...]] = {
    "cross_entropy_grad": (
        "torch.softmax({0}, -1) - torch.nn.functional.one_hot({1}, {0}.shape[-1])",
    ),
    # What belongs to the loss of squared sums is not supported, by the document.
    "cross_entropy_loss": (
        "(torch.nn.functional.cross_entropy({0}, {1}, {2}, reduction=reduction,"
        " ignore_index=ignore_index), torch.log_softmax({0}, -1), None, None)"
        " if label_smoothing == lse_square_scale_for_zloss == 0 and not return_zloss else None",
    ),
    "gaussian_nll_loss_grad": (
        f"({_NLL_GRADIENT} * ({{0}} - {{1}}) / {_NLL_VARIANCE},"
        f" {_NLL_GRADIENT} * 0.5"
        f" * (1 / {_NLL_VARIANCE} - ({{0}} - {{1}}) ** 2 / {_NLL_VARIANCE} ** 2))"
        " if full in (False, True) else None",
    ),
    # Of another target than 1 and -1 each implementation makes its own. Conditions are probed by
    # values that lie beside them.
    "hinge_embedding_loss": (
        "[each := torch.where({1} > 0, {0}, torch.clamp(margin - {0}, min=0))] and"
        " {{'none': each, 'mean': each.mean(), 'sum': each.sum()}}[reduction]"
        " if {0}.shape == {1}.shape and torch.all(torch.abs({1} ** 2 - 1) < 0.01) else None",
    ),
    "hinge_loss": ("torch.clamp(1 - {0} * {1}, min=0)",),
    "hinge_loss_grad": ("torch.where(1 - {0} * {1} > 0, -{1} * {dy}, 0.0)",),
    "huber_loss": ("torch.nn.functional.huber_loss({0}, {1}, reduction='none', delta=delta)",),
    "huber_loss_grad": ("torch.clamp({0} - {1}, -delta, delta)",),
    "kl_div_loss_grad": (
        "-{dy} * (torch.exp({1}) if log_target else {1}) / ({0}.numel() if reduction == 'mean'"
        " else {0}.shape[0] if reduction == 'batchmean' else 1)",
    ),
    "l1_loss_grad": ("{dy} * torch.sign({0} - {1}) / ({0}.numel() if reduction == 'mean' else 1)",),
    "l2_loss": ("torch.square({0}).sum() / 2",),
    "lp_loss": (
        # No other power is documented.
        "torch.nn.functional.l1_loss({0}, {1}, reduction=reduction) if p == 1 else None",
    ),
    "mse_loss_grad": (
        "torch.mul({dy}, {0} - {1}) * 2 / ({0}.numel() if reduction == 'mean' else 1)",
    ),
    "nll_loss": (
        "(torch.nn.functional.nll_loss({0}, {1}, {2}, ignore_index=ignore_index,"
        " reduction=reduction), {2}[{1}][{1} != ignore_index].sum())",
    ),
    "nll_loss_grad": (
        "torch.ops.aten.nll_loss_backward({dy} if reduction == 'none' else {dy}.reshape(()),"
        f" {{0}}, {{1}}, {{2}}, {_NUMBERED}, ignore_index, {{3}}.reshape(()))",
    ),
    "sigmoid_cross_entropy_with_logits": (
        "torch.nn.functional.binary_cross_entropy_with_logits({0}, {1}, reduction='none')",
    ),
    "sigmoid_cross_entropy_with_logits_grad": (
        "(torch.sigmoid({0}) - {1}) * {dy} / ({0}.numel() if reduction == 'mean' else 1)",
        "(torch.sigmoid({0}) - {1}) * {dy}",
    ),
    "smooth_l1_loss": (
        "torch.nn.functional.smooth_l1_loss({0}, {1}, reduction='none', beta=sigma)",
    ),
    "smooth_l1_loss_grad": (
        "{dy} * torch.clamp(({0} - {1}) / sigma, -1, 1)"
        " / ({0}.numel() if reduction == 'mean' else 1)",
    ),
    "soft_margin_loss_grad": (
        "-{1} * torch.sigmoid(-{1} * {0}) * {dy} / ({0}.numel() if reduction == 'mean' else 1)",
    ),
}
"""As `opkit.testing.references.operator_formulas.WRITTEN_OUT`, of which these are a part."""
