"""`torch.compile(backend="opkit")` against torch itself."""

from __future__ import annotations

import os
import subprocess
import sys
from typing import Any

import pytest

torch = pytest.importorskip("torch")
from functorch.compile import make_boxed_func  # noqa: E402
from torch import nn  # noqa: E402
from torch._dynamo.backends.common import aot_autograd  # noqa: E402
from torch._dynamo.testing import EagerAndRecordGraphs  # noqa: E402
from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402
from torch.fx.experimental.symbolic_shapes import (  # noqa: E402
    DimDynamic,
    ShapeEnv,
    StatelessSymbolicContext,
)
from torch.nn import functional  # noqa: E402

from opkit.errors import UsageError  # noqa: E402
from opkit.graph.aten import ROWS  # noqa: E402
from opkit.graph.backend import (  # noqa: E402
    decompositions,
    opkit,
    traced_decompositions,
    watching,
)
from opkit.graph.debug import GraphDifference  # noqa: E402
from opkit.graph.export import exported  # noqa: E402
from opkit.graph.program import CompiledSegment  # noqa: E402


class Gated(nn.Module):
    """A small block with a product, an activation, a residual and a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.Linear(16, 32)
        self.down = nn.Linear(32, 16)
        self.norm = nn.LayerNorm(16)

    def forward(self, x: Any) -> Any:
        return self.norm(x + self.down(torch.relu(self.up(x))))


@pytest.mark.slow
def test_a_model_and_its_gradients_are_what_torch_computes() -> None:
    model, x = Gated(), torch.randn(2, 5, 16)
    with watching() as graphs:
        result = torch.compile(model, backend=opkit)(x)
        result.square().sum().backward()
    found = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    expected = model(x)
    expected.square().sum().backward()
    torch.testing.assert_close(result, expected, rtol=1e-4, atol=1e-4)
    for gradient, parameter in zip(found, model.parameters(), strict=True):
        torch.testing.assert_close(gradient, parameter.grad, rtol=1e-3, atol=1e-3)
    assert [graph.kind for graph in graphs] == ["forward", "backward"]
    assert [left for graph in graphs for left in graph.left if not left.is_view] == []
    # Products take bias, activation and residual along; first is the copy of x for the gradients.
    assert [k.operators[:3] for k in graphs[0].segments[0].plan.kernels][1:3] == [
        ("matmul", "add", "maximum"),
        ("matmul", "add", "add"),
    ]


@pytest.mark.slow
def test_a_result_that_repeats_elements_is_as_torch_lays_it_out() -> None:
    """The places of an embedding, the same for a whole batch, are kept for its gradient. They are a
    few of many numbers of 64 bits, which ended the compilation."""

    class Kinds(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = nn.Embedding(3, 4)
            self.register_buffer("kinds", torch.arange(64)[None] % 3)

        def forward(self, x: Any, places: Any) -> Any:
            kinds = torch.gather(self.kinds, 1, places)
            return x * self.table(kinds.expand(x.shape[0], -1))

    torch.manual_seed(0)
    model, x, places = Kinds(), torch.randn(2, 5, 4), torch.arange(5).reshape(1, 5)
    model(x, places).sum().backward()
    wanted, model.table.weight.grad = model.table.weight.grad, None
    torch.compile(model, backend=opkit)(x, places).sum().backward()
    torch.testing.assert_close(model.table.weight.grad, wanted)


def test_nodes_without_a_row_are_run_by_torch_with_the_reason() -> None:
    def model(x: Any) -> Any:
        return torch.relu(torch.special.bessel_j0(x * 2)) + 1

    x = torch.randn(8, 8)
    with watching() as graphs, torch.no_grad():
        result = torch.compile(model, backend=opkit)(x)
    torch.testing.assert_close(result, model(x))
    (left,) = graphs[0].left
    assert left.operator == "aten.special_bessel_j0.default"
    assert "no row" in left.reason
    assert left.location is not None and left.location.file == __file__
    assert len(graphs[0].segments) == 2


@pytest.mark.slow
def test_products_along_axes_and_their_gradients_are_those_of_torch() -> None:
    def model(x: Any) -> Any:
        return x.prod(1) + torch.cumprod(x, 1)[:, -1], x.prod()

    x = (torch.rand(3, 5) + 0.5).requires_grad_(True)
    found = torch.compile(model, backend=opkit, fullgraph=True)(x)
    torch.testing.assert_close(found, model(x), rtol=1e-5, atol=1e-6)
    (gradient,) = torch.autograd.grad(found[0].sum() + found[1], x)
    expected = torch.autograd.grad(model(x)[0].sum() + model(x)[1], x)
    torch.testing.assert_close((gradient,), expected, rtol=1e-5, atol=1e-5)


def test_an_output_that_torch_has_as_a_view_keeps_its_strides() -> None:
    def model(x: Any) -> Any:
        y = (x * 2).permute(1, 0)
        return y, y + 1

    x = torch.randn(4, 6)
    with torch.no_grad():
        view, sum_ = torch.compile(model, backend=opkit)(x)
    assert view.stride() == model(x)[0].stride()
    torch.testing.assert_close(view, (x * 2).T)
    torch.testing.assert_close(sum_, (x * 2).T + 1)


def test_indices_out_of_range_are_refused() -> None:
    table = nn.Embedding(10, 16)
    compiled = torch.compile(lambda i: table(i) * 2, backend=opkit)
    with torch.no_grad():
        torch.testing.assert_close(compiled(torch.tensor([1, 9])), table(torch.tensor([1, 9])) * 2)
        with pytest.raises(IndexError, match="10 rows"):
            compiled(torch.tensor([1, 10]))


@pytest.mark.slow
def test_a_copy_of_an_input_is_a_kernels_work() -> None:
    x = torch.randn(64, 96)
    with watching() as graphs:
        result = torch.compile(lambda x: x[None].clone(), backend="opkit")(x)
    (segment,) = graphs[0].segments
    assert len(segment.plan.launches) == 1 and not segment.plan.copies
    assert torch.equal(result, x[None])


def test_attention_is_one_kernel_in_half_precision() -> None:
    q, k, v = (torch.randn(1, 2, 32, 16).half() for _ in range(3))

    def model(q: Any, k: Any, v: Any) -> Any:
        return functional.scaled_dot_product_attention(q, k, v, is_causal=True)

    with watching() as graphs, torch.no_grad():
        result = torch.compile(model, backend=opkit)(q, k, v)
    torch.testing.assert_close(result, model(q, k, v), rtol=1e-2, atol=1e-2)
    assert [k.operators for k in graphs[0].segments[0].plan.kernels] == [("attention",)]


@pytest.mark.parametrize("has_gradients", [False, True])
def test_the_short_list_of_decompositions_leaves_the_graphs_of_the_whole(
    has_gradients: bool,
) -> None:
    def model(x: Any) -> Any:
        y = functional.interpolate(x, scale_factor=2) + functional.interpolate(
            x, scale_factor=2, mode="nearest-exact"
        )
        y = functional.hardswish(functional.pixel_shuffle(y, 2)).square()
        return torch.einsum("abcd,abdc->abc", y, y) + functional.layer_norm(y, (16,)).sum(-1)

    def traced(table: Any) -> list[str]:
        found: list[str] = []

        def keep(graph: Any, _: Any) -> Any:
            found.append(graph.code)
            return make_boxed_func(graph.forward)

        torch._dynamo.reset()
        compiled = torch.compile(
            model, backend=aot_autograd(fw_compiler=keep, decompositions=table)
        )
        y = compiled(torch.ones(1, 4, 4, 4, requires_grad=has_gradients))
        if has_gradients:
            y.sum().backward()
        return found

    graphs = traced(dict(decompositions()))
    assert len(graphs) == 1 + has_gradients
    assert traced(dict(traced_decompositions())) == graphs


def test_the_graph_that_dynamo_traced_and_an_exported_program_stay_as_they_were() -> None:
    """Attention is another operator while they are compiled, and used to stay that."""
    q = torch.randn(1, 2, 8, 16)
    recorder = EagerAndRecordGraphs()

    def backend(module: Any, inputs: Any) -> Any:
        recorder(module, inputs)
        return opkit(module, inputs)

    class Attention(nn.Module):
        def forward(self, q: Any) -> Any:
            return functional.scaled_dot_product_attention(q, q, q)

    with torch.no_grad(), watching() as graphs:
        torch.compile(Attention(), backend=backend)(q)
        program = torch.export.export(Attention(), (q,))
        before = str(program.graph)
        exported(program, (q,), torch.float32)
    assert "opkit.attention" in str(graphs[0].sources[0][0].target)
    (recorded,) = recorder.graphs
    targets = {node.target for node in recorded.graph.nodes}
    assert functional.scaled_dot_product_attention in targets
    assert "opkit" not in recorded.code
    assert str(program.graph) == before


@pytest.mark.slow
def test_debug_mode_names_the_first_node_that_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    def wrong(call: Any, x: Any) -> Any:
        return x.apply("sigmoid")

    assert isinstance(ROWS, dict)
    monkeypatch.setitem(ROWS, "aten.tanh.default", wrong)
    monkeypatch.setenv("OPKIT_GRAPH_DEBUG", "1")

    def model(x: Any) -> Any:
        y = x * 2
        z = torch.tanh(y)
        return z + 1

    x = torch.randn(4, 16)
    with torch.no_grad(), pytest.raises(GraphDifference) as caught:
        torch.compile(model, backend=opkit)(x)
    assert caught.value.node == "tanh"
    line = model.__code__.co_firstlineno + 2
    assert f"test_compile.py:{line}: tanh (aten.tanh.default) differs at" in str(caught.value)
    assert "_kernel, " in str(caught.value)


def test_debug_mode_knows_the_numbers_that_were_computed_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # It ended in a KeyError.
    monkeypatch.setenv("OPKIT_GRAPH_DEBUG", "1")

    def model(x: Any) -> Any:
        return x * torch.arange(3, 4) + 1

    x = torch.randn(4, 16)
    with torch.no_grad():
        found = torch.compile(model, backend=opkit, dynamic=False)(x)
    torch.testing.assert_close(found, model(x))


@pytest.mark.slow
def test_what_no_input_reaches_is_computed_once() -> None:
    def model(x: Any) -> Any:
        places = torch.arange(8)
        seen = places[None, :] <= places[:, None] + 1
        return torch.where(seen, x, 0.0), places

    x = torch.randn(8, 8)
    compiled = torch.compile(model, backend=opkit)
    with watching() as graphs, torch.no_grad():
        first, places = compiled(x)
        places.zero_()
        second, again = compiled(x)
    torch.testing.assert_close(first, model(x)[0])
    torch.testing.assert_close(second, first)
    torch.testing.assert_close(again, torch.arange(8))
    assert {left.operator for left in graphs[0].left} <= {"aten.clone.default"}


def test_an_unknown_option_is_an_error() -> None:
    with pytest.raises(Exception, match='no option "speed"') as caught:
        torch.compile(lambda x: x + 1, backend="opkit", options={"speed": 1})(torch.ones(3))
    causes = [caught.value, caught.value.__cause__, getattr(caught.value, "inner_exception", None)]
    assert any(isinstance(cause, UsageError) for cause in causes)


def test_a_graph_of_open_sizes_is_traced_once_and_needs_no_new_kernels() -> None:
    model, seen = Gated(), []

    def counting(module: Any, inputs: Any) -> Any:
        seen.append(module)
        return opkit(module, inputs)

    compiled = torch.compile(model, backend=counting, dynamic=True)
    sources: list[set[str]] = []
    traced: list[int] = []
    for batch, length in ((2, 5), (3, 40), (70, 9)):
        x = torch.randn(batch, length, 16)
        with watching() as graphs, torch.no_grad():
            result = compiled(x)
        torch.testing.assert_close(result, model(x), rtol=1e-4, atol=1e-4)
        (graph,) = graphs
        assert [left for left in graph.left if not left.is_view] == []
        sources.append({k.source for s in graph.segments for k in s.plan.kernels})
        with watching() as again, torch.no_grad():
            compiled(x)
        assert again == []
        # torch itself hands a graph over twice where it finds that a number in it stays the same.
        traced.append(len(seen))
    assert len(set(traced)) == 1
    assert sources[0] == sources[1] == sources[2]


@pytest.mark.slow
def test_gradients_of_a_graph_of_open_sizes_are_those_of_torch() -> None:
    model = Gated()
    compiled = torch.compile(model, backend=opkit, dynamic=True)
    for batch in (2, 3, 7):
        x = torch.randn(batch, 4, 16)
        model.zero_grad()
        compiled(x).square().sum().backward()
        found = [parameter.grad.clone() for parameter in model.parameters()]
        model.zero_grad()
        model(x).square().sum().backward()
        for gradient, parameter in zip(found, model.parameters(), strict=True):
            torch.testing.assert_close(gradient, parameter.grad, rtol=1e-3, atol=1e-3)


def test_a_whole_graph_is_one_graph_and_a_break_is_torchs_own_error() -> None:
    x = torch.randn(8, 8)
    whole = torch.compile(lambda x: torch.relu(x) * 2, backend=opkit, fullgraph=True)
    torch.testing.assert_close(whole(x), torch.relu(x) * 2)

    def broken(x: Any) -> Any:
        torch._dynamo.graph_break()
        return x + 1

    with pytest.raises(torch._dynamo.exc.Unsupported):
        torch.compile(broken, backend=opkit, fullgraph=True)(x)
    torch.testing.assert_close(torch.compile(broken, backend=opkit)(x), x + 1)


@pytest.mark.slow
def test_the_device_compiles_by_default_and_its_events_read_what_that_takes() -> None:
    """In a process of its own: naming the device lasts for a whole process."""
    text = (
        "import torch\nfrom opkit.graph.backend import watching\n"
        "x = torch.ones(40, device='npu')\n"
        "begin, end = (torch.npu.Event(enable_timing=True) for _ in range(2))\n"
        "with watching() as graphs:\n"
        "    begin.record()\n"
        "    y = torch.compile(lambda x: x * 2 + 1)(x)\n"
        "    end.record()\n"
        "assert begin.elapsed_time(end) > 0\n"
        "assert len(graphs) == 1 and y.device.type == 'npu'\n"
        "assert torch.equal(y.cpu(), torch.full((40,), 3.0))\n"
    )
    environment = {k: v for k, v in os.environ.items() if k != "OPKIT_NPU"}
    subprocess.run([sys.executable, "-c", text], check=True, timeout=300, env=environment)


@pytest.mark.slow
def test_gradients_of_parts_are_put_into_place_by_kernels() -> None:
    def model(x: Any) -> Any:
        first, second = x[:, :8].relu(), x[:, 8:]
        return torch.cat((-second, first), 1) * x[:, 3].exp()[:, None] + x[2:3]

    x = torch.randn(4, 20)
    gradients = []
    for function in (torch.compile(model, backend=opkit), model):
        given = x.clone().requires_grad_()
        with watching() as graphs:
            function(given).square().sum().backward()
        gradients.append(given.grad)
        if function is not model:
            assert [left for graph in graphs for left in graph.left if not left.is_view] == []
    torch.testing.assert_close(gradients[0], gradients[1], rtol=1e-4, atol=1e-4)


@pytest.mark.slow
def test_the_backend_is_found_by_name_without_an_import() -> None:
    text = (
        "import torch\nf = torch.compile(lambda x: x * 2 + 1, backend='opkit')\n"
        "assert torch.equal(f(torch.ones(40)), torch.full((40,), 3.0))\n"
    )
    subprocess.run([sys.executable, "-c", text], check=True, timeout=300)


def test_sizes_that_depend_on_values_are_left_to_torch() -> None:
    """Asking whether such a tensor has no elements was an error of torch's."""

    def positive(x: Any) -> Any:
        return x[x > 0] * 2

    def zeros(count: Any) -> Any:
        return torch.zeros(count.item()) + 1

    x = torch.tensor([1.0, -2.0, 3.0])
    options = {"capture_dynamic_output_shape_ops": True, "capture_scalar_outputs": True}
    with torch._dynamo.config.patch(**options), watching() as graphs:
        found = torch.compile(positive, backend=opkit, fullgraph=True)(x)
        ones = torch.compile(zeros, backend=opkit, fullgraph=True)(torch.tensor(3))
    torch.testing.assert_close(found, positive(x))
    torch.testing.assert_close(ones, torch.ones(3))
    reasons = [left.reason for graph in graphs for left in graph.left]
    assert any("depends on values" in reason for reason in reasons)


