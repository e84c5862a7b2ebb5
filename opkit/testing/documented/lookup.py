"""The references that documents give, by an operator's name and by their own."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping, Sequence

# Each enters its functions into the table.
from opkit.testing.documented import (
    attention,  # noqa: F401
    elementwise,  # noqa: F401
    gates,  # noqa: F401
    indexing,  # noqa: F401
    layout,  # noqa: F401
    losses,  # noqa: F401
    norms,  # noqa: F401
    norms_of_channels,  # noqa: F401
    optimisers,  # noqa: F401
    permuting,  # noqa: F401
    pooling,  # noqa: F401
    products,  # noqa: F401
    quantising,  # noqa: F401
    reductions,  # noqa: F401
    resizing,  # noqa: F401
    rotary,  # noqa: F401
    routing,  # noqa: F401
    routing_maps,  # noqa: F401
    softmax,  # noqa: F401
    vision,  # noqa: F401
)
from opkit.testing.documented.table import BY_NAME, OF_OPERATORS, Documented

__all__ = ["NAMESPACE", "Namespace", "calls_in", "documented_as", "formulas_of"]

NAMESPACE = "documented"
"""What stands before a function's name in the text of a case's reference."""


def documented_as(operator: str) -> Sequence[Documented]:
    """Return the functions of an operator's name, the first to try first."""
    return OF_OPERATORS.get(operator, ())


class Namespace:
    """The functions of the table by name, as the text of a reference calls them."""

    def __getattr__(self, name: str) -> Documented:
        """Return one; AttributeError where there is none."""
        try:
            return BY_NAME[name]
        except KeyError:
            raise AttributeError(f"{NAMESPACE} has no reference {name!r}", name=name) from None


def calls_in(text: str) -> Iterator[tuple[Documented, Mapping[str, str]]]:
    """Yield the functions that a reference's text calls, with the names that each parameter has.

    Args:
        text: an expression.
    """
    if NAMESPACE not in text:
        return
    for node in ast.walk(ast.parse(text.strip(), mode="eval")):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Attribute):
            continue
        place = node.func.value
        if not isinstance(place, ast.Name) or place.id != NAMESPACE:
            continue
        function = BY_NAME.get(node.func.attr)
        if function is None:
            continue
        placed = [p.name for p in function.parameters if not p.is_named]
        given = [
            *zip(placed, node.args, strict=False),
            *((k.arg or "", k.value) for k in node.keywords),
        ]
        yield function, {name: v.id for name, v in given if isinstance(v, ast.Name)}


def formulas_of(text: str) -> list[str]:
    """Return what the functions that a reference's text calls compute, a line each."""
    return list(dict.fromkeys(function.formula for function, _ in calls_in(text)))
