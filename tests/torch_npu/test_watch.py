"""Which module and line each launch of a model comes from."""

from __future__ import annotations

from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from opkit.profiling import Place, Profile  # noqa: E402
from opkit.torch_npu import Watch  # noqa: E402 - needs torch


class Gate(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scale = torch.nn.Parameter(torch.ones(4))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.sigmoid(x.t().t()) * self.scale


class Net(torch.nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.gates = torch.nn.ModuleList([Gate(), Gate()])

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for gate in self.gates:
            x = gate(x)
        return x + torch.i0(x)


def line_of(text: str) -> int:
    lines = Path(__file__).read_text("utf-8").splitlines()
    return next(at for at, line in enumerate(lines, 1) if line.strip() == text)


def test_launches_of_both_passes_are_a_module_s_and_a_line_s() -> None:
    net = Net().to("npu")
    x = torch.ones(2, 4, device="npu", requires_grad=True)
    was_on = torch.is_anomaly_enabled()
    with Profile(event_limit=0) as session, Watch() as watch:
        loss = net(x).sum()
        loss.backward()
    assert torch.is_anomaly_enabled() == was_on
    net(x)  # nobody listens any more
    assert sorted(watch.places) == list(range(len(session.timelines)))
    found = [(timeline.kernel, watch.places[at]) for at, timeline in enumerate(session.timelines)]
    gate = line_of("return torch.sigmoid(x.t().t()) * self.scale")

    def places(kernel: str, *, is_backward: bool) -> list[Place]:
        return [p for name, p in found if kernel in name and p.is_backward == is_backward]

    forward = places("sigmoid.out", is_backward=False)
    assert [(p.modules, p.line) for p in forward] == [
        (("Net", "Net.gates.0"), gate),
        (("Net", "Net.gates.1"), gate),
    ]
    backward = places("sigmoid_backward", is_backward=True)
    assert [(p.modules, p.line) for p in backward] == [
        (("Net", "Net.gates.1"), gate),
        (("Net", "Net.gates.0"), gate),
    ]
    total = places("sum", is_backward=False)[-1]
    assert (total.modules, total.line) == ((), line_of("loss = net(x).sum()"))
    on_the_cpu = [call for call in watch.cpu_calls if call.operator.startswith("aten::i0")]
    last = line_of("return x + torch.i0(x)")
    assert [(c.place.modules, c.place.line) for c in on_the_cpu] == [(("Net",), last)]
    assert on_the_cpu[0].host_us > 0
