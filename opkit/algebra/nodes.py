"""Formulas as trees, and the only rewriting that building one does.

What is folded here holds for every value that IEEE 754 has: sums and products may be regrouped and
their numbers gathered, equal factors become one integer power, `x*1` is `x`. What does not hold for
NaN, an infinity or a signed zero stays as written: `x - x`, `x/x`, `x*0`, `x + 0`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from fractions import Fraction
from typing import Literal

__all__ = [
    "COLUMNS",
    "COMPARISONS",
    "ONE",
    "REDUCTIONS",
    "ZERO",
    "Node",
    "Space",
    "add",
    "as_power",
    "attribute",
    "call",
    "coefficient_of",
    "constant",
    "divide",
    "factors_of",
    "negate",
    "number",
    "power",
    "product",
    "rebuild",
    "space_of",
    "subtract",
    "tensor",
    "terms_of",
    "walk",
]

Space = Literal["uniform", "row", "tile"]

REDUCTIONS = frozenset({"row_sum", "row_mean", "row_max", "row_min"})
"""Over the last axis; their value is one per row and broadcasts back over the row."""
COMPARISONS = frozenset({"<", "<=", ">", ">=", "==", "!="})
"""Conditions; only the first argument of `where`."""

_UNIFORM = frozenset({"number", "constant", "attr", "columns"})
_FOLDED_EXPONENT = 64


class Node:
    """One value of a formula; two are equal where they compute the same in the same way.

    Kinds: `number` (a Fraction), `constant` (`pi`, `e`), `input`, `attr` and `columns` (a name),
    `row` (an input with one value per row), `sum` and `product` of any number of arguments, `power`
    with a number as exponent, a comparison, a reduction, or the name of a function. What else a
    function is called with is its value.
    """

    __slots__ = ("args", "digest", "kind", "size", "space", "value")

    kind: str
    args: tuple[Node, ...]
    value: Fraction | str | None
    digest: bytes
    space: Space
    """Whether it is the same everywhere, one per row, or one per element of the inputs."""
    size: int
    """Nodes of the tree, shared ones counted each time: how long its text is."""

    def __init__(
        self, kind: str, args: tuple[Node, ...] = (), value: Fraction | str | None = None
    ) -> None:
        self.kind, self.args, self.value = kind, args, value
        parts = [arg.digest for arg in args]
        if kind in ("sum", "product"):
            parts.sort()
        text = f"{kind}|{value}|{len(args)}|".encode()
        self.digest = hashlib.blake2b(text + b"".join(parts), digest_size=16).digest()
        self.space = _space(kind, args)
        self.size = 1 + sum(arg.size for arg in args)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Node) and self.digest == other.digest

    def __hash__(self) -> int:
        return hash(self.digest)

    def __repr__(self) -> str:
        inner = ", ".join(map(repr, self.args))
        return f"{self.kind}({inner})" if self.args else str(self.value)

    @property
    def is_number(self) -> bool:
        """Whether it is a rational number."""
        return self.kind == "number"

    @property
    def fraction(self) -> Fraction:
        """A number's value."""
        assert isinstance(self.value, Fraction)
        return self.value

    @property
    def name(self) -> str:
        """The name of an input, an attribute or a constant."""
        return str(self.value)

    @property
    def is_constant(self) -> bool:
        """Whether its value is known when the kernel is generated."""
        return self.space == "uniform" and all(
            node.kind not in ("attr", "columns") and (not node.args or node.value is None)
            for node in walk(self)
        )

    def has(self, *kinds: str) -> bool:
        """Return whether any node in it is of one of the kinds."""
        return any(node.kind in kinds for node in walk(self))

    def replace(self, old: Node, new: Node) -> Node:
        """Return it with one value in the place of another."""
        return _replace(self, old, new, {})


def _space(kind: str, args: tuple[Node, ...]) -> Space:
    if kind == "input":
        return "tile"
    if kind == "row" or kind in REDUCTIONS:
        return "row"
    spaces = {arg.space for arg in args}
    return "tile" if "tile" in spaces else "row" if "row" in spaces else "uniform"


def space_of(node: Node) -> Space:
    """Return whether a value is the same everywhere, one per row, or one per element."""
    return node.space


def walk(node: Node) -> Iterator[Node]:
    """Give every distinct node of a tree, arguments before what uses them."""
    seen: set[Node] = set()
    stack = [(node, False)]
    while stack:
        current, done = stack.pop()
        if done:
            yield current
        elif current not in seen:
            seen.add(current)
            stack.append((current, True))
            stack += [(arg, False) for arg in reversed(current.args)]


def _replace(node: Node, old: Node, new: Node, known: dict[Node, Node]) -> Node:
    if node == old:
        return new
    if not node.args:
        return node
    if node not in known:
        known[node] = rebuild(node, tuple(_replace(arg, old, new, known) for arg in node.args))
    return known[node]


