"""Reductions to few numbers, in two steps over the cores."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec
from opkit.profiling import Profile

Run = Callable[..., tuple[np.ndarray, ...]]
MANY = (512, 300)
CASES: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "all, with what is computed first": (
        lambda x, y: ((x - y) * (x - y) * 0.5).sum(axis=(0, 1)),
        (Spec("x", MANY), Spec("y", MANY)),
    ),
    "an extreme of halves": (
        lambda x: x.apply("abs").max(axis=(0, 1)),
        (Spec("x", MANY, "float16"),),
    ),
    "halves that a cast rounds": (
        lambda x: x.astype("float16").sum(axis=(0, 1)),
        (Spec("x", MANY),),
    ),
    "a few rows": (lambda x: x.sum(axis=1), (Spec("x", (3, 60000), "bfloat16"),)),
    "a few columns": (lambda x: x.min(axis=0), (Spec("x", (40000, 5)),)),
    "in the middle": (lambda x: (x * x).sum(axis=1), (Spec("x", (2, 9000, 10)),)),
}


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", CASES)
def test_what_is_reduced_in_two_steps_is_right(name: str, run_program: Run) -> None:
    function, specs = CASES[name]
    kernel = oc.compile(function, *specs)
    assert sum(group.kind == "vector" for group in kernel.lowered.groups) == 2
    run_program(
        function,
        *specs,
        limit=2e-4 if kernel.graph.tensors[kernel.graph.outputs[0][1]].dtype == "float32" else 1e-2,
    )


def test_one_number_of_many_is_the_work_of_many_cores() -> None:
    # A row was one core's: 1 Mi numbers took 64 us, of four columns 2 ms.
    kernel = oc.compile(lambda x: (x * x).sum(axis=(0, 1)), Spec("x", MANY), name="squares")
    with Profile(event_limit=0) as session:
        kernel(np.ones(MANY, np.float32))
    first, second = session.timelines
    assert len(first.cores) > 4
    assert len(second.cores) == 1
    assert first.task_us + second.task_us < 10


@pytest.mark.parametrize(
    ("shape", "function"),
    [
        ((4, 40000), lambda x: x.apply("softmax")),  # goes back to all elements
        ((64, 40000), lambda x: x.sum(axis=1)),  # rows enough
        ((1, 131101), lambda x: x.sum(axis=1)),  # a prime
        ((1, 1000), lambda x: x.sum(axis=1)),  # too few
    ],
)
def test_other_reductions_stay_one_kernel(
    shape: tuple[int, ...], function: Callable[..., Any]
) -> None:
    kernel = oc.compile(function, Spec("x", shape), name="stays_one")
    assert sum(group.kind == "vector" for group in kernel.lowered.groups) == 1
