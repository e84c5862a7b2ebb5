"""`torch.compile(model, backend="opkit")`."""

from __future__ import annotations

import contextvars
import functools
import os
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
import torch._dynamo.config
from torch import fx

from opkit import log
from opkit.chips import Chip, find_chip
from opkit.compiler import ATEN_ELEMENTWISE
from opkit.errors import BuildError, UsageError
from opkit.graph.attention import keep_attention_whole
from opkit.graph.doubles import narrow_doubles
from opkit.graph.folding import fold
from opkit.graph.program import CompiledSegment
from opkit.graph.segments import Left, cut, halved, outputs_of
from opkit.graph.sizes import Sized, has_open_sizes
from opkit.graph.translation import does_nothing, is_view, line_of, operator_name, translate

__all__ = [
    "CompiledGraph",
    "compile_module",
    "decompositions",
    "graph_compiler",
    "opkit",
    "traced_decompositions",
    "watching",
]

# Recurrent layers come as their steps, whose element-wise work joins the products; without this
# they never come.
torch._dynamo.config.allow_rnn = True

DEBUG = "OPKIT_GRAPH_DEBUG"
_MOST_HALVINGS = 3
"""How often what is not compiled together is cut in two, at most."""


@dataclass
class CompiledGraph:
    """What became of one graph that torch handed over."""

    kind: str
    """`inference`, `forward` or `backward`."""
    module: fx.GraphModule
    segments: list[CompiledSegment] = field(default_factory=list)
    sources: list[list[fx.Node]] = field(default_factory=list)
    """The nodes of each segment, as they were before."""
    left: list[Left] = field(default_factory=list)
    seconds: float = 0.0
    """Spent here: not in torch's own tracing."""


_watchers: contextvars.ContextVar[tuple[list[CompiledGraph], ...]] = contextvars.ContextVar(
    "opkit_graph_watchers", default=()
)


class watching:
    """Collects the graphs that are compiled inside of the block."""

    def __init__(self) -> None:
        self.graphs: list[CompiledGraph] = []

    def __enter__(self) -> list[CompiledGraph]:
        self._token = _watchers.set((*_watchers.get(), self.graphs))
        return self.graphs

    def __exit__(self, *_: object) -> None:
        _watchers.reset(self._token)


@functools.cache
def decompositions() -> Mapping[Any, Callable[..., Any]]:
    """Return torch's core decompositions, without those that give wrong gradients and some that
    gain nothing."""
    from torch._decomp import core_aten_decompositions

    return _without_excluded(dict(core_aten_decompositions()))


@functools.cache
def traced_decompositions() -> Mapping[Any, Callable[..., Any]]:
    """Return those of `decompositions` that AOTAutograd's tracing has a use for.

    The others are of operators that torch takes apart itself before a tracer sees them; to list
    them takes longer than to plan a small model.
    """
    from torch._decomp import _core_aten_decompositions_post_autograd

    table = dict(_core_aten_decompositions_post_autograd())
    for axes in "123":
        for name in (f"upsample_nearest{axes}d", f"_upsample_nearest_exact{axes}d"):
            overload = getattr(torch.ops.aten, name).default
            table[overload] = overload.decompose
    return _without_excluded(table)


def _without_excluded(table: dict[Any, Callable[..., Any]]) -> dict[Any, Callable[..., Any]]:
    attention = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu
    table.pop(attention.default, None)
    # Whole it is one operator that torch runs; taken apart it is five on whole numbers of 64 bits.
    table.pop(torch.ops.aten.embedding_dense_backward.default, None)
    # Taken apart it adds elements one by one.
    table.pop(torch.ops.aten.col2im.default, None)
    # The compiler's own rows do not overflow, do not multiply what is lost near 1, and take fewer
    # instructions than torch's parts; the device's kernels are made of the same rows.
    return {op: parts for op, parts in table.items() if str(op) not in ATEN_ELEMENTWISE}


def opkit(
    module: fx.GraphModule,
    example_inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    **_: Any,
) -> Callable[..., Any]:
    """Compile one graph of dynamo's: its forward, and its backward where it has gradients.

    Args:
        options: `chip`, a chip's name; `smallest`, nodes that a sub-graph has at least.
    Raises:
        UsageError: there is no such option or chip.
    """
    from functorch.compile import min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd

    settings = {"chip": None, "smallest": 1, **(options or {})}
    unknown = [name for name in settings if name not in ("chip", "smallest")]
    if unknown:
        raise UsageError(f'there is no option "{unknown[0]}"', help="there is chip, smallest")
    chip = find_chip(settings["chip"] or _device_chip())
    smallest = int(settings["smallest"])
    whole = aot_autograd(
        fw_compiler=graph_compiler("forward", chip, smallest=smallest),
        bw_compiler=graph_compiler("backward", chip, smallest=smallest),
        inference_compiler=graph_compiler("inference", chip, smallest=smallest),
        decompositions=traced_decompositions(),
        partition_fn=min_cut_rematerialization_partition,
    )
    with keep_attention_whole(module):
        return whole(module, example_inputs)


