"""Tensor programs to fused Ascend C kernels.

    graph = trace(function, [TensorSpec("x", (dimension("M"), 4096), "float16")])
    kernel = compile(graph)
    y = kernel(x)

Stages, each a function from a value to a value: `trace` (or `GraphBuilder`) to a Graph; `expand`,
`simplify` to a Graph
of what kernels compute; `fuse` to a FusedGraph; then for each kernel its loops, steps, memory
plan, tiling and text.

Names load when they are first used, so that importing this package imports neither NumPy nor sympy.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .builder import GraphBuilder, Operand, TensorSpec, Value, trace
    from .compiled import Compiled, compile
    from .differentiation import gradient
    from .dimensions import Dimension, Shape, dimension
    from .explanation import KernelNote, explain, stage_text
    from .fusion import FusedGraph, Group, fuse
    from .graph import Attribute, Graph, GraphError, Location, Node, Tensor
    from .operators import OPERATORS
    from .program_file import load_program, tensor_spec
    from .reference import random_arrays, run_graph, to_storage
    from .rewrite import expand, simplify
    from .stages import Stages, compile_stages
    from .table import Operator
    from .tiles import Split, split
    from .verification import Difference, verify

__all__ = [
    "OPERATORS",
    "Attribute",
    "Compiled",
    "Difference",
    "Dimension",
    "FusedGraph",
    "Graph",
    "GraphBuilder",
    "GraphError",
    "Group",
    "KernelNote",
    "Location",
    "Node",
    "Operand",
    "Operator",
    "Shape",
    "Split",
    "Stages",
    "Tensor",
    "TensorSpec",
    "Value",
    "compile",
    "compile_stages",
    "dimension",
    "expand",
    "explain",
    "fuse",
    "gradient",
    "load_program",
    "random_arrays",
    "run_graph",
    "simplify",
    "split",
    "stage_text",
    "tensor_spec",
    "to_storage",
    "trace",
    "verify",
]

_HOME = {
    "OPERATORS": "operators",
    "Attribute": "graph",
    "Compiled": "compiled",
    "Difference": "verification",
    "Dimension": "dimensions",
    "FusedGraph": "fusion",
    "Graph": "graph",
    "GraphBuilder": "builder",
    "GraphError": "graph",
    "Group": "fusion",
    "KernelNote": "explanation",
    "Location": "graph",
    "Node": "graph",
    "Operand": "builder",
    "Operator": "table",
    "Shape": "dimensions",
    "Split": "tiles",
    "Stages": "stages",
    "Tensor": "graph",
    "TensorSpec": "builder",
    "Value": "builder",
    "compile": "compiled",
    "compile_stages": "stages",
    "dimension": "dimensions",
    "expand": "rewrite",
    "explain": "explanation",
    "fuse": "fusion",
    "gradient": "differentiation",
    "load_program": "program_file",
    "random_arrays": "reference",
    "run_graph": "reference",
    "simplify": "rewrite",
    "split": "tiles",
    "stage_text": "explanation",
    "tensor_spec": "program_file",
    "to_storage": "reference",
    "trace": "builder",
    "verify": "verification",
}


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    # Bound once: the next access does not come here.
    globals()[name] = value
    return value
