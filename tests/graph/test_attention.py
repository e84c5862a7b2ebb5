"""Attention that models spell out, with masks and guards, is one kernel."""

from __future__ import annotations

import math
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from opkit.graph.backend import opkit, watching  # noqa: E402
from opkit.sanitizer import Check  # noqa: E402

pytestmark = pytest.mark.torch


def _grouped(q: Any, k: Any, v: Any, is_causal: bool, is_guarded: bool = True) -> Any:
    """Attention of heads side by side, of which several share keys: one product a group."""
    batches, rows, heads, width = q.shape
    keys, own = k.shape[1:3]
    shared = heads // own
    q = q.reshape(batches, rows, own, shared, width).permute(0, 2, 3, 1, 4)
    q = q.reshape(batches, own, shared * rows, width)
    k, v = (each.permute(0, 2, 1, 3) for each in (k, v))
    scores = torch.matmul(q, k.transpose(-2, -1)) / math.sqrt(width)
    scores = scores.reshape(batches, own, shared, rows, keys)
    if is_causal:
        row = torch.arange(rows, device=q.device).unsqueeze(-1)
        hidden = torch.arange(keys, device=q.device).unsqueeze(0) > row + (keys - rows)
        scores = scores.masked_fill(hidden, float("-inf"))
    weights = torch.softmax(scores, dim=-1)
    if is_guarded:
        largest = scores.max(dim=-1, keepdim=True).values
        sees_nothing = torch.isinf(largest) & (largest < 0)
        weights = torch.where(sees_nothing, torch.zeros_like(weights), weights)
    result = torch.matmul(weights.reshape(batches, own, shared * rows, keys), v)
    result = result.reshape(batches, own, shared, rows, width).permute(0, 3, 1, 2, 4)
    return result.reshape(batches, rows, heads, width).contiguous()


def _run(function: Any, *given: Any) -> list[tuple[str, ...]]:
    """Compile and run a function under every check, compare with float64, and return the operators
    of its kernels."""
    with watching() as graphs, Check(()) as checks, torch.no_grad():
        found = torch.compile(function, backend=opkit, dynamic=False)(*given)
    assert not checks.findings, checks.findings[0]
    tensors = (each.double() if each.is_floating_point() else each for each in given)
    torch.testing.assert_close(found.double(), function(*tensors), rtol=1e-3, atol=1e-3)
    return [k.operators for graph in graphs for s in graph.segments for k in s.plan.kernels]


@pytest.mark.parametrize(
    ("heads", "own", "rows", "keys", "is_causal", "is_guarded"),
    [
        (4, 4, 40, 40, True, True),
        (6, 2, 33, 50, True, True),
        (6, 2, 33, 50, False, False),
        (4, 1, 20, 30, False, True),
    ],
)
def test_heads_that_share_keys_are_one_kernel(
    heads: int, own: int, rows: int, keys: int, is_causal: bool, is_guarded: bool
) -> None:
    # The transposes alone took ten times as long as the library's kernel.
    q = torch.randn(2, rows, heads, 32).half()
    k, v = (torch.randn(2, keys, own, 32).half() for _ in range(2))
    kernels = _run(lambda *given: _grouped(*given, is_causal, is_guarded), q, k, v)
    assert kernels == [("attention",)]


def test_a_guard_that_is_true_for_other_rows_keeps_what_it_says() -> None:
    def attention(q: Any, k: Any, v: Any) -> Any:
        scores = torch.matmul(q, k.transpose(-2, -1))
        small = scores.max(dim=-1, keepdim=True).values < 1.0
        weights = torch.where(small, 0.0, torch.softmax(scores, dim=-1))
        return torch.matmul(weights, v)

    kernels = _run(attention, *(torch.randn(1, 2, 24, 16).half() * 0.5 for _ in range(3)))
    assert ("attention",) not in kernels


