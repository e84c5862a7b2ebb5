"""Kernels of the device's library in generated operators: ordering, places of extremes, sums of
whole numbers, random numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..codegen import (
    ExtentOf,
    KernelClass,
    LaunchRule,
    Text,
    TilingValue,
    class_of,
    divide_up,
    element_bytes,
    least,
    most,
    struct_of,
)
from ..ir import Dimension, Graph, GraphError, normal_axes, product
from ..passes import Group
from .library import HEADERS, KINDS, RANDOM_TILE, column_width
from .placed_moves import MOST_AXES, placed_move

__all__ = ["library_kernel"]

_LINE = (
    *(("kind", "uint32_t"), ("result_kind", "uint32_t"), ("action", "uint32_t")),
    *(("is_descending", "uint32_t"), ("outer", "int64_t"), ("length", "int64_t")),
    *(("inner", "int64_t"), ("kept", "int64_t"), ("has_short_places", "int64_t")),
    *(("parts", "int64_t"), ("width", "int64_t")),
)
"""Members of the library's LinePlan."""
_RANDOM = (("count", "int64_t"), ("seed", "uint64_t"), ("offset", "uint64_t"))
"""Members of its RandomPlan."""


def library_kernel(
    graph: Graph, uniform: frozenset[str], group: Group
) -> tuple[KernelClass, tuple[str, ...], LaunchRule, str]:
    """Return a group's kernel, the tensors behind its addresses, how it is launched, and the header
    of the library that it needs.

    Raises:
        GraphError: a seed is no number of the launch.
    """
    if group.kind == "random_uniform":
        return _random(graph, uniform, group)
    if group.kind in ("take_along", "put_along"):
        return _by_places(graph, group)
    node = group.nodes[0]
    (x,) = graph.inputs_of(node)
    if x.dtype not in KINDS:
        raise GraphError(
            f"{x.dtype} is not ordered",
            location=node.location,
            help=f"there are {', '.join(KINDS)}",
        )
    axes = normal_axes(node.settings["axis"], len(x.shape))
    results = {each.operator: each.output.name for each in group.nodes}
    kept: Any = 1
    is_descending = group.kind == "argmax"
    if group.kind == "sort":
        function = "sort_lines"
        given = {"values": results.get("sort"), "places": results.get("argsort")}
        kept = node.output.shape[axes[0]]
        is_descending = bool(node.settings["descending"])
    elif group.kind == "whole_sum":
        function, given = "fold_lines", {"out": node.output.name}
    else:
        function = "extreme_lines"
        given = {"values": None, "places": node.output.name, "space": None}
    addresses = {"x": node.inputs[0]} | {name: each for name, each in given.items() if each}
    passed = ["x", *(name if given[name] else "nullptr" for name in given)]

    def launch(
        cores: Any, extent_of: ExtentOf, _: Mapping[str, Any]
    ) -> tuple[Any, Sequence[TilingValue]]:
        outer = extent_of(product(x.shape[: axes[0]]))
        length = extent_of(product(x.shape[axes[0] : axes[-1] + 1]))
        inner = extent_of(product(x.shape[axes[-1] + 1 :]))
        lines = outer * inner
        used = most(1, least(cores, lines, lines * length // 512))
        values = (
            *(KINDS[x.dtype], 3, 0, int(is_descending)),
            *(outer, length, inner, extent_of(kept), 1, 1, column_width(lines, used)),
        )
        return used, [TilingValue(n, kind, v) for (n, kind), v in zip(_LINE, values, strict=True)]

    text = _class(group, node.location, tuple(addresses), function, passed, "LinePlan", _LINE)
    return text, tuple(addresses.values()), launch, HEADERS[function]


def _random(
    graph: Graph, uniform: frozenset[str], group: Group
) -> tuple[KernelClass, tuple[str, ...], LaunchRule, str]:
    node = group.nodes[0]
    (seed,) = node.inputs
    stream = node.settings["stream"]
    if seed not in uniform or not isinstance(stream, int):
        raise GraphError(
            "the seed is computed by a kernel", location=node.location, help="pass it as a number"
        )
    mask = (1 << 64) - 1

    def launch(
        cores: Any, extent_of: ExtentOf, scalars: Mapping[str, Any]
    ) -> tuple[Any, Sequence[TilingValue]]:
        count = extent_of(node.output.size)
        given = scalars[seed]
        text = f"static_cast<int64_t>({given})" if isinstance(given, str) else int(given) & mask
        values = (count, text, stream & mask)
        used = most(1, least(cores, divide_up(count, RANDOM_TILE)))
        return used, [TilingValue(n, kind, v) for (n, kind), v in zip(_RANDOM, values, strict=True)]

    function = "random_uniform"
    text = _class(group, node.location, ("out",), function, ["out"], "RandomPlan", _RANDOM)
    return text, (node.output.name,), launch, HEADERS[function]


def _by_places(graph: Graph, group: Group) -> tuple[KernelClass, tuple[str, ...], LaunchRule, str]:
    """What is put, is put into the output, which has the elements of the first operand by then."""
    node = group.nodes[0]
    table, index, *sources = graph.inputs_of(node)
    plain = sources[0] if sources else node.output
    size = element_bytes(table.dtype)
    move = placed_move(node, table.shape, index.shape, plain.shape, size)
    constants = {
        "element_bytes": size,
        "action": move.action,
        "kind": KINDS[table.dtype],
        "index_count": 1,
        "index_bytes": element_bytes(index.dtype),
        "has_rows": int(move.has_rows),
        "cores": move.most_cores,
        "rows_together": move.rows_together,
        # Axes that there are not have one element.
        **{f"sizes[{at}]": 1 for at in range(len(move.axes), MOST_AXES)},
    }
    given: dict[str, tuple[str, Dimension]] = {}
    for at, each in enumerate(move.axes):
        given[f"sizes[{at}]"] = (f"size{at}", each.extent)
        given[f"plain_strides[{at}]"] = (f"plain_step{at}", each.plain_step)
        given[f"table_strides[{at}]"] = (f"table_step{at}", each.table_step)
        given[f"indices[0].strides[{at}]"] = (f"index_step{at}", each.index_step)
    given["indices[0].size"] = ("places", move.places)
    given["indices[0].table_stride"] = ("place_step", move.place_step)

    def launch(
        cores: Any, extent_of: ExtentOf, _: Mapping[str, Any]
    ) -> tuple[Any, Sequence[TilingValue]]:
        values = [TilingValue(n, "int64_t", extent_of(v)) for n, v in given.values()]
        return move.cores(cores, extent_of), values

    moved = node.output.name if sources else node.inputs[0]
    arguments = (moved, sources[0].name if sources else node.output.name, node.inputs[1])
    addresses = ("table", "plain", "index")
    text = _class(
        group,
        node.location,
        addresses,
        "move_by_index",
        (*addresses, *["nullptr"] * 3),
        "ElementsPlan",
        [(name, "int64_t") for name, _ in given.values()],
        {name: member for member, (name, _) in given.items()},
        constants,
    )
    return text, arguments, launch, HEADERS["move_by_index"]


def _class(
    group: Group,
    location: Any,
    addresses: tuple[str, ...],
    function: str,
    passed: Sequence[str],
    plan: str,
    members: Sequence[tuple[str, str]],
    of_plan: Mapping[str, str] | None = None,
    constants: Mapping[str, int] | None = None,
) -> KernelClass:
    """Return the class that calls a function of the library.

    Args:
        members: names and types of the tiling data.
        of_plan: the plan's member for a name, where it is another.
        constants: members of the plan that are the same for every launch.
    """
    struct, name = struct_of(group.name), class_of(group.name)
    declaration = Text()
    declaration(f"struct {struct} {{")
    declaration.all(f"{kind} {member};" for member, kind in members)
    declaration("};")
    out = Text()
    out(f"class {name} {{")
    out("public:")
    parameters = ", ".join(f"GM_ADDR {each}Address" for each in addresses)
    out(f"__aicore__ inline void Init({parameters}, const {struct}& given)")
    out("{")
    out.all(f"{each} = {each}Address;" for each in addresses)
    out.all(f"plan.{member} = {value};" for member, value in (constants or {}).items())
    out.all(f"plan.{(of_plan or {}).get(each, each)} = given.{each};" for each, _ in members)
    out("}")
    out()
    out("__aicore__ inline void Process()")
    out("{")
    out(f"opkit::kernels::{function}({', '.join((*passed, 'plan'))});", location)
    out("}")
    out()
    out("private:")
    out.all(f"GM_ADDR {each} = nullptr;" for each in addresses)
    out(f"opkit::kernels::{plan} plan = {{}};")
    out("};")
    return KernelClass(group.name, name, struct, declaration, out, addresses)
