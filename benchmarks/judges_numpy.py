"""A second opinion on tensor programs: every operator of the compiler in float64, by NumPy alone.

Nothing of the compiler's own references is used. `evaluate` returns the outputs of a graph;
`spread` says how far roundings of float32, and of values that the program keeps in 16 bits, may
move each of their elements: it evaluates again with values moved at random.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

__all__ = ["Unknown", "evaluate", "narrowed", "right_by_spread", "spread", "widened"]

_SINGLE, _COMPOSITE = 2.0**-23, 2.0**-20
_STEPS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}
_PRIMITIVE = frozenset(
    [
        "add",
        "sub",
        "mul",
        "div",
        "maximum",
        "minimum",
        "neg",
        "abs",
        "sqrt",
        "relu",
        "square",
        "cast",
        "where",
        "clamp",
        "sum",
        "mean",
    ]
)
_EXACT = frozenset(
    [
        "maximum",
        "minimum",
        "neg",
        "abs",
        "relu",
        "where",
        "clamp",
        "max",
        "min",
        "reshape",
        "broadcast_to",
        "transpose",
        "slice",
        "concat",
        "concat_slices",
        "stack",
        "pad",
        "windows",
        "take",
        "take_along",
        "sort",
        "topk",
        "floor",
        "ceil",
        "round",
        "trunc",
        "sign",
        "cast",
        "constant",
        "attribute",
        "extent",
        "arange",
        "put_along",
    ]
)


class Unknown(Exception):
    """An operator that this evaluation does not have."""


def widened(array: np.ndarray, dtype: str) -> np.ndarray:
    """Return stored values for computing; bfloat16 lies in uint16."""
    if dtype == "bfloat16" and array.dtype == np.uint16:
        array = (array.astype(np.uint32) << 16).view(np.float32)
    return array.astype(np.float64) if "float" in dtype else array


def narrowed(values: np.ndarray, dtype: str) -> np.ndarray:
    """Return values rounded to a data type of fractions, in float64."""
    with np.errstate(all="ignore"):
        if dtype == "float16":
            return values.astype(np.float16).astype(np.float64)
        if dtype == "float32":
            return values.astype(np.float32).astype(np.float64)
        if dtype == "bfloat16":
            fraction, exponent = np.frexp(values)
            rounded = np.ldexp(np.rint(fraction * 256.0) / 256.0, exponent)
            return np.where(np.isfinite(values), rounded, values)
    return values


class _Moved:
    """Values that roundings move, by at most a share of each."""

    def __init__(self, seed: int | None) -> None:
        self.random = None if seed is None else np.random.default_rng(seed)

    def __call__(self, values: np.ndarray, share: float) -> np.ndarray:
        if self.random is None or values.dtype.kind != "f":
            return values
        signs = self.random.choice((-1.0, 1.0), values.shape)
        return values * (1.0 + share * signs * self.random.uniform(0.5, 1.0, values.shape))


def evaluate(
    graph: Any, arrays: Sequence[np.ndarray], *, seed: int | None = None
) -> dict[str, np.ndarray]:
    """Return the outputs of a graph without named sizes, whose attributes have defaults.

    Args:
        seed: of the numbers by which values are moved; None moves none.
    Raises:
        Unknown: it has an operator that is not known here.
    """
    moved = _Moved(seed)
    known = {
        t.name: widened(np.asarray(a), t.dtype) for t, a in zip(graph.inputs, arrays, strict=True)
    }
    defaults = {each.name: each.default for each in graph.attributes}
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            known[node.output.name] = _value(node, known, graph, defaults, moved)
        return {name: _stored(known[t], graph.tensors[t].dtype) for name, t in graph.outputs}


def _stored(values: np.ndarray, dtype: str) -> np.ndarray:
    return narrowed(values, dtype) if "float" in dtype else values


def _value(
    node: Any, known: Mapping[str, np.ndarray], graph: Any, defaults: Any, moved: _Moved
) -> np.ndarray:
    name, settings = node.operator, dict(node.settings)
    dtype = node.output.dtype
    if name == "attribute":
        return np.asarray(defaults[settings["name"]])
    inputs = [known[each] for each in node.inputs]
    types = [graph.tensors[each].dtype for each in node.inputs]
    if name in ("sum", "mean", "var", "cumsum", "matmul", "logsumexp", "prod", "cumprod"):
        inputs = [moved(each, _SINGLE) for each in inputs]
    if name == "cast":
        source = types[0]
        # What is stored in 16 bits has been rounded to them before it is cast to another type.
        given = narrowed(inputs[0], source) if source in _STEPS else inputs[0]
        return _cast(given, dtype)
    if name not in _FUNCTIONS:
        raise Unknown(name)
    value = np.asarray(_FUNCTIONS[name](*inputs, **settings))
    if "float" in dtype:
        value = np.asarray(value, np.float64)
        share = _SINGLE if name in _PRIMITIVE else _COMPOSITE
        if name in _EXACT:
            share = 0.0
        # Whether 16-bit values between operators are rounded is open: a kernel keeps float32.
        share = max(share, _STEPS.get(dtype, 0.0))
        return moved(value, share) if name not in _EXACT else value
    if dtype == "bool":
        return value.astype(bool)
    return value.astype(np.int64).astype(dtype) if value.dtype.kind in "fb" else value.astype(dtype)


def _cast(values: np.ndarray, dtype: str) -> np.ndarray:
    if dtype == "bool":
        return values != 0
    if "float" in dtype:
        return narrowed(values.astype(np.float64), dtype)
    if values.dtype.kind == "f":
        limits = np.iinfo(dtype)
        return np.clip(np.trunc(np.nan_to_num(values)), limits.min, limits.max).astype(dtype)
    return values.astype(dtype)


def _elements(function: Any) -> Any:
    return lambda x: np.vectorize(function, otypes=[np.float64])(np.asarray(x, np.float64))


_erf, _erfc = _elements(math.erf), _elements(math.erfc)


def _float(function: Any) -> Any:
    return lambda *arrays: function(*(np.asarray(a, np.float64) for a in arrays))


def _sigmoid(x: np.ndarray) -> np.ndarray:
    small = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, small) / (1 + small)


def _softplus(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


def _gelu(x: np.ndarray, approximate: str = "none") -> np.ndarray:
    if approximate == "tanh":
        return 0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3)))
    return x * _erfc(-x / math.sqrt(2)) / 2


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    shifted = np.exp(x - x.max(axis, keepdims=True))
    return shifted / shifted.sum(axis, keepdims=True)


def _log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    shifted = x - x.max(axis, keepdims=True)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def _logsumexp(x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray:
    peak = x.max(axis, keepdims=True)
    total = peak + np.log(np.exp(x - peak).sum(axis, keepdims=True))
    return total if keepdims else total.reshape(x.sum(axis).shape)


def _norm(x: Any, weight: Any, bias: Any, epsilon: float) -> Any:
    deviations = x - x.mean(-1, keepdims=True)
    return (
        deviations / np.sqrt(np.square(deviations).mean(-1, keepdims=True) + epsilon) * (weight)
        + bias
    )


def _rms(x: Any, weight: Any, epsilon: float) -> Any:
    return x / np.sqrt(np.square(x).mean(-1, keepdims=True) + epsilon) * weight


def _total(x: np.ndarray, axis: Any, keepdims: bool) -> np.ndarray:
    wide = x.astype(np.int64) if x.dtype.kind in "iub" else x
    return np.add.reduce(wide, axis=_axes(axis, x), keepdims=keepdims)


def _axes(axis: Any, x: np.ndarray) -> Any:
    return tuple(range(x.ndim)) if axis is None else axis


def _places(x: np.ndarray, axis: int, descending: bool, count: int | None = None) -> np.ndarray:
    """Of equal elements the first one comes first, whichever way they are ordered."""
    lines = np.moveaxis(x, axis, -1)
    found = np.empty(lines.shape, np.int64)
    for at in np.ndindex(lines.shape[:-1]):
        line = lines[at].tolist()
        found[at] = sorted(range(len(line)), key=line.__getitem__, reverse=descending)
    return np.moveaxis(found[..., :count], -1, axis)


def _sorted(x: np.ndarray, axis: int, descending: bool, count: int | None = None) -> np.ndarray:
    return np.take_along_axis(x, _places(x, axis, descending, count), axis)


def _matmul(a: Any, b: Any, transpose_a: bool, transpose_b: bool, dtype: str | None) -> Any:
    a = np.swapaxes(a, -1, -2) if transpose_a else a
    b = np.swapaxes(b, -1, -2) if transpose_b else b
    if a.dtype.kind in "iu":
        a, b = a.astype(np.int64), b.astype(np.int64)
    return np.einsum("...ij,...jk->...ik", a, b)


def _put(x: Any, index: Any, source: Any, axis: int, add: bool) -> Any:
    result = x.copy()
    index = np.broadcast_to(index, source.shape)
    for at in np.ndindex(source.shape):
        to = list(at)
        to[axis] = int(index[at])
        result[tuple(to)] = result[tuple(to)] + source[at] if add else source[at]
    return result


def _slice(x: Any, axis: int, start: int, stop: int, step: int) -> Any:
    return x[
        tuple(
            slice(start, stop, step) if at == axis % x.ndim else slice(None) for at in range(x.ndim)
        )
    ]


def _cut(*tensors: Any, axis: int, cuts: Any) -> Any:
    parts = [
        _slice(x, along, start, start + step * (count - 1) + 1, step)
        for x, (along, start, step, count) in zip(tensors, cuts, strict=True)
    ]
    return np.concatenate(parts, axis)


def _conv2d(x: Any, weight: Any, stride: Any, padding: Any, dilation: Any, groups: int) -> Any:
    n, _, rows, columns = x.shape
    outputs, depth, kr, kc = weight.shape
    x = np.pad(x, ((0, 0), (0, 0), (padding[0],) * 2, (padding[1],) * 2))
    height = (rows + 2 * padding[0] - dilation[0] * (kr - 1) - 1) // stride[0] + 1
    width = (columns + 2 * padding[1] - dilation[1] * (kc - 1) - 1) // stride[1] + 1
    y = np.zeros((n, outputs, height, width))
    share = outputs // groups
    for o, i, j in itertools.product(range(outputs), range(height), range(width)):
        first = o // share * depth
        r, c = i * stride[0], j * stride[1]
        part = x[
            :,
            first : first + depth,
            r : r + dilation[0] * kr : dilation[0],
            c : c + dilation[1] * kc : dilation[1],
        ]
        y[:, o, i, j] = (part * weight[o]).sum((1, 2, 3))
    return y


def _remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    if np.asarray(x).dtype.kind in "iu" and np.asarray(y).dtype.kind in "iu":
        return np.where(y == 0, 0, np.remainder(x, np.where(y == 0, 1, y)))
    return x - np.floor(x / y) * y


_FUNCTIONS: dict[str, Any] = {
    "constant": lambda value: np.asarray(value),
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "div": _float(lambda a, b: a / b),
    "maximum": lambda a, b: np.where(a >= b, a, b),
    "minimum": lambda a, b: np.where(a <= b, a, b),
    "neg": lambda x: -x,
    "abs": lambda x: x if x.dtype == bool else np.where(x < 0, -x, x),
    "exp": _float(np.exp),
    "log": _float(np.log),
    "sqrt": _float(np.sqrt),
    "floor": _float(np.floor),
    "ceil": _float(np.ceil),
    "round": _float(np.rint),
    "trunc": _float(np.trunc),
    "less": lambda a, b: a < b,
    "less_equal": lambda a, b: a <= b,
    "greater": lambda a, b: a > b,
    "greater_equal": lambda a, b: a >= b,
    "equal": lambda a, b: a == b,
    "not_equal": lambda a, b: a != b,
    "logical_and": lambda a, b: (a != 0) & (b != 0),
    "logical_or": lambda a, b: (a != 0) | (b != 0),
    "logical_not": lambda x: x == 0,
    "bitwise_and": lambda a, b: a & b,
    "bitwise_or": lambda a, b: a | b,
    "bitwise_xor": lambda a, b: a ^ b,
    "bitwise_not": lambda x: ~x,
    "where": lambda c, a, b: np.where(c, a, b),
    "sum": _total,
    "max": lambda x, axis, keepdims: np.maximum.reduce(x, axis=_axes(axis, x), keepdims=keepdims),
    "min": lambda x, axis, keepdims: np.minimum.reduce(x, axis=_axes(axis, x), keepdims=keepdims),
    "relu": lambda x: np.where(x > 0, x, x * 0),
    "square": lambda x: x * x,
    "reciprocal": _float(lambda x: 1 / x),
    "rsqrt": _float(lambda x: 1 / np.sqrt(x)),
    "sigmoid": _float(_sigmoid),
    "tanh": _float(np.tanh),
    "erf": _erf,
    "erfc": _erfc,
    "ndtr": lambda x: _erfc(-np.asarray(x, np.float64) / math.sqrt(2)) / 2,
    "silu": _float(lambda x: x * _sigmoid(x)),
    "gelu": lambda x, approximate: _gelu(np.asarray(x, np.float64), approximate),
    "log2": _float(np.log2),
    "log10": _float(np.log10),
    "exp2": _float(lambda x: np.power(2.0, x)),
    "sin": _float(np.sin),
    "cos": _float(np.cos),
    "tan": _float(np.tan),
    "atan": _float(np.arctan),
    "atan2": _float(np.arctan2),
    "pow": lambda a, b: np.power(np.asarray(a, np.float64), b),
    "sign": lambda x: np.where(x > 0, 1, np.where(x < 0, -1, 0)).astype(np.asarray(x).dtype),
    "mod": _remainder,
    "fmod": lambda a, b: np.fmod(a, b),
    "floor_divide": lambda a, b: np.floor_divide(a, b),
    "clamp": lambda x, low, high: np.where(x < low, low, np.where(x > high, high, x)),
    "leaky_relu": lambda x, slope: np.where(x > 0, x, slope * x),
    "elu": lambda x, alpha: np.where(x > 0, x, alpha * np.expm1(np.minimum(x, 0.0))),
    "hardswish": _float(lambda x: x * np.minimum(np.maximum(x + 3, 0), 6) / 6),
    "hardsigmoid": _float(lambda x: np.minimum(np.maximum(x + 3, 0), 6) / 6),
    "mean": lambda x, axis, keepdims: np.asarray(x, np.float64).mean(axis, keepdims=keepdims),
    "var": lambda x, axis, keepdims, correction: np.asarray(x, np.float64).var(
        axis, keepdims=keepdims, ddof=correction
    ),
    "logsumexp": lambda x, axis, keepdims: _logsumexp(
        np.asarray(x, np.float64), _axes(axis, x), keepdims
    ),
    "softmax": lambda x, axis: _softmax(np.asarray(x, np.float64), axis),
    "log_softmax": lambda x, axis: _log_softmax(np.asarray(x, np.float64), axis),
    "layer_norm": _norm,
    "rms_norm": _rms,
    "log1p": _float(np.log1p),
    "log_one_plus": _float(np.log1p),
    "expm1": _float(np.expm1),
    "softplus": _float(_softplus),
    "log_sigmoid": _float(lambda x: -_softplus(-x)),
    "mish": _float(lambda x: x * np.tanh(_softplus(x))),
    "tanh_softplus": _float(lambda x: np.tanh(_softplus(x))),
    "tanhshrink": _float(lambda x: x - np.tanh(x)),
    "sinh": _float(np.sinh),
    "cosh": _float(np.cosh),
    "logcosh": _float(lambda x: _softplus(2 * x) - x - math.log(2)),
    "asinh": _float(np.arcsinh),
    "atanh": _float(np.arctanh),
    "reshape": lambda x, shape: x.reshape(shape),
    "broadcast_to": lambda x, shape: np.broadcast_to(x, shape),
    "transpose": lambda x, axes: x.transpose(axes),
    "slice": _slice,
    "concat": lambda *tensors, axis: np.concatenate(tensors, axis),
    "concat_slices": _cut,
    "stack": lambda *tensors, axis: np.stack(tensors, axis),
    "pad": lambda x, widths, value: np.pad(x, widths, constant_values=value),
    "take": lambda table, indices, axis: np.take(table, indices.astype(np.int64), axis),
    "matmul": _matmul,
    "arange": lambda count, dtype: np.arange(count, dtype=dtype),
    "cumsum": lambda x, axis: np.cumsum(x, axis),
    "cumprod": lambda x, axis: np.cumprod(x, axis),
    "prod": lambda x, axis, keepdims: np.multiply.reduce(x, axis=_axes(axis, x), keepdims=keepdims),
    "sort": _sorted,
    "argsort": _places,
    "topk": lambda x, k, axis, largest: _sorted(x, axis, largest, k),
    "topk_places": lambda x, k, axis, largest: _places(x, axis, largest, k),
    "argmax": lambda x, axis, keepdims: np.argmax(x, axis, keepdims=keepdims),
    "argmin": lambda x, axis, keepdims: np.argmin(x, axis, keepdims=keepdims),
    "take_along": lambda x, index, axis: np.take_along_axis(x, index.astype(np.int64), axis),
    "put_along": _put,
    "conv2d": _conv2d,
}


def spread(
    graph: Any, arrays: Sequence[np.ndarray], right: Mapping[str, np.ndarray], *, times: int = 6
) -> dict[str, np.ndarray]:
    """Return how far elements of each output move where values on the way are moved."""
    found = {name: np.zeros(np.shape(value)) for name, value in right.items()}
    with np.errstate(all="ignore"):
        for seed in range(times):
            for name, value in evaluate(graph, arrays, seed=seed).items():
                distance = np.abs(value.astype(np.float64) - right[name].astype(np.float64))
                distance = np.where(np.isnan(distance), np.inf, distance)
                same = (value == right[name]) | (np.isnan(value) & np.isnan(right[name]))
                found[name] = np.maximum(found[name], np.where(same, 0.0, distance))
    return found


_UNIT = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-22}
_SMALLEST = {"float16": 2.0**-23, "bfloat16": 1e-37, "float32": 1e-37}


def right_by_spread(
    actual: np.ndarray, right: np.ndarray, moves: np.ndarray, dtype: str, *, factor: float = 12.0
) -> tuple[bool, float]:
    """Return whether an output is right, and the worst error as a share of what is allowed."""
    if actual.shape != right.shape:
        return False, math.inf
    if "float" not in dtype:
        wrong = (actual != right) & (moves == 0)
        return not wrong.any(), math.inf if wrong.any() else 0.0
    with np.errstate(all="ignore"):
        # Tails lose their digits beside 1: exp(-6) of a gelu is as good as it is to float32.
        floor = 2.0**-21 * min(1.0, float(np.abs(right[np.isfinite(right)]).max(initial=0.0)))
        allowed = factor * moves + 2 * _UNIT[dtype] * np.abs(right) + 4 * _SMALLEST[dtype] + floor
        error = np.abs(actual - right)
        same = (actual == right) | (np.isnan(actual) & np.isnan(right)) | ~np.isfinite(moves)
        # What overflows a kernel's float32 or the type's range on the way is not judged.
        beyond = np.abs(right) > (6e4 if dtype == "float16" else 1e37)
        share = np.where(same | beyond, 0.0, error / allowed)
    share = np.where(np.isnan(share), np.inf, share)
    worst = float(share.max(initial=0.0))
    return worst <= 1.0, worst
