"""How the functions that the device's library has too are called: ordering, places, sums of whole
numbers, random numbers. One description for known sizes and for the host's C++."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from opkit.chips import DATA_BLOCK_BYTES, Chip

from ..codegen import (
    ExtentOf,
    LaunchRule,
    TilingValue,
    divide_up,
    element_bytes,
    fair_cores,
    least,
    most,
)
from ..ir import GraphError, Node, Tensor, product
from ..passes import Group
from .launch import Sized
from .placed_moves import MOST_AXES, placed_move

__all__ = ["LIBRARY", "LibraryCall", "library_call", "plan_layout"]

Operand: TypeAlias = "Tensor | Sized"
LIBRARY = (
    *("sort", "argmax", "argmin", "whole_sum", "random_uniform"),
    *("take_along", "put_along", "join_along"),
)
"""Kinds of groups; `argsort` is part of a group `sort`."""
KINDS = {
    **{"float32": 0, "float16": 1, "bfloat16": 2, "int32": 3, "int16": 4, "int8": 5, "uint8": 6},
    "bool": 7,
}
"""`opkit::kernels::Kind`, of what has an order."""
_MOVED_KINDS = {**KINDS, "int64": 8}
"""The same, of what is moved by places: a few of many elements of 64 bits, before they are cast."""
_PARAMETERS = {
    "sort_lines": ("x", "values", "places"),
    "fold_lines": ("x", "out"),
    "extreme_lines": ("x", "values", "places", "space"),
    "random_uniform": ("out",),
    "move_by_index": ("table", "plain", "index", "index1", "index2", "index3"),
}
"""The addresses that each function takes, before its plan."""
_LINE = (
    *(("kind", "uint32_t"), ("result_kind", "uint32_t"), ("action", "uint32_t")),
    *(("is_descending", "uint32_t"), ("outer", "int64_t"), ("length", "int64_t")),
    *(("inner", "int64_t"), ("kept", "int64_t"), ("has_short_places", "int64_t")),
    *(("parts", "int64_t"), ("width", "int64_t")),
)
"""Members of the library's LinePlan."""
_RANDOM = (("count", "int64_t"), ("seed", "uint64_t"), ("offset", "uint64_t"))
"""Members of its RandomPlan."""
_RANDOM_TILE = 8192
_WIDE_KINDS = (KINDS["int32"],)
"""Types with more digits than the vector unit's floats: the scalar unit finds their extremes."""
_EXTREME_CYCLES, _SORT_CYCLES = 1 / 8, 2
"""Vector unit's cycles for one element: reductions of a repeat; runs of 32 and their merges."""
_LEAST_PART = 2048
"""Elements of a line below which no further core shares it."""
_MOST_WIDTH = 1024
"""Columns of which a core's buffer holds a row, its extreme and its place."""
_WORD = (1 << 64) - 1


@dataclass(frozen=True)
class LibraryCall:
    """One function of the library, on tensors of known sizes or of named ones."""

    function: str
    tensors: Mapping[str, str]
    """The tensor behind each address that is given."""
    members: tuple[tuple[str, str], ...]
    """Names and types of the numbers that come with a launch."""
    rule: LaunchRule
    """Gives these members' values, in order."""
    member_of_plan: Mapping[str, str] = field(default_factory=dict)
    """The plan's member for such a name, where it has another."""
    constants: Mapping[str, int] = field(default_factory=dict)
    """Members of the plan that are the same for every launch."""

    @property
    def parameters(self) -> tuple[str, ...]:
        """The addresses that the function takes."""
        return _PARAMETERS[self.function]

    def values(self, *values: Any) -> list[TilingValue]:
        """Return the members with values."""
        rows = zip(self.members, values, strict=True)
        return [TilingValue(name, kind, value) for (name, kind), value in rows]


def library_call(
    group: Group,
    operands: Sequence[Operand],
    results: Sequence[Operand],
    uniform: frozenset[str],
    chip: Chip | None = None,
) -> LibraryCall:
    """Return how a group's function is called.

    Args:
        operands: of the first node, of known sizes or of named ones, as the results are.
        results: of each node.
        uniform: the tensors that are numbers of the launch.
        chip: where all sizes are known: the cores are then as many as make the launch shortest, and
            several may share a line.
    Raises:
        GraphError: a seed is no number of the launch, or there is no order of a data type.
    """
    if group.kind == "join_along":
        raise GraphError(
            "elements are joined where all sizes are fixed, and an index is for one element, of no"
            " more than 2048 behind the axis, or for all of these",
            location=group.nodes[0].location,
        )
    if group.kind == "random_uniform":
        return _random(group.nodes[0], results[0], uniform)
    if group.kind in ("take_along", "put_along"):
        return _by_places(group.nodes[0], operands, results[0], chip)
    return _lines(group, operands[0], results, chip)


