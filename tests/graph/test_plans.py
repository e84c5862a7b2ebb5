"""A compiler's graph as a plan."""

from __future__ import annotations

from typing import Any

import pytest

pytest.importorskip("torch")
from opkit import compiler as oc
from opkit.chips import find_chip
from opkit.compiler.passes import pipeline
from opkit.graph.planning import plan_of

CHIP = find_chip("Ascend910B2")


def test_workspace_of_a_kernel_of_the_library_lies_in_the_arena() -> None:
    # It was taken for a tensor that broadcasts along some batches only, and left to torch.
    graph = oc.trace(lambda x: x.apply("argmax"), [oc.TensorSpec("x", (1, 200000), "float32")])
    plan = plan_of(graph, CHIP)
    (launch,) = plan.launches
    assert plan.arena_bytes >= 32 * launch.block_dim > 0


def test_what_broadcasts_along_some_batches_has_no_plan() -> None:
    # The copy that the host lays out was taken for workspace: what lay there was multiplied.
    specs = [
        oc.TensorSpec("a", (2, 3, 16, 16), "float16"),
        oc.TensorSpec("b", (3, 16, 16), "float16"),
    ]
    graph = oc.trace(lambda a, b: a @ b, specs)
    with pytest.raises(oc.GraphError, match="broadcast along some of their batches only"):
        plan_of(graph, CHIP)


def test_kernels_are_fused_once(monkeypatch: pytest.MonkeyPatch) -> None:
    # Each kernel was made a graph of its own, and fused again.
    def model(x: Any, up: Any, down: Any, weight: Any) -> Any:
        return ((x @ up).apply("gelu") @ down).apply("rms_norm", weight)

    shapes = {"x": (8, 16), "up": (16, 32), "down": (32, 24), "weight": (24,)}
    specs = [oc.TensorSpec(name, shape, "float32") for name, shape in shapes.items()]
    runs: list[str] = []
    fuse = pipeline.fuse

    def counted(graph: Any, **options: Any) -> Any:
        runs.append(graph.name)
        return fuse(graph, **options)

    monkeypatch.setattr(pipeline, "fuse", counted)
    plan = plan_of(oc.trace(model, specs, name="model_fused_once"), CHIP)
    assert len(plan.launches) == 3 and runs == ["model_fused_once"]
