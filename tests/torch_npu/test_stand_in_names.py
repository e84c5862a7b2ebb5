"""Every function of torch_npu's documents: there, or refused by its name with the reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402 - needs torch

from opkit.torch_npu.stand_in import torch_npu  # noqa: E402 - needs torch
from opkit.torch_npu.stand_in.torch_npu.missing import REASONS  # noqa: E402 - needs torch

pytestmark = pytest.mark.torch


def near(actual: torch.Tensor, expected: torch.Tensor) -> None:
    assert actual.device.type == "npu"
    torch.testing.assert_close(actual.cpu(), expected, rtol=1e-5, atol=1e-5)


def test_what_is_missing_says_why() -> None:
    for name, reason in REASONS.items():
        assert not hasattr(torch_npu, name)
        with pytest.raises(AttributeError, match=f"no {name}: ") as caught:
            getattr(torch_npu, name)
        assert reason in str(caught.value)
    with pytest.raises(AttributeError, match="has no attribute 'npu_nothing'"):
        _ = torch_npu.npu_nothing


def test_nothing_is_there_and_missing() -> None:
    assert not set(REASONS) & set(torch_npu.__all__)
    assert all(hasattr(torch_npu, name) for name in torch_npu.__all__)


_X, _W = (2, 4, 5, 6), (6, 2, 3, 3)
_SIZES = ([2, 1], [1, 1], [1, 1], 2)


def _pair(*shapes: tuple[int, ...]) -> tuple[list[torch.Tensor], list[torch.Tensor]]:
    here = [torch.randn(shape) for shape in shapes]
    return here, [x.to("npu") for x in here]


def test_convolutions() -> None:
    (x, w, b), (x_, w_, b_) = _pair(_X, _W, (6,))
    expected = F.conv2d(x, w, b, *_SIZES)
    near(torch_npu.npu_conv2d(x_, w_, b_, *_SIZES), expected)
    near(torch_npu.npu_convolution(x_, w_, b_, *_SIZES), expected)
    (w, b), (w_, b_) = _pair((4, 3, 3, 3), (6,))
    stride, padding, dilation, groups = _SIZES
    expected = F.conv_transpose2d(x, w, b, stride, padding, 0, groups, dilation)
    moved = (padding, [0, 0], stride, dilation, groups)
    near(torch_npu.npu_conv_transpose2d(x_, w_, b_, *moved), expected)
    near(torch_npu.npu_convolution_transpose(x_, w_, b_, *moved), expected)
    (x, w), (x_, w_) = _pair((1, 2, 3, 4, 4), (2, 2, 3, 3, 3))
    near(torch_npu.npu_conv3d(x_, w_, None), F.conv3d(x, w, padding=1))


def test_what_came_before_is_weighed() -> None:
    (x, w), (x_, w_) = _pair((6, 2, 4), (3, 4))
    mask = torch.rand(2, 6) > 0.3
    expected = torch.zeros(6, 2, 4)
    for s in range(6):
        for k in range(3):
            if s - 2 + k >= 0:
                expected[s] += w[k] * x[s - 2 + k]
    near(torch_npu.npu_masked_causal_conv1d(x_, w_), expected)
    expected = expected * mask.t()[..., None]
    near(torch_npu.npu_masked_causal_conv1d(x_, w_, mask=mask.npu()), expected)


def test_slices_by_lists_and_masks() -> None:
    x = torch.arange(60.0).reshape(3, 4, 5)
    take = torch_npu.npu_indexing
    near(take(x.npu(), [0, 1], [2, 3], [1, 1]), x[0:2, 1:3])
    near(take(x.npu(), [1, 1], [2, 3], [1, 2], begin_mask=1, end_mask=2), x[:2, 1::2])
    near(take(x.npu(), [0, 2], [0, 4], [1, 1], ellipsis_mask=1), x[..., 2:4])
    near(take(x.npu(), [1, 0, 1], [2, 0, 3], [1, 1, 1], 0, 0, 0, 2, 1), x[1, None, 1:3])
    with pytest.raises(ValueError, match="strides are"):
        take(x.npu(), [2], [0], [-1])


def test_norms_and_losses() -> None:
    (x, w, b), (x_, w_, b_) = _pair((3, 4, 6), (4,), (4,))
    y, mean, rstd = torch_npu.npu_group_norm_swish(x_, 2, w_, b_, swish_scale=1.5)
    normed = F.group_norm(x, 2, w, b)
    near(y, normed * torch.sigmoid(1.5 * normed))
    near(mean, x.reshape(3, 2, 12).mean(-1))
    near(rstd, (x.reshape(3, 2, 12).var(-1, correction=0) + 1e-5).rsqrt())
    near(torch_npu.npu_layer_norm_eval(x_, [6]), F.layer_norm(x, [6]))
    logits, target = x.reshape(12, 6), torch.randint(0, 6, (12,))
    loss, log, z, lse = torch_npu.npu_cross_entropy_loss(logits.npu(), target.npu())
    near(loss, F.cross_entropy(logits, target).reshape(1))
    near(log, F.log_softmax(logits, -1))
    assert z.numel() == lse.numel() == 0
    with pytest.raises(NotImplementedError, match="z loss"):
        torch_npu.npu_cross_entropy_loss(logits.npu(), target.npu(), return_zloss=True)


def test_updates_in_place_and_beside() -> None:
    data = torch.tensor([[[[1.0] * 8, [2.0] * 8]]]).npu()
    new = torch.full((1, 1, 1, 8), 3.0).npu()
    expected = torch.tensor([[[[1.0] * 8, [3.0] * 8]]])
    near(torch_npu.scatter_update(data, torch.tensor([1]).npu(), new, -2), expected)
    assert data[0, 0, 1, 0].item() == 2
    assert torch_npu.scatter_update_(data, torch.tensor([[0, 1]]).npu(), new, 2) is data
    near(data, expected)
    with pytest.raises(ValueError, match="axis is 0"):
        torch_npu.scatter_update(data, torch.tensor([1]).npu(), new, 0)
    x = torch.zeros(4, 3).npu()
    found = torch_npu.npu_scatter_nd_update_(
        x, torch.tensor([[2], [0]], dtype=torch.int32).npu(), torch.ones(2, 3).npu()
    )
    assert found is x
    assert x[:, 0].cpu().tolist() == [1, 0, 1, 0]
    a, b = torch.tensor([0, 0, -1]).int().npu(), torch.ones(3, dtype=torch.int32).npu()
    assert torch_npu.copy_memory_(a, b).cpu().tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match=r"expected torch\.int32"):
        torch_npu.copy_memory_(a, b.float())
    assert torch_npu.one_(torch.zeros(2).npu()).cpu().tolist() == [1, 1]


def test_small_names() -> None:
    x = torch.arange(6.0).npu()
    near(torch_npu.npu_reshape(x, (2, 3)), torch.arange(6.0).reshape(2, 3))
    made = torch_npu.empty_with_format((2, 3), dtype=torch.float16, device="npu", acl_format=29)
    assert (made.shape, made.dtype, torch_npu.get_npu_format(made)) == ((2, 3), torch.float16, 29)
    assert torch_npu.npu_prefetch(x, None, 24) is None
    with pytest.raises(ValueError, match="24 bytes"):
        torch_npu.npu_prefetch(x, None, 4, 24)
    drawn = torch_npu.npu_sim_exponential_(torch.zeros(4096).npu(), 2.0).cpu()
    assert drawn.min() >= 0
    assert 0.4 < drawn.mean() < 0.6
    boxes = torch.tensor([[0.0, 0, 2, 2], [2, 2, 6, 3]]).npu()
    flags = torch_npu.npu_anchor_response_flags(boxes, [3, 4], [2, 2], 2)
    assert flags.nonzero().flatten().cpu().tolist() == [0, 1, 12, 13]


def test_rows_go_to_experts_and_come_back() -> None:
    x, experts = torch.randn(4, 3), torch.tensor([[1, 0], [2, 1], [0, 2], [1, 2]]).int()
    rows = torch.arange(8).reshape(2, 4).t().int()
    taken, places, order = torch_npu.npu_moe_init_routing(x.npu(), rows.npu(), experts.npu(), 4)
    assert order.cpu().tolist() == sorted(experts.flatten().tolist())
    for row in range(4):
        for choice in range(2):
            near(taken[places[rows[row, choice]].item()], x[row])
    ends = torch_npu.npu_moe_compute_expert_tokens(order, 4)
    assert ends.cpu().tolist() == [2, 5, 8, 8]


def test_products_of_groups() -> None:
    (x, w, b), (x_, w_, b_) = _pair((6, 3), (2, 3, 5), (2, 5))
    expected = torch.cat([x[:4] @ w[0] + b[0], x[4:] @ w[1] + b[1]])
    given: dict[str, Any] = {"split_item": 3, "group_type": 0}
    (y,) = torch_npu.npu_grouped_matmul([x_], [w_], bias=[b_], group_list=[4, 6], **given)
    near(y, expected)
    sizes = torch.tensor([4, 2]).npu()
    (y,) = torch_npu.npu_grouped_matmul(
        [x_], [w_], bias=[b_], group_list=sizes, group_list_type=1, **given
    )
    near(y, expected)
    apart = torch_npu.npu_grouped_matmul([x_[:4], x_[4:]], [*w_], group_type=-1)
    near(apart[1], x[4:] @ w[1])
    with pytest.raises(NotImplementedError, match="scale"):
        torch_npu.npu_grouped_matmul([x_], [w_], scale=[b_], group_list=[4, 6])
    (a, c), (a_, c_) = _pair((4, 2, 3), (2, 3, 5))
    found = torch_npu.npu_transpose_batchmatmul(a_, c_, perm_x1=(1, 0, 2))
    near(found, (a.transpose(0, 1) @ c).transpose(0, 1))


def test_gates_and_parts_of_attention() -> None:
    x = torch.randn(4, 6) * 6
    a, b = x[:, ::2].clamp(max=7), x[:, 1::2].clamp(-7, 7)
    expected = a * torch.sigmoid(1.702 * a) * (b + 1)
    near(torch_npu.npu_clipped_swiglu(x.npu()), expected)
    rows = torch_npu.npu_clipped_swiglu(x.npu(), group_index=torch.tensor([1, 1]).npu())
    near(rows[:2], expected[:2])
    a, b = x[:, :3].clamp(max=2), x[:, 3:].clamp(-2, 2)
    found = torch_npu.npu_clipped_swiglu(x.npu(), interleaved=False, limit=2.0, alpha=1.0, bias=0.0)
    near(found, F.silu(a) * b)
    scores, values = torch.randn(5, 8), torch.randn(8, 4)
    parts = [slice(0, 3), slice(3, 8)]
    logs = [scores[:, p].logsumexp(-1).npu() for p in parts]
    outs = [(scores[:, p].softmax(-1) @ values[p]).npu() for p in parts]
    out, log = torch_npu.npu_attention_update(logs, outs, 1)
    near(out, scores.softmax(-1) @ values)
    near(log, scores.logsumexp(-1))


def test_sampling_keeps_the_largest() -> None:
    logits = torch.tensor([[1.0, 3, 2, 0], [0, 0, 5, 1]])
    p, k = torch.tensor([1.0, 0.5]), torch.tensor([2, 4]).int()
    kept = torch_npu.npu_top_k_top_p(logits.npu(), p.npu(), k.npu()).cpu()
    assert kept.isfinite().tolist() == [[False, True, True, False], [False, False, True, False]]
    assert torch.equal(kept[0, 1:3], logits[0, 1:3])


@pytest.mark.parametrize("divides", [True, False])
def test_numbers_are_quantised_and_come_back(divides: bool) -> None:
    x = torch.tensor([[1.0, -2.0, 300.0], [0.5, 1.5, -300.0]])
    scales = torch.tensor([0.5, 1.0, 2.0])
    zero = torch.tensor([1, 0, 0]).int()
    found = torch_npu.npu_quantize(x.npu(), scales.npu(), zero.npu(), torch.qint8, 1, divides)
    wide = x / scales if divides else x * scales
    assert torch.equal(found.cpu(), (wide + zero).round().clamp(-128, 127).to(torch.int8))
    back = torch_npu.npu_anti_quant(found, scales.npu(), offset=-zero.npu())
    assert back.dtype == torch.float16
    expected = ((found.cpu().float() - zero) * scales).half()
    assert torch.equal(back.cpu(), expected)


_REFUSED: dict[str, Callable[[], object]] = {
    "torch.quint4x2": lambda: torch_npu.npu_quantize(
        torch.ones(8), torch.ones(1), None, torch.quint4x2
    ),
    "int8": lambda: torch_npu.npu_anti_quant(torch.ones(2, dtype=torch.int32), torch.ones(1)),
    "products alone": lambda: torch_npu.npu_transpose_batchmatmul(
        torch.ones(1, 1, 1), torch.ones(1, 1, 1), scale=torch.ones(1)
    ),
}


@pytest.mark.parametrize("said", _REFUSED)
def test_what_is_not_held_is_refused(said: str) -> None:
    with pytest.raises(NotImplementedError, match=said):
        _REFUSED[said]()