def _random(node: Node, result: Operand, uniform: frozenset[str]) -> LibraryCall:
    (seed,) = node.inputs
    stream = node.settings["stream"]
    if seed not in uniform or not isinstance(stream, int):
        raise GraphError(
            "the seed is computed by a kernel", location=node.location, help="pass it as a number"
        )

    def rule(
        cores: Any, extent_of: ExtentOf, scalars: Mapping[str, Any]
    ) -> tuple[Any, Sequence[TilingValue]]:
        count = extent_of(result.size)
        given = scalars[seed]
        text = f"static_cast<int64_t>({given})" if isinstance(given, str) else int(given) & _WORD
        used = most(1, least(cores, divide_up(count, _RANDOM_TILE)))
        return used, call.values(count, text, stream & _WORD)

    call = LibraryCall("random_uniform", {"out": result.name}, _RANDOM, rule)
    return call


def _lines(group: Group, x: Operand, results: Sequence[Operand], chip: Chip | None) -> LibraryCall:
    node = group.nodes[0]
    if x.dtype not in KINDS:
        raise GraphError(
            f"{x.dtype} is not ordered",
            location=node.location,
            help=f"there are {', '.join(KINDS)}",
        )
    axes = node.settings.axes(len(x.shape))
    kind = KINDS[x.dtype]
    kept: Any = 1
    is_descending = group.kind == "argmax"
    if group.kind == "sort":
        function = "sort_lines"
        names = {"sort": "values", "argsort": "places"}
        given = {
            names[each.operator]: result.name
            for each, result in zip(group.nodes, results, strict=True)
        }
        kept = results[0].shape[axes[0]]
        is_descending = node.settings.truth("descending")
    elif group.kind == "whole_sum":
        function, given = "fold_lines", {"out": results[0].name}
    else:
        function, given = "extreme_lines", {"places": results[0].name}

    def rule(
        cores: Any, extent_of: ExtentOf, _: Mapping[str, Any]
    ) -> tuple[Any, Sequence[TilingValue]]:
        outer = extent_of(product(x.shape[: axes[0]]))
        length = extent_of(product(x.shape[axes[0] : axes[-1] + 1]))
        inner = extent_of(product(x.shape[axes[-1] + 1 :]))
        lines = outer * inner
        used, parts = most(1, least(cores, lines, lines * length // 512)), 1
        if chip is not None and kind not in _WIDE_KINDS:
            if function == "sort_lines" and inner == 1:
                sizes = [element_bytes(result.dtype) * kept for result in results]
                # Both ways a row that is no whole blocks is a copy of its own.
                alone = sum(size % DATA_BLOCK_BYTES > 0 for size in sizes)
                fair = _fair_cores(
                    *(chip, x, cores, _SORT_CYCLES), partial_rows=alone, columns=length
                )
                used = min(lines, fair)
            elif function == "extreme_lines":
                fair = _fair_cores(chip, x, cores, _EXTREME_CYCLES)
                used, parts = _shared(fair, lines, length, inner)
        return used, call.values(
            *(kind, 3, 0, int(is_descending), outer, length, inner, extent_of(kept)),
            *(1, parts, _column_width(lines, used)),
        )

    order = _PARAMETERS[function]
    tensors = {name: {"x": x.name, **given}[name] for name in order if name in {"x", *given}}
    call = LibraryCall(function, tensors, _LINE, rule)
    return call


def _shared(cores: int, lines: int, length: int, inner: int) -> tuple[int, int]:
    """Return the cores of a launch that looks for extremes, and how many share a line."""
    if inner > 1:
        width = _column_width(lines, cores)
        return min(cores, lines // inner * -(-inner // width)), 1
    if 2 * lines <= cores and length >= 2 * _LEAST_PART:
        parts = min(cores // lines, length // _LEAST_PART)
        return lines * parts, parts
    return min(cores, lines), 1


def _fair_cores(
    chip: Chip,
    x: Operand,
    cores: int,
    vector_cycles: float,
    read_bytes: int | None = None,
    *,
    partial_rows: int = 0,
    columns: int = 1,
) -> int:
    found: int = fair_cores(
        *(chip, x.size, cores),
        vector_cycles=vector_cycles,
        read_bytes=element_bytes(x.dtype) if read_bytes is None else read_bytes,
        written_bytes=0,
        partial_rows=partial_rows,
        columns=columns,
    )
    return found


def _column_width(lines: Any, cores: Any) -> Any:
    """Return the columns that a core takes from top to bottom, so many repeats of them."""
    return least(_MOST_WIDTH, most(64, divide_up(divide_up(lines, cores), 64) * 64))


def _by_places(
    node: Node, operands: Sequence[Operand], result: Operand, chip: Chip | None
) -> LibraryCall:
    """What is put, is put into the result, which has the elements of the first operand by then."""
    x, index, *sources = operands
    table, plain = (result, sources[0]) if sources else (x, result)
    size = element_bytes(table.dtype)
    move = placed_move(node, table.shape, index.shape, plain.shape, size)
    constants = {
        "element_bytes": size,
        "action": move.action,
        "kind": _MOVED_KINDS[table.dtype],
        "index_count": 1,
        "index_bytes": element_bytes(index.dtype),
        "has_rows": int(move.has_rows),
        "cores": move.most_cores,
        "rows_together": move.rows_together,
        # Axes that there are not have one element.
        **{f"sizes[{at}]": 1 for at in range(len(move.axes), MOST_AXES)},
    }
    given: dict[str, tuple[str, Any]] = {}
    for at, each in enumerate(move.axes):
        given[f"size{at}"] = (f"sizes[{at}]", each.extent)
        given[f"plain_step{at}"] = (f"plain_strides[{at}]", each.plain_step)
        given[f"table_step{at}"] = (f"table_strides[{at}]", each.table_step)
        given[f"index_step{at}"] = (f"indices[0].strides[{at}]", each.index_step)
    given["places"] = ("indices[0].size", move.places)
    given["place_step"] = ("indices[0].table_stride", move.place_step)

    def rule(
        cores: Any, extent_of: ExtentOf, _: Mapping[str, Any]
    ) -> tuple[Any, Sequence[TilingValue]]:
        used = move.cores(cores, extent_of)
        columns: list[TilingValue] = []
        if chip is not None:
            # Blocks of the table come as a whole, with the places.
            read = -(-size * table.size // max(1, plain.size)) + element_bytes(index.dtype)
            worth = _fair_cores(chip, plain, cores, move.cycles(size), read)
            width, units = move.block_width(size, table.dtype, worth)
            if width:
                columns = [TilingValue("width", "uint32_t", width)]
                # No more cores than take the time of the one with the most blocks.
                used = -(-units // -(-units // min(units, worth)))
        return used, [*call.values(*(extent_of(value) for _, value in given.values())), *columns]

    call = LibraryCall(
        "move_by_index",
        {"table": table.name, "plain": plain.name, "index": index.name},
        tuple((name, "int64_t") for name in given),
        rule,
        {name: member for name, (member, _) in given.items()},
        constants,
    )
    return call


def plan_layout(function: str) -> tuple[tuple[str, str], ...]:
    """Return the members of the plan that a function takes, with their types, as they lie."""
    return {"random_uniform": _RANDOM, "move_by_index": _ELEMENTS}.get(function, _LINE)


_MOST_INDICES = 4
_ELEMENTS = (
    *((name, "uint32_t") for name in ("element_bytes", "action", "kind", "index_count")),
    *((name, "uint32_t") for name in ("index_bytes", "has_rows", "cores", "rows_together")),
    *(("width", "uint32_t"), ("reserved", "uint32_t"), ("table_offset", "int64_t")),
    *(
        (f"{member}[{at}]", "int64_t")
        for member in ("sizes", "plain_strides", "table_strides")
        for at in range(MOST_AXES)
    ),
    *(
        (f"indices[{index}].{member}", "int64_t")
        for index in range(_MOST_INDICES)
        for member in (*(f"strides[{at}]" for at in range(MOST_AXES)), "size", "table_stride")
    ),
)
"""Members of the library's ElementsPlan."""
