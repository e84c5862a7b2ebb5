"""What moves elements, or puts them in order: calls of torch, which has them on every machine that
has a Triton."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ...ir import Graph, GraphError, Node
from ...passes import Domain, FusedGraph, Group
from .expressions import TritonWriter, dtype_text, python_number
from .functions import TritonFunction, indented

__all__ = ["write_movement"]


def write_movement(fused: FusedGraph, group: Group) -> TritonFunction:
    """Return the function that computes a group without a kernel.

    Raises:
        GraphError: torch does not give what the program says; at the user's line.
    """
    writer = TritonWriter(fused, (), fused.outputs_of(group), Domain((1, 1), {}, ""))
    lines = []
    for node in group.nodes:
        row = _CALLS.get(node.operator)
        if row is None:
            raise GraphError(f"{node.operator} has no Triton", location=node.location)
        names = [
            writer.number(name) if name in fused.uniform else writer.stem(name)
            for name in node.inputs
        ]
        text = row(writer, fused.graph, node, names)
        place = f"  # {node.location}" if node.location else ""
        lines.append(f"{writer.stem(node.output.name)} = {text}{place}")
    name = f"run_{group.name}"
    inputs = fused.inputs_of(group)
    results = ", ".join(writer.stem(name) for name in writer.outputs)
    sizes = [writer.size_name(at) for at in range(len(writer.sizes))]
    given = ", ".join([*(writer.stem(name) for name in inputs), *sizes])
    text = "\n".join([f"def {name}({given}):", *indented([*lines, f"return {results}"])])
    return TritonFunction(name, text, tuple(inputs), tuple(writer.outputs), tuple(writer.sizes))


_Call = Callable[[TritonWriter, Graph, Node, Sequence[str]], str]


def _shape(writer: TritonWriter, node: Node) -> str:
    extents = [writer.size(extent) for extent in node.output.shape]
    return f"({', '.join(extents)}{',' if len(extents) == 1 else ''})"


def _reshape(writer: TritonWriter, graph: Graph, node: Node, names: Sequence[str]) -> str:
    return f"{names[0]}.reshape({_shape(writer, node)})"


def _transpose(writer: TritonWriter, graph: Graph, node: Node, names: Sequence[str]) -> str:
    return f"{names[0]}.permute({node.settings['axes']}).contiguous()"


def _slice(writer: TritonWriter, graph: Graph, node: Node, names: Sequence[str]) -> str:
    before = ":, " * node.settings.integer("axis")
    start, stop = (writer.size(node.settings[key]) for key in ("start", "stop"))
    return f"{names[0]}[{before}{start}:{stop}:{node.settings['step']}].contiguous()"


def _concat(writer: TritonWriter, graph: Graph, node: Node, names: Sequence[str]) -> str:
    return f"torch.cat(({', '.join(names)},), {node.settings['axis']})"


def _pad(writer: TritonWriter, graph: Graph, node: Node, names: Sequence[str]) -> str:
    widths = node.settings["widths"]
    flat = [writer.size(width) for pair in reversed(widths) for width in pair]
    number = python_number(node.settings["value"])
    return f"torch.nn.functional.pad({names[0]}, ({', '.join(flat)}), value={number})"


def _take(writer: TritonWriter, graph: Graph, node: Node, names: Sequence[str]) -> str:
    table, places = names
    axis = node.settings["axis"]
    # From the end for those below 0; others beyond the table are torch's error.
    counted = f"torch.where({places} < 0, {places} + {table}.shape[{axis}], {places})"
    return f"{table}.index_select({axis}, {counted}.reshape(-1)).reshape({_shape(writer, node)})"


def _arange(writer: TritonWriter, graph: Graph, node: Node, names: Sequence[str]) -> str:
    count = writer.size(node.output.shape[0])
    return f"torch.arange({count}, dtype={dtype_text(graph, node.output.name)}, device=DEVICE)"


def _ordered(part: int) -> _Call:
    def text(writer: TritonWriter, graph: Graph, node: Node, names: Sequence[str]) -> str:
        settings = node.settings
        axis = settings.axis(len(node.output.shape))
        count = settings["count"]
        cut = f"[{':, ' * axis}:{count}]" if count is not None else ""
        return (
            f"torch.sort({names[0]}, dim={axis}, descending={settings['descending']},"
            f" stable=True)[{part}]{cut}.to({dtype_text(graph, node.output.name)})"
        )

    return text


def _extreme(function: str) -> _Call:
    def text(writer: TritonWriter, graph: Graph, node: Node, names: Sequence[str]) -> str:
        (source,) = graph.inputs_of(node)
        axis = node.settings.axis(len(source.shape))
        # The first of equal elements, which torch promises for a stable order only.
        first = f"torch.sort({names[0]}, dim={axis}, descending={function == 'max'}, stable=True)"
        kept = f"[1].narrow({axis}, 0, 1).reshape({_shape(writer, node)})"
        return f"{first}{kept}.to(torch.int32)"

    return text


def _take_along(writer: TritonWriter, graph: Graph, node: Node, names: Sequence[str]) -> str:
    return f"torch.take_along_dim({names[0]}, {names[1]}.to(torch.int64), {node.settings['axis']})"


def _whole_sum(writer: TritonWriter, graph: Graph, node: Node, names: Sequence[str]) -> str:
    (source,) = graph.inputs_of(node)
    axes = node.settings.axes(len(source.shape))
    return f"{names[0]}.sum({axes}, keepdim=True, dtype=torch.int64).to(torch.int32)"


_CALLS: Mapping[str, _Call] = {
    "reshape": _reshape,
    "transpose": _transpose,
    "slice": _slice,
    "concat": _concat,
    "pad": _pad,
    "take": _take,
    "arange": _arange,
    "sort": _ordered(0),
    "argsort": _ordered(1),
    "argmax": _extreme("max"),
    "argmin": _extreme("min"),
    "take_along": _take_along,
    "whole_sum": _whole_sum,
}
