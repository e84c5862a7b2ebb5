"""Numbers that are looked for among sorted ones, on the vector unit."""

from __future__ import annotations

import numpy as np
import pytest

from opkit import compiler as oc
from opkit.compiler import TensorSpec as Spec
from opkit.sanitizer import Check

SHAPES = {
    "some edges for all": ((100,), (3000,)),
    "one edge": ((1,), (4, 75)),
    "few of each": ((3,), (4, 5)),
    "as many as steps reach": ((4095,), (70,)),
    "one more than half of the steps": ((64,), (65,)),
    "edges for each line": ((5, 77), (5, 33)),
    "as many as a core holds": ((16383,), (165,)),
}


@pytest.mark.sampled(4)
@pytest.mark.parametrize("is_right", [False, True])
@pytest.mark.parametrize("name", SHAPES)
def test_numbers_are_found_where_numpy_finds_them(name: str, is_right: bool) -> None:
    shape, looked = SHAPES[name]
    kernel = oc.compile(
        lambda edges, x: edges.apply("search", x, right=is_right),
        *(Spec("edges", shape), Spec("x", looked)),
    )
    rng = np.random.default_rng(len(name))
    edges = np.sort(rng.integers(-40, 40, shape), -1).astype(np.float32)
    x = rng.integers(-50, 50, looked).astype(np.float32)
    x.reshape(-1)[:3] = np.inf, -np.inf, np.nan
    side = "right" if is_right else "left"
    lines, found = edges.reshape(-1, shape[-1]), x.reshape(len(edges.reshape(-1, shape[-1])), -1)
    expected = [np.searchsorted(a, b, side=side) for a, b in zip(lines, found, strict=True)]
    with Check(()) as checks:
        actual = kernel(edges, x)
    assert not checks.findings, checks.findings[0]
    np.testing.assert_array_equal(actual.reshape(found.shape), np.stack(expected))


def test_what_has_no_edges_for_its_lines_is_refused() -> None:
    with pytest.raises(oc.GraphError, match=r"edges of \[3, 9\] for numbers of \[4, 5\]"):
        oc.trace(lambda e, x: e.apply("search", x), [Spec("e", (3, 9)), Spec("x", (4, 5))])
    with pytest.raises(oc.GraphError, match="20000 edges do not fit a core: at most 16383"):
        oc.trace(lambda e, x: e.apply("search", x), [Spec("e", (20000,)), Spec("x", (4,))])
