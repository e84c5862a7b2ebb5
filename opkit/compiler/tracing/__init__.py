"""Graphs from Python functions, and their values by NumPy."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .builder import GraphBuilder, TensorSpec, trace
    from .limits import SizeLimit, index_limits, size_limits
    from .program_file import load_program, run_program_file, tensor_spec
    from .reference import (
        ADDING,
        apply_nodes,
        from_storage,
        random_arrays,
        run_graph,
        run_nodes,
        to_storage,
    )

__all__ = [
    "ADDING",
    "GraphBuilder",
    "SizeLimit",
    "TensorSpec",
    "apply_nodes",
    "from_storage",
    "index_limits",
    "load_program",
    "random_arrays",
    "run_graph",
    "run_nodes",
    "run_program_file",
    "size_limits",
    "tensor_spec",
    "to_storage",
    "trace",
]

__getattr__ = lazy_names(
    __name__,
    {
        "builder": (
            "GraphBuilder",
            "TensorSpec",
            "trace",
        ),
        "limits": (
            "SizeLimit",
            "index_limits",
            "size_limits",
        ),
        "program_file": (
            "load_program",
            "run_program_file",
            "tensor_spec",
        ),
        "reference": (
            "ADDING",
            "apply_nodes",
            "from_storage",
            "random_arrays",
            "run_graph",
            "run_nodes",
            "to_storage",
        ),
    },
)
