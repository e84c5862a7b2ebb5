"""The shapes of a compiled operator's outputs, as rules over its inputs."""

from __future__ import annotations

import ast
import itertools
from dataclasses import replace
from typing import Any

from opkit import compiler
from opkit.errors import SpecError
from opkit.scaffold.formula import formula_graph_of, leading_size
from opkit.schema import OpSpec, ShapeRule, TensorSpec

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
    outputs = []
    for index, tensor in enumerate(spec.outputs):
        if tensor.is_list:
            _check_list(spec, graph, index, shapes[tensor.name])
            outputs.append(tensor)
        else:
            outputs.append(replace(tensor, shape=_rule(spec, graph, index, shapes[tensor.name])))
    return replace(spec, outputs=tuple(outputs))


def _check_list(spec: OpSpec, graph: compiler.Graph, index: int, shape: tuple[Any, ...]) -> None:
    """Refuse a list that does not have a tensor for each of the first list's, of the same shape."""
    first = next(tensor for tensor in spec.inputs if tensor.is_list)
    wanted = graph.tensors[first.name].shape
    if shape != wanted:
        raise SpecError(
            f'"{spec.outputs[index].name}" is computed as {_text(shape)}, but a list has the shapes'
            f' of the first list, "{first.name}": {_text(wanted)}',
            file=spec.source,
            pointer=f"{spec.pointer}/output_desc/{index}/formula",
            help="make the output one tensor, or begin with the list that it is like",
        )


def _text(shape: tuple[Any, ...]) -> str:
    return f"[{', '.join(map(str, shape))}]"


def _rule(spec: OpSpec, graph: compiler.Graph, index: int, shape: tuple[Any, ...]) -> ShapeRule:
    for given, tensor in zip(spec.inputs, graph.inputs, strict=True):
        if tensor.shape == shape and not given.is_list:
            return ShapeRule("same", (tensor.name,), text=f"same({tensor.name})")
    if any("..." in (tensor.axes or ()) for tensor in spec.inputs if not tensor.is_list):
        return _reduced(spec, graph, index, shape)
    return _dims(spec, graph, index, shape)


def _axis_text(tensor: TensorSpec, axis: int) -> str | None:
    """Return how a rule says the length of an axis that the formulas see; None where no single
    tensor has it."""
    axes = tensor.axes or ()
    if not tensor.is_list and axes[:1] != ("...",):
        return f"{tensor.name}[{axis}]"
    if axes[:1] == ("...",):
        return f"{tensor.name}[{axis - len(axes)}]" if axis else None
    return f"{tensor.name}[{axis - 1}]" if axis else f"len({tensor.name})"


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
    leading = compiler.computed_dimension(leading_size(spec))
    if not shape and not _counts_axes(spec.outputs[index].formula or ""):
        return _dims(spec, graph, index, shape)
    first = next(t for t in spec.inputs if (t.axes or ())[:1] == ("...",))
    if shape[:1] == (leading,) and not any(leading in _symbols(extent) for extent in shape[1:]):
        rest = _dims(spec, graph, index, shape[1:])
        count = len(first.axes or ()) - 1
        if count:
            dims = (f"{first.name}[:-{count}]", *rest.dims)
            tensors = tuple(dict.fromkeys([first.name, *rest.tensors]))
            return ShapeRule("dims", tensors, dims=dims, text=dims)
    raise _none(spec, index, 'with "..." the axes that it stands for come first, or not at all')


def _counts_axes(formula: str) -> bool:
    """Whether a formula names an axis by its number from the first, which "..." moves."""
    return any(
        isinstance(node, ast.keyword)
        and node.arg == "axis"
        and any(isinstance(n, ast.Constant) for n in ast.walk(node.value))
        and "-" not in ast.unparse(node.value)
        for node in ast.walk(ast.parse(formula.strip(), mode="eval"))
    )


def _symbols(extent: Any) -> frozenset[Any]:
    return frozenset() if isinstance(extent, int) else frozenset(extent.free_symbols)


def _dims(spec: OpSpec, graph: compiler.Graph, index: int, shape: tuple[Any, ...]) -> ShapeRule:
    """Return the rule that says each dimension."""
    places: dict[str, tuple[str, str]] = {}
    divided: dict[str, tuple[str, str]] = {}
    for given, tensor in zip(spec.inputs, graph.inputs, strict=True):
        for axis, extent in enumerate(tensor.shape):
            text = _axis_text(given, axis)
            if text is not None and not isinstance(extent, int):
                places.setdefault(str(extent), (tensor.name, text))
                factor, rest = extent.as_coeff_Mul()
                if factor.is_Integer and factor > 1 and rest.is_Symbol:
                    divided.setdefault(str(rest), (tensor.name, f"({text} // {factor})"))
    places = divided | places
    symbols = [
        str(symbol)
        for extent in shape
        if not isinstance(extent, int)
        for symbol in sorted(extent.free_symbols, key=str)
    ]
    if any(symbol not in places for symbol in symbols):
        raise _none(spec, index, "it is that of all tensors of a list together")
    read = dict.fromkeys(places[symbol][0] for symbol in symbols)
    texts = {name: text for name, (_, text) in places.items()}
    try:
        dims = tuple(compiler.extent_text(extent, texts) for extent in shape)
    except KeyError as err:
        raise _none(
            spec, index, f"its extent {err.args[0]} is no sum, product or quotient"
        ) from err
    return ShapeRule("dims", tuple(read), dims=dims, text=dims)


def _none(spec: OpSpec, index: int, why: str) -> SpecError:
    return SpecError(
        f"the shape of {spec.outputs[index].name} does not follow: {why}",
        file=spec.source,
        pointer=f"{spec.pointer}/output_desc/{index}/formula",
        help="name every axis of the inputs",
    )
