"""Stages between the graph and a kernel's text, executed with NumPy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec
from opkit.compiler.codegen.vector import Plan, SlotError, run_plan, run_steps
from opkit.compiler.codegen.vector.plan import Place
from opkit.compiler.report.verification import difference
from opkit.compiler.tracing.fuzzing import random_graph
from opkit.compiler.tracing.reference import from_storage, to_storage


def differences(graph: oc.Graph, seed: int) -> dict[str, float]:
    """Return how far each stage of each kernel is from float64, by the stage's name."""
    program = oc.compile(graph)
    names = [tensor.name for tensor in graph.inputs]
    arrays = dict(zip(names, oc.random_arrays(graph, {}, seed), strict=True))
    graph = program.lowered.graph
    values = oc.run_graph(graph, arrays)
    scalars = program.scalars({}, {})
    found: dict[str, float] = {}
    for group in program.lowered.groups:
        for stage, results in program.stage_results(group, values, scalars, {}):
            stored = {n: to_storage(values[n], graph.tensors[n].dtype) for n in results}
            wanted = {n: from_storage(v, graph.tensors[n].dtype) for n, v in stored.items()}
            errors = [difference(value, wanted[name]) for name, value in results.items()]
            found[stage] = max(errors)
    return found


CASES: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "rows, whole and in parts": (
        lambda x, w: x.apply("softmax") * w,
        (Spec("x", (33, 100), "float16"), Spec("w", (100,), "bfloat16")),
    ),
    "columns, from top to bottom": (
        lambda x: x / x.apply("abs").sum(axis=0, keepdims=True),
        (Spec("x", (33, 100)),),
    ),
    "whole numbers that wrap, and truths": (
        lambda x, y: (x * y + 100, x.apply("less", y).apply("where", x, y)),
        (Spec("x", (7, 9), "int8"), Spec("y", (9,), "int8")),
    ),
    "what follows a product": (
        lambda x, y, b: (x @ y + b).apply("gelu"),
        (Spec("x", (20, 16), "float16"), Spec("y", (16, 40), "float16"), Spec("b", (40,))),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_steps_and_plans_compute_what_the_graph_does(name: str) -> None:
    function, specs = CASES[name]
    found = differences(oc.trace(function, specs), 0)
    assert any(stage.startswith("steps of") for stage in found)
    assert any(stage.startswith("plan of") for stage in found)
    assert max(found.values()) < 1e-5


def test_steps_and_plans_of_random_programs_compute_what_the_graph_does() -> None:
    for seed in range(2000, 2030):
        found = differences(random_graph(seed, products=seed % 3 == 0), seed)
        assert all(error < 1e-5 for error in found.values()), (seed, found)


def gelu_plan() -> Plan:
    graph = oc.trace(lambda x: x.apply("gelu"), [Spec("x", (8, 64), "float16")])
    (kernels,) = oc.compile(graph).stages.kernels.values()
    return kernels[0].plan


def test_a_slot_that_is_used_again_too_early_is_found() -> None:
    plan = gelu_plan()
    x = np.ones((8, 64), np.float16)
    assert plan.counts["scratch"] > 1
    squeezed = {
        number: Place("scratch", 0) if place.area == "scratch" else place
        for number, place in plan.places.items()
    }
    with pytest.raises(SlotError, match="is read from scratch0, which holds %"):
        run_plan(replace(plan, places=squeezed), {"x": x}, {}, {})


def test_a_plan_computes_what_its_steps_do() -> None:
    plan = gelu_plan()
    x = np.linspace(-3, 3, 512).reshape(8, 64).astype(np.float16)
    (steps,) = run_steps(plan.program, {"x": x}, {}, {}).values()
    (slots,) = run_plan(plan, {"x": x}, {}, {}).values()
    np.testing.assert_array_equal(steps, slots)
