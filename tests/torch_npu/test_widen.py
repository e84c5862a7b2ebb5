"""Half types that PyTorch's CPU lacks an operator for."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

HALVES = (torch.float16, torch.bfloat16)


def lacks(dtype: torch.dtype) -> bool:
    try:
        torch.cdist(torch.ones(1, 1, dtype=dtype), torch.ones(1, 1, dtype=dtype))
    except NotImplementedError:
        return True
    return False


@pytest.mark.parametrize("dtype", HALVES)
def test_what_the_cpu_lacks_is_computed_in_float32_and_rounded(dtype: torch.dtype) -> None:
    if not lacks(dtype):
        pytest.skip("this PyTorch has it")
    x, y = torch.randn(3, 4).to(dtype), torch.randn(5, 4).to(dtype)
    torch.npu.reset_fallbacks()
    for _ in range(2):  # the second time it is known
        actual = torch.cdist(x.npu(), y.npu())
        assert actual.dtype == dtype
        assert torch.equal(actual.cpu(), torch.cdist(x.float(), y.float()).to(dtype))
    rows = [row for row in torch.npu.fallbacks() if "cdist" in row.operator]
    (reason,) = (why for row in rows for why in row.reasons)
    assert "in float32" in reason and str(dtype).rpartition(".")[2] in reason


@pytest.mark.parametrize("dtype", HALVES)
def test_results_go_where_the_caller_wants_them(dtype: torch.dtype) -> None:
    x = torch.randn(1, 2, 4, 4, 4).to(dtype)
    out = torch.empty(0, dtype=dtype, device="npu")
    torch._C._nn.avg_pool3d(x.npu(), 2, out=out)
    expected = torch.nn.functional.avg_pool3d(x.float(), 2).to(dtype)
    assert torch.equal(out.cpu(), expected)


def test_other_errors_stay_what_they_are() -> None:
    with pytest.raises(RuntimeError, match="Low precision dtypes"):
        torch.linalg.inv(torch.eye(2, dtype=torch.float16, device="npu"))


@pytest.mark.parametrize("dtype", HALVES)
def test_numbers_are_compared_in_the_tensor_s_type(dtype: torch.dtype) -> None:
    x = torch.linspace(37, 38, 64).to(dtype)
    for number in (37.123, 37.126, torch.tensor(37.123)):
        for compare in (torch.gt, torch.ge, torch.eq, torch.lt):
            assert torch.equal(compare(x.npu(), number).cpu(), compare(x, number))


SUMS = {
    "index_add": lambda y, i, x: y.index_add(0, i, x),
    "index_add_ of a view": lambda y, i, x: y.t().index_add_(1, i, x.t()).t(),
    "index_put_ of a view": lambda y, i, x: y[:, ::2].index_put_((i,), x[:, ::2], accumulate=True),
    "scatter_add": lambda y, i, x: y.scatter_add(0, i[:, None].expand(x.shape), x),
    "put_": lambda y, i, x: y.put_(i, x[:, 0].contiguous(), accumulate=True),
}


@pytest.mark.parametrize("dtype", HALVES)
@pytest.mark.parametrize("name", SUMS)
def test_sums_at_indices_are_rounded_once(name: str, dtype: torch.dtype) -> None:
    x, i = (torch.rand(64, 6) - 0.5).to(dtype), torch.randint(0, 3, (64,))
    y = (torch.rand(3, 6) - 0.5).to(dtype)
    found = SUMS[name](y.npu(), i.npu(), x.npu())
    right = SUMS[name](y.double(), i, x.double())
    assert torch.equal(found.cpu(), right.to(dtype))