def graph_compiler(kind: str, chip: Chip, *, smallest: int = 1) -> Callable[..., Any]:
    """Return what AOTAutograd calls with each of its graphs, of open or of fixed sizes.

    Args:
        kind: `inference`, `forward` or `backward`.
    """

    def call(graph: fx.GraphModule, _: Sequence[Any]) -> Callable[..., Any]:
        from functorch.compile import make_boxed_func

        def fixed(module: fx.GraphModule) -> Callable[..., Any]:
            return compile_module(module, chip, kind=kind, smallest=smallest).module.forward

        made = Sized(graph, fixed) if has_open_sizes(graph) else fixed(graph)
        return make_boxed_func(made)  # type: ignore[no-any-return]

    return call


def _device_chip() -> str:
    from opkit.runtime import configuration

    return configuration().chip


def compile_module(
    module: fx.GraphModule, chip: Chip, *, kind: str = "inference", smallest: int = 1
) -> CompiledGraph:
    """Return a graph with its compilable parts replaced by kernels."""
    begin = time.perf_counter()
    narrow_doubles(module)
    fold(module)
    found = CompiledGraph(kind, module)
    parts = cut(module, chip, smallest=smallest)
    found.left = parts.left
    is_debug = os.environ.get(DEBUG, "0") not in ("", "0")
    waiting = [(nodes, _MOST_HALVINGS) for nodes in reversed(parts.segments)]
    while waiting:
        nodes, halvings = waiting.pop()
        name = f"opkit_segment_{len(found.segments)}"
        outputs = outputs_of(nodes)
        try:
            segment = CompiledSegment(
                name, translate(nodes, outputs, "segment", takes_int64=True), chip
            )
        except (UsageError, BuildError, AssertionError, NotImplementedError) as err:
            # One node alone would do; together they do not. Half of them may; of the last halves
            # torch runs the nodes, and says why.
            halves = halved(nodes) if halvings else []
            if halves:
                waiting += [(half, halvings - 1) for half in reversed(halves)]
                continue
            reason = (str(err) or repr(err)).splitlines()[0]
            found.left += [
                Left(n.name, operator_name(n), reason, line_of(n), is_view(n))
                for n in nodes
                if not does_nothing(n)
            ]
            log.warning("GRAPH", "a sub-graph is left to torch", reason=reason)
            continue
        found.sources.append(nodes)
        found.segments.append(segment)
    copied = _replaced(module, found, outputs_by_segment=[outputs_of(n) for n in found.sources])
    found.module = copied
    if is_debug:
        from opkit.graph.debug import watch

        watch(copied, found.segments, found.sources, chip)
    found.seconds = time.perf_counter() - begin
    for graphs in _watchers.get():
        graphs.append(found)
    return found


def _replaced(
    module: fx.GraphModule, found: CompiledGraph, outputs_by_segment: Sequence[Sequence[fx.Node]]
) -> fx.GraphModule:
    """Return a new module in which segments are called instead of their nodes."""
    graph = fx.Graph()
    members = {node: at for at, nodes in enumerate(found.sources) for node in nodes}
    values: dict[fx.Node, fx.Node] = {}
    done: set[int] = set()
    root = torch.nn.Module()
    for at, segment in enumerate(found.segments):
        root.add_module(f"segment_{at}", segment)
    for unit in _order(module, members):
        if isinstance(unit, int):
            segment, outputs = found.segments[unit], outputs_by_segment[unit]
            inputs = tuple(values[node] for node in segment.translation.inputs)
            call = graph.call_module(f"segment_{unit}", inputs)
            if len(outputs) == 1:
                values[outputs[0]] = call
            else:
                for index, node in enumerate(outputs):
                    values[node] = graph.call_function(_item, (call, index))
            done.add(unit)
        else:
            if unit.op == "get_attr":
                _copy_attribute(module, root, str(unit.target))
            values[unit] = graph.node_copy(unit, values.__getitem__)
    return fx.GraphModule(root, graph)


def _item(values: Sequence[Any], index: int) -> Any:
    return values[index]


def _copy_attribute(module: torch.nn.Module, root: torch.nn.Module, target: str) -> None:
    *path, name = target.split(".")
    source, here = module, root
    for part in path:
        source = getattr(source, part)
        if not hasattr(here, part):
            here.add_module(part, torch.nn.Module())
        here = getattr(here, part)
    if not hasattr(here, name):
        setattr(here, name, getattr(source, name))


def _order(module: fx.GraphModule, members: Mapping[fx.Node, int]) -> list[fx.Node | int]:
    """Return nodes and segments in an order in which each comes after what it reads."""
    needs: dict[fx.Node | int, set[fx.Node | int]] = {}
    for node in module.graph.nodes:
        unit = members.get(node, node)
        sources = {members.get(each, each) for each in node.all_input_nodes}
        needs.setdefault(unit, set()).update(sources - {unit})
    order: list[fx.Node | int] = []
    placed: set[fx.Node | int] = set()
    stack: list[fx.Node | int] = []
    for start in needs:
        stack.append(start)
        while stack:
            unit = stack[-1]
            missing = [each for each in needs[unit] if each not in placed]
            if unit in placed:
                stack.pop()
            elif missing:
                stack += missing
            else:
                placed.add(unit)
                order.append(unit)
                stack.pop()
    # Placeholders stay first and in their own order, and the output last.
    inputs = [node for node in module.graph.nodes if node.op == "placeholder"]
    rest = [u for u in order if not (isinstance(u, fx.Node) and u.op in ("placeholder", "output"))]
    ends = [node for node in module.graph.nodes if node.op == "output"]
    return [*inputs, *rest, *ends]