def rebuild(node: Node, args: tuple[Node, ...]) -> Node:
    """Return a node of the same kind over other arguments."""
    if args == node.args:
        return node
    if node.kind == "sum":
        return add(*args)
    if node.kind == "product":
        return product(*args)
    if node.kind == "power":
        return power(args[0], args[1].fraction)
    if node.value is not None:
        return Node(node.kind, args, node.value)
    return call(node.kind, *args)


# Leaves


def number(value: int | Fraction) -> Node:
    """Return a rational number."""
    return Node("number", (), Fraction(value))


ZERO, ONE = number(0), number(1)
COLUMNS = Node("columns", (), "columns")
"""The length of the last axis, `columns` in a formula; known when the kernel runs."""


def constant(name: str) -> Node:
    """Return `pi` or `e`."""
    return Node("constant", (), name)


def tensor(name: str) -> Node:
    """Return an input with one value per element."""
    return Node("input", (), name)


def attribute(name: str) -> Node:
    """Return an attribute."""
    return Node("attr", (), name)


def call(kind: str, *args: Node) -> Node:
    """Return a function, a comparison or a reduction of values."""
    if kind == "where" and args[1] == args[2]:
        return args[1]
    return Node(kind, args)


# Sums


def terms_of(node: Node) -> tuple[Node, ...]:
    """Return the terms of a sum; of anything else, itself."""
    return node.args if node.kind == "sum" else (node,)


def add(*terms: Node) -> Node:
    """Return a sum: terms of sums taken in, numbers gathered into one."""
    total: Fraction | None = None
    rest: list[Node] = []
    for term in (inner for outer in terms for inner in terms_of(outer)):
        if term.is_number:
            total = term.fraction if total is None else total + term.fraction
        else:
            rest.append(term)
    if total is not None:
        # Zero too: -0 + 0 is 0.
        rest.append(number(total))
    if not rest:
        return ZERO
    return rest[0] if len(rest) == 1 else Node("sum", tuple(rest))


def subtract(a: Node, b: Node) -> Node:
    """Return a - b."""
    return a if b == ZERO else add(a, negate(b))


# Products


def factors_of(node: Node) -> tuple[Node, ...]:
    """Return the factors of a product; of anything else, itself."""
    return node.args if node.kind == "product" else (node,)


def coefficient_of(node: Node) -> tuple[Fraction, Node]:
    """Return the number of a product and the rest; 1 where there is none."""
    if node.is_number:
        return node.fraction, ONE
    if node.kind == "product" and node.args[0].is_number:
        rest = node.args[1:]
        return node.args[0].fraction, rest[0] if len(rest) == 1 else Node("product", rest)
    return Fraction(1), node


def as_power(node: Node) -> tuple[Node, Fraction]:
    """Return base and exponent; the exponent of anything but a power is 1."""
    if node.kind == "power":
        return node.args[0], node.args[1].fraction
    return node, Fraction(1)


def product(*factors: Node) -> Node:
    """Return a product: factors of products taken in, numbers gathered, equal factors made one
    power where both exponents are whole numbers of one sign."""
    coefficient = Fraction(1)
    powers: dict[tuple[Node, int], Fraction] = {}
    for factor in (inner for outer in factors for inner in factors_of(outer)):
        if factor.is_number:
            coefficient *= factor.fraction
            continue
        base, exponent = as_power(factor)
        if exponent.denominator != 1:
            base, exponent = factor, Fraction(1)
        key = (base, 1 if exponent > 0 else -1)
        powers[key] = powers.get(key, Fraction(0)) + exponent
    rest = tuple(power(base, exponent) for (base, _), exponent in powers.items())
    if not rest:
        return number(coefficient)
    if coefficient == 1 and len(rest) == 1:
        return rest[0]
    return Node("product", rest if coefficient == 1 else (number(coefficient), *rest))


def negate(node: Node) -> Node:
    """Return -node."""
    return product(number(-1), node)


def divide(a: Node, b: Node) -> Node:
    """Return a / b."""
    return product(a, power(b, Fraction(-1)))


def power(base: Node, exponent: Fraction | int) -> Node:
    """Return base ** exponent; a whole power of a whole power is one power, the power 1/2 a square
    root."""
    exponent = Fraction(exponent)
    if exponent == 0:
        return ONE
    if exponent == 1:
        return base
    if exponent == Fraction(1, 2):
        return Node("sqrt", (base,))
    whole = exponent.denominator == 1
    if base.is_number and whole and base.fraction != 0 and abs(exponent) <= _FOLDED_EXPONENT:
        return number(base.fraction ** int(exponent))
    if base.kind == "product" and whole and exponent < 0:
        # A number does not wait for the division.
        scale, rest = coefficient_of(base)
        if scale not in (0, 1):
            return product(power(number(scale), exponent), power(rest, exponent))
    if base.kind == "power" and whole and base.args[1].fraction.denominator == 1:
        return power(base.args[0], base.args[1].fraction * exponent)
    return Node("power", (base, number(exponent)))
