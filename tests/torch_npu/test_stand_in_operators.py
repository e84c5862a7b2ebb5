"""Operators of torch_npu against what their documents say, on the device."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from opkit.torch_npu.stand_in import torch_npu  # noqa: E402 - needs torch


def npu(values: object, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    return torch.tensor(values, dtype=dtype, device="npu")


def near(actual: torch.Tensor, expected: object, tolerance: float = 1e-5) -> None:
    assert actual.device.type == "npu"
    wanted = expected if torch.is_tensor(expected) else torch.tensor(expected)
    torch.testing.assert_close(
        actual.cpu(), wanted, rtol=tolerance, atol=tolerance, equal_nan=True, check_dtype=False
    )


def test_boxes_are_decoded_and_encoded() -> None:
    boxes, deltas = npu([[1, 2, 3, 4], [3, 4, 5, 6]]), npu([[5, 6, 7, 8], [7, 8, 9, 6]])
    none, ones = (0, 0, 0, 0), (1, 1, 1, 1)
    found = torch_npu.npu_bounding_box_decode(boxes, deltas, *none, *ones, (10, 10), 0.1)
    near(found, [[2.5, 6.5, 9, 9], [9, 9, 9, 9]])
    wanted = npu([[2.0, 2, 6, 9], [1, 3, 7, 8]])
    there = torch_npu.npu_bounding_box_encode(boxes, wanted, *none, 0.1, 0.1, 0.2, 0.2)
    back = torch_npu.npu_bounding_box_decode(
        boxes, there, *none, 0.1, 0.1, 0.2, 0.2, (100, 100), 0.01
    )
    near(back, wanted.cpu(), 1e-4)


def test_signs_are_packed_eight_to_a_byte() -> None:
    signs = npu([5, 4, 3, 2, 0, -1, -2, 4, 3, 2, 1, 0, -1, -2])
    packed = torch_npu.npu_sign_bits_pack(signs, 2)
    assert packed.cpu().tolist() == [[159], [15]]
    unpacked = torch_npu.npu_sign_bits_unpack(packed.flatten(), 1, torch.float16)
    assert unpacked.dtype == torch.float16
    expected = torch.where(signs.cpu() >= 0, 1.0, -1.0).half()
    assert torch.equal(unpacked.cpu()[0, :14], expected)


def test_norms_and_activations() -> None:
    x, y = torch.randn(4, 6), torch.randn(4, 6)
    gamma = torch.randn(6)
    out, rstd, total = torch_npu.npu_add_rms_norm(x.npu(), y.npu(), gamma.npu())
    near(total, x + y)
    near(out, torch.nn.functional.rms_norm(x + y, (6,), gamma, 1e-6))
    assert rstd.shape == (4, 1)
    near(torch_npu.npu_gelu(x.npu(), "tanh"), torch.nn.functional.gelu(x, approximate="tanh"))
    near(torch_npu.npu_gelu_mul(x.npu()), torch.nn.functional.gelu(x[:, :3]) * x[:, 3:])
    silu, mean, _ = torch_npu.npu_group_norm_silu(x.npu(), gamma.npu(), None, 2)
    near(silu, torch.nn.functional.silu(torch.nn.functional.group_norm(x, 2, gamma)))
    near(mean, x.reshape(4, 2, 3).mean(-1))


def test_rotary_positions_of_pairs() -> None:
    x = torch.arange(1.0, 9).reshape(1, 1, 2, 4)
    zero, one = torch.zeros_like(x), torch.ones_like(x)
    near(torch_npu.npu_interleave_rope(x.npu(), one.npu(), zero.npu()), x[..., [0, 2, 1, 3]])
    turned = torch_npu.npu_interleave_rope(x.npu(), zero.npu(), one.npu())
    near(turned, torch.tensor([[[[-2.0, -4, 1, 3], [-6, -8, 5, 7]]]]))


def test_experts_are_picked() -> None:
    x, finished = torch.tensor([[1.0, 3, 2], [5, 4, 0]]), torch.tensor([False, True])
    values, experts, rows = torch_npu.npu_moe_gating_top_k_softmax(x.npu(), finished.npu(), 2)
    near(values, torch.softmax(x, -1).topk(2).values)
    assert experts.cpu().tolist() == [[1, 2], [3, 3]]
    assert rows.cpu().tolist() == [[0, 2], [1, 3]]


def test_quantised_rows_come_near_what_they_were() -> None:
    x = torch.randn(3, 5)
    values, scale = torch_npu.npu_dynamic_quant(x.npu())
    assert values.dtype == torch.int8 and scale.shape == (3,)
    near(values.float() * scale.unsqueeze(-1), x, 0.02)
    with pytest.raises(NotImplementedError, match="int8"):
        torch_npu.npu_dynamic_quant(x.npu(), dst_type=torch.int32)


def test_a_vocabulary_in_two_parts_gives_the_whole_s_loss() -> None:
    x, weight, target = torch.randn(5, 4), torch.randn(6, 4), torch.tensor([0, 5, 2, 3, 1])
    parts = [
        torch_npu.npu_fused_linear_online_max_sum(
            x.npu(), weight[at : at + 3].npu(), target.npu(), at, at + 2, return_logits=True
        )
        for at in (0, 3)
    ]
    largest = torch.maximum(parts[0][0], parts[1][0])
    sums = sum(part[1] * torch.exp(part[0] - largest) for part in parts)
    bits = [bin(part[3].cpu().item())[2:].rjust(8, "0") for part in parts]
    assert bits == ["01010111", "10101111"]
    inside = [torch.tensor([bit == "0" for bit in text[:5]]).npu() for text in bits]
    predicted = sum(
        torch.where(is_in, part[2] + part[0] - largest, 0.0)
        for part, is_in in zip(parts, inside, strict=True)
    )
    loss, _ = torch_npu.npu_fused_cross_entropy_loss_with_max_sum(largest, sums, predicted)
    near(loss, torch.nn.functional.cross_entropy(x @ weight.t(), target, reduction="none"))


def test_small_operators() -> None:
    x = torch.tensor([[3.0, 1, 2], [4, 6, 5]])
    near(torch_npu.npu_sort_v2(x.npu(), descending=True), [[3.0, 2, 1], [6, 5, 4]])
    values, places = torch_npu.npu_max(x.npu(), 1)
    near(values, [3.0, 6])
    assert places.dtype == torch.int32 and places.cpu().tolist() == [0, 1]
    assert torch_npu.npu_min(x.npu(), 0)[1].cpu().tolist() == [0, 0, 0]
    near(torch_npu.npu_broadcast(x[:, :1].npu(), (2, 3)), x[:, :1].expand(2, 3))
    there = torch.tensor([[1]]).npu()
    near(torch_npu.npu_scatter_nd_update(x.npu(), there, torch.zeros(1, 3).npu())[1], [0.0] * 3)
    sums, squares = torch_npu.batch_norm_reduce(x.reshape(1, 2, 3, 1).npu(), 1e-5)
    near(sums, [6.0, 15])
    near(squares, [14.0, 77])
    loss = torch_npu.npu_softmax_cross_entropy_with_logits(x.npu(), torch.eye(2, 3).npu())
    near(loss, torch.nn.functional.cross_entropy(x, torch.tensor([0, 1]), reduction="none"))
    dropped = torch_npu.contrib.function.dropout_with_byte_mask(torch.ones(64).npu(), p=0.5)
    assert set(dropped.cpu().tolist()) == {0.0, 2.0}
    assert isinstance(torch_npu.contrib.module.DropoutWithByteMask(p=0.1), torch.nn.Dropout)
