"""Functions of PyTorch and NumPy that the formula language writes out: a row each.

A row has the function's parameters, with their defaults, and what it is in the language's words.
What needs to know how many axes a value has is the reader's
(`compiler/frontends/formula/words.py`).
"""

from __future__ import annotations

import ast
import copy
import re
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
    """Names in order, `name=default` for those that may be left out, `name==value` for those that
    may have no other value."""
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
    "softmin": Written("x, axis=-1", "softmax(-x, axis=axis)"),
    "celu": Written("x, alpha=1", "maximum(x, 0) + alpha * expm1(minimum(x, 0) / alpha)"),
    "softshrink": Written("x, lambd=0.5", "x - clamp(x, -lambd, lambd)"),
    "hardshrink": Written("x, lambd=0.5", "where(abs(x) > lambd, x, 0)"),
    "isfinite": Written("x", "abs(x) < inf"),
    "float_power": Written("x, y", "x ** y"),
    "deg2rad": Written("x", "x * (pi / 180)"),
    "rad2deg": Written("x", "x * (180 / pi)"),
    "flipud": Written("x", "flip(x, 0)"),
    "fliplr": Written("x", "flip(x, 1)"),
    "hstack": Written("x", "concat(x, axis=1)"),
    "mv": Written("x, y", "sum(x * y, axis=-1)"),
    "trace": Written("x", "sum(diagonal(x))"),
    "dot": Written("x, y", "sum(x * y)"),
    "vdot": Written("x, y", "sum(x * y)"),
    "addr": Written("x, a, b", "x + outer(a, b)"),
    "any": Written(
        "x, axis=None, keepdims=False",
        "max(where(x != 0, 1.0, 0.0), axis=axis, keepdims=keepdims) > 0",
    ),
    "all": Written(
        "x, axis=None, keepdims=False",
        "min(where(x != 0, 1.0, 0.0), axis=axis, keepdims=keepdims) > 0",
    ),
    "count_nonzero": Written("x, axis=None", "sum(cast(x != 0, 'int32'), axis=axis)"),
    "nansum": Written(
        "x, axis=None, keepdims=False", "sum(where(x == x, x, 0), axis=axis, keepdims=keepdims)"
    ),
    # Without them it would be the largest of a type, which the text does not have.
    "nan_to_num": Written(
        "x, nan=0, posinf, neginf",
        "where(x == x, where(x == inf, posinf, where(x == -inf, neginf, x)), nan)",
    ),
    "percentile": Written(
        "x, q, axis=None, keepdims=False", "quantile(x, q / 100, axis=axis, keepdims=keepdims)"
    ),
    "cdist": Written("x, y, p==2", "sqrt(sum((unsqueeze(x, -2) - unsqueeze(y, -3))**2, axis=-1))"),
    "pairwise_distance": Written(
        "x, y, p==2, epsilon=1e-6, keepdims=False",
        "sqrt(sum((x - y + epsilon)**2, axis=-1, keepdims=keepdims))",
    ),
    "embedding": Written("indices, table", "take(table, indices, axis=0)"),
    "norm": Written("x, axis=None, keepdims=False", _DISTANCE.format("x")),
    "vector_norm": Written("x, axis=None, keepdims=False", _DISTANCE.format("x")),
    "normalize": Written(
        "x, p==2, axis=1, epsilon=1e-12",
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
    "kl_div": Written("x, y, log_target==False", "where(y > 0, y * (log(y) - x), 0)", reduced=True),
    "binary_cross_entropy": Written(
        "x, y", "-(y * maximum(log(x), -100) + (1 - y) * maximum(log1p(-x), -100))", reduced=True
    ),
    "smooth_l1_loss": Written(
        "x, y, beta=1",
        "where(abs(x - y) < beta, 0.5 * (x - y)**2 / beta, abs(x - y) - 0.5 * beta)",
        reduced=True,
    ),
    "huber_loss": Written(
        "x, y, delta=1",
        "where(abs(x - y) <= delta, 0.5 * (x - y)**2, delta * (abs(x - y) - 0.5 * delta))",
        reduced=True,
    ),
    "soft_margin_loss": Written("x, y", "softplus(-y * x)", reduced=True),
    "hinge_embedding_loss": Written(
        "x, y, margin=1", "where(y == 1, x, maximum(margin - x, 0))", reduced=True
    ),
    "margin_ranking_loss": Written(
        "x, y, target, margin=0", "maximum(margin - target * (x - y), 0)", reduced=True
    ),
    "poisson_nll_loss": Written("x, y, log_input==True", "exp(x) - y * x", reduced=True),
    "gaussian_nll_loss": Written(
        "x, y, var, epsilon=1e-6",
        "0.5 * (log(maximum(var, epsilon)) + (x - y)**2 / maximum(var, epsilon))",
        reduced=True,
    ),
    "triplet_margin_loss": Written(
        "x, near, far, margin=1, p==2, epsilon=1e-6",
        "maximum(pairwise_distance(x, near, 2, epsilon) - pairwise_distance(x, far, 2, epsilon)"
        " + margin, 0)",
        reduced=True,
    ),
    "nll_loss": Written("x, indices", "-take_along(x, indices, axis=-1)", reduced=True),
    "cross_entropy": Written(
        "x, indices", "-take_along(log_softmax(x, axis=-1), indices, axis=-1)", reduced=True
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
    rows = [re.fullmatch(r"(\w+)(?:(==?)(.*))?", each.strip()) for each in parameters.split(",")]
    names = [row[1] for row in rows if row is not None]
    given = given_arguments(node, names)
    if given is None:
        return None
    found = dict(given)
    for row in rows:
        assert row is not None
        name, sign, default = row.groups()
        if not sign:
            continue
        value = parsed(default)
        if sign == "==" and name in given and ast.dump(given[name]) != ast.dump(value):
            return None
        found.setdefault(name, value)
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
