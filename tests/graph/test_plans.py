"""A compiler's graph as a plan."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")
from opkit import compiler as oc
from opkit.chips import find_chip
from opkit.graph.recording import plan_of

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
