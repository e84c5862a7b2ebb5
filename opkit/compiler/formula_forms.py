"""Equal forms of formulas that lose no digits and take fewer instructions."""

from __future__ import annotations

import ast

__all__ = ["better_form"]


def better_form(node: ast.expr) -> ast.expr | None:
    """Return an equal form that loses no digits and takes fewer instructions; None without one.

    `1 + tanh(u)` cancels where `2*sigmoid(2*u)` does not, and `u*tanh(softplus(u))` is Mish.
    """
    if not isinstance(node, ast.BinOp):
        return None
    for one, other in ((node.left, node.right), (node.right, node.left)):
        inner = _argument(other, "tanh")
        if inner is None:
            continue
        is_one = isinstance(one, ast.Constant) and one.value == 1
        if is_one and (isinstance(node.op, ast.Add) or node.left is one):
            sign = {ast.Add: "2", ast.Sub: "-2"}.get(type(node.op))
            if sign is not None:
                return _formula(f"2*sigmoid({sign}*({ast.unparse(inner)}))")
        plus = _argument(inner, "softplus")
        if plus is not None and isinstance(node.op, ast.Mult) and ast.dump(plus) == ast.dump(one):
            return _formula(f"mish({ast.unparse(one)})")
    return None


def _argument(node: ast.expr, function: str) -> ast.expr | None:
    """Return what a function of one value is called with; None where something else stands."""
    if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
        return None
    fits = node.func.id == function and len(node.args) == 1 and not node.keywords
    return node.args[0] if fits else None


def _formula(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
