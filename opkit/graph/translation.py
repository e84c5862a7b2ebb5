"""Nodes of torch.fx to a program of the compiler."""

from __future__ import annotations

import operator
import os
import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

import torch
from torch import fx

from opkit.compiler import Graph, GraphBuilder, GraphError, Location, Value
from opkit.errors import OpkitError
from opkit.graph.aten import (
    INPUT,
    LARGEST,
    LOOKUPS,
    ROWS,
    VIEWS,
    Bound,
    Call,
    Refused,
    bound_of,
    largest_limit,
)

__all__ = [
    "DTYPES",
    "NUMBER",
    "TRIANGLE",
    "Replacement",
    "Translation",
    "Unbounded",
    "does_nothing",
    "is_view",
    "line_of",
    "operator_name",
    "translate",
]

DTYPES: Mapping[torch.dtype, str] = {
    torch.float16: "float16",
    torch.bfloat16: "bfloat16",
    torch.float32: "float32",
    torch.int8: "int8",
    torch.uint8: "uint8",
    torch.int16: "int16",
    torch.int32: "int32",
    torch.bool: "bool",
}
"""What kernels hold."""

NUMBER = "opkit_number"
"""Under which a node's `meta` has the value of a tensor of one element that is always the same."""

TRIANGLE = "opkit_triangle"
"""Under which the `meta` of a node of truths that are always the same has the number that a column
is greater than its row by, at most, where they are true, or where they are false."""

_HELD = {**DTYPES, torch.int64: "int32"}
"""And as what: 64 bits where 32 are enough, which is made sure of."""

_HERE = f"{Path(__file__).parent}{os.sep}"
_FRAME = re.compile(r'File "([^"]+)", line (\d+)')


@dataclass
class Translation:
    """A program, and which of torch's nodes its inputs and outputs are."""

    graph: Graph
    inputs: list[fx.Node]
    outputs: list[fx.Node]
    constants: dict[str, Any] = field(default_factory=dict)
    """Values of the inputs that the program brings along."""
    narrowed: dict[str, int] = field(default_factory=dict)
    """Inputs that hold places of 64 bits, given to kernels in 32; and how many places there are,
    below 0 where they may count from the end."""
    limited: frozenset[str] = frozenset()
    """Inputs of whole numbers that results of 64 bits are computed from."""
    limit: int = LARGEST
    """How far from 0 their elements may be: with more, 32 bits would not hold the results."""
    nodes: Sequence[fx.Node] = ()
    numbers: Mapping[fx.Node, float | int | bool] = field(default_factory=dict)
    """Nodes outside that are known numbers."""
    values: dict[str, str] = field(default_factory=dict)
    """From the nodes' names to the program's tensors."""
    triangles: Mapping[str, int] = field(default_factory=dict)
    """Inputs whose truths are known, as `prepare` takes them."""


def operator_name(node: fx.Node) -> str:
    """Return what a node calls, as torch prints it."""
    return str(node.target) if node.op == "call_function" else f"{node.op} {node.target}"


def is_view(node: fx.Node) -> bool:
    """Return whether torch does a node without touching an element."""
    return operator_name(node) in VIEWS or node.target is operator.getitem


def does_nothing(node: fx.Node) -> bool:
    """Return whether a node only carries another's results on."""
    return node.target is operator.getitem


def line_of(node: fx.Node) -> Location | None:
    """Return the line of the user's program that a node comes from: the innermost outside of
    torch."""
    frames = _FRAME.findall(node.meta.get("stack_trace") or "")
    own = [f for f in frames if "/torch/" not in f[0] and not f[0].startswith(_HERE)]
    for file, number in reversed(own or frames):
        return Location(file, int(number))
    return None


class Unbounded(GraphError):
    """A node's whole numbers of 64 bits may be more than 32 hold, with those that it reads here."""

    def __init__(self, message: str, node: str, location: Location | None) -> None:
        super().__init__(message, location=location)
        self.node = node


