"""Generated operators in torch: they accept what kernels accept, and work under its transforms."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch._subclasses import FakeTensorMode  # noqa: E402

HALF, BOTH, SINGLE = ["float16"], ["float16", "float32"], ["float32"]


def operator(op: str, types: list[str], inputs: str, **outputs: str) -> dict[str, Any]:
    return {
        "op": op,
        "input_desc": [{"name": name, "type": types} for name in inputs.split()],
        "output_desc": [{"name": n, "type": types, "formula": f} for n, f in outputs.items()],
    }


SCALED = operator("ScaledCopy", SINGLE, "x", y="x*alpha")
SCALED["attr"] = [
    {"name": "alpha", "type": "float", "param_type": "optional", "default_value": 2.0}
]
PROTOTYPE = [
    operator("AddPair", BOTH, "x y", z="x*y + x"),
    operator("HalfOnly", HALF, "x", y="x*sigmoid(x)"),
    operator("RowNorm", SINGLE, "x gamma s", y="(x - row(s))*gamma/(1 + mean(x**2, axis=-1))"),
    {
        **operator("RowTotal", SINGLE, "x", y="sum(x, axis=-1)", k="x + max(x, axis=-1)"),
        "gradient": False,
    },
    SCALED,
]


@pytest.fixture(scope="session")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("bridge")
    prototype = folder / "bridge_ops.json"
    prototype.write_text(json.dumps(PROTOTYPE))
    for arguments in (["gen", "-q", "-i", str(prototype)], ["build", "-q", "bridge_ops"]):
        subprocess.run([sys.executable, "-m", "opkit", *arguments], cwd=folder, check=True)
    return folder / "bridge_ops"


@pytest.fixture(scope="session")
def package(project: Path) -> Any:
    sys.path.insert(0, str(project))
    try:
        import bridge_ops

        return bridge_ops
    finally:
        sys.path.remove(str(project))


@pytest.fixture
def ops(package: Any) -> Any:
    return torch.ops.bridge_ops


def outcome(call: Callable[[], Any]) -> object:
    """Return the shapes of the results, or that the shapes were refused."""
    try:
        result = call()
    except RuntimeError:
        return "refused"
    return [tuple(each.shape) for each in (result if isinstance(result, tuple) else (result,))]


PAIRS = [
    *(((4, 8), other) for other in [(8,), (1, 8), (4, 1), (1,), (), (4, 8), (2, 8), (1, 1)]),
    *(((2, 4, 8), other) for other in [(4, 8), (8,), (1, 4, 8), (2, 1, 8)]),
    *[((1, 8), (4, 1)), ((8,), (1, 8)), ((1, 8), (8,)), ((1, 4, 8), (4, 8)), ((8,), (4, 8))],
    *[((0, 8), (8,)), ((0, 8), (0, 8)), ((3, 0), (0,)), ((), ()), ((2, 1), (1,))],
]
ROWS = [
    *(((4, 8), (8,), s) for s in [(4,), (4, 1), (1,), (2, 2), (2,)]),
    *(((4, 8), gamma, (4,)) for gamma in [(1, 8), (4, 8), (2, 8), (4,), (1,)]),
    *[((2, 2, 8), (8,), (2, 2)), ((2, 2, 8), (4, 8), (4,)), ((8,), (8,), ()), ((), (), ())],
    *[((0, 8), (8,), (0,)), ((4, 0), (0,), (4,)), ((1, 8), (4, 8), (1,))],
    *[((0, 8), (7,), (3,)), ((4, 0), (5,), (3,)), ((4, 8), (8,), (0,))],
]
# Of an empty result the kernel is not launched, and refuses nothing.
PAIRS += [((0, 8), (1,)), ((0, 8), ()), ((4,), (0, 8)), ((0, 8), (2, 0, 8)), ((0, 8), (3, 8))]
TOTALS = [((n,) if isinstance(n, int) else n,) for n in [0, 5, (3, 0), (0, 3), (2, 0, 3), ()]]


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        *(("add_pair", shapes) for shapes in PAIRS),
        *(("row_norm", shapes) for shapes in ROWS),
        *(("row_total", shapes) for shapes in TOTALS),
    ],
    ids=str,
)
def test_fake_tensors_are_accepted_where_the_kernel_accepts(
    ops: Any, name: str, shapes: tuple[tuple[int, ...], ...]
) -> None:
    """Seven of eight broadcasts differed: fake tensors broadcast as torch does, kernels do not."""
    call = getattr(ops, name)

    def fake() -> Any:
        with FakeTensorMode():
            return call(*(torch.ones(shape) for shape in shapes))

    assert outcome(fake) == outcome(lambda: call(*(torch.ones(shape) for shape in shapes)))


def test_meta_tensors_stay_meta(package: Any, ops: Any) -> None:
    """They became CPU tensors of uninitialised memory."""
    x = torch.ones(3, 4, device="meta")
    assert ops.add_pair(x, x).device.type == "meta"
    assert package.add_pair(x, x).shape == (3, 4)


@pytest.mark.parametrize("shape", [(5, 3), (5, 3, 1)])
def test_vmap_takes_one_value_per_row_with_or_without_a_last_axis(
    ops: Any, shape: tuple[int, ...]
) -> None:
    x, gamma, s = torch.randn(5, 3, 8), torch.randn(8), torch.randn(shape)
    found = torch.vmap(lambda x, s: ops.row_norm(x, gamma, s))(x, s)
    each = torch.stack([ops.row_norm(x[i], gamma, s[i]) for i in range(5)])
    torch.testing.assert_close(found, each)


@pytest.mark.slow
def test_the_python_function_compiles_into_one_graph(project: Path, tmp_path: Path) -> None:
    """Also where the package was imported before torch, so that torch does not know it yet."""
    script = tmp_path / "whole_graph.py"
    script.write_text(
        "import bridge_ops, torch\n"
        "def f(x):\n"
        "    return bridge_ops.add_pair(x, x) + bridge_ops.scaled_copy(x, alpha=3.0)\n"
        "compiled = torch.compile(f, fullgraph=True, backend='aot_eager')\n"
        "x = torch.full((3,), 2.0, requires_grad=True)\n"
        "assert compiled(x).tolist() == [12.0] * 3\n"
        "compiled(x).sum().backward()\n"
        "assert x.grad.tolist() == [8.0] * 3\n"
    )
    done = subprocess.run(
        [sys.executable, str(script)],
        env={**os.environ, "PYTHONPATH": str(project)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]


def test_autocast_gives_an_operator_a_type_that_it_has(ops: Any) -> None:
    with torch.autocast("cpu", dtype=torch.bfloat16):
        x = torch.ones(4, dtype=torch.bfloat16, requires_grad=True)
        y = ops.half_only(x)
        y.sum().backward()
        assert y.dtype == torch.float16
        assert x.grad.dtype == torch.bfloat16
        mixed = ops.add_pair(torch.ones(4), torch.ones(4, dtype=torch.bfloat16))
        assert mixed.dtype == torch.float32


@pytest.mark.parametrize("shape", [(0, 8), (4, 0)])
def test_rows_of_nothing_have_gradients_of_zero(ops: Any, shape: tuple[int, int]) -> None:
    x, gamma, s = (torch.ones(size, requires_grad=True) for size in (shape, shape[1:], shape[:1]))
    ops.row_norm(x, gamma, s).sum().backward()
    for tensor in (x, gamma, s):
        assert tensor.grad.shape == tensor.shape
        assert not tensor.grad.any()


def test_a_module_shows_its_attributes_and_exports(package: Any) -> None:
    module = package.ScaledCopy(alpha=3.0)
    assert repr(module) == "ScaledCopy(alpha=3.0)"
    assert module.alpha == 3.0
    exported = torch.export.export(module, (torch.ones(3),)).module()
    assert exported(torch.ones(3)).tolist() == [3.0] * 3


def test_a_dynamic_graph_serves_any_number_of_rows(ops: Any) -> None:
    compiled = torch.compile(
        lambda a, b: ops.add_pair(a, b), fullgraph=True, dynamic=True, backend="aot_eager"
    )
    for rows in (3, 4, 7):
        assert compiled(torch.ones(rows, 5), torch.ones(5)).shape == (rows, 5)


def test_attributes_that_torch_leaves_out_have_their_defaults() -> None:
    # Fake tensors of such a call raised KeyError, for the name of the attribute.
    from opkit.torch_bridge import operators as bridge

    operator = bridge.Operator(
        "reduce",
        inputs=("x",),
        outputs=("y",),
        attributes=("axes", "keep"),
        dtypes=(("float32", "float32"),),
        shapes=lambda t, a: (),
    )
    schema = torch._C.parse_schema(
        "ops::reduce(Tensor x, int[] axes=[0], bool keep=False) -> Tensor"
    )
    defaults = bridge._attribute_defaults(operator, schema)
    x = torch.ones(3)
    assert bridge._split(operator, (x,), defaults)[1] == {"axes": [0], "keep": False}
    assert bridge._split(operator, (x, [1]), defaults)[1] == {"axes": [1], "keep": False}
