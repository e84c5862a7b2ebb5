"""Functions that Triton's front end takes in float32 only: those of 16-bit floats, rounded once."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import triton.language as tl

__all__ = ["static_functions"]

_NAMES = (
    *("exp", "exp2", "log", "log2", "cos", "sin", "rsqrt", "sqrt", "sqrt_rn", "erf", "floor"),
    "ceil",
)


def static_functions() -> dict[object, Callable[[Any, ast.Call], Any]]:
    """Return what the code generator calls instead of those functions."""
    return {getattr(tl, name): _through_float32(getattr(tl, name)) for name in _NAMES}


def _through_float32(function: Any) -> Callable[[Any, ast.Call], Any]:
    def call(generator: Any, node: ast.Call) -> Any:
        given = [generator.visit(each) for each in node.args]
        named = dict(generator.visit(keyword) for keyword in node.keywords)
        value = given[0] if given else None
        kind = getattr(getattr(value, "type", None), "scalar", None)
        if kind not in (tl.float16, tl.bfloat16):
            return generator.call_Function(node, function, given, named)
        wide = generator.semantic.cast(value, _like(value, tl.float32))
        result = generator.call_Function(node, function, [wide, *given[1:]], named)
        return generator.semantic.cast(result, _like(value, kind))

    return call


def _like(value: Any, kind: Any) -> Any:
    return value.type.with_element_ty(kind) if value.type.is_block() else kind
