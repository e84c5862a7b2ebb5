"""Gradients as trees: shared factors outside, and what was not chosen stays 0."""

from __future__ import annotations

from collections.abc import Collection

from opkit import algebra
from opkit.algebra import ONE, ZERO, Node

__all__ = ["gradient_form"]


def gradient_form(node: Node, seeds: Collection[str], known: dict[Node, Node]) -> Node:
    """Return a value in which sums that a gradient takes part in have their shared factors
    outside, and products with a choice are choices: 0 times an infinite slope would be NaN.

    Args:
        node: the gradient of an input.
        seeds: the names of the gradients of outputs.
        known: what was rewritten before.
    """
    return _Work(frozenset(seeds), known).rewritten(node)


class _Work:
    def __init__(self, seeds: frozenset[str], known: dict[Node, Node]) -> None:
        self.seeds = seeds
        self.known = known
        self.reached: dict[Node, bool] = {}

    def is_gradient(self, node: Node) -> bool:
        if node not in self.reached:
            self.reached[node] = (node.kind == "input" and node.name in self.seeds) or any(
                self.is_gradient(argument) for argument in node.args
            )
        return self.reached[node]

    def rewritten(self, node: Node) -> Node:
        if not node.args or not self.is_gradient(node):
            return node
        if node not in self.known:
            args = tuple(self.rewritten(argument) for argument in node.args)
            self.known[node] = self.better(algebra.rebuild(node, args))
        return self.known[node]

    def better(self, node: Node) -> Node:
        if node.kind == "sum":
            terms = algebra.terms_of(algebra.collect(algebra.terms_of(node)))
            return algebra.add(*map(self.chosen, terms))
        return self.chosen(node)

    def chosen(self, node: Node) -> Node:
        """Return a product with a choice as a choice between products."""
        if node.kind != "product":
            return node
        factors = algebra.factors_of(node)
        for index, factor in enumerate(factors):
            if self.is_gradient(factor) and _has_choice(factor):
                return scaled(factor, *(f for at, f in enumerate(factors) if at != index))
        return node


def _has_choice(node: Node) -> bool:
    return _is_choice(node) or (node.kind == "sum" and any(_is_choice(t) for t in node.args))


def _is_choice(node: Node) -> bool:
    return node.kind == "where" and (node.args[1] == ZERO or node.args[2] == ZERO)


def scaled(total: Node, *factors: Node) -> Node:
    """Return a product that takes its factors into every choice between something and 0."""
    if total == ZERO:
        return ZERO
    if _is_choice(total):
        condition, a, b = total.args
        return algebra.call("where", condition, scaled(a, *factors), scaled(b, *factors))
    if total.kind == "sum" and any(_is_choice(term) for term in total.args):
        return algebra.add(*(scaled(term, *factors) for term in total.args))
    return algebra.product(total, *factors) if factors else algebra.product(total, ONE)
