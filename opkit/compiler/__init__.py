"""Tensor programs to fused Ascend C kernels.

    graph = trace(function, [TensorSpec("x", (dimension("M"), 4096), "float16")])
    kernel = compile(graph)
    y = kernel(x)

Stages, each a function from a value to a value: `trace` (or `GraphBuilder`) to a Graph; `expand`,
`simplify` to a Graph of what kernels compute; `fuse` to a FusedGraph; then for each kernel its
loops, steps, memory plan, tiling and text.

Names load when they are first used, so that importing this package imports neither NumPy nor sympy.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .builder import GraphBuilder, TensorSpec, trace
    from .calls import ProgramCalls
    from .choices import Choices, ChoicesRow, bucket_of, read_choices
    from .compiled import Compiled, compile
    from .convolution import patches, placed, spaced, unpatched, windows
    from .cube import CUT_CPP
    from .differentiation import gradient
    from .dimensions import Dimension, Shape, computed_dimension, dimension, step_size
    from .equal_forms import in_equal_form
    from .explanation import KernelNote, explain, stage_text
    from .formula_text import FormulaOutput, formula_graph
    from .formula_values import evaluate_formulas, shapes_at
    from .fusion import FusedGraph, Group, fuse
    from .graph import Attribute, Graph, GraphError, Location, Node, Tensor
    from .host_tiling import bytes_text, extent_cpp, launch_function, size_parameter, sizes_of
    from .host_types import type_sizes
    from .hosted import HostedKernel, OperatorKernel, Share, operator_kernels, shares_of_kernel
    from .launch_numbers import extent_text
    from .limits import SizeLimit, index_limits, size_limits
    from .native import generated_source
    from .operators import OPERATORS
    from .own_outputs import with_own_outputs
    from .page import compiled_page
    from .program_file import load_program, tensor_spec
    from .pto import tile_program
    from .reference import random_arrays, run_graph, to_storage
    from .rewrite import expand, round_each, simplify
    from .rounds import join_rounds
    from .stages import Stages, compile_stages, prepare
    from .table import Operator
    from .tiles import Split, split
    from .value import Operand, Value
    from .vector_kernels import VectorKernel, common_kernel
    from .verification import Difference, verify

__all__ = [
    "CUT_CPP",
    "OPERATORS",
    "Attribute",
    "Choices",
    "ChoicesRow",
    "Compiled",
    "Difference",
    "Dimension",
    "FormulaOutput",
    "FusedGraph",
    "Graph",
    "GraphBuilder",
    "GraphError",
    "Group",
    "HostedKernel",
    "KernelNote",
    "Location",
    "Node",
    "Operand",
    "Operator",
    "OperatorKernel",
    "ProgramCalls",
    "Shape",
    "Share",
    "SizeLimit",
    "Split",
    "Stages",
    "Tensor",
    "TensorSpec",
    "Value",
    "VectorKernel",
    "bucket_of",
    "bytes_text",
    "common_kernel",
    "compile",
    "compile_stages",
    "compiled_page",
    "computed_dimension",
    "dimension",
    "evaluate_formulas",
    "expand",
    "explain",
    "extent_cpp",
    "extent_text",
    "formula_graph",
    "fuse",
    "generated_source",
    "gradient",
    "in_equal_form",
    "index_limits",
    "join_rounds",
    "launch_function",
    "load_program",
    "operator_kernels",
    "patches",
    "placed",
    "prepare",
    "random_arrays",
    "read_choices",
    "round_each",
    "run_graph",
    "shapes_at",
    "shares_of_kernel",
    "simplify",
    "size_limits",
    "size_parameter",
    "sizes_of",
    "spaced",
    "split",
    "stage_text",
    "step_size",
    "tensor_spec",
    "tile_program",
    "to_storage",
    "trace",
    "type_sizes",
    "unpatched",
    "verify",
    "windows",
    "with_own_outputs",
]

__getattr__ = lazy_names(
    __name__,
    {
        "builder": ("GraphBuilder", "TensorSpec", "trace"),
        "calls": ("ProgramCalls",),
        "choices": ("Choices", "ChoicesRow", "bucket_of", "read_choices"),
        "compiled": ("Compiled", "compile"),
        "convolution": ("patches", "placed", "spaced", "unpatched", "windows"),
        "differentiation": ("gradient",),
        "dimensions": ("Dimension", "Shape", "computed_dimension", "dimension", "step_size"),
        "equal_forms": ("in_equal_form",),
        "explanation": ("KernelNote", "explain", "stage_text"),
        "formula_text": ("FormulaOutput", "formula_graph"),
        "formula_values": ("evaluate_formulas", "shapes_at"),
        "fusion": ("FusedGraph", "Group", "fuse"),
        "graph": ("Attribute", "Graph", "GraphError", "Location", "Node", "Tensor"),
        "host_types": ("type_sizes",),
        "host_tiling": (
            "bytes_text",
            "extent_cpp",
            "launch_function",
            "size_parameter",
            "sizes_of",
        ),
        "cube": ("CUT_CPP",),
        "hosted": (
            *("HostedKernel", "OperatorKernel", "Share"),
            *("operator_kernels", "shares_of_kernel"),
        ),
        "launch_numbers": ("extent_text",),
        "native": ("generated_source",),
        "operators": ("OPERATORS",),
        "page": ("compiled_page",),
        "own_outputs": ("with_own_outputs",),
        "program_file": ("load_program", "tensor_spec"),
        "pto": ("tile_program",),
        "reference": ("random_arrays", "run_graph", "to_storage"),
        "rewrite": ("expand", "round_each", "simplify"),
        "rounds": ("join_rounds",),
        "limits": ("SizeLimit", "index_limits", "size_limits"),
        "stages": ("Stages", "compile_stages", "prepare"),
        "table": ("Operator",),
        "tiles": ("Split", "split"),
        "value": ("Operand", "Value"),
        "vector_kernels": ("VectorKernel", "common_kernel"),
        "verification": ("Difference", "verify"),
    },
)
