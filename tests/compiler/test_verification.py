"""What `--verify` calls a difference, and the references that it holds results against."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.bfloat16 import to_bfloat16
from opkit.chips import DEFAULT_CHIP, find_chip
from opkit.compiler.ir.operator import as_float
from opkit.compiler.ops import OPERATORS
from opkit.compiler.report.verification import difference
from opkit.compiler.stages import compile_stages
from opkit.compiler.tracing import run_graph

FRACTIONS_OF_ONE = sorted(
    name
    for name, row in oc.OPERATORS.items()
    if row.arity == 1 and row.dtype is as_float and row.kind in ("elementwise", "reduction")
)
POSITIVE = ("log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "log1p", "log_one_plus")


def whole_inputs(name: str, dtype: str) -> np.ndarray:
    if dtype == "bool":
        return np.array([True, False, True]) | (name in (*POSITIVE, "atanh"))
    if name == "atanh":
        return np.zeros(3, dtype)
    low = 1 if name in POSITIVE else max(np.iinfo(dtype).min, -128)
    high = 20 if name in ("exp", "exp2", "expm1", "sinh", "cosh", "prod") else 127
    return np.linspace(max(low, -high), high, 41).astype(dtype)


# asinh of uint8 squared it in uint8, softplus negated it, log_softmax took the peak off in int8;
# and the references of 8-bit numbers were NumPy's float16.
@pytest.mark.parametrize("dtype", ["int8", "uint8", "bool", "int32"])
@pytest.mark.parametrize("name", FRACTIONS_OF_ONE)
def test_fractions_of_whole_numbers_are_those_of_equal_fractions(name: str, dtype: str) -> None:
    x = whole_inputs(name, dtype)
    values = {}
    for kind in (dtype, "float32"):
        builder = oc.GraphBuilder("one")
        builder.output("y", builder.input("x", x.shape, kind).apply(name))
        graph = builder.graph()
        lowered = oc.expand(graph)
        given = {"x": x.astype(kind)}
        values[kind] = run_graph(graph, given)[graph.outputs[0][1]]
        made = run_graph(lowered, given)[lowered.outputs[0][1]]
        assert difference(made, values[kind]) < 1e-5
    assert values[dtype].dtype == np.float64
    np.testing.assert_array_equal(values[dtype], values["float32"])


class Echo(oc.ProgramCalls):
    """A program that gives back its inputs."""

    def __init__(self, graph: oc.Graph) -> None:
        self._graph = graph

    @property
    def graph(self) -> oc.Graph:
        return self._graph

    @property
    def lowered(self) -> Any:
        raise NotImplementedError

    def run_group(self, *_: Any) -> None:
        raise NotImplementedError

    def run(self, given: Mapping[str, Any], attributes: Mapping[str, float]) -> dict[str, Any]:
        return {"y": given["x"]}


# It was given an axis, and then refused as it has one.
def test_a_single_number_is_an_input() -> None:
    builder = oc.GraphBuilder("single")
    builder.output("y", builder.input("x", ()) * 2.0)
    assert Echo(builder.graph())(np.float32(3.0)).shape == ()


# Up to 1 anything below the limit was right: zeros in the place of a softmax along a long row.
@pytest.mark.parametrize("size", [1e-3, 1e-6, 1e-9])
def test_small_numbers_are_no_zeros(size: float) -> None:
    expected = np.linspace(0.5, 1.0, 100) * size
    assert difference(np.zeros(100), expected) == 1.0
    assert difference(expected * (1 + 1e-6), expected) < 2e-6


def test_what_is_left_of_a_tensor_may_be_off_by_a_share_of_its_largest() -> None:
    assert difference([1.0, 1e-9], [1.0, 0.0]) < 1e-5
    assert difference([1.0, 1e-4], [1.0, 0.0]) > 1e-2


# The number of the period of a sine was moved over its tie, so that either sign was right.
@pytest.mark.parametrize("how", [{"moved": 2.0**-22}, {"moved": -(2.0**-22)}, {"shaken": 1}])
def test_whole_numbers_on_the_way_are_exact(how: dict[str, Any]) -> None:
    builder = oc.GraphBuilder("periods")
    builder.output("y", builder.input("x", (200,)).apply("tan"))
    lowered = oc.expand(builder.graph())
    x = np.linspace(-40.0, 40.0, 200).astype(np.float32)
    near = run_graph(lowered, {"x": x}, **how)[lowered.outputs[0][1]]
    assert difference(near, np.tan(x.astype(np.float64))) < 1e-2


# A sum of int32 is made of its bytes' sums, each times a power of two: these were moved over ties
# of their casts, so that zeros were as right as the sum.
@pytest.mark.parametrize("how", [{"moved": 2.0**-22}, {"moved": -(2.0**-22)}, {"shaken": 1}])
def test_sums_of_whole_numbers_are_exact(how: dict[str, Any]) -> None:
    builder = oc.GraphBuilder("total")
    builder.output("y", builder.input("x", (3, 5), "int32").apply("sum", axis=(0, 1)))
    program = oc.Compiled(compile_stages(builder.graph(), find_chip(DEFAULT_CHIP), None))
    lowered = program.lowered.graph
    assert any(node.output.dtype == "float32" for node in lowered.nodes)
    x = np.arange(-9, 6, dtype=np.int32).reshape(3, 5) * 7001
    near = run_graph(lowered, {"x": x}, **how)[lowered.outputs[0][1]]
    assert int(near) == int(x.sum())


def test_where_numbers_cancel_roundings_on_the_way_are_no_difference() -> None:
    builder = oc.GraphBuilder("cancels")
    x = builder.input("x", (3,))
    builder.output("y", (x * 3.0) - (x * 3.0000002) + 1e-9)
    graph = builder.graph()
    given = {"x": np.array([1.0, 2.0, 3.0], np.float32)}
    (name,) = (tensor for _, tensor in graph.outputs)
    right = run_graph(graph, given)[name]
    ends = [run_graph(graph, given, shaken=seed)[name] for seed in range(4)]
    assert difference(right + 2e-7, right) > 1e-2
    assert difference(right + 2e-7, right, ends) < 1e-2


# A whole number that came from inputs, or was the largest of some, was moved to the one below.
@pytest.mark.parametrize("how", [{"moved": 2.0**-22}, {"moved": -(2.0**-22)}, {"shaken": 1}])
def test_what_is_chosen_among_exact_numbers_is_exact(how: dict[str, Any]) -> None:
    builder = oc.GraphBuilder("largest")
    x = builder.input("x", (4, 8))
    truth = x.apply("greater", 0.0).astype("float32")
    builder.output("y", truth.max(axis=1, keepdims=True).astype("int32"))
    builder.output("z", x.max(axis=1, keepdims=True).astype("int32"))
    graph = builder.graph()
    given = {"x": np.arange(32, dtype=np.float32).reshape(4, 8)}
    found = run_graph(graph, given, **how)
    np.testing.assert_array_equal(found[graph.outputs[0][1]], [[1], [1], [1], [1]])
    np.testing.assert_array_equal(found[graph.outputs[1][1]], [[7], [15], [23], [31]])


def test_whole_numbers_are_not_right_twice_as_far_off() -> None:
    assert difference([27.0], [25.0], [[26.0], [25.0]]) > 0


def test_a_part_of_a_graph_runs_on_what_the_other_part_has_computed() -> None:
    # The search for what only shifts a variance ended in KeyError: the part's inputs are no tensors
    # of its own.
    x = np.arange(12, dtype=np.float64).reshape(3, 4)
    formula = {"dx": "gradient(max(x) - min(x), g, x)"}
    dx = oc.evaluate_formulas(formula, {"g": np.float64(2.0), "x": x})
    assert dx[0, 0] == -2 and dx[2, 3] == 2 and np.count_nonzero(dx) == 2


class OneOff(oc.Compiled):
    """A program whose first output element is 0."""

    def run_group(self, group: Any, memory: dict[str, Any], *others: Any) -> None:
        inputs = {name: memory[name] for name in self.lowered.inputs_of(group)}
        found = run_graph(self.lowered.graph, inputs)
        for name in self.lowered.outputs_of(group):
            memory[name] = to_bfloat16(np.asarray(found[name]))
            memory[name][0] = 0


@pytest.mark.parametrize("name", ["tanhshrink", "square"])
def test_a_small_bfloat16_element_is_no_zero_where_nothing_is_added_up(name: str) -> None:
    # It counted as an eighth of the largest one, as what is left of a sum may: 0.001 beside 1 was
    # as right as 0.
    builder = oc.GraphBuilder("small")
    builder.output("y", builder.input("x", (8,), "bfloat16").apply(name))
    program = OneOff(compile_stages(builder.graph(), find_chip(DEFAULT_CHIP), None))
    x = to_bfloat16(np.array([0.16, 2, 3, -1, 0.5, 1, -2, 4]))
    found = oc.verify(program, [x])
    assert found is not None
    assert found.stage.startswith("kernel")


@pytest.mark.parametrize(("dtype", "allowance"), [("float16", 1e-6), ("float32", None)])
def test_what_a_function_is_made_of_is_off_by_no_more_than_its_operator_states(
    dtype: str, allowance: float | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    def program(x: Any, w: Any) -> Any:
        return x.apply("tanh") @ w

    compiled = oc.compile(
        program, oc.TensorSpec("x", (4, 80), dtype), oc.TensorSpec("w", (80, 4), dtype)
    )
    arrays = oc.random_arrays(compiled.graph, {})
    # Sums that cancel are off by more than a term's allowance, and right.
    assert oc.verify(compiled, arrays) is None
    row = OPERATORS["tanh"]
    assert set(row.allowances) == {"float16", "bfloat16"}
    if allowance is None:
        return
    monkeypatch.setitem(OPERATORS, "tanh", replace(row, allowances={dtype: allowance}))
    found = oc.verify(compiled, arrays)
    assert found is not None
    assert (found.stage, found.limit) == ("graph", allowance)
    assert allowance < found.error < row.allowances[dtype]


@pytest.mark.parametrize(("operator", "numbers"), [("tanh", (5.0, 8.0)), ("gelu", (5.9, 12.0))])
def test_where_a_short_polynomial_ends_is_within_its_allowance(
    operator: str, numbers: tuple[float, ...]
) -> None:
    compiled = oc.compile(
        lambda x: x.apply(operator), oc.TensorSpec("x", (1, 64), "float16"), name="ends"
    )
    for number in numbers:
        # Of one number each: beside a larger one, a small one may be off by more.
        assert oc.verify(compiled, [np.full((1, 64), -number, np.float16)]) is None


@pytest.mark.parametrize("number", [0.01, 0.1, 1.0])
def test_a_short_tangent_taken_from_its_argument_leaves_what_is_right(number: float) -> None:
    # It was off by 3e-5 of itself near 0 as well: of x - tanh(x) at 0.01, one part in one.
    graph = oc.compile(
        lambda x: x - x.apply("tanh"), oc.TensorSpec("x", (1, 64), "float16"), name="left"
    )
    x = np.full((1, 64), number, np.float16)
    (y,) = graph(x)
    wide = float(x[0, 0])
    np.testing.assert_allclose(np.float64(y), wide - np.tanh(wide), rtol=2e-3, atol=3e-8)
