"""Random numbers: the generator's published numbers, and that they depend on the seed only."""

from __future__ import annotations

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec
from opkit.compiler.ops.random_numbers import philox_uniform
from opkit.sanitizer import Check


def _program() -> oc.Graph:
    builder = oc.GraphBuilder("chances")
    seed = builder.attribute("seed", "int", 1)
    shape = (oc.dimension("M"), 33)
    builder.output("uniform", builder.apply("random_uniform", seed, shape=shape, stream=3))
    x = builder.input("x", shape, "float16")
    builder.output("kept", builder.apply("dropout", x, seed, p=0.25))
    builder.output("normal", builder.apply("random_normal", seed, shape=(400,), stream=4))
    return builder.graph()


def test_the_generator_gives_its_authors_numbers() -> None:
    # Known answer for a counter and a key of zeros: 6627e8d5 e169c58d bc57ac4c 9b00dbd8.
    bits = (philox_uniform(0, 0, 4) * (1 << 24) - 1).astype(np.int64)
    assert [f"{each:06x}" for each in bits] == ["6627e8", "e169c5", "bc57ac", "9b00db"]


def test_numbers_are_those_of_the_seed_that_comes_with_a_launch() -> None:
    graph = _program()
    kernel = oc.compile(graph)
    x = np.ones((70, 33), np.float16)
    for seed in (1, -5):
        with Check(()) as checks:
            uniform, kept, normal = kernel(x, seed=seed)
        assert not checks.findings
        wanted = oc.run_graph(graph, {"x": x}, {"seed": seed})
        for actual, (_, tensor) in zip((uniform, kept, normal), graph.outputs, strict=True):
            np.testing.assert_allclose(actual, wanted[tensor], rtol=1e-3, atol=1e-4)
    assert uniform.min() > 0 and uniform.max() <= 1 and abs(uniform.mean() - 0.5) < 0.03
    assert abs(normal.mean()) < 0.2 and abs(normal.std() - 1) < 0.1


@pytest.mark.slow
def test_the_processor_at_hand_draws_the_same_numbers() -> None:
    chip, host = oc.compile(_program()), oc.compile(_program(), target="cpp")
    x = np.ones((2, 33), np.float16)
    for actual, expected in zip(host(x, seed=9), chip(x, seed=9), strict=True):
        np.testing.assert_allclose(actual, expected, rtol=1e-3, atol=1e-5)


@pytest.mark.slow
def test_what_is_dropped_has_no_gradient() -> None:
    graph = oc.gradient(oc.trace(lambda x: x.apply("dropout", 7, p=0.5), [Spec("x", (4, 50))]))
    given = {"x": np.ones((4, 50), np.float32), "grad_y": np.full((4, 50), 3, np.float32)}
    gradient = oc.compile(graph)(*(given[tensor.name] for tensor in graph.inputs))
    dropped = philox_uniform(7, 0, 200).reshape(4, 50) <= 0.5
    np.testing.assert_array_equal(gradient, np.where(dropped, 0, 6))


@pytest.mark.parametrize(("share", "message"), [(1.0, "a share of 1.0"), (-0.1, "a share of -0.1")])
def test_all_cannot_be_dropped(share: float, message: str) -> None:
    with pytest.raises(oc.GraphError, match=message):
        oc.trace(lambda x: x.apply("dropout", 1, p=share), [Spec("x", (4,))])
