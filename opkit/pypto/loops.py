"""Loops of the public project: they run while a program is traced, and their rounds are joined
where the program is compiled."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from opkit.compiler import GraphError

from .location import here
from .symbolic import SymbolicScalar

__all__ = ["FUNCTIONS"]


def _loop(*bounds: int, unroll_list: Sequence[int] = (), **_: object) -> Iterator[SymbolicScalar]:
    """The indices of a loop; sizes are known when a program is traced, so they are numbers."""
    indices = range(*(int(each) for each in bounds))
    for each in indices:
        index = SymbolicScalar(each)
        index.loop = indices
        yield index


def _loop_unroll(
    *bounds: int, unroll_list: Sequence[int] = (1,), **_: object
) -> Iterator[tuple[SymbolicScalar, int]]:
    indices = range(*(int(each) for each in bounds))
    factors = sorted({1, *unroll_list}, reverse=True)
    at = 0
    while at < len(indices):
        factor = next(n for n in factors if at + n <= len(indices))
        index = SymbolicScalar(indices[at])
        index.loop = indices
        yield index, factor
        at += factor


def _is_loop_begin(index: int, start: int = 0) -> bool:
    loop = getattr(index, "loop", None)
    return index == (start if loop is None else loop[0])


def _is_loop_end(index: int, last: int | None = None) -> bool:
    loop = getattr(index, "loop", None)
    if loop is None and last is None:
        raise GraphError("is_loop_end takes an index that pypto.loop gave", location=here())
    return index == (last if loop is None else loop[-1])


def _cond(condition: Any) -> bool:
    return bool(condition)


FUNCTIONS: dict[str, Callable[..., Any]] = {
    "loop": _loop,
    "loop_unroll": _loop_unroll,
    "is_loop_begin": _is_loop_begin,
    "is_loop_end": _is_loop_end,
    "cond": _cond,
}
