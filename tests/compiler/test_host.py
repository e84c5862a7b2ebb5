"""The target `cpp`: the same programs as plain C++ with threads."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec
from opkit.compiler.tracing.fuzzing import random_graph
from opkit.errors import UsageError

H = "float16"
M = oc.dimension("M")

CASES: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "rows normalised, of any number": (
        lambda x, w, b: x.apply("layer_norm", w, b).apply("silu"),
        (Spec("x", (M, 130), H), Spec("w", (130,), H), Spec("b", (130,), H)),
    ),
    "columns reduced, brain floats": (
        lambda x: (x - x.mean(axis=0, keepdims=True)).max(axis=0),
        (Spec("x", (70, 33), "bfloat16"),),
    ),
    "a product and what follows it": (
        lambda x, y, b: (x @ y.T + b).apply("gelu"),
        (
            Spec("x", (3, 40, 70), "float32"),
            Spec("y", (50, 70), "float32"),
            Spec("b", (50,), "float32"),
        ),
    ),
    "attention": (
        lambda q, k, v: q.apply("attention", k, v, causal=True),
        tuple(Spec(name, (2, 65, 32), H) for name in "qkv"),
    ),
    "attention, rows before heads": (
        lambda q, k, v: q.apply("attention", k, v, turned="qkvy"),
        tuple(Spec(name, (2, 35, 3, 16), H) for name in "qkv"),
    ),
    "whole numbers and truths": (
        lambda x, y: (x * y + 7, (x > y).apply("where", x, y), x & 15),
        (Spec("x", (5, 300), "int8"), Spec("y", (300,), "int8")),
    ),
    "elements moved": (
        lambda x: oc_concat(
            x.transpose(1, 0)[2:, :], x.transpose(1, 0)[:2, ::3].sum(keepdims=True)
        ),
        (Spec("x", (12, 9), "float32"),),
    ),
    "a lookup": (
        lambda t, i: t.apply("take", i) * 2.0,
        (Spec("t", (40, 16), H), Spec("i", (3, 7), "int32")),
    ),
    "int64, which the chip does not compute": (lambda x: x * x - 3, (Spec("x", (4, 5), "int64"),)),
}


def oc_concat(a: Any, b: Any) -> Any:
    return a.builder.apply("concat", a, b.apply("broadcast_to", shape=(1, a.shape[1])), axis=0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_a_program_gives_what_numpy_gives(name: str) -> None:
    function, specs = CASES[name]
    program = oc.compile(function, *specs, target="cpp")
    arrays = oc.random_arrays(program.graph, {"M": 19})
    if name == "a lookup":
        arrays[1] = np.abs(arrays[1]) % 40
    assert oc.verify(program, arrays) is None


@pytest.mark.sampled(4)
@pytest.mark.parametrize("seed", range(12))
def test_random_programs_give_what_numpy_gives(seed: int) -> None:
    graph = random_graph(seed)
    program = oc.compile(graph, target="cpp")
    assert oc.verify(program, oc.random_arrays(graph, {}, seed)) is None


def test_the_number_of_threads_does_not_change_a_result() -> None:
    program = oc.compile(lambda x: x.apply("softmax"), Spec("x", (300, 257), H), target="cpp")
    (x,) = oc.random_arrays(program.graph, {})
    found = []
    for threads in (1, 3):
        program.threads = threads
        found.append(program(x))
    np.testing.assert_array_equal(*found)


def test_halves_convert_as_numpy_converts_them() -> None:
    program = oc.compile(lambda x: x * 1.0, Spec("x", (65536,), H), target="cpp")
    every = np.arange(65536, dtype=np.uint16).view(np.float16)
    np.testing.assert_array_equal(program(every), every)
    wide = oc.compile(lambda x: x.astype(H), Spec("x", (40000,), "float32"), target="cpp")
    random = np.random.default_rng(0)
    x = (random.normal(size=40000) * 10.0 ** random.integers(-9, 6, 40000)).astype(np.float32)
    with np.errstate(over="ignore"):
        np.testing.assert_array_equal(wide(x), x.astype(np.float16))


def test_there_is_no_other_target() -> None:
    with pytest.raises(UsageError, match='no target "cuda"'):
        oc.compile(lambda x: x, Spec("x", (4,)), target="cuda")  # type: ignore[call-overload]


@pytest.mark.slow
@pytest.mark.parametrize(("turned_left", "turned_right"), [(False, False), (True, True)])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_products_with_edges_are_right(dtype: str, turned_left: bool, turned_right: bool) -> None:
    shapes = [(2, 37, 253), (253, 41)]
    left, right = (
        (*shape[:-2], shape[-1], shape[-2]) if is_turned else shape
        for shape, is_turned in zip(shapes, (turned_left, turned_right), strict=True)
    )
    kernel = oc.compile(
        lambda x, y: x.apply("matmul", y, transpose_a=turned_left, transpose_b=turned_right),
        *(oc.TensorSpec("x", left, dtype), oc.TensorSpec("y", right, dtype)),
        target="cpp",
    )
    assert oc.verify(kernel, oc.random_arrays(kernel.graph, {})) is None


def test_powers_of_e_are_right_to_the_ends_of_float32() -> None:
    x = np.concatenate([np.linspace(-110, 95, 9001), [np.nan, np.inf, -np.inf]])
    kernel = oc.compile(
        lambda x: x.apply("exp"), oc.TensorSpec("x", x.shape), name="powers", target="cpp"
    )
    with np.errstate(over="ignore"):
        expected = np.exp(x.astype(np.float32).astype(np.float64)).astype(np.float32)
    np.testing.assert_allclose(kernel(x.astype(np.float32)), expected, rtol=3e-7, atol=3e-45)
