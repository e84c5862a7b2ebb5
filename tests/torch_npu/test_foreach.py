"""Operators on lists of tensors: one launch for a list, against the CPU's."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

SHAPES = [(5, 7), (1,), (0,), (90, 130), (3, 2, 4)]
CALLS: list[tuple[str, tuple[Any, ...]]] = [
    ("add", ("list",)),
    ("add", (2.5,)),
    ("sub", ("list",)),
    ("mul", (0.3,)),
    ("mul", ([0.5] * len(SHAPES),)),
    ("mul", (torch.tensor(1.7),)),
    ("div", ("list",)),
    ("maximum", ("list",)),
    ("clamp_min", (0.1,)),
    ("addcmul", ("list", "list", 0.7)),
    ("addcdiv", ("list", "list", [-0.1] * len(SHAPES))),
    ("lerp", ("list", 0.9)),
    ("sqrt", ()),
    ("neg", ()),
    ("reciprocal", ()),
]


def tensors(device: str, dtype: torch.dtype, seed: int) -> list[Any]:
    generator = torch.Generator().manual_seed(seed)
    made = [torch.rand(shape, generator=generator) + 0.5 for shape in SHAPES]
    return [x.to(device, dtype) for x in made]


def called(name: str, arguments: tuple[Any, ...], device: str, dtype: torch.dtype) -> list[Any]:
    first = tensors(device, dtype, 0)
    given = [
        tensors(device, dtype, seed) if each == "list" else each
        for seed, each in enumerate(arguments, 1)
    ]
    given = [each.to(device) if isinstance(each, torch.Tensor) else each for each in given]
    function = getattr(torch, f"_foreach_{name}")
    results = [x.cpu() for x in function(first, *given)]
    getattr(torch, f"_foreach_{name}_")(first, *given)
    return [*results, *(x.cpu() for x in first)]


def counted() -> dict[str, tuple[int, int]]:
    return {row.operator: (row.native, row.fallback) for row in torch.npu.kernel_calls()}


@pytest.mark.parametrize(("name", "arguments"), CALLS, ids=lambda x: str(x)[:30])
def test_a_list_is_one_launch(name: str, arguments: tuple[Any, ...]) -> None:
    expected = called(name, arguments, "cpu", torch.float32)
    torch.npu.reset_fallbacks()
    found = called(name, arguments, "npu", torch.float32)
    torch.testing.assert_close(found, expected, rtol=1e-6, atol=1e-6)
    # The operator and its form in place.
    assert list(counted().values()) == [(1, 0), (1, 0)]
    assert all(f"_foreach_{name}" in operator for operator in counted())


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_half_types_round_once(dtype: torch.dtype) -> None:
    arguments = ("list", "list", 0.7)
    expected = called("addcmul", arguments, "cpu", dtype)
    torch.testing.assert_close(called("addcmul", arguments, "npu", dtype), expected)


@pytest.mark.parametrize("order", [1, 2, float("inf")])
def test_norms_of_a_list_are_one_launch(order: float) -> None:
    values = [x - 1 for x in tensors("cpu", torch.float32, 3) if x.numel()]
    torch.npu.reset_fallbacks()
    found = torch._foreach_norm([x.npu() for x in values], order)
    assert counted()["aten::_foreach_norm.Scalar"] == (1, 0)
    expected = torch._foreach_norm(values, order)
    torch.testing.assert_close([x.cpu() for x in found], expected, rtol=1e-5, atol=1e-5)


def test_lists_that_lie_otherwise_go_one_by_one() -> None:
    a = torch.rand(4, 6).npu()
    torch.npu.reset_fallbacks()
    (found,) = torch._foreach_add([a], [a.t().contiguous().t()])
    assert torch.equal(found.cpu(), a.cpu() * 2)
    assert "aten::_foreach_add.List" not in counted()
    (mixed,) = torch._foreach_mul([a.half()], [a.float()])
    assert mixed.dtype == torch.float32
    (whole,) = torch._foreach_add([torch.arange(3, device="npu")], 2)
    assert whole.tolist() == [2, 3, 4]


def test_what_is_in_a_list_twice_is_changed_twice() -> None:
    a = torch.zeros(3, device="npu")
    torch._foreach_add_([a, a], 1.0)
    assert a.tolist() == [2.0, 2.0, 2.0]


def test_what_another_place_of_a_list_changes_is_read_after_it() -> None:
    a, b = torch.full((5000,), 1.0, device="npu"), torch.full((5000,), 2.0, device="npu")
    torch._foreach_add_([a, b], [b, a])
    assert (a.unique().tolist(), b.unique().tolist()) == ([3.0], [5.0])


def test_numbers_that_differ_go_one_by_one() -> None:
    found = torch._foreach_mul(
        [torch.ones(2, device="npu"), torch.ones(3, device="npu")], [2.0, 3.0]
    )
    assert [x.tolist() for x in found] == [[2.0, 2.0], [3.0, 3.0, 3.0]]


def test_an_optimizers_step_takes_as_many_launches_for_many_parameters_as_for_one() -> None:
    def launches(count: int, **options: Any) -> int:
        parameters = [torch.ones(8, device="npu", requires_grad=True) for _ in range(count)]
        for p in parameters:
            p.grad = torch.full_like(p, 0.5)
        optimizer = torch.optim.AdamW(parameters, **options)
        optimizer.step()
        torch.npu.reset_fallbacks()
        optimizer.step()
        torch.nn.utils.clip_grad_norm_(parameters, 1.0, foreach=True)
        return sum(row.native for row in torch.npu.kernel_calls() if "_foreach" in row.operator)

    assert launches(9) == launches(2) > 0
