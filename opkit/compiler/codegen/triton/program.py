"""A program as one Python file: its kernels, a function that launches each, and the whole."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

from ...calls import FileProgram
from ...ir import Dimension, Graph, GraphError, evaluate
from ...passes import FusedGraph, Group, Lowering, lower
from .attention import write_attention
from .expressions import HELPERS, dtype_text, python_number, variable_of
from .functions import TritonFunction, indented
from .loops import write_loops
from .movements import write_movement
from .process import TritonProcess
from .products import write_product

__all__ = ["TritonProgram", "compile_triton"]

_HEAD = '''"""{name}: written by opkit compile --target triton.

Call {name}() with tensors of torch on the device that Triton compiles for; without one, start
Python with TRITON_INTERPRET=1. Whatever only moves elements is torch's.
"""

import math
import os

import torch
import triton
import triton.language as tl

INTERPRETED = tl.constexpr(os.environ.get("TRITON_INTERPRET") == "1")
DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


def expect(name, tensor, shape, dtype):
    if tuple(tensor.shape) != shape or tensor.dtype != dtype:
        found = f"{{tensor.dtype}}{{list(tensor.shape)}}"
        raise ValueError(f"{{name}} is {{found}}, expected {{dtype}}{{list(shape)}}")
    return tensor.contiguous()
'''

_NUMBERS = {
    **{"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "div": "{} / {}", "neg": "-{}"},
    **{"sqrt": "math.sqrt({})", "exp": "math.exp({})", "log": "math.log({})", "abs": "abs({})"},
    **{
        "maximum": "max({}, {})",
        "minimum": "min({}, {})",
        "cast": "{}",
        "where": "{1} if {0} else {2}",
    },
    **{"less": "{} < {}", "greater": "{} > {}", "floor": "math.floor({})", "ceil": "math.ceil({})"},
}
"""What the file's own function makes of numbers that come with a call."""


def compile_triton(graph: Graph) -> TritonProgram:
    """Return a program as Triton kernels.

    Raises:
        GraphError: an operator has no Triton; at the user's line.
    """
    return TritonProgram(graph, lower(graph, Lowering("triton")))


