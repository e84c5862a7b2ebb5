"""Kernels that select leave the last 8 KiB of UB to Select, which takes them as scratch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec


def test_what_selects_and_spreads_rows_has_room_for_both() -> None:
    # Rows that are reduced, and selected from, used to be given the last bytes of UB, too.
    def fixed(function: Callable[[Any], Any]) -> int:
        compiled = oc.compile(function, Spec("x", (64, 1000), "float32"))
        ((kernel,),) = compiled.stages.kernels.values()
        assert kernel.plan.spreads_rows
        return int(kernel.plan.fixed_bytes()) - 256 * kernel.plan.counts.get("scratch", 0)

    assert (
        fixed(lambda x: (x > 0.0).apply("where", x.apply("exp"), 0.0).sum(axis=-1))
        - fixed(lambda x: x.apply("exp").sum(axis=-1))
        == 8192
    )
