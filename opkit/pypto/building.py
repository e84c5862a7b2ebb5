"""The builder of the program that is being traced, and the functions that its tensors have."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from opkit.compiler import GraphBuilder, GraphError

from .location import here

__all__ = ["FUNCTIONS", "building", "current_builder", "is_tracing"]

FUNCTIONS: dict[str, Callable[..., Any]] = {}
"""The functions of both surfaces by name; `functions.py` registers them."""

_builders: list[GraphBuilder] = []


class building:
    """What is traced inside of the block belongs to this builder."""

    def __init__(self, builder: GraphBuilder) -> None:
        self._builder = builder

    def __enter__(self) -> GraphBuilder:
        _builders.append(self._builder)
        return self._builder

    def __exit__(self, *_: object) -> None:
        _builders.pop()


def is_tracing() -> bool:
    """Return whether a program is being traced."""
    return bool(_builders)


def current_builder() -> GraphBuilder:
    """Return the builder of the program that is being traced.

    Raises:
        GraphError: none is.
    """
    if not _builders:
        raise GraphError(
            "pypto's functions work inside of functions that @pypto.jit marks",
            location=here(),
            help="put @pypto.jit above the function, and call it with arrays",
        )
    return _builders[-1]