class TritonProgram(FileProgram):
    """A program as Triton kernels; called as `Compiled` is, on the GPU that torch has or by
    Triton's interpreter, in a process of its own."""

    def __init__(self, traced: Graph, fused: FusedGraph) -> None:
        super().__init__(traced, fused)
        self.functions: dict[str, TritonFunction] = {
            group.name: _function(fused, group) for group in fused.groups
        }

    @cached_property
    def source(self) -> str:
        """The whole Python file.

        Raises:
            GraphError: a size or a number of the program has no Python.
        """
        functions = self.functions.values()
        helpers = sorted({name for each in functions for name in each.helpers})
        parts = [
            _HEAD.format(name=self._name),
            *(HELPERS[name].strip("\n") for name in helpers),
            *(each.text for each in functions),
            self._whole(),
        ]
        return "\n\n\n".join(part.strip("\n") for part in parts) + "\n"

    def run_group(
        self,
        group: Group,
        memory: dict[str, Any],
        sizes: Mapping[str, int],
        scalars: Mapping[str, float],
    ) -> None:
        """Run one function of the file; its results appear in memory.

        Raises:
            SetupError: triton or torch lacks.
        """
        function = self.functions[group.name]
        tensors = self.fused.graph.tensors
        results = TritonProcess.shared().call(
            self.source,
            function.name,
            [(memory[name], tensors[name].dtype) for name in function.inputs],
            [
                *(evaluate(size, sizes) for size in function.sizes),
                *(scalars[name] for name in function.scalars),
            ],
        )
        memory.update(zip(function.outputs, results, strict=True))

    # The function of the whole program

    @property
    def _name(self) -> str:
        """What the whole program's function is called."""
        return variable_of(self.traced.name)

    def _whole(self) -> str:
        graph = self.fused.graph
        variables: dict[str, str] = {}
        taken = {self._name, *(each.name for each in self.functions.values())}
        for name in (*(t.name for t in graph.inputs), *(n.output.name for n in graph.nodes)):
            variable = variable_of(name)
            while variable in taken:
                variable += "_given"
            taken.add(variable)
            variables[name] = variable
        attributes = [f"{each.name}={each.default!r}" for each in graph.attributes]
        inputs = [variables[tensor.name] for tensor in graph.inputs]
        parameters = [*inputs, *(["*", *attributes] if attributes else [])]
        lines = []
        for name, size in self._named_sizes().items():
            lines.append(f"{_size_variable(name)} = {variables[size[0]]}.shape[{size[1]}]")
        for tensor in graph.inputs:
            own = variables[tensor.name]
            shape = "".join(f"{_size_text(extent)}, " for extent in tensor.shape)
            lines.append(
                f'{own} = expect("{tensor.name}", {own}, ({shape.rstrip() if shape else ""}),'
                f" {dtype_text(graph, tensor.name)})"
            )
        for group in self.fused.groups:
            function = self.functions[group.name]
            arguments = [
                *(variables[name] for name in function.inputs),
                *(_size_text(size) for size in function.sizes),
                *(self._number_text(name) for name in function.scalars),
            ]
            results = ", ".join(variables[name] for name in function.outputs)
            lines.append(f"{results} = {function.name}({', '.join(arguments)})")
        uniform = self.fused.uniform
        returned = [
            f"torch.tensor({self._number_text(name)}, dtype={dtype_text(graph, name)})"
            if name in uniform
            else variables[name]
            for _, name in graph.outputs
        ]
        lines.append(f"return {', '.join(returned)}")
        return "\n".join([f"def {self._name}({', '.join(parameters)}):", *indented(lines)])

    def _named_sizes(self) -> dict[str, tuple[str, int]]:
        """Return where each named size stands by itself: an input, and its axis."""
        found: dict[str, tuple[str, int]] = {}
        wanted: set[str] = set()
        for tensor in self.fused.graph.inputs:
            for axis, extent in enumerate(tensor.shape):
                if isinstance(extent, int):
                    continue
                wanted |= {symbol.name for symbol in extent.free_symbols}
                if extent.is_Symbol:
                    found.setdefault(extent.name, (tensor.name, axis))
        for name in sorted(wanted - set(found)):
            raise GraphError(
                f"the size {name} is no axis of an input by itself",
                location=None,
                help=f"give the program an input with an axis of {name} elements",
            )
        return found

    def _number_text(self, name: str) -> str:
        node = self.fused.graph.producers[name]
        settings = node.settings
        if node.operator == "constant":
            return python_number(settings["value"])
        if node.operator == "attribute":
            return settings.text("name")
        if node.operator == "extent":
            return f"float({_size_text(settings['extent'])})"
        pattern = _NUMBERS.get(node.operator)
        if pattern is None:
            raise GraphError(f"{node.operator} of a number has no Triton", location=node.location)
        return f"({pattern.format(*(self._number_text(each) for each in node.inputs))})"


def _function(fused: FusedGraph, group: Group) -> TritonFunction:
    writers = {"vector": write_loops, "matmul": write_product, "attention": write_attention}
    return writers.get(group.kind, write_movement)(fused, group)


def _size_variable(name: str) -> str:
    return f"size_{''.join(c if c.isalnum() else '_' for c in name)}"


def _size_text(size: Dimension) -> str:
    """Return a size as Python, in terms of the named ones."""
    if isinstance(size, int):
        return str(size)
    import sympy

    renamed = size.subs({s: sympy.Symbol(_size_variable(s.name)) for s in size.free_symbols})
    text = str(sympy.pycode(renamed))
    return text if renamed.is_Symbol else f"int({text})"
