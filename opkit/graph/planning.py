"""A compiler's graph to a plan: the launches of its kernels, with their operands' places."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from opkit.chips import Chip
from opkit.compiler import (
    Argument,
    Compiled,
    Draw,
    FusedGraph,
    Graph,
    GraphError,
    Group,
    KernelClass,
    Node,
    Room,
    Tensor,
    TensorArgument,
    compile_kernel,
    fixed_shape,
    fixed_size,
    prepare,
    share_launch,
    share_products,
    to_storage,
)
from opkit.dtypes import find_dtype
from opkit.graph.joining import in_joining_order, joined_runs, products_side_by_side
from opkit.graph.lifetimes import Lifetime, share_memory
from opkit.graph.plan import Copy, Drawn, Launch, Place, Plan, PlanKernel, PlanTensor

__all__ = ["plan_of"]


@dataclass(frozen=True)
class _Inner:
    """An array of a kernel's own graph that is neither input nor output."""

    name: str
    """Empty: a workspace of one launch."""
    size_bytes: int


@dataclass(frozen=True)
class _KernelLaunch:
    """One launch of a kernel's own graph: arguments are its inputs and outputs by name, other
    arrays, or values."""

    name: str
    source: str
    mode: str | None
    block_dim: int
    arguments: tuple[str | _Inner | bytes | Drawn, ...]
    part: KernelClass | None
    """Its class, where it may share a launch with others."""


@dataclass(frozen=True)
class _Kernel:
    """One kernel under names of its own, so that equal kernels are one."""

    fused: FusedGraph
    names: Mapping[str, str]
    """From its inputs' and outputs' names to those in the whole graph."""
    operators: tuple[str, ...]


@dataclass(frozen=True)
class _Operand:
    """What a launch reads or writes: a buffer, or a part of one."""

    root: str
    offset_bytes: int
    size_bytes: int

    def within(self, whole: Place) -> Place:
        """Return its place in that of the buffer."""
        offset = whole.offset + self.offset_bytes
        return replace(whole, offset=offset, size_bytes=self.size_bytes)


@dataclass(frozen=True)
class _Work:
    """What a kernel's own graph takes."""

    launches: tuple[_KernelLaunch, ...]
    unchanged: Mapping[str, str]
    """Outputs that are an input as it is, such as one of 16 bits that is rounded to its own type:
    nothing writes these."""


_known: dict[tuple[object, ...], _Work] = {}
"""Work of the kernels' own graphs: layers of a model that are alike are compiled once."""


def plan_of(
    graph: Graph,
    chip: Chip,
    constants: Sequence[str] = (),
    triangles: Mapping[str, int] | None = None,
) -> Plan:
    """Return the plan of a graph of fixed sizes; its kernels are text, nothing is compiled yet.

    Args:
        constants: the inputs that are the same in every run.
        triangles: inputs whose truths are known, as `prepare` takes them.
    Raises:
        GraphError: the compiler does not take it; at the user's line.
    """
    fused = prepare(graph, triangles)
    roots: dict[str, str] = {tensor.name: tensor.name for tensor in graph.inputs}
    offsets: dict[str, int] = {}
    returned = _returned(fused)
    launched: list[tuple[_Kernel, _KernelLaunch]] = []
    for group in fused.groups:
        for name in (node.output.name for node in group.nodes if node.output.name in fused.windows):
            # What the kernel writes a part of.
            base = fused.windows[name].base
            roots[base] = base
        if group.kind == "view":
            (node,) = group.nodes
            roots[node.output.name] = roots[node.inputs[0]]
            offsets[node.output.name] = offsets.get(node.inputs[0], 0)
            continue
        begin = _begin_of_part(fused, group)
        if begin is not None and group.nodes[0].output.name not in returned:
            (node,) = group.nodes
            roots[node.output.name] = roots[node.inputs[0]]
            offsets[node.output.name] = offsets.get(node.inputs[0], 0) + begin
            continue
        own = _kernel_of(fused, group)
        for name in fused.results_of(group):
            roots[name] = name
        work = _work_of(own.fused, chip)
        for result, source in work.unchanged.items():
            roots[own.names[result]] = roots[own.names[source]]
            offsets[own.names[result]] = offsets.get(own.names[source], 0)
        launched += [(own, launch) for launch in work.launches]
    for name, window in fused.windows.items():
        roots[name] = roots[window.base]
    for name, tensor in fused.graph.outputs:
        number = fused.graph.producers.get(tensor)
        if tensor not in roots and (number is None or number.operator != "constant"):
            place = number.location if number is not None else None
            raise GraphError(f"{name} is a number that no kernel computes", location=place)
    return _assembled(graph, fused, roots, offsets, launched, constants, chip)


