"""Operators that kernels serve, against the CPU in the same type."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

TYPES = [torch.float32, torch.float16, torch.bfloat16]
TOLERANCE = {torch.float32: 1e-5, torch.float16: 2e-3, torch.bfloat16: 2e-2}


def natively(call: Callable[[], object]) -> object:
    """Return what a call returns; the test fails where the CPU has served any operator of it."""
    torch.npu.reset_fallbacks()
    result = call()
    assert not torch.npu.fallbacks(), str(torch.npu.fallbacks())
    return result


def compare(function: Callable[..., torch.Tensor], *inputs: torch.Tensor) -> None:
    there = [x.npu() for x in inputs]
    actual = natively(lambda: function(*there))
    expected = function(*inputs)
    tolerance = TOLERANCE.get(expected.dtype, 0)
    torch.testing.assert_close(actual.cpu(), expected, rtol=tolerance, atol=tolerance)


ELEMENTWISE = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: torch.sub(x, y, alpha=2),
    "rsub": lambda x, y: 3 - x,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / (y.abs() + 1),
    "scalar": lambda x, y: x * 2.5 + 1,
    "maximum": torch.maximum,
    "exp": lambda x, y: x.exp(),
    "tanh": lambda x, y: x.tanh(),
    "sigmoid": lambda x, y: x.sigmoid(),
    "relu": lambda x, y: x.relu(),
    "gelu": lambda x, y: F.gelu(x),
    "gelu tanh": lambda x, y: F.gelu(x, approximate="tanh"),
    "silu": lambda x, y: F.silu(x),
    "less": lambda x, y: x < y,
    "equal": lambda x, y: x == y.clone(),
    "where": lambda x, y: torch.where(x > y, x, y),
    "masked": lambda x, y: x.masked_fill(y > 0, float("-inf")),
    "addcmul": lambda x, y: torch.addcmul(x, x, y, value=0.5),
    "in place": lambda x, y: x.clone().mul_(y).add_(1),
}


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("name", ELEMENTWISE)
def test_elementwise(name: str, dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    compare(ELEMENTWISE[name], torch.randn(7, 33).to(dtype), torch.randn(7, 33).to(dtype))


@pytest.mark.parametrize("shapes", [((5, 1, 9), (3, 1)), ((40, 130), (130,)), ((2, 3, 4), ())])
def test_operands_broadcast(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    compare(lambda x, y: x * y + y, *(torch.randn(shape) for shape in shapes))


def test_strided_operands() -> None:
    x = torch.randn(33, 20)
    compare(lambda x: x.t() + x.t(), x)
    compare(lambda x: x[::2, 1:] * 2, x)
    compare(lambda x: x.t().contiguous(), x)
    compare(lambda x: x.expand(4, 33, 20).permute(2, 0, 1).contiguous(), x)


def test_whole_numbers() -> None:
    x, y = torch.arange(-5, 6), torch.arange(11) + (1 << 40)
    compare(lambda x, y: x + y * 3, x, y)
    compare(lambda x, y: x < y, x, y)
    compare(lambda x, y: torch.logical_and(x, y), x > 0, y > 0)


@pytest.mark.parametrize("dtype", TYPES)
def test_types_convert(dtype: torch.dtype) -> None:
    compare(lambda x: x.to(torch.float32), torch.randn(50, 3).to(dtype))
    compare(lambda x: x.to(torch.int32), (torch.randn(50, 3) * 100).to(dtype))
    compare(lambda x: x.to(dtype), torch.arange(-100, 100))


@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("dim", [None, 0, 1, 2, (0, 2), (1, 2)])
def test_reductions(dim: object, dtype: torch.dtype) -> None:
    x = torch.randn(4, 70, 33).to(dtype)
    compare(lambda x: x.sum(dim), x)
    compare(lambda x: x.mean(dim, keepdim=True), x)
    if dim is not None:
        compare(lambda x: x.amax(dim), x)


@pytest.mark.parametrize("dtype", TYPES)
def test_softmax_and_its_gradient(dtype: torch.dtype) -> None:
    x = torch.randn(6, 5, 33).to(dtype)
    compare(lambda x: x.softmax(-1), x)
    compare(lambda x: x.log_softmax(-1), x)

    def gradient(x: torch.Tensor) -> torch.Tensor:
        x = x.detach().requires_grad_()
        (x.softmax(-1) * x).sum().backward()
        return x.grad

    compare(gradient, x)


@pytest.mark.parametrize("dtype", TYPES)
def test_layer_norm_and_its_gradients(dtype: torch.dtype) -> None:
    x, w, b = torch.randn(6, 40).to(dtype), torch.randn(40).to(dtype), torch.randn(40).to(dtype)

    def gradients(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        inputs = [t.detach().requires_grad_() for t in (x, w, b)]
        F.layer_norm(inputs[0], (40,), inputs[1], inputs[2]).square().sum().backward()
        return torch.cat([t.grad.flatten() for t in inputs])

    compare(lambda x, w, b: F.layer_norm(x, (40,), w, b), x, w, b)
    if dtype == torch.float32:
        compare(gradients, x, w, b)


@pytest.mark.parametrize("dtype", TYPES)
def test_products_of_matrices(dtype: torch.dtype) -> None:
    a, b = torch.randn(40, 70).to(dtype), torch.randn(70, 33).to(dtype)
    compare(lambda a, b: a @ b, a, b)
    compare(lambda a, b: b.t() @ a.t(), a, b)
    compare(lambda a, b: torch.addmm(b[0, :33], a, b, alpha=0.5), a, b)
    compare(F.linear, a, b.t().contiguous(), b[0].clone())
    batch = torch.randn(3, 20, 17).to(dtype)
    compare(lambda x: x @ x.transpose(1, 2), batch)


def test_rows_by_number_and_their_gradient() -> None:
    table, numbers = torch.randn(11, 40), torch.tensor([[3, 3, 10], [0, 5, 3]])

    def gradient(table: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        table = table.detach().requires_grad_()
        (F.embedding(numbers, table) * 2).sum().backward()
        return table.grad

    compare(lambda t, n: F.embedding(n, t), table, numbers)
    compare(gradient, table, numbers)
    compare(lambda t: torch.cat([t, t * 2], 1), table)
    compare(lambda t: torch.stack([t, t], 1), table)


def test_a_training_step_is_that_of_the_cpu() -> None:
    torch.manual_seed(1)
    model = torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4)
    )
    there = torch.nn.Sequential(
        torch.nn.Linear(16, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 4)
    )
    there.load_state_dict(model.state_dict())
    there.to("npu")
    x, target = torch.randn(8, 16), torch.tensor([0, 1, 2, 3, 0, 1, 2, 3])
    losses: list[list[float]] = [[], []]
    for net, device, seen in ((model, "cpu", losses[0]), (there, "npu", losses[1])):
        optimizer = torch.optim.AdamW(net.parameters(), lr=1e-2)
        for _ in range(5):
            optimizer.zero_grad()
            loss = F.cross_entropy(net(x.to(device)), target.to(device))
            loss.backward()
            optimizer.step()
            seen.append(loss.item())
    assert losses[1] == pytest.approx(losses[0], rel=1e-4)
