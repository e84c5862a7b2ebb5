"""Functions that Triton's front end takes in float32 only: of other types as the chip's has them.

Of 16-bit floats they are rounded once; whole numbers are their own floor and ceiling; `cdiv` takes
floats, `max` and `min` take `propagate_nan`.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

import triton
import triton.language as tl

__all__ = ["static_functions"]

_NAMES = (
    *("exp", "exp2", "log", "log2", "cos", "sin", "rsqrt", "sqrt", "sqrt_rn", "erf", "floor"),
    "ceil",
)


def static_functions() -> dict[object, Callable[[Any, ast.Call], Any]]:
    """Return what the code generator calls instead of those functions."""
    functions = {getattr(tl, name): _through_float32(getattr(tl, name)) for name in _NAMES}
    extremes = {tl.max: _extreme(tl.max, _max_or_nan), tl.min: _extreme(tl.min, _min_or_nan)}
    return functions | {tl.cdiv: _ceiling_division} | extremes


@triton.jit
def _max_or_nan(a, b):  # type: ignore[no-untyped-def]
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL)


@triton.jit
def _min_or_nan(a, b):  # type: ignore[no-untyped-def]
    return tl.minimum(a, b, propagate_nan=tl.PropagateNan.ALL)


def _extreme(function: Any, combine: Any) -> Callable[[Any, ast.Call], Any]:
    def call(generator: Any, node: ast.Call) -> Any:
        given = [generator.visit(each) for each in node.args]
        named = dict(generator.visit(keyword) for keyword in node.keywords)
        asked = named.pop("propagate_nan", False)
        if not getattr(asked, "value", asked):
            return generator.call_Function(node, function, given, named)
        if set(named) - {"input", "axis", "keep_dims"}:
            raise TypeError("propagate_nan does not go with indices")
        value = [*given, *(named.pop(name) for name in ("input",) if name in named)]
        if len(value) < 2 and "axis" not in named:
            named["axis"] = None
        return generator.call_Function(node, tl.reduce, value, {**named, "combine_fn": combine})

    return call


def _through_float32(function: Any) -> Callable[[Any, ast.Call], Any]:
    def call(generator: Any, node: ast.Call) -> Any:
        given = [generator.visit(each) for each in node.args]
        named = dict(generator.visit(keyword) for keyword in node.keywords)
        value = given[0] if given else None
        kind = getattr(getattr(value, "type", None), "scalar", None)
        if kind is not None and kind.is_int() and function in (tl.floor, tl.ceil):
            return value
        if kind not in (tl.float16, tl.bfloat16):
            return generator.call_Function(node, function, given, named)
        wide = generator.semantic.cast(value, _like(value, tl.float32))
        result = generator.call_Function(node, function, [wide, *given[1:]], named)
        return generator.semantic.cast(result, _like(value, kind))

    return call


def _ceiling_division(generator: Any, node: ast.Call) -> Any:
    given = [generator.visit(each) for each in node.args]
    named = dict(generator.visit(keyword) for keyword in node.keywords)
    operands = [*given, *named.values()]
    kinds = [getattr(getattr(each, "type", None), "scalar", None) for each in operands]
    if not any(kind is not None and kind.is_floating() for kind in kinds):
        return generator.call_Function(node, tl.cdiv, given, named)
    x, div = [*given, *(named[name] for name in ("x", "div") if name in named)]
    semantic = generator.semantic
    quotient = semantic.truediv(semantic.to_tensor(x), semantic.to_tensor(div))
    kind = quotient.type.scalar
    wide = semantic.cast(quotient, _like(quotient, tl.float32))
    return semantic.cast(generator.call_Function(node, tl.ceil, [wide], {}), _like(quotient, kind))


def _like(value: Any, kind: Any) -> Any:
    return value.type.with_element_ty(kind) if value.type.is_block() else kind
