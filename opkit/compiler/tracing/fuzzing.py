"""Random tensor programs, from a seed: what tests and benchmarks throw at the compiler."""

from __future__ import annotations

import random

from ..ir import Graph, Value, is_one
from .builder import GraphBuilder

__all__ = ["EXTENTS", "random_graph"]

EXTENTS = (1, 2, 3, 5, 7, 8, 16, 17, 31, 33, 64, 65, 100, 127, 130, 257, 600)
"""Around the ends of blocks, repeats and tiles."""
_MOST_ELEMENTS = 20000
_UNARY = (
    "tanh",
    "sigmoid",
    "abs",
    "neg",
    "relu",
    "gelu",
    "silu",
    "softplus",
    "square",
    "erf",
    "sin",
)
_BINARY = ("add", "sub", "mul", "maximum", "minimum")
_COMPARISONS = ("less", "less_equal", "greater", "greater_equal")
_REDUCTIONS = ("sum", "mean", "max", "min")


def random_graph(seed: int, *, depth: int = 8, products: bool = False) -> Graph:
    """Return a program of up to `depth` operators, one after another or side by side.

    With `products` some of them multiply by a matrix of the program's. Comparisons are of inputs
    only, so that no rounding can turn one over.
    """
    return _Random(seed, depth, products).build()


class _Random:
    def __init__(self, seed: int, depth: int, products: bool) -> None:
        self.products = products
        self.matrices = 0
        self.random = random.Random(seed)
        self.depth = self.random.randint(1, depth)
        self.builder = GraphBuilder(f"random_{seed}")

    def build(self) -> Graph:
        shape = self.shape()
        inputs = [self.input(index, shape) for index in range(self.random.randint(1, 4))]
        values = list(inputs)
        for _ in range(self.depth):
            values.append(self.step(values, inputs))
        last = values[len(inputs) :][-self.random.randint(1, 3) :]
        for index, value in enumerate(dict.fromkeys(last)):
            self.builder.output(f"y{index}", value)
        return self.builder.graph()

    def shape(self) -> tuple[int, ...]:
        while True:
            rank = self.random.randint(1, 4)
            shape = tuple(self.random.choice(EXTENTS) for _ in range(rank))
            total = 1
            for extent in shape:
                total *= extent
            if total <= _MOST_ELEMENTS:
                return shape

    def input(self, index: int, shape: tuple[int, ...]) -> Value:
        own: tuple[int, ...] = shape
        if index > 0:
            own = tuple(1 if self.random.random() < 0.25 else extent for extent in shape)
            own = own[self.random.randint(0, 1) if len(own) > 1 else 0 :]
        dtype = self.random.choice(("float16", "float32", "float32", "bfloat16"))
        return self.builder.input(f"x{index}", own, dtype)

    def step(self, values: list[Value], inputs: list[Value]) -> Value:
        kind = self.random.random()
        x = self.random.choice(values[-3:])
        if self.products and x.ndim >= 2 and self.random.random() < 0.3:
            return self.product(x)
        if kind < 0.35:
            name = self.random.choice(_UNARY)
            # What grows stays small: squares of squares leave float16.
            bounded = x.apply("clamp", low=-4.0, high=4.0) if name == "square" else x
            return bounded.apply(name)
        if kind < 0.65:
            return self.binary(x, self.random.choice(values))
        if kind < 0.75:
            return x * self.random.choice((0.5, -1.5, 2.0)) + self.random.choice((0.0, 1.0))
        if kind < 0.85:
            return self.reduction(x)
        if kind < 0.93:
            return self.choice(x, inputs)
        return self.moved(x)

    def product(self, x: Value) -> Value:
        depth = int(x.shape[-1])
        columns = self.random.choice(EXTENTS[2:])
        turned = self.random.random() < 0.5
        shape = (columns, depth) if turned else (depth, columns)
        matrix = self.builder.input(f"w{self.matrices}", shape, x.dtype)
        self.matrices += 1
        # Sums as large as what is summed.
        small = x.apply("clamp", low=-4.0, high=4.0) * float(depth**-0.5)
        return small.apply("matmul", matrix, transpose_b=turned)

    def binary(self, x: Value, y: Value) -> Value:
        if not self.fits(x, y):
            return x + 1.0
        if self.random.random() < 0.2:
            return x / (y.apply("abs") + 1.0)
        return x.apply(self.random.choice(_BINARY), y)

    def fits(self, x: Value, y: Value) -> bool:
        pairs = zip(reversed(x.shape), reversed(y.shape), strict=False)
        if not all(a == b or is_one(a) or is_one(b) for a, b in pairs):
            return False
        total = 1
        for axis in range(1, max(x.ndim, y.ndim) + 1):
            extents = [v.shape[-axis] for v in (x, y) if axis <= v.ndim]
            total *= max(int(extent) for extent in extents)
        return total <= 4 * _MOST_ELEMENTS

    def reduction(self, x: Value) -> Value:
        if x.ndim == 0:
            return x + 1.0
        name = self.random.choice(_REDUCTIONS)
        axes = [axis for axis in range(x.ndim) if self.random.random() < 0.5] or [x.ndim - 1]
        return x.apply(name, axis=tuple(axes), keepdims=self.random.random() < 0.8)

    def choice(self, x: Value, inputs: list[Value]) -> Value:
        a = self.random.choice(inputs)
        condition = a.apply(self.random.choice(_COMPARISONS), self.random.choice((0.0, 0.5)))
        return condition.apply("where", x, 0.25) if self.fits(condition, x) else x * 2.0

    def moved(self, x: Value) -> Value:
        if x.ndim < 2:
            return x.apply("exp") if x.ndim == 0 else x[: max(1, int(x.shape[0]) // 2)]
        kind = self.random.randrange(3)
        if kind == 0:
            order = list(range(x.ndim))
            self.random.shuffle(order)
            return x.transpose(*order)
        axis = self.random.randrange(x.ndim)
        extent = int(x.shape[axis])
        if kind == 1 and extent > 1:
            return x.apply("slice", axis=axis, start=extent // 3, stop=extent, step=1)
        return self.builder.apply("concat", x, x * 0.5, axis=axis)
