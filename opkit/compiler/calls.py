"""Calling a compiled program with arrays: what all targets share."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import numpy as np

from opkit.dtypes import find_dtype
from opkit.errors import UsageError

from .ir import Graph, GraphError, Node, bind_shapes, evaluate
from .ops import OPERATORS
from .passes import FusedGraph, Group
from .tracing import SizeLimit, size_limits

__all__ = ["FileProgram", "ProgramCalls"]


_CANNOT_BE_EMPTY = ("vector", "matmul", "attention", "argmax", "argmin")
"""Kinds of kernels that are not launched where they would write nothing; others see to it
themselves."""


class ProgramCalls(ABC):
    """A compiled program, callable with arrays."""

    @property
    @abstractmethod
    def graph(self) -> Graph:
        """The program as it was traced."""

    @property
    @abstractmethod
    def lowered(self) -> FusedGraph:
        """The program in kernels."""

    @abstractmethod
    def run_group(
        self,
        group: Group,
        memory: dict[str, Any],
        sizes: Mapping[str, int],
        scalars: Mapping[str, float],
    ) -> None:
        """Run one kernel; its results appear in memory."""

    def stage_results(
        self,
        group: Group,
        arrays: Mapping[str, Any],
        scalars: Mapping[str, float],
        sizes: Mapping[str, int],
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield what each stage between the graph and a kernel's text computes, by NumPy: the
        stage's name, and its tensors. A target without such stages yields none."""
        yield from ()

    def __call__(self, *arrays: Any, **attributes: float) -> Any:
        """Return the outputs for these inputs.

        A list of arrays stands for one after another, as programs over lists of tensors take them.

        Raises:
            UsageError: an array does not fit its input.
            KernelFault: a kernel faulted.
        """
        graph = self.graph
        arrays = tuple(_flat(arrays))
        if len(arrays) != len(graph.inputs):
            raise UsageError(f"{graph.name} takes {len(graph.inputs)} arrays, not {len(arrays)}")
        given: dict[str, Any] = {}
        for tensor, array in zip(graph.inputs, arrays, strict=True):
            row = find_dtype(tensor.dtype)
            assert row is not None
            array = np.asarray(array)
            if str(array.dtype) != row.numpy:
                raise UsageError(
                    f'"{tensor.name}" has elements of {array.dtype}, expected {row.numpy}',
                    help="convert it with astype()",
                )
            # Not by ascontiguousarray, which gives a single number an axis.
            given[tensor.name] = np.asarray(array, order="C")
        results = self.run(given, attributes)
        outputs = tuple(results[name] for name, _ in graph.outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def run(self, given: Mapping[str, Any], attributes: Mapping[str, float]) -> dict[str, Any]:
        """Return the outputs by name, for contiguous arrays by name."""
        graph = self.lowered.graph
        memory, sizes = self.run_all(given, attributes)
        scalars = self.scalars(sizes, attributes)
        found = {}
        for name, tensor in graph.outputs:
            if tensor in scalars:
                dtype = find_dtype(graph.tensors[tensor].dtype)
                assert dtype is not None and dtype.numpy is not None
                found[name] = np.asarray(scalars[tensor], dtype.numpy)
            else:
                found[name] = memory[tensor]
        return found

    def run_all(
        self, given: Mapping[str, Any], attributes: Mapping[str, float]
    ) -> tuple[dict[str, Any], dict[str, int]]:
        """Return every tensor that lies in global memory, and the named sizes.

        Raises:
            GraphError: an axis is too short for what the program takes of it; at its line.
        """
        graph = self.lowered.graph
        sizes = bind_shapes(
            ((t.name, t.shape) for t in graph.inputs), {n: a.shape for n, a in given.items()}
        )
        self.check_sizes(sizes)
        scalars = self.scalars(sizes, attributes)
        memory: dict[str, Any] = dict(given)
        for group in self.lowered.groups:
            if group.kind == "view":
                self.run_view(group, memory, sizes)
            elif self.is_empty(group, sizes):
                for node in group.nodes:
                    self.room(node.output.name, memory, sizes)
            else:
                self.run_group(group, memory, sizes, scalars)
        return memory, sizes

    def check_sizes(self, sizes: Mapping[str, int]) -> None:
        """Refuse sizes that the program cannot be called with.

        Raises:
            GraphError: an axis is too short for what the program takes of it; at its line.
        """
        for limit in self.limits:
            rest = evaluate(limit.rest, sizes)
            if rest < 0 and limit.total != 0:
                raise GraphError(
                    f"{limit.total} is {evaluate(limit.total, sizes)}, expected {limit.wanted}",
                    location=limit.location,
                    help=f"{self.lowered.graph.name} cuts it into equal parts",
                )
            if rest < 0:
                size, least = (limit.size, limit.least) if limit.is_exact else (limit.rest, 0)
                raise GraphError(
                    f"{size} is {sizes.get(str(size), rest)}, expected {least} or more",
                    location=limit.location,
                    help=f"{self.lowered.graph.name} takes more of an axis than there is",
                )

    @functools.cached_property
    def limits(self) -> tuple[SizeLimit, ...]:
        """What the program asks of its named sizes; how long a line a target sorts it says
        itself."""
        return size_limits(self.lowered.graph, of_sorting=False)

    def is_empty(self, group: Group, sizes: Mapping[str, int]) -> bool:
        """Return whether a kernel has nothing to write.

        Raises:
            GraphError: it has, of what has no elements.
        """
        if group.kind not in _CANNOT_BE_EMPTY or all(sizes.values()):
            return False
        shapes = {
            node.output.name: tuple(evaluate(extent, sizes) for extent in node.output.shape)
            for node in group.nodes
        }
        if all(0 in shape for shape in shapes.values()):
            return True
        graph = self.lowered.graph
        for node in group.nodes:
            for tensor in graph.inputs_of(node):
                shape = tuple(evaluate(extent, sizes) for extent in tensor.shape)
                if 0 in shape and 0 not in shapes[node.output.name]:
                    raise GraphError(
                        f"{node.operator} of shape {list(shape)} is made of no elements, and no"
                        " kernel computes that",
                        location=node.location,
                        help="the sizes are "
                        + ", ".join(f"{name} = {size}" for name, size in sizes.items()),
                    )
        return False

    def run_view(self, group: Group, memory: dict[str, Any], sizes: Mapping[str, int]) -> None:
        """Give a tensor in memory another shape as well."""
        (node,) = group.nodes
        memory[node.output.name] = memory[node.inputs[0]].reshape(
            tuple(evaluate(e, sizes) for e in node.output.shape)
        )

    def scalars(
        self, sizes: Mapping[str, int], attributes: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the numbers that the host computes for a launch."""
        graph = self.lowered.graph
        known = {each.name: each.default for each in graph.attributes}
        for name, value in attributes.items():
            if name not in known:
                raise UsageError(f'{graph.name} has no attribute "{name}"')
            known[name] = value
        found: dict[str, float] = {}
        for node in graph.nodes:
            if node.output.name in self.lowered.uniform:
                found[node.output.name] = _number(node, found, known, sizes)
        return found

    def room(self, name: str, memory: dict[str, Any], sizes: Mapping[str, int]) -> Any:
        """Return the array of a tensor, made where there is none yet."""
        if name not in memory:
            tensor = self.lowered.graph.tensors[name]
            row = find_dtype(tensor.dtype)
            assert row is not None and row.numpy is not None
            memory[name] = np.empty(tuple(evaluate(e, sizes) for e in tensor.shape), row.numpy)
        return memory[name]


class FileProgram(ProgramCalls):
    """A compiled program whose kernels stand in one file."""

    def __init__(self, traced: Graph, fused: FusedGraph) -> None:
        self.traced = traced
        self.fused = fused

    @property
    def graph(self) -> Graph:
        """The program as it was traced."""
        return self.traced

    @property
    def lowered(self) -> FusedGraph:
        """The program in kernels."""
        return self.fused

    @property
    @abstractmethod
    def source(self) -> str:
        """The whole file."""

    @property
    def sources(self) -> Mapping[str, str]:
        """The file by the program's name."""
        return {self.traced.name: self.source}


def _flat(arrays: Iterable[Any]) -> Iterator[Any]:
    for each in arrays:
        is_list = isinstance(each, list | tuple) and all(isinstance(a, np.ndarray) for a in each)
        yield from each if is_list else (each,)


def _number(
    node: Node, found: Mapping[str, float], known: Mapping[str, Any], sizes: Mapping[str, int]
) -> float:
    settings = node.settings
    if node.operator == "constant":
        number: float = settings["value"]
        return number
    if node.operator == "extent":
        return float(evaluate(settings["extent"], sizes))
    if node.operator == "attribute":
        value = known[settings.text("name")]
        if value is None:
            raise UsageError(f'the attribute "{settings["name"]}" is missing')
        return value  # type: ignore[no-any-return]
    arrays = [np.asarray(found[each]) for each in node.inputs]
    return float(OPERATORS[node.operator].reference(*arrays, **settings).item())
