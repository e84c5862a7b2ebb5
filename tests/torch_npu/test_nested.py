"""Nested tensors of the device: the CPU computes them, on the device's memory."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

pytestmark = pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors")
PARTS = [torch.arange(8.0).reshape(2, 4).cos(), torch.arange(12.0).reshape(3, 4).sin()]
ONES = torch.ones(4)
LINEAR = torch.nn.Linear(4, 2)
# What each does; functions that PyTorch's nested tensors have a gradient of.
CALLS: dict[str, Callable[[Any], Any]] = {
    "arithmetic": lambda n: n * 2 + n,
    "softmax": lambda n: torch.softmax(n, -1),
    "linear": lambda n: F.linear(n, *(p.to(n.device) for p in LINEAR.parameters())),
    "layer norm": lambda n: F.layer_norm(n, (4,), ONES.to(n.device), ONES.to(n.device)),
    "matmul": lambda n: torch.matmul(n, n.transpose(1, 2)),
    "types": lambda n: n.double().float(),
    "gelu": F.gelu,
    "select": lambda n: n.select(0, 1),
    "sum": lambda n: n.sum(-1, keepdim=True),
    "views": lambda n: n.reshape(2, -1, 2, 2).transpose(1, 2).contiguous(),
    "padded": lambda n: n.to_padded_tensor(0.0),
    "there and back": lambda n: n.to("cpu").to(n.device),
}


def parts_of(x: Any) -> list[Any]:
    return [part.detach().cpu() for part in (x.unbind() if x.is_nested else [x])]


@pytest.mark.parametrize("name", CALLS)
def test_a_nested_tensor_gives_what_it_gives_on_the_cpu(name: str) -> None:
    # There was no kernel at all: "Could not run ... from the 'NestedTensornpu' backend".
    results = []
    for device in ("cpu", "npu"):
        x = torch.nested.nested_tensor(PARTS, device=device, requires_grad=True)
        y = CALLS[name](x)
        assert y.device.type == device
        sum(part.square().sum() for part in (y.unbind() if y.is_nested else [y])).backward()
        results.append([*parts_of(y), *parts_of(x.grad)])
    for wanted, got in zip(*results, strict=True):
        torch.testing.assert_close(got, wanted, atol=2e-5, rtol=2e-5)


def test_a_nested_tensor_takes_another_s_values() -> None:
    x = torch.nested.nested_tensor(PARTS, device="npu")
    y = torch.nested.nested_tensor([part * 0 for part in PARTS], device="npu").copy_(x)
    assert all(torch.equal(a, b) for a, b in zip(parts_of(y), PARTS, strict=True))
    # Sizes went to the device with their memory, and the nested tensor had none any more.
    assert x._nested_tensor_size().device.type == "cpu"


def test_an_encoder_takes_its_fast_path_with_padding() -> None:
    # "NestedTensorImpl doesn't support strides".
    torch.manual_seed(0)
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 2).eval()
    x, padding = torch.randn(2, 6, 16), (torch.arange(6) > 3).repeat(2, 1)
    with torch.no_grad():
        wanted = encoder(x, src_key_padding_mask=padding)
        got = encoder.to("npu")(x.to("npu"), src_key_padding_mask=padding.to("npu"))
    torch.testing.assert_close(got.cpu(), wanted)


def test_a_sparse_result_is_refused_by_name() -> None:
    # "Cannot access storage of SparseTensorImpl".
    with pytest.raises(NotImplementedError, match="aten::_to_sparse gives a tensor of layout"):
        torch.eye(3, device="npu").to_sparse()
