"""Random tensor programs of whole numbers, truth and fractions together, from a seed: casts among
all types, bits, divisions, movements, order and sums along lines."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from ..ir import Graph, GraphError, Value, dimension, is_floating
from .builder import GraphBuilder
from .fuzzing import EXTENTS

__all__ = ["numbers_of_all_sizes", "random_typed_graph"]

_MOST_ELEMENTS = 12000
_FRACTIONS = ("float16", "float32", "bfloat16")
_WHOLE = ("int8", "uint8", "int16", "int32")
_TYPES = (*_FRACTIONS, *_FRACTIONS, *_WHOLE, "bool")
_STEPS = ("sign", "floor", "ceil", "round", "trunc")
_SMOOTH = (
    *("tanh", "sigmoid", "abs", "neg", "relu", "gelu", "silu", "softplus", "erf", "sin", "cos"),
    *("erfc", "mish", "log1p", "expm1", "exp2", "atan", "hardswish", "hardsigmoid", "leaky_relu"),
    *("elu", "square", "softmax", "log_softmax", "exp", "sqrt", "rsqrt", "reciprocal", "log"),
)
_GROWING = frozenset({"exp", "square", "exp2", "expm1"})
_OF_POSITIVE = frozenset({"sqrt", "rsqrt", "reciprocal", "log", "log1p"})
_WHOLE_PAIRS = (
    *("add", "sub", "mul", "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor"),
)
_DIVISIONS = ("mod", "floor_divide", "fmod")
_COMPARISONS = ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal")


def random_typed_graph(
    seed: int, *, depth: int = 7, named: bool = False
) -> tuple[Graph, Mapping[str, int]]:
    """Return a program of up to `depth` operators and the sizes of its named axes.

    What no rounding may turn over, such as comparisons, order and casts to whole numbers, is of
    inputs and of what follows from them exactly.

    Args:
        named: half of the axes have names.
    """
    return _Typed(seed, depth, named).build()


def numbers_of_all_sizes(graph: Graph, arrays: Sequence[np.ndarray], seed: int) -> list[np.ndarray]:
    """Return arrays for a graph's inputs with whole numbers from the whole range of their types."""
    drawn = np.random.default_rng(seed)
    found = list(arrays)
    for at, tensor in enumerate(graph.inputs):
        if tensor.dtype in _WHOLE:
            limits = np.iinfo(tensor.dtype)
            whole = drawn.integers(limits.min, limits.max + 1, found[at].shape)
            found[at] = whole.astype(tensor.dtype)
    return found


