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