def test_a_number_in_another_shape_is_planned() -> None:
    """As `torch.func.grad` of a sum has it; numbers lie in no memory, so a view of one failed."""

    def scaled(x: Any) -> Any:
        return torch.full((), 3.0).view(1, 1).expand(2, 3) * x

    with watching() as graphs:
        result = torch.compile(scaled, backend=opkit)(torch.ones(2, 3))
    torch.testing.assert_close(result, torch.full((2, 3), 3.0))
    assert [left for graph in graphs for left in graph.left if not left.is_view] == []


@pytest.mark.parametrize("kind", ["DYNAMIC", "DUCK", "STATIC"])
def test_tensors_without_memory_get_shapes(kind: str) -> None:
    """They reached a kernel as address 0, or a table of plans as sizes that are no numbers."""
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: torch.sin(x) * 2, backend="opkit", fullgraph=True)
    x = torch.randn(3, 4)
    how = StatelessSymbolicContext(dynamic_sizes=[DimDynamic[kind]] * 2)
    with FakeTensorMode(shape_env=ShapeEnv()) as mode:
        fake = mode.from_tensor(x, symbolic_context=how)
        assert tuple(map(int, compiled(fake).shape)) == (3, 4)
    torch.testing.assert_close(compiled(x), torch.sin(x) * 2)


