"""Values of a case's inputs: eleven distributions, the edges of a data type, numbers and files.

Float values are drawn in float64 and rounded once. A long tensor is made part by part, so that it
never stands in memory in float64 as a whole.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from opkit.dtypes import DType
from opkit.errors import UsageError
from opkit.schema import nearest
from opkit.testing.numbers import (
    Array,
    format_numbers,
    is_complex,
    is_float,
    join_parts,
    narrow,
    part_dtype,
)

__all__ = ["DISTRIBUTIONS", "EDGES", "HALVES", "Source", "check_distribution", "make_values"]

_CHUNK = 1 << 20

Draw = Callable[[np.random.Generator, int, float, float], Array]


@dataclass(frozen=True)
class Source:
    """Where one input's values come from."""

    distribution: str = "normal"
    """One of `DISTRIBUTIONS` or `EDGES`."""
    low: float | None = None
    """The smallest value; each distribution has its own where this is None."""
    high: float | None = None
    values: tuple[float, ...] | None = None
    """The numbers themselves, in order; one number stands for all elements."""
    file: Path | None = None
    """A .npy file, or any other file that holds the elements one behind the other."""


def _normal(stream: np.random.Generator, count: int, low: float, high: float) -> Array:
    return stream.standard_normal(count)


def _uniform(stream: np.random.Generator, count: int, low: float, high: float) -> Array:
    return stream.uniform(low, high, count)


def _bell(stream: np.random.Generator, count: int, low: float, high: float) -> Array:
    """Normal within bounds, six standard deviations apart."""
    values = stream.normal((low + high) / 2, (high - low) / 6, count)
    return np.clip(values, low, high)


def _laplace(stream: np.random.Generator, count: int, low: float, high: float) -> Array:
    return np.clip(stream.laplace((low + high) / 2, (high - low) / 12, count), low, high)


def _beta(stream: np.random.Generator, count: int, low: float, high: float) -> Array:
    return low + (high - low) * stream.beta(2.0, 2.0, count)


def _triangular(stream: np.random.Generator, count: int, low: float, high: float) -> Array:
    if not low < high:
        return np.full(count, low)
    return stream.triangular(low, (low + high) / 2, high, count)


def _relu(stream: np.random.Generator, count: int, low: float, high: float) -> Array:
    return np.maximum(stream.uniform(low, high, count), 0.0)


def _sigmoid(stream: np.random.Generator, count: int, low: float, high: float) -> Array:
    return 0.5 * (1.0 + np.tanh(stream.uniform(low, high, count) / 2))


def _tanh(stream: np.random.Generator, count: int, low: float, high: float) -> Array:
    return np.tanh(stream.uniform(low, high, count))


def _wide(stream: np.random.Generator, count: int, low: float, high: float) -> Array:
    """As many numbers of each size as of any other, and the bounds themselves."""
    largest = max(abs(low), abs(high), 1e-300)
    smallest = max(low, -high, largest * 2.0**-24)
    sizes = 2.0 ** stream.uniform(math.log2(smallest), math.log2(largest), count)
    signs = stream.choice(np.sign([low or high, high or low]), count)
    bounds = stream.integers(0, 64, count)
    values = np.clip(signs * sizes, low, high)
    return np.where(bounds == 0, low, np.where(bounds == 1, high, values))


def _either(stream: np.random.Generator, count: int, low: float, high: float) -> Array:
    """One of the two bounds."""
    return np.where(stream.random(count) < 0.5, low, high)


def _softmax(stream: np.random.Generator, count: int, low: float, high: float) -> Array:
    """Positive numbers that sum to one, over each part of a tensor that is made at once."""
    values = np.exp(stream.uniform(low, high, count) - high)
    total: Array = values / max(values.sum(), 1e-300)
    return total


# Name, what draws it, its bounds where the case gives none.
DISTRIBUTIONS: dict[str, tuple[Draw, float, float]] = {
    "normal": (_normal, -math.inf, math.inf),
    "uniform": (_uniform, -10.0, 10.0),
    "beta": (_beta, 0.0, 1.0),
    "laplace": (_laplace, -10.0, 10.0),
    "triangular": (_triangular, -10.0, 10.0),
    "relu": (_relu, -10.0, 10.0),
    "sigmoid": (_sigmoid, -10.0, 10.0),
    "softmax": (_softmax, -10.0, 10.0),
    "tanh": (_tanh, -10.0, 10.0),
    "wide": (_wide, -65504.0, 65504.0),
    "either": (_either, -1.0, 1.0),
}


