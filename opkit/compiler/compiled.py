"""A compiled program: callable with NumPy arrays, on the emulated chip."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from opkit.chips import DEFAULT_CHIP, find_chip
from opkit.dtypes import find_dtype
from opkit.errors import UsageError

from .builder import TensorSpec, trace
from .dimensions import bind_shapes, evaluate
from .fusion import Group
from .graph import Attribute, Graph, GraphError, Node
from .movements import MOVEMENTS, run_movement
from .native import NativeKernel, compile_text
from .operators import OPERATORS
from .products import product_source, run_product
from .stages import Stages, VectorKernel, compile_stages, source_of
from .vector import DoesNotFit, launch_for

__all__ = ["Compiled", "compile"]


class Compiled:
    """A program for one chip, for all sizes that its named dimensions stand for.

    Call it with the inputs' arrays in order, attributes by name; it returns one array, or a tuple
    in the order
    of the outputs. Arrays have the inputs' data types; bfloat16 comes and goes as uint16.
    """

    def __init__(self, stages: Stages) -> None:
        self.stages = stages
        self._loaded: dict[str, NativeKernel] = {}

    @property
    def graph(self) -> Graph:
        """The program as it was traced."""
        return self.stages.traced

    @property
    def sources(self) -> Mapping[str, str]:
        """The Ascend C text of each kernel."""
        products = (g for g in self.stages.fused.groups if g.kind == "matmul")
        return {**self.stages.texts, **dict(product_source(self, group) for group in products)}

    def load(self) -> Compiled:
        """Compile every kernel now instead of at its first launch."""
        for group in self.stages.kernels.values():
            self._native(group[0])
        return self

    def __call__(self, *arrays: Any, **attributes: float) -> Any:
        """Return the outputs for these inputs.

        Raises:
            UsageError: an array does not fit its input.
            KernelFault: a kernel faulted.
        """
        graph = self.graph
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
            given[tensor.name] = np.ascontiguousarray(array)
        results = self.run(given, attributes)
        outputs = tuple(results[name] for name, _ in graph.outputs)
        return outputs[0] if len(outputs) == 1 else outputs

    def run(self, given: Mapping[str, Any], attributes: Mapping[str, float]) -> dict[str, Any]:
        """Return the outputs by name, for contiguous arrays by name."""
        graph = self.stages.graph
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
        """Return every tensor that lies in global memory, and the named sizes."""
        graph = self.stages.graph
        sizes = bind_shapes(
            ((t.name, t.shape) for t in graph.inputs), {n: a.shape for n, a in given.items()}
        )
        scalars = self.scalars(sizes, attributes)
        memory: dict[str, Any] = dict(given)
        for group in self.stages.fused.groups:
            if group.kind == "vector":
                self._launch(group, memory, sizes, scalars)
            elif group.kind == "view":
                (node,) = group.nodes
                memory[node.output.name] = memory[node.inputs[0]].reshape(
                    tuple(evaluate(e, sizes) for e in node.output.shape)
                )
            elif group.kind == "matmul":
                run_product(self, group, memory, sizes)
            elif group.kind in MOVEMENTS:
                run_movement(self, group.nodes[0], memory, sizes)
            else:
                raise GraphError(
                    f"{group.kind} has no kernel yet", location=group.nodes[0].location
                )
        return memory, sizes

    def scalars(
        self, sizes: Mapping[str, int], attributes: Mapping[str, float]
    ) -> dict[str, float]:
        """Return the numbers that the host computes for a launch."""
        graph = self.stages.graph
        known = {each.name: each.default for each in graph.attributes}
        for name, value in attributes.items():
            if name not in known:
                raise UsageError(f'{graph.name} has no attribute "{name}"')
            known[name] = value
        found: dict[str, float] = {}
        for node in graph.nodes:
            if node.output.name in self.stages.fused.uniform:
                found[node.output.name] = _number(node, found, known, sizes)
        return found

    def _launch(
        self,
        group: Group,
        memory: dict[str, Any],
        sizes: Mapping[str, int],
        scalars: Mapping[str, float],
    ) -> None:
        candidates = self.stages.kernels[group.name]
        for kernel in candidates:
            try:
                launch = launch_for(kernel.layout, self.stages.chip, sizes, scalars)
            except DoesNotFit:
                if kernel is candidates[-1]:
                    raise
                continue
            break
        arguments: list[object] = []
        for name in kernel.text.arguments:
            arguments.append(self.room(name, memory, sizes))
        self._native(kernel).launch([*arguments, launch.data], launch.block_dim)

    def _native(self, kernel: VectorKernel) -> NativeKernel:
        # The compiler gets the user's lines: faults, findings and profiles name the program's own.
        return self.native(
            kernel.name, lambda: source_of(kernel, with_lines=True, file=f"{kernel.name}.cpp")
        )

    def native(
        self, name: str, source: Callable[[], str], *, mode: str | None = None
    ) -> NativeKernel:
        """Return a kernel by name, compiled from its source at its first use."""
        if name not in self._loaded:
            self._loaded[name] = compile_text(name, source(), self.stages.chip, mode=mode)
        return self._loaded[name]

    def room(self, name: str, memory: dict[str, Any], sizes: Mapping[str, int]) -> Any:
        """Return the array of a tensor, made where there is none yet."""
        if name not in memory:
            tensor = self.stages.graph.tensors[name]
            row = find_dtype(tensor.dtype)
            assert row is not None and row.numpy is not None
            memory[name] = np.empty(tuple(evaluate(e, sizes) for e in tensor.shape), row.numpy)
        return memory[name]


_MOST_KNOWN = 256
_KNOWN: dict[tuple[object, ...], Compiled] = {}
"""Programs of this process: what was traced again alike need not be compiled again."""


def compile(
    program: Graph | Callable[..., object],
    *inputs: TensorSpec,
    chip: str = DEFAULT_CHIP,
    name: str | None = None,
    attributes: Sequence[Attribute] = (),
) -> Compiled:
    """Return a program compiled for a chip.

    Args:
        program: a graph, or a Python function over tensors, which is traced.
        inputs: the function's inputs.
        chip: the chip's name.
        name: the kernel's name; the function's own without one.
        attributes: numbers that come with every call.

    Raises:
        GraphError: the program is wrong, at the user's line.
        UsageError: no such chip.
    """
    graph = (
        program
        if isinstance(program, Graph)
        else trace(program, inputs, name=name, attributes=attributes)
    )
    key = (graph, chip, tuple(node.location for node in graph.nodes))
    if key not in _KNOWN:
        while len(_KNOWN) >= _MOST_KNOWN:
            del _KNOWN[next(iter(_KNOWN))]
        _KNOWN[key] = Compiled(compile_stages(graph, find_chip(chip)))
    return _KNOWN[key]


def _number(
    node: Node, found: Mapping[str, float], known: Mapping[str, Any], sizes: Mapping[str, int]
) -> float:
    settings = node.settings
    if node.operator == "constant":
        return settings["value"]  # type: ignore[return-value]
    if node.operator == "extent":
        return float(evaluate(settings["extent"], sizes))
    if node.operator == "attribute":
        value = known[str(settings["name"])]
        if value is None:
            raise UsageError(f'the attribute "{settings["name"]}" is missing')
        return value  # type: ignore[no-any-return]
    arrays = [np.asarray(found[each]) for each in node.inputs]
    return float(OPERATORS[node.operator].reference(*arrays, **settings).item())
