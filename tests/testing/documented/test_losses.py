"""References of losses and of their gradients, against NumPy's of their documents' formulas."""

from __future__ import annotations

import numpy as np
import pytest

from opkit.errors import OperatorError
from opkit.testing.opdef_cases import library_cases
from opkit.testing.references.by_name import find_by_name
from tests.testing.test_by_name import _differentiated, _given, _normal, operator

pytestmark = pytest.mark.torch


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_the_gradient_of_a_squared_error_takes_one_of_every_element(reduction: str) -> None:
    # The loss's own gradient is one number, which operators are given for each element.
    predict, label, dout = _normal((3, 5), (3, 5), (3, 5))
    spec = operator("MseLossGrad", "predict label dout", "y", 'reduction:string="mean"')
    (given,) = _given(spec, predict, label, dout, reduction=reduction)
    count = 15 if reduction == "mean" else 1
    np.testing.assert_allclose(given, dout * (predict - label) * 2 / count)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum", "batchmean"])
def test_gradients_of_differences_take_one_of_every_element(reduction: str) -> None:
    x, target, dy = _normal((3, 5), (3, 5), (3, 5))
    count = {"mean": 15, "batchmean": 3}.get(reduction, 1)
    spec = operator(
        "KlDivLossGrad", "grad input target", "y", 'reduction:string="mean" log_target:bool=false'
    )
    for logarithms in (False, True):
        given = _given(spec, dy, x, target, reduction=reduction, log_target=logarithms)
        expected = -dy * (np.exp(target) if logarithms else target) / count
        np.testing.assert_allclose(given[0], expected)
    if reduction != "batchmean":
        spec = operator("L1LossGrad", "grads predict label", "y", 'reduction:string="mean"')
        (given,) = _given(spec, dy, x, target, reduction=reduction)
        np.testing.assert_allclose(given, dy * np.sign(x - target) / count)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_a_cross_entropy_comes_with_its_logarithms(reduction: str) -> None:
    x, weight = _normal((4, 5), (5,))
    weight = weight**2
    target = np.array([1, 4, 0, 1])
    spec = operator(
        "CrossEntropyLoss",
        "input target:int64 weight?",
        "loss log_prob zloss lse_for_zloss",
        'reduction:string="mean" ignore_index:int=-100 label_smoothing:float=0.0'
        " lse_square_scale_for_zloss:float=0.0 return_zloss:bool=false",
    )
    attrs = {
        **{"reduction": reduction, "ignore_index": 0, "label_smoothing": 0.0},
        **{"lse_square_scale_for_zloss": 0.0, "return_zloss": False},
    }
    loss, logarithms, zloss, lse = _given(spec, x, target, weight, **attrs)
    np.testing.assert_allclose(logarithms, x - np.log(np.exp(x).sum(1, keepdims=True)))
    each = -weight[target] * logarithms[np.arange(4), target] * (target != 0)
    total = weight[target][target != 0].sum()
    expected = {"none": each, "mean": each.sum() / total, "sum": each.sum()}[reduction]
    np.testing.assert_allclose(loss, expected, atol=1e-12)
    assert zloss.item() is None and lse.item() is None
    with pytest.raises(OperatorError, match="it gives nothing"):
        _given(spec, x, target, weight, **{**attrs, "label_smoothing": 0.5})


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_the_gradient_of_a_likelihood_is_at_its_class(reduction: str) -> None:
    x, weight = _normal((4, 5), (5,))
    target = np.array([1, 4, 0, 1])
    dy = np.array([0.5, 2.0, 3.0, 4.0]) if reduction == "none" else np.array([2.0])
    total = np.array([3.0])
    spec = operator(
        "NllLossGrad",
        "x y_grad target:int32 weight total_weight",
        "x_grad",
        'reduction:string="mean" ignore_index:int=-100',
    )
    (given,) = _given(spec, x, dy, target, weight, total, reduction=reduction, ignore_index=0)
    expected = np.zeros((4, 5))
    by = dy / total if reduction == "mean" else dy
    expected[np.arange(4), target] = -by * weight[target] * (target != 0)
    np.testing.assert_allclose(given, expected)


def test_the_gradient_of_batch_normalization_is_autograds() -> None:
    dy, x, weight = _normal((4, 3, 5), (4, 3, 5), (3,))
    mean, invstd = x.mean((0, 2)), (x.var((0, 2)) + 1e-5) ** -0.5
    spec = operator(
        "BatchNormalizationGrad",
        "grad_output input weight bias save_mean save_invstd",
        "grad_input grad_weight grad_bias",
        "epsilon:float=0.00001",
    )
    given = _given(spec, dy, x, weight, weight, mean, invstd, epsilon=1e-5)
    expected = _differentiated(
        lambda torch, x, w, b: torch.nn.functional.batch_norm(x, None, None, w, b, True, 0.1, 1e-5),
        *(dy, x, weight, np.zeros(3)),
    )
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.parametrize("reduction", ["none", "mean", "sum"])
def test_what_is_labelled_minus_one_is_lost_below_the_margin(reduction: str) -> None:
    (x,) = _normal((3, 5))
    target = np.where(np.arange(15).reshape(3, 5) % 2 == 0, 1.0, -1.0)
    spec = operator(
        "HingeEmbeddingLoss",
        "input target",
        "loss",
        'margin:float=1.0 reduction:string="mean"',
    )
    (given,) = _given(spec, x, target, margin=0.5, reduction=reduction)
    each = np.where(target == 1, x, np.maximum(0, 0.5 - x))
    expected = {"none": each, "mean": each.mean(), "sum": each.sum()}[reduction]
    np.testing.assert_allclose(given.reshape(np.shape(expected)), expected)
    # How much a result depends on its inputs is asked with values beside them.
    _given(spec, x, target * (1 + 1e-6), margin=0.5, reduction=reduction)
    with pytest.raises(OperatorError, match="it gives nothing"):
        _given(spec, x, target * 2, margin=0.5, reduction=reduction)
    found = find_by_name(spec)
    assert found is not None
    for case in library_cases(spec, found.expression, found=found):
        source = case.sources[1]
        assert source is not None and set(source.values or ()) == {1.0, -1.0}


@pytest.mark.torch
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_has_the_gradient_of_torch(reduction: str) -> None:
    torch = pytest.importorskip("torch")
    x, weight = _normal((4, 5), (5,))
    target, weight = np.array([3, 0, -100, 3]), np.abs(weight)
    (dy,) = _normal((4,) if reduction == "none" else (1,))
    spec = operator(
        "CrossEntropyLossGrad",
        "grad_loss log_prob target:int64 weight?",
        "x_grad",
        'reduction:string="mean" ignore_index:int=-100 label_smoothing:float=0.0'
        " lse_square_scale_for_zloss:float=0.0",
    )
    attrs = {"reduction": reduction, "ignore_index": -100, "label_smoothing": 0.0}
    given = torch.from_numpy(x).requires_grad_()
    loss = torch.nn.functional.cross_entropy(
        given, torch.from_numpy(target), torch.from_numpy(weight), reduction=reduction
    )
    loss.backward(torch.from_numpy(dy).reshape(loss.shape))
    log_prob = torch.log_softmax(given.detach(), -1).numpy()
    (found,) = _given(spec, dy, log_prob, target, weight, lse_square_scale_for_zloss=0.0, **attrs)
    np.testing.assert_allclose(found, given.grad.numpy(), atol=1e-12)