_ALIGNMENT = 32
"""Bytes that a part which a kernel reads where it lies begins at a multiple of."""


def _returned(fused: FusedGraph) -> set[str]:
    """Return what the program returns, and what that is another view of."""
    found = {name for _, name in fused.graph.outputs}
    for group in reversed(fused.groups):
        if group.kind == "view" and group.nodes[0].output.name in found:
            found.add(group.nodes[0].inputs[0])
    return found


def _begin_of_part(fused: FusedGraph, group: Group) -> int | None:
    """Return the byte at which a slice begins that lies in one piece, so that no kernel needs to
    move it; None for other groups."""
    if group.kind != "slice":
        return None
    (node,) = group.nodes
    whole = fused.graph.tensors[node.inputs[0]]
    extents = fixed_shape(whole.shape)
    axis = node.settings.axis(len(extents))
    start = fixed_size(node.settings["start"])
    if node.settings["step"] != 1 or {whole.name, node.output.name} & set(fused.windows):
        return None
    if any(extent != 1 for extent in extents[:axis]) or not math.prod(extents):
        return None
    begin = size_of(whole) // extents[axis] * start
    return begin if begin % _ALIGNMENT == 0 else None


def _assembled(
    graph: Graph,
    fused: FusedGraph,
    roots: Mapping[str, str],
    offsets: Mapping[str, int],
    launched: Sequence[tuple[_Kernel, _KernelLaunch]],
    constants: Sequence[str],
    chip: Chip,
) -> Plan:
    tensors = fused.graph.tensors
    places: dict[str, Place] = {}
    inputs = [tensor for tensor in graph.inputs if tensor.name not in constants]
    read = {
        roots[own.names[a]]
        for own, launch in launched
        for a in launch.arguments
        if isinstance(a, str)
    }
    read |= {roots[name] for _, name in fused.graph.outputs if name in roots}
    # A weight of which only another form is read, as int8, is not kept beside it.
    kept = [tensor for tensor in graph.inputs if tensor.name in constants and tensor.name in read]
    for space, group in (("input", inputs), ("constant", kept)):
        for index, tensor in enumerate(group):
            places[tensor.name] = Place(space, index, 0, size_of(tensor))
    copies = []
    for index, (_, name) in enumerate(fused.graph.outputs):
        target = Place("output", index, 0, size_of(tensors[name]))
        if name not in roots:
            number = fused.graph.producers[name].settings["value"]
            copies.append(Copy(to_storage(number, tensors[name].dtype).tobytes(), target))
        elif roots[name] in places:
            copies.append(Copy(places[roots[name]], target))
        else:
            places[roots[name]] = target
    # Every argument by name; what has no place yet lives in the arena.
    arguments: list[list[_Operand | bytes | Drawn]] = []
    sizes: dict[str, int] = {}
    for at, (own, launch) in enumerate(launched):
        row: list[_Operand | bytes | Drawn] = []
        for position, argument in enumerate(launch.arguments):
            if isinstance(argument, bytes | Drawn):
                row.append(argument)
                continue
            if isinstance(argument, _Inner):
                inner = argument.name or f"workspace {at} {position}"
                operand = _Operand(f"inner {id(own)} {inner}", 0, argument.size_bytes)
                sizes[operand.root] = operand.size_bytes
            else:
                name = own.names[argument]
                # A kernel that reads or writes a part knows where it is in the whole.
                seen = fused.windows[name].base if name in fused.windows else name
                operand = _Operand(roots[name], offsets.get(seen, 0), size_of(tensors[seen]))
                sizes[operand.root] = size_of(tensors[operand.root])
            row.append(operand)
        arguments.append(row)
    operands = [[each.root for each in row if isinstance(each, _Operand)] for row in arguments]
    kinds = [
        launch.source if launch.part is not None and launch.mode is None else None
        for _, launch in launched
    ]
    writes = [
        _written(own, launch, row) for (own, launch), row in zip(launched, arguments, strict=True)
    ]
    _check_written(graph, launched, arguments, writes)
    order = in_joining_order(operands, writes, kinds)
    launched = [launched[at] for at in order]
    arguments = [arguments[at] for at in order]
    operands = [operands[at] for at in order]
    kinds = [kinds[at] for at in order]
    writes = [writes[at] for at in order]
    runs = joined_runs(operands, writes, kinds)
    products = [
        launch.block_dim if launch.part is not None and launch.mode == "cube" else 0
        for _, launch in launched
    ]
    runs = products_side_by_side(runs, operands, writes, products, chip.count("cores.aic"))
    buffers: dict[str, Lifetime] = {}
    for at, stage in enumerate(stage for run in runs for stage in run):
        for name in (name for each in stage for name in operands[each]):
            if name not in places:
                buffers.setdefault(name, Lifetime(sizes[name], at, at)).last = at
    offsets, total = share_memory(buffers)
    for name, offset in offsets.items():
        places[name] = Place("arena", 0, offset, buffers[name].size_bytes)
    kernels: dict[tuple[str, str, str | None], int] = {}
    rows: list[PlanKernel] = []
    launches = []
    for run in runs:
        kernel, block_dim, given = _in_one(run, launched, arguments, chip)
        key = (kernel.name, kernel.source, kernel.mode)
        if key not in kernels:
            kernels[key] = len(rows)
            rows.append(kernel)
        owners = [launched[at][0] for stage in run for at in stage]
        written = tuple(own.names[name] for own in owners for name, _ in own.fused.graph.outputs)
        own_places = tuple(
            each.within(places[each.root]) if isinstance(each, _Operand) else each for each in given
        )
        launches.append(Launch(kernels[key], block_dim, own_places, tuple(dict.fromkeys(written))))
    plan = Plan(
        tuple(_plan_tensor(tensor) for tensor in inputs),
        tuple(_plan_tensor(tensors[tensor], name) for name, tensor in fused.graph.outputs),
        tuple(_plan_tensor(tensor) for tensor in kept),
        tuple(rows),
        tuple(launches),
        tuple(copies),
        total,
        sum(buffer.size_bytes for buffer in buffers.values()),
    )
    plan.check()
    return plan


