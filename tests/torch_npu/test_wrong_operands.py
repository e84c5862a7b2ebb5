"""Operands of other shapes and types than an operator takes: refused, as the CPU refuses them.

Kernels took a bias of another size than the rows of its product, and weights of normalisations that
had as many elements, more or fewer.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch.nn import functional  # noqa: E402

pytestmark = pytest.mark.torch

X, ROWS = torch.ones(2, 3), torch.ones(4, 3)
IMAGE = torch.ones(2, 4, 3)


def _normalised(weight: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    return (lambda x, w: functional.layer_norm(x, x.shape[1:], w)), (torch.ones(5, 2, 3), weight)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "a bias of fewer elements": (functional.linear, (X, ROWS, torch.ones(3))),
    "a bias of more": (functional.linear, (X, ROWS, torch.ones(5))),
    "a summand of more rows": (torch.addmm, (torch.ones(2, 4), X[:1], ROWS.t())),
    "a summand of more dims": (torch.addmm, (torch.ones(1, 2, 4), X, ROWS.t())),
    "a weight of fewer rows": _normalised(torch.ones(1, 3)),
    "a weight of another shape": _normalised(torch.ones(3, 2)),
    "a weight of more dims": _normalised(torch.ones(2, 2, 3)),
    "a weight of a half type": _normalised(torch.ones(2, 3).half()),
    "channels of whole numbers": (
        lambda x, w: functional.group_norm(x, 2, w),
        (IMAGE, torch.ones(4).long()),
    ),
    "statistics of a half type": (
        lambda x, m, v: functional.batch_norm(x, m, v),
        (IMAGE, torch.zeros(4).half(), torch.ones(4).half()),
    ),
    "classes weighed in a half type": (
        functional.nll_loss,
        (X, torch.tensor([0, 1]), torch.ones(3).half()),
    ),
    "places of 32 bits to fill": (
        lambda x, places: x.index_fill(0, places, 1.0),
        (X, torch.tensor([1], dtype=torch.int32)),
    ),
    "places of 32 bits to take": (torch.take, (X, torch.tensor([1], dtype=torch.int32))),
    "no shifts": (torch.roll, (X, ())),
    "a truth to subtract from": (lambda x: True - x, (X,)),
    "a truth to subtract from each": (lambda x: torch._foreach_sub([x], True), (X,)),
    "a truth as a factor of floats": (lambda x: torch.rsub(x, 2, alpha=True), (X,)),
    "a side that is neither": (lambda x: torch.searchsorted(x[0], x[1], side="middle"), (X,)),
}


@pytest.mark.parametrize("name", CASES)
def test_they_are_refused(name: str) -> None:
    call, operands = CASES[name]
    with pytest.raises((RuntimeError, IndexError)):
        call(*operands)
    with pytest.raises((RuntimeError, IndexError)):
        call(*(each.npu() if isinstance(each, torch.Tensor) else each for each in operands))


@pytest.mark.parametrize("is_training", [False, True])
@pytest.mark.parametrize("place", range(1, 5))
def test_statistics_of_other_channels_are_refused(place: int, is_training: bool) -> None:
    # The CPU's own kernel reads beyond them, which ends the process.
    given = [IMAGE.npu(), *(torch.ones(4).npu() for _ in range(4))]
    given[place] = torch.ones(0).npu()
    with pytest.raises(RuntimeError, match="has 0 elements where the input has 4 channels"):
        torch.native_batch_norm(*given, is_training, 0.1, 1e-5)


def test_an_evaluation_without_statistics_is_refused() -> None:
    with pytest.raises(RuntimeError, match="an evaluation needs running_mean"):
        torch.native_batch_norm(IMAGE.npu(), None, None, None, None, False, 0.1, 1e-5)


def test_a_target_that_is_read_is_refused() -> None:
    x, places = torch.ones(6, device="npu"), torch.arange(3, device="npu")
    for call in (
        lambda: torch.take(x, places, out=x[:3]),
        lambda: torch.cat((x[:3], x[:3]), out=x),
        lambda: torch.masked_select(x, x > 0, out=x),
        lambda: torch.index_select(x, 0, places, out=x),
        lambda: torch.nonzero(places, out=places),
    ):
        with pytest.raises(RuntimeError, match="memory location"):
            call()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_types_are_normalised_by_weights_in_float(dtype: Any) -> None:
    x, weight = torch.arange(12.0).reshape(3, 4).to(dtype), torch.linspace(1, 2, 4)
    torch.npu.reset_fallbacks()
    found = functional.layer_norm(x.npu(), (4,), weight.npu(), weight.npu())
    assert not torch.npu.fallbacks()
    expected = functional.layer_norm(x, (4,), weight, weight)
    torch.testing.assert_close(found.cpu(), expected, rtol=1e-2, atol=1e-2)


def test_attention_is_traced_over_sizes_yet_to_come() -> None:
    # torch.compile ended in "Cannot call numel() on tensor with symbolic sizes".
    def attend(x: Any) -> Any:
        return functional.scaled_dot_product_attention(x, x, x, is_causal=True)

    compiled = torch.compile(attend, backend="eager", dynamic=True)
    x = torch.randn(1, 2, 3, 16)
    torch.testing.assert_close(compiled(x.npu()).cpu(), attend(x), rtol=1e-4, atol=1e-5)
