"""A second reader of formulas: Python's syntax tree over float64 arrays, and nothing of opkit's.

What a formula means is what it says here: every operation as written, in the order written.
"""

from __future__ import annotations

import ast

import numpy as np

BINARY = {
    ast.Add: np.add,
    ast.Sub: np.subtract,
    ast.Mult: np.multiply,
    ast.Div: np.divide,
    ast.Pow: np.power,
}
COMPARE = {
    ast.Lt: np.less,
    ast.LtE: np.less_equal,
    ast.Gt: np.greater,
    ast.GtE: np.greater_equal,
    ast.Eq: np.equal,
    ast.NotEq: np.not_equal,
}
FUNCTIONS = {
    "exp": np.exp,
    "expm1": np.expm1,
    "log": np.log,
    "ln": np.log,
    "log1p": np.log1p,
    "sqrt": np.sqrt,
    "rsqrt": lambda u: 1 / np.sqrt(u),
    "abs": np.abs,
    "tanh": np.tanh,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "asinh": np.arcsinh,
    "atanh": np.arctanh,
    "sigmoid": lambda u: 1 / (1 + np.exp(-u)),
    "softplus": lambda u: np.logaddexp(u, 0),
    "relu": lambda u: np.maximum(u, 0),
    "square": np.square,
    "reciprocal": lambda u: 1 / u,
    "sign": np.sign,
    "floor": np.floor,
    "ceil": np.ceil,
    "round": np.rint,
    "maximum": np.maximum,
    "minimum": np.minimum,
    "pow": np.power,
    "where": np.where,
}


def read(formula, **values):
    """Return the value of a formula; inputs have shape (rows, columns)."""
    arrays = {name: np.asarray(value, np.float64) for name, value in values.items()}
    shape = np.broadcast_shapes(*(array.shape for array in arrays.values()))

    def value(node):
        if isinstance(node, ast.Constant):
            return np.float64(node.value)
        if isinstance(node, ast.Name):
            known = {"pi": np.pi, "e": np.e, "columns": shape[-1], **arrays}
            return np.float64(known[node.id]) if np.ndim(known[node.id]) == 0 else known[node.id]
        if isinstance(node, ast.UnaryOp):
            return -value(node.operand) if isinstance(node.op, ast.USub) else value(node.operand)
        if isinstance(node, ast.BinOp):
            return BINARY[type(node.op)](value(node.left), value(node.right))
        if isinstance(node, ast.Compare):
            return COMPARE[type(node.ops[0])](value(node.left), value(node.comparators[0]))
        name = node.func.id
        arguments = [value(argument) for argument in node.args]
        if name in ("row", "like"):
            return arguments[0]
        if len(arguments) == 1 and name in ("sum", "mean", "max", "min"):
            row = np.broadcast_to(arguments[0], shape)
            return getattr(np, name)(row, axis=-1, keepdims=True)
        return FUNCTIONS[{"max": "maximum", "min": "minimum"}.get(name, name)](*arguments)

    with np.errstate(all="ignore"):
        return np.broadcast_to(value(ast.parse(formula, mode="eval").body), shape)
