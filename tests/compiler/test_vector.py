"""Fused element-wise and reducing kernels on the emulator, under every check."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.chips import find_chip
from opkit.compiler import TensorSpec as Spec
from opkit.compiler.choices import OWN_CHOICES
from opkit.compiler.codegen.vector_kernel import vector_kernels
from opkit.compiler.passes.fusion import FusedGraph, Group

Run = Callable[..., tuple[np.ndarray, ...]]
M = "float16"


def _standard(x: Any, weight: Any, bias: Any) -> Any:
    return x.apply("layer_norm", weight, bias).apply("silu")


CASES: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "a chain with a tail": (
        lambda x: x.apply("gelu", approximate="tanh"),
        (Spec("x", (100, 333), "float16"),),
    ),
    "short rows": (lambda x: x.apply("softmax"), (Spec("x", (1000, 33), "float32"),)),
    "rows of whole blocks": (lambda x: x.apply("softmax"), (Spec("x", (64, 4096), "float16"),)),
    "rows longer than UB": (lambda x: x.apply("softmax"), (Spec("x", (2, 50000), "float16"),)),
    "a norm with vectors of two types": (
        _standard,
        (
            Spec("x", (50, 1000), "float16"),
            Spec("weight", (1000,), "float16"),
            Spec("bias", (1000,), "float32"),
        ),
    ),
    "any axes broadcast, two outputs of two types": (
        lambda x, y: (x + y, x < y),
        (Spec("x", (4, 1, 30, 5), "float32"), Spec("y", (6, 1, 5), "float32")),
    ),
    "a choice": (
        lambda x, y: (x < y).apply("where", x, y * 2),
        (Spec("x", (400, 77), "float16"), Spec("y", (77,), "float16")),
    ),
    # The whole tile's conversion of the one condition was asked for before the tile began.
    "one condition for all, converted for a tile and before it": (
        lambda x, c: (
            (x < 0.5).apply("bitwise_xor", c),
            c.apply("equal", c).apply("where", x, 0.0),
        ),
        (Spec("x", (130, 17), "float32"), Spec("c", (1, 1), "bool")),
    ),
    "a reduction to one number": (lambda x: x.sum(), (Spec("x", (40, 77), "float32"),)),
    "two reductions over two axes": (
        lambda x: (x.max(axis=(1, 2)), x.mean(axis=(1, 2), keepdims=True)),
        (Spec("x", (40, 7, 9), "float32"),),
    ),
    "whole numbers wrap": (
        lambda x, y: x * y + 1,
        (Spec("x", (40, 77), "int8"), Spec("y", (77,), "int8")),
    ),
    "bits": (
        lambda x, y: (x & y) | (x ^ 1),
        (Spec("x", (40, 77), "int16"), Spec("y", (77,), "int16")),
    ),
    "whole numbers compare": (
        lambda x, y: (x < y, x >= y, x.apply("not_equal", y)),
        (Spec("x", (40, 77), "int32"), Spec("y", (77,), "int32")),
    ),
    "the first axis, with a tail": (lambda x: x.sum(axis=0), (Spec("x", (640, 7), "float32"),)),
    "an axis in the middle": (
        lambda x: x.apply("softmax", axis=1),
        (Spec("x", (6, 33, 100), "float16"),),
    ),
    "axes that do not lie together": (
        lambda x, b: x.mean(axis=(0, 2, 3), keepdims=True) * b,
        (Spec("x", (4, 6, 5, 7), "float32"), Spec("b", (6, 1, 1), "float32")),
    ),
    # A short last tile rounded up to what comparisons read added that to a longer tile's sums.
    "a sum of choices over parts of long rows": (
        lambda x: (x < 3.0).apply("where", x.apply("exp") + 2.0, 1.0).sum(axis=-1),
        (Spec("x", (3, 20011), "float32"),),
    ),
    "a maximum of choices over parts of long rows": (
        lambda x: (-1.0 - x.apply("abs") * (x < 1.0).apply("where", 1.0, 2.0)).max(axis=-1),
        (Spec("x", (3, 20011), "float32"),),
    ),
    "a sum of choices over rows of a few columns": (
        lambda x: (x < 3.0).apply("where", x.apply("exp") + 2.0, 1.0).sum(axis=0),
        (Spec("x", (5003, 3), "float32"),),
    ),
    "bfloat16": (lambda x: x.apply("silu") + 1.0, (Spec("x", (33, 65), "bfloat16"),)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_a_program_gives_what_numpy_gives_and_is_clean(name: str, run_program: Run) -> None:
    function, specs = CASES[name]
    run_program(function, *specs)


def test_one_kernel_serves_every_size_of_a_named_dimension(run_program: Run) -> None:
    rows, columns = oc.dimension("M"), oc.dimension("N")
    spec = Spec("x", (rows, columns), "float32")
    for sizes in ({"M": 3, "N": 70}, {"M": 100, "N": 1}, {"M": 2, "N": 30000}):
        run_program(lambda x: x.apply("softmax"), spec, **sizes)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("name", ["stride", "op", "work", "input_queue", "row_slots", "linux"])
def test_a_tensor_may_be_called_what_kernels_call_their_own(name: str) -> None:
    specs = [Spec(name, (5, 7)), Spec("w", (7,))]
    kernel = oc.compile(lambda x, w: x / x.sum(axis=-1, keepdims=True) * w, *specs, name="named")
    x = np.arange(1, 36, dtype=np.float32).reshape(5, 7)
    w = np.arange(7, dtype=np.float32)
    np.testing.assert_allclose(kernel(x, w), x / x.sum(-1, keepdims=True) * w, rtol=1e-6)


def test_a_number_comes_with_the_launch() -> None:
    builder = oc.GraphBuilder("scaled")
    x = builder.input("x", (5, 7))
    builder.output("y", x * builder.attribute("scale", "float", 2.0) + 1.0)
    kernel = oc.compile(builder.graph())
    x_array = np.arange(35, dtype=np.float32).reshape(5, 7)
    np.testing.assert_array_equal(kernel(x_array), x_array * 2 + 1)
    np.testing.assert_array_equal(kernel(x_array, scale=3), x_array * 3 + 1)


def test_a_profile_names_the_users_line() -> None:
    from opkit.profiling import Profile

    kernel = oc.compile(lambda x: x.apply("exp") + 1.0, Spec("x", (4, 300)), name="lines")
    with Profile() as session:
        kernel(np.zeros((4, 300), np.float32))
    (timeline,) = session.timelines
    files = {str(line.file) for line in timeline.lines if line.instruction == "Exp"}
    assert files == {__file__}


def test_the_same_program_is_compiled_once() -> None:
    def program(x: oc.Value) -> oc.Value:
        return x.apply("exp")

    first = oc.compile(program, Spec("x", (4, 300)))
    assert oc.compile(program, Spec("x", (4, 300))) is first
    assert oc.compile(program, Spec("x", (4, 301))) is not first


def test_a_chain_is_lowered_however_long_it_is() -> None:
    """Each operator took four of Python's calls within one another, of which there are 1000."""

    def chain(x: Any) -> Any:
        y = x
        for index in range(300):
            y = y * x if index % 2 else y + x
        return y

    graph = oc.trace(chain, [Spec("x", (8,), "float32")])
    # More than the compiler puts into one kernel by itself.
    group = Group("chain", "vector", tuple(graph.nodes))
    fused = FusedGraph(graph, (group,))
    (kernel,) = vector_kernels(fused, group, find_chip("Ascend910B2"), OWN_CHOICES)
    lines = kernel.text.text.render().splitlines()
    assert sum("Add(" in line or "Mul(" in line for line in lines) == 300


