"""Random tensor programs over all operators of the compiler, and wrong versions of results."""

from __future__ import annotations

import math
import random
from collections.abc import Mapping
from typing import Any

import numpy as np

from opkit import compiler as oc
from opkit.compiler.ir import GraphError
from opkit.errors import OpkitError

__all__ = ["CORRUPTIONS", "PlanProgram", "draw_graph", "draw_inputs"]

_FLOATS = ("float16", "float32", "float32", "bfloat16")
_WHOLE = ("int8", "uint8", "int16", "int32")
_SHAPES = ((7,), (33,), (3, 5), (8, 16), (17, 33), (4, 65), (2, 3, 16), (5, 1, 9), (130,), (1, 257))
_GROWING = frozenset(["exp", "square", "exp2", "expm1", "sinh", "cosh", "prod", "cumprod", "pow"])
_POSITIVE = frozenset(
    ["log", "log2", "log10", "sqrt", "rsqrt", "reciprocal", "log1p", "log_one_plus"]
)
_SHORT = frozenset(["atanh"])
_BOUND = frozenset(["sin", "cos", "tan"])
_ORDER = frozenset(["sort", "argsort", "topk", "topk_places", "argmax", "argmin"])
_STEPS = frozenset(["floor", "ceil", "round", "trunc", "sign"])
_LEFT = frozenset(
    [
        "constant",
        "attribute",
        "extent",
        "random_uniform",
        "random_normal",
        "dropout",
        "attention",
        "windows",
        "whole_sum",
        "concat_slices",
    ]
)


def draw_graph(seed: int, *, depth: int = 6) -> oc.Graph:
    """Return a program of some operators, drawn from the whole table; every third one is the
    gradient of what was drawn."""
    drawn = _Draw(seed, depth).graph()
    if seed % 3 != 0:
        return drawn
    try:
        return oc.gradient(drawn)
    except OpkitError:
        return drawn


def draw_inputs(graph: oc.Graph, seed: int) -> list[np.ndarray]:
    """Return arrays for the inputs: fractions of about 1, and of other sizes in every fourth."""
    arrays = oc.random_arrays(graph, {}, seed)
    if seed % 4 == 1:
        for index, tensor in enumerate(graph.inputs):
            if tensor.dtype == "float32":
                arrays[index] = arrays[index] * np.float32(1e-4)
            elif tensor.dtype == "float16":
                arrays[index] = arrays[index] * np.float16(0.01)
    return arrays


def is_float(value: Any) -> bool:
    """Whether a value has fractions."""
    return "float" in value.dtype


