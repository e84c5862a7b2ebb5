"""Sizes of named dimensions, as the command line says them."""

from __future__ import annotations

import math
from typing import Any

from opkit.errors import UsageError

__all__ = ["read_sizes"]

_MOST_ELEMENTS = 1 << 40


def read_sizes(texts: tuple[str, ...], graph: Any) -> dict[str, int]:
    """Return the size of each named dimension of a graph, from `M=2048`.

    Raises:
        UsageError: one is missing, unknown, or no number.
    """
    found = {}
    for text in texts:
        name, _, number = text.partition("=")
        # isascii: there are digits that int() does not take.
        if not (number.isascii() and number.isdigit()) or int(number) < 1:
            raise UsageError(f"--size {text!r} is no size", help="write NAME=N, such as M=2048")
        found[name] = int(number)
    named = {
        str(s)
        for t in graph.inputs
        for e in t.shape
        if not isinstance(e, int)
        for s in e.free_symbols
    }
    missing = sorted(named - set(found))
    if missing:
        raise UsageError(f"the size of {missing[0]} is missing", help=f"add --size {missing[0]}=N")
    unknown = sorted(set(found) - named)
    if unknown:
        known = ", ".join(sorted(named)) or "none: all of them are numbers"
        raise UsageError(f"the program has no size {unknown[0]}", help=f"its sizes are {known}")
    for tensor in graph.inputs:
        extents = [
            e if isinstance(e, int) else int(e.subs({s: found[str(s)] for s in e.free_symbols}))
            for e in tensor.shape
        ]
        if math.prod(extents) > _MOST_ELEMENTS:
            raise UsageError(
                f"--size: {tensor.name} has {math.prod(extents)} elements, more than"
                f" {_MOST_ELEMENTS}: no chip has the memory",
                help="give smaller sizes",
            )
    return found
