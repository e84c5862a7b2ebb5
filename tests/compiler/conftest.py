"""Programs run under every check and held against float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.sanitizer import Check

_LIMITS = {"float16": 2e-3, "bfloat16": 2e-2, "float32": 3e-6}


def check_program(
    kernel: oc.Compiled, arrays: list[np.ndarray], limit: float | None = None, **attributes: float
) -> tuple[np.ndarray, ...]:
    """Run a program under every check, compare with float64, and return its outputs."""
    from opkit.compiler.tracing.reference import from_storage

    with Check(()) as checks:
        results = kernel(*arrays, **attributes)
    assert not checks.findings, checks.findings[0]
    results = results if isinstance(results, tuple) else (results,)
    graph = kernel.graph
    names = [tensor.name for tensor in graph.inputs]
    wanted = oc.run_graph(graph, dict(zip(names, arrays, strict=True)), attributes)
    for (_, name), result in zip(graph.outputs, results, strict=True):
        tensor = graph.tensors[name]
        expected = wanted[name]
        actual = from_storage(result, tensor.dtype)
        assert actual.shape == expected.shape
        if "float" not in tensor.dtype:
            np.testing.assert_array_equal(actual, expected)
            continue
        bound = limit or _LIMITS[tensor.dtype]
        np.testing.assert_allclose(actual, expected, rtol=bound, atol=bound)
    return results


@pytest.fixture(scope="session")
def run_program() -> Callable[..., tuple[np.ndarray, ...]]:
    """Return a function that compiles a program, runs it under every check and compares it."""

    def run(
        function: Callable[..., Any],
        *specs: oc.TensorSpec,
        limit: float | None = None,
        **sizes: int,
    ) -> tuple[np.ndarray, ...]:
        kernel = oc.compile(function, *specs)
        return check_program(kernel, oc.random_arrays(kernel.graph, sizes), limit)

    return run
