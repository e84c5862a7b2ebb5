"""Launches of the kernels that the device's library has too: ordering, places, whole numbers' sums,
random numbers."""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from typing import Any

from opkit import kernels
from opkit.chips import Chip

from ..codegen import Text, divide_up, fair_cores, least, most
from ..ir import GraphError, Location, Node, normal_axes
from ..ops import MOST_SORTED
from ..passes import Group
from ..stages import Stages
from .launch import Argument, Code, Draw, Launch, Room, Sized, sized
from .movements import whole_copy_launch
from .placed_moves import MOST_AXES, placed_move

__all__ = ["HEADERS", "KINDS", "LIBRARY", "RANDOM_TILE", "column_width", "library_launches"]

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


def library_launches(
    stages: Stages, group: Group, sizes: Mapping[str, int], scalars: Mapping[str, float]
) -> tuple[Launch, ...]:
    """Return the launches of a kernel of the library; none where it writes nothing.

    Raises:
        GraphError: a line is longer than what a core sorts, or a seed is no number of the launch.
    """
    results = [sized(stages, node.output.name, sizes) for node in group.nodes]
    if not all(result.size for result in results):
        return ()
    node = group.nodes[0]
    if group.kind == "random_uniform":
        return (_random(node, results[0], scalars, stages.chip),)
    operands = [sized(stages, name, sizes) for name in node.inputs]
    if group.kind in ("take_along", "put_along"):
        return _by_places(node, operands, results[0], stages.chip)
    return (_lines(group, operands[0], results, stages.chip),)


def _launch(
    node: Node,
    function: str,
    arguments: Mapping[str, Argument],
    parameters: Sequence[str],
    plan: bytes | Draw,
    cores: int,
) -> Launch:
    """Return the launch of a function of the library, as a kernel that takes the tensors that there
    are."""
    given = [name for name in parameters if name in arguments]
    name = "_".join([function, *given])
    code = Code(
        name,
        lambda: _source(name, function, given, parameters, node.location),
        location=node.location,
    )
    return Launch(code, (*(arguments[each] for each in given), plan), cores)


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


def _random(node: Node, result: Sized, scalars: Mapping[str, float], chip: Chip) -> Launch:
    seed = scalars.get(node.inputs[0])
    stream = node.settings["stream"]
    if seed is None or not isinstance(stream, int):
        raise GraphError(
            "the seed is computed by a kernel", location=node.location, help="pass it as a number"
        )
    plan = Draw(result.size, int(seed), stream)
    cores = min(_cores(chip), -(-result.size // RANDOM_TILE))
    return _launch(node, "random_uniform", {"out": result.operand}, ["out"], plan, cores)


def _lines(group: Group, x: Sized, results: Sequence[Sized], chip: Chip) -> Launch:
    node = group.nodes[0]
    axes = normal_axes(node.settings["axis"], len(x.shape))
    outer = math.prod(x.shape[: axes[0]])
    length = math.prod(x.shape[axes[0] : axes[-1] + 1])
    inner = math.prod(x.shape[axes[-1] + 1 :])
    kind = KINDS[x.dtype]
    is_descending, kept = False, 1
    outputs: dict[str, Argument]
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
            names[each.operator]: result.operand
            for each, result in zip(group.nodes, results, strict=True)
        }
        kept = results[0].shape[axes[0]]
        is_descending = bool(node.settings["descending"])
    elif group.kind == "whole_sum":
        function, parameters, outputs = "fold_lines", ["x", "out"], {"out": results[0].operand}
    else:
        function, parameters = "extreme_lines", ["x", "values", "places", "space"]
        outputs = {"places": results[0].operand}
        is_descending = group.kind == "argmax"
    lines = outer * inner
    cores = max(1, min(_cores(chip), lines, lines * length // 512))
    parts = 1
    if function == "sort_lines" and inner == 1 and kind not in _WIDE_KINDS:
        cores = min(lines, _fair_cores(chip, x, _SORT_CYCLES))
    if function == "extreme_lines" and kind not in _WIDE_KINDS:
        cores, parts = _shared(chip, x, lines, length, inner)
        if parts > 1:
            outputs["space"] = Room(4 * cores, "int64")
    head = (kind, 3, 0, is_descending, outer, length, inner, kept, 1)
    plan = struct.pack("=4I7q", *head, parts, column_width(lines, cores))
    return _launch(node, function, {"x": x.operand, **outputs}, parameters, plan, cores)


def _shared(chip: Chip, x: Sized, lines: int, length: int, inner: int) -> tuple[int, int]:
    """Return the cores of a launch that looks for extremes, and how many share a line."""
    cores = _fair_cores(chip, x, _EXTREME_CYCLES)
    if inner > 1:
        width = column_width(lines, cores)
        return min(cores, lines // inner * -(-inner // width)), 1
    if 2 * lines <= cores and length >= 2 * _LEAST_PART:
        parts = min(cores // lines, length // _LEAST_PART)
        return lines * parts, parts
    return min(cores, lines), 1


def _fair_cores(chip: Chip, x: Sized, vector_cycles: float) -> int:
    cores: int = fair_cores(
        *(chip, x.size, _cores(chip)),
        vector_cycles=vector_cycles,
        read_bytes=x.element_bytes,
        written_bytes=0,
    )
    return cores


def column_width(lines: Any, cores: Any) -> Any:
    """Return the columns that a core takes from top to bottom, so many repeats of them."""
    return least(_MOST_WIDTH, most(64, divide_up(divide_up(lines, cores), 64) * 64))


_MOST_INDICES = 4


def _by_places(
    node: Node, operands: Sequence[Sized], result: Sized, chip: Chip
) -> tuple[Launch, ...]:
    x, index, *sources = operands
    table, plain = x, result
    first: tuple[Launch, ...] = ()
    if sources:
        first = (whole_copy_launch(node, x, result, chip),)
        table, plain = result, sources[0]
    if plain.size == 0:
        return first
    move = placed_move(node, table.shape, index.shape, plain.shape, x.element_bytes)
    axes = (*move.axes, *[(1, 0, 0, 0)] * (MOST_AXES - len(move.axes)))
    sizes, plain_steps, table_steps, index_steps = zip(*axes, strict=True)
    kind = KINDS[node.output.dtype]
    head = (x.element_bytes, move.action, kind, 1, index.element_bytes, move.has_rows)
    cycles = _PICK_CYCLES if move.action == 0 else _PUT_CYCLES
    worth = _fair_cores(chip, plain, cycles)
    width, units = move.block_width(x.element_bytes, node.output.dtype, worth)
    plan = struct.pack("=10Iq", *head, move.most_cores, move.rows_together, width, 0, 0)
    plan += struct.pack("=18q", *sizes, *plain_steps, *table_steps)
    plan += struct.pack("=8q", *index_steps, move.places, move.place_step)
    plan += bytes(64 * (_MOST_INDICES - 1))
    cores = min(units, worth) if width else move.cores(_cores(chip), int)
    arguments: dict[str, Argument] = {
        "table": table.operand,
        "plain": plain.operand,
        "i0": index.operand,
    }
    parameters = ["table", "plain", "i0", "i1", "i2", "i3"]
    return (*first, _launch(node, "move_by_index", arguments, parameters, plan, cores))


def _cores(chip: Chip) -> int:
    return chip.count("cores.aiv") or chip.count("cores.aic")