class _Typed:
    def __init__(self, seed: int, depth: int, named: bool) -> None:
        self.random = random.Random(seed)
        self.depth = self.random.randint(1, depth)
        self.named = named
        self.builder = GraphBuilder(f"typed_{seed}")
        self.exact: set[str] = set()
        """Tensors that follow from inputs without any rounding."""
        self.sizes: dict[str, int] = {}

    def build(self) -> tuple[Graph, Mapping[str, int]]:
        values = self.inputs()
        count = len(values)
        for _ in range(6 * self.depth):
            if len(values) == count + self.depth:
                break
            try:
                value = self.step(values)
            except GraphError:
                # Shapes that do not broadcast, axes whose sizes must be known.
                continue
            if value is not None:
                values.append(value)
        made = values[count:] or [self.builder.apply("where", True, values[0], values[0])]
        for index, value in enumerate(dict.fromkeys(made[-self.random.randint(1, 3) :])):
            self.builder.output(f"y{index}", value)
        return self.builder.graph(), self.sizes

    def inputs(self) -> list[Value]:
        extents = [self.random.choice(EXTENTS) for _ in range(self.random.randint(1, 4))]
        while math.prod(extents) > _MOST_ELEMENTS:
            extents[extents.index(max(extents))] //= 4
        shape: list[object] = []
        for name, extent in zip("MNKL", extents, strict=False):
            if self.named and self.random.random() < 0.5:
                self.sizes[name] = extent
                shape.append(dimension(name))
            else:
                shape.append(extent)
        found = []
        for index in range(self.random.randint(1, 3)):
            own = list(shape)
            if index > 0:
                own = [1 if self.random.random() < 0.25 else extent for extent in shape]
                own = own[self.random.randint(0, len(own) - 1) :] if self.chance(0.3) else own
            dtype = self.random.choice(_TYPES)
            value = self.builder.input(f"x{index}", tuple(own), dtype)
            found.append(self.known(value, True))
        return found

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def known(self, value: Value, is_exact: bool) -> Value:
        if is_exact:
            self.exact.add(value.tensor.name)
        return value

    def are_exact(self, *values: Value) -> bool:
        return all(value.tensor.name in self.exact for value in values)

    def step(self, values: Sequence[Value]) -> Value | None:
        x = self.random.choice(values[-3:])
        kinds: dict[Callable[[Value, Sequence[Value]], Value | None], int] = {
            self.single: 22,
            self.pair: 20,
            self.reduction: 10,
            self.choice: 8,
            self.cast: 8,
            self.moved: 20,
            self.line: 8,
        }
        (kind,) = self.random.choices(list(kinds), list(kinds.values()))
        return kind(x, values)

    def single(self, x: Value, _: Sequence[Value]) -> Value | None:
        if x.dtype == "bool":
            return self.known(x.apply("logical_not"), self.are_exact(x))
        if not is_floating(x.dtype):
            name = self.random.choice(("abs", "neg", "bitwise_not", "sign", "square"))
            return self.known(x.apply(name), self.are_exact(x))
        name = self.random.choice((*_SMOOTH, *_STEPS))
        if name in _STEPS:
            return self.known(x.apply(name), True) if self.are_exact(x) else None
        if name in _GROWING:
            x = x.apply("clamp", low=-4.0, high=4.0)
        if name in ("sin", "cos"):
            x = x.apply("clamp", low=-1000.0, high=1000.0)
        if name in _OF_POSITIVE:
            x = x.apply("abs") + 0.5
        return x.apply(name) if x.ndim or "softmax" not in name else None

    def pair(self, x: Value, values: Sequence[Value]) -> Value | None:
        y = self.random.choice(values)
        is_exact = self.are_exact(x, y)
        if "bool" in (x.dtype, y.dtype):
            if x.dtype != y.dtype:
                return None
            name = self.random.choice(("logical_and", "logical_or", "bitwise_xor"))
            return self.known(x.apply(name, y), is_exact)
        if not is_floating(x.dtype) and not is_floating(y.dtype):
            if self.chance(0.3):
                name = self.random.choice(_DIVISIONS)
                other = self.random.choice((y, 3, 7, -5))
                return self.known(x.apply(name, other), is_exact)
            return self.known(x.apply(self.random.choice(_WHOLE_PAIRS), y), is_exact)
        name = self.random.choice(
            ("add", "sub", "mul", "maximum", "minimum", "div", "atan2", "pow")
        )
        if name == "pow":
            exponent = self.random.choice((2.0, 0.5, -1.0, 3.0, 1.7))
            return (x.apply("abs") + 0.5).apply("pow", exponent) if is_floating(x.dtype) else None
        if name == "div":
            y = y.apply("abs") + 1.0
        keeps = name in ("maximum", "minimum") and x.dtype == y.dtype
        return self.known(x.apply(name, y), keeps and is_exact)

    def reduction(self, x: Value, _: Sequence[Value]) -> Value | None:
        if x.ndim == 0:
            return None
        names = ["sum", "max", "min"]
        names += ["mean", "var", "logsumexp", "prod"] if is_floating(x.dtype) else []
        name = "sum" if x.dtype == "bool" else self.random.choice(names)
        axes = tuple(axis for axis in range(x.ndim) if self.chance(0.5)) or (x.ndim - 1,)
        if name == "prod":
            if not all(isinstance(x.shape[axis], int) for axis in axes):
                return None
            x = x.apply("clamp", low=-1.1, high=1.1)
        is_exact = self.are_exact(x) and (not is_floating(x.dtype) or name in ("max", "min"))
        return self.known(x.apply(name, axis=axes, keepdims=self.chance(0.6)), is_exact)

    def choice(self, x: Value, values: Sequence[Value]) -> Value | None:
        condition = self.random.choice(values)
        if not self.are_exact(condition):
            return None
        if condition.dtype != "bool":
            limit = self.random.choice((0.0, 0.5)) if is_floating(condition.dtype) else 3
            condition = condition.apply(self.random.choice(_COMPARISONS), limit)
        y = self.random.choice(values)
        y = y if y.dtype == x.dtype else x
        number = {"bool": True}.get(x.dtype, 0.25 if is_floating(x.dtype) else 3)
        other = self.random.choice((y, number))
        return self.known(condition.apply("where", x, other), self.are_exact(x, y))

    def cast(self, x: Value, _: Sequence[Value]) -> Value | None:
        to = self.random.choice((*_FRACTIONS, *_WHOLE, "bool"))
        if is_floating(to):
            return x.astype(to)
        if not is_floating(x.dtype):
            return self.known(x.astype(to), self.are_exact(x))
        if not self.are_exact(x):
            return None
        return self.known((x * 64.0).astype(to) if self.chance(0.5) else x.astype(to), True)

    def moved(self, x: Value, values: Sequence[Value]) -> Value | None:
        if x.ndim == 0:
            return None
        axis = self.random.randrange(x.ndim)
        kinds = (self.turned, self.cut, self.joined, self.padded, self.taken, self.reshaped)
        value = self.random.choice(kinds)(x, axis, values)
        return None if value is None else self.known(value, self.are_exact(x))

    def turned(self, x: Value, _: int, __: Sequence[Value]) -> Value:
        order = list(range(x.ndim))
        self.random.shuffle(order)
        return x.transpose(*order)

    def cut(self, x: Value, axis: int, _: Sequence[Value]) -> Value | None:
        extent = x.shape[axis]
        if not isinstance(extent, int) or extent < 2:
            return None
        start = self.random.randrange(extent // 2)
        stop = extent - self.random.randrange(extent // 3 + 1)
        step = self.random.choice((1, 1, 2, 3))
        return x.apply("slice", axis=axis, start=start, stop=stop, step=step)

    def joined(self, x: Value, axis: int, values: Sequence[Value]) -> Value:
        if self.chance(0.4):
            return self.builder.apply("stack", x, x, axis=axis)
        alike = [y for y in values if y.dtype == x.dtype and self.are_exact(y)]
        return self.builder.apply("concat", x, self.random.choice([x, *alike]), axis=axis)

    def padded(self, x: Value, _: int, __: Sequence[Value]) -> Value:
        widths = tuple((self.random.randrange(3), self.random.randrange(3)) for _ in x.shape)
        return x.apply("pad", widths=widths, value=0.0 if x.dtype == "bool" else 2.0)

    def taken(self, x: Value, axis: int, _: Sequence[Value]) -> Value | None:
        extent = x.shape[axis]
        if not isinstance(extent, int):
            return None
        places = self.builder.apply("arange", count=self.random.randint(1, 9)) % extent
        return x.apply("take", places, axis=axis)

    def reshaped(self, x: Value, axis: int, _: Sequence[Value]) -> Value:
        shape = x.shape
        if axis + 1 < x.ndim:
            return x.reshape(*shape[:axis], shape[axis] * shape[axis + 1], *shape[axis + 2 :])
        if self.chance(0.5):
            return x.apply("broadcast_to", shape=(self.random.choice((2, 3)), *shape))
        return x.reshape(1, *shape)

    def line(self, x: Value, _: Sequence[Value]) -> Value | None:
        if x.ndim == 0 or x.dtype == "bool":
            return None
        axis = self.random.randrange(x.ndim)
        name = self.random.choice(("cumsum", "cumprod", "sort", "argsort", "argmax", "argmin"))
        if name in ("cumsum", "cumprod") and not isinstance(x.shape[axis], int):
            return None
        if name == "cumprod":
            x = x.apply("clamp", low=-1, high=1)
        elif name != "cumsum" and not self.are_exact(x):
            return None
        is_exact = self.are_exact(x) and (name != "cumsum" or not is_floating(x.dtype))
        return self.known(x.apply(name, axis=axis), is_exact)
