"""Prototypes, a project on disk and a stand-in for the emulator."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from opkit.dtypes import DType, find_dtype
from opkit.schema import AttrSpec, OpSpec, TensorSpec


def dtypes(*names: str) -> tuple[DType, ...]:
    rows = [find_dtype(name) for name in names]
    assert None not in rows
    return tuple(row for row in rows if row is not None)


def tensor(name: str, *names: str, formula: str | None = None) -> TensorSpec:
    return TensorSpec(name, "required", dtypes(*names), ("ND",) * len(names), formula)


TYPES = ("float16", "float32", "bfloat16")


@pytest.fixture
def scale() -> OpSpec:
    """y = 2 x in three dtypes."""
    return OpSpec(
        op="Scale",
        name="scale",
        inputs=(tensor("x", *TYPES),),
        outputs=(tensor("y", *TYPES, formula="factor*x"),),
        attrs=(AttrSpec("factor", "float", required=False, default=2.0),),
        source=Path("scale.json"),
    )


@pytest.fixture
def norm() -> OpSpec:
    """A row operator with a weight of one row."""
    return OpSpec(
        op="Norm",
        name="norm",
        inputs=(tensor("x", "float32"), tensor("gamma", "float32")),
        outputs=(tensor("y", "float32", formula="x*rsqrt(mean(x**2, axis=-1))*gamma"),),
        attrs=(),
        source=Path("norm.json"),
    )


@pytest.fixture
def write_golden(tmp_path: Path) -> Callable[[str], Path]:
    def write(text: str) -> Path:
        path = tmp_path / "golden.py"
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    return write


@pytest.fixture
def make_project() -> Callable[..., Any]:
    """What run_cases reads of a project."""

    def make(*operators: OpSpec) -> Any:
        return SimpleNamespace(name="demo_project", operators=operators)

    return make


class FakeLibrary:
    """Runs a Python function in place of a kernel, and keeps what it was given."""

    def __init__(self, kernel: Callable[..., list[np.ndarray[Any, Any]]]) -> None:
        self.kernel = kernel
        self.calls: list[tuple[str, Mapping[str, Any], Sequence[str] | None]] = []

    def run(
        self,
        op_type: str,
        inputs: Sequence[Any],
        attrs: Mapping[str, Any],
        *,
        dtypes: Sequence[str],
    ) -> list[np.ndarray[Any, Any]]:
        self.calls.append((op_type, attrs, dtypes))
        return self.kernel(*inputs)


@pytest.fixture
def fake_library() -> type[FakeLibrary]:
    return FakeLibrary