Replacement: TypeAlias = Callable[..., Value]
"""What stands for a node's row: takes the call, then the operator's arguments."""


def translate(
    nodes: Sequence[fx.Node],
    outputs: Iterable[fx.Node],
    name: str,
    replaced: Mapping[fx.Node, Replacement] | None = None,
    wide: Collection[fx.Node] = (),
    *,
    takes_int64: bool = False,
) -> Translation:
    """Return the program of some nodes, in their order.

    Args:
        outputs: the nodes whose results others need; also inputs of the program.
        replaced: nodes that are computed otherwise than their rows say.
        wide: those of them whose results stay in the data type that they are computed in, and
            which read what such others give as it is.
        takes_int64: inputs of 64 bits come as they are, and a kernel makes int32 of them.
    Raises:
        GraphError: a node cannot be translated; at the user's line.
    """
    work = _Translator(name, replaced or {}, wide, takes_int64)
    for node in nodes:
        work.add(node)
    wanted = list(outputs)
    for index, node in enumerate(wanted):
        value = work.values[node] if node in work.values else work.given(node)
        if not isinstance(value, Value):
            raise GraphError(f"{node.name} is no tensor", location=line_of(node))
        value = _narrowed(node, value)
        work.builder.output(f"y{index}", value)
    graph = work.builder.graph()
    named = {
        node.name: value.tensor.name
        for node, value in work.values.items()
        if isinstance(value, Value)
    }
    return Translation(
        graph,
        work.inputs,
        wanted,
        work.constants,
        work.narrowed,
        values=named,
        limited=frozenset(work.limited),
        limit=largest_limit(work.wide_bounds),
        nodes=nodes,
        numbers=work.numbers,
        triangles=work.triangles,
    )


