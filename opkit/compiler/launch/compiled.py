"""A compiled program: callable with NumPy arrays, on the emulated chip."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

from opkit.chips import DEFAULT_CHIP, find_chip
from opkit.errors import UsageError

from ..choices import Choices, ChoicesRow, read_choices
from ..codegen import (
    NativeKernel,
    VectorKernel,
    attention_arrays,
    attention_data,
    fitting_launch,
    run_plan,
    run_steps,
    source_of,
    workspaces,
)
from ..ir import Attribute, Graph, GraphError, bind_shapes
from ..passes import FusedGraph, Group
from ..stages import Stages, attention_source, compile_stages
from ..tracing import TensorSpec, trace
from .kernel_program import KernelProgram
from .library import LIBRARY, run_library
from .movements import MOVEMENTS, run_movement
from .product_runs import run_product

if TYPE_CHECKING:
    from ..codegen import HostProgram, TritonProgram

__all__ = ["TARGETS", "Compiled", "compile"]


class Compiled(KernelProgram):
    """A program for one chip, for all sizes that its named dimensions stand for.

    Call it with the inputs' arrays in order, attributes by name; it returns one array, or a tuple
    in the order of the outputs. Arrays have the inputs' data types; bfloat16 comes and goes as
    uint16.
    """

    def __init__(self, stages: Stages, rows: Sequence[ChoicesRow] = ()) -> None:
        """Take the stages; `rows` are what was tuned for some sizes."""
        super().__init__(stages)
        self._rows = tuple(rows)

    @property
    def graph(self) -> Graph:
        """The program as it was traced."""
        return self.stages.traced

    @property
    def sources(self) -> Mapping[str, str]:
        """The Ascend C text of each kernel."""
        return self.stages.texts

    def variant(self, sizes: Mapping[str, int]) -> Compiled:
        """Return the program as it was tuned for named sizes; itself where it was not."""
        graph, chip = self.graph, self.stages.chip.name
        dtypes = [tensor.dtype for tensor in graph.inputs]
        for row in self._rows:
            if row.fits(graph.name, chip, dtypes, sizes) and row.choices != self.stages.choices:
                return compile(graph, chip=chip, choices=row.choices)
        return self

    def load(self) -> Compiled:
        """Compile every kernel now instead of at its first launch."""
        for group in self.stages.kernels.values():
            self._native(group[0])
        return self

    @property
    def lowered(self) -> FusedGraph:
        """The program in kernels."""
        return self.stages.fused

    def run_all(
        self, given: Mapping[str, Any], attributes: Mapping[str, float]
    ) -> tuple[dict[str, Any], dict[str, int]]:
        """Return every tensor that lies in global memory, and the named sizes."""
        shapes = {name: array.shape for name, array in given.items()}
        sizes = bind_shapes(((t.name, t.shape) for t in self.lowered.graph.inputs), shapes)
        tuned = self.variant(sizes)
        if tuned is not self:
            return tuned.run_all(given, attributes)
        return super().run_all(given, attributes)

    def run_group(
        self,
        group: Group,
        memory: dict[str, Any],
        sizes: Mapping[str, int],
        scalars: Mapping[str, float],
    ) -> None:
        """Run one kernel; its results appear in memory."""
        if group.kind == "vector":
            self._launch(group, memory, sizes, scalars)
        elif group.kind == "view":
            self.run_view(group, memory, sizes)
        elif group.kind == "matmul":
            run_product(self, group, memory, sizes, scalars)
        elif group.kind == "attention":
            self._attend(group, memory, sizes)
        elif group.kind in MOVEMENTS:
            run_movement(self, group.nodes[0], memory, sizes)
        elif group.kind in LIBRARY:
            run_library(self, group, memory, sizes, scalars)
        else:
            raise GraphError(f"{group.kind} has no kernel yet", location=group.nodes[0].location)

    def stage_results(
        self,
        group: Group,
        arrays: Mapping[str, Any],
        scalars: Mapping[str, float],
        sizes: Mapping[str, int],
    ) -> Iterator[tuple[str, Mapping[str, Any]]]:
        """Yield what the steps of a kernel compute, as they are and in the slots of its plan."""
        plans = {kernel.name: kernel.plan for kernel in self.stages.vector.get(group.name, ())}
        product = self.stages.products.get(group.name)
        if product is not None and product.epilogue is not None:
            plans[group.name] = product.epilogue.plan
        for name, plan in plans.items():
            yield f"steps of {name}", run_steps(plan.program, arrays, scalars, sizes)
            yield f"plan of {name}", run_plan(plan, arrays, scalars, sizes)

    def _launch(
        self,
        group: Group,
        memory: dict[str, Any],
        sizes: Mapping[str, int],
        scalars: Mapping[str, float],
    ) -> None:
        kernel, launch = fitting_launch(
            self.stages.vector[group.name], self.stages.chip, sizes, scalars, self.stages.choices
        )
        arguments = [self.room(name, memory, sizes) for name in kernel.text.arguments]
        self._native(kernel).launch([*arguments, launch.data], launch.block_dim)

    def _attend(self, group: Group, memory: dict[str, Any], sizes: Mapping[str, int]) -> None:
        (node,) = group.nodes
        turned = str(node.settings["turned"])
        arrays = attention_arrays([memory[name] for name in node.inputs], turned)
        result = self.room(node.output.name, memory, sizes)
        if result.size == 0:
            return
        kernel = self.stages.attentions[group.name]
        cores, data = attention_data(node, arrays, self.stages.chip)
        slots = workspaces(cores, result.shape[-1], kernel.dtype)
        native = self.native(group.name, lambda: attention_source(kernel, with_lines=True))
        native.launch([*arrays, result, *slots, data], cores)

    def _native(self, kernel: VectorKernel) -> NativeKernel:
        # The compiler gets the user's lines: faults, findings and profiles name the program's own.
        return self.native(
            kernel.name, lambda: source_of(kernel, with_lines=True, file=f"{kernel.name}.cpp")
        )


_MOST_KNOWN = 256
_KNOWN: dict[tuple[object, ...], Compiled] = {}
"""Programs of this process: what was traced again alike need not be compiled again."""


TARGETS = ("ascendc", "cpp", "triton")


@overload
def compile(
    program: Graph | Callable[..., object],
    *inputs: TensorSpec | Sequence[TensorSpec],
    chip: str = ...,
    target: Literal["ascendc"] = ...,
    name: str | None = ...,
    attributes: Sequence[Attribute] = ...,
    choices: Choices | None = ...,
    tuning: Path | None = ...,
) -> Compiled: ...
@overload
def compile(
    program: Graph | Callable[..., object],
    *inputs: TensorSpec | Sequence[TensorSpec],
    chip: str = ...,
    target: Literal["cpp"],
    name: str | None = ...,
    attributes: Sequence[Attribute] = ...,
) -> HostProgram: ...
@overload
def compile(
    program: Graph | Callable[..., object],
    *inputs: TensorSpec | Sequence[TensorSpec],
    chip: str = ...,
    target: Literal["triton"],
    name: str | None = ...,
    attributes: Sequence[Attribute] = ...,
) -> TritonProgram: ...
def compile(
    program: Graph | Callable[..., object],
    *inputs: TensorSpec | Sequence[TensorSpec],
    chip: str = DEFAULT_CHIP,
    target: str = "ascendc",
    name: str | None = None,
    attributes: Sequence[Attribute] = (),
    choices: Choices | None = None,
    tuning: Path | None = None,
) -> Compiled | HostProgram | TritonProgram:
    """Return a program compiled for a chip, for the machine at hand, or for Triton.

    Args:
        program: a graph, or a Python function over tensors, which is traced.
        inputs: the function's inputs; a list of them is one argument.
        chip: the chip's name.
        target: `ascendc`, for the chip; `cpp`, plain C++ with threads for this machine; `triton`,
            a Python file of Triton kernels.
        name: the kernel's name; the function's own without one.
        attributes: numbers that come with every call.
        choices: in place of the compiler's own, for all sizes.
        tuning: a file of `opkit tune`: its choices for the sizes of a call.

    Raises:
        GraphError: the program is wrong, at the user's line.
        UsageError: no such chip, no such target, or the tuning file is damaged.
    """
    if target not in TARGETS:
        raise UsageError(f'there is no target "{target}"', help=f"there is {', '.join(TARGETS)}")
    graph = (
        program
        if isinstance(program, Graph)
        else trace(program, inputs, name=name, attributes=attributes)
    )
    if target == "cpp":
        from ..codegen import compile_host

        return compile_host(graph)
    if target == "triton":
        from ..codegen import compile_triton

        return compile_triton(graph)
    rows = read_choices(tuning) if tuning is not None else ()
    key = (graph, chip, tuple(node.location for node in graph.nodes), choices, str(rows))
    if key not in _KNOWN:
        while len(_KNOWN) >= _MOST_KNOWN:
            del _KNOWN[next(iter(_KNOWN))]
        _KNOWN[key] = Compiled(compile_stages(graph, find_chip(chip), choices), rows)
    return _KNOWN[key]
