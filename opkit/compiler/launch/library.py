"""Launching the kernels that the device's library has too: ordering, places, whole numbers' sums,
random numbers."""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from opkit import kernels

from ..codegen import Text, divide_up, fair_cores, least, most
from ..ir import GraphError, Location, Node, normal_axes
from ..ops import MOST_SORTED
from ..passes import Group
from .kernel_program import KernelProgram
from .movements import copy_whole
from .placed_moves import MOST_AXES, placed_move

__all__ = ["HEADERS", "KINDS", "LIBRARY", "RANDOM_TILE", "column_width", "run_library"]

LIBRARY = ("sort", "argmax", "argmin", "whole_sum", "random_uniform", "take_along", "put_along")
"""Kinds of groups; `argsort` is part of a group `sort`."""
KINDS = {
    **{"float32": 0, "float16": 1, "bfloat16": 2, "int32": 3, "int16": 4, "int8": 5, "uint8": 6},
    "bool": 7,
}
"""`opkit::kernels::Kind`."""
_HOME = {
    "sort_lines": ("order.h", "LinePlan"),
    "fold_lines": ("order.h", "LinePlan"),
    "extreme_lines": ("order.h", "LinePlan"),
    "random_uniform": ("philox.h", "RandomPlan"),
    "move_by_index": ("elements.h", "ElementsPlan"),
}
"""The header of each function, and what tells it what to do."""
HEADERS = {function: header for function, (header, _) in _HOME.items()}
_ACCESSES = ("GetValue(", "SetValue(", "DataCopyPad(")
RANDOM_TILE = 8192
_WIDE_KINDS = (KINDS["int32"],)
"""Of what has more digits than the vector unit's floats: the scalar unit looks for its extremes."""
_EXTREME_CYCLES, _SORT_CYCLES = 1 / 8, 2
"""Of the vector unit for an element: a reduction of a repeat, runs of 32 and their merges."""
_PICK_CYCLES, _PUT_CYCLES = 1, 24
"""Of an element that is picked by Gather, with its number, and of one that the scalar unit puts."""
_LEAST_PART = 2048
"""Elements of a line below which no further core shares it."""
_MOST_WIDTH = 1024
"""Columns of which a core's buffer holds a row, its extreme and its place."""


def run_library(
    program: KernelProgram,
    group: Group,
    memory: dict[str, Any],
    sizes: Mapping[str, int],
    scalars: Mapping[str, float],
) -> None:
    """Run a kernel of the library; its results appear in memory.

    Raises:
        GraphError: a line is longer than what a core sorts, or a seed is no number of the launch.
    """
    results = [program.room(node.output.name, memory, sizes) for node in group.nodes]
    if not all(result.size for result in results):
        return
    if group.kind == "random_uniform":
        _random(program, group.nodes[0], results[0], scalars)
    elif group.kind in ("take_along", "put_along"):
        node = group.nodes[0]
        _by_places(program, node, [memory[name] for name in node.inputs], results[0])
    else:
        _lines(program, group, memory[group.nodes[0].inputs[0]], results)


def _launch(
    program: KernelProgram,
    node: Node,
    function: str,
    arguments: Mapping[str, Any],
    parameters: Sequence[str],
    plan: bytes,
    cores: int,
) -> None:
    """Run a function of the library as a kernel that takes the arrays that there are."""
    given = [name for name in parameters if name in arguments]
    name = "_".join([function, *given])
    kernel = program.native(
        name,
        lambda: _source(name, function, given, parameters, node.location),
        location=node.location,
    )
    kernel.launch([*(arguments[each] for each in given), plan], cores)


def _source(
    name: str,
    function: str,
    given: Sequence[str],
    parameters: Sequence[str],
    location: Location | None,
) -> str:
    header, plan = _HOME[function]
    declared = ", ".join([*(f"GM_ADDR {each}" for each in given), f"opkit::kernels::{plan} plan"])
    passed = ", ".join([*(each if each in given else "nullptr" for each in parameters), "plan"])
    out = Text()
    for line in kernels.header_text(header).splitlines():
        # What touches global memory is the user's line: faults name it.
        out(line.strip(), location if any(word in line for word in _ACCESSES) else None)
    out(f'extern "C" __global__ __aicore__ void {name}({declared})')
    out("{")
    out(f"opkit::kernels::{function}({passed});")
    out("}")
    return out.render(with_lines=True, file=f"{name}.cpp")


