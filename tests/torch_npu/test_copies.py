"""Copies and in-place operators whose operands do not fit: refused, as the CPU refuses them; and
results that go where the elements lie in another order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

pytestmark = pytest.mark.torch

ROWS = torch.arange(15.0).view(3, 5)

REFUSED: dict[str, Callable[[Any], Any]] = {
    # More dims than the target has ended the process; fewer elements were read beyond their end.
    "more dims": lambda x: x.copy_(x.new_ones(2, 3, 5)),
    "other sizes": lambda x: x.copy_(x.new_ones(2, 5)),
    "a target that would grow": lambda x: x[:1].copy_(x.clone()),
    "memory in other places": lambda x: x[1:].copy_(x[:-1]),
    "one element to many places": lambda x: x[:1].expand(3, 5).copy_(x),
}


@pytest.mark.parametrize("name", REFUSED)
def test_copies_that_do_not_fit_are_refused(name: str) -> None:
    with pytest.raises(RuntimeError) as wanted:
        REFUSED[name](ROWS.clone())
    with pytest.raises(RuntimeError) as given:
        REFUSED[name](ROWS.npu())
    assert str(given.value) == str(wanted.value)


def test_a_matrix_is_not_transposed_onto_itself() -> None:
    square = torch.arange(9.0).view(3, 3)
    for x in (square.clone(), square.npu()):
        with pytest.raises(RuntimeError, match="single memory location"):
            x.copy_(x.t())


def test_copies_broadcast() -> None:
    for source in (torch.tensor(2.0), torch.arange(5.0), torch.ones(3, 1), torch.ones(1, 1)):
        wanted = ROWS.clone().copy_(source)
        assert torch.equal(ROWS.npu().copy_(source.npu()).cpu(), wanted)
        assert torch.equal(ROWS.npu().copy_(source).cpu(), wanted)
        assert torch.equal(ROWS.clone().copy_(source.npu()), wanted)


@pytest.mark.parametrize("dtype", ["float64", "complex64"])
def test_operators_in_place_keep_the_shape_of_what_they_change(dtype: str) -> None:
    # The CPU's functions for these took it for an `out=`, and resized it.
    wide = torch.ones(2, 4, 5, dtype=getattr(torch, dtype))
    for x in (wide[:, :1].clone(), wide[:, :1].npu()):
        with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
            x.logical_and_(wide.to(x.device))
        assert x.shape == (2, 1, 5)


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", "int64", "bool", "complex64"])
@pytest.mark.parametrize("name", ["triu", "tril"])
def test_triangles_go_where_elements_lie_in_another_order(name: str, dtype: str) -> None:
    # PyTorch's function for the CPU writes beside such an `out=`.
    x = torch.arange(225).view(3, 3, 5, 5).to(getattr(torch, dtype))
    out = torch.empty(5, 5, 3, 3, dtype=x.dtype, device="npu").permute(3, 2, 1, 0)
    given = getattr(torch, name)(x.npu(), out=out)
    assert given.stride() == (1, 3, 9, 45)
    assert torch.equal(out.cpu(), getattr(x, name)())
