"""Casts to 16 bits round where they stand: in kernels, on every target, in references."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit import pypto
from opkit.compiler import Tensor
from opkit.compiler import TensorSpec as Spec
from opkit.compiler.ir.rounding import holds_all, rounded_to
from opkit.compiler.report.verification import difference

RANDOM = np.random.default_rng(0)
X = RANDOM.normal(size=(8, 64)).astype(np.float32)
TARGETS = (
    "ascendc",
    "cpp",
    pytest.param("triton", marks=pytest.mark.torch),
)


def brain(values: Any) -> Any:
    bits = np.asarray(values, np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def half(values: Any) -> Any:
    with np.errstate(over="ignore"):
        return np.asarray(values).astype(np.float16).astype(np.float32)


# Each of them used to be the program without its narrow cast.
PROGRAMS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "there and back": (lambda x: x.astype("float16").astype("float32"), half),
    "what is left": (
        lambda x: x - x.astype("float16").astype("float32"),
        lambda x: x - half(x),
    ),
    "of a computed value": (
        lambda x: (x * 3.0).astype("float16").astype("float32") + 1.0,
        lambda x: half(x * np.float32(3.0)) + np.float32(1.0),
    ),
    "once more after arithmetic in 16 bits": (
        lambda x: (x.astype("float16") * 1.5).astype("float32"),
        lambda x: half(half(x) * np.float32(1.5)),
    ),
    "beyond the largest": (
        lambda x: (x * 1e5).astype("float16").astype("float32"),
        lambda x: half(x * np.float32(1e5)),
    ),
    "whole numbers": (
        lambda x: (x * 5000.0).astype("int32").astype("float16").astype("float32"),
        lambda x: half(np.trunc(x * np.float32(5000.0))),
    ),
}


def test_float64_is_rounded_to_bfloat16_once() -> None:
    # By way of float32, which is a tie between 1 and 1 + 2^-7, it was stored as 1.
    just_above = 1 + 2.0**-8 + 2.0**-40
    assert oc.to_storage(np.array([just_above]), "bfloat16")[0] == 0x3F81
    assert oc.to_storage([just_above, 7], "bfloat16").tolist() == [0x3F81, 0x40E0]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_numbers_round_as_arrays_that_trace_them_do(dtype: str) -> None:
    class Traced(np.ndarray):
        """An array of a class of its own, whose rounding is a scaling around rint."""

    sizes = np.exp2(RANDOM.uniform(-140, 130, 2000)) * RANDOM.choice([-1, 1], 2000)
    values = np.concatenate([sizes, [0.0, -0.0, 65519.9, 65520, -65520, 3.39e38, 3.4e38, np.inf]])
    found, wanted = rounded_to(values, dtype), rounded_to(values.view(Traced), dtype)
    np.testing.assert_array_equal(found, wanted)
    assert rounded_to(values.astype(np.float32), dtype).dtype == np.float32


@pytest.mark.sampled(3)
@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_stated_cast_rounds(name: str, target: Any) -> None:
    program, expected = PROGRAMS[name]
    compiled = oc.compile(program, Spec("x", X.shape), target=target)
    np.testing.assert_array_equal(compiled(X), expected(X))
    if target == "ascendc":
        assert oc.verify(compiled, [X]) is None


@pytest.mark.parametrize("target", ["ascendc", "cpp"])
def test_a_stated_cast_rounds_to_bfloat16(target: Any) -> None:
    compiled = oc.compile(
        lambda x: x.astype("bfloat16").astype("float32"), Spec("x", X.shape), target=target
    )
    np.testing.assert_array_equal(compiled(X), brain(X))


def test_arithmetic_in_16_bits_is_of_float32_until_it_is_cast_or_written() -> None:
    x, y = RANDOM.normal(size=(2, 8, 64)).astype(np.float16)
    specs = (Spec("x", x.shape, "float16"), Spec("y", x.shape, "float16"))
    whole = oc.compile(lambda x, y: x * y + x, *specs)(x, y)
    wide = x.astype(np.float32) * y.astype(np.float32) + x.astype(np.float32)
    np.testing.assert_array_equal(whole, wide.astype(np.float16))


def test_fast_math_leaves_casts_out() -> None:
    program = PROGRAMS["what is left"][0]
    compiled = oc.compile(program, Spec("x", X.shape), choices=oc.Choices(fast_math=True))
    assert not compiled(X).any()


def test_a_formula_rounds_where_it_says_so() -> None:
    formula = {"y": 'cast(cast(x, "float16"), "float32")'}
    np.testing.assert_array_equal(oc.evaluate_formulas(formula, {"x": X.astype(float)}), half(X))


def test_values_are_rounded_as_numpy_rounds_them() -> None:
    sizes = 2.0 ** RANDOM.uniform(-30, 17, 20000) * RANDOM.choice([-1.0, 1.0], 20000)
    special = [0.0, -0.0, np.inf, -np.inf, np.nan, 65504.0, 65519.99, 65520.0, 2.0**-25, 2.0**-24]
    values = np.concatenate([sizes, special])
    with np.errstate(over="ignore"):
        expected = values.astype(np.float16).astype(np.float64)
    np.testing.assert_array_equal(rounded_to(values, "float16"), expected)
    single = values.astype(np.float32)
    keeps = ~np.isnan(single)
    np.testing.assert_array_equal(rounded_to(single, "bfloat16")[keeps], brain(single)[keeps])


def test_which_types_hold_which() -> None:
    assert holds_all("float32", "bfloat16") and holds_all("float16", "uint8")
    assert not holds_all("float16", "bfloat16") and not holds_all("bfloat16", "float16")
    assert not holds_all("float16", "int16") and not holds_all("float32", "int32")


def test_what_lies_between_two_right_results_is_right() -> None:
    assert difference([26.0], [25.0]) > 0
    assert difference([26.0], [25.0], [[26.0], [25.0]]) == 0
    assert difference([27.0], [25.0], [[26.0], [25.0]]) > 0


# Results used to be computed in float32 from the first line to the last.
def test_pypto_rounds_every_result_to_the_type_of_its_arguments() -> None:
    x, y, z = RANDOM.normal(size=(3, 32, 64)).astype(np.float16)

    @pypto.jit
    def program(x: Any, y: Any, z: Any) -> Any:
        return (x * y + z) * y - z

    np.testing.assert_array_equal(program(x, y, z), (x * y + z) * y - z)
    assert program.last.runs_in == "kernels"


def test_pypto_casts_the_products_that_the_text_has() -> None:
    a, b = RANDOM.normal(size=(2, 64, 64)).astype(np.float16)

    @pypto.jit
    def program(a: Any, b: Any) -> Any:
        return pypto.cast(pypto.matmul(a, b), pypto.DT_FP32) * 3.0

    expected = (a.astype(float) @ b.astype(float)).astype(np.float16).astype(np.float32) * 3
    # Sums near a tie are rounded the other way by their order.
    assert (program(a, b) == expected).mean() > 0.99


def test_gradients_that_a_formula_adds_up_are_rounded_once() -> None:
    # Each was rounded to 16 bits where it ended: the gradient of three outputs was too far off.
    inputs = [Tensor(name, (8,), "float16") for name in ("x", "g", "h")]
    text = "gradient(x*3, g, x) + gradient(x*x, h, x)"
    graph = oc.formula_graph("added", inputs, [oc.FormulaOutput("y", text, "float16")])
    rounded = [node for node in graph.nodes if node.operator == "cast"]
    assert [node.output.dtype for node in rounded if node.output.dtype == "float16"] == ["float16"]
