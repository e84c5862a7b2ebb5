"""Trees back to a graph: which operations in which order compute a sum, a product or a power."""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import replace
from fractions import Fraction
from typing import TypeAlias

from opkit import algebra
from opkit.algebra import ONE, ZERO
from opkit.algebra import Node as Tree

from ...ir import Graph, Location, Node, Shape, Value, broadcast_shapes, is_one
from ..rewrite import Rebuilder
from .from_graph import COMPARISONS, Trees

__all__ = ["graph_of"]

_Operand: TypeAlias = "Value | float"
# What one multiplication multiplies by without overflow or loss of digits.
_SMALLEST, _LARGEST = 2.0**-125, 2.0**127


def graph_of(graph: Graph, trees: Trees, *, is_last: bool) -> Graph:
    """Return a graph's inputs and attributes with other outputs, equal to its own.

    Args:
        graph: what the trees were made of.
        trees: its outputs.
        is_last: nothing is rewritten behind it: polynomials and sigmoids are taken apart.
    """
    work = _Work(graph, trees, is_last)
    for name, tensor in graph.output_tensors:
        producer = graph.producers.get(tensor.name)
        with work.builder.at(producer.location if producer is not None else None):
            value = work.tensor(trees.outputs[name], tensor.dtype)
            work.builder.output(name, _shaped(value, tensor.shape))
    found = work.builder.graph()
    return found if len(found.nodes) <= _MANY_NODES else _each_where_it_is_read(found)


_MANY_NODES = 96
"""Nodes of which all terms of a sum, computed before it, would not lie in the unified buffer."""


def _each_where_it_is_read(graph: Graph) -> Graph:
    """Return a graph whose nodes come as late as they can: fewer values wait to be read."""
    ordered: dict[str, Node] = {}
    for _, output in graph.outputs:
        waiting = [output]
        while waiting:
            name = waiting[-1]
            node = graph.producers.get(name)
            missing = [] if node is None or name in ordered else node.inputs
            missing = [n for n in missing if n in graph.producers and n not in ordered]
            if missing:
                waiting.append(missing[0])
                continue
            if node is not None:
                ordered.setdefault(name, node)
            waiting.pop()
    return replace(graph, nodes=tuple(ordered.values()))


def _shaped(value: Value, shape: Shape) -> Value:
    return value if value.shape == shape else value.apply("broadcast_to", shape=shape)


