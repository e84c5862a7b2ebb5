"""Test cases: their values, files, and the ones that operators' documents and names imply."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opkit.lazy import lazy_names

if TYPE_CHECKING:
    from .case_files import CASE_FILES, golden_of_file, load_cases, replaces_generated, save_case
    from .cases import (
        LIST_LENGTH,
        Case,
        Shape,
        ShapeRule,
        case_variants,
        default_cases,
        make_case,
        make_inputs,
        output_tensors,
        plain_attr,
        reads_axes,
        row_inputs,
        usual_shape,
        works_by_row,
    )
    from .documents import documented_ranks, documented_rounding, documented_values
    from .expressions import (
        TENSORS,
        check_expression,
        evaluate_expression,
        is_expression,
        names_of,
    )
    from .golden import Golden, as_outputs, is_unsaid, load_function, load_golden
    from .operator_cases import TOGETHER
    from .pairwise import pairwise_cases, usual_choices
    from .together import Together
    from .values import DISTRIBUTIONS, EDGES, HALVES, Source

__all__ = [
    "CASE_FILES",
    "DISTRIBUTIONS",
    "EDGES",
    "HALVES",
    "LIST_LENGTH",
    "TENSORS",
    "TOGETHER",
    "Case",
    "Golden",
    "Shape",
    "ShapeRule",
    "Source",
    "Together",
    "as_outputs",
    "case_variants",
    "check_expression",
    "default_cases",
    "documented_ranks",
    "documented_rounding",
    "documented_values",
    "evaluate_expression",
    "golden_of_file",
    "is_expression",
    "is_unsaid",
    "load_cases",
    "load_function",
    "load_golden",
    "make_case",
    "make_inputs",
    "names_of",
    "output_tensors",
    "pairwise_cases",
    "plain_attr",
    "reads_axes",
    "replaces_generated",
    "row_inputs",
    "save_case",
    "usual_choices",
    "usual_shape",
    "works_by_row",
]

__getattr__ = lazy_names(
    __name__,
    {
        "case_files": (
            "CASE_FILES",
            "golden_of_file",
            "load_cases",
            "replaces_generated",
            "save_case",
        ),
        "cases": (
            "Case",
            "LIST_LENGTH",
            "Shape",
            "ShapeRule",
            "case_variants",
            "default_cases",
            "make_case",
            "make_inputs",
            "output_tensors",
            "plain_attr",
            "reads_axes",
            "row_inputs",
            "usual_shape",
            "works_by_row",
        ),
        "documents": (
            "documented_ranks",
            "documented_rounding",
            "documented_values",
        ),
        "expressions": (
            "TENSORS",
            "check_expression",
            "evaluate_expression",
            "is_expression",
            "names_of",
        ),
        "golden": (
            "Golden",
            "as_outputs",
            "is_unsaid",
            "load_function",
            "load_golden",
        ),
        "operator_cases": ("TOGETHER",),
        "pairwise": ("pairwise_cases", "usual_choices"),
        "together": ("Together",),
        "values": (
            "DISTRIBUTIONS",
            "EDGES",
            "HALVES",
            "Source",
        ),
    },
)
