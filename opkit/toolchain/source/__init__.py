"""Kernels' text: tokens, includes, and the edits that a C++ compiler needs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .core_passes import join_passes, pass_macros, split_passes
    from .diagnostics import compiler_crash, parse_diagnostics
    from .edits import kernel_edits
    from .included import (
        compiles_as_twin,
        folders_of,
        include_names,
        included_texts,
        includes_in,
        source_files,
        structs_in,
    )
    from .kernel_names import mark_overloaded
    from .kernel_templates import LIST_TEMPLATES, beside_template, is_plain_function, read_instances
    from .kernel_unit import edited_text, kernel_source, kernel_texts
    from .late_definitions import late_macros
    from .launch_rewrite import TASK_TYPES, VECTOR, Kernel, Rewritten, apply_edits, scan_kernels
    from .launch_tree import LaunchTree, read_kernels, read_launch_tree
    from .structs import tiling_structs
    from .tiling_choices import branches_by_tiling_data, whole_numbers
    from .tokens import (
        Token,
        TokenKind,
        matching_close,
        matching_open,
        plain_code,
        significant,
        tokenize,
    )
    from .twin import is_kernel_template, twin_entry

__all__ = [
    "LIST_TEMPLATES",
    "TASK_TYPES",
    "VECTOR",
    "Kernel",
    "LaunchTree",
    "Rewritten",
    "Token",
    "TokenKind",
    "apply_edits",
    "beside_template",
    "branches_by_tiling_data",
    "compiler_crash",
    "compiles_as_twin",
    "edited_text",
    "folders_of",
    "include_names",
    "included_texts",
    "includes_in",
    "is_kernel_template",
    "is_plain_function",
    "join_passes",
    "kernel_edits",
    "kernel_source",
    "kernel_texts",
    "late_macros",
    "mark_overloaded",
    "matching_close",
    "matching_open",
    "parse_diagnostics",
    "pass_macros",
    "plain_code",
    "read_instances",
    "read_kernels",
    "read_launch_tree",
    "scan_kernels",
    "significant",
    "source_files",
    "split_passes",
    "structs_in",
    "tiling_structs",
    "tokenize",
    "twin_entry",
    "whole_numbers",
]

__getattr__ = lazy_names(
    __name__,
    {
        "core_passes": (
            "join_passes",
            "pass_macros",
            "split_passes",
        ),
        "diagnostics": (
            "compiler_crash",
            "parse_diagnostics",
        ),
        "included": (
            "compiles_as_twin",
            "folders_of",
            "include_names",
            "included_texts",
            "includes_in",
            "source_files",
            "structs_in",
        ),
        "edits": ("kernel_edits",),
        "tiling_choices": ("branches_by_tiling_data", "whole_numbers"),
        "kernel_names": ("mark_overloaded",),
        "kernel_unit": (
            "edited_text",
            "kernel_source",
            "kernel_texts",
        ),
        "kernel_templates": (
            "LIST_TEMPLATES",
            "beside_template",
            "is_plain_function",
            "read_instances",
        ),
        "late_definitions": ("late_macros",),
        "launch_rewrite": (
            "Kernel",
            "Rewritten",
            "TASK_TYPES",
            "VECTOR",
            "apply_edits",
            "scan_kernels",
        ),
        "launch_tree": (
            "LaunchTree",
            "read_kernels",
            "read_launch_tree",
        ),
        "structs": ("tiling_structs",),
        "tokens": (
            "Token",
            "TokenKind",
            "matching_close",
            "matching_open",
            "plain_code",
            "significant",
            "tokenize",
        ),
        "twin": (
            "is_kernel_template",
            "twin_entry",
        ),
    },
)
