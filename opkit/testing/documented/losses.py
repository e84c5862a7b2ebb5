"""What operators of losses, and of their gradients, compute.

Predictions and targets have one shape; where targets are classes, predictions are (rows, classes).
Sources: the documents of each operator, formula and parameters.
"""

from __future__ import annotations

from opkit.testing.documented.table import Tensor, documented, torch

# As ATen numbers reductions.
_NUMBERS = {"mean": 1, "sum": 2}


def _count(x: Tensor, reduction: str) -> int:
    """Return how many terms a gradient is shared by."""
    count: int = x.numel() if reduction == "mean" else 1
    return count


@documented("cross_entropy_grad")
def cross_entropy_grad(x: Tensor, target: Tensor) -> Tensor:
    """softmax(x) - one_hot(target)."""
    return torch.softmax(x, -1) - torch.nn.functional.one_hot(target, x.shape[-1])


# What belongs to the loss of squared sums is not supported, by the document.
@documented("cross_entropy_loss")
def cross_entropy_loss(
    x: Tensor,
    target: Tensor,
    weight: Tensor | None,
    *,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    lse_square_scale_for_zloss: float,
    return_zloss: bool,
) -> tuple[Tensor, Tensor, None, None] | None:
    """Cross entropy of classes, and the logarithms of the chances."""
    if not label_smoothing == lse_square_scale_for_zloss == 0 or return_zloss:
        return None
    loss = torch.nn.functional.cross_entropy(
        x, target, weight, reduction=reduction, ignore_index=ignore_index
    )
    return loss, torch.log_softmax(x, -1), None, None


@documented("cross_entropy_loss_grad")
def cross_entropy_loss_grad(
    dy: Tensor,
    log_prob: Tensor,
    target: Tensor,
    weight: Tensor | None,
    *,
    reduction: str,
    ignore_index: int,
    label_smoothing: float,
    lse_square_scale_for_zloss: float,
) -> Tensor | None:
    """The gradient of cross entropy of classes by what the logarithms of the chances are of."""
    if not label_smoothing == lse_square_scale_for_zloss == 0:
        return None
    classes = target.long()
    chosen = classes != ignore_index
    classes = torch.where(chosen, classes, 0)
    weights = chosen.double() if weight is None else weight[classes] * chosen
    share = dy.reshape(-1) * weights / (weights.sum() if reduction == "mean" else 1)
    hit = torch.nn.functional.one_hot(classes, log_prob.shape[-1])
    return (torch.exp(log_prob) - hit) * share.unsqueeze(-1)


@documented("gaussian_nll_loss_grad")
def gaussian_nll_loss_grad(
    dy: Tensor, x: Tensor, target: Tensor, var: Tensor, *, full: bool, eps: float, reduction: str
) -> tuple[Tensor, Tensor] | None:
    """Gradients of 0.5 * (log(var) + (x - target)^2 / var) by x and var, var not below eps."""
    if full not in (False, True):
        return None
    variance = torch.clamp(var, min=eps)
    each = (dy if reduction == "none" else dy.reshape(())) / _count(x, reduction)
    to_variance = each * 0.5 * (1 / variance - (x - target) ** 2 / variance**2)
    return each * (x - target) / variance, to_variance


# Of another target than 1 and -1 each implementation makes its own. Conditions are probed by
# values that lie beside them.
@documented("hinge_embedding_loss")
def hinge_embedding_loss(
    x: Tensor, target: Tensor, *, margin: float, reduction: str
) -> Tensor | None:
    """x where the target is 1, else max(margin - x, 0) where it is -1."""
    if x.shape != target.shape or not torch.all(torch.abs(target**2 - 1) < 0.01):
        return None
    each = torch.where(target > 0, x, torch.clamp(margin - x, min=0))
    return {"none": each, "mean": each.mean(), "sum": each.sum()}[reduction]


@documented("hinge_loss")
def hinge_loss(x: Tensor, target: Tensor) -> Tensor:
    """max(1 - x * target, 0)."""
    return torch.clamp(1 - x * target, min=0)


@documented("hinge_loss_grad")
def hinge_loss_grad(dy: Tensor, x: Tensor, target: Tensor) -> Tensor:
    """-target * dy where 1 - x * target is above 0, else 0."""
    return torch.where(1 - x * target > 0, -target * dy, 0.0)


@documented("huber_loss")
def huber_loss(x: Tensor, target: Tensor, *, delta: float) -> Tensor:
    """0.5 * d^2 of d = x - target, and delta * (|d| - 0.5 * delta) beyond delta."""
    return torch.nn.functional.huber_loss(x, target, reduction="none", delta=delta)


