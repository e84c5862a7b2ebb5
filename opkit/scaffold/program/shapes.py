"""The shapes of a compiled operator's outputs, as rules over its inputs."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

from opkit import compiler
from opkit.errors import SpecError
from opkit.schema import OpSpec, ShapeRule

from .variants import formula_graph_of

__all__ = ["with_shapes"]


def with_shapes(spec: OpSpec) -> OpSpec:
    """Return an operator whose outputs say by a rule of the prototype which shape they have; itself
    where its inputs' axes have no names.

    Raises:
        SpecError: a formula is wrong, or there is no rule for an output's shape.
    """
    if not spec.is_program or all(tensor.shape is not None for tensor in spec.outputs):
        return spec
    graph = formula_graph_of(spec, 0)
    shapes = {name: graph.tensors[tensor].shape for name, tensor in graph.outputs}
    outputs = tuple(
        replace(tensor, shape=_rule(spec, graph, index, shapes[tensor.name]))
        for index, tensor in enumerate(spec.outputs)
    )
    return replace(spec, outputs=outputs)


def _rule(spec: OpSpec, graph: compiler.Graph, index: int, shape: tuple[Any, ...]) -> ShapeRule:
    for tensor in graph.inputs:
        if tensor.shape == shape:
            return ShapeRule("same", (tensor.name,), text=f"same({tensor.name})")
    if any("..." in (tensor.axes or ()) for tensor in spec.inputs):
        return _reduced(spec, graph, index, shape)
    places: dict[str, Any] = {}
    for tensor in graph.inputs:
        for axis, extent in enumerate(tensor.shape):
            if not isinstance(extent, int):
                places.setdefault(str(extent), (tensor.name, axis))
    read = dict.fromkeys(
        places[str(symbol)][0]
        for extent in shape
        if not isinstance(extent, int)
        for symbol in sorted(extent.free_symbols, key=str)
    )
    texts = {name: f"{tensor}[{axis}]" for name, (tensor, axis) in places.items()}
    try:
        dims = tuple(compiler.extent_text(extent, texts) for extent in shape)
    except KeyError as err:
        raise _none(
            spec, index, f"its extent {err.args[0]} is no sum, product or quotient"
        ) from err
    return ShapeRule("dims", tuple(read), dims=dims, text=dims)


def _reduced(spec: OpSpec, graph: compiler.Graph, index: int, shape: tuple[Any, ...]) -> ShapeRule:
    """Return the rule of an output with fewer axes than an input that has any number of them."""
    for given, tensor in zip(spec.inputs, graph.inputs, strict=True):
        if "..." not in (given.axes or ()):
            continue
        rank = len(tensor.shape)
        for count in range(1, rank):
            for axes in itertools.combinations(range(1, rank), count):
                for keepdims in (False, True):
                    left = tuple(
                        1 if axis in axes else extent
                        for axis, extent in enumerate(tensor.shape)
                        if keepdims or axis not in axes
                    )
                    if left == shape:
                        last = tuple(axis - rank for axis in axes)
                        text = f"reduce({tensor.name}, axis={last}, keepdims={keepdims})".lower()
                        options: dict[str, Any] = {"axis": last, "keepdims": keepdims}
                        return ShapeRule("reduce", (tensor.name,), options, text=text)
    raise _none(spec, index, 'with "..." an output has an input\'s shape, or that less some axes')


def _none(spec: OpSpec, index: int, why: str) -> SpecError:
    return SpecError(
        f"the shape of {spec.outputs[index].name} does not follow: {why}",
        file=spec.source,
        pointer=f"{spec.pointer}/output_desc/{index}/formula",
        help="name every axis of the inputs",
    )
