"""Fixtures shared by the formula tests."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from opkit.dtypes import find_dtype
from opkit.schema import AttrSpec, OpSpec, TensorSpec

MakeSpec = Callable[..., OpSpec]


def build_spec(
    *formulas: str | None,
    inputs: Sequence[str] = ("x",),
    attrs: Sequence[tuple[str, str, object]] = (),
    op: str = "TestOp",
    dtypes: Sequence[str] = ("float16", "float32", "bfloat16"),
) -> OpSpec:
    """Return a prototype whose outputs are y, y1, y2, ..."""
    rows = tuple(row for row in map(find_dtype, dtypes) if row is not None)

    def tensor(name: str, formula: str | None = None) -> TensorSpec:
        return TensorSpec(name, "required", rows, ("ND",) * len(rows), formula)

    return OpSpec(
        op=op,
        name="".join(f"_{c.lower()}" if c.isupper() else c for c in op).lstrip("_"),
        inputs=tuple(tensor(name) for name in inputs),
        outputs=tuple(tensor(f"y{i}" if i else "y", f) for i, f in enumerate(formulas)),
        attrs=tuple(AttrSpec(name, kind, False, default) for name, kind, default in attrs),
        source=Path("test_op.json"),
    )


@pytest.fixture(scope="session")
def make_spec() -> MakeSpec:
    """Build a prototype from formulas."""
    return build_spec