@documented("huber_loss_grad")
def huber_loss_grad(x: Tensor, target: Tensor, *, delta: float) -> Tensor:
    """x - target within -delta and delta."""
    return torch.clamp(x - target, -delta, delta)


@documented("kl_div_loss_grad")
def kl_div_loss_grad(
    dy: Tensor, x: Tensor, target: Tensor, *, log_target: bool, reduction: str
) -> Tensor:
    """-dy * target, of exp(target) where that is a logarithm, shared by elements or by rows."""
    count = x.shape[0] if reduction == "batchmean" else _count(x, reduction)
    return -dy * (torch.exp(target) if log_target else target) / count


@documented("l1_loss_grad")
def l1_loss_grad(dy: Tensor, x: Tensor, target: Tensor, *, reduction: str) -> Tensor:
    """dy * sign(x - target), for `mean` divided by the number of elements."""
    return dy * torch.sign(x - target) / _count(x, reduction)


@documented("l2_loss")
def l2_loss(x: Tensor) -> Tensor:
    """sum(x^2) / 2."""
    return torch.square(x).sum() / 2


@documented("lp_loss")
def lp_loss(x: Tensor, target: Tensor, *, p: int, reduction: str) -> Tensor | None:
    """|x - target|; no other power than 1 is documented."""
    return torch.nn.functional.l1_loss(x, target, reduction=reduction) if p == 1 else None


@documented("mse_loss_grad")
def mse_loss_grad(dy: Tensor, x: Tensor, target: Tensor, *, reduction: str) -> Tensor:
    """dy * (x - target) * 2, for `mean` divided by the number of elements."""
    return torch.mul(dy, x - target) * 2 / _count(x, reduction)


@documented("nll_loss")
def nll_loss(
    x: Tensor, target: Tensor, weight: Tensor, *, ignore_index: int, reduction: str
) -> tuple[Tensor, Tensor]:
    """-x[target] * weight[target], and the sum of the weights that count."""
    loss = torch.nn.functional.nll_loss(
        x, target, weight, ignore_index=ignore_index, reduction=reduction
    )
    return loss, weight[target][target != ignore_index].sum()


@documented("nll_loss_grad")
def nll_loss_grad(
    dy: Tensor,
    x: Tensor,
    target: Tensor,
    weight: Tensor,
    total_weight: Tensor,
    *,
    reduction: str,
    ignore_index: int,
) -> Tensor:
    """The gradient of nll_loss by x.

    Args:
        total_weight: the second result of nll_loss, one element.
    """
    return torch.ops.aten.nll_loss_backward(
        *(dy if reduction == "none" else dy.reshape(()), x, target, weight),
        *(_NUMBERS.get(reduction, 0), ignore_index, total_weight.reshape(())),
    )


@documented("sigmoid_cross_entropy_with_logits")
def sigmoid_cross_entropy_with_logits(x: Tensor, target: Tensor) -> Tensor:
    """max(x, 0) - x * target + log(1 + exp(-|x|))."""
    return torch.nn.functional.binary_cross_entropy_with_logits(x, target, reduction="none")


@documented("sigmoid_cross_entropy_with_logits_grad")
def reduced_sigmoid_cross_entropy_grad(
    dy: Tensor, x: Tensor, target: Tensor, *, reduction: str
) -> Tensor:
    """(sigmoid(x) - target) * dy, for `mean` divided by the number of elements."""
    return (torch.sigmoid(x) - target) * dy / _count(x, reduction)


@documented("sigmoid_cross_entropy_with_logits_grad")
def sigmoid_cross_entropy_with_logits_grad(dy: Tensor, x: Tensor, target: Tensor) -> Tensor:
    """(sigmoid(x) - target) * dy."""
    return (torch.sigmoid(x) - target) * dy


@documented("smooth_l1_loss")
def smooth_l1_loss(x: Tensor, target: Tensor, *, sigma: float) -> Tensor:
    """0.5 * d^2 / sigma of d = x - target, and |d| - 0.5 * sigma beyond sigma."""
    return torch.nn.functional.smooth_l1_loss(x, target, reduction="none", beta=sigma)


@documented("smooth_l1_loss_grad")
def smooth_l1_loss_grad(
    dy: Tensor, x: Tensor, target: Tensor, *, sigma: float, reduction: str
) -> Tensor:
    """dy * ((x - target) / sigma within -1 and 1), for `mean` divided by the number of elements."""
    return dy * torch.clamp((x - target) / sigma, -1, 1) / _count(x, reduction)


@documented("soft_margin_loss_grad")
def soft_margin_loss_grad(dy: Tensor, x: Tensor, target: Tensor, *, reduction: str) -> Tensor:
    """-target * sigmoid(-target * x) * dy, for `mean` divided by the number of elements."""
    return -target * torch.sigmoid(-target * x) * dy / _count(x, reduction)