def _check_written(
    graph: Graph,
    launched: Sequence[tuple[_Kernel, _KernelLaunch]],
    arguments: Sequence[Sequence[_Operand | bytes | Drawn]],
    writes: Sequence[Collection[str]],
) -> None:
    """Raise GraphError where a launch reads what nothing has written: it would find what lay in
    memory before."""
    known = {tensor.name for tensor in graph.inputs}
    for (own, launch), row, written in zip(launched, arguments, writes, strict=True):
        for each in row:
            if isinstance(each, _Operand) and each.root not in known | set(written):
                raise GraphError(
                    f"{launch.name} reads {each.root}, which no kernel before it writes",
                    location=own.fused.graph.nodes[-1].location,
                    help="this is a fault of opkit's: please report the program",
                )
        known |= set(written)


_DRAWING = "the generator"
"""What launches that draw random numbers write, in their order."""


def _written(
    own: _Kernel, launch: _KernelLaunch, row: Sequence[_Operand | bytes | Drawn]
) -> set[str]:
    """Return the buffers that a launch may write."""
    results = {name for name, _ in own.fused.graph.outputs}
    found = set()
    for argument, operand in zip(launch.arguments, row, strict=True):
        if isinstance(operand, Drawn):
            found.add(_DRAWING)
        elif isinstance(operand, _Operand) and (
            argument in results or not isinstance(argument, str)
        ):
            found.add(operand.root)
    return found


def _in_one(
    run: Sequence[Sequence[int]],
    launched: Sequence[tuple[_Kernel, _KernelLaunch]],
    arguments: Sequence[Sequence[_Operand | bytes | Drawn]],
    chip: Chip,
) -> tuple[PlanKernel, int, Sequence[_Operand | bytes | Drawn]]:
    """Return the kernel that does the work of a run's stages, its cores and its arguments."""
    order = [at for stage in run for at in stage]
    if len(order) == 1:
        own, launch = launched[order[0]]
        kernel = PlanKernel(launch.name, own.operators, launch.source, launch.mode)
        return kernel, launch.block_dim, arguments[order[0]]
    # The kernels of one program's group have the same operators.
    owners = {id(launched[at][0]): launched[at][0] for at in order}
    operators = tuple(each for own in owners.values() for each in own.operators)
    stages = [
        [(part, launched[at][1].block_dim) for at in stage if (part := launched[at][1].part)]
        for stage in run
    ]
    name, mode = _name(operators), launched[order[0]][1].mode
    if mode == "cube":
        (products,) = stages
        shared = share_products(name, products)
    else:
        shared = share_launch(name, stages, chip.count("cores.aiv"))
    given = [
        each
        for at, cores in zip(order, shared.cores, strict=True)
        for each in (*arguments[at], cores)
    ]
    return PlanKernel(name, operators, shared.source, mode), shared.block_dim, given


