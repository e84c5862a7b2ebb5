"""References that documents give, against NumPy's and autograd's of the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from opkit.errors import OperatorError
from opkit.schema import AttrValue
from tests.testing.test_by_name import _differentiated, _given, _normal, operator


@pytest.mark.torch
def test_what_is_normalised_after_a_sum_comes_with_its_statistics() -> None:
    x1, x2, gamma, beta = _normal((2, 3, 5), (2, 3, 5), (3, 5), (3, 5))
    attrs = "epsilon:float=0.001 additional_output:bool=false"
    for op in ("AddLayerNorm", "InplaceAddLayerNorm"):
        spec = operator(op, "x1 x2 gamma beta bias?", "y mean rstd x", attrs)
        given = _given(spec, x1, x2, gamma, beta, None, epsilon=1e-3, additional_output=True)
        x = x1 + x2
        mean, rstd = x.mean((1, 2), keepdims=True), (x.var((1, 2), keepdims=True) + 1e-3) ** -0.5
        for one, other in zip(
            given, ((x - mean) * rstd * gamma + beta, mean, rstd, x), strict=True
        ):
            np.testing.assert_allclose(one, other, atol=1e-10)
        # The sum is written where it is asked for.
        with pytest.raises(OperatorError, match="it gives nothing"):
            _given(spec, x1, x2, gamma, beta, None, epsilon=1e-3, additional_output=False)


@pytest.mark.torch
def test_gradients_of_a_normed_sum_are_those_of_layer_norm() -> None:
    x1, x2, dy, gamma = _normal((3, 5), (3, 5), (3, 5), (5,))
    x = x1 + x2
    expected = _differentiated(
        lambda torch, x, g, b: torch.nn.functional.layer_norm(x, (5,), g, b, 1e-6),
        *(dy, x, gamma, np.zeros(5)),
    )
    mean, rstd = x.mean(-1, keepdims=True), (x.var(-1, keepdims=True) + 1e-6) ** -0.5
    spec = operator("AddLayerNormGrad", "dy x1 x2 rstd mean gamma dsum?", "dx dgamma dbeta")
    given = _given(spec, dy, x1, x2, rstd, mean, gamma, None)
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.torch
def test_batch_norm_in_training_moves_its_statistics() -> None:
    import torch

    x, weight, bias, running_mean, running_var = _normal((4, 3, 5), (3,), (3,), (3,), (3,))
    spec = operator(
        "BatchNormV3",
        "x weight bias running_mean running_var",
        "y running_mean running_var save_mean save_rstd",
        "epsilon:float=0.001 momentum:float=0.25 is_training:bool=true",
    )
    moved = [torch.tensor(running_mean), torch.tensor(running_var)]
    y = torch.nn.functional.batch_norm(
        *(torch.tensor(x), *moved, torch.tensor(weight), torch.tensor(bias), True, 0.25, 1e-3)
    )
    expected = (y.numpy(), *(one.numpy() for one in moved), x.mean((0, 2)), x.var((0, 2)))
    values: dict[str, AttrValue] = {"epsilon": 1e-3, "momentum": 0.25, "is_training": True}
    given = _given(spec, x, weight, bias, running_mean, running_var, **values)
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.torch
def test_gradients_of_a_swish_of_group_norm_are_autograds() -> None:
    x, dy, gamma, beta = _normal((2, 4, 3), (2, 4, 3), (4,), (4,))
    parts = x.reshape(2, 2, 6)
    mean, rstd = parts.mean(-1), 1 / np.sqrt(parts.var(-1) + 1e-5)

    def forward(torch: Any, x: Any, g: Any, b: Any) -> Any:
        y = torch.nn.functional.group_norm(x, 2, g, b)
        return y * torch.sigmoid(0.5 * y)

    expected = _differentiated(forward, dy, x, gamma, beta)
    spec = operator(
        "GroupNormSwishGrad",
        "dy mean rstd x gamma beta",
        "dx dgamma dbeta",
        "num_groups:int data_format:string swish_scale:float=1 dgamma_is_require:bool=true"
        " dbeta_is_require:bool=true",
    )
    values: dict[str, AttrValue] = {"num_groups": 2, "data_format": "NCHW", "swish_scale": 0.5}
    flags = {"dgamma_is_require": True, "dbeta_is_require": True}
    given = _given(spec, dy, mean, rstd, x, gamma, beta, **values, **flags)
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.torch
@pytest.mark.parametrize("mode", [0, 1])
@pytest.mark.parametrize("corrects", [False, True])
def test_a_step_of_adam_with_an_average_of_what_it_updates(mode: int, corrects: bool) -> None:
    import torch

    grad, var, average = _normal((3, 5), (3, 5), (3, 5))
    values: dict[str, AttrValue] = {
        "lr": 0.1,
        "ema_decay": 0.75,
        "beta1": 0.5,
        "beta2": 0.875,
        "eps": 1e-3,
    }
    spec = operator(
        "ApplyFusedEmaAdam",
        "grad var m v s step:int64",
        "var m v s",
        " ".join(f"{name}:float=1" for name in values)
        + " mode:int=1 bias_correction:bool=true weight_decay:float=0",
    )
    zeros = np.zeros((3, 5))
    given = _given(
        spec,
        *(grad, var, zeros, zeros, average, np.array([1])),
        **values,
        mode=mode,
        bias_correction=corrects,
        weight_decay=0.01,
    )
    found = given[0]
    if corrects:
        # The first step of torch's own: mode 0 adds the decay to the gradient.
        weight = torch.tensor(var, requires_grad=True)
        kind = torch.optim.AdamW if mode else torch.optim.Adam
        step = kind([weight], lr=0.1, betas=(0.5, 0.875), eps=1e-3, weight_decay=0.01)
        weight.grad = torch.tensor(grad)
        step.step()
        np.testing.assert_allclose(found, weight.detach().numpy(), atol=1e-10)
    else:
        whole = grad + 0.01 * var * (mode == 0)
        m, v = 0.5 * whole, 0.125 * whole**2
        np.testing.assert_allclose(given[1], m)
        np.testing.assert_allclose(given[2], v)
        update = m / (np.sqrt(v) + 1e-3) + 0.01 * var * mode
        np.testing.assert_allclose(found, var - 0.1 * update)
    np.testing.assert_allclose(given[3], 0.75 * average + 0.25 * found)


@pytest.mark.torch
def test_gradients_of_modulation_are_sums_over_each_matrix() -> None:
    x, dy, scale, shift = _normal((2, 3, 5), (2, 3, 5), (2, 5), (2, 5))
    expected = _differentiated(
        lambda torch, x, a, b: x * a[:, None] + b[:, None], dy, x, scale, shift
    )
    spec = operator("ModulateGrad", "grad_Output Input Scale? Shift?", "a b c")
    for one, other in zip(_given(spec, dy, x, scale, shift), expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)
    # A row that fits by broadcasting is no input of the operator's.
    with pytest.raises(OperatorError, match="it gives nothing"):
        _given(spec, dy[:1, :1], x[0, :1], scale[0], shift[0])


@pytest.mark.torch
def test_gradients_of_batch_norm_over_cores_take_its_means() -> None:
    x, dy, weight = _normal((4, 3), (4, 3), (3,))
    mean, invstd = x.mean(0), (x.var(0) + 1e-5) ** -0.5
    expected = _differentiated(
        lambda torch, x, w: torch.nn.functional.batch_norm(x, None, None, w, None, True, 0, 1e-5),
        *(dy, x, weight),
    )
    rows = [np.broadcast_to(row, x.shape) for row in (mean, invstd, weight)]
    means = [np.broadcast_to(row, x.shape) for row in (dy.mean(0), (dy * (x - mean)).mean(0))]
    names = "grad_output save_input mean invstd weight mean_dy mean_dy_xmu"
    (given,) = _given(operator("SyncBatchNormBackwardElemt", names, "out"), dy, x, *rows, *means)
    np.testing.assert_allclose(given, expected[0], atol=1e-10)


@pytest.mark.torch
def test_the_gradient_of_batch_norm_in_use_scales_its_channels() -> None:
    x, dy, scale, variance = _normal((2, 3, 4, 5), (2, 3, 4, 5), (3,), (3,))
    variance = np.abs(variance)
    (expected,) = _differentiated(
        lambda torch, x: torch.nn.functional.batch_norm(
            *(x, torch.zeros(3).double(), torch.tensor(variance), torch.tensor(scale)), eps=1e-4
        ),
        *(dy, x),
    )
    attrs = "epsilon:float=0.0001 format_mode:int=0"
    spec = operator("BnInferGrad", "grads scale batch_variance", "x_backprop", attrs)
    (given,) = _given(spec, dy, scale, variance, epsilon=1e-4, format_mode=0)
    np.testing.assert_allclose(given, expected, atol=1e-10)


@pytest.mark.torch
def test_the_gradient_of_exponentials_of_segments_sums() -> None:
    x, dy = _normal((3, 5), (3, 5, 5))

    def forward(torch: Any, x: Any) -> Any:
        below = torch.tril(x.unsqueeze(-1).expand(3, 5, 5), -1).cumsum(-2)
        return torch.exp(below.masked_fill(torch.triu(torch.ones(5, 5), 1).bool(), -torch.inf))

    (expected,) = _differentiated(forward, dy, x)
    import torch

    own = forward(torch, torch.tensor(x)).numpy()
    (given,) = _given(operator("ExpSegsumGrad", "grad_output grad_self", "out"), dy, own)
    np.testing.assert_allclose(given, expected, atol=1e-10)


@pytest.mark.torch
def test_a_histogram_counts_what_lies_within() -> None:
    (x,) = _normal((7, 33))
    spec = operator("HistogramV2", "x min max", "y", "bins:int=100 y_dtype:int=3")
    (given,) = _given(spec, x, np.array([-1.0]), np.array([2.0]), bins=10, y_dtype=3)
    np.testing.assert_array_equal(given, np.histogram(x, 10, (-1.0, 2.0))[0])


@pytest.mark.torch
def test_a_cells_gradients_are_autograds() -> None:
    import torch

    dh, dc, cell, gates = (torch.tensor(one) for one in _normal((3, 5), (3, 5), (3, 5), (3, 20)))
    gates.requires_grad_()
    cell.requires_grad_()
    i, f, g, o = gates.chunk(4, -1)
    storage = torch.cat([i.sigmoid(), f.sigmoid(), g.tanh(), o.sigmoid()], -1)
    new = f.sigmoid() * cell + i.sigmoid() * g.tanh()
    expected = torch.autograd.grad([o.sigmoid() * new.tanh(), new], [gates, cell], [dh, dc])
    spec = operator("ThnnFusedLstmCellGrad", "dhy dc cx cy storage", "a b c", "has_bias:bool=false")
    arrays = [one.detach().numpy() for one in (dh, dc, cell, new, storage)]
    given = _given(spec, *arrays, has_bias=True)
    for one, other in zip(given, (*expected, expected[0].sum(0)), strict=True):
        np.testing.assert_allclose(one, other.numpy(), atol=1e-12)


@pytest.mark.torch
def test_batch_norms_gradients_take_its_statistics() -> None:
    x, dy, weight = _normal((4, 3, 5), (4, 3, 5), (3,))
    expected = _differentiated(
        lambda torch, x, w, b: torch.nn.functional.batch_norm(x, None, None, w, b, True),
        *(dy, x, weight, np.zeros(3)),
    )
    spec = operator(
        "BatchNormGradV3",
        "dy x weight running_mean running_var save_mean save_rstd",
        "dx dweight dbias",
        "is_training:bool=true epsilon:float=0.00001 version:int=0",
    )
    saved = x.mean((0, 2)), x.var((0, 2))
    attrs: dict[str, AttrValue] = {"is_training": True, "epsilon": 1e-5, "version": 0}
    given = _given(spec, dy, x, weight, np.zeros(3), np.ones(3), *saved, **attrs)
    for one, other in zip(given, expected, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-10)


@pytest.mark.torch
def test_indices_follow_what_is_sorted_unless_two_are_equal() -> None:
    spec = operator(
        "SortWithIndex",
        "x index:int32",
        "y sorted_index:int32",
        "axis:int=-1 descending:bool=false stable:bool=false",
    )
    attrs: dict[str, AttrValue] = {"axis": -1, "descending": True, "stable": False}
    y, index = _given(spec, np.array([[1.0, 3.0, 2.0]]), np.array([[7, 8, 9]]), **attrs)
    np.testing.assert_array_equal(y, [[3, 2, 1]])
    np.testing.assert_array_equal(index, [[8, 9, 7]])
    _, index = _given(spec, np.array([[1.0, 3.0, 3.0]]), np.array([[7, 8, 9]]), **attrs)
    assert index.item() is None


@pytest.mark.torch
def test_gradients_at_a_bound_pass_by_the_documents() -> None:
    spec = operator("HardtanhGrad", "result grad", "y", "min_val:float=-1.0 max_val:float=1.0")
    given = _given(
        spec, np.array([-2.0, -1, 0, 1, 2]), np.arange(1.0, 6), min_val=-1.0, max_val=1.0
    )
    np.testing.assert_array_equal(given[0], [0, 2, 3, 4, 0])


@pytest.mark.torch
def test_the_gradient_of_selu_at_zero_is_the_scale_by_the_documents() -> None:
    # Whole numbers are often 0, where the slope was taken for the exponential's, 1.758.
    spec = operator("SeluGrad", "gradients outputs", "y")
    (found,) = _given(spec, np.full(3, 4.0), np.array([-1.0, 0.0, 2.0]))
    scale = 1.0507009873554805
    np.testing.assert_allclose(found, [4 * 0.7580993408473766, 4 * scale, 4 * scale])


@pytest.mark.torch
def test_smooth_losses_and_sums_by_segment_are_torchs() -> None:
    import torch

    predict, label, dout = _normal((3, 5), (3, 5), (3, 5))
    spec = operator(
        "SmoothL1LossGradV2", "predict label dout", "g", 'sigma:float=1.0 reduction:string="mean"'
    )
    (given,) = _given(spec, predict, label, dout, sigma=0.5, reduction="mean")
    expected = torch.ops.aten.smooth_l1_loss_backward(
        *map(torch.tensor, (dout, predict, label)), 1, 0.5
    )
    np.testing.assert_allclose(given, expected.numpy(), atol=1e-12)
    (x,) = _normal((4,))
    (sums,) = _given(operator("Segsum", "x", "y"), x)
    for i in range(4):
        for j in range(4):
            wanted = np.exp(x[j + 1 : i + 1].sum()) if i >= j else 0.0
            np.testing.assert_allclose(sums[i, j], wanted, atol=1e-12)


@pytest.mark.torch
def test_the_gradient_of_an_adaptive_layer_norm_is_autograds() -> None:
    dy, x, scale, shift, gamma, beta = _normal(*[(2, 3, 5), (2, 3, 5), (2, 5), (2, 5), (5,), (5,)])
    mean, rstd = x.mean(-1, keepdims=True), (x.var(-1, keepdims=True) + 1e-5) ** -0.5
    spec = operator(
        "AdaLayerNormGrad",
        "dy x rstd mean scale gamma beta",
        "pd_x pd_scale pd_shift pd_gamma pd_beta",
    )
    expected = _differentiated(
        lambda torch, x, scale, shift, gamma, beta: (
            torch.nn.functional.layer_norm(x, (5,), gamma, beta, 1e-5) * (1 + scale[:, None])
            + shift[:, None]
        ),
        *(dy, x, scale, shift, gamma, beta),
    )
    for one, other in zip(
        _given(spec, dy, x, rstd, mean, scale, gamma, beta), expected, strict=True
    ):
        np.testing.assert_allclose(one, other, atol=1e-9)


@pytest.mark.torch
def test_a_cells_gates_are_in_its_documents_order() -> None:
    inputs, hidden, state, one, other = _normal((3, 8), (3, 8), (3, 2), (8,), (8,))
    spec = operator(
        "ThnnFusedLstmCell",
        "inputGates hiddenGates cx inputBias? hiddenBias?",
        "hy cy storage",
    )
    for biases in ((one, other), (None, None)):
        gates = inputs + hidden + sum(bias for bias in biases if bias is not None)
        i, g, f, o = (gates[:, 2 * n : 2 * n + 2] for n in range(4))
        i, f, o = (1 / (1 + np.exp(-gate)) for gate in (i, f, o))
        g = np.tanh(g)
        following = f * state + i * g
        given = _given(spec, inputs, hidden, state, *biases)
        for result, expected in zip(
            given,
            (o * np.tanh(following), following, np.concatenate([i, g, f, o], 1)),
            strict=True,
        ):
            np.testing.assert_allclose(result, expected, atol=1e-12)


@pytest.mark.torch
def test_what_is_put_at_places_of_several_axes_replaces_slices() -> None:
    (var, updates) = _normal((4, 5, 6), (3, 6))
    indices = np.array([[0, 1], [3, 4], [2, 2]])
    spec = operator("ScatterNdUpdate", "var indices:int32 updates", "var", "use_locking:bool=false")
    expected = var.copy()
    expected[indices[:, 0], indices[:, 1]] = updates
    (given,) = _given(spec, var, indices, updates, use_locking=False)
    np.testing.assert_array_equal(given, expected)


@pytest.mark.torch
def test_what_is_largest_has_an_index_unless_two_are_equal() -> None:
    spec = operator(
        "RadixTopK",
        "x k:int32",
        "values indices:int32",
        "sorted:bool=true dim:int=-1 largest:bool=true indices_dtype:int=3",
    )
    x = np.array([[3.0, 1.0, 4.0, 2.0], [5.0, 9.0, 2.0, 6.0]])
    attrs = {"sorted": True, "dim": -1, "indices_dtype": 3}
    values, indices = _given(spec, x, np.array([2]), largest=True, **attrs)
    assert values.tolist() == [[4, 3], [9, 6]] and indices.tolist() == [[2, 0], [1, 3]]
    x[1, 2] = 5.0
    values, indices = _given(spec, x, np.array([2]), largest=False, **attrs)
    assert values.tolist() == [[1, 2], [5, 5]] and indices.item() is None


@pytest.mark.torch
def test_casts_to_whole_numbers_leave_the_fraction_out() -> None:
    spec = operator("Cast", "x", "y", "dst_type:int")
    x = np.array([-1.75, -0.5, 0.0, 0.5, 2.75])
    for number, expected in (
        (3, [-1, 0, 0, 0, 2]),
        (12, [True, True, False, True, True]),
        (0, x.tolist()),
    ):
        assert _given(spec, x, dst_type=number)[0].tolist() == expected


@pytest.mark.torch
def test_shapes_are_filled_with_one_number() -> None:
    spec = operator("Fill", "dims:int64 value", "y")
    (given,) = _given(spec, np.array([2, 3]), np.array([1.5]))
    np.testing.assert_array_equal(given, np.full((2, 3), 1.5))


@pytest.mark.torch
def test_a_product_with_rows_of_weights_goes_through_gelu() -> None:
    import torch

    x, weight, bias = _normal((2, 3, 5), (4, 5), (4,))
    spec = operator("FusedMatmulGelu", "x weight bias?", "y", "approximate:int=1")
    for added in (bias, None):
        product = x @ weight.T + (0 if added is None else added)
        (given,) = _given(spec, x, weight, added, approximate=1)
        expected = torch.nn.functional.gelu(torch.tensor(product), approximate="tanh")
        np.testing.assert_allclose(given, expected.numpy(), atol=1e-12)
    with pytest.raises(OperatorError, match="it gives nothing"):
        _given(spec, x, weight, None, approximate=0)


@pytest.mark.torch
@pytest.mark.parametrize("power", [1.0, 2.0, 3.0, float("inf")])
def test_gradients_of_distances_are_autograds_of_all_pairs(power: float) -> None:
    import torch

    dy, x1, x2 = _normal((2, 3, 4), (2, 3, 5), (2, 4, 5))
    spec = operator("CdistGrad", "grad x1 x2 cdist", "y", "p:float=2.0")
    left = torch.tensor(x1, requires_grad=True)
    distances = torch.cdist(left, torch.tensor(x2), power)
    distances.backward(torch.tensor(dy))
    whole = (2, 3, 4, 5)
    spread = [
        np.broadcast_to(value, whole)
        for value in (
            *(dy[..., None], x1[:, :, None], x2[:, None], distances.detach().numpy()[..., None]),
        )
    ]
    (given,) = _given(spec, *spread, p=power)
    np.testing.assert_allclose(given, left.grad.numpy(), atol=1e-9)
    # What is not spread yet is another function's.
    with pytest.raises(OperatorError, match="it gives nothing"):
        _given(spec, dy, x1, x2, dy, p=power)


@pytest.mark.torch
def test_products_of_matrices_in_turned_axes_come_back_in_turned_ones() -> None:
    x1, x2 = _normal((4, 3, 5), (3, 5, 2))
    spec = operator(
        "TransposeBatchMatMul",
        "x1 x2 bias? scale?",
        "y",
        "perm_x1:list_int perm_x2:list_int perm_y:list_int enable_hf32:bool=false"
        " batch_split_factor:int=1",
    )
    perms = {"perm_x1": (1, 0, 2), "perm_x2": (0, 1, 2), "perm_y": (1, 0, 2)}
    attrs = {**perms, "enable_hf32": False, "batch_split_factor": 1}
    (given,) = _given(spec, x1, x2, None, None, **attrs)
    np.testing.assert_allclose(given, np.einsum("mbk,bkn->mbn", x1, x2))


@pytest.mark.torch
@pytest.mark.parametrize("p", [1.0, 2.0, 3.0, float("inf")])
def test_distances_between_rows_have_the_gradient_of_torch(p: float) -> None:
    torch = pytest.importorskip("torch")
    x, dy = _normal((5, 4), (10,))
    spec = operator("PdistGrad", "grad input pdist", "out", "p:float=1.0")
    distances = torch.nn.functional.pdist(torch.from_numpy(x), p).numpy()
    (found,) = _given(spec, dy, x, distances, p=p)
    expected = _differentiated(lambda torch, x: torch.nn.functional.pdist(x, p), dy, x)
    np.testing.assert_allclose(found, expected[0], atol=1e-10)


@pytest.mark.torch
def test_no_axis_stands_for_all_of_them() -> None:
    (x,) = _normal((3, 4))
    spec = operator("LogSumExp", "x", "y", "dim:list_int=[] keep_dim:bool=false")
    (whole,) = _given(spec, x, dim=[], keep_dim=False)
    np.testing.assert_allclose(whole, np.log(np.exp(x).sum()))
    (rows,) = _given(spec, x, dim=[1], keep_dim=True)
    np.testing.assert_allclose(rows, np.log(np.exp(x).sum(1, keepdims=True)))