def _random(program: KernelProgram, node: Node, result: Any, scalars: Mapping[str, float]) -> None:
    seed = scalars.get(node.inputs[0])
    stream = node.settings["stream"]
    if seed is None or not isinstance(stream, int):
        raise GraphError(
            "the seed is computed by a kernel", location=node.location, help="pass it as a number"
        )
    words = (1 << 64) - 1
    plan = struct.pack("=qQQ", result.size, int(seed) & words, stream & words)
    cores = min(_cores(program), -(-result.size // RANDOM_TILE))
    _launch(program, node, "random_uniform", {"out": result}, ["out"], plan, cores)


def _lines(program: KernelProgram, group: Group, x: Any, results: Sequence[Any]) -> None:
    node = group.nodes[0]
    axes = normal_axes(node.settings["axis"], x.ndim)
    outer = int(np.prod(x.shape[: axes[0]]))
    length = int(np.prod(x.shape[axes[0] : axes[-1] + 1]))
    inner = int(np.prod(x.shape[axes[-1] + 1 :]))
    kind = KINDS[program.lowered.graph.tensors[node.inputs[0]].dtype]
    is_descending, kept = False, 1
    if group.kind == "sort":
        if length > MOST_SORTED:
            raise GraphError(
                f"{length} elements do not fit a core that sorts them: at most {MOST_SORTED}",
                location=node.location,
                help="topk takes longer axes of fixed sizes",
            )
        function, parameters = "sort_lines", ["x", "values", "places"]
        names = {"sort": "values", "argsort": "places"}
        outputs = {
            names[each.operator]: result for each, result in zip(group.nodes, results, strict=True)
        }
        kept = results[0].shape[axes[0]]
        is_descending = bool(node.settings["descending"])
    elif group.kind == "whole_sum":
        function, parameters, outputs = "fold_lines", ["x", "out"], {"out": results[0]}
    else:
        function, parameters = "extreme_lines", ["x", "values", "places", "space"]
        outputs = {"places": results[0]}
        is_descending = group.kind == "argmax"
    lines = outer * inner
    cores = max(1, min(_cores(program), lines, lines * length // 512))
    parts = 1
    if function == "sort_lines" and inner == 1 and kind not in _WIDE_KINDS:
        cores = min(lines, _fair_cores(program, x, _SORT_CYCLES))
    if function == "extreme_lines" and kind not in _WIDE_KINDS:
        cores, parts = _shared(program, x, lines, length, inner)
        if parts > 1:
            outputs["space"] = np.empty(4 * cores, np.int64)
    head = (kind, 3, 0, is_descending, outer, length, inner, kept, 1)
    plan = struct.pack("=4I7q", *head, parts, column_width(lines, cores))
    _launch(program, node, function, {"x": x, **outputs}, parameters, plan, cores)


def _shared(program: KernelProgram, x: Any, lines: int, length: int, inner: int) -> tuple[int, int]:
    """Return the cores of a launch that looks for extremes, and how many share a line."""
    cores = _fair_cores(program, x, _EXTREME_CYCLES)
    if inner > 1:
        width = column_width(lines, cores)
        return min(cores, lines // inner * -(-inner // width)), 1
    if 2 * lines <= cores and length >= 2 * _LEAST_PART:
        parts = min(cores // lines, length // _LEAST_PART)
        return lines * parts, parts
    return min(cores, lines), 1


def _fair_cores(program: KernelProgram, x: Any, vector_cycles: float) -> int:
    cores: int = fair_cores(
        *(program.stages.chip, x.size, _cores(program)),
        vector_cycles=vector_cycles,
        read_bytes=x.itemsize,
        written_bytes=0,
    )
    return cores


def column_width(lines: Any, cores: Any) -> Any:
    """Return the columns that a core takes from top to bottom, so many repeats of them."""
    return least(_MOST_WIDTH, most(64, divide_up(divide_up(lines, cores), 64) * 64))


_MOST_INDICES = 4


def _by_places(program: KernelProgram, node: Node, arrays: Sequence[Any], result: Any) -> None:
    x, index, *sources = arrays
    table, plain = x, result
    if sources:
        copy_whole(program, node, x, result)
        table, plain = result, sources[0]
    if plain.size == 0:
        return
    move = placed_move(node, table.shape, index.shape, plain.shape, x.itemsize)
    axes = (*move.axes, *[(1, 0, 0, 0)] * (MOST_AXES - len(move.axes)))
    sizes, plain_steps, table_steps, index_steps = zip(*axes, strict=True)
    kind = KINDS[node.output.dtype]
    head = (x.itemsize, move.action, kind, 1, index.itemsize, move.has_rows)
    cycles = _PICK_CYCLES if move.action == 0 else _PUT_CYCLES
    worth = _fair_cores(program, plain, cycles)
    width, units = move.block_width(x.itemsize, node.output.dtype, worth)
    plan = struct.pack("=10Iq", *head, move.most_cores, move.rows_together, width, 0, 0)
    plan += struct.pack("=18q", *sizes, *plain_steps, *table_steps)
    plan += struct.pack("=8q", *index_steps, move.places, move.place_step)
    plan += bytes(64 * (_MOST_INDICES - 1))
    cores = min(units, worth) if width else move.cores(_cores(program), int)
    arguments = {"table": table, "plain": plain, "i0": index}
    parameters = ["table", "plain", "i0", "i1", "i2", "i3"]
    _launch(program, node, "move_by_index", arguments, parameters, plan, cores)


def _cores(program: KernelProgram) -> int:
    chip = program.stages.chip
    return chip.count("cores.aiv") or chip.count("cores.aic")