def _numbers(dtype: DType) -> tuple[float, float, float]:
    """Return a float type's largest, smallest normal and smallest subnormal number."""
    numbers = format_numbers(dtype.name)
    return numbers["largest"], 2.0 ** numbers["exponent"], numbers["smallest"]


def _all_edges(dtype: DType) -> Array:
    largest, normal, smallest = _numbers(dtype)
    magnitudes = [0.0, 1.0, normal, smallest, largest, math.inf]
    return np.array([*magnitudes, *(-value for value in magnitudes), math.nan])


def _subnormal(dtype: DType) -> Array:
    _, normal, smallest = _numbers(dtype)
    steps = [smallest * step for step in (1, 2, 3, 7)] + [normal - smallest, normal]
    return np.array([*steps, *(-step for step in steps)])


def _extreme(dtype: DType) -> Array:
    largest, _, _ = _numbers(dtype)
    sizes = [largest, largest / 2, math.sqrt(largest), math.log(largest), math.log(largest) + 1]
    return np.array([*sizes, *(-size for size in sizes)])


def _nonfinite(dtype: DType) -> Array:
    # The reciprocal of 0 is infinite, and has its sign.
    return np.array([math.nan, math.inf, -math.inf, 0.0, -0.0])


def _ties(dtype: DType) -> Array:
    """Halfway between whole numbers, and between neighbouring float16 and bfloat16 numbers."""
    halves = [0.5, 1.5, 2.5, -0.5, -1.5, -2.5]
    between = [1 + odd * 2.0**-bits for bits in (8, 11) for odd in (1, 3)]
    return np.array([*halves, *between, *(-value for value in between)])


HALVES = "halves"
"""Ties of an operator that computes them exactly: a wrong way to round has no excuse there."""

EDGES: dict[str, Callable[[DType], Array]] = {
    "edge": _all_edges,
    "edge_rows": _all_edges,
    "zeros": lambda dtype: np.array([0.0, -0.0]),
    "subnormal": _subnormal,
    "extreme": _extreme,
    "nonfinite": _nonfinite,
    "nonfinite_rows": _nonfinite,
    "ties": _ties,
    HALVES: _ties,
}

# Many edges in a row hide each other behind the first NaN: one in each, the rest ordinary. What all
# rows share, of one axis, has none, because a NaN there is in every row.
_ONE_A_ROW = ("edge_rows", "nonfinite_rows")


def check_distribution(name: str, where: str) -> str:
    """Return the name if there is such a distribution.

    Raises:
        UsageError: there is none; `where` comes first in its text.
    """
    if name in DISTRIBUTIONS or name in EDGES:
        return name
    near = nearest(name, (*DISTRIBUTIONS, *EDGES))
    known = ", ".join((*DISTRIBUTIONS, *EDGES))
    raise UsageError(
        f'{where}: "{name}" is not a distribution',
        help=f'did you mean "{near}"?' if near else f"one of {known}",
    )


def make_values(
    stream: np.random.Generator, shape: tuple[int, ...], dtype: DType, source: Source
) -> Array:
    """Return an array of `dtype` as it is stored, filled from the source.

    Raises:
        UsageError: a file or a list of another length than the shape has elements.
    """
    if is_complex(dtype):
        return join_parts(make_values(stream, (*shape, 2), part_dtype(dtype), source), dtype)
    if source.file is not None:
        return _from_file(source.file, shape, dtype)
    if source.values is not None:
        return _from_numbers(source.values, shape, dtype)
    count = math.prod(shape)
    result = np.empty(count, dtype=dtype.numpy)
    for start in range(0, count, _CHUNK):
        size = min(_CHUNK, count - start)
        result[start : start + size] = _draw(stream, size, dtype, source)
    if source.distribution in _ONE_A_ROW and is_float(dtype) and len(shape) > 1 and count:
        edges = EDGES[source.distribution](dtype)
        _place_edges(stream, result.reshape(-1, shape[-1]), edges, dtype)
    return result.reshape(shape)


def _place_edges(stream: np.random.Generator, rows: Array, edges: Array, dtype: DType) -> None:
    """Put one edge of the type into each row, all of them in turn, in an order of its own."""
    edges = np.resize(edges, len(rows))
    places = stream.integers(0, rows.shape[1], len(rows))
    rows[np.arange(len(rows)), places] = narrow(stream.permutation(edges), dtype)