def _kernel_of(fused: FusedGraph, group: Group) -> _Kernel:
    """Return one kernel's nodes, and the numbers that it needs, under names of their own."""
    whole = fused.graph
    wanted = {node.output.name for node in group.all_nodes}
    numbers: set[str] = set()
    stack = [name for node in group.all_nodes for name in node.inputs]
    while stack:
        name = stack.pop()
        if name in fused.uniform and name not in numbers:
            numbers.add(name)
            stack += whole.producers[name].inputs
    nodes = [node for node in whole.nodes if node.output.name in wanted | numbers]
    inputs = [name for name in fused.operands_of(group) if name not in numbers]
    outputs = list(fused.results_of(group))
    short = {name: f"x{index}" for index, name in enumerate(inputs)}
    short |= {node.output.name: f"t{index}" for index, node in enumerate(nodes)}
    operators = tuple(node.operator for node in group.all_nodes)
    graph = Graph(
        _name(operators),
        tuple(Tensor(short[n], whole.tensors[n].shape, whole.tensors[n].dtype) for n in inputs),
        tuple(
            Node(
                node.operator,
                tuple(short[name] for name in node.inputs),
                replace(node.output, name=short[node.output.name]),
                node.attributes,
                node.location,
            )
            for node in nodes
        ),
        tuple((f"y{index}", short[name]) for index, name in enumerate(outputs)),
    )
    names = {short[name]: name for name in inputs}
    names |= {f"y{index}": name for index, name in enumerate(outputs)}
    own = {node.output.name: node for node in graph.nodes}

    def renamed(part: Group, name: str, before: tuple[Group, ...] = ()) -> Group:
        nodes = tuple(own[short[node.output.name]] for node in part.nodes)
        return Group(name, part.kind, nodes, before=before)

    parts = [renamed(part, f"{graph.name}_{at}") for at, part in enumerate(group.before)]
    windows = {
        own_name: replace(fused.windows[name], base="")
        for name, own_name in short.items()
        if name in fused.windows
    }
    kernel = FusedGraph(
        graph, (renamed(group, graph.name, tuple(parts)),), windows=windows, is_planned=True
    )
    return _Kernel(kernel, names, operators)


_LONGEST_NAME = 48


def _name(operators: Sequence[str]) -> str:
    """Return a kernel's name: what it computes, each operator once."""
    found = ""
    for operator in dict.fromkeys(operators):
        if len(found) + len(operator) > _LONGEST_NAME:
            return f"{found}_and_more"
        found = f"{found}_{operator}" if found else operator
    return f"{found}_kernel"


def _work_of(kernel: FusedGraph, chip: Chip) -> _Work:
    graph = kernel.graph
    windows = tuple(kernel.windows.items())
    key = (graph, chip.name, tuple(node.location for node in graph.nodes), windows)
    if key not in _known:
        _known[key] = _worked_out(kernel, chip)
    return _known[key]


def _worked_out(kernel: FusedGraph, chip: Chip) -> _Work:
    graph = kernel.graph
    program = Compiled(compile_kernel(kernel, chip))
    lowered = program.lowered
    tensors = lowered.graph.tensors
    roots = {name: name for name in tensors}
    for group in lowered.groups:
        for part in (*group.before, group):
            if part.kind == "view":
                (node,) = part.nodes
                roots[node.output.name] = roots[node.inputs[0]]
    for name, window in lowered.windows.items():
        # A kernel that was fused with its parts is given these by the model.
        roots[name] = roots.get(window.base, name)
    owners = {roots[name]: output for output, name in lowered.graph.outputs}
    inputs = {tensor.name for tensor in graph.inputs}
    unchanged = {
        output: roots[name] for output, name in lowered.graph.outputs if roots[name] in inputs
    }
    owners |= {name: name for name in inputs}

    def argument(given: Argument) -> str | _Inner | bytes | Drawn:
        if isinstance(given, Draw):
            return Drawn(given.count)
        if isinstance(given, Room):
            return _Inner("", given.size_bytes)
        if not isinstance(given, TensorArgument):
            return given
        if given.spread is not None:
            raise GraphError(
                f"{graph.nodes[-1].operator} of tensors that broadcast along some of their batches"
                " only",
                location=graph.nodes[-1].location,
                help="expand them",
            )
        root = roots[given.name]
        return owners.get(root) or _Inner(root, size_of(tensors[root]))

    launches = tuple(
        _KernelLaunch(
            launch.code.name,
            launch.code.text(),
            launch.code.mode,
            launch.block_dim,
            tuple(map(argument, launch.arguments)),
            launch.code.part() if launch.code.part is not None else None,
        )
        for launch in program.launches({})
    )
    return _Work(launches, unchanged)


def size_of(tensor: Tensor) -> int:
    """Return a tensor's bytes; its sizes are fixed."""
    row = find_dtype(tensor.dtype)
    assert row is not None
    return row.size_bytes * math.prod(fixed_shape(tensor.shape))


def _plan_tensor(tensor: Tensor, name: str | None = None) -> PlanTensor:
    shape = fixed_shape(tensor.shape)
    return PlanTensor(name or tensor.name, shape, tensor.dtype, size_of(tensor))
