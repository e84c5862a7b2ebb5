"""What PyTorch and its libraries ask of a device, beside its operators."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional


@pytest.mark.parametrize("use_reentrant", [True, False])
def test_a_checkpoint_drops_again_what_it_dropped(use_reentrant: bool) -> None:
    # The state of random numbers was not kept: PyTorch does so only for a device that is
    # "_initialized", and the second run drew another mask.
    from torch.utils.checkpoint import checkpoint

    x = torch.randn(50, device="npu", requires_grad=True)
    y = checkpoint(lambda v: F.dropout(v, 0.5).exp(), x, use_reentrant=use_reentrant)
    y.sum().backward()
    assert torch.equal(y.detach() != 1, x.grad != 0)


def test_random_numbers_are_found_where_libraries_look() -> None:
    import importlib

    random = importlib.import_module("torch.npu.random")
    state = random.get_rng_state()
    first = torch.rand(3, device="npu").cpu()
    random.set_rng_state(state)
    assert torch.equal(torch.rand(3, device="npu").cpu(), first)
    assert torch.npu.random is random


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("affine", [True, False])
@pytest.mark.parametrize("layout", [torch.contiguous_format, torch.channels_last], ids=str)
def test_groups_are_normalized_by_a_kernel(dtype: Any, affine: bool, layout: Any) -> None:
    # PyTorch's composite ran: rounded at each step in half types, and refused channels_last.
    chance = torch.Generator().manual_seed(0)
    x = torch.randn(2, 6, 5, 7, generator=chance) * 3 + 1
    weight = torch.randn(6, generator=chance) if affine else None
    bias = torch.randn(6, generator=chance) if affine else None
    push = torch.randn(2, 6, 5, 7, generator=chance).to(dtype)

    def run(device: str, kind: Any) -> list[torch.Tensor]:
        def leaf(value: Any) -> Any:
            return value if value is None else value.to(device, dtype).to(kind).requires_grad_()

        taken = [leaf(x), leaf(weight), leaf(bias)]
        y = F.group_norm(taken[0].contiguous(memory_format=layout), 3, *taken[1:])
        y.backward(push.to(device, kind))
        return [y.detach(), *(each.grad for each in taken if each is not None)]

    torch.npu.reset_fallbacks()
    got, wanted = run("npu", dtype), run("cpu", torch.float64)
    assert not [f for f in torch.npu.fallbacks() if "group_norm" in f.operator]
    unit = torch.finfo(dtype).eps
    for mine, reference in zip(got, wanted, strict=True):
        scale = reference.abs().max().item()
        assert (mine.cpu().double() - reference).abs().max().item() <= 4 * unit * scale


def test_zeros_without_memory_are_zeros() -> None:
    # Kernels read memory that is not there, and .cpu() ended the process.
    zeros = torch._efficientzerotensor(3, device="npu")
    assert zeros._is_zerotensor()
    assert zeros.cpu().tolist() == [0, 0, 0]
    assert (zeros + torch.ones(3, device="npu")).tolist() == [1, 1, 1]
    hessian = torch.func.hessian(lambda x: (x * x.exp()).sum())(torch.ones(2, device="npu"))
    assert hessian.cpu().diagonal().tolist() == pytest.approx([8.1548454] * 2)


def test_a_histogram_counts_whole_numbers() -> None:
    for dtype in (torch.int32, torch.int64):
        counts = torch.histc(torch.tensor([0, 1, 1], dtype=dtype, device="npu"), 2, min=0, max=1)
        assert counts.dtype == dtype
        assert counts.tolist() == [1, 2]


def test_what_the_cpu_refuses_is_refused() -> None:
    x = torch.ones(3, device="npu")
    with pytest.raises(RuntimeError, match="delta"):
        F.huber_loss(x, x, delta=-1.0)
    indices = torch.zeros(3, dtype=torch.long, device="npu")
    with pytest.raises(RuntimeError, match="single memory location"):
        torch.gather(x, 0, indices, out=torch.ones(1, device="npu").expand(3))
    with pytest.raises(RuntimeError, match="unsupported operation"):
        torch.gather(x, 0, indices, out=x)


def test_an_interrupt_lets_the_launch_end_and_is_one() -> None:
    # Ctrl-C was "RuntimeError: the launch was interrupted", and left results half written.
    x = torch.ones(1024, 1024, device="npu")
    total = torch.zeros(1024, 1024, device="npu")
    count = 0
    timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
    with pytest.raises(KeyboardInterrupt):
        timer.start()
        for _ in range(500):
            total.addmm_(x, x)
            count += 1
    timer.join()
    assert total.unique().tolist() in ([1024.0 * count], [1024.0 * (count + 1)])


def test_attention_is_mapped_over_a_batch() -> None:
    # "Batching rule not implemented for aten::_scaled_dot_product_fused_attention_overrideable".
    q = torch.randn(3, 2, 2, 5, 4, generator=torch.Generator().manual_seed(0))

    def attend(x: Any) -> Any:
        return F.scaled_dot_product_attention(x, x, x)

    for function in (attend, torch.func.grad(lambda x: attend(x).square().sum())):
        mapped = torch.vmap(function)
        torch.testing.assert_close(mapped(q.to("npu")).cpu(), mapped(q), atol=2e-5, rtol=2e-5)


def test_factors_of_products_may_be_complex() -> None:
    # "value cannot be converted to type double without overflow".
    a = torch.randn(2, 3, 3, dtype=torch.complex64, generator=torch.Generator().manual_seed(0))
    factors = {"beta": 1j, "alpha": 2 - 1j}
    for call in (
        lambda x: torch.addmm(x[0], x[0], x[1], **factors),
        lambda x: torch.baddbmm(x, x, x, **factors),
        lambda x: torch.addmv(x[0, 0], x[0], x[1, 0], **factors),
        lambda x: torch.addr(x[0], x[0, 0], x[0, 1], **factors),
        lambda x: torch.add(x, x, alpha=1j),
    ):
        torch.testing.assert_close(call(a.to("npu")).cpu(), call(a))


def test_a_model_runs_under_data_parallel() -> None:
    # "module 'torch._C' has no attribute '_scatter'": PyTorch's CPU build lacks it.
    from torch.nn.parallel import comm

    model = torch.nn.DataParallel(torch.nn.Linear(4, 2).to("npu"))
    x = torch.randn(3, 4)
    got = model(x.to("npu"))
    assert torch.equal(got.cpu(), model.module(x.to("npu")).cpu())
    parts = comm.scatter(torch.arange(4).to("npu"), [0, 0], [1, 3])
    assert [part.tolist() for part in parts] == [[0], [1, 2, 3]]
    assert comm.gather(parts, destination="cpu").tolist() == [0, 1, 2, 3]
    assert [each.tolist() for each in comm.broadcast(parts[1], [0, 0])] == [[1, 2, 3]] * 2
    copies = comm.broadcast_coalesced(parts, [0, 0])
    assert [[each.tolist() for each in copy] for copy in copies] == [[[0], [1, 2, 3]]] * 2