class _Draw:
    def __init__(self, seed: int, depth: int) -> None:
        self.random = random.Random(seed)
        self.builder = oc.GraphBuilder(f"judged_{seed}")
        self.depth = self.random.randint(1, depth)
        self.exact: set[str] = set()

    def graph(self) -> oc.Graph:
        shape = self.random.choice(_SHAPES)
        values = []
        for index in range(self.random.randint(1, 3)):
            own = tuple(1 if index and self.random.random() < 0.2 else n for n in shape)
            dtype = self.random.choice((*_FLOATS, *_FLOATS, *_WHOLE, "bool"))
            values.append(self.builder.input(f"x{index}", own, dtype))
            self.exact.add(values[-1].tensor.name)
        count = len(values)
        names = sorted(set(oc.OPERATORS) - _LEFT)
        for _ in range(60 * self.depth):
            if len(values) == count + self.depth:
                break
            try:
                name = self.random.choice(names)
                value = self.apply(name, self.random.choice(values[-3:]), values)
            except (GraphError, OpkitError):
                continue
            if value is None or math.prod(map(int, value.shape)) > 6000:
                continue
            values.append(value)
        made = values[count:] or [values[0].apply("where", values[0], values[0])]
        for index, value in enumerate(dict.fromkeys(made[-self.random.randint(1, 2) :])):
            self.builder.output(f"y{index}", value)
        return self.builder.graph()

    def apply(self, name: str, x: Any, values: list[Any]) -> Any:
        other = self.random.choice(values)
        exact = x.tensor.name in self.exact
        if name in (_ORDER | _STEPS) and not exact:
            return None
        if is_float(x):
            x = self.bounded(name, x)
        value = self.made(name, x, other, exact)
        if value is not None:
            moves = name in (_ORDER | _STEPS) or oc.OPERATORS[name].kind == "movement"
            whole = (
                not is_float(x) and "float" not in value.dtype and other.tensor.name in self.exact
            )
            if exact and (moves or whole):
                self.exact.add(value.tensor.name)
        return value

    def bounded(self, name: str, x: Any) -> Any:
        if name in _GROWING:
            return x.apply("clamp", low=-2.0, high=2.0)
        if name in _POSITIVE:
            return x.apply("abs") + 0.5
        if name in _SHORT:
            return x.apply("clamp", low=-0.9, high=0.9)
        if name in _BOUND:
            return x.apply("clamp", low=-1.2, high=1.2)
        return x

    def made(self, name: str, x: Any, other: Any, exact: bool) -> Any:
        choose = self.random.choice
        axis = self.random.randrange(x.ndim) if x.ndim else None
        kind = oc.OPERATORS[name].kind
        if axis is None and kind not in ("elementwise", "source"):
            return None
        if name == "cast":
            to = choose((*_FLOATS, *_WHOLE, "bool"))
            if "float" not in to and "float" in x.dtype:
                return None if not exact else x.apply("clamp", low=0.0, high=99.0).astype(to)
            return x.astype(to)
        if name == "where":
            if not exact or "float" not in x.dtype:
                return None
            condition = x.apply(choose(("less", "greater_equal")), choose((0.0, 0.5)))
            y = other if other.dtype == x.dtype else x
            return condition.apply("where", y, choose((x, 0.25)))
        if name in ("less", "less_equal", "greater", "greater_equal", "equal", "not_equal"):
            return x.apply(name, choose((0, 1))) if exact and x.dtype != "bool" else None
        if name in ("mod", "floor_divide", "fmod"):
            return x.apply(name, choose((3, 7))) if exact and x.dtype in _WHOLE else None
        if name == "pow":
            return (x.apply("abs") + 0.5).apply("pow", choose((2.0, 0.5, -1.0, 1.7)))
        if name == "div":
            return x.apply("div", other.apply("abs") + 1.0)
        if name == "atan2":
            return x.apply("atan2", other.apply("abs") + 0.5)
        if name == "clamp":
            return x.apply("clamp", low=-1, high=1)
        if name in ("layer_norm", "rms_norm"):
            weight = x.apply("slice", axis=0, start=0, stop=1, step=1).reshape(x.shape[-1])
            if x.ndim != 2 or "float" not in x.dtype:
                return None
            return x.apply(name, weight, weight) if name == "layer_norm" else x.apply(name, weight)
        if kind == "reduction":
            axes = tuple(a for a in range(x.ndim) if self.random.random() < 0.5) or (x.ndim - 1,)
            return x.apply(name, axis=axes, keepdims=self.random.random() < 0.6)
        if name in ("softmax", "log_softmax", "cumsum", "cumprod", "sort", "argsort"):
            return x.apply(name, axis=axis)
        if name in ("topk", "topk_places"):
            return x.apply(name, axis=axis, k=max(1, int(x.shape[axis]) // 2))
        if name in ("argmax", "argmin"):
            return x.apply(name, axis=axis)
        if name == "slice":
            extent = int(x.shape[axis])
            return x.apply(name, axis=axis, start=extent // 4, stop=extent, step=choose((1, 1, 2)))
        if name in ("concat", "stack"):
            second = other if other.shape == x.shape and other.dtype == x.dtype else x
            return self.builder.apply(name, x, second, axis=axis)
        if name == "pad":
            widths = tuple((choose((0, 1, 2)), choose((0, 3))) for _ in x.shape)
            return x.apply(name, widths=widths, value=0.0 if x.dtype == "bool" else 2.0)
        if name == "transpose":
            return x.transpose(*self.random.sample(range(x.ndim), x.ndim))
        if name == "reshape":
            return x.reshape(math.prod(map(int, x.shape)))
        if name == "broadcast_to":
            return x.apply(name, shape=(2, *x.shape))
        if name == "take":
            places = self.builder.apply("arange", count=5) % int(x.shape[axis])
            return x.apply("take", places, axis=axis)
        if name in ("take_along", "put_along"):
            places = x.apply("argsort", axis=axis) if exact else None
            if places is None:
                return None
            if name == "put_along":
                return x.apply(name, places, x, axis=axis, add=choose((True, False)))
            return x.apply(name, places, axis=axis)
        if name == "arange":
            return None
        if name == "matmul":
            if x.ndim < 2 or x.dtype not in ("float16", "bfloat16", "float32", "int8"):
                return None
            return (x if "int" in x.dtype else x.apply("clamp", low=-2.0, high=2.0)).apply(
                name, x, transpose_b=True
            )
        if name == "conv2d":
            if x.ndim != 2 or x.dtype != "float16":
                return None
            image = x.reshape(1, 1, *x.shape)
            kernel = x.apply("slice", axis=0, start=0, stop=1, step=1)
            kernel = kernel.apply("slice", axis=1, start=0, stop=1, step=1).reshape(1, 1, 1, 1)
            return image.apply(name, kernel)
        if name.startswith(("bitwise", "logical")) and (is_float(x) or is_float(other)):
            return None
        if "bool" in (x.dtype, other.dtype) and not name.startswith(("bitwise", "logical")):
            return None if oc.OPERATORS[name].arity == 2 else x.apply(name)
        if x.dtype == "bool" and oc.OPERATORS[name].arity == 2:
            return x.apply(name, other)
        if oc.OPERATORS[name].arity == 2:
            return x.apply(name, choose((other, 2 if x.dtype in _WHOLE else 0.5)))
        return x.apply(name)


class PlanProgram(oc.Compiled):
    """A program whose kernels run as the steps of their plans, by NumPy: no compiler is waited for.

    Kernels that have no such steps, products and moves, run as the reference, or as ever.
    """

    is_compiled = False
    """Kernels run on the emulated chip."""
    runs_by_reference = False
    """What has no plan is the reference's."""
    corruption: Any = None
    """What becomes of the outputs of the last kernel: a function of an array, a type and a
    generator, or None."""
    seed = 0

    def run_group(
        self,
        group: Any,
        memory: dict[str, Any],
        sizes: Mapping[str, int],
        scalars: Mapping[str, float],
    ) -> None:
        """Run one kernel."""
        if group.kind == "vector" and not self.is_compiled:
            self._run_plan(group, memory, sizes, scalars)
        elif self.runs_by_reference and group.kind != "view":
            self._run_reference(group, memory, sizes)
        else:
            super().run_group(group, memory, sizes, scalars)
        if self.corruption is not None and group is self.lowered.groups[-1]:
            generator = np.random.default_rng(self.seed)
            for name in self.lowered.outputs_of(group):
                dtype = self.lowered.graph.tensors[name].dtype
                memory[name] = self.corruption(memory[name], dtype, generator)

    def _run_plan(self, group: Any, memory: dict[str, Any], sizes: Any, scalars: Any) -> None:
        graph = self.lowered.graph
        results: Any = {}
        given = {n: from_memory(a, graph.tensors[n].dtype) for n, a in memory.items()}
        for stage, found in self.stage_results(group, given, scalars, sizes):
            if stage.startswith("plan"):
                results = found
        for name in self.lowered.outputs_of(group):
            memory[name] = to_memory(results[name], graph.tensors[name].dtype)

    def _run_reference(self, group: Any, memory: dict[str, Any], sizes: Any) -> None:
        from opkit.compiler.tracing import run_nodes

        graph = self.lowered.graph
        for part in (*group.before, group):
            inputs = {n: memory[n] for n in self.lowered.inputs_of(part) if n in memory}
            uniform = (n for n in graph.nodes if n.output.name in self.lowered.uniform)
            tensors = tuple(graph.tensors[name] for name in inputs)
            nodes = (*uniform, *part.nodes)
            whole = oc.Graph(part.name, tensors, nodes, (), graph.attributes)
            found = run_nodes(whole, dict(inputs), {}, sizes)
            for name in self.lowered.outputs_of(part):
                memory[name] = to_memory(found[name], graph.tensors[name].dtype)


def from_memory(array: np.ndarray, dtype: str) -> np.ndarray:
    """Return values for computing."""
    from opkit.compiler.tracing import from_storage

    return np.asarray(from_storage(array, dtype))


def to_memory(values: np.ndarray, dtype: str) -> np.ndarray:
    """Return values as they lie in memory."""
    from opkit.compiler.tracing.reference import to_storage

    return np.asarray(to_storage(values, dtype), order="C")


def _zeros(array: np.ndarray, dtype: str, _: np.random.Generator) -> np.ndarray:
    return np.zeros_like(array)


def _tail(array: np.ndarray, dtype: str, _: np.random.Generator) -> np.ndarray:
    wrong = array.copy()
    wrong.reshape(-1)[-1:] = 0
    return wrong


def _block(array: np.ndarray, dtype: str, generator: np.random.Generator) -> np.ndarray:
    wrong = array.copy().reshape(-1)
    count = 32 // array.itemsize
    if wrong.size >= 2 * count:
        first, second = wrong[:count].copy(), wrong[count : 2 * count].copy()
        wrong[:count], wrong[count : 2 * count] = second, first
    return wrong.reshape(array.shape)


def _scaled(array: np.ndarray, dtype: str, _: np.random.Generator) -> np.ndarray:
    if "float" not in dtype:
        return array
    share = {"float32": 1e-3, "float16": 0.02, "bfloat16": 0.1}[dtype]
    return to_memory(from_memory(array, dtype) * (1 + share), dtype)


def _other(array: np.ndarray, dtype: str, generator: np.random.Generator) -> np.ndarray:
    wrong = array.copy().reshape(-1)
    if wrong.size:
        at = int(generator.integers(wrong.size))
        wrong[at] = wrong[(at + 1) % wrong.size]
    return wrong.reshape(array.shape)


CORRUPTIONS = {
    "zeros": _zeros,
    "last element 0": _tail,
    "two blocks exchanged": _block,
    "all off by a share": _scaled,
    "one element its neighbour": _other,
}
"""Wrong results of a kernel: of its arrays as they lie in memory."""
