"""The C++ that launches a kernel from an operator's host code.

The same functions that work a launch out in Python are called with terms of C++, so that the two
cannot part.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from opkit.chips import Chip

from ..codegen import (
    Host,
    Term,
    Text,
    TilingValue,
    VectorKernel,
    divide_up,
    element_bytes,
    extent_term,
    identifier,
    shares_at,
    special_number,
)
from ..ir import Dimension, GraphError, Node, Tensor, product, step_size
from ..passes import FusedGraph
from .host_types import plan_of_types, type_sizes
from .hosted import OperatorKernel

__all__ = ["bytes_text", "extent_cpp", "launch_function", "size_parameter", "sizes_of"]

_SCALARS: dict[str, Callable[..., str]] = {
    "add": lambda a, b: f"({a} + {b})",
    "sub": lambda a, b: f"({a} - {b})",
    "mul": lambda a, b: f"({a} * {b})",
    "div": lambda a, b: f"({a} / {b})",
    "neg": lambda a: f"(-{a})",
    "abs": lambda a: f"std::fabs({a})",
    "exp": lambda a: f"std::exp({a})",
    "log": lambda a: f"std::log({a})",
    "sqrt": lambda a: f"std::sqrt({a})",
    "floor": lambda a: f"std::floor({a})",
    "ceil": lambda a: f"std::ceil({a})",
    "trunc": lambda a: f"std::trunc({a})",
    "round": lambda a: f"std::nearbyint({a})",
    "maximum": lambda a, b: f"std::fmax({a}, {b})",
    "minimum": lambda a, b: f"std::fmin({a}, {b})",
    "cast": lambda a: a,
    "where": lambda c, a, b: f"({c} != 0 ? {a} : {b})",
    "less": lambda a, b: f"({a} < {b} ? 1.0 : 0.0)",
    "less_equal": lambda a, b: f"({a} <= {b} ? 1.0 : 0.0)",
    "greater": lambda a, b: f"({a} > {b} ? 1.0 : 0.0)",
    "greater_equal": lambda a, b: f"({a} >= {b} ? 1.0 : 0.0)",
    "equal": lambda a, b: f"({a} == {b} ? 1.0 : 0.0)",
    "not_equal": lambda a, b: f"({a} != {b} ? 1.0 : 0.0)",
}
"""How numbers that come with a launch are computed, in double precision."""


def size_parameter(name: str) -> str:
    """Return the C++ name of a named size: `M` is `mExtent`, how far rows are apart `xStep`."""
    return identifier(name if " " in name else f"{name} extent")


def sizes_of(fused: FusedGraph) -> tuple[str, ...]:
    """Return the named sizes of a program's inputs, in the order in which they first occur, then
    how far rows are apart of which there may be one for all."""
    found: dict[str, None] = {}
    for tensor in fused.graph.inputs:
        for extent in tensor.shape:
            if not isinstance(extent, int):
                for symbol in sorted(extent.free_symbols, key=str):
                    found.setdefault(str(symbol))
    steps = (str(step_size(t.name)) for t in fused.graph.inputs if t.name in fused.one_row)
    return (*found, *steps)


def launch_function(
    kernel: OperatorKernel,
    fused: FusedGraph,
    chip: Chip,
    name: str,
    attributes: Mapping[str, str],
    *,
    takes_empty: bool = False,
    is_tuned: bool = False,
    takes_parts: bool = False,
) -> str:
    """Return a C++ function that fills a kernel's tiling data and says how many cores it takes; 0
    where not even the smallest tile fits the unified buffer.

    It takes the named sizes as `int64_t`, 1 at least, the attributes as `double`, the bytes that
    `type_sizes` names, `cores`, and `tiling`; it calls `DivideUp(value, by)`.

    Args:
        attributes: the C++ name of each of the program's attributes.
        takes_empty: sizes may be 0; a core that has nothing to do is then all that is launched.
        is_tuned: it also takes `rounds`, into how many tiles the longest share of a core is cut.
        takes_parts: it also takes `rowParts`, into how many a row is cut at least.

    Raises:
        GraphError: a number that comes with a launch is computed by what has no C++ here.
    """
    sizes = {each: size_parameter(each) for each in sizes_of(fused)}
    last = ("cores", "rounds") if is_tuned else ("cores",)
    last = (*last, "rowParts") if takes_parts else last
    if isinstance(kernel, VectorKernel):
        last = (*type_sizes(kernel).values(), *last)
    host = Host(names={*sizes.values(), *attributes.values(), *last, "tiling"})
    terms = {each: Term(host, text) for each, text in sizes.items()}
    body = Text()
    values: Sequence[TilingValue]
    known = _scalars(fused, terms, attributes)
    if isinstance(kernel, VectorKernel):
        empty = _empty(kernel, sizes) if takes_empty else ""
        if empty:
            body(f"if ({empty}) {{")
            body(f"*tiling = {kernel.text.struct}();")
            body("return 1;")
            body("}")
        layout = replace(kernel.layout, plan=plan_of_types(kernel, host))
        shares = shares_at(
            layout,
            chip,
            Term(host, "cores"),
            lambda extent: extent_term(extent, terms),
            rounds=Term(host, "rounds") if is_tuned else 1,
            parts=Term(host, "rowParts") if takes_parts else 1,
        )
        blocks = shares.block_dim
        found = shares.values | {f: known[tensor] for tensor, f in layout.field_of.items()}
        values = [
            TilingValue(each.name, each.cpp_type, found.get(each.name, 0)) for each in layout.fields
        ]
    else:
        blocks, values = kernel.launch(
            Term(host, "cores"), lambda extent: extent_term(extent, terms), known
        )
    body.all(host.lines)
    for member in values:
        text = _text(member.value)
        if member.cpp_type != "int64_t" and not isinstance(member.value, int):
            text = f"static_cast<{member.cpp_type}>({text})"
        body(f"tiling->{member.member} = {text};")
    body(f"return static_cast<uint32_t>({_text(blocks)});")
    out = Text()
    parameters = [f"int64_t {each}" for each in sizes.values()]
    parameters += [f"double {each}" for each in attributes.values()]
    parameters += [*(f"int64_t {each}" for each in last), f"{kernel.text.struct}* tiling"]
    given = (*sizes.values(), *attributes.values(), *last)
    unused = [name for name in given if not body.mentions(name)]
    out(f"uint32_t {name}({', '.join(parameters)})")
    out("{")
    for each in unused:
        out(f"(void){each};")
    out.extend(body)
    out("}")
    return out.render()


def _empty(kernel: VectorKernel, sizes: Mapping[str, str]) -> str:
    """Return the C++ of whether a kernel's loops run over nothing; empty where they never do.

    A quotient's divisor counts, too: it divides, so only nothing can be cut by 0.
    """
    named = [e for e in kernel.domain.extents if not isinstance(e, int)]
    parts = [part for extent in named for part in extent.as_numer_denom()]
    factors = [f for part in parts for f in part.as_ordered_factors() if f.free_symbols]
    return " || ".join(f"{extent_cpp(factor, sizes)} == 0" for factor in dict.fromkeys(factors))


def bytes_text(tensor: Tensor, sizes: Mapping[str, str], element: str = "") -> str:
    """Return the C++ of how many bytes a tensor takes, up to a multiple of 512 for its neighbour.

    Args:
        sizes: the C++ name of each named size.
        element: the C++ of an element's bytes, where combinations of data types share the kernel.
    """
    host = Host()
    terms = {name: Term(host, text) for name, text in sizes.items()}
    extents = (extent_term(extent, terms) for extent in tensor.shape)
    total = product([Term(host, element) if element else element_bytes(tensor.dtype), *extents])
    return _text(divide_up(total, 512) * 512)


def extent_cpp(extent: Dimension, sizes: Mapping[str, str]) -> str:
    """Return the C++ of an extent.

    Args:
        sizes: the C++ name of each named size.
    """
    host = Host()
    return _text(extent_term(extent, {name: Term(host, text) for name, text in sizes.items()}))


def _text(value: Any) -> str:
    return value.text if isinstance(value, Term) else str(value)


def _scalars(
    fused: FusedGraph, sizes: Mapping[str, Term], attributes: Mapping[str, str]
) -> dict[str, str]:
    """Return the C++ of each number that the host computes, by its tensor."""
    found: dict[str, str] = {}
    for node in fused.graph.nodes:
        if node.output.name in fused.uniform:
            found[node.output.name] = _scalar(node, found, sizes, attributes)
    return found


def _scalar(
    node: Node,
    found: Mapping[str, str],
    sizes: Mapping[str, Term],
    attributes: Mapping[str, str],
) -> str:
    settings = node.settings
    if node.operator == "constant":
        value = settings["value"]
        return special_number(float(value)) or repr(float(value))
    if node.operator == "extent":
        extent = settings["extent"]
        return f"static_cast<double>({_text(extent_term(extent, sizes))})"
    if node.operator == "attribute":
        return attributes[settings.text("name")]
    if node.operator not in _SCALARS:
        raise GraphError(
            f"{node.operator} of numbers that come with a launch is not written in host code",
            location=node.location,
            help=f"there are {', '.join(_SCALARS)}",
        )
    return _SCALARS[node.operator](*(found[each] for each in node.inputs))
