"""Products of halves whose float32 sums are asked for, rounded by nothing, on every target; and of
which a cast reads the halves."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit import pypto
from opkit.compiler import TensorSpec as Spec
from opkit.compiler.ir.graph import GraphError
from opkit.compiler.tracing.reference import from_storage, random_arrays, to_storage

F = "float32"
SPECS = {
    dtype: (Spec("a", (48, 96), dtype), Spec("b", (96, 40), dtype))
    for dtype in ("float16", "bfloat16", F)
}
# Sums of 96 normal numbers' products, near 10: float16 rounds them by 4e-3, float32 by 1e-6 each.
TOLERANCE = 1e-4
TARGETS = (
    "ascendc",
    "cpp",
    pytest.param("triton", marks=pytest.mark.torch),
)
PROGRAMS: dict[str, Callable[..., Any]] = {
    "asked for": lambda a, b: a.apply("matmul", b, dtype=F),
    "cast": lambda a, b: (a @ b).astype(F),
    "cast in another shape": lambda a, b: (a @ b).reshape(96, 20).astype(F),
    "a part, cast": lambda a, b: (a @ b).T[4:12].astype(F),
    "cast, and read as it is": lambda a, b: ((a @ b).astype(F), a @ b),
}


def _graph(name: str, dtype: str) -> oc.Graph:
    return oc.trace(PROGRAMS[name], SPECS[dtype], name="sums")


def _exact(name: str, graph: oc.Graph, arrays: dict[str, Any]) -> Any:
    a, b = (from_storage(arrays[t.name], t.dtype) for t in graph.inputs)
    whole = a @ b
    return {
        "cast in another shape": whole.reshape(96, 20),
        "a part, cast": whole.T[4:12],
    }.get(name, whole)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_a_product_that_is_asked_for_as_float32_is_its_sums(dtype: str, target: Any) -> None:
    name = "asked for"
    graph = _graph(name, dtype)
    arrays = dict(zip("ab", random_arrays(graph, {}), strict=True))
    exact = _exact(name, graph, arrays)
    # The tolerance tells sums from what was rounded.
    rounded = from_storage(to_storage(exact, dtype), dtype)
    assert np.abs(rounded - exact).max() > 10 * TOLERANCE
    results = oc.compile(graph, target=target).run(arrays, {})
    first = graph.outputs[0][0]
    assert results[first].dtype == np.float32
    np.testing.assert_allclose(results[first], exact, rtol=0, atol=TOLERANCE)


# A cast used to take the sums in place of the halves that the text has.
@pytest.mark.sampled(4)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", [name for name in PROGRAMS if name != "asked for"])
def test_a_cast_reads_a_product_as_its_type_holds_it(name: str, dtype: str, target: Any) -> None:
    graph = _graph(name, dtype)
    arrays = dict(zip("ab", random_arrays(graph, {}), strict=True))
    rounded = from_storage(to_storage(_exact(name, graph, arrays), dtype), dtype)
    results = oc.compile(graph, target=target).run(arrays, {})
    for output, tensor in graph.outputs:
        values = from_storage(results[output], graph.tensors[tensor].dtype)
        # Sums near a tie are rounded the other way; Triton's interpreter rounds bfloat16 to zero.
        step = 2.0**-7 if dtype == "bfloat16" else 2.0**-10
        np.testing.assert_allclose(values, rounded, rtol=step, atol=TOLERANCE)
        is_cut = dtype == "bfloat16" and target == "triton"
        assert is_cut or (values == rounded).mean() > 0.99


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", PROGRAMS)
def test_fast_math_takes_the_sums_of_a_product(name: str) -> None:
    graph = _graph(name, "float16")
    arrays = dict(zip("ab", random_arrays(graph, {}), strict=True))
    results = oc.compile(graph, choices=oc.Choices(fast_math=True)).run(arrays, {})
    first = graph.outputs[0][0]
    np.testing.assert_allclose(results[first], _exact(name, graph, arrays), rtol=0, atol=TOLERANCE)


def test_sums_are_kept_where_every_operator_is_a_kernel_of_its_own() -> None:
    graph = _graph("asked for", "float16")
    arrays = dict(zip("ab", random_arrays(graph, {}), strict=True))
    compiled = oc.compile(graph, choices=oc.Choices(fusion="none"))
    (result,) = compiled.run(arrays, {}).values()
    np.testing.assert_allclose(result, _exact("asked for", graph, arrays), rtol=0, atol=TOLERANCE)


def test_a_product_is_not_any_type_that_one_asks_for() -> None:
    with pytest.raises(GraphError, match="products of float32 and float32 are float32, not int8"):
        oc.trace(lambda a, b: a.apply("matmul", b, dtype="int8"), SPECS[F], name="sums")


def test_the_gradient_of_sums_is_that_of_the_product() -> None:
    graph = oc.gradient(_graph("asked for", "float16"))
    arrays = dict(zip((t.name for t in graph.inputs), random_arrays(graph, {}), strict=True))
    results = oc.compile(graph).run(arrays, {})
    expected = oc.run_graph(graph, arrays)
    for name, tensor in graph.outputs:
        assert results[name].dtype == np.float16
        np.testing.assert_allclose(results[name], expected[tensor], rtol=2e-3, atol=2e-2)


def test_pypto_gives_the_sums_that_out_dtype_asks_for() -> None:
    random = np.random.default_rng(0)
    a, b, bias = (
        random.standard_normal(s).astype("float16") for s in ((48, 96), (96, 40), (1, 40))
    )
    exact = a.astype(float) @ b.astype(float)

    @pypto.jit
    def program(a: Any, b: Any, bias: Any) -> Any:
        with_bias = pypto.matmul(a, b, pypto.DT_FP32, extend_params={"bias_tensor": bias})
        return pypto.matmul(a, b, pypto.DT_FP32), with_bias

    plain, with_bias = program(a, b, bias)
    assert plain.dtype == with_bias.dtype == np.float32
    np.testing.assert_allclose(plain, exact, rtol=0, atol=TOLERANCE)
    np.testing.assert_allclose(with_bias, exact + bias, rtol=0, atol=TOLERANCE)


def test_pypto_rounds_a_product_once_to_another_half() -> None:
    # Sums of 1e5 are infinite as float16, and are not as bfloat16.
    a = np.full((16, 40), 50, "float16")

    @pypto.jit
    def program(a: Any) -> Any:
        return pypto.matmul(a, a, pypto.DT_BF16, b_trans=True)

    expected = to_storage(np.full((16, 16), 1e5), "bfloat16")
    np.testing.assert_array_equal(program(a), expected)
