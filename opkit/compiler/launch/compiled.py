"""A compiled program: callable with NumPy arrays, on the emulated chip."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from opkit.chips import DEFAULT_CHIP, find_chip
from opkit.errors import UsageError

from ..choices import Choices, ChoicesRow, read_choices
from ..codegen import (
    run_plan,
    run_steps,
)
from ..ir import Attribute, Graph, bind_shapes
from ..passes import FusedGraph, Group
from ..stages import Stages, compile_stages
from ..tracing import TensorSpec, trace
from .kernel_program import KernelProgram
from .launch import Argument, Draw, Launch, Room, TensorArgument
from .launches import launches_of, vector_code

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
            self.native(vector_code(group[0]))
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
        if group.kind == "view":
            self.run_view(group, memory, sizes)
            return
        launches = launches_of(self.stages, group, sizes, scalars)
        for part in (*group.before, group):
            if part.kind == "view":
                # Of what the same kernel will have computed.
                self.run_view(part, memory, sizes)
                continue
            for name in self.stages.fused.outputs_of(part):
                self.room(name, memory, sizes)
        for launch in launches:
            arguments = [_argument(each, memory) for each in launch.arguments]
            self.native(launch.code).launch(arguments, launch.block_dim)

    def launches(self, sizes: Mapping[str, int]) -> Iterator[Launch]:
        """Yield what a call for named sizes launches, in order; attributes have their defaults.

        Raises:
            GraphError: these sizes do not do; at the user's line.
        """
        self.check_sizes(sizes)
        scalars = self.scalars(sizes, {})
        for group in self.lowered.groups:
            if not self.is_empty(group, sizes):
                yield from launches_of(self.stages, group, sizes, scalars)

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


def _argument(argument: Argument, memory: Mapping[str, Any]) -> Any:
    """Return an argument of a launch as the device's runtime takes it."""
    if isinstance(argument, TensorArgument):
        array = memory[argument.name]
        return array if argument.spread is None else argument.spread.of(array)
    if isinstance(argument, Room):
        return np.empty(argument.elements, argument.dtype)
    return argument.packed() if isinstance(argument, Draw) else argument


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
