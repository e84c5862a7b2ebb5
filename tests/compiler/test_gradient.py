"""Gradients against differences of float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec

EXPONENTIALS = (
    *("log1p", "log_one_plus", "expm1", "softplus", "log_sigmoid", "mish", "tanh_softplus"),
    *("tanhshrink", "sinh", "cosh", "logcosh", "asinh", "atanh"),
)
CASES: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "a norm, summed to its vectors": (
        lambda x, w, b: x.apply("layer_norm", w, b),
        (Spec("x", (3, 5)), Spec("w", (5,)), Spec("b", (5,))),
    ),
    "softmax": (lambda x: x.apply("softmax"), (Spec("x", (3, 5)),)),
    "log-softmax along the first axis": (
        lambda x: x.apply("log_softmax", axis=0),
        (Spec("x", (3, 5)),),
    ),
    "logsumexp": (lambda x: x.apply("logsumexp", axis=-1), (Spec("x", (3, 5)),)),
    "a reduction of a gated unit": (
        lambda x, y: (x.apply("gelu") * y).sum(axis=0),
        (Spec("x", (3, 5)), Spec("y", (5,))),
    ),
    "a product": (lambda x, y: (x @ y).apply("tanh"), (Spec("x", (3, 5)), Spec("y", (5, 4)))),
    "products of batches by one matrix": (
        lambda x, y, z: x @ y @ z.T,
        (Spec("x", (2, 3, 4, 5)), Spec("y", (1, 5, 4)), Spec("z", (3, 4))),
    ),
    "moved and divided": (
        lambda x: (x.T[1:4] / (x.apply("abs") + 1).max(axis=0, keepdims=True).T[1:4]).apply("silu"),
        (Spec("x", (3, 5)),),
    ),
    "every third, as often as it was taken": (
        lambda x: x[1:5:3].apply("cumsum", axis=0),
        (Spec("x", (5, 4)),),
    ),
    "attention, with a mask": (
        lambda q, k, v, m: q.apply("attention", k, v, m, scale=0.7),
        (Spec("q", (2, 3, 4)), Spec("k", (2, 5, 4)), Spec("v", (2, 5, 3)), Spec("m", (3, 5))),
    ),
    "causal attention of heads that share keys, rows before heads": (
        lambda q, k, v: q.apply("attention", k, v, causal=True, turned="qy"),
        (Spec("q", (4, 2, 3)), Spec("k", (1, 4, 3)), Spec("v", (1, 4, 3))),
    ),
    "windows of images": (
        lambda x: x.apply("windows", kernel=(2, 3), stride=(2, 1), padding=(1, 1), dilation=(1, 2)),
        (Spec("x", (2, 4, 5, 2)),),
    ),
    "windows that lie apart": (
        lambda x: x.apply("windows", kernel=(1, 2), stride=(2, 3)),
        (Spec("x", (1, 5, 6, 1)),),
    ),
    "a convolution": (
        lambda x, w: x.apply("conv2d", w, stride=(2, 1), padding=(1, 0)),
        (Spec("x", (2, 3, 4, 5)), Spec("w", (2, 3, 3, 2))),
    ),
    "joined and padded": (
        lambda x: x.builder.apply("concat", x, x.apply("sin"), axis=1).apply(
            "pad", widths=((1, 0), (0, 2)), value=0.0
        ),
        (Spec("x", (3, 5)),),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_gradient_is_the_slope_in_its_inputs_own_shape(name: str) -> None:
    function, specs = CASES[name]
    graph = oc.trace(function, specs)
    random = np.random.default_rng(0)
    arrays = {spec.name: random.normal(size=spec.shape) for spec in specs}
    seeds = {f"grad_{n}": random.normal(size=t.shape) for n, t in graph.output_tensors}
    backward = oc.gradient(graph)
    found = oc.run_graph(backward, {**seeds, **arrays})

    def loss(values: dict[str, np.ndarray]) -> float:
        run = oc.run_graph(graph, values)
        return sum(float((run[t] * seeds[f"grad_{n}"]).sum()) for n, t in graph.outputs)

    step = 1e-5
    for output, tensor in backward.outputs:
        array = arrays[output.removeprefix("grad_")]
        assert found[tensor].shape == array.shape
        for index in np.ndindex(array.shape):
            before = array[index]
            array[index] = before + step
            above = loss(arrays)
            array[index] = before - step
            below = loss(arrays)
            array[index] = before
            assert found[tensor][index] == pytest.approx((above - below) / (2 * step), abs=1e-7)


def test_an_operator_without_a_gradient_is_named_at_its_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(oc.OPERATORS, "sort", replace(oc.OPERATORS["sort"], gradient=None))
    graph = oc.trace(lambda x: x.apply("sort"), [Spec("x", (4, 4))])
    with pytest.raises(oc.GraphError, match='"sort" has no gradient yet'):
        oc.gradient(graph)


def test_outputs_that_are_one_tensor_have_a_gradient_each() -> None:
    graph = oc.trace(lambda x: (x * 2.0, x * 2.0), [Spec("x", (3,))])
    found = oc.gradient(graph)
    arrays = {tensor.name: np.full(3, at + 1.0) for at, tensor in enumerate(found.inputs)}
    values = oc.run_graph(found, arrays)
    np.testing.assert_array_equal(values[found.outputs[0][1]], np.full(3, 2.0 * (1 + 2)))


@pytest.mark.parametrize("operator", EXPONENTIALS)
def test_functions_of_exponentials_have_their_slopes(operator: str) -> None:
    x = np.array([-0.9, -0.3, 0.01, 0.4, 0.8])
    graph = oc.gradient(oc.trace(lambda x: x.apply(operator), [Spec("x", (5,))]))
    found = oc.run_graph(graph, {graph.inputs[0].name: np.ones(5), graph.inputs[1].name: x})
    reference = oc.OPERATORS[operator].reference
    slopes = (reference(x + 1e-5) - reference(x - 1e-5)) / 2e-5
    np.testing.assert_allclose(found[graph.outputs[0][1]], slopes, rtol=1e-6)


# In 16 bits zeros of the operand's type used to meet gradients that are added up in float32.
def test_operators_have_the_same_gradients_in_16_bits_as_in_float32() -> None:
    spec = {name: oc.TensorSpec(name, (4, 6), "float16") for name in "xy"}
    places = oc.TensorSpec("i", (4, 6), "int32")
    programs = {
        "topk": (lambda x: x.apply("topk", k=2), spec["x"]),
        "sort": (lambda x: x.apply("sort"), spec["x"]),
        "take_along": (lambda x, i: x.apply("take_along", i, axis=1), spec["x"], places),
        "put_along": (
            lambda x, i, y: x.apply("put_along", i, y, axis=1),
            spec["x"],
            places,
            spec["y"],
        ),
        "take": (lambda x: x[1:3] * 2.0, spec["x"]),
        "product": (lambda x, y: x @ y.T, spec["x"], spec["y"]),
        "softmax": (lambda x: x.apply("softmax"), spec["x"]),
        "cumsum": (lambda x: x.apply("cumsum", axis=1), spec["x"]),
        "windows": (lambda x: x.reshape(1, 4, 6, 1)[:, :, ::2], spec["x"]),
    }
    for name, (function, *specs) in programs.items():
        half = oc.gradient(oc.trace(function, specs))
        assert all(tensor.dtype == "float16" for _, tensor in half.output_tensors), name
        wide = [oc.TensorSpec(s.name, s.shape, s.dtype.replace("16", "32")) for s in specs]
        single = oc.gradient(oc.trace(function, wide))
        arrays = oc.random_arrays(half, {})
        arrays = [a % 4 if a.dtype == np.int32 else a for a in arrays]
        given = {t.name: a for t, a in zip(half.inputs, arrays, strict=True)}
        found, expected = oc.run_graph(half, given), oc.run_graph(single, given)
        for (_, one), (_, other) in zip(half.outputs, single.outputs, strict=True):
            np.testing.assert_allclose(found[one], expected[other], rtol=2e-3, atol=2e-3)
