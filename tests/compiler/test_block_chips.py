"""Chips without DataCopyPad, such as the Ascend310P3: programs of rows of whole 32-byte blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from opkit import compiler as oc
from opkit import runtime
from opkit.compiler import TensorSpec as Spec
from opkit.compiler.ir.graph import GraphError
from opkit.errors import UsageError
from opkit.sanitizer import Check

CHIP = "Ascend310P3"
H, F = "float16", "float32"
M = oc.dimension("M")

CASES: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "parts of one row, two types": (
        lambda x, y: (x * y + 1.0).apply("tanh"),
        (Spec("x", (M, 16), H), Spec("y", (M, 16), F)),
    ),
    "whole rows": (
        lambda x, w: x.apply("softmax") * w,
        (Spec("x", (M, 1024), H), Spec("w", (1024,), F)),
    ),
}
MORE: dict[str, tuple[Callable[..., Any], tuple[oc.TensorSpec, ...]]] = {
    "short rows": (lambda x: x.apply("softmax"), (Spec("x", (333, 48), H),)),
    "rows in parts": (lambda x: x.apply("softmax"), (Spec("x", (3, 160000), H),)),
    "columns": (lambda x: x.max(axis=0) - x.min(axis=0), (Spec("x", (100, 64), F),)),
    "choices": (
        lambda x, y: ((x > y).apply("where", x * 2.0, y), x > y),
        (Spec("x", (100, 64), H), Spec("y", (64,), H)),
    ),
    "whole numbers": (
        lambda x, y: x * y + 3,
        (Spec("x", (100, 64), "int32"), Spec("y", (64,), "int32")),
    ),
    "layer norm": (
        lambda x, w, b: x.apply("layer_norm", w, b).apply("gelu"),
        (Spec("x", (M, 2080), H), Spec("w", (2080,), H), Spec("b", (2080,), H)),
    ),
}


@pytest.mark.parametrize(
    "name", [*CASES, *(pytest.param(name, marks=pytest.mark.slow) for name in MORE)]
)
def test_a_program_is_right_and_clean(name: str) -> None:
    function, specs = {**CASES, **MORE}[name]
    program = oc.compile(function, *specs, chip=CHIP, name="program")
    assert "DataCopyPad" not in "".join(program.sources.values())
    runtime.configure(CHIP)
    with Check(()) as checks:
        difference = oc.verify(program, oc.random_arrays(program.graph, {"M": 77}))
    assert difference is None
    assert checks.findings == ()


@pytest.mark.parametrize(
    ("function", "specs", "message"),
    [
        (lambda x: x.sum(axis=-1), (Spec("x", (8, 64), F),), "has one element a row"),
        (lambda x: x + 1.0, (Spec("x", (8, 64), "bfloat16"),), "is none of float16, float32"),
        (lambda x: x.apply("sin"), (Spec("x", (8, 64), F),), "does not round float32"),
        (lambda x: x @ x, (Spec("x", (64, 64), H),), "matmul is a kernel that only chips like"),
    ],
)
def test_what_does_not_run_is_an_error_at_its_line(
    function: Callable[..., Any], specs: tuple[oc.TensorSpec, ...], message: str
) -> None:
    with pytest.raises(GraphError, match=rf"test_block_chips\.py:\d+: .*{CHIP}: .*{message}"):
        oc.compile(function, *specs, chip=CHIP)


def test_rows_that_are_no_whole_blocks_are_refused_when_launched() -> None:
    program = oc.compile(lambda x: x + 1.0, Spec("x", (3, M), H), chip=CHIP)
    with pytest.raises(UsageError, match="300 float16 are no multiple of 32 bytes"):
        program(*oc.random_arrays(program.graph, {"M": 100}))