class _Translator:
    """One program under construction."""

    def __init__(
        self,
        name: str,
        replaced: Mapping[fx.Node, Replacement],
        wide: Collection[fx.Node],
        takes_int64: bool,
    ) -> None:
        self.wide = wide
        self.takes_int64 = takes_int64
        self.numbers: dict[fx.Node, float | int | bool] = {}
        self.triangles: dict[str, int] = {}
        self.input_names: dict[fx.Node, str] = {}
        self.builder = GraphBuilder(name)
        self.replaced = replaced
        self.values: dict[fx.Node, Any] = {}
        self.inputs: list[fx.Node] = []
        self.constants: dict[str, Any] = {}
        self.narrowed: dict[str, int] = {}
        self.limited: set[str] = set()
        self.bounds: dict[fx.Node, Bound] = {}
        self.wide_bounds: list[Bound] = []
        """Bounds of the nodes that compute with 64 bits."""

    def add(self, node: fx.Node) -> None:
        """Apply one node.

        Raises:
            GraphError: it cannot be translated.
        """
        location = line_of(node)
        if node.target is operator.getitem:
            source, index = node.args
            assert isinstance(source, fx.Node) and isinstance(index, int)
            self.values[node] = self.values[source][index]
            if source in self.bounds:
                self.bounds[node] = self.bounds[source]
            return
        name = operator_name(node)
        row = self.replaced.get(node) or ROWS.get(name)
        if row is None:
            raise GraphError(f"{node.name}: {name} has no row in the table", location=location)
        with self.builder.at(location):
            try:
                results = _results(node)
                self._note_places(node, name)
                args = self._arguments(node, node.args)
                kwargs = self._arguments(node, node.kwargs)
                kwargs = {key: each for key, each in kwargs.items() if key not in _IGNORED}
                shapes = tuple(() if each is None else _shape(each) for each in results)
                dtypes = tuple("" if each is None else _dtype(each) for each in results)
                self._bound(node, name, [each for each in results if each is not None])
                is_wide = node in self.wide
                call = Call(self.builder, shapes, dtypes, self.constants)
                value = row(call, *args, **kwargs)
                if isinstance(value, tuple):
                    rows = zip(value, shapes, dtypes, strict=True)
                    self.values[node] = tuple(self._fitted(*each, is_wide) for each in rows)
                else:
                    self.values[node] = self._fitted(value, shapes[0], dtypes[0], is_wide)
            except Unbounded:
                raise
            except (Refused, GraphError) as err:
                raise GraphError(
                    f"{node.name} ({name}): {err.message}", location=location, help=err.help
                ) from err
            except OpkitError:
                raise
            except (TypeError, AssertionError, KeyError, AttributeError, ValueError) as err:
                raise GraphError(
                    f"{node.name}: {name} is called in a way that has no row: {err}",
                    location=location,
                ) from err

    def _fitted(
        self, value: Value | None, shape: tuple[int, ...], dtype: str, is_wide: bool
    ) -> Value | None:
        if value is None:
            return None
        if dtype not in DTYPES.values():
            raise Refused(f"kernels hold no {dtype}")
        if value.dtype != dtype and not is_wide:
            value = value.astype(dtype)
        if value.shape != shape:
            value = value.apply("broadcast_to", shape=shape)
        return value

    def _bound(
        self,
        node: fx.Node,
        name: str,
        results: Sequence[torch.Tensor],
    ) -> None:
        """Keep how large the whole numbers are that a node gives.

        Raises:
            Refused: it reads or gives some of 64 bits, and there is no rule for that.
        """
        looked_up = [each for each, _ in _places(node, name)]
        inputs = [each for each in node.all_input_nodes if each not in looked_up]
        is_wide = any(_is_wide(each) for each in (*results, *map(_example, inputs)))
        if not is_wide and all(each.dtype not in _WHOLE for each in results):
            return
        try:
            found = bound_of(
                name,
                fx.map_arg(node.args, self._bound_of),
                fx.map_arg(node.kwargs, self._bound_of),
                [_example(each) for each in node.all_input_nodes],
                results,
            )
        except Refused:
            if is_wide:
                raise
            found = None
        if is_wide and found is not None:
            self.wide_bounds.append(found)
            try:
                largest_limit(self.wide_bounds[-1:])
            except Refused as err:
                raise Unbounded(f"{node.name}: {err.message}", node.name, line_of(node)) from err
        held = max((_WHOLE.get(each.dtype, 0) for each in results), default=0)
        if found is None or found.limit() < 0 or held == 1:
            found = Bound(0, held)
        self.bounds[node] = found

    def _bound_of(self, node: fx.Node) -> Any:
        example = _example(node)
        known = _WHOLE.get(example.dtype) if isinstance(example, torch.Tensor) else None
        return None if known is None else self.bounds.get(node, Bound(0, known))

    def given(self, node: fx.Node) -> Value:
        """Return an input that is an output too."""
        return self._input(node)  # type: ignore[no-any-return]

    def _note_places(self, node: fx.Node, name: str) -> None:
        """Take the tensors in that hold places, which the run will check."""
        for source, count in _places(node, name):
            if source not in self.values and _is_wide(_example(source)):
                self._input(source)
            value = self.values.get(source)
            if not isinstance(value, Value) or source not in self.inputs:
                continue
            if not _is_wide(_example(source)):
                continue
            given = self.input_names[source]
            before = self.narrowed.get(given, count)
            least = min(abs(before), abs(count))
            self.narrowed[given] = -least if max(before, count) < 0 else least
            self.limited.discard(given)
            self.bounds[source] = Bound(0, least)

    def _arguments(self, node: fx.Node, arguments: Any) -> Any:
        def given(argument: fx.Node) -> Any:
            if argument in self.values:
                value = self.values[argument]
                return value if node in self.wide else _narrowed(argument, value)
            return self._input(argument)

        return fx.map_arg(arguments, given)

    def _input(self, node: fx.Node) -> Any:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            raise Refused(f"{node.name} is known only when the program runs")
        dtype = _HELD.get(value.dtype)
        if dtype is None:
            raise Refused(f"it reads {str(value.dtype).removeprefix('torch.')}")
        number = node.meta.get(NUMBER)
        if number is not None and -(1 << 31) <= number < 1 << 31:
            known = Call(self.builder, (), (), self.constants)
            self.numbers[node] = number
            self.bounds[node] = Bound(0, abs(int(number)))
            self.values[node] = known.full(_shape(value), number, dtype)
            return self.values[node]
        name = self.input_names[node] = f"x{len(self.inputs)}"
        is_taken = self.takes_int64 and value.dtype == torch.int64
        found = self.builder.input(name, _shape(value), "int64" if is_taken else dtype)
        if TRIANGLE in node.meta:
            self.triangles[name] = node.meta[TRIANGLE]
        if dtype == "int32":
            self.limited.add(name)
            self.bounds[node] = INPUT
        if is_taken:
            found = found.astype(dtype)
        self.inputs.append(node)
        self.values[node] = found
        return found


