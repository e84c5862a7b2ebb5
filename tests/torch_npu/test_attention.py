"""Scaled-dot-product attention in one kernel, and its gradient, against the CPU's in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn.functional import scaled_dot_product_attention as attend  # noqa: E402

FORWARD = "aten::_scaled_dot_product_fused_attention_overrideable"
TOLERANCE = {torch.float32: 2e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def operands(dtype: torch.dtype, shapes: list[tuple[int, ...]]) -> list[Any]:
    generator = torch.Generator().manual_seed(0)
    return [torch.randn(shape, generator=generator).to(dtype) for shape in shapes]


def both(given: list[Any], call: Callable[..., Any], dtype: torch.dtype) -> None:
    """Hold results and gradients on npu against float64's on the CPU."""
    wide = [x.double().requires_grad_() for x in given]
    moved = [x.npu().requires_grad_() for x in given]
    expected = call(*wide)
    found = call(*moved)
    weight = torch.linspace(-1, 1, expected.numel(), dtype=torch.float64).view(expected.shape)
    (expected * weight).sum().backward()
    (found * weight.to(dtype).npu()).sum().backward()
    tolerance = TOLERANCE[dtype]
    for mine, his in [
        (found, expected),
        *((a.grad, b.grad) for a, b in zip(moved, wide, strict=True)),
    ]:
        assert mine.dtype == dtype
        error = (mine.detach().cpu().double() - his.detach()).abs().max()
        assert error <= tolerance * max(1.0, float(his.detach().abs().max()))


def counted() -> dict[str, tuple[int, int]]:
    return {row.operator: (row.native, row.fallback) for row in torch.npu.kernel_calls()}


@pytest.mark.parametrize("dtype", TOLERANCE, ids=str)
@pytest.mark.parametrize("is_causal", [False, True])
def test_attention_is_one_kernel_and_right(dtype: torch.dtype, is_causal: bool) -> None:
    given = operands(dtype, [(2, 3, 37, 24), (2, 3, 50, 24), (2, 3, 50, 40)])
    torch.npu.reset_fallbacks()
    both(given, lambda q, k, v: attend(q, k, v, is_causal=is_causal), dtype)
    assert counted()[FORWARD] == (1, 0)
    assert counted()[f"{FORWARD}_backward"] == (1, 0)
    assert list(torch.npu.fallbacks()) == []


@pytest.mark.parametrize("shape", [(2, 4, 19, 33), (4, 19, 33), (1, 1, 19, 33), (19, 1), (1, 33)])
def test_a_mask_is_added_wherever_it_is_broadcast(shape: tuple[int, ...]) -> None:
    given = operands(torch.float32, [(2, 4, 19, 16), (2, 4, 33, 16), (2, 4, 33, 16), shape])
    torch.npu.reset_fallbacks()
    both(given, lambda q, k, v, m: attend(q, k, v, attn_mask=m), torch.float32)
    assert counted()[FORWARD] == (1, 0)


def test_a_query_that_sees_no_key_gives_zeros_and_no_gradient() -> None:
    seen = torch.ones(5, 7, dtype=torch.bool)
    seen[2] = False
    given = operands(torch.float32, [(1, 2, 5, 8), (1, 2, 7, 8), (1, 2, 7, 8)])
    both(given, lambda q, k, v: attend(q, k, v, attn_mask=seen.to(q.device)), torch.float32)


def test_heads_share_keys_and_values() -> None:
    given = operands(torch.float32, [(2, 6, 9, 16), (2, 2, 20, 16), (2, 2, 20, 16)])
    torch.npu.reset_fallbacks()
    both(given, lambda q, k, v: attend(q, k, v, enable_gqa=True), torch.float32)
    assert counted()[FORWARD] == (1, 0)


def test_heads_that_lie_in_one_row_are_read_there_and_go_back() -> None:
    def call(x: Any) -> Any:
        q, k, v = (part.view(2, 21, 4, 16).transpose(1, 2) for part in x.chunk(3, -1))
        return attend(q, k, v).transpose(1, 2).reshape(2, 21, 64)

    both(operands(torch.float32, [(2, 21, 192)]), call, torch.float32)
    x = torch.randn(2, 21, 4, 16, device="npu").transpose(1, 2)
    assert attend(x, x, x).stride() == x.stride()


def test_queries_of_more_tasks_than_cores_are_all_served() -> None:
    given = operands(torch.float16, [(3, 8, 130, 64), (3, 8, 300, 64), (3, 8, 300, 64)])
    both(given, lambda q, k, v: attend(q, k, v, scale=0.2), torch.float16)


def test_what_the_kernel_lacks_goes_pytorchs_own_way() -> None:
    q = torch.randn(1, 2, 8, 16, device="npu")
    torch.npu.reset_fallbacks()
    attend(q, q, q, dropout_p=0.5)
    attend(q.double(), q.double(), q.double())
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        attend(q, q, q)
    assert FORWARD not in counted()
    operator = torch.ops.aten._scaled_dot_product_fused_attention_overrideable
    with pytest.raises(NotImplementedError, match="attention with dropout"):
        operator(q, q, q, dropout_p=0.5)


def test_which_names_the_kernel_of_attention() -> None:
    q = torch.randn(1, 2, 8, 16, device="npu")
    assert f"{FORWARD}: kernel attention" in torch.npu.which(attend, q, q, q)