class _Work(Rebuilder):
    def __init__(self, graph: Graph, trees: Trees, is_last: bool) -> None:
        super().__init__(graph)
        self.is_last = is_last
        self.trees = trees
        self.known: dict[Tree, _Operand] = {}
        for node in graph.nodes:
            # The trees' leaves.
            if not node.inputs:
                with self.builder.at(node.location):
                    self.values[node.output.name] = self.same(node, ())

    def tensor(self, tree: Tree, dtype: str = "float32") -> Value:
        """Return a tree's value as a tensor."""
        value = self.operand(tree)
        return value if isinstance(value, Value) else self.builder.constant(value, dtype)

    def operand(self, tree: Tree) -> _Operand:
        """Return a tree's value, computed once; a number where it is one."""
        found = self.known.get(tree)
        if found is None:
            with self.noted(tree):
                found = self.computed(tree)
            self.known[tree] = found
        return found

    def noted(self, tree: Tree) -> AbstractContextManager[None]:
        """Give what is applied inside of the block the maths that it computes as its place."""
        note = algebra.to_note(tree)
        return self.builder.at(Location("formula", 1, note) if note else self.builder.location)

    def computed(self, tree: Tree) -> _Operand:
        kind, args = tree.kind, tree.args
        if tree.is_constant:
            return algebra.evaluate(tree)
        if kind == "attr":
            return self.values[self.trees.leaves[tree.name].output.name]
        if kind == "input":
            return self.values[tree.name]
        polynomial = algebra.match_polynomial(tree) if self.is_last else None
        if polynomial is not None:
            return self.polynomial(polynomial)
        if kind == "sum":
            return self.sum(tree)
        if kind == "product":
            return self.product(tree)
        if kind == "power":
            return self.power(args[0], args[1].fraction)
        if kind == "plus_zero":
            return self.tensor(args[0]) + 0.0
        if kind == "guard":
            value, infinite = map(self.tensor, args)
            return value + (infinite - infinite)
        if kind == "sigmoid" and self.is_last:
            return self.operand(_inverse_of_sigmoid(args[0], -1))
        if kind in COMPARISONS:
            return self.applied(COMPARISONS[kind], args)
        if (kind, str(tree.value)) in self.trees.calls:
            return self.called(tree)
        return self.applied(kind, args)

    def applied(self, operator: str, args: Sequence[Tree]) -> Value:
        return self.builder.apply(operator, *map(self.operand, args))

    def called(self, tree: Tree) -> Value:
        call = self.trees.calls[(tree.kind, str(tree.value))]
        operands = [self.operand(argument) for argument in tree.args]
        if call.shapes is not None:
            tensors = [self.tensor(argument) for argument in tree.args]
            # Its result follows from its operands' shapes, which a rewritten one may have lost.
            operands = [_shaped(t, s) for t, s in zip(tensors, call.shapes, strict=True)]
        return self.builder.apply(call.operator, *operands, **call.attributes)

    # Sums, products, powers

    def polynomial(self, polynomial: algebra.Polynomial) -> Value:
        """Apply Horner's scheme in the base or, where only every other power occurs, in its
        square."""
        step = self.tensor(algebra.power(polynomial.base, polynomial.stride))
        coefficients = polynomial.coefficients
        value = step
        if coefficients[-1] != ONE:
            value = value * algebra.evaluate(coefficients[-1])
        for index, coefficient in reversed(list(enumerate(coefficients[:-1]))):
            if coefficient != ZERO:
                value = value + algebra.evaluate(coefficient)
            if index:
                value = value * step
        if polynomial.lowest:
            value = value * self.tensor(algebra.power(polynomial.base, polynomial.lowest))
        return value

    def sum(self, tree: Tree) -> _Operand:
        signed = []
        numbers = [algebra.evaluate(term) for term in tree.args if term.is_constant]
        for term in tree.args:
            if not term.is_constant:
                is_negative = algebra.coefficient_of(term)[0] < 0
                operand = self.tensor(algebra.negate(term) if is_negative else term)
                signed.append((is_negative, operand))
        return self.gathered(signed, numbers)

    def gathered(self, signed: Sequence[tuple[bool, Value]], numbers: Sequence[float]) -> Value:
        """Return a sum of terms, each with whether it is negative: those of one shape first, so
        that what is the same for many elements is added up once."""
        if all(is_negative for is_negative, _ in signed):
            # -x - b, not -(x + b): the signs of zeros differ.
            signed = [(False, -signed[0][1]), *signed[1:]]
        groups: dict[Shape, list[tuple[bool, Value]]] = {}
        for is_negative, value in signed:
            groups.setdefault(value.shape, []).append((is_negative, value))
        totals = [(shape, *self.added(terms)) for shape, terms in groups.items()]
        if numbers:
            shape, is_negative, value = totals.pop(
                min(range(len(totals)), key=lambda at: _size(totals[at][0]))
            )
            number = math.fsum(numbers)
            totals.append((shape, is_negative, value + (-number if is_negative else number)))
        while len(totals) > 1:
            first, second = _closest([shape for shape, _, _ in totals])
            inner, outer = totals[first], totals[second]
            joined = self.added([outer[1:], inner[1:]])
            rest = [each for at, each in enumerate(totals) if at not in (first, second)]
            totals = [*rest, (joined[1].shape, *joined)]
        return totals[0][2]

    def added(self, terms: Sequence[tuple[bool, Value]]) -> tuple[bool, Value]:
        """Return whether a sum is left negative, and it: a negative term is subtracted, but one
        has to come first."""
        (is_negative, value), *others = sorted(terms, key=lambda term: term[0])
        for other_is_negative, other in others:
            value = value - other if other_is_negative != is_negative else value + other
        return is_negative, value

    def product(self, tree: Tree) -> _Operand:
        opposite = self.known.get(algebra.negate(tree))
        if opposite is not None:
            return -opposite
        number: list[Tree] = []
        top: list[Value] = []
        bottom: list[tuple[Tree, Fraction, Value]] = []
        for factor in algebra.factors_of(tree):
            base, exponent = algebra.as_power(factor)
            if factor.is_constant:
                number.append(factor)
            elif exponent < 0 and not (self.is_last and base.kind == "sigmoid"):
                positive = algebra.power(base, -exponent)
                bottom.append((base, exponent, self.tensor(positive)))
            else:
                top.append(self.tensor(factor))
        shapes = [value.shape for value in (*top, *(value for _, _, value in bottom))]
        whole = broadcast_shapes(*shapes)
        divisors = [value for _, _, value in bottom if value.shape == whole]
        # A divisor for many elements is inverted once.
        top += [
            self.tensor(algebra.power(base, exponent))
            for base, exponent, value in bottom
            if value.shape != whole
        ]
        scale = algebra.product(*number)
        if not top:
            divisor = self.multiplied(divisors)
            (first, *others) = _within_float32(scale) or [1.0]
            value = first / divisor
            return self.scaled(value, others)
        parts = _within_float32(scale)
        value = self.multiplied(top, parts)
        return value / self.multiplied(divisors) if divisors else value

    def scaled(self, value: Value, numbers: Sequence[float]) -> Value:
        for number in numbers:
            value = value * number
        return value

    def multiplied(self, values: Sequence[Value], numbers: Sequence[float] = ()) -> Value:
        """Return a product, factors of one shape first, numbers where the fewest elements are."""
        groups: dict[Shape, Value] = {}
        for value in values:
            known = groups.get(value.shape)
            groups[value.shape] = value if known is None else known * value
        if numbers:
            least = min(groups, key=_size)
            groups[least] = self.scaled(groups[least], numbers)
        totals = list(groups.values())
        while len(totals) > 1:
            first, second = _closest([value.shape for value in totals])
            joined = totals[second] * totals[first]
            totals = [*(v for at, v in enumerate(totals) if at not in (first, second)), joined]
        return totals[0]

    def power(self, base: Tree, exponent: Fraction) -> _Operand:
        if exponent < 0:
            if self.is_last and base.kind == "sigmoid" and exponent.denominator == 1:
                return self.operand(_inverse_of_sigmoid(base.args[0], -exponent))
            return 1.0 / self.tensor(algebra.power(base, -exponent))
        if exponent.denominator == 1:
            half = self.tensor(algebra.power(base, exponent.numerator // 2))
            square = half * half
            return square if exponent.numerator % 2 == 0 else square * self.tensor(base)
        if exponent.denominator == 2:
            whole = self.tensor(algebra.power(base, exponent - Fraction(1, 2)))
            return whole * self.tensor(algebra.call("sqrt", base))
        logarithm = self.tensor(algebra.call("log", base))
        return (logarithm * float(exponent)).apply("exp")


def _inverse_of_sigmoid(u: Tree, exponent: Fraction | int) -> Tree:
    return algebra.power(algebra.add(ONE, algebra.call("exp", algebra.negate(u))), exponent)


def _size(shape: Shape) -> int:
    return sum(not is_one(extent) for extent in shape)


def _closest(shapes: Sequence[Shape]) -> tuple[int, int]:
    """Return which of several shapes is to join which: the smallest the smallest that holds it,
    else the largest."""
    order = sorted(range(len(shapes)), key=lambda at: _size(shapes[at]))
    first, *others = order
    holds = [at for at in others if broadcast_shapes(shapes[first], shapes[at]) == shapes[at]]
    return first, holds[0] if holds else others[-1]


def _within_float32(scale: Tree) -> list[float]:
    """Return the factors that multiply like a number, each one that float32 has."""
    if scale == ONE:
        return []
    value = algebra.evaluate(scale)
    if _SMALLEST < abs(value) < _LARGEST or value == 0 or not math.isfinite(value):
        return [value]
    step = Fraction(2) ** (100 if abs(value) > 1 else -100)
    rest = algebra.product(scale, algebra.number(1 / step))
    return [float(step), *_within_float32(rest)]