def test_what_takes_too_much_to_compile_is_left_to_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    # It took all of the machine's memory instead.
    monkeypatch.setenv("OPKIT_COMPILE_SECONDS", "0.002")

    def chain(x: torch.Tensor) -> torch.Tensor:
        for step in range(120):
            x = (x + step).relu() * 1.01
        return x

    x = torch.randn(64)
    with watching() as graphs:
        found = torch.compile(chain, backend="opkit", dynamic=False)(x)
    torch.testing.assert_close(found, chain(x))
    (graph,) = graphs
    assert "may take 0.002" in graph.left[0].reason


def test_of_what_is_not_compiled_together_the_halves_are(monkeypatch: pytest.MonkeyPatch) -> None:
    # One kernel that had no room left the whole backward of RWKV, 1100 nodes, to torch.
    def few(name: str, translation: Any, chip: Any) -> Any:
        if len(translation.nodes) > 4 or any("tan" in n.name for n in translation.nodes):
            raise UsageError("too many at once")
        return CompiledSegment(name, translation, chip)

    monkeypatch.setattr("opkit.graph.backend.CompiledSegment", few)

    def model(x: Any) -> Any:
        values, _ = (x * 2).max(1)
        y = values.exp().sin().cos().abs().neg() + 1
        return y.sqrt().tan().reshape(2, 2), y.tanh().t()

    x = torch.rand(4, 16)
    with watching() as graphs, torch.no_grad():
        found = torch.compile(model, backend=opkit, dynamic=False)(x)
    torch.testing.assert_close(found, model(x), equal_nan=True)
    (graph,) = graphs
    assert len(graph.segments) > 1
    work = [left for left in graph.left if not left.is_view]
    assert 2 <= len(work) < 6 and {left.reason for left in work} == {"too many at once"}
