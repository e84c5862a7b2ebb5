"""Products of matrices on cube cores, under every check."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec

Run = Callable[..., tuple[np.ndarray, ...]]

CASES: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "a bias joins, an activation follows": (
        lambda x, y, b: (x @ y + b).apply("gelu"),
        (
            Spec("x", (300, 70), "float16"),
            Spec("y", (70, 530), "float16"),
            Spec("b", (530,), "float16"),
        ),
    ),
    "a transposed matrix for all batches": (
        lambda x, y: x @ y.T,
        (Spec("x", (3, 100, 70), "float32"), Spec("y", (130, 70), "float32")),
    ),
    "whole numbers": (
        lambda x, y: x @ y,
        (Spec("x", (33, 300), "int8"), Spec("y", (300, 65), "int8")),
    ),
    "attention": (
        lambda q, k, v: (q @ k.transpose(0, 2, 1) * 0.125).apply("softmax") @ v,
        tuple(Spec(name, (4, 96, 64), "float16") for name in "qkv"),
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_a_product_gives_what_numpy_gives_and_is_clean(name: str, run_program: Run) -> None:
    function, specs = CASES[name]
    run_program(function, *specs, limit=None if "float32" not in specs[0].dtype else 2e-5)


def test_a_bias_is_part_of_its_product() -> None:
    function, specs = CASES["a bias joins, an activation follows"]
    kernel = oc.compile(function, *specs)
    assert [group.kind for group in kernel.stages.fused.groups] == ["matmul", "vector"]
    assert len(kernel.stages.fused.groups[0].nodes) == 2
