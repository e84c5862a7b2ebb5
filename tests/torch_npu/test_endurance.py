"""The device under threads, forks, signals, hooks and full memory: nothing is lost or left."""

from __future__ import annotations

import gc
import os
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional as F  # noqa: E402 - needs torch

pytestmark = pytest.mark.torch


def trained(seed: int, device: str, steps: int = 3) -> float:
    """Return the loss after AdamW's steps of two layers on one batch."""
    generator = torch.Generator().manual_seed(seed)
    weights = [torch.randn(sizes, generator=generator) for sizes in ((8, 16), (16, 3))]
    weights = [weight.to(device).requires_grad_() for weight in weights]
    x = torch.randn(6, 8, generator=generator).to(device)
    target = torch.randint(0, 3, (6,), generator=generator).to(device)
    optimizer = torch.optim.AdamW(weights, lr=1e-2)
    loss = x.new_zeros(())
    for _ in range(steps):
        optimizer.zero_grad()
        loss = F.cross_entropy(torch.relu(x @ weights[0]) @ weights[1], target)
        loss.backward()
        optimizer.step()
    return float(loss.detach())


def test_threads_train_each_its_own_model() -> None:
    found: dict[int, float] = {}

    def work(seed: int) -> None:
        found[seed] = trained(seed, "npu", 1)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(64)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    expected = {seed: pytest.approx(trained(seed, "cpu", 1), rel=1e-5) for seed in range(64)}
    assert found == expected


def test_threads_add_to_one_gradient() -> None:
    x = torch.ones(8, 8, device="npu", requires_grad=True)

    def work() -> None:
        for _ in range(10):
            (x @ x).sum().backward()

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert x.grad.unique().tolist() == [8 * 10 * 16.0]


def test_a_child_goes_on_with_what_its_parent_had() -> None:
    x = torch.arange(6.0, device="npu")
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        said = ""
        try:
            x.add_(1)
            said = str((x @ x).item())
        except BaseException as error:
            said = repr(error)
        finally:
            os.write(write, said.encode())
            os._exit(0)
    os.close(write)
    with os.fdopen(read) as answer:
        assert answer.read() == "91.0"
    assert os.waitpid(child, 0)[1] == 0
    assert (x @ x).item() == 55  # the parent's memory is its own


class _Doubled(torch.utils.data.Dataset):  # type: ignore[misc]
    def __init__(self) -> None:
        self.x = torch.arange(8.0, device="npu")

    def __len__(self) -> int:
        return len(self.x)

    def __getitem__(self, place: int) -> float:
        return float(self.x[place] * 2)


def test_workers_of_a_loader_compute_on_the_device() -> None:
    loader = torch.utils.data.DataLoader(
        _Doubled(), batch_size=4, num_workers=1, multiprocessing_context="fork"
    )
    found = [row.to("npu").tolist() for row in loader]
    assert found == [[0, 2, 4, 6], [8, 10, 12, 14]]


@contextmanager
def handled(
    number: signal.Signals, handler: Callable[[int, FrameType | None], Any]
) -> Iterator[None]:
    before = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, before)


def test_a_handler_runs_between_launches_and_none_is_lost() -> None:
    x = torch.ones(256, 256, device="npu")
    total = torch.zeros(256, 256, device="npu")
    got: list[int] = []
    launches = 0
    with handled(signal.SIGTERM, lambda number, _: got.append(number)):
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        while not got and launches < 20_000:
            total.addmm_(x, x)
            launches += 1
        timer.join()
    assert got == [signal.SIGTERM]
    assert total.unique().tolist() == [256.0 * launches]


def test_a_handler_that_raises_ends_a_training_that_goes_on_later() -> None:
    class Stopped(Exception):
        pass

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped

    x = torch.ones(64, 64, device="npu", requires_grad=True)
    with handled(signal.SIGTERM, stop), pytest.raises(Stopped):
        timer = threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM))
        timer.start()
        for _ in range(100_000):
            (x @ x).sum().backward()
    timer.join()
    x.grad = None
    (x @ x).sum().backward()
    assert x.grad.unique().tolist() == [128.0]


def test_a_model_that_does_not_fit_leaves_the_device_usable() -> None:
    torch.npu.empty_cache()
    total = torch.npu.mem_get_info()[1]
    before = torch.npu.memory_allocated()
    # Segments are of 20 MiB.
    torch.npu.set_per_process_memory_fraction((torch.npu.memory_reserved() + (50 << 20)) / total)
    try:
        x: Any = torch.ones(512, 1024, device="npu", requires_grad=True)
        y: Any = x
        with pytest.raises(torch.OutOfMemoryError, match="Tried to allocate"):
            for _ in range(40):
                y = (y * 2).exp()
        del x, y
        gc.collect()
        assert torch.npu.memory_allocated() == before
        assert trained(1, "npu") == pytest.approx(trained(1, "cpu"), rel=1e-5)
    finally:
        torch.npu.set_per_process_memory_fraction(1.0)


def test_hooks_see_tensors_of_the_device() -> None:
    # Not ReLU: of four numbers drawn, all are negative now and then, and no gradient is left.
    model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh(), torch.nn.Linear(4, 2))
    model.to("npu")
    seen: list[tuple[str, str]] = []
    model[0].register_forward_pre_hook(lambda _, given: (given[0] * 2,))
    model[0].register_forward_hook(lambda _, __, out: seen.append(("forward", out.device.type)))
    model[2].register_full_backward_hook(
        lambda _, grads, __: seen.append(("backward", grads[0].device.type))
    )
    model[2].weight.register_hook(lambda grad: grad * 0)
    model[2].bias.register_post_accumulate_grad_hook(
        lambda bias: seen.append(("gradient", bias.grad.device.type))
    )
    x = torch.ones(2, 4, device="npu")
    expected = model[0].weight @ torch.full((4,), 2.0, device="npu") + model[0].bias
    kept: list[str] = []

    def pack(tensor: torch.Tensor) -> torch.Tensor:
        kept.append(tensor.device.type)
        return tensor.cpu()

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor.to("npu")):
        hidden = model[0](x)
        y = model[2](model[1](hidden))
    torch.testing.assert_close(hidden[0].detach(), expected.detach())
    y.sum().backward()
    assert set(kept) == {"npu"}
    assert seen == [("forward", "npu"), ("gradient", "npu"), ("backward", "npu")]
    assert not model[2].weight.grad.any()
    assert model[0].weight.grad.any()


def test_a_hook_s_error_is_the_caller_s_and_the_device_works_on() -> None:
    x = torch.ones(3, device="npu", requires_grad=True)
    y = x * 2

    def refuse(grad: torch.Tensor) -> None:
        raise ValueError("of the hook")

    y.register_hook(refuse)
    with pytest.raises(ValueError, match="of the hook"):
        y.sum().backward()
    assert trained(0, "npu") == pytest.approx(trained(0, "cpu"), rel=1e-5)
