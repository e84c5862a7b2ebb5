"""A graph executed with NumPy, in float64: what every later stage is held against."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np

from opkit.bfloat16 import bfloat16_to_float32, to_bfloat16

from ..ir import HALVES, Graph, Node, bind_shapes, evaluate, is_floating, is_rounded, rounded_to
from ..ops import OPERATORS

__all__ = ["apply_nodes", "from_storage", "random_arrays", "run_graph", "run_nodes", "to_storage"]


def run_graph(
    graph: Graph,
    arrays: Mapping[str, Any],
    attributes: Mapping[str, float] | None = None,
    *,
    moved: float = 0.0,
    shaken: int | None = None,
) -> dict[str, Any]:
    """Return every tensor's value by name; the outputs are those that `graph.outputs` names.

    Args:
        graph: the program.
        arrays: its inputs, as they lie in memory.
        attributes: its numbers by name.
        moved: how far, relatively, computed values move before they are rounded to whole numbers
            or to 16 bits: which way a value near a tie goes is for roundings before it to say.
        shaken: a seed; each computed value moves as float32 may round it, by some last places
            either way.

    Raises:
        UsageError: an array does not fit its input.
    """
    sizes = bind_shapes(
        ((t.name, t.shape) for t in graph.inputs),
        {t.name: np.shape(arrays[t.name]) for t in graph.inputs},
    )
    return run_nodes(graph, dict(arrays), attributes or {}, sizes, moved=moved, shaken=shaken)


def run_nodes(
    graph: Graph,
    values: dict[str, Any],
    attributes: Mapping[str, float],
    sizes: Mapping[str, int],
    *,
    moved: float = 0.0,
    shaken: int | None = None,
) -> dict[str, Any]:
    """Return all tensors' values, starting from those of the inputs; the rest as of `run_graph`."""
    found = {name: from_storage(value, graph.tensors[name].dtype) for name, value in values.items()}
    return apply_nodes(graph, found, attributes, sizes, moved=moved, shaken=shaken)


def apply_nodes(
    graph: Graph,
    found: dict[str, Any],
    attributes: Mapping[str, float],
    sizes: Mapping[str, int],
    *,
    moved: float = 0.0,
    shaken: int | None = None,
) -> dict[str, Any]:
    """Add every tensor that nodes compute to those that are found; arrays of a class of their own,
    which trace what becomes of them, keep it; the rest as of `run_graph`."""
    exact = set(found)
    whole: set[str] = set()
    random = None if shaken is None else np.random.default_rng(shaken)
    sizes_of: dict[str, Any] = {}
    defaults = {each.name: each.default for each in graph.attributes}
    for node in graph.nodes:
        settings = {key: _bound(value, sizes) for key, value in node.settings.items()}
        # Unmoved, part of a graph may read what the other part computes.
        if (moved or random is not None) and _stays_whole(graph, node, whole):
            whole.add(node.output.name)
        if _chooses(node) and exact.issuperset(node.inputs):
            exact.add(node.output.name)
        if node.operator == "attribute":
            name = node.settings.text("name")
            found[node.output.name] = np.asarray(attributes.get(name, defaults.get(name)))
            continue
        inputs = [found[name] for name in node.inputs]
        if moved and _rounds(graph, node) and node.inputs[0] not in exact | whole:
            size = sizes_of.get(node.inputs[0])
            inputs = [inputs[0] + moved * (np.abs(inputs[0]) if size is None else size)]
        casts = node.operator in _CASTING
        if casts and not is_rounded(node.inputs[0], graph.producers):
            # What was computed in 16 bits: its node is the graph's.
            dtype = graph.producers[node.inputs[0]].output.dtype
            inputs = [rounded_to(inputs[0], dtype)] if dtype in HALVES else inputs
        adds = OPERATORS[node.operator].kind in ADDING and not _chooses(node)
        if random is not None and adds and not (node.output.name in whole and _is_small(inputs)):
            # What is added up in float32 is rounded on the way.
            inputs = [_shaken(each, random) for each in inputs]
        value = OPERATORS[node.operator].reference(*inputs, **settings)
        if casts and node.output.dtype in HALVES:
            value = rounded_to(value, node.output.dtype)
        if moved and node.operator == "matmul" and is_floating(node.output.dtype):
            # Sums are as near to a tie as all that is added up makes them.
            sizes_of[node.output.name] = OPERATORS["matmul"].reference(
                *map(np.abs, inputs), **settings
            )
        if not is_floating(node.output.dtype) and node.output.dtype != "bool":
            # Whole numbers wrap where they leave their type, as NumPy's do.
            value = np.asanyarray(value)
            value = value.astype(np.int64) if is_floating(str(value.dtype)) else value
            value = value.astype(node.output.dtype)
        value = np.asanyarray(value)
        rounds = not casts and node.inputs and node.output.name not in whole
        if random is not None and rounds and not _chooses(node):
            value = _shaken(value, random)
        found[node.output.name] = value
    return found


