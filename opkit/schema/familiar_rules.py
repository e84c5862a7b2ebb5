"""Functions of PyTorch and NumPy that the formula language writes out: a row each.

A row has the function's parameters, with their defaults, and what it is in the language's words.
What needs to know how many axes a value has is the reader's
(`compiler/frontends/formula/words.py`).
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

__all__ = [
    "DTYPES",
    "IDENTITIES",
    "WRITTEN_OUT",
    "Written",
    "arguments_of",
    "given_arguments",
    "parsed",
    "written_out",
]


@dataclass(frozen=True)
class Written:
    """One function as it is written out."""

    parameters: str
    """Names in order, `name=default` for those that may be left out."""
    text: str
    reduced: bool = False
    """Whether `reduction=` says what becomes of the values: "mean" unless it says something else,
    "sum" or "none"."""


DTYPES = {
    **{
        name: name for name in ("float16", "bfloat16", "float32", "int8", "uint8", "int16", "int32")
    },
    **{"half": "float16", "float": "float32", "single": "float32", "int": "int32", "bool": "bool"},
    **{"int64": "int32", "long": "int32", "short": "int16", "bool_": "bool", "float_": "float32"},
}
"""Data types as methods and arguments name them; kernels compute whole numbers in int32."""
IDENTITIES = frozenset({"clone", "contiguous", "copy", "detach", "to_dense", "requires_grad_"})
"""Methods that give the value that they are called of."""
_DISTANCE = "sqrt(sum({0}**2, axis=axis, keepdims=keepdims))"

WRITTEN_OUT: dict[str, Written] = {
    "masked_fill": Written("x, mask, value", "where(mask, value, x)"),
    "neg": Written("x", "-x"),
    "negative": Written("x", "-x"),
    "multiply": Written("x, y", "x * y"),
    "mul": Written("x, y", "x * y"),
    "add": Written("x, y, alpha=1", "x + alpha * y"),
    "sub": Written("x, y, alpha=1", "x - alpha * y"),
    "subtract": Written("x, y", "x - y"),
    "div": Written("x, y", "x / y"),
    "divide": Written("x, y", "x / y"),
    "true_divide": Written("x, y", "x / y"),
    "remainder": Written("x, y", "x % y"),
    "mm": Written("a, b", "a @ b"),
    "bmm": Written("a, b", "a @ b"),
    "addmm": Written("x, a, b", "x + a @ b"),
    "baddbmm": Written("x, a, b", "x + a @ b"),
    "t": Written("x", "x.T"),
    "eq": Written("x, y", "x == y"),
    "ne": Written("x, y", "x != y"),
    "lt": Written("x, y", "x < y"),
    "le": Written("x, y", "x <= y"),
    "gt": Written("x, y", "x > y"),
    "ge": Written("x, y", "x >= y"),
    "isnan": Written("x", "x != x"),
    "lerp": Written("x, y, weight", "x + weight * (y - x)"),
    "addcmul": Written("x, a, b, value=1", "x + value * a * b"),
    "addcdiv": Written("x, a, b, value=1", "x + value * a / b"),
    "relu6": Written("x", "clamp(x, 0, 6)"),
    "hardtanh": Written("x, min_val=-1, max_val=1", "clamp(x, min_val, max_val)"),
    "clamp_min": Written("x, low", "maximum(x, low)"),
    "clamp_max": Written("x, high", "minimum(x, high)"),
    "softsign": Written("x", "x / (1 + abs(x))"),
    "selu": Written("x", "1.0507009873554805 * elu(x, 1.6732632423543772)"),
    "glu": Written("x, axis=-1", "chunk(x, 2, axis=axis)[0] * sigmoid(chunk(x, 2, axis=axis)[1])"),
    "embedding": Written("places, table", "take(table, places, axis=0)"),
    "norm": Written("x, axis=None, keepdims=False", _DISTANCE.format("x")),
    "vector_norm": Written("x, axis=None, keepdims=False", _DISTANCE.format("x")),
    "normalize": Written(
        "x, p=2, axis=1, epsilon=1e-12",
        "x / maximum(sqrt(sum(x**2, axis=axis, keepdims=True)), epsilon)",
    ),
    "cosine_similarity": Written(
        "x, y, axis=1, epsilon=1e-8",
        "sum(x * y, axis=axis) / (maximum(sqrt(sum(x**2, axis=axis)), epsilon)"
        " * maximum(sqrt(sum(y**2, axis=axis)), epsilon))",
    ),
    "mse_loss": Written("x, y", "(x - y)**2", reduced=True),
    "l1_loss": Written("x, y", "abs(x - y)", reduced=True),
    "binary_cross_entropy_with_logits": Written(
        "x, y", "maximum(x, 0) - x * y + log1p(exp(-abs(x)))", reduced=True
    ),
    "nll_loss": Written("x, places", "-take_along(x, places, axis=-1)", reduced=True),
    "cross_entropy": Written(
        "x, places", "-take_along(log_softmax(x, axis=-1), places, axis=-1)", reduced=True
    ),
}


def parsed(text: str) -> ast.expr:
    """Return an expression's tree."""
    return ast.parse(text, mode="eval").body


def written_out(text: str, **parts: ast.expr) -> ast.expr:
    """Return an expression with names replaced by parts of a formula."""

    class Parts(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.expr:
            return copy.deepcopy(parts[node.id]) if node.id in parts else node

    written = Parts().visit(parsed(text))
    assert isinstance(written, ast.expr)
    return written


def arguments_of(node: ast.Call, parameters: str) -> Mapping[str, ast.expr] | None:
    """Return the arguments of a call by their names, with defaults; None where they do not fit."""
    rows = [each.strip().partition("=") for each in parameters.split(",")]
    names = [name for name, _, _ in rows]
    given = given_arguments(node, names)
    if given is None:
        return None
    found = {name: parsed(default) for name, sign, default in rows if sign} | given
    return found if found.keys() == set(names) else None


def given_arguments(node: ast.Call, names: Sequence[str]) -> dict[str, ast.expr] | None:
    """Return the arguments that a call gives by these names, as they stand or as they are named;
    None where it gives others, too."""
    if len(node.args) > len(names):
        return None
    found = dict(zip(names, node.args, strict=False))
    for keyword in node.keywords:
        if keyword.arg is None or keyword.arg not in names or keyword.arg in found:
            return None
        found[keyword.arg] = keyword.value
    return found
