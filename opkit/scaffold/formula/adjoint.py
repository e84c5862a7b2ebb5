"""Reverse-mode differentiation of a formula, through reductions over the row."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from fractions import Fraction

from opkit.algebra import (
    COLUMNS,
    COMPARISONS,
    ONE,
    ZERO,
    Node,
    add,
    call,
    collect,
    divide,
    factors_of,
    number,
    power,
    product,
    row_of,
    terms_of,
    walk,
)

from .rows import row_values

__all__ = ["gradients_of"]

_TRIED = ((0.5, 2.0), (-2.0, -0.5), (-3.0, 3.0), (-0.1, 0.1))
"""Ranges of the numbers that a value is tried on."""


def gradients_of(node: Node, cotangent: Node, inputs: Sequence[Node]) -> list[Node]:
    """Return the gradient of each input; 0 for one that the value does not depend on.

    Args:
        node: the value, stabilised, so that what is differentiated keeps its accuracy.
        cotangent: of the value, with one value per row where that is what it has.
        inputs: tensors, `row` around those with one value per row.
    """
    order = list(walk(node))
    shifts = {one for one in order if one.kind in ("row_max", "row_min") and _is_shift(node, one)}
    needed = _depends(order, frozenset(inputs), shifts)
    adjoints: dict[Node, list[Node]] = {node: [_fit(cotangent, node)]}
    for one in reversed(order):
        if one not in adjoints or one not in needed or one in inputs:
            continue
        total = collect(adjoints[one])
        for argument, part in _pull(one, total):
            if argument in needed and part != ZERO:
                adjoints.setdefault(argument, []).append(_fit(part, argument))
    return [collect(adjoints[i]) if i in adjoints and i in needed else ZERO for i in inputs]


def _depends(order: Sequence[Node], inputs: frozenset[Node], constants: set[Node]) -> set[Node]:
    """Return the nodes whose value changes with an input."""
    found: set[Node] = set()
    for node in order:
        if node in constants or node.kind in COMPARISONS:
            continue
        if node in inputs or any(argument in found for argument in node.args):
            found.add(node)
    return found


def _fit(part: Node, target: Node) -> Node:
    """Return a contribution in the space of what it is the gradient of: summed over the row where
    that has one value for all of it."""
    if target.space == "tile" or part.space != "tile":
        return part
    return _row_sum(part)


def _row_sum(part: Node) -> Node:
    """Return the sum over a row, with what is constant along it outside."""
    if part.kind == "sum":
        return add(*(_row_sum(term) for term in part.args))
    if part.space != "tile":
        return product(COLUMNS, part)
    wide = [factor for factor in factors_of(part) if factor.space == "tile"]
    narrow = [factor for factor in factors_of(part) if factor.space != "tile"]
    return product(*narrow, call("row_sum", product(*wide)))


def _pull(node: Node, total: Node) -> list[tuple[Node, Node]]:
    """Return what a node's gradient gives each argument's."""
    kind, args = node.kind, node.args
    if kind == "sum":
        return [(term, _broadcast(node, term, total)) for term in args]
    if kind == "product":
        return _pull_product(node, total)
    if kind == "power":
        base, exponent = args[0], args[1].fraction
        return [(base, _scale(total, number(exponent), power(base, exponent - 1)))]
    if kind in ("maximum", "minimum"):
        return _pull_extremum(node, total)
    if kind == "where":
        condition, a, b = args
        return [
            (a, _choose(condition, total, ZERO)),
            (b, _choose(condition, ZERO, total)),
        ]
    if kind == "relu":
        return [(args[0], _choose(call(">", args[0], ZERO), total, ZERO))]
    if kind == "row_sum":
        return [(args[0], total)]
    if kind == "row_mean":
        return [(args[0], add(*(_mean(term) for term in terms_of(total))))]
    if kind in ("row_max", "row_min"):
        # Elements that tie share the gradient.
        hit = call("==", args[0], node)
        count = call("row_sum", call("where", hit, ONE, ZERO))
        return [(args[0], call("where", hit, divide(total, count), ZERO))]
    if kind in ("guard", "plus_zero", "opaque"):
        return [(args[0], total)]
    row = row_of(kind)
    derivative: Callable[[Node], Node] | None = None if row is None else row.derivative
    if derivative is None:
        raise NotImplementedError(f"no derivative of {kind}")
    slope = derivative(args[0])
    return [] if slope == ZERO else [(args[0], _scale(total, slope))]


def _broadcast(node: Node, argument: Node, part: Node) -> Node:
    """Return what an argument gets, that every element of the node took the same value of."""
    if node.space == "tile" and argument.space != "tile" and part.space != "tile":
        return product(COLUMNS, part)
    return part


def _pull_product(node: Node, total: Node) -> list[tuple[Node, Node]]:
    found = []
    for index, factor in enumerate(node.args):
        if factor.is_number:
            continue
        others = [other for i, other in enumerate(node.args) if i != index]
        found.append((factor, _broadcast(node, factor, _scale(total, *others))))
    return found


def _pull_extremum(node: Node, total: Node) -> list[tuple[Node, Node]]:
    sign, opposite = (">", "<") if node.kind == "maximum" else ("<", ">")
    inner = {"maximum": "minimum", "minimum": "maximum"}[node.kind]
    a, b = node.args
    for bounded, bound in ((a, b), (b, a)):
        if bound.space != "uniform":
            continue
        if bounded.kind == "relu" and inner == "maximum":
            u, other = bounded.args[0], ZERO
        elif bounded.kind == inner and any(one.space == "uniform" for one in bounded.args):
            other, u = sorted(bounded.args, key=lambda one: one.space != "uniform")
        else:
            continue
        # Between two bounds, as hardtanh: nothing at either of them.
        inside = _choose(call(sign, u, bound), total, ZERO)
        return [(u, _choose(call(opposite, u, other), inside, ZERO))]
    tie = _choose(call("==", a, b), _scale(total, number(Fraction(1, 2))), ZERO)
    return [
        (a, _choose(call(sign, a, b), total, tie)),
        (b, _choose(call(sign, b, a), total, tie)),
    ]


def _choose(condition: Node, a: Node, b: Node) -> Node:
    return call("where", condition, a, b)


def _scale(total: Node, *factors: Node) -> Node:
    """Return a product that takes its factors into every `where`: what was not chosen stays 0,
    where 0 times an infinite factor would be NaN."""
    if total == ZERO:
        return ZERO
    if total.kind == "where":
        condition, a, b = total.args
        return _choose(condition, _scale(a, *factors), _scale(b, *factors))
    if total.kind == "sum" and any(term.kind == "where" for term in total.args):
        return add(*(_scale(term, *factors) for term in total.args))
    return product(total, *factors)


def _mean(term: Node) -> Node:
    """Return `term / columns`, through mean where the term holds a sum."""
    factors = list(factors_of(term))
    for index, factor in enumerate(factors):
        if factor.kind == "row_sum":
            factors[index] = call("row_mean", *factor.args)
            return product(*factors)
    return divide(term, COLUMNS)


def _is_shift(node: Node, extreme: Node) -> bool:
    """Whether a value is the same whatever is subtracted in the place of a row's largest value.

    exp(x - max(x))/sum(exp(x - max(x))) is: its gradient by way of max is exactly 0, which rounding
    would make noise. Tried on numbers, at three rows of five.
    """
    # Numbers of both signs, large and small: a choice may hide what it leaves out.
    draw = random.Random(7)
    shift = Node("attr", (), "shift")
    moved = node.replace(extreme, shift)
    if moved == node:
        return False
    for low, high in _TRIED:
        names = sorted({n.name for n in walk(node) if n.kind in ("input", "attr")})
        values = {n: [draw.uniform(low, high) for _ in range(5)] for n in names}
        uniform = {n.name for n in walk(node) if n.kind == "attr"}
        values = {n: [v[0]] * 5 if n in uniform else v for n, v in values.items()}
        results = []
        for at in (0.25, 1.0, 1.75):
            found = row_values(moved, {**values, "shift": [at] * 5})
            results.append(found)
        if not all(_are_close(results[0], other) for other in results[1:]):
            return False
    return True


def _are_close(first: Sequence[float], second: Sequence[float]) -> bool:
    pairs = zip(first, second, strict=True)
    # Outside of a function's domain there is nothing to tell apart.
    return all(
        abs(a - b) <= 1e-9 * (1e-3 + abs(a)) or (math.isnan(a) and math.isnan(b)) for a, b in pairs
    )