_SHAKEN = 2.0**-18
"""Some last places of float32, as many as functions made of several instructions have off."""
ADDING = ("reduction", "product", "scan", "attention", "convolution")
"""Kinds of operators whose results are sums of others."""
_MOVING = ("movement", "index", "line")


def _is_small(inputs: list[Any]) -> bool:
    """Return whether float32 holds every sum of whole numbers among these."""
    return all(float(np.sum(np.abs(each))) < 2.0**24 for each in inputs)


def _shaken(values: Any, random: np.random.Generator) -> Any:
    if values.dtype.kind != "f":
        return values
    return values * (1.0 + _SHAKEN * random.uniform(-1.0, 1.0, values.shape))


_CASTING = ("cast", "cumprod", "cumsum", "prod")
"""Operators that take 16 bits for what they hold, and give such: casts, and what casts in parts."""


_WHOLE_NUMBERS = ("round", "floor", "ceil", "trunc", "sign")
_CHOOSING = ("neg", "abs", "relu", "maximum", "minimum", "max", "min", "where", "clamp")
"""Operators that round nothing: each result is one of the operands, or its negative."""
_KEEPING_WHOLE = (*_CHOOSING, "add", "sub", "mul", "sum", "cast")


def _chooses(node: Node) -> bool:
    return node.operator in _CHOOSING or OPERATORS[node.operator].kind in _MOVING


def _stays_whole(graph: Graph, node: Node, whole: Collection[str]) -> bool:
    """Return whether float32 computes a node without rounding: small whole numbers and halves, such
    as the number of a period. No rounding moves those."""
    if node.operator == "constant":
        value = node.settings.number("value")
        return abs(value) < 1024 and (64 * value).is_integer()
    if node.operator in _WHOLE_NUMBERS or not is_floating(node.output.dtype):
        return True
    return (node.operator in _KEEPING_WHOLE or _chooses(node)) and all(
        name in whole
        or not is_floating(graph.tensors[name].dtype)
        # Such a factor rounds nothing, however small: a sum of int32 is made of its bytes' sums.
        or (node.operator == "mul" and _is_power_of_two(graph, name))
        for name in node.inputs
    )


def _is_power_of_two(graph: Graph, name: str) -> bool:
    node = graph.producers.get(name)
    if node is None or node.operator != "constant":
        return False
    return math.frexp(abs(node.settings.number("value")))[0] == 0.5


def _rounds(graph: Graph, node: Node) -> bool:
    """Return whether a node rounds floats: to whole numbers, or to 16 bits."""
    if node.operator == "cast":
        (source,) = graph.inputs_of(node)
        return is_floating(source.dtype) and node.output.dtype != "bool"
    return node.operator in ("round", "floor", "ceil", "trunc")


def random_arrays(graph: Graph, sizes: Mapping[str, int], seed: int = 0) -> list[Any]:
    """Return arrays for a graph's inputs, from a seed: normal fractions, small whole numbers."""
    random = np.random.default_rng(seed)
    found = []
    for tensor in graph.inputs:
        shape = tuple(evaluate(extent, sizes) for extent in tensor.shape)
        if tensor.dtype == "bool":
            found.append(random.random(shape) < 0.5)
        elif is_floating(tensor.dtype):
            found.append(to_storage(random.normal(size=shape), tensor.dtype))
        else:
            low = 0 if tensor.dtype.startswith("u") else -50
            found.append(random.integers(low, 50, shape).astype(tensor.dtype))
    return found


def from_storage(array: Any, dtype: str) -> Any:
    """Return an array's values for computing: float64 for fractions; bfloat16 comes as uint16."""
    array = np.asarray(array)
    if dtype == "bfloat16" and array.dtype == np.uint16:
        array = bfloat16_to_float32(array)
    return array.astype(np.float64) if is_floating(dtype) else array


def to_storage(values: Any, dtype: str) -> Any:
    """Return values as an array of a data type; bfloat16 as uint16, rounded once, to
    nearest, of two to the even one."""
    if dtype != "bfloat16":
        with np.errstate(all="ignore"):
            return np.asarray(values).astype(dtype)
    array = np.asarray(values)
    return to_bfloat16(array if array.dtype.kind == "f" else array.astype(np.float64))


def _bound(value: object, sizes: Mapping[str, int]) -> Any:
    if isinstance(value, tuple):
        return tuple(_bound(each, sizes) for each in value)
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return evaluate(value, sizes)