def test_queries_that_see_no_key_keep_their_zeros() -> None:
    def attention(q: Any, k: Any, v: Any, hidden: Any) -> Any:
        scores = torch.matmul(q, k.transpose(-2, -1)) * 0.25
        scores = scores.masked_fill(hidden, float("-inf"))
        largest = scores.max(dim=-1, keepdim=True).values
        nothing = torch.isinf(largest) & (largest < 0)
        return torch.matmul(torch.where(nothing, 0.0, torch.softmax(scores, dim=-1)), v)

    hidden = torch.zeros(24, 24, dtype=torch.bool)
    hidden[3] = True
    given = [torch.randn(1, 2, 24, 16).half() for _ in range(3)]
    _run(attention, *given, hidden)


def _hidden(rows: int, keys: int) -> Any:
    """Truths of what is seen: one query sees nothing, another no key of the first half."""
    seen = torch.ones(2, 1, rows, keys, dtype=torch.bool)
    seen[0, 0, 1] = False
    seen[:, :, 2:, : keys // 2] = False
    return seen


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("is_truth", [True, False])
def test_a_query_that_sees_no_key_gives_zeros(dtype: Any, is_truth: bool) -> None:
    # It gave NaN in float32, and in half types wherever a whole step of keys was hidden.
    keys = 700
    q = torch.randn(2, 2, 4, 16).to(dtype)
    k, v = (torch.randn(2, 2, keys, 16).to(dtype) for _ in range(2))
    seen = _hidden(4, keys)
    mask = seen if is_truth else torch.zeros(seen.shape, dtype=dtype).masked_fill(~seen, -math.inf)

    def attend(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=mask)

    with watching() as graphs, torch.no_grad():
        found = torch.compile(attend, backend=opkit, dynamic=False)(q, k, v, mask)
    kernels = [k.operators for graph in graphs for s in graph.segments for k in s.plan.kernels]
    assert (("attention",) in kernels) == (dtype == torch.float16), kernels
    wanted = attend(*(each.double() for each in (q, k, v)), mask if is_truth else mask.double())
    assert not wanted[0, :, 1].any()
    torch.testing.assert_close(found.double(), wanted, rtol=1e-3, atol=1e-3)


def test_a_query_that_sees_no_key_has_gradients_of_zero() -> None:
    # They were NaN, and with them those of all keys and values.
    seen = _hidden(4, 6)

    def gradients(function: Any) -> Any:
        torch.manual_seed(0)
        tensors = [torch.randn(2, 2, n, 8, requires_grad=True) for n in (4, 6, 6)]
        function(*tensors).square().sum().backward()
        return [each.grad for each in tensors]

    def attend(q: Any, k: Any, v: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, attn_mask=seen)

    found = gradients(torch.compile(attend, backend=opkit, dynamic=False))
    torch.testing.assert_close(found, gradients(attend), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16])
@pytest.mark.parametrize("own", [1, 2])
def test_heads_that_share_keys_and_their_gradients_are_compiled(dtype: Any, own: int) -> None:
    # They were left to torch, in the training of most language models.
    mask = torch.zeros(1, 1, 5, 7, dtype=dtype)
    mask[..., 4:] = -math.inf

    def attend(q: Any, k: Any, v: Any, mask: Any) -> Any:
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, attn_mask=mask, enable_gqa=True
        )

    def results(function: Any, dtype: Any) -> Any:
        torch.manual_seed(0)
        sizes = (4, 5), (own, 7), (own, 7)
        given = [torch.randn(2, *each, 8).half().to(dtype).requires_grad_() for each in sizes]
        y = function(*given, mask.to(dtype))
        y.square().sum().backward()
        return [y, *(each.grad for each in given)]

    with watching() as graphs:
        found = results(torch.compile(attend, backend=opkit, dynamic=False), dtype)
    assert not [left for graph in graphs for left in graph.left if not left.is_view]
    limit = 1e-5 if dtype == torch.float32 else 2e-2
    for mine, exact in zip(found, results(attend, torch.float64), strict=True):
        torch.testing.assert_close(mine.double(), exact, rtol=limit, atol=limit)
