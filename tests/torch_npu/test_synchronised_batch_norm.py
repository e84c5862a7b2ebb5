"""The steps of batch norm over several processes, joined as those would join them."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")


def test_the_steps_of_two_processes_come_to_the_whole_batch() -> None:
    generator = torch.Generator().manual_seed(0)
    x = torch.randn(6, 3, 5, generator=generator, dtype=torch.float64)
    grad = torch.randn(6, 3, 5, generator=generator, dtype=torch.float64)
    norm = torch.nn.BatchNorm1d(3, dtype=torch.float64)
    torch.nn.init.normal_(norm.weight, generator=generator)
    running = [norm.running_mean.clone(), norm.running_var.clone()]
    whole = x.clone().requires_grad_()
    expected = norm(whole)
    expected.backward(grad)

    parts, grads = ([t[:2], t[2:]] for t in (x.float().npu(), grad.float().npu()))
    weight, bias = norm.weight.detach().float().npu(), norm.bias.detach().float().npu()
    mean_here, var_here = (each.float().npu() for each in running)
    pairs = [torch.batch_norm_stats(part, norm.eps) for part in parts]
    means, invstds = (torch.stack(each) for each in zip(*pairs, strict=True))
    counts = torch.tensor([10.0, 20.0], device="npu")
    mean, invstd = torch.batch_norm_gather_stats_with_counts(
        parts[0], means, invstds, mean_here, var_here, norm.momentum, norm.eps, counts
    )
    out = torch.cat(
        [torch.batch_norm_elemt(p, weight, bias, mean, invstd, norm.eps) for p in parts]
    )
    sums = [
        torch.batch_norm_backward_reduce(g, p, mean, invstd, weight, True, True, True)
        for g, p in zip(grads, parts, strict=True)
    ]
    total, centred, to_weight, to_bias = (sum(each) for each in zip(*sums, strict=True))
    back = torch.cat(
        [
            torch.batch_norm_backward_elemt(
                g, p, mean, invstd, weight, total, centred, counts.int()
            )
            for g, p in zip(grads, parts, strict=True)
        ]
    )

    def near(actual: torch.Tensor, wanted: torch.Tensor) -> None:
        torch.testing.assert_close(actual.cpu(), wanted.float(), rtol=1e-5, atol=1e-5)

    near(out, expected.detach())
    into = torch.empty(0, device="npu")
    torch.batch_norm_elemt(parts[0], weight, bias, mean, invstd, norm.eps, out=into)
    near(into, expected.detach()[:2])
    near(mean_here, norm.running_mean)
    near(var_here, norm.running_var)
    near(back, whole.grad)
    near(to_weight, norm.weight.grad)
    near(to_bias, norm.bias.grad)
