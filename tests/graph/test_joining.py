"""Kernels of vector cores that follow one another are one launch."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from opkit import compiler as oc  # noqa: E402
from opkit.chips import find_chip  # noqa: E402
from opkit.graph.backend import opkit, watching  # noqa: E402
from opkit.graph.joining import (  # noqa: E402
    in_joining_order,
    joined_runs,
    products_side_by_side,
)
from opkit.graph.planning import plan_of  # noqa: E402
from opkit.sanitizer import Check  # noqa: E402

pytestmark = pytest.mark.torch

CHIP = find_chip("Ascend910B2")


def test_kernels_wait_only_for_what_they_read() -> None:
    operands = [("x", "a"), ("x", "b"), ("a", "b", "c"), ("c", "y"), ("x", "z")]
    writes = [{each[-1]} for each in operands]
    assert joined_runs(operands, writes, ["k"] * 5) == [[[0, 1, 4], [2], [3]]]
    # Two that read the same result, and one that writes anew what they read.
    operands = [("x", "a"), ("a", "b"), ("a", "c"), ("x", "a")]
    writes = [{each[-1]} for each in operands]
    assert joined_runs(operands, writes, ["k"] * 4) == [[[0], [1, 2], [3]]]


def test_a_product_ends_a_launch() -> None:
    operands = [("x", "a"), ("a", "b"), ("b", "c"), ("x", "d"), ("c", "d", "y")]
    kinds = ["k", None, "k", "m", "k"]
    assert joined_runs(operands, [{each[-1]} for each in operands], kinds) == [
        [[0]],
        [[1]],
        [[2, 3], [4]],
    ]


def test_products_that_wait_for_nothing_come_one_after_another() -> None:
    # Two casts, each before its product and with an addition behind it: five launches of six.
    operands = [("x", "a"), ("a", "b"), ("b", "c"), ("x", "d"), ("d", "e"), ("e", "f")]
    writes = [{each[-1]} for each in operands]
    kinds = ["k", None, "k"] * 2
    assert in_joining_order(operands, writes, kinds) == [0, 3, 1, 4, 2, 5]
    # What is written twice, or read before it is written anew, keeps its order.
    operands = [("x", "a"), ("a", "b"), ("x", "a"), ("a", "c")]
    writes = [{"a"}, {"b"}, {"a"}, {"c"}]
    assert in_joining_order(operands, writes, ["k", None, "k", "k"]) == [0, 1, 2, 3]


def test_small_products_that_wait_for_nothing_lie_side_by_side() -> None:
    operands = [("x", "a"), ("x", "b"), ("a", "c"), ("x", "d"), ("x", "e")]
    writes = [{each[-1]} for each in operands]
    runs = [[[at]] for at in range(5)]
    joined = products_side_by_side(runs, operands, writes, [2, 2, 2, 22, 1], 24)
    # The third reads what the first writes; the fourth and it take all cores that there are.
    assert joined == [[[0, 1]], [[2, 3]], [[4]]]
    assert products_side_by_side(runs, operands, writes, [2, 0, 2, 24, 24], 24) == runs


def test_a_launch_holds_few_different_kernels() -> None:
    count = oc.MOST_CLASSES + 3
    operands = [(f"x{at}", f"y{at}") for at in range(count)]
    writes = [{each[-1]} for each in operands]
    runs = joined_runs(operands, writes, [f"k{at}" for at in range(count)])
    assert [len(stages[0]) for stages in runs] == [oc.MOST_CLASSES, 3]
    assert len(joined_runs(operands, writes, ["k"] * count)) == 1


def _compiled(function: Any, *given: Any) -> tuple[Any, Any]:
    """Return what a compiled function gives under every check, and its plan."""
    with watching() as graphs, Check(()) as checks, torch.no_grad():
        found = torch.compile(function, backend=opkit, dynamic=False)(*given)
    assert not checks.findings, checks.findings[0]
    (segment,) = (segment for graph in graphs for segment in graph.segments)
    return found, segment.plan


def test_products_of_groups_are_one_launch() -> None:
    def grouped(x: Any, weights: Any) -> Any:
        ends = (0, 5, 20, 52)
        parts = zip(ends, ends[1:], weights, strict=False)
        return [x[begin:end] @ weight for begin, end, weight in parts]

    given = torch.randn(52, 64).half(), torch.randn(3, 64, 100).half()
    found, plan = _compiled(grouped, *given)
    (launch,) = plan.launches
    assert plan.kernels[launch.kernel].mode == "cube" and launch.block_dim == 3
    torch.testing.assert_close(found, grouped(*given), rtol=2e-3, atol=2e-2)


def test_reductions_of_a_list_are_one_launch() -> None:
    # Each tensor took two launches: its parts on all cores, and what joins the parts.
    def sums(tensors: Any) -> Any:
        return [tensor.float().square().sum().sqrt() for tensor in tensors]

    given = [torch.randn(size).half() for size in (200003, 7, 131072, 5000)]
    found, plan = _compiled(sums, given)
    (launch,) = plan.launches
    assert 1 < launch.block_dim <= CHIP.count("cores.aiv")
    torch.testing.assert_close(found, sums(given), rtol=1e-5, atol=1e-5)


def test_reductions_of_lengths_that_no_cores_divide_are_shared() -> None:
    # One core did all of it: 262147 is a prime number.
    def folded(x: Any, columns: Any) -> Any:
        wide = x.float()
        return wide.square().sum(), wide.amax(), columns.amin(0)

    given = torch.randn(262147).half(), torch.randn(32771, 5)
    found, plan = _compiled(folded, *given)
    (launch,) = plan.launches
    assert launch.block_dim > 8
    torch.testing.assert_close(found, folded(*given), rtol=1e-4, atol=1e-2)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
def test_what_is_moved_and_computed_in_turn_is_one_launch(dtype: Any) -> None:
    def turned(x: Any) -> Any:
        left, right = torch.tanh(x).chunk(2, dim=-1)
        joined = torch.cat([right * 2, left, left + 1], dim=0)
        return joined.transpose(0, 1).contiguous() - 1, left.sum(dim=0)

    x = torch.randn(37, 50).to(dtype)
    found, plan = _compiled(turned, x)
    assert len(plan.launches) == 1
    limit = {torch.float32: 1e-5, torch.float16: 1e-2, torch.bfloat16: 1e-1}[dtype]
    torch.testing.assert_close(found, turned(x), rtol=limit, atol=limit)


def test_stages_of_a_launch_do_not_share_memory_with_what_they_still_read() -> None:
    def steps(x: Any, y: Any) -> Any:
        for _ in range(4):
            turned = torch.cat([y[12:], y[:12]]) * 2
            x, y = turned + x.sum(), (x + 1).transpose(0, 1).contiguous()
        return x, y

    x, y = torch.randn(24, 24), torch.randn(24, 24)
    found, _ = _compiled(steps, x, y)
    torch.testing.assert_close(found, steps(x, y), rtol=1e-4, atol=1e-4)


def test_products_between_vector_kernels_are_launches_of_their_own() -> None:
    def network(x: Any, weight: Any) -> Any:
        y = torch.cat([x, x * 2], dim=1) @ weight
        return torch.cat([y.amax(dim=0), y.sum(dim=0)])

    given = torch.randn(16, 16), torch.randn(32, 24)
    found, plan = _compiled(network, *given)
    torch.testing.assert_close(found, network(*given), rtol=1e-3, atol=1e-3)
    kernels = [plan.kernels[launch.kernel] for launch in plan.launches]
    assert ["matmul" in kernel.operators for kernel in kernels] == [False, True, False]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_a_loss_over_classes_is_one_launch_that_writes_no_logarithms(dtype: Any) -> None:
    # Seven launches, one of which wrote the logarithms of all classes.
    def loss(x: Any, target: Any) -> Any:
        return torch.nn.functional.cross_entropy(x, target, ignore_index=3)

    x, target = torch.randn(70, 300).to(dtype), torch.randint(0, 300, (70,))
    target[5:9] = 3
    found, plan = _compiled(loss, x, target)
    assert len(plan.launches) == 1 and plan.inputs[1].dtype == "int64"
    assert plan.arena_bytes < 2 * x.numel()
    limit = 1e-5 if dtype == torch.float32 else 2e-2
    torch.testing.assert_close(found, loss(x, target), rtol=limit, atol=limit)


def test_what_is_put_and_picked_in_turn_is_read_as_it_was_written() -> None:
    # The scalar unit's cache holds what was read there before another kernel of the launch wrote.
    def chain(x: Any, places: Any, source: Any) -> Any:
        for _ in range(3):
            x = x.scatter(1, places, source) * 2
            source = torch.gather(x, 1, places.sort(1).values) - 1
        return x, source

    x, source = torch.randn(24, 400), torch.randn(24, 33)
    places = torch.rand(24, 400).argsort(1)[:, :33]
    with watching() as graphs, Check(()) as checks:
        found = torch.compile(chain, backend=opkit, dynamic=False)(x, places, source)
    assert not checks.findings, checks.findings[0]
    assert sum(len(s.plan.launches) for graph in graphs for s in graph.segments) <= 3
    torch.testing.assert_close(found, chain(x, places, source), rtol=1e-5, atol=1e-5)


def test_numbers_that_are_counted_are_no_launch_of_their_own() -> None:
    # Each count was one: three before the largest of a long line.
    def first(x: Any) -> Any:
        values, places = torch.topk(x, 3)
        return values, places.to(torch.int32)

    x = torch.randn(1, 9001)
    x[0, 17], x[0, 8999] = 9.0, 8.0
    found, plan = _compiled(first, x)
    assert len(plan.launches) == 1
    assert "arange" in plan.kernels[plan.launches[0].kernel].operators
    torch.testing.assert_close(found, first(x))


def test_a_joined_plan_is_the_same_text_each_time() -> None:
    specs = [oc.TensorSpec("x", (64, 96), "float32")]

    def model(x: Any) -> Any:
        return x.T.apply("exp") + 1.0

    first, second = (plan_of(oc.trace(model, specs, name="model"), CHIP) for _ in range(2))
    assert [k.source for k in first.kernels] == [k.source for k in second.kernels]
    assert len(first.launches) == 1


def test_a_product_that_is_rounded_to_its_own_type_is_read_where_it_lies() -> None:
    # Nothing is left of a kernel that casts 16 bits to the same 16 bits: who read its result found
    # what lay in memory before.
    def heads(x: Any) -> Any:
        return x.reshape(4, 16, 2, 16).transpose(0, 2, 1, 3).astype("float32").reshape(8, 16, 16)

    def steps(x: Any, w: Any, k: Any, v: Any) -> Any:
        own = heads(x @ w).astype("float16")
        first, second = k @ own, own @ v
        turned = first.astype("float32").reshape(4, 2, 16, 16).astype("float16")
        return turned.transpose(0, 2, 1, 3).reshape(64, 32), second

    half = "float16"
    specs = (
        *(oc.TensorSpec("x", (64, 32), half), oc.TensorSpec("w", (32, 32), half)),
        *(oc.TensorSpec(name, (8, 16, 16), half) for name in "kv"),
    )
    plan = plan_of(oc.trace(steps, specs), find_chip("Ascend910B2"))
    assert len(plan.launches) >= 3


def test_a_loss_over_a_layer_with_a_bias_is_compiled() -> None:
    # Its whole forward was left to torch: elements of the bias were looked up as if it had a row
    # for each target.
    layer = torch.nn.Linear(8, 64)
    x, target = torch.randn(24, 8), torch.randint(0, 64, (24,))

    def loss(x: Any) -> Any:
        return torch.nn.functional.cross_entropy(layer(x), target)

    mine, other = x.clone().requires_grad_(), x.clone().requires_grad_()
    with watching() as graphs:
        found = torch.compile(loss, backend=opkit, dynamic=False)(mine)
        found.backward()
    expected = loss(other)
    expected.backward()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(mine.grad, other.grad, rtol=1e-5, atol=1e-6)
    assert not [left for graph in graphs for left in graph.left if not left.is_view]