def _draw(stream: np.random.Generator, count: int, dtype: DType, source: Source) -> Array:
    if dtype.name == "bool":
        return stream.integers(0, 2, count).astype(np.bool_)
    if not is_float(dtype):
        return _draw_whole(stream, count, dtype, source)
    if source.distribution in _ONE_A_ROW:
        return narrow(stream.standard_normal(count), dtype)
    if source.distribution in EDGES:
        special = EDGES[source.distribution](dtype)
        values = stream.standard_normal(count)
        chosen = stream.random(count) < 0.5
        return narrow(np.where(chosen, stream.choice(special, count), values), dtype)
    draw, low, high = DISTRIBUTIONS[source.distribution]
    if draw is _normal and not (source.low is None and source.high is None):
        draw, low, high = _bell, -10.0, 10.0
    low = low if source.low is None else source.low
    high = high if source.high is None else source.high
    return narrow(draw(stream, count, low, high), dtype)


def _draw_whole(stream: np.random.Generator, count: int, dtype: DType, source: Source) -> Array:
    limits = np.iinfo(np.dtype(dtype.numpy))
    if source.distribution in EDGES:
        edges = np.array(
            [limits.min, limits.min + 1, 0, 1, limits.max - 1, limits.max], dtype.numpy
        )
        return stream.choice(edges, count)
    # Small enough by itself that a sum or a product of two stays within eight bits.
    low = (0 if dtype.name.startswith("u") else -11) if source.low is None else source.low
    high = 11 if source.high is None else source.high
    low, high = max(math.ceil(low), limits.min), min(math.floor(high), limits.max)
    if source.distribution in ("normal", "uniform"):
        return stream.integers(low, high, count, dtype=dtype.numpy, endpoint=True)
    if source.distribution == "wide":
        return _wide_whole(stream, count, dtype, source)
    values = DISTRIBUTIONS[source.distribution][0](stream, count, float(low), float(high))
    return np.clip(np.rint(values), limits.min, limits.max).astype(dtype.numpy)


def _wide_whole(stream: np.random.Generator, count: int, dtype: DType, source: Source) -> Array:
    """Return whole numbers of each count of bits alike, their lower bits drawn too."""
    limits = np.iinfo(np.dtype(dtype.numpy))
    low = limits.min if source.low is None else max(math.ceil(source.low), limits.min)
    high = limits.max if source.high is None else min(math.floor(source.high), limits.max)
    bits = stream.integers(0, max(abs(low), high).bit_length(), count, endpoint=True)
    sizes = stream.integers(0, 1 << 63, count, dtype=np.int64) >> np.maximum(63 - bits, 0)
    signs = stream.choice(np.array([1, -1] if low < 0 else [1], np.int64), count)
    values: Array = np.clip(signs * sizes, low, high).astype(dtype.numpy)
    # Each bound stands in some places, as long as there are enough of them.
    bounds = stream.integers(0, 64, count)
    values[bounds == 0], values[bounds == 1] = low, high
    return values


def _from_numbers(values: tuple[float, ...], shape: tuple[int, ...], dtype: DType) -> Array:
    count = math.prod(shape)
    if len(values) not in (1, count):
        raise UsageError(f"{len(values)} values for a shape of {count} elements")
    if is_float(dtype):
        stored = narrow(np.array(values, dtype=np.float64), dtype)
    else:
        stored = np.array(values).astype(dtype.numpy)
    result: Array = np.broadcast_to(stored, (count,)).reshape(shape).copy()
    return result


def _from_file(path: Path, shape: tuple[int, ...], dtype: DType) -> Array:
    count = math.prod(shape)
    try:
        if path.suffix == ".npy":
            found = np.load(path, allow_pickle=False)
        else:
            found = np.fromfile(path, dtype=dtype.numpy)
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: cannot be read as values: {error}") from error
    if found.size != count:
        raise UsageError(f"{path}: holds {found.size} values, the input has {count}")
    if is_float(dtype) and found.dtype.kind == "f" and found.dtype != dtype.numpy:
        return narrow(found.astype(np.float64), dtype).reshape(shape)
    return np.ascontiguousarray(found.astype(dtype.numpy, copy=False).reshape(shape))