def test_kernels_declare_what_they_use() -> None:
    program = oc.compile(
        lambda w: w.apply("softmax"), oc.TensorSpec("w", (oc.dimension("K"),), "float32")
    )
    for text in program.sources.values():
        for body in text.split("const uint32_t count = ")[1:]:
            rest = body[body.index(";") : body.index("\n    }\n")]
            assert re.search(r"\bcount\b", rest), rest


@pytest.mark.parametrize("name", ["sin", "cos"])
def test_angles_of_many_turns_are_right_or_no_numbers(name: str) -> None:
    near = np.random.default_rng(5).uniform(-(2.0**17), 2.0**17, 250).astype(np.float32)
    far = np.array([2.0**17, -3e5, 1e9, -3e38, np.inf, np.nan], np.float32)
    kernel = oc.compile(lambda x: x.apply(name), oc.TensorSpec("x", (256,), "float32"))
    result = kernel(np.concatenate([near, far]))
    wanted = getattr(np, name)(near.astype(np.float64))
    np.testing.assert_allclose(result[:250], wanted, atol=1e-5)
    assert np.isnan(result[250:]).all()


@pytest.mark.parametrize("name", ["gelu", "ndtr"])
def test_tails_of_the_normal_distribution_keep_their_digits(name: str) -> None:
    # 1 + erf(x / sqrt(2)) has none left where it is small: GELU of -3e38 was 2e31.
    far = np.array([-3e38, -1e30, -100.0, -20.0, 20.0, 1e30, 3e38, np.inf, np.nan], np.float32)
    x = np.concatenate([np.linspace(-7.0, 7.0, 5001, dtype=np.float32), far])
    program = oc.compile(lambda x: x.apply(name), Spec("x", x.shape, "float32"))
    expected = oc.OPERATORS[name].reference(x.astype(np.float64), **oc.OPERATORS[name].parameters)
    actual = np.asarray(program(x), np.float64)
    with np.errstate(invalid="ignore"):
        share = np.abs(actual - expected) / (np.abs(expected) + 1e-7)
    same = (actual == expected) | (np.isnan(actual) & np.isnan(expected))
    assert np.max(np.where(same, 0.0, share)) < 1e-4