_WHOLE = {
    torch.bool: 1,
    torch.uint8: 255,
    torch.int8: 128,
    torch.int16: 1 << 15,
    torch.int32: 1 << 31,
    torch.int64: 1 << 63,
}
"""How far from 0 elements are."""


def _is_wide(value: Any) -> bool:
    return isinstance(value, torch.Tensor) and value.dtype == torch.int64


def _example(node: fx.Node) -> Any:
    return node.meta.get("val")


@dataclass(frozen=True)
class _Shown:
    """A node as a rule of places sees it."""

    node: fx.Node
    shape: Any


def _places(node: fx.Node, name: str) -> list[tuple[fx.Node, int]]:
    """Return the nodes that hold places where one looks up, and how many places there are."""
    lookup = LOOKUPS.get(name)
    if lookup is None:
        return []

    def shown(each: fx.Node) -> Any:
        return _Shown(each, getattr(_example(each), "shape", ()))

    args: Any = fx.map_arg(node.args, shown)
    try:
        found = lookup(*args)
    except (IndexError, TypeError, ValueError) as err:
        raise Refused(f"it is called in a way that has no row: {err}") from err
    return [(each.node, count) for each, count in found if isinstance(each, _Shown)]


def _narrowed(node: fx.Node, value: Any) -> Any:
    """Return a node's value in the data type that torch has it in."""
    example = node.meta.get("val")
    if not isinstance(value, Value) or not isinstance(example, torch.Tensor):
        return value
    dtype = DTYPES.get(example.dtype)
    if dtype is None or "float" not in dtype or value.dtype == dtype:
        return value
    return value.astype(dtype)


_IGNORED = ("layout", "device", "pin_memory", "memory_format", "dtype", "non_blocking")
"""Settings that the result's own description says."""


def _results(node: fx.Node) -> list[torch.Tensor | None]:
    """Return what a node gives: None for one of several that nobody asked for."""
    value: Any = node.meta.get("val")
    is_several = isinstance(value, tuple | list)
    given = list(value) if is_several else [value]
    found = [e for e in given if isinstance(e, torch.Tensor) or (e is None and is_several)]
    if len(found) != len(given):
        raise Refused("it gives a number that is known only when the program runs")
    return found


def _shape(value: torch.Tensor) -> tuple[int, ...]:
    if value.is_sparse or value.layout != torch.strided:
        raise Refused(f"it holds a tensor of the layout {value.layout}")
    shape = []
    for extent in value.shape:
        if not isinstance(extent, int):
            raise Refused(f"the size {extent} is known only when the program runs")
        shape.append(extent)
    return tuple(shape)


def _dtype(value: torch.Tensor) -> str:
    return _HELD.get(value.dtype, str(value.dtype).removeprefix("torch."))
